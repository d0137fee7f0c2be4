//! `globals:` and `transitions:`.

use super::RowLines;
use crate::finding::suggest;
use crate::flow::{Action, Row};
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
        Kind::Global => ("a global", ["event", "to", "do", "except"]),
        Kind::Transition => ("a transition", ["from", "event", "to", "do"]),
    };
    let fields = reader.fields(node, what, &keys)?;
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
    for item in items {
        for (line, action) in read_actions(item, reader) {
            actions.push(action);
            action_lines.push(line);
        }
    }
    if to.is_none() && actions.is_empty() {
        reader.warn("Y3", node.line, "the row neither moves nor does anything", "add `to:` or `do:`");
    }
    Some((Row { from, except, event, to, actions }, RowLines { row: node.line, actions: action_lines }))
}

/// `send: M`, `call: C`, `notify: N`, `start_cadence: X`, `cancel_cadence: X`.
fn read_actions(node: &Node, reader: &mut Reader<'_>) -> Vec<(u32, Action)> {
    const VERBS: [&str; 5] = ["send", "call", "notify", "start_cadence", "cancel_cadence"];
    let Value::Map(entries) = &node.value else {
        reader.error("Y2", node.line, "an item of `do` is a verb with a name", "write `- send: NAME`");
        return Vec::new();
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
            verb => {
                reader.error("N1", entry.line, format!("unknown action `{verb}`"), suggest(verb, VERBS));
                continue;
            }
        };
        actions.push((entry.line, action));
    }
    actions
}
