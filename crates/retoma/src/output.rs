//! The one place that prints: results to stdout, complaints to stderr.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Prints a line of the result. A reader that went away (`| head`) is no error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let _ = std::io::stdout().write_all(bytes);
}

/// Prints a JSON object on one line.
pub(crate) fn json(value: &Value) {
    line(&value.to_string());
}

/// Says on stderr what went wrong.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "retoma: {text}");
}

/// Prints rows under headings, columns aligned. `nothing` stands for no rows at all.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>], nothing: &str) {
    if rows.is_empty() {
        line(nothing);
        return;
    }
    for row in aligned(headings, rows) {
        line(&row);
    }
}

fn aligned(headings: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let widths: Vec<usize> = (0..headings.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let format = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| {
            let gap = width - cell.chars().count().min(*width);
            format!("{cell}{}", " ".repeat(gap))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![format(headings.to_vec())];
    lines.extend(rows.iter().map(|row| format(row.iter().map(String::as_str).collect())));
    lines
}

/// A field as a cell: texts without quotes, nothing as `-`.
pub(crate) fn cell(value: &Value, key: &str) -> String {
    match &value[key] {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An instant of an answer on the operator's own clock.
pub(crate) fn local(value: &Value, key: &str, zone: &TimeZone) -> String {
    let at = value[key].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    at.map_or_else(|| "-".to_owned(), |at| zone.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["NOVO".to_owned(), "1".to_owned()], vec!["ação".to_owned(), "22".to_owned()]];
        assert_eq!(aligned(&["state", "n"], &rows), ["state  n", "NOVO   1", "ação   22"]);
    }
}
