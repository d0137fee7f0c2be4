//! Heartbeats, channels, keys, audit, retention.

use jiff::Timestamp;
use retoma_core::ids::{ChannelName, Tenant};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A loop's sign of life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Which loop (`owner`, `deliverer`, ...).
    pub flow: String,
    /// When its last round ended.
    pub seen_at: Timestamp,
}

/// A channel that was stopped or resumed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChannelState {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub channel: ChannelName,
    /// Why it is stopped; `None` when it runs.
    pub stopped: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// Whether a person stopped it: then nothing tries it before a person says so.
    pub by_person: bool,
}

/// An API key, hashed.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: String,
    /// Whose.
    pub tenant: Tenant,
    /// Its name.
    pub name: String,
    /// `read`, `write` or `admin`.
    pub scope: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A row of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditRow {
    /// Whose.
    pub tenant: Tenant,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What (`task.cancel`).
    pub action: String,
    /// On what.
    pub target: String,
    /// Details without personal data.
    pub detail: serde_json::Value,
}

/// What history may be removed, by class.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Ended events, their raw bytes and delivery keys (A5: 90 days). Business keys and task ids stay for ever.
    pub events: Duration,
    /// Final tasks and their attempts.
    pub tasks: Duration,
    /// Claims without a usable key. A gate key carries its own time, from its scope.
    pub gate_held: Duration,
}
