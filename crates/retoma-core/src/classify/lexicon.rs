//! Named groups of words, and the words of a message as a line that phrases (see [`phrase`](super::phrase)) are laid over.
//!
//! A group lists words that mean one thing to a rule: `{ nao: [nao, n, naum, nunca], mandar: ["mand(a|e|ar)", "envi(a|e|ar)"] }`.
//! Brackets spell endings out, `{outro}` takes in a group that stands further up, and a `~` before an item says that its
//! words are also meant with one letter wrong, missing, doubled or swapped. Typing mistakes are put right before phrases are
//! looked for, towards words with a `~` only, and never from one known word to another: `recebeu` is no `receber`.

use std::collections::{BTreeMap, BTreeSet};

use super::fold;

/// A word shorter than this is too near to others to be guessed.
const GUESSED_FROM: usize = 6;
/// Words of a group with all endings spelled out; more is a mistake in the brackets.
const WORDS_MAX: usize = 2_000;

/// How every line begins.
const BEGIN: &str = " ^ ";

/// The groups of a flow, endings spelled out.
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    groups: BTreeMap<String, Vec<String>>,
    /// Every single word that a group or a phrase names.
    known: BTreeSet<String>,
    /// The words that typing mistakes are put right towards.
    guessed: Vec<Vec<char>>,
}

impl Lexicon {
    /// Groups as the flow file writes them, in file order. Errors name the group by its place.
    pub fn read(groups: &[(String, Vec<String>)]) -> Result<Self, Vec<(usize, String)>> {
        let mut lexicon = Self::default();
        let mut errors = Vec::new();
        for (place, (name, items)) in groups.iter().enumerate() {
            let mut words = Vec::new();
            for item in items {
                if let Err(problem) = lexicon.spell(item, &mut words) {
                    errors.push((place, format!("{item:?}: {problem}")));
                }
            }
            if words.len() > WORDS_MAX {
                errors.push((place, format!("it has more than {WORDS_MAX} words")));
            }
            lexicon.groups.insert(name.clone(), words);
        }
        if errors.is_empty() { Ok(lexicon) } else { Err(errors) }
    }

    /// The words and word sequences of a group.
    pub(super) fn group(&self, name: &str) -> Option<&[String]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// Notes a word of a phrase, which is then no typing mistake.
    pub(super) fn know(&mut self, word: &str) {
        self.known.insert(word.to_owned());
    }

    fn spell(&mut self, item: &str, words: &mut Vec<String>) -> Result<(), String> {
        let (is_guessed, item) = match item.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, item),
        };
        if let Some(name) = item.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let group = self.groups.get(name).ok_or_else(|| format!("no group `{name}` stands further up"))?;
            words.extend(group.iter().cloned());
            return Ok(());
        }
        for spelled in endings(item)? {
            let folded = fold::fold(&spelled);
            let parts: Vec<&str> = fold::words(&folded).collect();
            if parts.is_empty() {
                return Err("it holds no letter and no digit".to_owned());
            }
            for part in &parts {
                self.known.insert((*part).to_owned());
                if is_guessed && part.len() >= GUESSED_FROM {
                    self.guessed.push(part.chars().collect());
                }
            }
            words.push(parts.join(" "));
        }
        Ok(())
    }

    /// A message as phrases see it: a space before and after each word, `,` and `.` where its sentences pause and end, `^`
    /// and `$` where it begins and ends.
    pub(super) fn line(&self, text: &str) -> String {
        let text: String = text.chars().take(fold::CHARS_MAX).collect();
        let mut line = String::with_capacity(text.len() + 8);
        line.push_str(BEGIN);
        for part in text.split(['\n', '\r']) {
            // Signs that are words: "não manda +", and a hand that says stop.
            let part = part.replace('+', " mais ").replace(['🛑', '⛔'], " stop ");
            self.add(&fold::fold(&part), &mut line);
            pause(&mut line, '.');
        }
        if has_pause(&line) {
            line.truncate(line.len() - 2);
        }
        line.push_str("$ ");
        line
    }

    fn add(&self, folded: &str, line: &mut String) {
        let mut rest = folded;
        while let Some(first) = rest.chars().next() {
            if !first.is_alphanumeric() {
                rest = &rest[first.len_utf8()..];
                match first {
                    ',' | ';' | ':' | '(' | ')' => pause(line, ','),
                    '.' | '!' | '?' | '…' => pause(line, '.'),
                    _ => {}
                }
                continue;
            }
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match self.put_right(word) {
                Some(meant) => line.push_str(&meant),
                None => line.push_str(word),
            }
            line.push(' ');
            rest = after;
        }
    }

    /// The known word that was meant; `None` for a word that is known, or near to none.
    fn put_right(&self, word: &str) -> Option<String> {
        if self.known.contains(word) {
            return None;
        }
        let letters: Vec<char> = word.chars().collect();
        // Two of a vowel is a key held down, too, but only where that gives a word that is known.
        let held = letters.windows(2).any(|pair| pair[0] == pair[1] && "aeiou".contains(pair[0]));
        if held {
            let mut once = letters.clone();
            once.dedup_by(|a, b| a == b && "aeiou".contains(*a));
            let once: String = once.into_iter().collect();
            if self.known.contains(&once) {
                return Some(once);
            }
        }
        if letters.len() + 1 < GUESSED_FROM {
            return None;
        }
        self.guessed.iter().find(|meant| is_one_slip(&letters, meant)).map(|meant| meant.iter().collect())
    }
}

