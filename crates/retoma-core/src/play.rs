//! The scenario player (C15): a flow, some events at some times, and what would come of it.
//!
//! Run by `retoma test` and `retoma simulate`, and by the tests of the shipped flow. It does what the engine does, with the
//! very same functions (intake's urgency, bursts, [`decide`](crate::decide::decide), the check before sending, composing,
//! the rule after an attempt), but in memory, on a clock that jumps, and with a provider that accepts every message at
//! once. It never waits and never sends.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use serde::Serialize;

use crate::decision::Transition;
use crate::flow::Flow;
use crate::ids::TaskId;
use crate::scenario::Scenario;
use crate::send_check::Reason;
use crate::state::Conversation;
use crate::task::Task;

mod world;

use world::World;

/// How long the world is watched after the last step: longer than any cadence and its grace.
const WATCHED_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// What came of a scenario.
#[derive(Clone, Debug)]
pub struct Played {
    /// Messages that went out, in order.
    pub sent: Vec<SentMessage>,
    /// Tasks that ended unsent, or are held, in order.
    pub closed: Vec<Closed>,
    /// Every cycle ever opened, oldest first, as it stands at the end.
    pub conversations: Vec<Conversation>,
    /// The transition log.
    pub transitions: Vec<Transition>,
    /// Every task ever promised, as it stands at the end.
    pub tasks: Vec<Task>,
    /// The whole story, a line each, in local time.
    pub log: Vec<String>,
}

/// A message that went out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SentMessage {
    /// When.
    pub at: Timestamp,
    /// When, on the contact's own clock.
    pub local: DateTime,
    /// The message's name in the flow.
    pub message: String,
    /// Its task.
    pub task: TaskId,
    /// What it said.
    pub text: String,
}

/// A task that ended unsent, or that a person must decide.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Closed {
    /// When.
    pub at: Timestamp,
    /// Which task.
    pub task: TaskId,
    /// The cadence of a touch.
    pub cadence: Option<String>,
    /// The touch.
    pub touch: Option<String>,
    /// The message it would have been.
    pub message: String,
    /// Why.
    pub reason: Reason,
}

impl Closed {
    /// Whether a scenario means this task by that name: `t4h`, `pix_pendente.t4h`, or the message where no touch is meant.
    fn goes_by(&self, name: &str) -> bool {
        match (&self.cadence, &self.touch) {
            (Some(cadence), Some(touch)) => touch == name || format!("{cadence}.{touch}") == name,
            _ => self.message == name,
        }
    }
}

/// An expectation that did not come true.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    /// Which scenario.
    pub scenario: String,
    /// Its line in the file.
    pub line: u32,
    /// What was expected, and what came.
    pub what: String,
}

/// Plays a scenario to its end.
pub fn play(flow: &Flow, scenario: &Scenario) -> Played {
    let mut world = World::new(flow, scenario.start);
    let mut last = scenario.start;
    for step in &scenario.steps {
        let at = scenario.start + step.at;
        world.run_until(at);
        world.receive(step, scenario.start);
        last = last.max(at);
    }
    world.run_until(last + WATCHED_FOR);
    world.end()
}

/// Plays a scenario and holds what came of it against what it expects.
pub fn judge(flow: &Flow, scenario: &Scenario) -> Vec<Failure> {
    failures(scenario, &play(flow, scenario))
}

/// What a scenario expected of the given play and did not get.
pub fn failures(scenario: &Scenario, played: &Played) -> Vec<Failure> {
    let expect = &scenario.expect;
    let mut wrong = Vec::new();
    if let Some(state) = &expect.state {
        let latest = played.conversations.last().map_or("no conversation", |cycle| cycle.state.as_str());
        if latest != state {
            wrong.push(format!("state: expected {state}, got {latest}"));
        }
    }
    let sent: Vec<&str> = played.sent.iter().map(|sent| sent.message.as_str()).collect();
    if let Some(expected) = expect.sent.as_ref().filter(|expected| **expected != sent) {
        wrong.push(format!("sent: expected [{}], got [{}]", expected.join(", "), sent.join(", ")));
    }
    if let Some(expected) = expect.sent_count.filter(|count| *count as usize != sent.len()) {
        wrong.push(format!("sent_count: expected {expected}, got {}: [{}]", sent.len(), sent.join(", ")));
    }
    for (message, at) in &expect.sent_at {
        let is_right = |sent: &SentMessage| sent.at.as_second() == at.as_second();
        wrong.extend(never(played, message, is_right).map(|got| format!("sent_at: {message} expected at {at}, {got}")));
    }
    for (message, (from, to)) in &expect.sent_between {
        let is_right = |sent: &SentMessage| is_between(sent.local.time(), *from, *to);
        let hours = format!("{} and {}", hour(*from), hour(*to));
        let describe = |got| format!("sent_between: {message} expected between {hours}, {got}");
        wrong.extend(never(played, message, is_right).map(describe));
    }
    for (name, reason) in &expect.avoided {
        wrong.extend(not_avoided(played, name, *reason).map(|got| format!("avoided: {name} expected {reason}, {got}")));
    }
    let (name, line) = (&scenario.name, scenario.line);
    wrong.into_iter().map(|what| Failure { scenario: name.clone(), line, what }).collect()
}

/// What is to be said where no sending of the message was right; a cadence may send one message several times.
fn never(played: &Played, message: &str, is_right: impl Fn(&SentMessage) -> bool) -> Option<String> {
    let sends: Vec<&SentMessage> = played.sent.iter().filter(|sent| sent.message == message).collect();
    if sends.iter().any(|sent| is_right(sent)) {
        return None;
    }
    let when: Vec<String> = sends.iter().map(|sent| format!("{} ({} local)", sent.at, sent.local.time())).collect();
    Some(if when.is_empty() { "it was not sent".to_owned() } else { format!("sent at {}", when.join(", ")) })
}

fn not_avoided(played: &Played, name: &str, reason: Reason) -> Option<String> {
    let of_name: Vec<&Closed> = played.closed.iter().filter(|closed| closed.goes_by(name)).collect();
    if of_name.iter().any(|closed| closed.reason == reason) {
        return None;
    }
    let reasons: Vec<&str> = of_name.iter().map(|closed| closed.reason.as_str()).collect();
    Some(if reasons.is_empty() {
        "no task of that name was stopped".to_owned()
    } else {
        format!("stopped for {}", reasons.join(", "))
    })
}

/// Whether a time of day lies within two minutes of the day, both included; `from` after `to` spans midnight.
fn is_between(time: Time, from: u16, to: u16) -> bool {
    let minute = u16::from(time.hour().unsigned_abs()) * 60 + u16::from(time.minute().unsigned_abs());
    if from <= to { (from..=to).contains(&minute) } else { minute >= from || minute <= to }
}

fn hour(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests;
