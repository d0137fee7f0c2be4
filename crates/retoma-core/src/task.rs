//! Tasks: effects promised for a time (D1).

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{EventKind, OrderRef};
use crate::ids::{BucketNo, ChannelName, ContactId, ConversationId, FlowName, TaskId, Tenant};
use crate::send_check::Reason;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word used in SQL, API and files.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The value of a word.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words!(
    /// Where a task stands. Moves only by compare-and-set.
    TaskStatus {
        /// Waits for its time.
        Scheduled = "scheduled",
        /// Its start row is committed; a request may be on its way.
        Sending = "sending",
        /// The provider accepted it.
        Sent = "sent",
        /// Surely not sent; will be tried again.
        Failed = "failed",
        /// Closed before it was sent, with a reason.
        Cancelled = "cancelled",
        /// Given up, with its evidence.
        Dead = "dead",
        /// A person must decide.
        Held = "held",
        /// Nobody knows yet whether it was sent; being reconciled (E4).
        Unsure = "unsure",
    }
);

impl TaskStatus {
    /// Whether the task has come to its end.
    pub fn is_final(self) -> bool {
        matches!(self, TaskStatus::Sent | TaskStatus::Cancelled | TaskStatus::Dead)
    }

    /// Whether a cancel may close the task at once. `sending` and `unsure` are marked instead: only an accepted end
    /// survives the mark.
    pub fn is_waiting(self) -> bool {
        matches!(self, TaskStatus::Scheduled | TaskStatus::Failed | TaskStatus::Held)
    }
}

words!(
    /// What a message is for; says which steps of the check before sending apply (D4).
    MessageClass {
        /// An automatic nudge: every step applies.
        Reminder = "reminder",
        /// An answer to the contact.
        Reply = "reply",
        /// Delivery of what was paid.
        Receipt = "receipt",
        /// The one confirmation after an opt-out.
        OptOutAck = "optout_ack",
        /// To the seller's own tools and people (`call`, `notify`), never to the contact.
        Internal = "internal",
    }
);

impl MessageClass {
    /// The classes that a message to a contact may have.
    pub const OF_MESSAGES: &'static [MessageClass] =
        &[MessageClass::Reminder, MessageClass::Reply, MessageClass::Receipt, MessageClass::OptOutAck];

    /// Whether it goes on after the cycle was paid or the contact opted out: what was paid is delivered, an opt-out is
    /// confirmed, and the seller's own people are told whatever happens.
    pub fn outlives_the_sale(self) -> bool {
        !matches!(self, MessageClass::Reminder | MessageClass::Reply)
    }
}

words!(
    /// What happens to a send whose outcome nobody can learn (E4).
    OnAmbiguous {
        /// A person decides.
        Hold = "hold",
        /// Taken as sent.
        AssumeSent = "assume_sent",
        /// Sent once more, on record.
        ResendOnce = "resend_once",
    }
);

words!(
    /// Where a task comes from.
    TaskKind {
        /// The action of a transition.
        Message = "message",
        /// A touch of a cadence.
        Touch = "touch",
        /// Asked for through the API.
        Scheduled = "scheduled",
        /// A signed request to an HTTP channel, with the conversation (C13).
        Call = "call",
        /// A word to a person of the seller's (C13).
        Notify = "notify",
    }
);

/// What the task is about, as the seller knows it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// The order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderRef>,
    /// Its amount, as the platform wrote it, with the currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The link the message carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A promised effect.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Derived, claimed once for ever.
    pub id: TaskId,
    /// Whose it is.
    pub tenant: Tenant,
    /// The bucket of its contact.
    pub bucket: BucketNo,
    /// For whom.
    pub contact: ContactId,
    /// In which sale cycle, where it belongs to one.
    pub conversation: Option<ConversationId>,
    /// The flow whose messages it uses.
    pub flow: FlowName,
    /// Where it comes from.
    pub kind: TaskKind,
    /// The cadence of a touch.
    pub cadence: Option<String>,
    /// The touch's id in the flow file (`t15`).
    pub touch: Option<String>,
    /// The touch's position in its cadence, from 1.
    pub touch_no: Option<u32>,
    /// The message's name in the flow file.
    pub message: String,
    /// A text given by the API instead of a message of the flow.
    pub text: Option<String>,
    /// Class of the message.
    pub class: MessageClass,
    /// Where it is delivered to.
    pub channel: ChannelName,
    /// What it is about.
    pub reference: Reference,
    /// Commercial time: when it was promised for. Never changed by a failure.
    pub scheduled_for: Timestamp,
    /// The local time that it was promised for, where it was promised for one (FC-55): `2027-12-15T10:00:00[America/Sao_Paulo]`.
    #[serde(default)]
    pub local_time: Option<String>,
    /// Technical time: the next try or look.
    pub next_attempt_at: Timestamp,
    /// Whether the deliverer may take it at `next_attempt_at`. A touch of a cadence waits for the `timeout` that hands it
    /// over (C1, "one clock").
    pub handed: bool,
    /// How late it may leave, counted from `scheduled_for`.
    pub max_late: Option<Duration>,
    /// What to do if its outcome stays unknown, where the message says so itself.
    pub on_ambiguous: Option<OnAmbiguous>,
    /// Events of the contact that close it, for tasks asked for through the API.
    pub cancel_on: Vec<EventKind>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Why it stands there.
    pub reason: Option<Reason>,
    /// Whether the check before sending closed it.
    pub avoided: bool,
    /// Starts so far.
    pub attempts: u32,
    /// Set when it was cancelled while `sending` or `unsure`: any end but accepted closes it with this reason.
    pub cancel_reason: Option<Reason>,
    /// When an `unsure` task falls to its policy.
    pub reconcile_until: Option<Timestamp>,
    /// Whether the one resend of `resend_once` was used.
    pub resent: bool,
    /// Whether it goes to the number's other spelling, since the provider knows nobody under the first one (C11).
    #[serde(default)]
    pub respelled: bool,
    /// When it was promised.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
