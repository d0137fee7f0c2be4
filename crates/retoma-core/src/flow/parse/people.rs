//! `takeover:` and `inbound.bot_loop_guard:` (C8, C10).

use super::limits::read_frequency;
use super::{Lines, type_of};
use crate::event::EventKind;
use crate::flow::{LoopGuard, Takeover};
use crate::yaml::{Fields, Node, Reader};

/// Reads `takeover: {auto_end, notify, ..}`.
pub(super) fn read_takeover(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> Takeover {
    const KEYS: [&str; 7] =
        ["auto_end", "notify", "starts_with", "ends_with", "works_without_cycle", "pending_touches", "still_processed"];
    let mut takeover = Takeover::default();
    let Some(node) = node else { return takeover };
    let Some(fields) = reader.fields(node, "`takeover`", &KEYS) else { return takeover };
    if let Some(auto_end) = fields.get("auto_end").and_then(|node| reader.duration(node, "`auto_end`")) {
        takeover.auto_end = auto_end;
    }
    if takeover.auto_end.is_zero() {
        let message = "a takeover that ends at once silences nobody";
        reader.error("Y2", node.line, message, "write how long a person has the chat, such as `auto_end: 4h`");
    }
    takeover.notify = fields.get("notify").and_then(|node| reader.name(node, "`notify`"));
    read_what_holds(&fields, reader, lines);
    takeover
}

/// Keys that say what a takeover is anyway; what they add to it has no effect yet.
fn read_what_holds(fields: &Fields<'_>, reader: &mut Reader<'_>, lines: &mut Lines) {
    const STARTS: [EventKind; 2] = [EventKind::MessageHuman, EventKind::OperatorPause];
    for (key, known) in
        [("starts_with", &STARTS[..]), ("ends_with", &[EventKind::OperatorResume]), ("still_processed", &[])]
    {
        for item in fields.get(key).map(|node| reader.one_or_list(node)).unwrap_or_default() {
            let Some(word) = reader.name(item, &format!("`{key}`")) else { continue };
            let holds = key == "still_processed" || type_of(&word).is_some_and(|kind| known.contains(&kind));
            if !holds {
                reader
                    .no_effect_yet(item.line, &format!("`{word}` in `{key}` (a row with `notify` calls a person; it)"));
            }
            lines.takeover.push((item.line, word));
        }
    }
    if fields.get("works_without_cycle").and_then(|node| reader.flag(node, "`works_without_cycle`")) == Some(false) {
        let line = fields.get("works_without_cycle").map_or(0, |node| node.line);
        reader.warn("Y3", line, "a takeover works without a cycle, too", "write true, or leave it out");
    }
    if let Some(node) = fields.get("pending_touches") {
        let known = ["hold", "avoid"];
        let word = super::word_of(
            node,
            "pending_touches",
            |word| known.iter().copied().find(|way| *way == word),
            known.into_iter(),
            reader,
        );
        if word == Some("hold") {
            reader.no_effect_yet(node.line, "`pending_touches: hold` (what falls due meanwhile is avoided; it)");
        }
    }
}

/// Reads `bot_loop_guard: {reply_under, times, most: {max, per}, notify}`.
pub(super) fn read_loop_guard(node: Option<&Node>, reader: &mut Reader<'_>) -> LoopGuard {
    let mut guard = LoopGuard::default();
    let Some(node) = node else { return guard };
    let keys = ["reply_under", "times", "then", "most", "notify"];
    let Some(fields) = reader.fields(node, "`bot_loop_guard`", &keys) else { return guard };
    if let Some(under) = fields.get("reply_under").and_then(|node| reader.duration(node, "`reply_under`")) {
        guard.reply_under = under;
    }
    // One equal answer may be chance; the guard needs a row of them.
    if let Some(times) = fields.get("times").and_then(|node| reader.count(node, "`times`", 2)) {
        guard.times = times;
    }
    if let Some(node) = fields.get("then") {
        super::holds_anyway(node, "then", &["pause_and_alert"], reader);
    }
    if let Some(most) = fields.get("most").and_then(|node| read_frequency(node, reader)) {
        guard.most = most;
    }
    guard.notify = fields.get("notify").and_then(|node| reader.name(node, "`notify`"));
    guard
}
