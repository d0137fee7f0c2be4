//! `calendar:` and `timezone:` (D5).

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::finding::suggest;
use crate::flow::Calendar;
use crate::scenario::minute_of_day;
use crate::yaml::{Node, Reader, Value};

const DEFAULT_ZONE: &str = "America/Sao_Paulo";
const DAY_MINUTES: u16 = 24 * 60;
const RELEASE_SPREAD: Duration = Duration::from_secs(20 * 60);

/// Weekdays, Monday first, in English and in Portuguese.
const WEEKDAYS: [[&str; 2]; 7] =
    [["mon", "seg"], ["tue", "ter"], ["wed", "qua"], ["thu", "qui"], ["fri", "sex"], ["sat", "sab"], ["sun", "dom"]];

/// One open or closed mark for each minute of each weekday. Only a file is read with it, never a message checked.
type Week = [Vec<bool>; 7];

/// Reads the calendar. Quiet from 23:00 to 08:00 every day where the file says nothing.
pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>) -> Calendar {
    const KEYS: [&str; 6] = ["allowed", "quiet", "outside", "release_spread", "holidays", "by_state"];
    let fields = node.and_then(|node| reader.fields(node, "`calendar`", &KEYS));
    let allowed = fields.and_then(|fields| fields.get("allowed"));
    let quiet = fields.and_then(|fields| fields.get("quiet"));
    let mut week: Week = std::array::from_fn(|_| vec![allowed.is_none(); usize::from(DAY_MINUTES)]);
    if let Some(node) = allowed {
        read_allowed(node, &mut week, reader);
    }
    match quiet {
        Some(node) => {
            for (from, to) in reader.one_or_list(node).iter().filter_map(|item| read_hours(item, reader)) {
                (0..7).for_each(|day| mark(&mut week, day, from, to, false));
            }
        }
        None if allowed.is_none() => (0..7).for_each(|day| mark(&mut week, day, 23 * 60, 8 * 60, false)),
        None => {}
    }
    if let Some(node) = fields.and_then(|fields| fields.get("outside")) {
        let word = reader.text(node, "`outside`");
        if word.as_deref().is_some_and(|word| word != "defer") {
            let message = "`outside` can only be defer: a touch waits for the next open hour, up to its `max_late`";
            reader.error("Y2", node.line, message, "write defer");
        }
    }
    if let Some(node) = fields.and_then(|fields| fields.get("holidays")) {
        super::holds_anyway(node, "holidays", &["br-national"], reader);
        reader.no_effect_yet(node.line, "`holidays`");
    }
    if let Some(node) = fields.and_then(|fields| fields.get("by_state")) {
        for entry in reader.entries(node, "`by_state`").unwrap_or_default() {
            let mut week: Week = std::array::from_fn(|_| vec![false; usize::from(DAY_MINUTES)]);
            read_allowed(&entry.value, &mut week, reader);
        }
        reader.no_effect_yet(node.line, "`by_state` (`allowed` holds everywhere; it)");
    }
    let spread = fields.and_then(|fields| fields.get("release_spread"));
    let spread = spread.and_then(|node| reader.duration(node, "`release_spread`"));
    Calendar { allowed: week.map(|day| intervals(&day)), release_spread: spread.unwrap_or(RELEASE_SPREAD) }
}

fn read_allowed(node: &Node, week: &mut Week, reader: &mut Reader<'_>) {
    for entry in reader.entries(node, "`allowed`").unwrap_or_default() {
        let Some(days) = read_days(&entry.key) else {
            let fix = suggest(&entry.key, WEEKDAYS.iter().map(|names| names[0]));
            reader.error("N1", entry.line, format!("unknown weekday `{}`", entry.key), fix);
            continue;
        };
        for (from, to) in reader.one_or_list(&entry.value).iter().filter_map(|item| read_hours(item, reader)) {
            days.iter().for_each(|day| mark(week, *day, from, to, true));
        }
    }
}

