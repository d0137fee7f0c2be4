//! The language of `match: phrase`: words in a row, some of them optional, some of them groups.
//!
//! ```text
//! {nao} {me}? {mandar} (mais|nada)+ $      `?` maybe, `*` any number, `+` one or more, `|` or
//! ^ sair (da|dessa) lista                  `^` a sentence begins here, or a part of one; `$` it ends
//! ^^ {oi}* sair $$                         `^^` the message begins here, `$$` it ends
//! quero _ sair                             `_` any one word; `,` a comma or full stop
//! ```
//! A word stands for itself, without accents or capitals. Between two words of a phrase no other word may stand, and no
//! comma or full stop unless the phrase has a `,`. A phrase becomes a regular expression over the line of
//! [`Lexicon::line`], where each word is a letter; so it runs in linear time, like the others.

use super::fold;
use super::lexicon::Lexicon;

/// Signs and what they stand for in a line. The longer one of two comes first.
const SIGNS: [(&str, &str); 6] =
    [("^^", "<"), ("^", "[<,.]"), ("$$", ">"), ("$", "[>,.]"), (",", "[,.]"), ("_", "[^<>,.]")];

/// A regular expression that finds the phrase in a line.
pub(super) fn compile(text: &str, lexicon: &mut Lexicon) -> Result<String, String> {
    let mut parser = Parser { rest: text.trim(), lexicon };
    let body = parser.either()?;
    if !parser.rest.is_empty() {
        return Err(format!("`{}` is not understood here", parser.rest));
    }
    Ok(body)
}

struct Parser<'a> {
    rest: &'a str,
    lexicon: &'a mut Lexicon,
}

impl Parser<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn either(&mut self) -> Result<String, String> {
        let mut regex = format!("(?:{}", self.row()?);
        while self.take("|") {
            regex.push('|');
            regex.push_str(&self.row()?);
        }
        regex.push(')');
        Ok(regex)
    }

    fn row(&mut self) -> Result<String, String> {
        let mut regex = String::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            regex.push_str(&self.part()?);
            if let Some(times) = ["?", "*", "+"].into_iter().find(|sign| self.take(sign)) {
                regex.push_str(times);
            }
        }
        if regex.is_empty() { Err("nothing stands where a word should".to_owned()) } else { Ok(regex) }
    }

    fn part(&mut self) -> Result<String, String> {
        if self.take("(") {
            let inner = self.either()?;
            return if self.take(")") { Ok(inner) } else { Err("a bracket is not closed".to_owned()) };
        }
        for (sign, regex) in SIGNS {
            if self.take(sign) {
                return Ok(regex.to_owned());
            }
        }
        if self.take("{") {
            let (name, rest) = self.rest.split_once('}').ok_or("a `{` is not closed")?;
            let group = self.lexicon.group(name).ok_or_else(|| format!("no group is named `{name}`"))?;
            let (words, rows): (Vec<&Vec<char>>, Vec<&Vec<char>>) = group.iter().partition(|item| item.len() == 1);
            let mut ways: Vec<String> = rows.into_iter().map(|row| row.iter().collect()).collect();
            if !words.is_empty() {
                ways.push(format!("[{}]", words.into_iter().flatten().collect::<String>()));
            }
            self.rest = rest;
            self.gap();
            return Ok(format!("(?:{})", ways.join("|")));
        }
        let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(format!("`{}` is not understood here", self.rest));
        }
        let (word, rest) = self.rest.split_at(end);
        let letter = self.lexicon.letter(&fold::fold(word));
        self.rest = rest;
        self.gap();
        Ok(letter.to_string())
    }

    fn gap(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn lexicon() -> Lexicon {
        let groups = [("nao", vec!["nao", "n"]), ("favor", vec!["por favor", "pfv"])];
        let owned =
            |(name, items): (&str, Vec<&str>)| (name.to_owned(), items.into_iter().map(str::to_owned).collect());
        Lexicon::read(&groups.map(owned)).unwrap()
    }

    #[test]
    fn a_phrase_finds_its_words_in_a_row() {
        let table = [
            ("{nao} me? manda mais", "ah, N manda mais isso", true),
            ("{nao} me? manda mais", "não me manda mais", true),
            ("{nao} me? manda mais", "não. manda mais", false),
            ("{nao} me? manda mais", "não te manda mais", false),
            ("{nao} me? manda mais", "irmão manda mais", false),
            ("não ,? manda", "não, manda", true),
            ("(quero|vou) sair $", "vou sair", true),
            ("(quero|vou) sair $", "quero sair, obrigado", true),
            ("(quero|vou) sair $", "quero sair daqui", false),
            ("^ sair {favor}* $", "oi, sair por favor pfv. tchau", true),
            ("^ sair {favor}* $", "quero sair", false),
            ("^^ sair $$", "Sair!", true),
            ("^^ sair $$", "sair, por favor", false),
            ("^^ sair $$", "oi, sair", false),
            ("(^|vou) sair", "vou sair", true),
            ("quero _ sair", "quero muito sair", true),
            ("quero _ sair", "quero, sair", false),
            ("(mais|nada)+ $", "manda mais nada!", true),
        ];
        for (phrase, text, expected) in table {
            let mut lexicon = lexicon();
            let regex = Regex::new(&compile(phrase, &mut lexicon).unwrap()).unwrap();
            assert_eq!(regex.is_match(&lexicon.line(text)), expected, "{phrase} in {text}");
        }
    }

    #[test]
    fn phrases_that_cannot_work_are_refused() {
        for (phrase, expected) in [
            ("", "nothing stands"),
            ("a | ", "nothing stands"),
            ("(a b", "not closed"),
            ("a) b", "not understood"),
            ("{sim} a", "no group"),
            ("{nao a", "not closed"),
            ("a ** b", "not understood"),
            ("a.b", "not understood"),
            ("a # b", "not understood"),
        ] {
            let error = compile(phrase, &mut lexicon()).unwrap_err();
            assert!(error.contains(expected), "{phrase}: {error}");
        }
    }
}
