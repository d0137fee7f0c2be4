//! Normalisation of chat text: what people mean to type, without the ways they type it.
//!
//! Accents fold away, capitals fall, runs of white space become one space, a letter held down ("siiim") becomes one
//! letter, and whatever is neither letter nor digit is trimmed from both ends ("Sair!! 🙏" is `sair`). A table of the
//! letters that Latin keyboards produce stands here instead of a Unicode crate: it is all that these flows meet, and what
//! it does not know simply stays as it is.

/// No rule needs more of a message than this; the rest of a pasted page is not read.
pub(super) const CHARS_MAX: usize = 4_096;

/// Normalises a text.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len().min(CHARS_MAX));
    for character in text.chars().take(CHARS_MAX).filter(|c| !is_invisible(*c)) {
        if character.is_whitespace() {
            if !folded.ends_with(' ') {
                folded.push(' ');
            }
            continue;
        }
        // Lowering `İ` gives a combining mark of its own.
        for lower in plain_letter(character).to_lowercase().filter(|c| !is_invisible(*c)) {
            match base_letters(lower) {
                Some(base) => folded.push_str(base),
                None => folded.push(lower),
            }
        }
    }
    squeeze(folded.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// The words of a normalised text: runs of letters and digits.
pub fn words(folded: &str) -> impl Iterator<Item = &str> {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether a character never survives [`fold`], so that a pattern with it never matches.
pub fn is_folded_away(character: char) -> bool {
    is_invisible(character) || character.to_lowercase().any(|lower| base_letters(lower).is_some())
}

/// Three or more of one letter in a row become one. Two stay, since `carro` and `passo` are words; digits stay, since
/// `1000` is a number.
fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| c != first).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let is_held_down = first.is_alphabetic() && run.chars().count() > 2;
        squeezed.push_str(if is_held_down { &run[..first.len_utf8()] } else { run });
        rest = after;
    }
    squeezed
}

/// Combining marks, zero-width characters, direction marks and variation selectors.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

/// Full-width and "fancy font" letters (mathematical bold, italic, script, ...) as plain ones.
fn plain_letter(character: char) -> char {
    let code = character as u32;
    let ascii = match code {
        0xff01..=0xff5e => code - 0xfee0,
        0x1d400..=0x1d6a3 => {
            let place = (code - 0x1d400) % 52;
            if place < 26 { u32::from(b'A') + place } else { u32::from(b'a') + place - 26 }
        }
        _ => return character,
    };
    char::from_u32(ascii).unwrap_or(character)
}

/// The plain letters of a lower-case letter with a mark; `None` for any other character.
fn base_letters(lower: char) -> Option<&'static str> {
    Some(match lower {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' | 'ª' | 'ạ'..='ặ' => "a",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'ẹ'..='ệ' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | 'ǐ' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ǒ' | 'º' | 'ọ'..='ợ' => "o",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' => "s",
        'ţ' | 'ť' | 'ŧ' => "t",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ǔ' | 'ụ'..='ự' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' | 'ỹ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        'æ' => "ae",
        'œ' => "oe",
        'ß' => "ss",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_meaning_has_one_spelling() {
        let table = [
            ("Não", "nao"),
            ("NA\u{303}O", "nao"),
            ("  Quanto\u{a0}\n custa?? ", "quanto custa"),
            ("Sair!! 🙏", "sair"),
            ("👉 preço 👈", "preco"),
            ("siiiiim", "sim"),
            ("carro passo", "carro passo"),
            ("R$ 1000,00", "r$ 1000,00"),
            ("à vista", "a vista"),
            ("ＳＡＩＲ", "sair"),
            ("𝐒𝐀𝐈𝐑", "sair"),
            ("𝓹𝓲𝔁", "pix"),
            ("s\u{200b}air\u{feff}", "sair"),
            ("1️⃣", "1"),
            ("1º", "1o"),
            ("İstanbul", "istanbul"),
            ("…", ""),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(fold(text), expected, "{text:?}");
            assert_eq!(fold(expected), expected, "folding twice changes nothing: {text:?}");
        }
    }

    #[test]
    fn a_pasted_page_is_cut() {
        assert_eq!(fold(&"ab ".repeat(100_000)).chars().count(), CHARS_MAX);
    }
}
