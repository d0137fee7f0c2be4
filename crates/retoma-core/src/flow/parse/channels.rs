//! `channels:`, `cycle:` and `alerts:`: what a flow says of the world around it. A channel itself is the configuration's;
//! here stands what decides which messages may use it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Lines, holds_anyway, word_of};
use crate::flow::{ChannelRules, Window};
use crate::yaml::{Node, Reader, Value};

const HOUR: Duration = Duration::from_secs(3600);

/// Providers that a channel of the configuration may have.
const PROVIDERS: [&str; 6] = ["whatsapp_cloud", "evolution", "zapi", "http", "telegram", "smtp"];

/// Reads `channels:`.
pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, ChannelRules> {
    let mut channels = BTreeMap::new();
    for entry in node.and_then(|node| reader.entries(node, "`channels`")).unwrap_or_default() {
        if let Some(rules) = read_channel(&entry.key, &entry.value, reader) {
            lines.channels.insert(entry.key.clone(), entry.line);
            channels.insert(entry.key.clone(), rules);
        }
    }
    channels
}

fn read_channel(name: &str, node: &Node, reader: &mut Reader<'_>) -> Option<ChannelRules> {
    let keys = ["provider", "window", "window_closed", "send", "rate"];
    let fields = reader.fields(node, &format!("channel {name}"), &keys)?;
    let provider = fields.get("provider").and_then(|node| {
        word_of(
            node,
            "provider",
            |word| PROVIDERS.iter().copied().find(|known| *known == word),
            PROVIDERS.into_iter(),
            reader,
        )
    });
    let official = Window { lasts: 24 * HOUR, margin: HOUR / 6 };
    let mut window = (provider == Some("whatsapp_cloud")).then_some(official);
    if let Some(fields) =
        fields.get("window").and_then(|node| reader.fields(node, "`window`", &["opened_by", "lasts", "margin"]))
    {
        if let Some(node) = fields.get("opened_by") {
            holds_anyway(node, "opened_by", &["message.inbound", "message.received"], reader);
        }
        let duration = |key: &str, default: Duration, reader: &mut Reader<'_>| {
            fields.get(key).and_then(|node| reader.duration(node, &format!("`{key}`"))).unwrap_or(default)
        };
        window = Some(Window {
            lasts: duration("lasts", official.lasts, reader),
            margin: duration("margin", official.margin, reader),
        });
    }
    let closed = fields.get("window_closed").and_then(|node| {
        word_of(
            node,
            "window_closed",
            |word| (word == "skip" || word == "template").then(|| word.to_owned()),
            ["template", "skip"].into_iter(),
            reader,
        )
    });
    let (send_timeout, typing_delay) = fields.get("send").map_or((None, None), |node| read_send(node, reader));
    if let Some(fields) =
        fields.get("rate").and_then(|node| reader.fields(node, "`rate`", &["per_second", "per_contact"]))
    {
        if let Some(node) = fields.get("per_second") {
            reader.count(node, "`per_second`", 1);
        }
        reader.no_effect_yet(fields.line, "`rate` (the configuration's [channels] says how fast one sends; it)");
    }
    Some(ChannelRules {
        window,
        skips_when_closed: closed.as_deref() == Some("skip"),
        send_timeout,
        typing_delay: typing_delay.unwrap_or_default(),
    })
}

/// `send: {total_timeout, typing_delay, reconcile_for, on_unknown}`: the first two are judged, the rest is the
/// configuration's.
fn read_send(node: &Node, reader: &mut Reader<'_>) -> (Option<Duration>, Option<Duration>) {
    let keys = ["total_timeout", "typing_delay", "reconcile_for", "on_unknown"];
    let Some(fields) = reader.fields(node, "`send`", &keys) else { return (None, None) };
    let duration = |key: &str, reader: &mut Reader<'_>| {
        fields.get(key).and_then(|node| reader.duration(node, &format!("`{key}`")))
    };
    duration("reconcile_for", reader);
    if let Some(node) = fields.get("on_unknown") {
        let known = ["hold", "assume_sent", "resend_once"];
        word_of(node, "on_unknown", |word| known.contains(&word).then_some(()), known.into_iter(), reader);
    }
    (duration("total_timeout", reader), duration("typing_delay", reader))
}

/// Reads `cycle: {key, focus, reentry}`. Answers the states that somebody may come back from, with their lines.
pub(super) fn read_cycle(node: Option<&Node>, reader: &mut Reader<'_>) -> Vec<(u32, String)> {
    let Some(fields) = node.and_then(|node| reader.fields(node, "`cycle`", &["key", "focus", "reentry"])) else {
        return Vec::new();
    };
    if let Some(node) = fields.get("key") {
        holds_anyway(node, "key", &["contact", "offer"], reader);
    }
    if let Some(node) = fields.get("focus") {
        holds_anyway(node, "focus", &["latest_active"], reader);
    }
    let mut from = Vec::new();
    for item in fields.get("reentry").map(|node| reader.list(node, "`reentry`")).unwrap_or_default() {
        let keys = ["from", "when", "same_offer", "other_offer"];
        let Some(fields) = reader.fields(item, "a re-entry", &keys) else { continue };
        for key in ["same_offer", "other_offer"] {
            if let Some(node) = fields.get(key) {
                reader.duration(node, &format!("`{key}`"));
            }
        }
        for event in fields.get("when").map(|node| reader.one_or_list(node)).unwrap_or_default() {
            let name = reader.name(event, "`when`");
            if let Some(name) =
                name.filter(|name| super::words::type_of(name).is_none() && !super::words::is_silent(name))
            {
                let known = crate::event::EventKind::ALL.iter().map(|kind| kind.as_str());
                let fix = crate::finding::suggest(&name, known);
                reader.error("N1", event.line, format!("unknown event `{name}`"), fix);
            }
        }
        if let Some(state) = fields.need("from", "the re-entry", reader).and_then(|node| reader.name(node, "`from`")) {
            from.push((item.line, state));
        }
        reader.no_effect_yet(item.line, "`reentry` (a row from that state brings people back; it)");
    }
    from
}

/// Reads `alerts:`: shapes only. Alerts are the configuration's.
pub(super) fn read_alerts(node: Option<&Node>, reader: &mut Reader<'_>) {
    let Some(node) = node else { return };
    for item in reader.list(node, "`alerts`") {
        let Some(fields) = reader.fields(item, "an alert", &["when", "for", "severity", "during"]) else { continue };
        fields.need("when", "the alert", reader);
        if let Some(node) = fields.get("for") {
            reader.duration(node, "`for`");
        }
        if let Some(node) = fields.get("severity") {
            let known = ["warning", "critical"];
            word_of(node, "severity", |word| known.contains(&word).then_some(()), known.into_iter(), reader);
        }
    }
    if !matches!(node.value, Value::Null) {
        reader.no_effect_yet(node.line, "`alerts` (the configuration's [alerts] says what is told; it)");
    }
}
