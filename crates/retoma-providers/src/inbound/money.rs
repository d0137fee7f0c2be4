//! Amounts, from the text of a JSON number: no float on the way.

/// `R$ 1.234,50` from `1234.5`, as Brazilians write it; other currencies by their code. Rounded half up to cents. `None`
/// for what is no plain decimal.
pub(crate) fn in_reais(amount: &str, currency: &str) -> Option<String> {
    let (negative, amount) = amount.strip_prefix('-').map_or((false, amount), |rest| (true, rest));
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // Beyond fifteen digits it is no price.
    if whole.is_empty() || whole.len() > 15 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let digit = |at: usize| u64::from(fraction.as_bytes().get(at).map_or(0, |byte| byte - b'0'));
    let cents = whole.parse::<u64>().ok()? * 100 + digit(0) * 10 + digit(1) + u64::from(digit(2) >= 5);
    let whole = (cents / 100).to_string();
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push('.');
        }
        grouped.push(digit);
    }
    let symbol = if currency == "BRL" { "R$" } else { currency };
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{symbol} {grouped},{:02}", cents % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_read_as_brazilians_write_them() {
        for (amount, currency, expected) in [
            ("197", "BRL", Some("R$ 197,00")),
            ("939.81", "BRL", Some("R$ 939,81")),
            ("1234567.5", "BRL", Some("R$ 1.234.567,50")),
            ("0.1", "BRL", Some("R$ 0,10")),
            ("10.00", "BRL", Some("R$ 10,00")),
            ("1.005", "BRL", Some("R$ 1,01")),
            ("999.995", "BRL", Some("R$ 1.000,00")),
            ("-5.5", "BRL", Some("-R$ 5,50")),
            ("97", "USD", Some("USD 97,00")),
            ("1e3", "BRL", None),
            ("", "BRL", None),
            ("abc", "BRL", None),
            ("9999999999999999", "BRL", None),
        ] {
            assert_eq!(in_reais(amount, currency).as_deref(), expected, "{amount}");
        }
    }
}
