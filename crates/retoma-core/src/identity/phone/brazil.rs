//! Brazil's numbering plan, as far as it tells a mobile from a landline and a number from junk.

use super::{Doubt, Phone};

/// The 67 area codes that exist.
pub(super) fn is_area_code(area: &str) -> bool {
    matches!(
        area.parse(),
        Ok(
            11..=19u8
            | 21
            | 22
            | 24
            | 27
            | 28
            | 31..=35
            | 37
            | 38
            | 41..=49
            | 51
            | 53..=55
            | 61..=69
            | 71
            | 73..=75
            | 77
            | 79
            | 81..=89
            | 91..=99,
        )
    )
}

/// Digits without `+`. The length decides, not the prefix: area code 55 exists.
pub(super) fn read(digits: &str) -> Result<Phone, Doubt> {
    let digits = digits.strip_prefix("00").unwrap_or(digits);
    let (trunk, digits) = match digits.strip_prefix('0') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    match (digits.len(), digits.strip_prefix("55")) {
        (10 | 11, _) => read_national(digits),
        // `55 011 ..`: the trunk zero behind the country code.
        (13 | 14, Some(national)) if national.starts_with('0') => read_international(national),
        (12 | 13, Some(national)) => read_international(national),
        // `55` twice, from a platform that joins a country code to a number that has one.
        (14 | 15, Some(rest)) if rest.starts_with("55") => read_international(&rest[2..]),
        // `0 15 11 ..`: a carrier code between trunk zero and area code.
        (13, None) if trunk => read_national(&digits[2..]),
        (0..10, _) => Err(Doubt::Invalid("too_short")),
        (12 | 13, None) => Err(Doubt::Invalid("no_country_code")),
        _ => Err(Doubt::Invalid("length")),
    }
}

/// What stands behind a country code. A short mobile is the spelling that WhatsApp itself uses for old accounts (FC-16), and
/// is read as that line; without the country code it is a person's typing, which may as well miss a digit.
pub(super) fn read_international(national: &str) -> Result<Phone, Doubt> {
    let national = national.strip_prefix('0').unwrap_or(national);
    match read_national(national) {
        Err(Doubt::Ambiguous(_)) => {
            let (area, subscriber) = national.split_at(2);
            Ok(Phone(format!("55{area}9{subscriber}")))
        }
        other => other,
    }
}

/// Area code and subscriber, without a country code.
fn read_national(national: &str) -> Result<Phone, Doubt> {
    if !matches!(national.len(), 10 | 11) {
        return Err(Doubt::Invalid("length"));
    }
    let (area, subscriber) = national.split_at(2);
    if !is_area_code(area) {
        return Err(Doubt::Invalid("area_code"));
    }
    if is_filler(national) || is_filler(subscriber) {
        return Err(Doubt::Invalid("placeholder"));
    }
    match (subscriber.len(), subscriber.as_bytes()[0]) {
        (9, b'9') | (8, b'2'..=b'5') => Ok(Phone(format!("55{national}"))),
        // Every mobile got a leading 9 by 2016, so these can only be old spellings of one.
        (8, b'6'..=b'8') => Ok(Phone(format!("55{area}9{subscriber}"))),
        // An old spelling, or a new one with a digit missing: nobody can tell.
        (8, b'9') => Err(Doubt::Ambiguous("short_mobile_or_missing_digit")),
        _ => Err(Doubt::Invalid("not_a_subscriber_number")),
    }
}

/// What people type to get past a form: one digit again and again, or a run up or down.
fn is_filler(digits: &str) -> bool {
    let step = |by: u8| digits.as_bytes().windows(2).all(|pair| (pair[0] - b'0' + by) % 10 == pair[1] - b'0');
    step(0) || step(1) || step(9)
}

/// Area code and last eight digits, if these are E.164 digits of a mobile in either spelling.
///
/// The digit after the 9 must be 6 to 9: all lines that existed before the ninth digit have it, and a newer line
/// (`41 9 3333-0000`) must not equal the landline `41 3333-0000`.
pub(super) fn mobile_line(digits: &str) -> Option<(&str, &str)> {
    let national = digits.strip_prefix("55").filter(|national| matches!(national.len(), 10 | 11))?;
    let (area, subscriber) = national.split_at(2);
    let line = match subscriber.len() {
        9 => subscriber.strip_prefix('9')?,
        _ => subscriber,
    };
    (is_area_code(area) && matches!(line.as_bytes()[0], b'6'..=b'9')).then_some((area, line))
}
