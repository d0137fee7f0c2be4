//! What the verbs take and answer. Plain data; no SQL type leaks out.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind};
use retoma_core::identity::Identity;
use retoma_core::ids::{
    BucketNo, ChannelName, ContactId, ConversationId, Epoch, EventId, RequestId, SourceName, TaskId, Tenant,
};
use retoma_core::keys::Key16;
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::{Task, TaskStatus};
use serde::{Deserialize, Serialize};

// ---- events --------------------------------------------------------------------------------------------------------

/// One request (or one internal cause) and the events read from it. Committed together (A6).
#[derive(Clone, Debug)]
pub struct Intake {
    /// The bytes as they came; `None` for events of our own making. Kept once, whatever the number of parts, and only if
    /// a part is new or altered.
    pub request: Option<RawRequest>,
    /// The parts.
    pub events: Vec<NewEvent>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct RawRequest {
    /// Its id.
    pub id: RequestId,
    /// Chosen headers, names in lower case, without credentials.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Bytes,
}

/// An event that asks to be recognised.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id, if it is new.
    pub id: EventId,
    /// Whose.
    pub tenant: Tenant,
    /// Through which door.
    pub source: SourceName,
    /// Canonical type.
    pub kind: EventKind,
    /// The delivery key's parts in words, for people (`loja-a/3EB0AAAA0001/messages.upsert`).
    pub key: String,
    /// The delivery key.
    pub delivery_key: Key16,
    /// The business key: (platform, account, transaction, canonical type, cycle). `None` where the fact has none.
    pub business_key: Option<Key16>,
    /// Digest of the part's bytes, to tell "the same key, another body".
    pub digest: Key16,
    /// How it enters.
    pub entry: Entry,
    /// Whom it is about.
    pub subject: Subject,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// When it came.
    pub received_at: Timestamp,
    /// Decided at once; blocks every start of its contact while undecided.
    pub urgent: bool,
    /// What it carries.
    pub data: EventData,
    /// What it says of a message of ours; merged in the same transaction.
    pub receipt: Option<Receipt>,
}

/// How an event enters the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Into the inbox, to be decided.
    Received,
    /// Recorded and ended, with a reason.
    Ignored(String),
    /// A person must release or discard it (A4).
    Held(String),
    /// Stored, not understood.
    Quarantined(String),
}

/// Whom an event is about.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A person with these identities, strongest first; created as `candidate` if none is known. Order of search: the
    /// order of the list. The first identity that is known decides; the others are attached to that contact where they
    /// are free, and recorded as aliases where another contact holds them. E-mail never attaches a phone of one contact to
    /// another.
    Person {
        /// The id of a new contact.
        candidate: ContactId,
        /// What we know.
        identities: Vec<Identity>,
    },
    /// This contact (clock, operators).
    Contact(ContactId),
    /// No contact. The bucket is taken from the order if there is one, else from the event.
    Nobody,
}

/// The answer for one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// New.
    New {
        /// Its id.
        event: EventId,
        /// Its contact, if any.
        contact: Option<ContactId>,
    },
    /// A repetition of a delivery.
    Duplicate {
        /// The first one.
        event: EventId,
        /// Where that one stands.
        status: EventStatus,
        /// Its outcome, where it has one.
        result: Option<String>,
        /// How many repetitions were stopped, this one included.
        duplicates: u64,
        /// The body differs; the new bytes were kept and the event is flagged.
        altered: bool,
    },
    /// A fact that was known under another delivery key: stored as ignored.
    RepeatedFact {
        /// Its id.
        event: EventId,
        /// The event that said it first.
        first: EventId,
    },
}

/// The status word of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventStatus {
    /// In the inbox.
    Received,
    /// Decided.
    Decided,
    /// Ended with a reason, without a decision.
    Ignored,
    /// Waits for a person.
    Held,
    /// Not understood.
    Quarantined,
    /// Could not be decided.
    Dead,
    /// A person discarded it.
    Discarded,
}

