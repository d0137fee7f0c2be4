//! Events: the one vocabulary that every source is translated into (A8), and what an event carries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{BucketNo, ChannelName, ContactId, ConversationId, EventId, FlowName, SourceName, Tenant};
use crate::state::Merged;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The canonical type of an event.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum EventKind {
            $($(#[$doc])* $variant,)*
        }

        impl EventKind {
            /// Every type, in the order of REQUIREMENTS A8.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$variant,)*];

            /// The canonical word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(EventKind::$variant => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// A person's own message in a one-to-one chat.
    MessageReceived = "message.received",
    /// A receipt for a message of ours.
    MessageStatus = "message.status",
    /// A message from our own number that none of our tasks explains: somebody answered by hand.
    MessageHuman = "message.human",
    /// Paid.
    PaymentApproved = "payment.approved",
    /// The card was refused.
    PaymentRefused = "payment.refused",
    /// Money given back in full.
    PaymentRefunded = "payment.refunded",
    /// Money given back in part; still a customer.
    PaymentPartiallyRefunded = "payment.partially_refunded",
    /// The buyer asked for the money back.
    PaymentRefundRequested = "payment.refund_requested",
    /// The bank took the money back.
    PaymentChargeback = "payment.chargeback",
    /// A charge is late.
    PaymentOverdue = "payment.overdue",
    /// An unpaid charge ran out.
    PaymentExpired = "payment.expired",
    /// A charge was cancelled.
    PaymentCancelled = "payment.cancelled",
    /// The guarantee is over; not a new payment.
    OrderCompleted = "order.completed",
    /// A PIX code was made.
    PixCreated = "pix.created",
    /// A PIX code ran out.
    PixExpired = "pix.expired",
    /// A boleto was printed.
    BoletoCreated = "boleto.created",
    /// A checkout was opened.
    CheckoutCreated = "checkout.created",
    /// A checkout was left.
    CheckoutAbandoned = "checkout.abandoned",
    /// A later charge of a subscription was paid.
    SubscriptionRenewed = "subscription.renewed",
    /// A later charge of a subscription is late.
    SubscriptionLate = "subscription.late",
    /// A subscription ended.
    SubscriptionCancelled = "subscription.cancelled",
    /// A channel came up.
    ChannelConnected = "channel.connected",
    /// A channel went down.
    ChannelDisconnected = "channel.disconnected",
    /// An operator pauses automatic messages of a contact until a time.
    OperatorPause = "operator.pause",
    /// An operator ends a pause.
    OperatorResume = "operator.resume",
    /// An operator moves a conversation to a state.
    OperatorMove = "operator.move",
    /// An operator records an opt-out.
    OperatorOptOut = "operator.optout",
    /// An operator says that this contact is another one.
    OperatorLink = "operator.link",
    /// An operator has a person forgotten.
    OperatorErase = "operator.erase",
    /// Another contact turned out to be this one; brings what it was and had promised.
    ContactMerged = "contact.merged",
    /// A tool of the seller's renewed values that had perished (D10).
    ValuesRenewed = "values.renewed",
    /// The clock: a conversation's deadline passed.
    ClockTimeout = "clock.timeout",
    /// Understood as a whole, but of no type we know.
    Unknown = "unknown",
}

impl EventKind {
    /// The rank from which an order counts as paid, whatever came of the money later.
    pub const PAID_RANK: u8 = 30;

    /// The rank of a payment fact of one transaction (reference/payment-webhooks.md, 12): a fact is late, and moves
    /// nothing, when a higher one is known. `None` for types that say nothing about a payment.
    pub fn payment_rank(self) -> Option<u8> {
        Some(match self {
            EventKind::CheckoutAbandoned | EventKind::CheckoutCreated => 0,
            EventKind::PixCreated | EventKind::BoletoCreated => 10,
            EventKind::PaymentRefused
            | EventKind::PaymentExpired
            | EventKind::PaymentCancelled
            | EventKind::PaymentOverdue
            | EventKind::PixExpired => 20,
            EventKind::PaymentApproved | EventKind::SubscriptionRenewed => 30,
            EventKind::OrderCompleted => 35,
            EventKind::PaymentRefundRequested => 40,
            EventKind::PaymentRefunded | EventKind::PaymentPartiallyRefunded => 50,
            EventKind::PaymentChargeback => 60,
            _ => return None,
        })
    }

    /// Whether it ends one charge and says nothing about the sale: a PIX that ran out tells nothing of the one that replaced
    /// it.
    pub fn ends_one_charge(self) -> bool {
        matches!(
            self,
            EventKind::PaymentCancelled | EventKind::PaymentExpired | EventKind::PixExpired | EventKind::PaymentOverdue
        )
    }

    /// Whether a person of the seller's ordered it.
    pub fn is_command(self) -> bool {
        matches!(
            self,
            EventKind::OperatorPause
                | EventKind::OperatorResume
                | EventKind::OperatorMove
                | EventKind::OperatorOptOut
                | EventKind::OperatorLink
                | EventKind::OperatorErase
        )
    }

    /// Whether only we ourselves may say it: no source, however it is mapped.
    pub fn is_internal(self) -> bool {
        self.is_command()
            || matches!(self, EventKind::ContactMerged | EventKind::ValuesRenewed | EventKind::ClockTimeout)
    }

    /// Whether the event is decided at once, without waiting for a burst to end (C7).
    pub fn bypasses_debounce(self) -> bool {
        self != EventKind::MessageReceived
    }
}

/// A word that is no canonical type.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown event type {0:?}")]
pub struct UnknownKind(pub String);

impl FromStr for EventKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One order of one seller on one platform. The scope of payment facts and of task ids.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OrderRef {
    /// The provider's name (`hotmart`).
    pub platform: String,
    /// The seller's account there; the source's name where nothing better is configured.
    pub account: String,
    /// The transaction as the platform writes it, never re-parsed as a number.
    pub transaction: String,
}

impl OrderRef {
    /// Within what the transaction is unique: the platform; for orders of a seller's own making, whose numbers start at one in
    /// every shop, the account too. Leads the ids of tasks (D1).
    pub fn scope(&self) -> Cow<'_, str> {
        match self.platform.as_str() {
            "generic" => Cow::Owned(format!("generic.{}", self.account)),
            platform => Cow::Borrowed(platform),
        }
    }
}

/// What an operator asked for, with who asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Operator {
    /// Name of the key or user.
    pub actor: String,
    /// End of a pause (`operator.pause`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The conversation to move (`operator.move`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The state to move to (`operator.move`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The contact that this one is (`operator.link`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<ContactId>,
    /// Why, in the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which deadline a `clock.timeout` stands for. An event whose deadline is no longer the conversation's is stale.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deadline {
    /// Whose deadline.
    pub conversation: ConversationId,
    /// The instant that passed.
    pub at: Timestamp,
}

