//! What a flow says of the people and robots in a chat: how long a takeover lasts (C8), and when an exchange looks like two
//! robots that answer each other (C10, FC-12).

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Action, Flow, Frequency};

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

impl Flow {
    /// The channels of the seller's own tools and people that the flow names: `call`, `notify`, the guard of a cadence, who
    /// renews a value, and who is told of takeovers and loops. None of them ever writes to a contact.
    pub fn tools(&self) -> BTreeSet<&str> {
        let rows = self.globals.iter().chain(&self.transitions).flat_map(|row| &row.actions);
        let of_rows = rows.filter_map(|action| match action {
            Action::Call(name) | Action::Notify(name) => Some(name.as_str()),
            Action::Send(_) | Action::StartCadence(_) | Action::CancelCadence(_) => None,
        });
        let guards = self.cadences.values().filter_map(|cadence| Some(cadence.revalidate.as_ref()?.ask.as_str()));
        let told = [self.takeover.notify.as_deref(), self.loop_guard.notify.as_deref()].into_iter().flatten();
        let renewing = self.vars.values().filter_map(|variable| variable.refresh.as_deref());
        of_rows.chain(guards).chain(renewing).chain(told).collect()
    }
}
