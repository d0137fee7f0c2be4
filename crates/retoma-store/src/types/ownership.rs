//! Leases, decisions and deadlines: who may decide what.

use jiff::Timestamp;
use retoma_core::ids::{BucketNo, ContactId, ConversationId, Epoch, TaskId, Tenant};
use std::time::Duration;

/// What a node owns, as it believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The node.
    pub node: String,
    /// Buckets with the epoch they were taken at.
    pub buckets: Buckets,
}

/// A set of owned buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// Every bucket, at epoch 1: the single process on SQLite.
    All,
    /// These, sorted.
    Some(Vec<(BucketNo, Epoch)>),
}

/// A wish for leases.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// Who asks; fresh for every start of a process.
    pub node: String,
    /// How long the lease lasts.
    pub lease: Duration,
    /// At most how many buckets.
    pub max_buckets: usize,
    /// Serve real leases even where one process would own everything.
    pub explicit: bool,
}

/// What was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What the node owns now.
    pub owner: Owner,
    /// The store's clock at the renewal.
    pub store_now: Timestamp,
}

/// The answer to a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It stands.
    Done {
        /// New tasks whose ids had been claimed before; they were not added.
        already_claimed: Vec<TaskId>,
    },
    /// It was based on something that changed; load again.
    Stale,
    /// The bucket is not the caller's any more.
    NotOwner,
}

/// A conversation whose deadline passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDeadline {
    /// Whose.
    pub tenant: Tenant,
    /// Whose.
    pub contact: ContactId,
    /// Which.
    pub conversation: ConversationId,
    /// The deadline.
    pub at: Timestamp,
}

/// When there is something to do next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextWake {
    /// The earliest deadline of a conversation.
    pub deadline_at: Option<Timestamp>,
    /// The earliest due time of a task that `load_due` would answer.
    pub task_at: Option<Timestamp>,
}
