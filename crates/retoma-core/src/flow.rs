//! A flow: states, transitions, deadlines, actions and cadences, as data (C1).
//!
//! [`Flow`] is the checked form that [`decide`](crate::decide::decide) runs on: every name in it resolves. It comes from a
//! YAML file through [`load`]: `parse` reads it and `check` finds what parses but cannot be meant, both with line
//! and fix. [`VENDAS`] is the flow that is shipped.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use crate::classify::Classifier;
use crate::event::EventKind;
use crate::finding::Finding;
use crate::ids::FlowName;
use crate::task::{MessageClass, OnAmbiguous};

mod around;
mod check;
pub mod draw;
mod explain;
mod parse;
mod people;
mod schema;
mod versions;

pub use around::{ChannelRules, Template, Variable, Window};
pub use explain::{CODES, explain};
pub(crate) use parse::type_of;
pub use people::{LoopGuard, Takeover};
pub use schema::SCHEMA;
pub use versions::Standing;

/// The shipped flow (C1), as the file that `retoma init` writes.
pub const VENDAS: &str = include_str!("../flows/vendas.yaml");

/// The flow of the template without a bot: cadences alone.
pub const RECUPERACAO: &str = include_str!("../flows/recuperacao.yaml");

/// Events that no file declares: the clock's, and the end of a cadence (D8).
pub const BUILT_IN_WORDS: [&str; 2] = [TIMEOUT, REGUA_ESGOTADA];

/// The word of a deadline that passed.
pub const TIMEOUT: &str = "timeout";

/// The word of a cadence that ended without a reply.
pub const REGUA_ESGOTADA: &str = "regua_esgotada";

/// The word of a touch that fell due, in a state whose `timeout` is its own deadline's.
pub const TOUCH_SENT: &str = "touch.sent";

/// Reads and checks a flow file. The flow is there if no finding is an error.
pub fn load(text: &str, file: &str) -> (Option<Flow>, Vec<Finding>) {
    let (parsed, mut findings) = parse::parse(text, file);
    let Some(parsed) = parsed else { return (None, findings) };
    let is_whole = !findings.iter().any(Finding::is_error);
    findings.extend(check::check(&parsed.flow, &parsed.lines, file, is_whole));
    findings.sort_by_key(|finding| finding.line);
    let is_usable = !findings.iter().any(Finding::is_error);
    (is_usable.then_some(parsed.flow), findings)
}

/// A checked flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: FlowName,
    /// Its version; a conversation records the one it was decided with.
    pub version: u32,
    /// The zone used where a contact has none of its own.
    pub timezone: jiff::tz::TimeZone,
    /// The words of this flow for canonical types: `pix_gerado` is `pix.created`.
    pub words: BTreeMap<String, EventKind>,
    /// The language of its messages (`pt-BR`).
    pub locale: String,
    /// How bursts of messages are joined.
    pub debounce: Debounce,
    /// How a person takes a chat over (C8).
    pub takeover: Takeover,
    /// When an exchange looks like two robots (C10).
    pub loop_guard: LoopGuard,
    /// Rules that turn text into words.
    pub classifier: Classifier,
    /// The word that asks for silence (C12): the one of rules with `opt_out: true`, else the event of the global row that
    /// sends a message of class `optout_ack`.
    pub opt_out_word: Option<String>,
    /// The word that takes an opt-out back: the one of rules with `opt_in: true`, else `voltar` where a rule emits it.
    pub opt_in_word: Option<String>,
    /// The word of rules with `maybe_opt_out: true`: what may ask for silence is answered, and a person is told (FC-58).
    pub maybe_opt_out_word: Option<String>,
    /// When reminders may leave.
    pub calendar: Calendar,
    /// How many may leave.
    pub limits: Limits,
    /// States by word.
    pub states: BTreeMap<String, State>,
    /// The state of a new cycle.
    pub initial: String,
    /// Rows tried before the table, in file order.
    pub globals: Vec<Row>,
    /// The table, in file order; the first row that matches wins.
    pub transitions: Vec<Row>,
    /// What `timeout: {to}` of states says: asked when a state's own deadline passed and the table has no row for it.
    pub clock_rows: Vec<Row>,
    /// The values that messages may use, where the file declares them.
    pub vars: BTreeMap<String, Variable>,
    /// What the file says of channels.
    pub channels: BTreeMap<String, ChannelRules>,
    /// Cadences by name.
    pub cadences: BTreeMap<String, Cadence>,
    /// Messages by name.
    pub messages: BTreeMap<String, Message>,
    /// Where live conversations go whose state this version no longer has.
    pub migrate: BTreeMap<String, String>,
    /// Scenarios written in the file.
    pub tests: Vec<crate::scenario::Scenario>,
}

