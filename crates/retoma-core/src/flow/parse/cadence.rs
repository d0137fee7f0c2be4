//! `cadences:`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::words::{is_silent, type_of};
use super::{CadenceLines, Lines, RowLines};
use crate::cadence;
use crate::duration;
use crate::event::EventKind;
use crate::finding::suggest;
use crate::flow::{Action, Cadence, Revalidate, Row, Touch};
use crate::yaml::{Fields, Node, Reader};

const KEYS: [&str; 11] = [
    "starts_with",
    "anchor",
    "cancel_on",
    "runs_in",
    "grace",
    "wait_after_inbound",
    "min_gap",
    "when_piled_up",
    "revalidate",
    "prefix",
    "touches",
];

const MINUTE: Duration = Duration::from_secs(60);

/// Defaults (D5, D8; the gap is ours: wide enough to keep two cadences of one contact apart, far below the distance of
/// the default touches).
const GRACE: Duration = Duration::from_secs(24 * 3600);
const WAIT_AFTER_INBOUND: Duration = Duration::from_secs(45 * 60);
const MIN_GAP: Duration = Duration::from_secs(30 * 60);
const MAX_LATE: [Duration; 3] =
    [Duration::from_secs(40 * 60), Duration::from_secs(6 * 3600), Duration::from_secs(26 * 3600)];

/// Reads the cadences; their event types are filled in by [`resolve_types`].
pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, Cadence> {
    let mut cadences = BTreeMap::new();
    let entries = node.and_then(|node| reader.entries(node, "`cadences`")).unwrap_or_default();
    for entry in entries {
        let what = format!("cadence {}", entry.key);
        let Some(fields) = reader.fields(&entry.value, &what, &KEYS) else { continue };
        let mut places = CadenceLines { cadence: entry.line, ..CadenceLines::default() };
        let cadence = read_cadence(&entry.key, &fields, reader, &mut places);
        lines.cadences.insert(entry.key.clone(), places);
        cadences.insert(entry.key.clone(), cadence);
    }
    cadences
}

fn read_cadence(name: &str, fields: &Fields<'_>, reader: &mut Reader<'_>, places: &mut CadenceLines) -> Cadence {
    let names = |key: &str, reader: &mut Reader<'_>| -> Vec<(u32, String)> {
        let items = fields.get(key).map(|node| reader.one_or_list(node)).unwrap_or_default();
        items.iter().filter_map(|item| Some((item.line, reader.name(item, &format!("`{key}`"))?))).collect()
    };
    places.cancel_on = names("cancel_on", reader);
    places.starts_with = names("starts_with", reader).into_iter().next();
    let runs_in = names("runs_in", reader).into_iter().map(|(_, state)| state).collect();
    let duration = |key: &str, default: Duration, reader: &mut Reader<'_>| {
        fields.get(key).and_then(|node| reader.duration(node, &format!("`{key}`"))).unwrap_or(default)
    };
    read_later_keys(fields, reader, places);
    let prefix = fields.get("prefix").and_then(|node| reader.name(node, "`prefix`"));
    if prefix.as_ref().is_some_and(|prefix| prefix.contains(':')) {
        let line = fields.get("prefix").map_or(0, |node| node.line);
        reader.error("Y2", line, "`prefix` separates parts of a task id with `:`", "leave the colon out");
    }
    let touches = fields.need("touches", &format!("cadence {name}"), reader);
    let items = touches.map(|node| reader.list(node, "`touches`")).unwrap_or_default();
    let mut read = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        if let Some(touch) = read_touch(item, position, reader) {
            places.touches.push(item.line);
            read.push(touch);
        }
    }
    Cadence {
        prefix: prefix.unwrap_or_else(|| name.to_owned()),
        starts_with: None,
        runs_in,
        cancel_on: Vec::new(),
        grace: duration("grace", GRACE, reader),
        wait_after_inbound: duration("wait_after_inbound", WAIT_AFTER_INBOUND, reader),
        min_gap: duration("min_gap", MIN_GAP, reader),
        revalidate: fields.get("revalidate").and_then(|node| read_revalidate(node, reader)),
        touches: read,
    }
}

/// Keys that say what holds anyway, and keys that nothing acts on yet.
fn read_later_keys(fields: &Fields<'_>, reader: &mut Reader<'_>, places: &mut CadenceLines) {
    if let Some(node) = fields.get("anchor") {
        let anchor = reader.name(node, "`anchor`");
        let armed_by = places.starts_with.as_ref().map(|(_, word)| format!("{word}_at"));
        if anchor.is_some() && anchor != armed_by {
            reader.no_effect_yet(node.line, "`anchor` (touches count from the event that arms the cadence)");
        }
    }
    if let Some(node) = fields.get("when_piled_up") {
        places.says_piled_up = true;
        let word = reader.text(node, "`when_piled_up`");
        if word.as_deref().is_some_and(|word| word != "keep_latest") {
            let message = "`when_piled_up` can only be keep_latest: two touches are never sent at once";
            reader.error("Y2", node.line, message, "write keep_latest");
        }
    }
}

