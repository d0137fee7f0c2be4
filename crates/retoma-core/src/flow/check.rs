//! What parses but cannot be meant: names that lead nowhere, states without a way in or out, clocks that contradict each
//! other, silence that cannot be asked for.
//!
//! Run by [`load`](super::load) on every flow file, before anything uses it. One function for each rule; the codes are
//! those of [`CODES`](super::CODES), and each finding carries the line and what to write instead.

use super::parse::{Lines, RowLines, is_silent};
use super::{Action, BUILT_IN_WORDS, Flow, Row};
use crate::finding::{Finding, suggest};
use crate::scenario;
use crate::yaml::Reader;

mod clocks;
mod graph;
mod limits;
mod messages;
mod values;
mod words;

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
    limits::check(&mut checker);
    messages::check(&mut checker);
    values::check(&mut checker);
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
        let table = self.flow.transitions.iter().zip(&self.lines.transitions);
        globals.chain(table).chain(self.flow.clock_rows.iter().zip(&self.lines.clock_rows))
    }

    /// Whether a row may use the word as its event.
    fn is_event(&self, word: &str) -> bool {
        self.lines.words.contains_key(word)
            || BUILT_IN_WORDS.contains(&word)
            || self.lines.intents.contains_key(word)
            || is_silent(word)
            // Without a rule it is C2's to report.
            || self.flow.opt_out_word.as_deref() == Some(word)
            || self.lines.rules.iter().any(|(_, entry)| entry.rule.emit == word)
    }

    fn event_words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let emitted = self.lines.rules.iter().map(|(_, entry)| entry.rule.emit.as_str());
        let mut words: Vec<&str> =
            self.lines.words.keys().map(String::as_str).chain(emitted).chain(BUILT_IN_WORDS).collect();
        words.extend(self.lines.intents.keys().map(String::as_str));
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
        for (old, new) in &self.flow.migrate {
            let line = self.lines.migrate[old];
            self.state(new, line);
            if self.flow.states.contains_key(old) {
                let message = format!("`migrate` names state {old}, which is still there");
                self.reader.warn("Y3", line, message, "it takes effect where the state is gone; take the line out");
            }
        }
        for (line, state) in &self.lines.reentry {
            self.state(state, *line);
        }
        let emitted = self.lines.rules.iter().map(|(line, entry)| (*line, entry.rule.emit.as_str()));
        let proposed = self.lines.model.iter().map(|(line, word)| (*line, word.as_str()));
        for (line, word) in emitted.chain(proposed).filter(|_| !self.lines.intents.is_empty()) {
            if !self.lines.intents.contains_key(word) && !self.lines.words.contains_key(word) {
                let fix = suggest(word, self.lines.intents.keys().map(String::as_str));
                self.reader.error("N1", line, format!("`{word}` is not among the declared intents"), fix);
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
