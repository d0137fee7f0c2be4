//! Dead letters (E7).

use jiff::Timestamp;
use retoma_core::ids::Tenant;
use serde::{Deserialize, Serialize};

/// A dead letter (E7): everything a person needs to decide.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its id: the task's or the event's.
    pub id: String,
    /// `task` or `event`.
    pub kind: String,
    /// The source of the event behind it.
    pub source: Option<String>,
    /// The flow.
    pub flow: Option<String>,
    /// The idempotency key.
    pub key: String,
    /// Attempts.
    pub attempts: u32,
    /// The last error.
    pub last_error: Option<String>,
    /// All errors, oldest first.
    pub errors: Vec<String>,
    /// Why it was given up.
    pub reason: String,
    /// The original payload, masked unless asked for by an admin.
    pub payload: serde_json::Value,
    /// Version of the program that gave up.
    pub consumer_version: String,
    /// When the task or event was created.
    pub created_at: Timestamp,
    /// When it died.
    pub died_at: Timestamp,
}

/// Retry or discard dead letters.
#[derive(Clone, Debug)]
pub struct DeadMoves {
    /// Whose.
    pub tenant: Tenant,
    /// These, or all where empty and `all`.
    pub ids: Vec<String>,
    /// All of them.
    pub all: bool,
    /// Retry (true) or discard.
    pub retry: bool,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub actor: String,
    /// When.
    pub now: Timestamp,
}
