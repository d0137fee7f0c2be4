//! What a store may answer instead.

/// A verb's answer.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb did not happen. Nothing of its batch is stored, except where `UnknownCommit` says so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage is full. Nothing was written; the same batch succeeds once there is room.
    #[error("the storage is full")]
    Full(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// A passing condition (busy, connection lost before commit); try the whole batch again.
    #[error("the storage is busy")]
    Busy(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The connection broke during commit: the batch may or may not be there. Safe to try again, since every verb is
    /// idempotent.
    #[error("the outcome of the commit is unknown")]
    UnknownCommit(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// A sync failed, or an invariant of the store broke. It answers nothing else any more; the process must end.
    #[error("the storage failed and was closed: {0}")]
    Poisoned(String),
    /// The request itself cannot be served (a malformed cursor, a statement that writes).
    #[error("{0}")]
    Invalid(String),
    /// Anything else; a bug or a broken database.
    #[error("storage error: {0}")]
    Other(String),
    /// The store is shutting down.
    #[error("the storage is closed")]
    Closed,
}

impl Error {
    /// Whether the same batch may be tried again later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Full(_) | Error::Busy(_) | Error::UnknownCommit(_))
    }

    /// Whether the process must stop acknowledging and end.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Error::Poisoned(_) | Error::Closed)
    }
}
