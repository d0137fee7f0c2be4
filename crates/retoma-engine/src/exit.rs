//! How a loop ends.

/// A loop's typed exit reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was asked to stop, and everything it held is on disk.
    Stopped,
    /// The store is gone, or an invariant broke: the process must stop acknowledging and end.
    Fatal(String),
}
