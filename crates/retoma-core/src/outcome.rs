//! Outcomes of an attempt, and what each one leads to (E2-E4). Types first; `after_attempt` is the whole rule.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::send_check::Reason;
use crate::task::words;

words!(
    /// The class of an attempt's end (reference/whatsapp-providers.md, 5).
    Outcome {
        /// The provider took it.
        Accepted = "accepted",
        /// Surely not sent; try again.
        Transient = "transient",
        /// Too many messages to this recipient.
        RatePair = "rate_pair",
        /// Too many messages from this number.
        RateNumber = "rate_number",
        /// Too many messages from this account.
        RateAccount = "rate_account",
        /// Nobody knows whether it was sent.
        Ambiguous = "ambiguous",
        /// This address cannot be written to.
        Recipient = "recipient",
        /// This content cannot be sent.
        Content = "content",
        /// This template cannot be sent.
        Template = "template",
        /// The 24 h window is closed.
        Window = "window",
        /// The recipient takes no marketing now.
        Marketing = "marketing",
        /// Our credentials are wrong: the channel stops.
        Credentials = "credentials",
        /// The account is blocked or unpaid: the channel stops.
        Account = "account",
        /// Closed before a byte left, because the reason was gone.
        NotSent = "not_sent",
    }
);

/// What an attempt ended with, as a provider's table reads it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// Its class.
    pub outcome: Outcome,
    /// The status of the answer, where there was one.
    pub http_status: Option<u16>,
    /// A sentence for people, without phone, text or secret.
    pub error: Option<String>,
    /// The answer's body: masked, at most 2 KiB.
    pub response: Option<String>,
    /// The provider's id of the message.
    pub provider_message_id: Option<String>,
    /// How long the provider asked us to wait.
    pub retry_after: Option<Duration>,
}

/// Where the task goes after an attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum NextStep {
    /// `sent`.
    Sent,
    /// `failed`; tried again at that time. `counts` is false where the attempt does not count against the policy.
    Retry {
        /// When.
        at: Timestamp,
        /// Whether the attempt counts.
        counts: bool,
    },
    /// `dead`.
    Dead,
    /// `unsure` until then.
    Unsure {
        /// When the policy decides.
        until: Timestamp,
    },
    /// `held`.
    Held(Reason),
    /// `cancelled`.
    Cancelled(Reason),
}
