//! From SQLite's codes to the contract's errors.

use retoma_store::Error;
use rusqlite::ffi;

/// The extended code of a failed sync, as the fault hook reports it.
pub(crate) const IOERR_FSYNC: std::ffi::c_int = ffi::SQLITE_IOERR_FSYNC;

/// What may go wrong inside a verb.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite said no.
    Sqlite(rusqlite::Error),
    /// A stored row does not read back: a bug, or a broken file.
    Row(String),
    /// The contract's own answer.
    Store(Error),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sqlite(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Failure {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Failure::Row(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    /// Says where, not what: the text of a JSON error may quote the value.
    fn from(error: serde_json::Error) -> Self {
        Failure::Row(format!("JSON, {:?} at {}:{}", error.classify(), error.line(), error.column()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Store(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => from_sqlite(error),
            Failure::Row(what) => Error::Other(format!("a stored row does not read back: {what}")),
            Failure::Store(error) => error,
        }
    }
}

fn from_sqlite(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    let rusqlite::Error::SqliteFailure(failure, _) = &error else { return Error::Other(error.to_string()) };
    match failure.code {
        Code::DiskFull => Error::Full(Some(Box::new(error))),
        // The wal-index could not grow: SQLite reports ENOSPC there as an I/O error.
        Code::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            Error::Full(Some(Box::new(error)))
        }
        Code::DatabaseBusy | Code::DatabaseLocked | Code::OperationInterrupted => Error::Busy(Some(Box::new(error))),
        Code::SystemIoFailure | Code::DatabaseCorrupt | Code::NotADatabase => Error::Poisoned(format!(
            "SQLite code {}: {}",
            failure.extended_code,
            ffi::code_to_str(failure.extended_code)
        )),
        _ => Error::Other(format!("SQLite code {}: {error}", failure.extended_code)),
    }
}

/// The same answer for another caller of the same commit. Sources cannot be copied; they go to the first one.
pub(crate) fn again(error: &Error) -> Error {
    match error {
        Error::Full(_) => Error::Full(None),
        Error::Busy(_) => Error::Busy(None),
        Error::UnknownCommit(_) => Error::UnknownCommit(None),
        Error::Poisoned(why) => Error::Poisoned(why.clone()),
        Error::Invalid(why) => Error::Invalid(why.clone()),
        Error::Other(why) => Error::Other(why.clone()),
        Error::Closed => Error::Closed,
    }
}

/// What a sync that fails in earnest reports.
pub(crate) fn failed_sync() -> Failure {
    Failure::Sqlite(rusqlite::Error::SqliteFailure(ffi::Error::new(IOERR_FSYNC), None))
}
