//! Scenarios: given these events at these times, expect these states and messages (C15).
//!
//! The form only: scenarios are read from a flow file's `tests`, or from a file of their own, and played by
//! `retoma test`. Nothing here decides or sends.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::EventKind;
use crate::send_check::Reason;

mod parse;

pub(crate) use parse::{minute_of_day, read_all, unknown_names};
pub use parse::{parse, parse_story};

/// A scenario of a flow file's `tests`, or of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it shows, in the author's words.
    pub name: String,
    /// Its line in the file.
    pub line: u32,
    /// The instant that steps count from.
    pub start: Timestamp,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
    /// What must have come of it.
    pub expect: Expect,
}

/// One event of a scenario, all of one invented contact.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its line in the file.
    pub line: u32,
    /// When it arrives, counted from the start.
    pub at: Duration,
    /// When it happened, counted from the start; `at` where the file says nothing.
    pub occurred_at: Duration,
    /// Its canonical type.
    pub event: EventKind,
    /// A message's text.
    pub text: Option<String>,
    /// The transaction it is about.
    pub order: Option<String>,
    /// The offer it is about.
    pub offer: Option<String>,
    /// Template values by dotted name.
    pub vars: BTreeMap<String, String>,
    /// `operator.pause`: the end of the pause, counted from the start.
    pub until: Option<Duration>,
    /// `operator.move`: the state to move to.
    pub to: Option<String>,
}

/// What a scenario expects; what the file does not name is not looked at.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expect {
    /// The state of the latest conversation at the end.
    pub state: Option<String>,
    /// All messages sent, in order.
    pub sent: Option<Vec<String>>,
    /// How many messages were sent.
    pub sent_count: Option<u32>,
    /// When a message was sent, to the second.
    pub sent_at: BTreeMap<String, Timestamp>,
    /// Between which local times of day a message was sent: minutes of the day, `[from, to]`.
    pub sent_between: BTreeMap<String, (u16, u16)>,
    /// What was avoided or cancelled, and why: a touch (`t4h`, or `pix_pendente.t4h` where two cadences share an id), or
    /// a message that no touch sends.
    pub avoided: BTreeMap<String, Reason>,
}

/// A file of scenarios.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioFile {
    /// The flow they are for, by path or name; `None` leaves it to the caller.
    pub flow: Option<String>,
    /// The scenarios, in file order.
    pub scenarios: Vec<Scenario>,
}
