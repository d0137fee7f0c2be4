//! Durations as files and answers write them: `150ms`, `30s`, `15m`, `4h`, `2d`, and several units joined (`1h30m`).

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// No duration of ours is longer: ten years. Beyond it adding to an instant could leave the calendar.
const MAX_MS: u64 = 3_650 * 86_400_000;

/// Text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration such as 150ms, 15m, 4h or 2d")]
pub struct NotADuration(pub String);

/// Reads a duration. A bare `0` is one too; any other number needs its unit.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    let wrong = || NotADuration(text.to_owned());
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total: u64 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?.1;
        // Units go down, each once: `30m1h` is a slip more often than it is meant.
        if unit >= smallest {
            return Err(wrong());
        }
        smallest = unit;
        total = number.checked_mul(unit).and_then(|ms| total.checked_add(ms)).ok_or_else(wrong)?;
        rest = &rest[letters..];
    }
    if total > MAX_MS {
        return Err(wrong());
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration in the largest units that lose nothing above a millisecond: `45m`, `1h30m`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, unit) in UNITS {
        let count = ms / unit;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
            ms %= unit;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let table = [
            ("150ms", Some(150)),
            ("4s", Some(4_000)),
            ("45m", Some(2_700_000)),
            ("4h", Some(14_400_000)),
            ("2d", Some(172_800_000)),
            ("1h30m", Some(5_400_000)),
            ("1d2h3m4s5ms", Some(93_784_005)),
            (" 15m ", Some(900_000)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("", None),
            ("15", None),
            ("m", None),
            ("15 m", None),
            ("15min", None),
            ("-5m", None),
            ("1.5h", None),
            ("30m1h", None),
            ("1m1m", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("3651d", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).ok(), expected.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["0s", "150ms", "45m", "1h30m", "26h", "2d", "1d2h3m4s5ms"] {
            let duration = parse(text).unwrap();
            assert_eq!(parse(&format(duration)).unwrap(), duration, "{text}");
        }
        assert_eq!(format(Duration::from_secs(2_700)), "45m");
        assert_eq!(format(Duration::from_secs(26 * 3600)), "1d2h");
    }
}
