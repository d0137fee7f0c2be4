//! `Retry-After`: seconds, decimals, or one of the three forms of a date (FC-64).

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;

/// Nobody means more than this; a longer wish is a broken sender.
const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long the answer asks us to wait. A date counts from the answer's own `Date`, since its clock may not be ours; from
/// `now` where there is none. Of several values the longest counts.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let date = headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(http_date);
    let date = date.unwrap_or_else(|| Offset::UTC.to_datetime(now));
    headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|value| wait(value.to_str().ok()?.trim(), date))
        .max()
        .map(|wait| wait.min(WAIT_MAX))
}

fn wait(text: &str, date: DateTime) -> Option<Duration> {
    if text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(' ') {
        let seconds: f64 = text.parse().ok()?;
        return Duration::try_from_secs_f64(seconds).ok().or(Some(WAIT_MAX));
    }
    let until = http_date(text)?;
    // A date that has passed asks for no wait.
    Some(Duration::try_from(until.duration_since(date)).unwrap_or_default())
}

/// `Wed, 21 Oct 2026 07:28:00 GMT`, `Wednesday, 21-Oct-26 07:28:00 GMT`, `Wed Oct 21 07:28:00 2026`: always GMT.
fn http_date(text: &str) -> Option<DateTime> {
    let text = text.trim().trim_end_matches("GMT").trim_end();
    // The day's name is decoration, and sometimes wrong.
    let (_, text) = text.split_once(", ").or_else(|| text.split_once(' '))?;
    let formats = ["%d %b %Y %H:%M:%S", "%d-%b-%y %H:%M:%S", "%b %e %H:%M:%S %Y"];
    formats.iter().find_map(|format| strtime::parse(format, text.trim()).ok()?.to_datetime().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_decimals_and_the_three_dates_are_read() {
        let date = "Wed, 21 Oct 2026 07:27:00 GMT";
        let cases = [
            (&["120"][..], Some(date), Some(120_000)),
            (&["1.5"], None, Some(1_500)),
            (&["0"], None, Some(0)),
            (&["Wed, 21 Oct 2026 07:28:00 GMT"], Some(date), Some(60_000)),
            (&["Wednesday, 21-Oct-26 07:28:00 GMT"], Some(date), Some(60_000)),
            (&["Wed Oct 21 07:28:00 2026"], Some(date), Some(60_000)),
            (&["Thu Oct  1 07:28:00 2026"], Some("Thu, 01 Oct 2026 07:27:30 GMT"), Some(30_000)),
            (&["Wed, 21 Oct 2026 07:28:00 GMT"], Some("Wed Oct 21 07:27:30 2026"), Some(30_000)),
            (&["Wed, 21 Oct 2026 07:26:00 GMT"], Some(date), Some(0)),
            (&["Wed, 21 Oct 2026 07:28:00 GMT"], None, Some(20_000)),
            (&["5", "30"], None, Some(30_000)),
            (&["depois"], Some(date), None),
            (&["-5"], Some(date), None),
            (&["NaN"], Some(date), None),
            (&["1e300"], None, Some(604_800_000)),
            (&["99999999999999999999999"], None, Some(604_800_000)),
            (&[], Some(date), None),
        ];
        for (values, date, expected) in cases {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| {
                headers.append(RETRY_AFTER, value.parse().unwrap());
            });
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            let expected = expected.map(Duration::from_millis);
            let now = "2026-10-21T07:27:40Z".parse().unwrap();
            assert_eq!(retry_after(&headers, now), expected, "{values:?} {date:?}");
        }
    }
}