fn has_pause(line: &str) -> bool {
    line.ends_with(" , ") || line.ends_with(" . ")
}

/// One pause is enough, and the stronger one stays. A message begins with none.
fn pause(line: &mut String, mark: char) {
    if has_pause(line) {
        if mark == '.' {
            line.truncate(line.len() - 2);
            line.push_str(". ");
        }
    } else if line != BEGIN {
        line.push(mark);
        line.push(' ');
    }
}

/// Whether one letter was typed wrong, left out, added, or swapped with its neighbour.
fn is_one_slip(typed: &[char], meant: &[char]) -> bool {
    if typed.len().abs_diff(meant.len()) > 1 {
        return false;
    }
    let head = typed.iter().zip(meant).take_while(|(a, b)| a == b).count();
    let (typed, meant) = (&typed[head..], &meant[head..]);
    let tail = typed.iter().rev().zip(meant.iter().rev()).take_while(|(a, b)| a == b).count();
    let (typed, meant) = (&typed[..typed.len() - tail], &meant[..meant.len() - tail]);
    match (typed, meant) {
        ([_] | [], [_] | []) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// `mand(a|e(m|))` as `manda`, `mandem`, `mande`.
fn endings(item: &str) -> Result<Vec<String>, String> {
    let Some(open) = item.find('(') else {
        return match item.find([')', '|', '{', '}', '[', '*', '?', '\\']) {
            Some(_) => Err("only brackets with `|` between endings are understood here".to_owned()),
            None => Ok(vec![item.to_owned()]),
        };
    };
    let mut depth = 0;
    let mut starts = open + 1;
    let mut parts = Vec::new();
    for (place, sign) in item.char_indices().skip_while(|(place, _)| *place < open) {
        match sign {
            '(' => depth += 1,
            '|' if depth == 1 => {
                parts.push(&item[starts..place]);
                starts = place + 1;
            }
            ')' if depth == 1 => {
                parts.push(&item[starts..place]);
                let (before, after) = (&item[..open], endings(&item[place + 1..])?);
                let mut spelled = Vec::new();
                for part in parts {
                    for ending in endings(part)? {
                        spelled.extend(after.iter().map(|after| format!("{before}{ending}{after}")));
                    }
                }
                return if spelled.len() > WORDS_MAX { Err("too many endings".to_owned()) } else { Ok(spelled) };
            }
            ')' => depth -= 1,
            _ => {}
        }
    }
    Err("a bracket is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(groups: &[(&str, &[&str])]) -> Result<Lexicon, Vec<(usize, String)>> {
        let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        Lexicon::read(&groups.iter().map(|(name, items)| ((*name).to_owned(), owned(items))).collect::<Vec<_>>())
    }

    #[test]
    fn endings_are_spelled_out() {
        let found = lexicon(&[("nao", &["Não", "n"]), ("x", &["mand(a|e(m|))", "{nao}", "por favor", "(a|b)(c|d)"])]).unwrap();
        let expected = ["manda", "mandem", "mande", "nao", "n", "por favor", "ac", "ad", "bc", "bd"];
        assert_eq!(found.group("x").unwrap(), expected);
        assert_eq!(found.group("y"), None);
    }

    #[test]
    fn groups_that_cannot_work_are_refused() {
        for (item, expected) in [
            ("mand(a", "not closed"),
            ("mand)a", "only brackets"),
            ("ma*", "only brackets"),
            ("{depois}", "further up"),
            ("!?", "no letter"),
        ] {
            let errors = lexicon(&[("a", &["b"]), ("g", &[item]), ("depois", &["c"])]).unwrap_err();
            assert_eq!((errors.len(), errors[0].0), (1, 1));
            assert!(errors[0].1.contains(expected), "{item}: {errors:?}");
        }
        let many = format!("{0}{0}{0}{0}{0}", "(a|b|c|d|e)");
        assert!(lexicon(&[("g", &[&many])]).is_err());
    }

    #[test]
    fn a_message_is_a_line_of_words_and_pauses() {
        let words = lexicon(&[("g", &["~mensage(m|ns)", "~receber", "recebeu", "sair", "nao"])]).unwrap();
        let table = [
            ("Não, obrigada!!! Tchau 😀", " ^ nao , obrigada . tchau $ "),
            ("oi\n\nnão quero", " ^ oi . nao quero $ "),
            ("oi,\nnão", " ^ oi . nao $ "),
            ("n manda + msg...", " ^ n manda mais msg $ "),
            ("🛑", " ^ stop $ "),
            ("mensage menssagem mensajem mesnagem mensagm", " ^ mensagem mensagem mensagem mensagem mensagem $ "),
            // A known word stays, and so does what is two slips away or too short.
            ("recebeu resseber mesage", " ^ recebeu receber mesage $ "),
            ("saiir sairr nãao", " ^ sair sairr nao $ "),
            ("reembolso passeei", " ^ reembolso passeei $ "),
            ("...", " ^ $ "),
            ("", " ^ $ "),
        ];
        for (text, expected) in table {
            assert_eq!(words.line(text), expected, "{text:?}");
        }
    }
}