impl Flow {
    /// Reads a flow file; what is wrong with it otherwise, warnings included.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<Finding>> {
        match load(text, file) {
            (Some(flow), _) => Ok(flow),
            (None, findings) => Err(findings),
        }
    }

    /// The shipped flow.
    pub fn vendas() -> Self {
        // Read once: compiling its rules takes longer than most of what is done with it.
        static READ: LazyLock<Flow> =
            LazyLock::new(|| Flow::parse(VENDAS, "vendas.yaml").expect("the shipped flow has no errors"));
        READ.clone()
    }

    /// Whether conversations move through states. Without a table cadences start by their `starts_with` (C4), and what
    /// holds in every state are the globals.
    pub fn has_table(&self) -> bool {
        !self.transitions.is_empty()
    }

    /// The row that answers a word in a state: globals first, then the table, the first that matches.
    pub fn row(&self, state: &str, word: &str) -> Option<&Row> {
        self.globals.iter().chain(&self.transitions).find(|row| row.applies(state, word))
    }

    /// The row of a state's own deadline. Never that of a touch that fell due.
    pub fn deadline_row(&self, state: &str) -> Option<&Row> {
        self.row(state, TIMEOUT).or_else(|| self.clock_rows.iter().find(|row| row.applies(state, TIMEOUT)))
    }

    /// The row of a touch that fell due.
    pub fn touch_row(&self, state: &str) -> Option<&Row> {
        self.row(state, TIMEOUT).or_else(|| self.row(state, TOUCH_SENT))
    }

    /// This flow's word for a canonical type.
    pub fn word_of(&self, kind: EventKind) -> Option<&str> {
        self.words.iter().find(|(_, named)| **named == kind).map(|(word, _)| word.as_str())
    }
}

impl Row {
    /// Whether it answers the word in the state.
    pub fn applies(&self, state: &str, word: &str) -> bool {
        let is_among = |names: &[String]| names.iter().any(|name| name == state);
        self.event == word && (self.from.is_empty() || is_among(&self.from)) && !is_among(&self.except)
    }