/// `mon`, `mon-fri`, `sat-mon`; `all` is every day.
fn read_days(text: &str) -> Option<Vec<usize>> {
    let number = |name: &str| WEEKDAYS.iter().position(|names| names.contains(&name.trim().to_lowercase().as_str()));
    if text == "all" {
        return Some((0..7).collect());
    }
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    let count = (last + 7 - first) % 7 + 1;
    Some((0..count).map(|step| (first + step) % 7).collect())
}

/// `"08:00-20:00"`.
fn read_hours(node: &Node, reader: &mut Reader<'_>) -> Option<(u16, u16)> {
    let hours = match &node.value {
        Value::Text(text) => {
            text.split_once('-').and_then(|(from, to)| Some((minute_of_day(from)?, minute_of_day(to)?)))
        }
        _ => None,
    };
    if hours.is_none() {
        reader.error("Y2", node.line, "hours are written from and to", "write \"08:00-20:00\", with the quotes");
    }
    hours
}

/// Marks `[from, to)` of a weekday; past midnight it goes on in the next day. Two equal times mean no time at all.
fn mark(week: &mut Week, day: usize, from: u16, to: u16, open: bool) {
    let mut fill = |day: usize, from: u16, to: u16| week[day % 7][usize::from(from)..usize::from(to)].fill(open);
    if from <= to {
        fill(day, from, to);
    } else {
        fill(day, from, DAY_MINUTES);
        fill(day + 1, 0, to);
    }
}

fn intervals(day: &[bool]) -> Vec<(u16, u16)> {
    let mut found: Vec<(u16, u16)> = Vec::new();
    for minute in (0..DAY_MINUTES).filter(|minute| day[usize::from(*minute)]) {
        match found.last_mut() {
            Some(last) if last.1 == minute => last.1 += 1,
            _ => found.push((minute, minute + 1)),
        }
    }
    found
}

/// `timezone: ZONE`, or `{default: ZONE, from: [..]}`.
pub(super) fn read_timezone(node: Option<&Node>, reader: &mut Reader<'_>) -> TimeZone {
    let zone = |name: &str| TimeZone::get(name).ok();
    let default = zone(DEFAULT_ZONE).expect("zone data is bundled");
    let Some(node) = node else { return default };
    let name = if matches!(node.value, Value::Map(_)) {
        let Some(fields) = reader.fields(node, "`timezone`", &["default", "from"]) else { return default };
        if let Some(from) = fields.get("from") {
            read_zone_sources(from, reader);
        }
        fields.get("default")
    } else {
        Some(node)
    };
    let Some(name) = name else { return default };
    let Some(text) = reader.text(name, "`timezone`") else { return default };
    zone(&text).unwrap_or_else(|| {
        reader.error(
            "N1",
            name.line,
            format!("unknown time zone `{text}`"),
            format!("write a name such as {DEFAULT_ZONE}"),
        );
        default
    })
}

/// `from: [..]`: what is asked before the default. Both are, in this order, whatever the file leaves out.
fn read_zone_sources(node: &Node, reader: &mut Reader<'_>) {
    const SOURCES: [&str; 2] = ["contact.timezone", "phone.area_code"];
    let mut named = Vec::new();
    for item in reader.one_or_list(node) {
        let Some(text) = reader.text(item, "`from`") else { continue };
        if !SOURCES.contains(&text.as_str()) {
            let message = format!("unknown source of a time zone `{text}`");
            reader.error("N1", item.line, message, suggest(&text, SOURCES));
        }
        named.push(text);
    }
    if named.iter().all(|name| SOURCES.contains(&name.as_str())) && named != SOURCES {
        let message = "`from` has no effect: the contact's own zone is asked first, then the area code";
        reader.warn("Y3", node.line, message, format!("write [{}], or leave it out", SOURCES.join(", ")));
    }
}
