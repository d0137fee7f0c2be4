//! The other ways in which one JSON text may have been written, to name "parsed and written again" when a signature fails.
//!
//! Works on the text and not on a parsed value, so that the order of keys and the spelling of numbers stay as they came:
//! that is what the programs do that re-write a body on its way.

use std::fmt::Write;

/// How a writer spells JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// `\u00e7` instead of the letter.
    ascii: bool,
    /// `\/` instead of `/`.
    slashes: bool,
    /// A blank behind `:` and `,`.
    spaced: bool,
}

/// JavaScript; Python with and without `ensure_ascii`; Meta and PHP; PHP without escaped slashes.
pub(super) const STYLES: [Style; 6] = [
    Style { ascii: false, slashes: false, spaced: false },
    Style { ascii: true, slashes: true, spaced: false },
    Style { ascii: true, slashes: false, spaced: false },
    Style { ascii: false, slashes: true, spaced: false },
    Style { ascii: true, slashes: false, spaced: true },
    Style { ascii: false, slashes: false, spaced: true },
];

/// Valid JSON text, in another style.
pub(super) fn respell(text: &str, style: Style) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match (in_string, c) {
            (_, '"') => {
                in_string = !in_string;
                out.push('"');
            }
            (true, '\\') => {
                let mut units = Vec::new();
                if let Some(plain) = escape(&mut chars, &mut units) {
                    put(&mut out, plain, style);
                    continue;
                }
                // A run of \u escapes: pairs of surrogates are one character.
                while chars.peek() == Some(&'\\') && chars.clone().nth(1) == Some('u') {
                    chars.next();
                    escape(&mut chars, &mut units);
                }
                for unit in char::decode_utf16(units) {
                    put(&mut out, unit.unwrap_or('\u{fffd}'), style);
                }
            }
            (true, c) => put(&mut out, c, style),
            (false, ' ' | '\t' | '\r' | '\n') => {}
            (false, ':' | ',') if style.spaced => {
                out.push(c);
                out.push(' ');
            }
            (false, c) => out.push(c),
        }
    }
    out
}

/// The character behind a backslash; of `\uXXXX` the unit, added to `units`.
fn escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, units: &mut Vec<u16>) -> Option<char> {
    match chars.next()? {
        'u' => {
            let hex: String = chars.by_ref().take(4).collect();
            units.push(u16::from_str_radix(&hex, 16).unwrap_or(0xfffd));
            None
        }
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        other => Some(other),
    }
}

fn put(out: &mut String, c: char, style: Style) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '/' if style.slashes => out.push_str("\\/"),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if c < ' ' || (style.ascii && !c.is_ascii()) => {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_spelled_in_every_style() {
        // FC-43.
        let texts = [
            r#"{"z":"promoção 😀 a/b","a":[1.0, "\n\"\\"]}"#,
            r#"{ "z" : "promo\u00e7\u00E3o \ud83d\ude00 a\/b", "a": [1.0,"\n\"\\"] }"#,
        ];
        let expected = [
            r#"{"z":"promoção 😀 a/b","a":[1.0,"\n\"\\"]}"#,
            r#"{"z":"promo\u00e7\u00e3o \ud83d\ude00 a\/b","a":[1.0,"\n\"\\"]}"#,
            r#"{"z":"promo\u00e7\u00e3o \ud83d\ude00 a/b","a":[1.0,"\n\"\\"]}"#,
            r#"{"z":"promoção 😀 a\/b","a":[1.0,"\n\"\\"]}"#,
            r#"{"z": "promo\u00e7\u00e3o \ud83d\ude00 a/b", "a": [1.0, "\n\"\\"]}"#,
            r#"{"z": "promoção 😀 a/b", "a": [1.0, "\n\"\\"]}"#,
        ];
        for text in texts {
            for (style, expected) in STYLES.iter().zip(expected) {
                assert_eq!(respell(text, *style), expected, "{style:?}");
            }
        }
    }

    #[test]
    fn what_is_no_json_ends_all_the_same() {
        for text in ["\"\\", "\"\\u12", "\"\\ud83d", "{\"a", "\\\\\\u"] {
            for style in STYLES {
                let _ = respell(text, style);
            }
        }
    }
}
