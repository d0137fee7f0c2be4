//! What a flow says of the people and robots in a chat: how long a takeover lasts (C8), and when an exchange looks like two
//! robots that answer each other (C10, FC-12).

use std::time::Duration;

use super::Frequency;

/// How a person takes over by simply answering from the seller's own phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// How long automatic messages stay away, counted from the last thing the person wrote.
    pub auto_end: Duration,
    /// A channel that is told of it.
    pub notify: Option<String>,
}

impl Default for Takeover {
    fn default() -> Self {
        Self { auto_end: Duration::from_secs(4 * 3600), notify: None }
    }
}

/// The loop guard. Defaults are ours: faster than anybody reads, more often than anybody would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopGuard {
    /// An answer that comes sooner than this after our message was not typed by a person.
    pub reply_under: Duration,
    /// After so many such answers in a row, or so many equal ones at any speed, we fall silent.
    pub times: u32,
    /// At most so many automatic messages in so long a time, whatever is said.
    pub most: Frequency,
    /// A channel that is told of it.
    pub notify: Option<String>,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self {
            reply_under: Duration::from_secs(3),
            times: 5,
            most: Frequency { max: 20, per: Duration::from_secs(600) },
            notify: None,
        }
    }
}