    /// The cadence it arms, if it arms one.
    pub fn arms(&self) -> Option<&str> {
        self.actions.iter().find_map(|action| match action {
            Action::StartCadence(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// How a burst of messages from one contact becomes one decision (C7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debounce {
    /// Silence that ends a burst.
    pub quiet: Duration,
    /// The longest a burst may last.
    pub max_wait: Duration,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct State {
    /// Own deadline: after this long, plus a jitter drawn once, `timeout` is emitted. `None`: the clock of a running
    /// cadence, or no clock at all.
    pub timeout: Option<Timeout>,
    /// A final state needs no way out.
    pub is_final: bool,
}

/// A state's own deadline (C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// How long after the last transition.
    pub after: Duration,
    /// Up to how much is added, drawn once from the conversation and its version.
    pub jitter: Duration,
}

/// A row of the table, or a global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// States it applies in; empty means any (globals).
    pub from: Vec<String>,
    /// States it does not apply in (globals).
    pub except: Vec<String>,
    /// The word it answers.
    pub event: String,
    /// The state after; `None` stays.
    pub to: Option<String>,
    /// What to do, in order.
    pub actions: Vec<Action>,
}

/// An item of `do:` (C13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message. In a row that also starts a cadence it stands for that cadence's first touch; in a `timeout` row
    /// of a state run by a cadence it names the touch that fell due.
    Send(String),
    /// Call an HTTP channel with the conversation.
    Call(String),
    /// Tell a person.
    Notify(String),
    /// Arm a cadence.
    StartCadence(String),
    /// Close the unsent touches of a cadence.
    CancelCadence(String),
}

/// A "régua": touches at fixed times after an anchor (D2).
#[derive(Clone, Debug, PartialEq)]
pub struct Cadence {
    /// What task ids start with (`pix`); the cadence's name where the file gives none.
    pub prefix: String,
    /// For flows without states: the type that arms it.
    pub starts_with: Option<EventKind>,
    /// States it lives in; leaving them closes what is unsent. Empty: every state.
    pub runs_in: Vec<String>,
    /// Types that close it in any state (C4).
    pub cancel_on: Vec<EventKind>,
    /// After the last touch, the silence before `regua_esgotada` (D8).
    pub grace: Duration,
    /// Silence kept after the contact wrote (D5).
    pub wait_after_inbound: Duration,
    /// The least time between two reminders.
    pub min_gap: Duration,
    /// Whom to ask whether it was paid before a touch leaves (D4's optional HTTP guard).
    pub revalidate: Option<Revalidate>,
    /// Touches, in order of time.
    pub touches: Vec<Touch>,
}

/// The HTTP guard of a cadence (D4): a signed question to a channel, answered `{"paid": true}` or `{"paid": false}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revalidate {
    /// The `http` channel that is asked.
    pub ask: String,
    /// How long an answer holds.
    pub max_age: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// When it is asked again after no answer, which never means "send".
    pub retry_in: Duration,
}

/// One touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Its id within the cadence (`t15`).
    pub id: String,
    /// How long after the anchor; how long before it where `before` names one.
    pub at: Duration,
    /// The value that it counts back from (`pix.expires_at`), an instant in RFC 3339 (D10). `None`: it counts from what armed
    /// the cadence.
    pub before: Option<String>,
    /// Up to how much is added, drawn once from the task id.
    pub jitter: Duration,
    /// How late it may leave.
    pub max_late: Duration,
    /// The message it sends.
    pub send: String,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// What it is for.
    pub class: MessageClass,
    /// A minijinja template over `contact.*`, `offer.*`, `order.*`, `pix.*`, `checkout.*`, `previous.*`.
    pub text: String,
    /// The provider's template that stands for it outside the 24 h window.
    pub template: Option<Template>,
    /// Values that are to be renewed before it leaves.
    pub refresh: Vec<String>,
    /// What happens if its outcome stays unknown; `None` asks the channel, then the class.
    pub on_ambiguous: Option<OnAmbiguous>,
}

/// When reminders may leave (D5): quiet hours, and weekdays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Allowed local hours by weekday, Monday first; each a list of `[start, end)` in minutes of the day.
    pub allowed: [Vec<(u16, u16)>; 7],
    /// Deferred sends do not all leave at the first minute.
    pub release_spread: Duration,
}

/// Caps (D5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most `max` reminders in any rolling `per`.
    pub frequency: Vec<Frequency>,
    /// At most this many automatic messages since the contact's last one.
    pub unanswered_automatic: u32,
    /// At most this many messages in a row of which no receipt ever came, where the channel's others have theirs (FC-78);
    /// 0 sets no limit.
    pub without_receipt: u32,
    /// Whether what was paid is still delivered after an opt-out (C12).
    pub receipts_after_opt_out: bool,
}

/// One rolling cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// How many.
    pub max: u32,
    /// In which window.
    pub per: Duration,
}

#[cfg(test)]
mod tests;
