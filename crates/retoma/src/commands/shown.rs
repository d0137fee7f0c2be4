//! Rows of the API as tables for people, in local time.

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::output::{self, cell, local};

/// The rows of a list.
pub(crate) fn items(answer: &Value) -> &[Value] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

/// Tells that there is more.
pub(crate) fn more(answer: &Value) {
    if let Some(cursor) = answer["next_cursor"].as_str() {
        output::line(&format!("more: --cursor {cursor}"));
    }
}

/// Events as a table.
pub(crate) fn events(answer: &Value, zone: &TimeZone) {
    let rows = items(answer).iter().map(|event| {
        vec![
            local(event, "received_at", zone),
            cell(event, "id"),
            cell(event, "source"),
            cell(event, "type"),
            cell(event, "status"),
            cell(event, "duplicates"),
            told(event),
        ]
    });
    let headings = ["received", "id", "source", "type", "status", "dup", "result"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no events");
    more(answer);
}

/// How an event ended, or why it waits.
pub(crate) fn told(event: &Value) -> String {
    match cell(event, "result").as_str() {
        "-" => cell(event, "reason"),
        result => result.to_owned(),
    }
}

/// Tasks as a table.
pub(crate) fn tasks(answer: &Value, zone: &TimeZone) {
    let rows = items(answer).iter().map(|task| {
        vec![
            local(task, "scheduled_for", zone),
            cell(task, "id"),
            cell(task, "message"),
            status(task),
            cell(task, "attempts"),
            cell(task, "last_error"),
        ]
    });
    let headings = ["for", "id", "message", "status", "tries", "last error"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no tasks");
    more(answer);
}

/// `cancelled (avoided: paid)`, `scheduled`.
pub(crate) fn status(task: &Value) -> String {
    let avoided = if task["avoided"] == true { "avoided: " } else { "" };
    match task["reason"].as_str() {
        Some(reason) => format!("{} ({avoided}{reason})", cell(task, "status")),
        None => cell(task, "status"),
    }
}

/// One object, a field a line; times on the operator's clock, nested values as JSON.
pub(crate) fn object(value: &Value, zone: &TimeZone) {
    let Some(fields) = value.as_object() else {
        output::line(&value.to_string());
        return;
    };
    let width = fields.keys().map(String::len).max().unwrap_or(0);
    for key in fields.keys() {
        let is_time = key.ends_with("_at") || key == "scheduled_for" || key == "paused_until";
        let text = if is_time { local(value, key, zone) } else { cell(value, key) };
        output::line(&format!("{key:width$}  {text}"));
    }
}
