//! Tasks and attempts: starts, ends, filters.

use jiff::Timestamp;
use retoma_core::evidence::{Sighting, Witness};
use retoma_core::ids::{BucketNo, ChannelName, ContactId, ConversationId, TaskId, Tenant};
use retoma_core::keys::Key16;
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::{Task, TaskStatus};
use serde::{Deserialize, Serialize};

use super::{ReceiptStatus, ReceiptTimes};

/// A wish to start.
#[derive(Clone, Debug)]
pub struct Start {
    /// Whose.
    pub tenant: Tenant,
    /// Which task.
    pub task: TaskId,
    /// Its bucket.
    pub bucket: BucketNo,
    /// For whom.
    pub contact: ContactId,
    /// `attempts` as seen.
    pub attempts: u32,
    /// The contact's version as seen by the check.
    pub contact_version: u64,
    /// Whether undecided chat messages stop it, too (reminders).
    pub block_on_chat: bool,
    /// Whether a payment fact (rank 30 or more) of the task's order stops it (reminders).
    pub block_on_paid: bool,
    /// The key of what it says ([`retoma_core::evidence::text_key`]), by which its echo is recognised.
    pub said: Option<Key16>,
}

/// Which due tasks.
#[derive(Clone, Debug)]
pub struct DueQuery {
    /// Due at or before.
    pub now: Timestamp,
    /// At most so many reminders of a channel, and so many others.
    pub limit: usize,
    /// Nothing of these channels.
    pub skip: Vec<ChannelName>,
}

/// What is due.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// When the next one falls due on a channel that was not skipped, if any waits.
    pub next_at: Option<Timestamp>,
}

/// A send whose outcome nobody knows.
#[derive(Clone, Debug)]
pub struct Unsure {
    /// The task.
    pub task: Task,
    /// The attempt.
    pub attempt: AttemptRow,
    /// The key of what it said.
    pub said: Option<Key16>,
}

/// Whose messages to look for.
#[derive(Clone, Debug)]
pub struct SightingQuery {
    /// Whose.
    pub tenant: Tenant,
    /// To whom.
    pub contact: ContactId,
    /// Through which channel; events of doors without a channel count for every one.
    pub channel: ChannelName,
    /// Heard of since.
    pub since: Timestamp,
}

/// What events tell of messages of our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    /// Messages with what they said.
    pub messages: Vec<Sighting>,
    /// Receipts of messages that nothing else tells of.
    pub receipts: Vec<Sighting>,
}

/// A row of evidence (E4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Whose.
    #[serde(skip)]
    pub tenant: Tenant,
    /// Of which task.
    #[serde(skip)]
    pub task: TaskId,
    /// When.
    pub at: Timestamp,
    /// Who says it.
    pub witness: Witness,
    /// What, for people; no phone, no text.
    pub said: String,
}

/// The answer to a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// The start row is on disk.
    Started {
        /// The attempt's number, from 1.
        attempt: u32,
    },
    /// The task moved meanwhile.
    Moved,
    /// Something that may take the reason away came in: decide first, then check again.
    LookAgain,
    /// The bucket is not the caller's any more.
    NotOwner,
}

/// What the check said of a task that does not start now.
#[derive(Clone, Debug)]
pub struct Settle {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub task: TaskId,
    /// `attempts` as seen.
    pub attempts: u32,
    /// What.
    pub to: SettleTo,
}

/// Where a task goes without a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleTo {
    /// `cancelled`, `avoided = true`.
    Avoided(Reason),
    /// Stays `scheduled` (or `failed`); `next_attempt_at` moves.
    Deferred(Reason, Timestamp),
    /// `held`, with what is missing.
    Held(Reason, String),
}

/// The end of an attempt.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Whose.
    pub tenant: Tenant,
    /// Which task.
    pub task: TaskId,
    /// Which attempt.
    pub attempt: u32,
    /// When it ended.
    pub ended_at: Timestamp,
    /// With what.
    pub end: AttemptEnd,
    /// Where the task goes.
    pub next: NextStep,
    /// Whether this finish uses up the one resend of `resend_once`.
    pub resend: bool,
    /// A sentence of evidence for people (`process ended during send`).
    pub evidence: Option<String>,
}

/// An attempt as stored (append only; its end is filled in once).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRow {
    /// Its number, from 1. A try that did not count shares it with the next one.
    pub n: u32,
    /// When its start was committed.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its class.
    pub outcome: Option<Outcome>,
    /// Status of the answer.
    pub http_status: Option<u16>,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// The answer, masked and cut.
    pub response: Option<String>,
    /// The provider's message id.
    pub provider_message_id: Option<String>,
}

/// A task as lists show it.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The task.
    pub task: Task,
    /// The last attempt's class.
    pub outcome: Option<Outcome>,
    /// The last error.
    pub last_error: Option<String>,
    /// The provider's message id.
    pub provider_message_id: Option<String>,
    /// What the provider last said of it.
    pub receipt: Option<ReceiptStatus>,
    /// When each receipt was first said.
    pub receipt_times: ReceiptTimes,
    /// What is missing, for `held`.
    pub detail: Option<String>,
}

/// Which tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Whose.
    pub tenant: Tenant,
    /// These.
    pub ids: Vec<TaskId>,
    /// Of this contact.
    pub contact: Option<ContactId>,
    /// Of this conversation.
    pub conversation: Option<ConversationId>,
    /// Of this status.
    pub status: Option<TaskStatus>,
    /// Of this cadence or action (`motivo`).
    pub reason: Option<String>,
    /// Whose order's transaction is this.
    pub reference: Option<String>,
    /// Whose touch number is this.
    pub touch_no: Option<u32>,
    /// Only those stuck right now: due for over 15 min, `sending` too long, held, unsure.
    pub stuck_at: Option<Timestamp>,
    /// Only those that were accepted and never heard of again (FC-78).
    pub silent: Option<Silent>,
}

/// Messages without a receipt.
#[derive(Clone, Debug)]
pub struct Silent {
    /// Of these channels.
    pub channels: Vec<ChannelName>,
    /// Accepted at or before, and within the week before that.
    pub before: Timestamp,
}

/// Back to work, or settled by a person.
#[derive(Clone, Debug)]
pub struct Reopen {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub ids: Vec<TaskId>,
    /// How.
    pub how: ReopenHow,
}

/// What a person does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReopenHow {
    /// `held`, `dead`, `failed` or `cancelled by mistake` back to `scheduled`, due now. The check still has its say.
    Retry,
    /// `unsure` or `held` was sent after all.
    ResolveSent,
    /// `unsure` or `held` was surely not sent: `scheduled`, due now.
    ResolveNotSent,
}
