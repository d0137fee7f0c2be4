//! When something happened, by its origin's clock (A7), out of whatever shape the origin wrote it in.
//!
//! Adapters call this at the edge. It never fails: what cannot be a time becomes the receive time and a flag on the event.
//! Order within one instant is not made up here; events of one instant stay in the order in which they were received.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Nothing was given, or a zero.
pub const MISSING: &str = "occurred_at_missing";
/// Something was given that is no time of this century.
pub const UNREADABLE: &str = "occurred_at_unreadable";
/// More than a day ahead of our clock.
pub const FUTURE: &str = "occurred_at_future";

/// Brazilian platforms write local time without saying so. The country has had no daylight saving since 2019.
const BRASILIA: Offset = Offset::constant(-3);

/// 2000-01-01T00:00:00Z. Nothing that we hear of is older, so a smaller number is something else.
const OLDEST_SECOND: i64 = 946_684_800;

/// How far ahead of ours an origin's clock may be.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Reads an origin's time, cut to milliseconds. The flag says why it is the receive time instead.
///
/// Numbers and numeric texts are seconds, milliseconds, microseconds or nanoseconds, by magnitude; `{low, high, unsigned}` is
/// a 64-bit number in two halves (FC-25); texts are ISO 8601 with or without a zone, RFC 2822, `dd/MM/yyyy[ HH:mm[:ss]]`
/// or `YYYYMMDD[ HH:mm:ss]`. Without a zone they are taken as UTC-03:00.
pub fn read_time(value: &Value, received_at: Timestamp) -> (Timestamp, Option<&'static str>) {
    let read = match value {
        Value::Null => Err(MISSING),
        // With arbitrary precision a number keeps its text, so nothing passes through a float on the way here.
        Value::Number(number) => read_text(&number.to_string()),
        Value::String(text) => read_text(text.trim()),
        Value::Object(fields) => match (fields.get("low"), fields.get("high")) {
            (Some(low), high) => read_halves(low, high.unwrap_or(&Value::Null)),
            _ => Err(if fields.is_empty() { MISSING } else { UNREADABLE }),
        },
        Value::Bool(_) | Value::Array(_) => Err(UNREADABLE),
    };
    let judged = read.and_then(|time| {
        if time.as_second() < OLDEST_SECOND {
            Err(UNREADABLE)
        } else if time.duration_since(received_at) > AHEAD_MAX {
            Err(FUTURE)
        } else {
            Ok(time)
        }
    });
    match judged {
        Ok(time) => (whole_milliseconds(time), None),
        Err(flag) => (whole_milliseconds(received_at), Some(flag)),
    }
}

/// Stores keep milliseconds; what is compared must be what is stored.
fn whole_milliseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(time.as_millisecond()).expect("a timestamp's milliseconds are a timestamp")
}

/// A 64-bit integer as JavaScript libraries hand it on: `low` is its lower half, read as signed.
fn read_halves(low: &Value, high: &Value) -> Result<Timestamp, &'static str> {
    let half = |value: &Value| value.as_i64().unwrap_or(0);
    let low = half(low) & 0xffff_ffff;
    read_number(i128::from(half(high)) << 32 | i128::from(low), 0)
}

fn read_text(text: &str) -> Result<Timestamp, &'static str> {
    if text.is_empty() {
        return Err(MISSING);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(whole) && (is_digits(fraction) || !text.contains('.')) {
        let date = if whole.len() == 8 { read_local(whole).ok() } else { None };
        return match (date, whole.parse()) {
            (Some(date), _) => Ok(date),
            (None, Ok(whole)) => read_number(whole, milliseconds(fraction)),
            (None, Err(_)) => Err(UNREADABLE),
        };
    }
    if let Some(number) = text.parse::<f64>().ok().filter(|number| (1.0..1e19).contains(number)) {
        // An exponent (`1.790000025E9`), or a sign. Exact to the millisecond for any time before the year 287000.
        #[expect(clippy::cast_possible_truncation, reason = "in range, and cutting the fraction is meant")]
        return read_number(number as i128, (number.fract() * 1000.0) as i64);
    }
    read_written(text)
}

/// The first three digits behind the point.
fn milliseconds(fraction: &str) -> i64 {
    format!("{fraction:0<3}")[..3].parse().unwrap_or(0)
}

/// An instant by magnitude. Seconds reach 11 digits in the year 5138, milliseconds have 12 or 13 today, and so on.
fn read_number(whole: i128, milliseconds: i64) -> Result<Timestamp, &'static str> {
    let milliseconds = match whole {
        0 => return Err(MISSING),
        1..100_000_000_000 => whole * 1000 + i128::from(milliseconds),
        100_000_000_000..100_000_000_000_000 => whole,
        100_000_000_000_000..100_000_000_000_000_000 => whole / 1000,
        100_000_000_000_000_000.. => whole / 1_000_000,
        _ => return Err(UNREADABLE),
    };
    i64::try_from(milliseconds).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).ok_or(UNREADABLE)
}

/// A date and time in words, with a zone or without.
fn read_written(text: &str) -> Result<Timestamp, &'static str> {
    let with_zone = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| text.strip_suffix(" UTC").and_then(|text| format!("{text}Z").parse().ok()))
        .or_else(|| jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp()));
    match with_zone {
        Some(time) => Ok(time),
        None => read_local(text),
    }
}

