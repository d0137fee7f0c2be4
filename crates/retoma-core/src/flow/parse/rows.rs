//! `globals:` and `transitions:`.

use std::collections::BTreeMap;

use super::RowLines;
use crate::finding::suggest;
use crate::flow::{Action, Cadence, Row};
use crate::yaml::{Node, Reader, Value};

/// Which of the two lists is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Applies in any state, some excepted.
    Global,
    /// Applies in the states that it names.
    Transition,
}

/// Reads one of the lists, in file order.
pub(super) fn read(node: Option<&Node>, kind: Kind, reader: &mut Reader<'_>) -> (Vec<Row>, Vec<RowLines>) {
    let name = if kind == Kind::Global { "`globals`" } else { "`transitions`" };
    let items = node.map(|node| reader.list(node, name)).unwrap_or_default();
    items.iter().filter_map(|item| read_row(item, kind, reader)).unzip()
}

fn read_row(node: &Node, kind: Kind, reader: &mut Reader<'_>) -> Option<(Row, RowLines)> {
    let (what, keys) = match kind {
        Kind::Global => ("a global", &["event", "to", "do", "except", "match", "scope", "max_times"][..]),
        Kind::Transition => ("a transition", &["from", "event", "to", "do", "max_times"][..]),
    };
    let fields = reader.fields(node, what, keys)?;
    let names = |key: &str, reader: &mut Reader<'_>| -> Vec<String> {
        let items = fields.get(key).map(|node| reader.one_or_list(node)).unwrap_or_default();
        items.iter().filter_map(|item| reader.name(item, &format!("`{key}`"))).collect()
    };
    let from = names("from", reader);
    let except = names("except", reader);
    if kind == Kind::Transition && from.is_empty() {
        reader.error("Y2", node.line, "the transition names no state", "write `from:`, or move the row to `globals`");
        return None;
    }
    let event = fields.need("event", what, reader).and_then(|node| reader.name(node, "`event`"))?;
    let to = fields.get("to").and_then(|node| reader.name(node, "`to`"));
    let mut actions = Vec::new();
    let mut action_lines = Vec::new();
    let items = fields.get("do").map(|node| reader.one_or_list(node)).unwrap_or_default();
    let mut is_noted = false;
    for item in items {
        for (line, action) in read_actions(item, reader, &mut is_noted) {
            actions.push(action);
            action_lines.push(line);
        }
    }
    if to.is_none() && actions.is_empty() && !is_noted {
        reader.warn("Y3", node.line, "the row neither moves nor does anything", "add `to:` or `do:`");
    }
    let max_times = fields.get("max_times");
    if let Some(node) = max_times {
        reader.count(node, "`max_times`", 1);
        reader.no_effect_yet(node.line, "`max_times` (`inbound.bot_loop_guard` ends what goes on for ever; it)");
    }
    if let Some(node) = fields.get("match") {
        super::holds_anyway(node, "match", &["order"], reader);
    }
    let scope = fields.get("scope").and_then(|node| {
        let known = ["contact", "cycle"];
        super::word_of(node, "scope", |word| known.contains(&word).then(|| word.to_owned()), known.into_iter(), reader)
    });
    let places = RowLines { row: node.line, actions: action_lines, says_max_times: max_times.is_some(), scope };
    Some((Row { from, except, event, to, actions }, places))
}

/// `send: M`, `call: C`, `notify: N`, `start_cadence: X`, `cancel_cadence: X`, and `cancel_cadences` for all of them.
/// `is_noted`: whether something stands here that nothing acts on yet.
fn read_actions(node: &Node, reader: &mut Reader<'_>, is_noted: &mut bool) -> Vec<(u32, Action)> {
    const VERBS: [&str; 5] = ["send", "call", "notify", "start_cadence", "cancel_cadence"];
    let entries = match &node.value {
        Value::Map(entries) => entries,
        Value::Text(word) if ["cancel_cadences", "cancel_everything"].contains(&word.as_str()) => {
            return vec![(node.line, Action::CancelCadence(EVERY.to_owned()))];
        }
        Value::Text(word) if ["pix.renew", "check_payment"].contains(&word.as_str()) => {
            *is_noted = true;
            reader.no_effect_yet(node.line, &format!("`{word}` (a `call` asks a tool of yours; it)"));
            return Vec::new();
        }
        _ => {
            reader.error("Y2", node.line, "an item of `do` is a verb with a name", "write `- send: NAME`");
            return Vec::new();
        }
    };
    let mut actions = Vec::new();
    for entry in entries {
        let Some(name) = reader.name(&entry.value, &format!("`{}`", entry.key)) else { continue };
        let action = match entry.key.as_str() {
            "send" => Action::Send(name),
            "call" => Action::Call(name),
            "notify" => Action::Notify(name),
            "start_cadence" => Action::StartCadence(name),
            "cancel_cadence" => Action::CancelCadence(name),
            verb @ ("hold_cadences" | "note") => {
                *is_noted = true;
                reader.no_effect_yet(entry.line, &format!("`{verb}`"));
                continue;
            }
            verb => {
                reader.error("N1", entry.line, format!("unknown action `{verb}`"), suggest(verb, VERBS));
                continue;
            }
        };
        actions.push((entry.line, action));
    }
    actions
}

/// Stands for every cadence until all of them are known. No name: names hold no white space.
const EVERY: &str = "every cadence";

/// Puts each cadence's name where a row says `cancel_cadences`; one that does not run is not cancelled.
pub(super) fn expand(rows: &mut [Row], places: &mut [RowLines], cadences: &BTreeMap<String, Cadence>) {
    for (row, places) in rows.iter_mut().zip(places) {
        let written = std::mem::take(&mut row.actions).into_iter().zip(std::mem::take(&mut places.actions));
        for (action, line) in written {
            let meant = match action {
                Action::CancelCadence(name) if name == EVERY => {
                    cadences.keys().cloned().map(Action::CancelCadence).collect()
                }
                action => vec![action],
            };
            places.actions.extend(meant.iter().map(|_| line));
            row.actions.extend(meant);
        }
    }
}