impl EventStatus {
    /// Every status.
    pub const ALL: &'static [EventStatus] = &[
        EventStatus::Received,
        EventStatus::Decided,
        EventStatus::Ignored,
        EventStatus::Held,
        EventStatus::Quarantined,
        EventStatus::Dead,
        EventStatus::Discarded,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            EventStatus::Received => "received",
            EventStatus::Decided => "decided",
            EventStatus::Ignored => "ignored",
            EventStatus::Held => "held",
            EventStatus::Quarantined => "quarantined",
            EventStatus::Dead => "dead",
            EventStatus::Discarded => "discarded",
        }
    }

    /// The status of a word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }

    /// Whether a repetition is answered with the recorded outcome (A2).
    pub fn is_completed(self) -> bool {
        matches!(self, EventStatus::Decided | EventStatus::Ignored | EventStatus::Discarded)
    }
}

/// An event as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventRow {
    /// Its id.
    pub id: EventId,
    /// Its door.
    pub source: SourceName,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Its delivery key in words.
    pub key: String,
    /// Where it stands.
    pub status: EventStatus,
    /// Why.
    pub reason: Option<String>,
    /// Repetitions stopped.
    pub duplicates: u64,
    /// Whether a repetition came with another body.
    pub altered: bool,
    /// Its contact.
    pub contact_id: Option<ContactId>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// When it came.
    pub received_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// How it ended.
    pub result: Option<String>,
    /// What went wrong, for `dead`.
    pub error: Option<String>,
    /// What it carried. Not serialised: it holds personal data.
    #[serde(skip)]
    pub data: EventData,
}

/// Which events.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this status.
    pub status: Option<EventStatus>,
    /// Of this source.
    pub source: Option<SourceName>,
    /// Of this type.
    pub kind: Option<EventKind>,
    /// Of this contact.
    pub contact: Option<ContactId>,
}

/// Release, discard or replay.
#[derive(Clone, Debug)]
pub struct EventMoves {
    /// Whose.
    pub tenant: Tenant,
    /// Which.
    pub ids: Vec<EventId>,
    /// Where to.
    pub to: EventMove,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub now: Timestamp,
}

/// Where an operator moves an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventMove {
    /// `held` or `quarantined` to the inbox.
    Release,
    /// `held`, `quarantined` or `dead` to `discarded`.
    Discard,
    /// Any ended event to the inbox once more.
    Replay,
}

/// Which part of the inbox to read.
#[derive(Clone, Debug)]
pub struct PendingQuery {
    /// Whose lease.
    pub owner: Owner,
    /// Only events whose id sorts after this one, ...
    pub after: Option<EventId>,
    /// ... plus all that were received since then.
    pub rescan_from: Option<Timestamp>,
    /// At most so many.
    pub limit: usize,
}

// ---- ownership -----------------------------------------------------------------------------------------------------

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

// ---- tasks ---------------------------------------------------------------------------------------------------------

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
    /// Its number, from 1.
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

/// What a provider says of a message.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Whose.
    pub tenant: Tenant,
    /// Through which channel.
    pub channel: ChannelName,
    /// Which message.
    pub provider_message_id: String,
    /// What.
    pub status: ReceiptStatus,
    /// When, by the provider.
    pub at: Timestamp,
}

/// The receipt lattice: forward only; `failed` is a side state (E6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptStatus {
    /// Did not arrive.
    Failed,
    /// The provider took it.
    Accepted,
    /// The provider sent it.
    Sent,
    /// On the device.
    Delivered,
    /// Read.
    Read,
    /// Played.
    Played,
}

impl ReceiptStatus {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            ReceiptStatus::Failed => "failed",
            ReceiptStatus::Accepted => "accepted",
            ReceiptStatus::Sent => "sent",
            ReceiptStatus::Delivered => "delivered",
            ReceiptStatus::Read => "read",
            ReceiptStatus::Played => "played",
        }
    }

    /// The status of a word.
    pub fn parse(text: &str) -> Option<Self> {
        use ReceiptStatus::{Accepted, Delivered, Failed, Played, Read, Sent};
        [Failed, Accepted, Sent, Delivered, Read, Played].into_iter().find(|status| status.as_str() == text)
    }
}

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

// ---- reading -------------------------------------------------------------------------------------------------------

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
    /// Bytes of the database and its log.
    pub bytes: u64,
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

// ---- the rest ------------------------------------------------------------------------------------------------------

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
    /// Gate keys, never below 72 h.
    pub gate_keys: Duration,
}

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
}