/// `revalidate: {payment: {ask: CHANNEL, max_age: 60s, timeout: 3s, on_error: retry_in 5m}}`.
fn read_revalidate(node: &Node, reader: &mut Reader<'_>) -> Option<Revalidate> {
    let fields = reader.fields(node, "`revalidate`", &["payment"])?;
    let node = fields.need("payment", "`revalidate`", reader)?;
    let fields = reader.fields(node, "`payment`", &["ask", "max_age", "timeout", "on_error"])?;
    let ask = fields.get("ask").and_then(|node| reader.name(node, "`ask`"));
    if fields.get("ask").is_none() {
        reader.warn(
            "Y3",
            node.line,
            "`revalidate` has no effect without `ask`",
            "add `ask: CHANNEL`, the http channel that knows what was paid",
        );
    }
    let duration = |key: &str, default: u64, reader: &mut Reader<'_>| {
        let given = fields.get(key).and_then(|node| reader.duration(node, &format!("`{key}`")));
        given.unwrap_or_else(|| Duration::from_secs(default))
    };
    let (max_age, timeout) = (duration("max_age", 60, reader), duration("timeout", 3, reader));
    let mut retry_in = Duration::from_secs(300);
    if let Some(node) = fields.get("on_error") {
        let text = reader.text(node, "`on_error`")?;
        match text.strip_prefix("retry_in ").map(|text| duration::parse(text.trim())) {
            Some(Ok(given)) if !given.is_zero() => retry_in = given,
            _ => {
                let message = "`on_error` can only be retry_in and a time: no answer never means \"send\"";
                reader.error("Y2", node.line, message, "write retry_in 5m");
            }
        }
    }
    Some(Revalidate { ask: ask?, max_age, timeout, retry_in })
}

fn read_touch(node: &Node, position: usize, reader: &mut Reader<'_>) -> Option<Touch> {
    let fields = reader.fields(node, "a touch", &["id", "at", "before", "jitter", "max_late", "send"])?;
    let id = fields.need("id", "the touch", reader).and_then(|node| reader.name(node, "`id`"));
    let at = fields.need("at", "the touch", reader).and_then(|node| reader.duration(node, "`at`"));
    let send = fields.need("send", "the touch", reader).and_then(|node| reader.name(node, "`send`"));
    let jitter = fields.get("jitter").and_then(|node| reader.duration(node, "`jitter`")).unwrap_or_default();
    let max_late = fields.get("max_late").and_then(|node| reader.duration(node, "`max_late`"));
    let max_late = max_late.unwrap_or_else(|| MAX_LATE[position.min(MAX_LATE.len() - 1)]);
    if max_late < MINUTE {
        reader.error(
            "Y2",
            node.line,
            "a touch that may not be a minute late is never sent",
            "write a longer `max_late`",
        );
    }
    let before = fields.get("before").and_then(|node| reader.text(node, "`before`"));
    Some(Touch { id: id?, at: at?, before, jitter, max_late, send: send? })
}

/// Fills in event types, written as canonical types or as words of the flow. The opt-out word may stand in `cancel_on`
/// too; an opt-out closes everything anyway.
pub(super) fn resolve_types(
    cadences: &mut BTreeMap<String, Cadence>,
    words: &BTreeMap<String, EventKind>,
    opt_out: Option<&str>,
    lines: &Lines,
    reader: &mut Reader<'_>,
) {
    let resolve = |line: u32, word: &str, reader: &mut Reader<'_>| -> Option<EventKind> {
        let kind = words.get(word).copied().or_else(|| type_of(word));
        if kind.is_none() && !is_silent(word) {
            let known = words.keys().map(String::as_str).chain(EventKind::ALL.iter().map(|kind| kind.as_str()));
            reader.error("N1", line, format!("unknown event `{word}`"), suggest(word, known));
        }
        kind
    };
    for (name, cadence) in cadences {
        let places = &lines.cadences[name];
        let cancelling = places.cancel_on.iter().filter(|(_, word)| Some(word.as_str()) != opt_out);
        cadence.cancel_on = cancelling.filter_map(|(line, word)| resolve(*line, word, reader)).collect();
        cadence.starts_with = places.starts_with.as_ref().and_then(|(line, word)| resolve(*line, word, reader));
    }
}

/// A cadence that names its type and that no row arms is armed by the rows that answer the type, where they lead to a state
/// in which it runs. Without a table it needs no row (C4).
pub(super) fn arm_by_type(
    cadences: &BTreeMap<String, Cadence>,
    words: &BTreeMap<String, EventKind>,
    tables: &mut [(&mut Vec<Row>, &mut Vec<RowLines>)],
) {
    for (name, cadence) in cadences {
        let Some(kind) = cadence.starts_with else { continue };
        if tables.iter().any(|(rows, _)| rows.iter().any(|row| row.arms() == Some(name))) {
            continue;
        }
        for (row, places) in tables.iter_mut().flat_map(|(rows, places)| rows.iter_mut().zip(places.iter_mut())) {
            let mut reached = row.to.as_ref().map_or(&row.from[..], std::slice::from_ref).iter();
            let is_meant = words.get(&row.event) == Some(&kind) && row.arms().is_none();
            if is_meant && reached.all(|state| cadence::runs_in(cadence, state)) {
                row.actions.push(Action::StartCadence(name.clone()));
                places.actions.push(places.row);
            }
        }
    }
}
