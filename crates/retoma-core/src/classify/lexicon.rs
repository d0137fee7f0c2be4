//! Named groups of words, and messages as strings with one letter per word, which phrases (see `phrase`)
//! are laid over.
//!
//! A group lists words that mean one thing to a rule: `{ nao: [nao, n, naum, nunca], mandar: ["mand(a|e|ar)", "envi(a|e|ar)"] }`.
//! Brackets spell endings out, `{outro}` takes in a group that stands further up, and a `~` before an item says that its
//! words are also meant with one letter wrong, missing, doubled or swapped. Typing mistakes are put right before phrases are
//! looked for, towards words with a `~` only, and never from one known word to another: `recebeu` is no `receber`.
//!
//! Every word that a group or a phrase names has a letter of its own, and all other words share one. So a group of hundreds
//! of words is one class of letters to a regular expression, a message is some dozens of letters, and both stay small.

use std::collections::{BTreeMap, HashMap};

use super::fold;

/// A word shorter than this is too near to others to be guessed.
const GUESSED_FROM: usize = 6;
/// Words of a group with all endings spelled out; more is a mistake in the brackets.
const WORDS_MAX: usize = 2_000;

/// Where a message begins and ends, where a sentence of it pauses and ends, and a word that nothing names.
pub(super) const BEGIN: char = '<';
pub(super) const END: char = '>';
const COMMA: char = ',';
const STOP: char = '.';
const OTHER: char = '_';
/// The letters of known words begin here: a long stretch that means nothing to a regular expression.
const FIRST_LETTER: u32 = 0x4e00;

/// The groups of a flow, endings spelled out.
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    /// Items of one word, or of several in a row.
    groups: BTreeMap<String, Vec<Vec<char>>>,
    letters: HashMap<String, char>,
    /// The words that typing mistakes are put right towards.
    guessed: Vec<(Vec<char>, char)>,
}

impl Lexicon {
    /// Groups as the flow file writes them, in file order. Errors name the group by its place.
    pub fn read(groups: &[(String, Vec<String>)]) -> Result<Self, Vec<(usize, String)>> {
        let mut lexicon = Self::default();
        let mut errors = Vec::new();
        for (place, (name, items)) in groups.iter().enumerate() {
            let mut spelled = Vec::new();
            for item in items {
                if let Err(problem) = lexicon.spell(item, &mut spelled) {
                    errors.push((place, format!("{item:?}: {problem}")));
                }
            }
            if spelled.len() > WORDS_MAX {
                errors.push((place, format!("it has more than {WORDS_MAX} words")));
            }
            lexicon.groups.insert(name.clone(), spelled);
        }
        if errors.is_empty() { Ok(lexicon) } else { Err(errors) }
    }

    /// The items of a group, as letters.
    pub(super) fn group(&self, name: &str) -> Option<&[Vec<char>]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// The letter of a word, which is known from now on.
    pub(super) fn letter(&mut self, word: &str) -> char {
        let next = u32::try_from(self.letters.len()).expect("a flow file holds fewer words") + FIRST_LETTER;
        *self.letters.entry(word.to_owned()).or_insert_with(|| char::from_u32(next).unwrap_or(OTHER))
    }

