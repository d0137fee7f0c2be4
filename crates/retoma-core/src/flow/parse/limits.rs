//! `inbound.debounce:` and `limits:` (C7, D5).

use std::time::Duration;

use crate::flow::{Debounce, Frequency, Limits};
use crate::yaml::{Node, Reader};

pub(super) fn read_debounce(node: Option<&Node>, reader: &mut Reader<'_>) -> Debounce {
    let mut debounce = Debounce { quiet: Duration::from_secs(4), max_wait: Duration::from_secs(40) };
    let Some(node) = node else { return debounce };
    let Some(fields) = reader.fields(node, "`debounce`", &["quiet", "max_wait", "max_messages", "join"]) else {
        return debounce;
    };
    if let Some(node) = fields.get("max_messages") {
        reader.count(node, "`max_messages`", 1);
        reader.no_effect_yet(node.line, "`max_messages` (a burst ends by `quiet` or `max_wait`)");
    }
    if let Some(node) = fields.get("join") {
        super::holds_anyway(node, "join", &["newline"], reader);
    }
    if let Some(quiet) = fields.get("quiet").and_then(|node| reader.duration(node, "`quiet`")) {
        debounce.quiet = quiet;
    }
    match fields.get("max_wait").and_then(|node| reader.duration(node, "`max_wait`")) {
        Some(max_wait) => debounce.max_wait = max_wait,
        None => debounce.max_wait = debounce.max_wait.max(debounce.quiet),
    }
    if debounce.max_wait < debounce.quiet {
        reader.error("Y2", node.line, "`max_wait` is shorter than `quiet`", "write a longer `max_wait`");
    }
    debounce
}

pub(super) fn read_limits(node: Option<&Node>, reader: &mut Reader<'_>) -> Limits {
    const DAY: Duration = Duration::from_secs(86_400);
    let mut limits = Limits {
        frequency: vec![Frequency { max: 3, per: DAY }, Frequency { max: 6, per: DAY * 7 }],
        unanswered_automatic: 8,
        without_receipt: 3,
        receipts_after_opt_out: true,
    };
    let keys = ["frequency", "counts", "when_hit", "unanswered_automatic", "without_receipt", "receipts_after_opt_out"];
    let Some(fields) = node.and_then(|node| reader.fields(node, "`limits`", &keys)) else { return limits };
    if let Some(node) = fields.get("counts") {
        super::holds_anyway(node, "counts", &["reminder"], reader);
    }
    if let Some(node) = fields.get("when_hit") {
        super::holds_anyway(node, "when_hit", &["skip"], reader);
    }
    if let Some(node) = fields.get("frequency") {
        limits.frequency =
            reader.list(node, "`frequency`").iter().filter_map(|item| read_frequency(item, reader)).collect();
    }
    if let Some(count) =
        fields.get("unanswered_automatic").and_then(|node| reader.count(node, "`unanswered_automatic`", 1))
    {
        limits.unanswered_automatic = count;
    }
    if let Some(count) = fields.get("without_receipt").and_then(|node| reader.count(node, "`without_receipt`", 0)) {
        limits.without_receipt = count;
    }
    if let Some(flag) =
        fields.get("receipts_after_opt_out").and_then(|node| reader.flag(node, "`receipts_after_opt_out`"))
    {
        limits.receipts_after_opt_out = flag;
    }
    limits
}

pub(super) fn read_frequency(node: &Node, reader: &mut Reader<'_>) -> Option<Frequency> {
    /// The store keeps a contact's sends of seven days at hand; a longer window would be counted short.
    const LONGEST: Duration = Duration::from_secs(7 * 86_400);
    let fields = reader.fields(node, "a frequency", &["max", "per"])?;
    let max = fields.need("max", "the frequency", reader).and_then(|node| reader.count(node, "`max`", 0));
    let per = fields.need("per", "the frequency", reader).and_then(|node| reader.duration(node, "`per`"));
    if per.is_some_and(|per| per.is_zero() || per > LONGEST) {
        reader.error("Y2", node.line, "`per` must be more than nothing and at most 7d", "write 24h, or 7d");
    }
    Some(Frequency { max: max?, per: per? })
}
