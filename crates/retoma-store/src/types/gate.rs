//! The idempotency gate (B1-B5).

use jiff::Timestamp;
use retoma_core::ids::Tenant;
use retoma_core::keys::Key16;
use std::time::Duration;

/// A call to the gate.
#[derive(Clone, Debug)]
pub struct GateCall {
    /// Whose.
    pub tenant: Tenant,
    /// Class of effect.
    pub scope: String,
    /// The key.
    pub key: String,
    /// What.
    pub verb: GateVerb,
}

/// What is asked of the gate.
#[derive(Clone, Debug)]
pub enum GateVerb {
    /// May I? `token` is fresh and becomes the owner's if it may proceed.
    Claim {
        /// Owner token.
        token: String,
        /// Digest of what is to be done.
        fingerprint: Option<Key16>,
        /// How long until the owner is taken for dead.
        lease: Duration,
        /// How long the key is kept.
        keep: Duration,
        /// For tracing; the key by default.
        correlation_id: Option<String>,
        /// Anything the caller wants to find again.
        metadata: serde_json::Value,
        /// Whether the next caller may proceed when a lease ran out.
        proceed_when_expired: bool,
    },
    /// I am still at it.
    Renew {
        /// Owner token.
        token: String,
        /// Anew.
        lease: Duration,
    },
    /// Done.
    Complete {
        /// Owner token.
        token: String,
        /// What later callers get.
        result: serde_json::Value,
    },
    /// Failed.
    Fail {
        /// Owner token.
        token: String,
        /// Why.
        error: String,
        /// Whether the next caller may try.
        retryable: bool,
    },
    /// An operator frees an uncertain or failed key.
    Release {
        /// Who.
        actor: String,
    },
    /// The trail; changes nothing.
    Show,
}

/// The gate's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct GateAnswer {
    /// What.
    pub outcome: GateOutcome,
    /// The record after the call, if there is one.
    pub record: Option<GateRecord>,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOutcome {
    /// Go on.
    Proceed,
    /// Already done: the stored result.
    Done,
    /// Somebody is at it.
    InProgress,
    /// Somebody was at it and fell silent; a person decides.
    Uncertain,
    /// Failed for good.
    Failed,
    /// The key stands for something else.
    Mismatch,
    /// Renewed, completed, failed, released, or shown.
    Ok,
    /// The token is not the owner's.
    StaleToken,
    /// No such key.
    NotFound,
}

/// A gate key.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRecord {
    /// `LOCKED`, `DONE` or `FAILED`.
    pub status: String,
    /// When it was first seen.
    pub first_seen_at: Timestamp,
    /// Its correlation id.
    pub correlation_id: String,
    /// Claims so far.
    pub attempt: u32,
    /// Repetitions stopped.
    pub duplicates: u64,
    /// The last one.
    pub last_duplicate_at: Option<Timestamp>,
    /// The stored result.
    pub result: Option<serde_json::Value>,
    /// The error of `FAILED`.
    pub error: Option<String>,
    /// Whether `FAILED` may be taken again.
    pub retryable: bool,
    /// End of the lease.
    pub lease_until: Option<Timestamp>,
    /// The caller's metadata.
    pub metadata: serde_json::Value,
    /// Every claim that proceeded, oldest first. Only [`GateVerb::Show`] fills it in.
    pub attempts: Vec<GateAttempt>,
}

/// A claim that proceeded.
#[derive(Clone, Debug, PartialEq)]
pub struct GateAttempt {
    /// Its number, from 1.
    pub n: u32,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How: `done`, `failed`, `lapsed` (its lease ran out and another claim took over), `released` (by a person).
    pub outcome: Option<String>,
    /// The error of `failed`.
    pub error: Option<String>,
}
