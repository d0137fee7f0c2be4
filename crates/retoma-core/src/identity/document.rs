//! CPF and CNPJ: punctuation off, check digits tested.

/// The bare document, or `None`.
pub(super) fn read(text: &str) -> Option<String> {
    let document: String =
        text.trim().chars().filter(|c| !matches!(c, '.' | '-' | '/' | ' ')).map(|c| c.to_ascii_uppercase()).collect();
    let values: Vec<u32> = document.bytes().map(value).collect::<Option<_>>()?;
    let all_equal = values.windows(2).all(|pair| pair[0] == pair[1]);
    let all_digits = values.iter().all(|value| *value <= 9);
    let right = match values.len() {
        // Weights run 10, 9, .. 2 for the first check digit and 11, 10, .. 2 for the second.
        11 => all_digits && checks(&values, 10),
        // Weights run 2..9 from the right, again and again. Letters (since 2026) only before the check digits.
        14 => values[12..].iter().all(|value| *value <= 9) && checks(&values, 8),
        _ => false,
    };
    (right && !all_equal).then_some(document)
}

/// What a character counts: its code minus that of `0`, letters included (Receita Federal's rule for the CNPJ).
fn value(byte: u8) -> Option<u32> {
    byte.is_ascii_alphanumeric().then(|| u32::from(byte - b'0'))
}

/// Whether the last two values are the check digits of those before them; weights count 2, 3, .. from the right and start
/// over after `cycle` of them.
fn checks(values: &[u32], cycle: usize) -> bool {
    let digit = |body: &[u32]| {
        let weights = (2u32..).take(cycle).cycle();
        let sum: u32 = body.iter().rev().zip(weights).map(|(value, weight)| value * weight).sum();
        match sum % 11 {
            0 | 1 => 0,
            rest => 11 - rest,
        }
    };
    let last = values.len() - 1;
    digit(&values[..last - 1]) == values[last - 1] && digit(&values[..last]) == values[last]
}
