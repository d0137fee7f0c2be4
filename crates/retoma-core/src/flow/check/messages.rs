//! Messages: texts that are no templates, values that no source knows, messages that nothing sends (V1, V4, V5).

use std::collections::BTreeSet;

use super::{Action, Checker};
use crate::finding::suggest;
use crate::template::{self, RenderError};

/// Where values come from: the person, the platform's event, the cycle itself.
const PLACES: [&str; 6] = ["contact", "offer", "order", "pix", "checkout", "previous"];

pub(super) fn check(checker: &mut Checker<'_>) {
    if checker.is_whole {
        unsent(checker);
    }
    for (name, message) in &checker.flow.messages {
        let line = checker.lines.messages[name].text;
        match template::compile(&message.text) {
            Err(RenderError::Invalid { line: inner, problem }) => {
                let message = format!("the text of {name} is no template, in its line {inner}: {problem}");
                checker.reader.error("V5", line, message, "close every {{ }} and {% %}");
            }
            Err(error) => {
                checker.reader.error("V5", line, format!("the text of {name}: {error}"), "write a shorter text")
            }
            Ok(()) => unknown_values(checker, name, &message.text, line),
        }
        if message.text.trim().is_empty() {
            checker.reader.error("Y2", line, format!("the text of {name} is empty"), "write a text");
        }
    }
}

/// V4: messages that no row and no touch names.
fn unsent(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let by_rows = checker.rows().flat_map(|(row, _)| &row.actions).filter_map(|action| match action {
        Action::Send(message) => Some(message),
        _ => None,
    });
    let by_touches = flow.cadences.values().flat_map(|cadence| &cadence.touches).map(|touch| &touch.send);
    let sent: BTreeSet<&String> = by_rows.chain(by_touches).collect();
    for name in flow.messages.keys().filter(|name| !sent.contains(name)) {
        let line = checker.lines.messages[name].message;
        checker.reader.warn(
            "V4",
            line,
            format!("nothing sends the message `{name}`"),
            "add a row or a touch, or take it out",
        );
    }
}

/// V1: names outside the places that values come from.
fn unknown_values(checker: &mut Checker<'_>, message: &str, text: &str, line: u32) {
    for name in template::variables(text) {
        let place = name.split('.').next().unwrap_or_default();
        if !PLACES.contains(&place) || !name.contains('.') {
            let fix = suggest(place, PLACES);
            checker.reader.warn("V1", line, format!("no source knows `{name}`, which {message} asks for"), fix);
        }
    }
}
