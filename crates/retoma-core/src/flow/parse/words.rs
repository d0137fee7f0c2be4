//! `events:`: the words of a flow for canonical types.
//!
//! Two forms: words of the author's own (`{pix_gerado: pix.created}`), or the types' own names, declared in two lists
//! (`{external: [pix.created], intents: [intent.price]}`), external ones being their own words.

use std::collections::BTreeMap;

use super::Lines;
use crate::event::EventKind;
use crate::finding::suggest;
use crate::flow::{BUILT_IN_WORDS, TOUCH_SENT};
use crate::yaml::{Node, Reader, Value};

/// Names that files use for types that have another name here.
const OTHER_NAMES: [(&str, EventKind); 3] = [
    ("message.inbound", EventKind::MessageReceived),
    ("operator.takeover", EventKind::OperatorPause),
    ("operator.release", EventKind::OperatorResume),
];

/// Names of the format that no source gives yet.
const SILENT: [&str; 4] = ["offer.closed", "operator.mark_lost", "contact.opt_in", TOUCH_SENT];

/// The type of a name, canonical or one that files use for it.
pub(crate) fn type_of(name: &str) -> Option<EventKind> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind);
    other.or_else(|| name.parse().ok())
}

/// Whether it is a name of the format that nothing gives yet: no mistake, and no event either.
pub(in crate::flow) fn is_silent(name: &str) -> bool {
    SILENT.contains(&name)
}

/// Reads the words, of either form.
pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, EventKind> {
    let Some(node) = node else { return BTreeMap::new() };
    let is_list = |value: &Value| matches!(value, Value::List(_));
    let has_lists =
        matches!(&node.value, Value::Map(entries) if entries.iter().any(|entry| is_list(&entry.value.value)));
    if has_lists { read_lists(node, reader, lines) } else { read_pairs(node, reader, lines) }
}

/// `events: {external: [types], intents: [words of rules]}`.
fn read_lists(node: &Node, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, EventKind> {
    let mut words = BTreeMap::new();
    let Some(fields) = reader.fields(node, "`events`", &["external", "intents"]) else { return words };
    for item in fields.get("external").map(|node| reader.list(node, "`external`")).unwrap_or_default() {
        let Some(name) = reader.name(item, "`external`") else { continue };
        lines.words.insert(name.clone(), item.line);
        match type_of(&name) {
            Some(kind) => {
                words.insert(name, kind);
            }
            None if is_silent(&name) => {
                reader.no_effect_yet(item.line, &format!("`{name}`: no source gives it, so it"))
            }
            None => {
                let known = EventKind::ALL.iter().map(|kind| kind.as_str()).chain(SILENT);
                let fix = suggest(&name, known.chain(OTHER_NAMES.iter().map(|(other, _)| *other)));
                reader.error("N1", item.line, format!("unknown event type `{name}`"), fix);
            }
        }
    }
    for item in fields.get("intents").map(|node| reader.list(node, "`intents`")).unwrap_or_default() {
        if let Some(name) = reader.name(item, "`intents`") {
            lines.intents.insert(name, item.line);
        }
    }
    words
}

/// What no rule understands is asked of the table as this word.
pub(super) fn fall_back(
    fallback: Option<(u32, String)>,
    words: &mut BTreeMap<String, EventKind>,
    reader: &mut Reader<'_>,
    lines: &mut Lines,
) {
    let Some((line, word)) = fallback else { return };
    let plain = words.iter().find(|(_, kind)| **kind == EventKind::MessageReceived).map(|(word, _)| word.clone());
    match plain {
        Some(plain) if plain == word => return,
        // A type's own name gives way, since the fallback is what the rows of such a file name.
        Some(plain) if type_of(&plain).is_some() => {
            words.remove(&plain);
            lines.words.remove(&plain);
        }
        Some(plain) => {
            let message = format!("`fallback` has no effect: what no rule understands is `{plain}` here");
            return reader.warn("Y3", line, message, format!("write `fallback: {plain}`, or leave it out"));
        }
        None => {}
    }
    lines.words.insert(word.clone(), line);
    words.insert(word, EventKind::MessageReceived);
}

/// `events: {word: canonical type}`.
fn read_pairs(node: &Node, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, EventKind> {
    let mut words: BTreeMap<String, EventKind> = BTreeMap::new();
    let entries = reader.entries(node, "`events`").unwrap_or_default();
    for entry in entries {
        // Also of a word that is wrong: its rows need not complain again.
        lines.words.insert(entry.key.clone(), entry.line);
        let Some(named) = reader.text(&entry.value, &entry.key) else { continue };
        let Some(kind) = type_of(&named) else {
            let fix = suggest(&named, EventKind::ALL.iter().map(|kind| kind.as_str()));
            reader.error("N1", entry.line, format!("unknown event type `{named}`"), fix);
            continue;
        };
        if BUILT_IN_WORDS.contains(&entry.key.as_str()) {
            let message = format!("`{}` is the clock's own word", entry.key);
            reader.error("Y2", entry.line, message, "use another word");
            continue;
        }
        if let Some((other, _)) = words.iter().find(|(_, known)| **known == kind) {
            let message = format!("`{other}` and `{}` are both {kind}", entry.key);
            reader.error("Y2", entry.line, message, "keep one word for each type");
            continue;
        }
        words.insert(entry.key.clone(), kind);
    }
    words
}
