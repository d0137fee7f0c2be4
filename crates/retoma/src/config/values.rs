//! The small words of the configuration: durations (`150ms`, `15m`, `4h`, `2d`), sizes (`4MiB`) and rates (`50/s`).

use std::time::Duration;

/// `150ms`, `20s`, `15m`, `4h`, `2d`; also joined, `1h30m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    retoma_core::duration::parse(text).map_err(|error| error.to_string())
}

/// `512B`, `64KiB`, `4MiB`, `1GiB`; `KB` and `MB` are powers of ten.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = leading_number(text.trim()).ok_or_else(|| format!("{text:?} is no size"))?;
    let per: u64 = match unit.trim() {
        "" | "B" => 1,
        "KB" | "kB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(format!("{other:?} is no unit of size")),
    };
    let bytes = number.checked_mul(per).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("{text:?} is no usable size"))
}

/// Requests allowed in a time, as `50/s`, `300/m` or `1000/h`: how many, and in how long.
pub(super) fn rate(text: &str) -> Result<(u32, Duration), String> {
    let wrong = || format!("{text:?} is no rate");
    let (count, per) = text.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.trim().parse().map_err(|_| wrong())?;
    let per = match per.trim() {
        "s" => Duration::from_secs(1),
        "m" | "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        other => return Err(format!("{other:?} is no unit of time")),
    };
    if count == 0 { Err("a rate of zero lets nothing through".into()) } else { Ok((count, per)) }
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_rates_refuse_nonsense() {
        for (text, expected) in [
            ("4MiB", Some(4 << 20)),
            ("64KB", Some(64_000)),
            ("10", Some(10)),
            ("0", None),
            ("4 apples", None),
            ("MiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text:?}");
        }
        for (text, expected) in [
            ("50/s", Some((50, 1))),
            ("300/m", Some((300, 60))),
            ("0/s", None),
            ("50", None),
            ("x/s", None),
            ("5/week", None),
        ] {
            assert_eq!(rate(text).ok(), expected.map(|(n, s)| (n, Duration::from_secs(s))), "{text:?}");
        }
    }
}
