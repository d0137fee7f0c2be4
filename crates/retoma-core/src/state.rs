//! What is known of a contact when something is decided or sent: plain data, loaded and stored by the store.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind, OrderRef};
use crate::identity::Identity;
use crate::ids::{BucketNo, ChannelName, ContactId, ConversationId, FlowName, TaskId, Tenant};
use crate::receipt;
use crate::task::{MessageClass, Task};

/// A person (the row that a decision may change).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contact {
    /// Its id.
    pub id: ContactId,
    /// Whose contact.
    pub tenant: Tenant,
    /// Its bucket.
    pub bucket: BucketNo,
    /// Counts the decisions taken for it. A start names the version it was checked against.
    pub version: u64,
    /// Since when nothing automatic may be written (C12).
    pub opted_out_at: Option<Timestamp>,
    /// Until when a person is in the chat (C8).
    pub paused_until: Option<Timestamp>,
    /// The contact's own last message, by its origin's time; opens the 24 h window and the silence of D5.
    pub last_inbound_at: Option<Timestamp>,
    /// The channel of that message; replies and reminders go there.
    pub last_channel: Option<ChannelName>,
    /// Template values that belong to the person (`contact.first_name`, `contact.timezone`).
    pub vars: BTreeMap<String, String>,
    /// How many cycles were ever opened; numbers the next one.
    pub cycles: u32,
    /// How the talk goes back and forth: what the loop guard counts (C10).
    #[serde(default)]
    pub ping_pong: PingPong,
}

/// What is remembered of the last exchanges, so that two robots which answer each other are noticed (C10, FC-12).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PingPong {
    /// A digest of what the contact said last, never the words themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// How often in a row it said just that, each time after a message of ours.
    pub same: u32,
    /// How often in a row it answered faster than a person reads.
    pub quick: u32,
}

impl PingPong {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One sale cycle of a contact, in exactly one state (C1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Conversation {
    /// Derived from contact and ordinal.
    pub id: ConversationId,
    /// Its number among the contact's cycles, from 1.
    pub ordinal: u32,
    /// The flow it follows.
    pub flow: FlowName,
    /// The version of the flow it was last decided with.
    pub flow_version: u32,
    /// What is being sold; `None` until a platform event names it.
    pub offer: Option<String>,
    /// The state's word.
    pub state: String,
    /// Counts its transitions.
    pub version: u64,
    /// Closed cycles take no more events (an OPT_OUT cycle after `VOLTAR`).
    pub closed: bool,
    /// When the clock speaks next.
    pub deadline_at: Option<Timestamp>,
    /// The cadence that runs, if one does.
    pub cadence: Option<RunningCadence>,
    /// The order it is about, by the last platform event.
    pub order: Option<OrderRef>,
    /// Orders seen in this cycle that were paid, so that each is delivered once.
    pub paid_orders: Vec<OrderRef>,
    /// Where it stood before the last change of state: `previous.state`, `previous.event`, `previous.reason` (C9).
    pub previous: Previous,
    /// Template values of the cycle (`offer.name`, `order.total`, `pix.code`, `checkout.url`).
    pub vars: BTreeMap<String, String>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it was last decided.
    pub updated_at: Timestamp,
}

/// Where a conversation came from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Previous {
    /// The state before.
    pub state: Option<String>,
    /// The event that moved it.
    pub event: Option<String>,
    /// The reason recorded with it, where there was one.
    pub reason: Option<String>,
}

/// A cadence under way. Its touches are tasks; `key` is what their ids share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunningCadence {
    /// The cadence's name.
    pub name: String,
    /// What the touches' ids derive from (a transaction, else conversation and version).
    pub key: String,
    /// The instant that touches count from.
    pub anchor: Timestamp,
    /// Touches in order.
    pub touches: Vec<RunningTouch>,
}

/// A touch of a running cadence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunningTouch {
    /// Its task.
    pub task: TaskId,
    /// When it falls due, jitter included.
    pub due_at: Timestamp,
    /// Whether it was handed to delivery.
    pub handed: bool,
}

/// What a contact hands over to the one that it turns out to be (C11).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Merged {
    /// The contact that gave way, as it stood.
    pub contact: Contact,
    /// Its open cycles, as they stood.
    pub conversations: Vec<Conversation>,
    /// What it had promised and not begun to send, as it stood.
    pub tasks: Vec<Task>,
}

/// Something already sent, being sent, or perhaps sent: what caps and gaps count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SendMark {
    /// When the start was committed.
    pub at: Timestamp,
    /// The class of the message.
    pub class: MessageClass,
    /// What is known of it at the provider, as far as it gave the message an id.
    pub receipt: Option<receipt::Status>,
}

/// A payment fact of an order, whichever contact holds it. Recorded in the intake transaction, never taken back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PaymentFact {
    /// Which order.
    pub order: OrderRef,
    /// What was said of it.
    pub kind: EventKind,
    /// When it happened.
    pub occurred_at: Timestamp,
}

/// Everything that `decide` and the check before sending may look at for one contact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ContactView {
    /// The row.
    pub contact: Contact,
    /// Identities, addresses to write to among them.
    pub identities: Vec<Identity>,
    /// Its conversations that are not closed, oldest first.
    pub conversations: Vec<Conversation>,
    /// Its tasks that are not final, and the final touches of running cadences.
    pub tasks: Vec<Task>,
    /// Automatic messages started in the last seven days, oldest first.
    pub sends: Vec<SendMark>,
    /// Events committed but not decided yet, in commit order.
    pub undecided: Vec<Event>,
    /// Payment facts of the orders that its conversations and tasks name, and of the undecided events.
    pub facts: Vec<PaymentFact>,
    /// Provider ids of undecided messages from our own number that a task is known to have sent (FC-10).
    #[serde(default)]
    pub echoes: Vec<String>,
}

impl ContactView {
    /// The conversation of that id.
    pub fn conversation(&self, id: ConversationId) -> Option<&Conversation> {
        self.conversations.iter().find(|conversation| conversation.id == id)
    }

    /// The highest-ranking fact known of an order.
    pub fn fact_of(&self, order: &OrderRef) -> Option<&PaymentFact> {
        self.facts.iter().filter(|fact| fact.order == *order).max_by_key(|fact| fact.kind.payment_rank())
    }
}
