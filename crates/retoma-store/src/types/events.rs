//! What asks to be recognised, and what is answered (A5, A6).

use bytes::Bytes;
use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind};
use retoma_core::identity::Identity;
use retoma_core::ids::{ContactId, EventId, RequestId, SourceName, Tenant};
use retoma_core::keys::Key16;
use serde::{Deserialize, Serialize};

use super::{Owner, Receipt};

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