fn read_local(text: &str) -> Result<Timestamp, &'static str> {
    const WRITTEN: [&str; 5] =
        ["%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%Y%m%d %H:%M:%S", "%Y%m%d %H:%M", "%d-%m-%Y %H:%M:%S"];
    const DATES: [&str; 3] = ["%d/%m/%Y", "%Y%m%d", "%d-%m-%Y"];
    let local = WRITTEN
        .iter()
        .find_map(|format| DateTime::strptime(format, text).ok())
        .or_else(|| DATES.iter().find_map(|format| jiff::civil::Date::strptime(format, text).ok().map(DateTime::from)))
        .or_else(|| text.parse().ok())
        .ok_or(UNREADABLE)?;
    BRASILIA.to_timestamp(local).map_err(|_| UNREADABLE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RECEIVED: &str = "2026-09-21T15:00:30Z";

    fn received_at() -> Timestamp {
        RECEIVED.parse().unwrap()
    }

    // FC-25, payment-webhooks 14 and 2 (four formats in one platform)
    #[test]
    fn one_instant_has_many_shapes() {
        let cases = [
            (r#"1790000025"#, "2026-09-21T14:13:45Z", None),
            (r#""1790000025""#, "2026-09-21T14:13:45Z", None),
            (r#""1790000025.6939""#, "2026-09-21T14:13:45.693Z", None),
            (r#"1790000025.5"#, "2026-09-21T14:13:45.5Z", None),
            (r#"1.790000025E9"#, "2026-09-21T14:13:45Z", None),
            (r#"1790000025693"#, "2026-09-21T14:13:45.693Z", None),
            (r#"1790000025693.0"#, "2026-09-21T14:13:45.693Z", None),
            (r#"1790000025693001"#, "2026-09-21T14:13:45.693Z", None),
            (r#"1790000025693001002"#, "2026-09-21T14:13:45.693Z", None),
            (r#"{"low":1790000025,"high":0,"unsigned":true}"#, "2026-09-21T14:13:45Z", None),
            // 1790000025693 = 416 * 2^32 + 3293630557, whose signed half is -1001336739.
            (r#"{"low":-1001336739,"high":416,"unsigned":true}"#, "2026-09-21T14:13:45.693Z", None),
            (r#"{"low":-123,"high":0,"unsigned":true}"#, RECEIVED, Some(FUTURE)),
            (r#"{"low":0,"high":0,"unsigned":true}"#, RECEIVED, Some(MISSING)),
            (r#"0"#, RECEIVED, Some(MISSING)),
            (r#""0""#, RECEIVED, Some(MISSING)),
            (r#""""#, RECEIVED, Some(MISSING)),
            (r#"null"#, RECEIVED, Some(MISSING)),
            (r#"{}"#, RECEIVED, Some(MISSING)),
            (r#""2026-09-21T12:00:25-03:00""#, "2026-09-21T15:00:25Z", None),
            (r#""2026-09-21T15:00:25.123456Z""#, "2026-09-21T15:00:25.123Z", None),
            (r#""2026-09-21 15:00:25 UTC""#, "2026-09-21T15:00:25Z", None),
            (r#""2026-09-21T12:00:25-0300""#, "2026-09-21T15:00:25Z", None),
            (r#""Mon, 21 Sep 2026 15:00:25 +0000""#, "2026-09-21T15:00:25Z", None),
            (r#""2026-09-21T12:00:25""#, "2026-09-21T15:00:25Z", None),
            (r#""2026-09-21 12:00""#, "2026-09-21T15:00:00Z", None),
            (r#"" 21/09/2026 12:00:25 ""#, "2026-09-21T15:00:25Z", None),
            (r#""21/09/2026 12:00""#, "2026-09-21T15:00:00Z", None),
            (r#""21/09/2026""#, "2026-09-21T03:00:00Z", None),
            (r#""2026-09-21""#, "2026-09-21T03:00:00Z", None),
            (r#""20260921""#, "2026-09-21T03:00:00Z", None),
            (r#""20260921 12:00:25""#, "2026-09-21T15:00:25Z", None),
            // Clocks differ by a little, not by three days.
            (r#""2026-09-22T15:00:30Z""#, "2026-09-22T15:00:30Z", None),
            (r#""2026-09-22T15:00:31Z""#, RECEIVED, Some(FUTURE)),
            (r#""2026-09-24T15:00:30Z""#, RECEIVED, Some(FUTURE)),
            (r#""32/09/2026""#, RECEIVED, Some(UNREADABLE)),
            (r#""ontem""#, RECEIVED, Some(UNREADABLE)),
            (r#"-5"#, RECEIVED, Some(UNREADABLE)),
            (r#"42"#, RECEIVED, Some(UNREADABLE)),
            (r#"999999999999999999999999999999"#, RECEIVED, Some(UNREADABLE)),
            (r#"true"#, RECEIVED, Some(UNREADABLE)),
            (r#"[1790000025]"#, RECEIVED, Some(UNREADABLE)),
        ];
        for (json, expected, flag) in cases {
            let value = serde_json::from_str(json).unwrap();
            assert_eq!(read_time(&value, received_at()), (expected.parse().unwrap(), flag), "{json}");
        }
    }

    #[test]
    fn the_receive_time_is_cut_to_milliseconds_too() {
        let (time, _) = read_time(&Value::Null, "2026-09-21T15:00:30.123456789Z".parse().unwrap());
        assert_eq!(time.to_string(), "2026-09-21T15:00:30.123Z");
    }

    proptest! {
        #[test]
        fn nothing_is_an_error_and_nothing_lies_far_ahead(text in "\\PC{0,24}|[-+.0-9eE]{0,24}|[0-9]{2}/[0-9]{2}/[0-9]{4}( [0-9:]{0,8})?", number: i64) {
            for value in [Value::from(text), Value::from(number), serde_json::json!({"low": number, "high": number})] {
                let (time, flag) = read_time(&value, received_at());
                prop_assert!(time.duration_since(received_at()) <= AHEAD_MAX);
                prop_assert!(time.as_second() >= OLDEST_SECOND);
                prop_assert!(flag.is_none() || time == received_at());
            }
        }
    }
}
