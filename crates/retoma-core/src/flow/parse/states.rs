//! `states:` (C5).

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Lines, RowLines};
use crate::finding::suggest;
use crate::flow::{Row, State, TIMEOUT, Timeout};
use crate::yaml::{Node, Reader, Value};

pub(super) fn read(
    node: Option<&Node>,
    reader: &mut Reader<'_>,
    lines: &mut Lines,
) -> (BTreeMap<String, State>, Vec<Row>) {
    let mut states = BTreeMap::new();
    let mut clock_rows = Vec::new();
    let entries = node.and_then(|node| reader.entries(node, "`states`")).unwrap_or_default();
    for entry in entries {
        let what = format!("state {}", entry.key);
        let Some(fields) = reader.fields(&entry.value, &what, &["initial", "final", "timeout"]) else { continue };
        if fields.get("initial").and_then(|node| reader.flag(node, "`initial`")).unwrap_or(false) {
            lines.initials.push(entry.key.clone());
        }
        let is_final = fields.get("final").is_some_and(|node| read_final(node, &entry.key, reader, lines));
        let timeout = fields.get("timeout").and_then(|node| read_timeout(node, &entry.key, reader, &mut clock_rows));
        lines.clock_rows.resize_with(clock_rows.len(), || RowLines { row: entry.line, ..RowLines::default() });
        lines.states.insert(entry.key.clone(), entry.line);
        states.insert(entry.key.clone(), State { timeout, is_final });
    }
    (states, clock_rows)
}

/// `true`; or `cycle` (the sale is over) or `contact` (the person asked for silence), which only say more of it.
fn read_final(node: &Node, state: &str, reader: &mut Reader<'_>, lines: &mut Lines) -> bool {
    if let Value::Text(word) = &node.value {
        match word.as_str() {
            "cycle" => lines.ends_cycle.push(state.to_owned()),
            "contact" => {}
            word => {
                let fix = suggest(word, ["true", "cycle", "contact"]);
                reader.error("N1", node.line, format!("unknown `final: {word}`"), fix);
            }
        }
        return true;
    }
    reader.flag(node, "`final`").unwrap_or(false)
}

/// `{after, jitter, to}`, or `after` alone. With `to` it is a row of its own, tried where the table has none.
fn read_timeout(node: &Node, state: &str, reader: &mut Reader<'_>, clock_rows: &mut Vec<Row>) -> Option<Timeout> {
    let what = format!("state {state}");
    let (after, jitter) = if matches!(node.value, Value::Map(_)) {
        let fields = reader.fields(node, &format!("the timeout of {what}"), &["after", "jitter", "to"])?;
        let after = fields.need("after", "the timeout", reader).and_then(|node| reader.duration(node, "`after`"));
        if let Some(to) = fields.get("to").and_then(|node| reader.name(node, "`to`")) {
            let (from, except, event) = (vec![state.to_owned()], Vec::new(), TIMEOUT.to_owned());
            clock_rows.push(Row { from, except, event, to: Some(to), actions: Vec::new() });
        }
        (after?, fields.get("jitter").and_then(|node| reader.duration(node, "`jitter`")))
    } else {
        (reader.duration(node, "`timeout`")?, None)
    };
    if after.is_zero() {
        reader.error("Y2", node.line, format!("{what} is left the moment it is entered"), "write a longer `after`");
    }
    // C5: up to five minutes, but never so much that a short deadline loses its meaning (T2).
    let jitter = jitter.unwrap_or_else(|| Duration::from_secs(300).min(after / 2));
    Some(Timeout { after, jitter })
}

/// `migrate: {OLD: NEW}`.
pub(super) fn read_migrate(
    node: Option<&Node>,
    reader: &mut Reader<'_>,
    lines: &mut Lines,
) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for entry in node.and_then(|node| reader.entries(node, "`migrate`")).unwrap_or_default() {
        if let Some(to) = reader.name(&entry.value, "`migrate`") {
            lines.migrate.insert(entry.key.clone(), entry.line);
            map.insert(entry.key.clone(), to);
        }
    }
    map
}
