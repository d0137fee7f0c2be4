//! What parses but cannot be meant: names that lead nowhere, states without a way in or out, clocks that contradict each
//! other, silence that cannot be asked for.
//!
//! Run by [`load`](super::load) on every flow file, before anything uses it. One function for each rule; the codes are
//! those of [`CODES`], and each finding carries the line and what to write instead.

use super::parse::{Lines, RowLines};
use super::{Action, BUILT_IN_WORDS, Flow, Row};
use crate::finding::{Finding, suggest};
use crate::scenario;
use crate::yaml::Reader;

mod clocks;
mod graph;
mod messages;
mod words;

/// Every code that reading and checking a flow may give, and what it means.
pub const CODES: &[(&str, &str)] = &[
    ("C1", "a cadence must be cancelled by payment.approved"),
    ("C2", "there must be one way to ask for silence, in every state, and a single word must be the whole message"),
    ("C3", "a pattern of a rule does not compile, or can never match"),
    ("C4", "two rules of equal priority hit the same everyday sentence"),
    ("C5", "text may not stand for what only the platform knows"),
    ("C6", "a row arms a cadence that does not run in the state it leads to"),
    ("C7", "cadences or touches whose task ids would be the same"),
    ("L1", "a circle that sends messages for ever, by the clock alone"),
    ("N1", "an unknown key or name"),
    ("N2", "something that other YAML tools read differently"),
    ("Q1", "no hour of the week is open"),
    ("S1", "a state that nothing leads to"),
    ("S2", "a state without a way out that is not final"),
    ("S3", "not exactly one initial state, or a final state with a clock"),
    ("S4", "a row that an earlier row covers"),
    ("S5", "something declared that nothing uses"),
    ("T1", "a state's own deadline ends before a cadence that runs there"),
    ("T2", "jitter that is larger than half its delay, or that swaps touches"),
    ("T3", "a touch may be so late that the next one overtakes it"),
    ("V1", "a message asks for a value that no source knows"),
    ("V4", "a message that nothing sends"),
    ("V5", "a message's text is no template"),
    ("Y1", "the file is not readable YAML"),
    ("Y2", "a missing key, or a value of the wrong kind"),
    ("Y3", "something that is understood and has no effect"),
];

/// A flow with its lines, and the findings so far.
struct Checker<'a> {
    flow: &'a Flow,
    lines: &'a Lines,
    reader: Reader<'a>,
    /// Whether everything was read and every name resolves. Otherwise nothing is said of what leads where and of what is
    /// unused: a slip of the pen would give findings all over the file.
    is_whole: bool,
}

/// Checks a flow that was read, without errors if `is_whole`.
pub(super) fn check(flow: &Flow, lines: &Lines, file: &str, is_whole: bool) -> Vec<Finding> {
    let mut checker = Checker { flow, lines, reader: Reader::new(file), is_whole };
    checker.names();
    checker.is_whole = is_whole && checker.reader.findings.is_empty();
    words::check(&mut checker);
    clocks::check(&mut checker);
    messages::check(&mut checker);
    if checker.is_whole {
        graph::check(&mut checker);
    }
    checker.reader.findings.extend(scenario::unknown_names(&flow.tests, flow, file));
    checker.reader.findings
}

impl<'a> Checker<'a> {
    /// All rows with their lines, in the order in which they are tried.
    fn rows(&self) -> impl Iterator<Item = (&'a Row, &'a RowLines)> + use<'a> {
        let globals = self.flow.globals.iter().zip(&self.lines.globals);
        globals.chain(self.flow.transitions.iter().zip(&self.lines.transitions))
    }

    /// Whether a row may use the word as its event.
    fn is_event(&self, word: &str) -> bool {
        self.lines.words.contains_key(word)
            || BUILT_IN_WORDS.contains(&word)
            // Without a rule it is C2's to report.
            || self.flow.opt_out_word.as_deref() == Some(word)
            || self.lines.rules.iter().any(|(_, entry)| entry.rule.emit == word)
    }

    fn event_words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let emitted = self.lines.rules.iter().map(|(_, entry)| entry.rule.emit.as_str());
        let mut words: Vec<&str> =
            self.lines.words.keys().map(String::as_str).chain(emitted).chain(BUILT_IN_WORDS).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter()
    }

    /// N1: names of states, words, messages and cadences.
    fn names(&mut self) {
        for (row, lines) in self.rows() {
            for state in row.from.iter().chain(&row.except).chain(&row.to) {
                self.state(state, lines.row);
            }
            if !self.is_event(&row.event) {
                let fix = match row.event.parse::<crate::event::EventKind>() {
                    Ok(kind) => {
                        format!("give it a word under `events`, such as `{}: {kind}`", row.event.replace('.', "_"))
                    }
                    Err(_) => suggest(&row.event, self.event_words()),
                };
                self.reader.error("N1", lines.row, format!("unknown event `{}`", row.event), fix);
            }
            for (action, line) in row.actions.iter().zip(&lines.actions) {
                match action {
                    Action::Send(message) => self.message(message, *line),
                    Action::StartCadence(cadence) | Action::CancelCadence(cadence) => self.cadence(cadence, *line),
                    // Channels are the configuration's to know.
                    Action::Call(_) | Action::Notify(_) => {}
                }
            }
        }
        for (name, cadence) in &self.flow.cadences {
            let lines = &self.lines.cadences[name];
            for state in &cadence.runs_in {
                self.state(state, lines.cadence);
            }
            for (touch, line) in cadence.touches.iter().zip(&lines.touches) {
                self.message(&touch.send, *line);
            }
        }
    }

    fn state(&mut self, name: &str, line: u32) {
        let states = &self.flow.states;
        if !states.contains_key(name) {
            let fix = suggest(name, states.keys().map(String::as_str));
            self.reader.error("N1", line, format!("unknown state `{name}`"), fix);
        }
    }

    fn message(&mut self, name: &str, line: u32) {
        let messages = &self.flow.messages;
        if !messages.contains_key(name) {
            let fix = suggest(name, messages.keys().map(String::as_str));
            self.reader.error("N1", line, format!("the message `{name}` is missing"), fix);
        }
    }

    fn cadence(&mut self, name: &str, line: u32) {
        let cadences = &self.flow.cadences;
        if !cadences.contains_key(name) {
            let fix = suggest(name, cadences.keys().map(String::as_str));
            self.reader.error("N1", line, format!("unknown cadence `{name}`"), fix);
        }
    }
}

#[cfg(test)]
mod tests;
