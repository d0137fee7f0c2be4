//! Pages, counts, rows.

use jiff::Timestamp;
use retoma_core::identity::Identity;
use retoma_core::ids::ContactId;
use serde::{Deserialize, Serialize};

use super::Heartbeat;

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// At most so many; the store caps it at 500.
    pub limit: usize,
}

/// A page's rows.
#[derive(Clone, Debug)]
pub struct Paged<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where to go on.
    pub next_cursor: Option<String>,
}

/// How to find a contact.
#[derive(Clone, Debug)]
pub enum FindContact {
    /// By its id.
    Id(ContactId),
    /// By match key.
    Identity(Identity),
}

/// Counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Events by status.
    pub events: std::collections::BTreeMap<String, u64>,
    /// Repetitions stopped.
    pub duplicates: u64,
    /// Tasks by status.
    pub tasks: std::collections::BTreeMap<String, u64>,
    /// Avoided sends by reason.
    pub avoided: std::collections::BTreeMap<String, u64>,
    /// Attempts whose outcome was ambiguous.
    pub ambiguous: u64,
    /// Dead letters.
    pub dead: u64,
    /// Contacts.
    pub contacts: u64,
    /// The oldest event in the inbox.
    pub oldest_pending_at: Option<Timestamp>,
    /// The oldest due task.
    pub oldest_due_at: Option<Timestamp>,
    /// Messages that came without their content between 70 and 10 minutes ago, and whose content never came (FC-06).
    pub without_content: u64,
    /// Bytes of the database and its log.
    pub bytes: u64,
    /// How full the disk under it is, in percent, where that can be known.
    pub disk_used_percent: Option<u8>,
    /// The last beat of every loop.
    pub heartbeats: Vec<Heartbeat>,
}

/// Rows of `db sql`.
#[derive(Clone, Debug, Serialize)]
pub struct SqlRows {
    /// Column names.
    pub columns: Vec<String>,
    /// Values.
    pub rows: Vec<Vec<serde_json::Value>>,
}
