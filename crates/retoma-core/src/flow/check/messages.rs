//! Messages: texts that are no templates, messages that nothing sends (V4, V5).

use std::collections::BTreeSet;

use super::{Action, Checker};
use crate::template::{self, RenderError};

pub(super) fn check(checker: &mut Checker<'_>) {
    if checker.is_whole {
        unsent(checker);
    }
    for (name, text, line) in texts(checker) {
        match template::compile(text) {
            Err(RenderError::Invalid { line: inner, problem }) => {
                let message = format!("the text of {name} is no template, in its line {inner}: {problem}");
                checker.reader.error("V5", line, message, "close every {{ }} and {% %}");
            }
            Err(error) => {
                checker.reader.error("V5", line, format!("the text of {name}: {error}"), "write a shorter text")
            }
            Ok(()) => {}
        }
        if text.trim().is_empty() {
            checker.reader.error("Y2", line, format!("the text of {name} is empty"), "write a text");
        }
    }
}

/// Every text with its message's name and its line, variants included.
pub(super) fn texts<'a>(checker: &Checker<'a>) -> Vec<(&'a str, &'a str, u32)> {
    let mut texts = Vec::new();
    for (name, message) in &checker.flow.messages {
        let lines = &checker.lines.messages[name];
        texts.push((name.as_str(), message.text.as_str(), lines.text));
        texts.extend(lines.variants.iter().map(|(line, text)| (name.as_str(), text.as_str(), *line)));
    }
    texts
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
