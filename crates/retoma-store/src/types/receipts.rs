//! What a provider later says of a message (E6).

use jiff::Timestamp;
use retoma_core::ids::{ChannelName, Tenant};
use serde::{Deserialize, Serialize};

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

/// A receipt of a message that no task is known to have sent (FC-28): typed on the phone, sent by another program, or ours
/// with an id that we never learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanReceipt {
    /// Through which channel.
    pub channel: ChannelName,
    /// Which message.
    pub provider_message_id: String,
    /// What was said of it.
    pub receipt: ReceiptStatus,
    /// When that was said last.
    pub at: Timestamp,
}

/// When each receipt of a message was first said (E6). An earlier one may be missing: `read` implies `delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptTimes {
    /// The provider took it.
    pub accepted_at: Option<Timestamp>,
    /// The provider sent it.
    pub sent_at: Option<Timestamp>,
    /// It reached the device.
    pub delivered_at: Option<Timestamp>,
    /// It was read.
    pub read_at: Option<Timestamp>,
    /// It was played.
    pub played_at: Option<Timestamp>,
    /// It was said not to arrive.
    pub failed_at: Option<Timestamp>,
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