    fn spell(&mut self, item: &str, spelled: &mut Vec<Vec<char>>) -> Result<(), String> {
        let (is_guessed, item) = match item.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, item),
        };
        if let Some(name) = item.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let group = self.groups.get(name).ok_or_else(|| format!("no group `{name}` stands further up"))?;
            spelled.extend(group.iter().cloned());
            return Ok(());
        }
        for text in endings(item)? {
            let folded = fold::fold(&text);
            let mut letters = Vec::new();
            for word in fold::words(&folded) {
                let letter = self.letter(word);
                if is_guessed && word.len() >= GUESSED_FROM {
                    self.guessed.push((word.chars().collect(), letter));
                }
                letters.push(letter);
            }
            if letters.is_empty() {
                return Err("it holds no letter and no digit".to_owned());
            }
            spelled.push(letters);
        }
        Ok(())
    }

    /// A message as phrases see it: a letter for each word, and signs where it begins, pauses and ends.
    pub(super) fn line(&self, text: &str) -> String {
        let text: String = text.chars().take(fold::CHARS_MAX).collect();
        let mut line = String::from(BEGIN);
        for part in text.split(['\n', '\r']) {
            // Signs that are words: "não manda +", and a hand that says stop.
            let part = part.replace('+', " mais ").replace(['🛑', '⛔'], " stop ");
            self.add(&fold::fold(&part), &mut line);
            pause(&mut line, STOP);
        }
        if line.ends_with([COMMA, STOP]) {
            line.pop();
        }
        line.push(END);
        line
    }

    fn add(&self, folded: &str, line: &mut String) {
        let mut rest = folded;
        while let Some(first) = rest.chars().next() {
            if !first.is_alphanumeric() {
                rest = &rest[first.len_utf8()..];
                match first {
                    ',' | ';' | ':' | '(' | ')' => pause(line, COMMA),
                    '.' | '!' | '?' | '…' => pause(line, STOP),
                    _ => {}
                }
                continue;
            }
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            line.push(self.letters.get(word).copied().or_else(|| self.put_right(word)).unwrap_or(OTHER));
            rest = after;
        }
    }

    /// The letter of the known word that was meant by an unknown one.
    fn put_right(&self, word: &str) -> Option<char> {
        let typed: Vec<char> = word.chars().collect();
        // Two of a vowel is a key held down, too, but only where that gives a word that is known.
        if typed.windows(2).any(|pair| pair[0] == pair[1] && "aeiou".contains(pair[0])) {
            let mut once = typed.clone();
            once.dedup_by(|a, b| a == b && "aeiou".contains(*a));
            let once: String = once.into_iter().collect();
            if let Some(letter) = self.letters.get(&once) {
                return Some(*letter);
            }
        }
        if typed.len() + 1 < GUESSED_FROM {
            return None;
        }
        self.guessed.iter().find(|(meant, _)| is_one_slip(&typed, meant)).map(|(_, letter)| *letter)
    }
}

/// One pause is enough, and the stronger one stays. A message begins with none.
fn pause(line: &mut String, mark: char) {
    if line.ends_with(STOP) || line.ends_with(BEGIN) {
        return;
    }
    if line.ends_with(COMMA) {
        if mark == COMMA {
            return;
        }
        line.pop();
    }
    line.push(mark);
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

    /// A line with the words that its letters stand for.
    fn spoken(lexicon: &Lexicon, line: impl IntoIterator<Item = char>) -> String {
        let word = |letter| lexicon.letters.iter().find(|(_, known)| **known == letter).map(|(word, _)| word.clone());
        line.into_iter().map(|letter| word(letter).unwrap_or_else(|| letter.to_string())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn endings_are_spelled_out() {
        let found =
            lexicon(&[("nao", &["Não", "n"]), ("x", &["mand(a|e(m|))", "{nao}", "por favor", "(a|b)(c|d)"])]).unwrap();
        let items: Vec<String> = found.group("x").unwrap().iter().map(|item| spoken(&found, item.clone())).collect();
        assert_eq!(items, ["manda", "mandem", "mande", "nao", "n", "por favor", "ac", "ad", "bc", "bd"]);
        assert_eq!(found.group("y"), None);
    }

    #[test]
    fn groups_that_cannot_work_are_refused() {
        for (item, expected) in [
            ("mand(a", "not closed"),
            ("mand)a", "only brackets"),
            ("ma*", "only brackets"),
            ("{depois}", "further up"),
            ("...", "no letter"),
        ] {
            let errors = lexicon(&[("a", &["b"]), ("g", &[item]), ("depois", &["c"])]).unwrap_err();
            assert_eq!((errors.len(), errors[0].0), (1, 1));
            assert!(errors[0].1.contains(expected), "{item}: {errors:?}");
        }
        let many = "(a|b|c|d|e)".repeat(5);
        assert!(lexicon(&[("g", &[&many])]).is_err());
    }

    #[test]
    fn a_message_is_a_line_of_words_and_pauses() {
        let words = ["~mensage(m|ns)", "~receber", "recebeu", "sair", "nao", "mais", "stop", "n", "manda", "oi"];
        let words = lexicon(&[("g", &words)]).unwrap();
        let table = [
            ("Não, obrigada!!! Tchau 😀", "< nao , _ . _ >"),
            ("oi\n\nnão quero", "< oi . nao _ >"),
            ("oi,\nnão", "< oi . nao >"),
            ("n manda + msg...", "< n manda mais _ >"),
            ("🛑", "< stop >"),
            ("mensage menssagem mensajem mesnagem mensagm", "< mensagem mensagem mensagem mensagem mensagem >"),
            // A known word stays, and so does what is two slips away or too short.
            ("recebeu recber mesage", "< recebeu receber _ >"),
            ("saiir sairr nãao", "< sair _ nao >"),
            ("...", "< >"),
            ("", "< >"),
        ];
        for (text, expected) in table {
            assert_eq!(spoken(&words, words.line(text).chars()), expected, "{text:?}");
        }
    }
}
