//! The check before sending (D4).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::task::words;

words!(
    /// Why a task was closed, put off or held. In the order of the check.
    Reason {
        /// The contact asked for silence.
        OptedOut = "opted_out",
        /// The cycle ended.
        CycleClosed = "cycle_closed",
        /// Paid.
        Paid = "paid",
        /// Money given back.
        Refunded = "refunded",
        /// Cancelled by the platform, a person or the API.
        Cancelled = "cancelled",
        /// Another cadence, or another state, took over.
        Superseded = "superseded",
        /// A person is in the chat.
        HumanActive = "human_active",
        /// Past its maximum lateness.
        TooLate = "too_late",
        /// The HTTP guard says paid.
        GuardPaid = "guard_paid",
        /// The HTTP guard cannot tell.
        GuardUnknown = "guard_unknown",
        /// Nobody is written to at this hour.
        QuietHours = "quiet_hours",
        /// The contact just wrote.
        JustWrote = "just_wrote",
        /// Too close to the message before.
        MinGap = "min_gap",
        /// A later touch of the same cadence stands for it.
        PiledUp = "piled_up",
        /// Too many reminders in a day or a week.
        FrequencyCap = "frequency_cap",
        /// Too many automatic messages without an answer.
        UnansweredLimit = "unanswered_limit",
        /// The message needs a value that nobody gave.
        MissingVariable = "missing_variable",
        /// The message would carry a value past its life.
        Perished = "perished",
        /// The 24 h window is closed and the message has no template.
        WindowClosed = "window_closed",
        /// The channel is stopped.
        ChannelStopped = "channel_stopped",
    }
);

/// What the check says about one task at one instant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Send it now.
    Send,
    /// Close it: `cancelled`, `avoided = true`.
    Avoid(Reason),
    /// Look again at that time; it stays `scheduled`.
    Defer(Reason, Timestamp),
    /// A person decides. The text says what is missing.
    Hold(Reason, String),
}
