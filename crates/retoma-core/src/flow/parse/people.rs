//! `takeover:` and `inbound.bot_loop_guard:` (C8, C10).

use super::read_frequency;
use crate::flow::{LoopGuard, Takeover};
use crate::yaml::{Node, Reader};

/// Reads `takeover: {auto_end, notify}`.
pub(super) fn read_takeover(node: Option<&Node>, reader: &mut Reader<'_>) -> Takeover {
    let mut takeover = Takeover::default();
    let Some(node) = node else { return takeover };
    let Some(fields) = reader.fields(node, "`takeover`", &["auto_end", "notify"]) else { return takeover };
    if let Some(auto_end) = fields.get("auto_end").and_then(|node| reader.duration(node, "`auto_end`")) {
        takeover.auto_end = auto_end;
    }
    if takeover.auto_end.is_zero() {
        let message = "a takeover that ends at once silences nobody";
        reader.error("Y2", node.line, message, "write how long a person has the chat, such as `auto_end: 4h`");
    }
    takeover.notify = fields.get("notify").and_then(|node| reader.name(node, "`notify`"));
    takeover
}

/// Reads `bot_loop_guard: {reply_under, times, most: {max, per}, notify}`.
pub(super) fn read_loop_guard(node: Option<&Node>, reader: &mut Reader<'_>) -> LoopGuard {
    let mut guard = LoopGuard::default();
    let Some(node) = node else { return guard };
    let keys = ["reply_under", "times", "most", "notify"];
    let Some(fields) = reader.fields(node, "`bot_loop_guard`", &keys) else { return guard };
    if let Some(under) = fields.get("reply_under").and_then(|node| reader.duration(node, "`reply_under`")) {
        guard.reply_under = under;
    }
    // One equal answer may be chance; the guard needs a row of them.
    if let Some(times) = fields.get("times").and_then(|node| reader.count(node, "`times`", 2)) {
        guard.times = times;
    }
    if let Some(most) = fields.get("most").and_then(|node| read_frequency(node, reader)) {
        guard.most = most;
    }
    guard.notify = fields.get("notify").and_then(|node| reader.name(node, "`notify`"));
    guard
}