/// Values that were renewed (`values.renewed`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Renewed {
    /// In which cycle.
    pub conversation: ConversationId,
    /// The new ones, by name: `pix.code`, `pix.expires_at`.
    pub values: BTreeMap<String, String>,
}

/// What a source told us beyond identity and type. Stored as JSON beside the event; the raw bytes are kept apart.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventData {
    /// A message's text, with captions and button labels read as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The provider's id of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The order a platform event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderRef>,
    /// What is being sold; the key of a sale cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// Values for templates, by dotted name: `contact.first_name`, `offer.name`, `order.total`, `pix.code`,
    /// `pix.expires_at` (RFC 3339), `checkout.url`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// The flow of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowName>,
    /// The channel that answers go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelName>,
    /// An operator's command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// The clock's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What was renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Renewed>,
    /// What another contact hands over (`contact.merged`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Box<Merged>>,
    /// Of a payment that reaches several contacts (C11): what was paid is delivered to another one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delivered_elsewhere: bool,
    /// The type as the source wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// Anything odd that was noticed while reading (`occurred_at_missing`, `phone_invalid`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// The flag of a message that came again from the history of a reconnected phone: said long ago (FC-24).
pub const HISTORY: &str = "history";

impl Event {
    /// Whether it is a message of long ago, which nobody answers any more.
    pub fn is_history(&self) -> bool {
        self.data.flags.iter().any(|flag| flag == HISTORY)
    }
}

/// A recognised, durable happening, as the owner of its bucket sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Whose it is.
    pub tenant: Tenant,
    /// The bucket of its subject.
    pub bucket: BucketNo,
    /// The door it came through.
    pub source: SourceName,
    /// Canonical type.
    pub kind: EventKind,
    /// The person, where one is known.
    pub contact: Option<ContactId>,
    /// When it happened, by the origin's clock; the receive time where the origin gave none.
    pub occurred_at: Timestamp,
    /// When we received it, by our clock.
    pub received_at: Timestamp,
    /// Decided without waiting for a burst; its presence stops every start of its contact.
    pub urgent: bool,
    /// What it carries.
    pub data: EventData,
}
