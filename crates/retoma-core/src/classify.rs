//! The rule classifier (C2): text in, the word of a rule out. It only proposes; the table decides.
//!
//! Rules are tried in this order: those of the opt-out word first, whatever their priority, since silence that was asked
//! for outranks every sale; then by priority, highest first; then in file order; those of a word that only may ask for
//! silence (see `hint`) last, since they must not hide what else was said. Text is normalised before (see [`fold`]),
//! patterns of `whole` and `words` alike. Phrases (see `phrase`) are laid over the words of the message with typing
//! mistakes put right (see [`lexicon`]). They and regular expressions run in linear time, whatever a customer sends.

use std::sync::Arc;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use lexicon::Lexicon;

pub mod fold;
mod hint;
pub mod lexicon;
mod phrase;

/// What the phrases of one rule may take, compiled.
const PHRASES_BYTES_MAX: usize = 16 << 20;

/// How the patterns of a rule are laid over a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The whole message is the pattern.
    Whole,
    /// The pattern's words stand in the message, next to each other and in order.
    Words,
    /// A regular expression finds something in the normalised message.
    Regex,
    /// Words and groups of words stand in the message as the phrase says. Vetoes are phrases, too.
    Phrase,
}

impl Match {
    /// The words of the flow file.
    pub const WORDS: [&'static str; 4] = ["whole", "words", "regex", "phrase"];

    /// The value of a word of the flow file.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "whole" => Match::Whole,
            "words" => Match::Words,
            "regex" => Match::Regex,
            "phrase" => Match::Phrase,
            _ => return None,
        })
    }
}

/// A rule as the flow file writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The word it proposes.
    pub emit: String,
    /// Higher ones are tried first.
    pub priority: i64,
    /// How its patterns are meant.
    pub matching: Match,
    /// Patterns; one is enough.
    pub any: Vec<String>,
    /// Regular expressions that veto the rule; phrases where `matching` is [`Match::Phrase`].
    pub unless: Vec<String>,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PatternError {
    /// The rule's place in the file, from 0.
    pub rule: usize,
    /// The pattern as written.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a message was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hit<'a> {
    /// The word of the rule that hit; `None` if none did.
    pub word: Option<&'a str>,
    /// The rule, for people: `pediu_preco#2 "quanto custa"`. The number counts rules in file order from 1.
    pub rule: Option<String>,
    /// The rule's priority; 0 if none hit.
    pub priority: i64,
}

/// The words with a role in the wish for silence (C12).
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles<'a> {
    /// Asks for silence (see [`Flow::opt_out_word`](crate::flow::Flow::opt_out_word)).
    pub opt_out: Option<&'a str>,
    /// Takes that back.
    pub opt_in: Option<&'a str>,
    /// May ask for silence.
    pub maybe: Option<&'a str>,
}

/// Compiled rules of a flow. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    lexicon: Arc<Lexicon>,
    rules: Arc<[Compiled]>,
    opt_out: Option<Arc<str>>,
    opt_in: Option<Arc<str>>,
    maybe: Option<Arc<str>>,
}

#[derive(Debug)]
struct Compiled {
    /// Place in the file, from 0.
    number: usize,
    emit: String,
    priority: i64,
    /// As written, for people.
    texts: Vec<String>,
    patterns: Patterns,
    unless: Patterns,
}

/// The patterns of one rule.
#[derive(Debug)]
enum Patterns {
    Whole(Vec<Vec<String>>),
    Words(Vec<Vec<String>>),
    Regex(Vec<Regex>),
    /// One pass finds any of them: rules for silence have many phrases, and every message is asked.
    Phrases(RegexSet),
}

impl Classifier {
    /// Compiles rules given in file order.
    pub fn compile(mut lexicon: Lexicon, rules: &[Rule], roles: Roles<'_>) -> Result<Self, Vec<PatternError>> {
        let mut errors = Vec::new();
        let mut compiled: Vec<Compiled> = Vec::with_capacity(rules.len());
        for (number, rule) in rules.iter().enumerate() {
            let vetoes = if rule.matching == Match::Phrase { Match::Phrase } else { Match::Regex };
            let patterns = Patterns::compile(rule.matching, &rule.any, &mut lexicon);
            let unless = Patterns::compile(vetoes, &rule.unless, &mut lexicon);
            match (patterns, unless) {
                (Ok(patterns), Ok(unless)) => {
                    let (emit, priority, texts) = (rule.emit.clone(), rule.priority, rule.any.clone());
                    compiled.push(Compiled { number, emit, priority, texts, patterns, unless });
                }
                (patterns, unless) => {
                    let refused = [patterns.err(), unless.err()].into_iter().flatten().flatten();
                    errors.extend(refused.map(|(pattern, problem)| PatternError { rule: number, pattern, problem }));
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let has_role = |rule: &Compiled, role: Option<&str>| Some(rule.emit.as_str()) == role;
        compiled.sort_by_key(|rule| {
            (!has_role(rule, roles.opt_out), has_role(rule, roles.maybe), -rule.priority, rule.number)
        });
        Ok(Self {
            lexicon: Arc::new(lexicon),
            rules: compiled.into(),
            opt_out: roles.opt_out.map(Arc::from),
            opt_in: roles.opt_in.map(Arc::from),
            maybe: roles.maybe.map(Arc::from),
        })
    }

    /// What the text is taken for: the first rule that hits.
    pub fn classify(&self, text: &str) -> Hit<'_> {
        let message = self.message(text);
        let hit = self.rules.iter().find_map(|rule| Some((rule, rule.hit(&message)?)));
        match hit {
            Some((rule, pattern)) => Hit {
                word: Some(&rule.emit),
                rule: Some(format!("{}#{} {pattern:?}", rule.emit, rule.number + 1)),
                priority: rule.priority,
            },
            None => Hit::default(),
        }
    }

    /// Whether the text asks for silence (C12). Looked at in every raw message, before any burst is joined.
    pub fn is_opt_out(&self, text: &str) -> bool {
        self.has_role(self.opt_out.as_deref(), &self.message(text))
    }

    /// Whether the text takes an opt-out back. One that asks for silence too does not.
    pub fn is_opt_in(&self, text: &str) -> bool {
        let message = self.message(text);
        self.has_role(self.opt_in.as_deref(), &message) && !self.has_role(self.opt_out.as_deref(), &message)
    }

    fn message(&self, text: &str) -> Message {
        let folded = fold::fold(text);
        let words = fold::words(&folded).map(str::to_owned).collect();
        Message { line: self.lexicon.line(text), folded, words }
    }

    fn has_role(&self, word: Option<&str>, message: &Message) -> bool {
        let Some(word) = word else { return false };
        self.rules.iter().any(|rule| rule.emit == word && rule.hit(message).is_some())
    }
}

impl Compiled {
    /// The pattern that hits, as written.
    fn hit(&self, message: &Message) -> Option<&str> {
        let place = self.patterns.find(message)?;
        let is_vetoed = self.unless.find(message).is_some();
        (!is_vetoed).then_some(self.texts[place].as_str())
    }
}

impl Patterns {
    /// Errors come with the pattern as written.
    fn compile(matching: Match, texts: &[String], lexicon: &mut Lexicon) -> Result<Self, Vec<(String, String)>> {
        Ok(match matching {
            Match::Whole => Patterns::Whole(each(texts, words)?),
            Match::Words => Patterns::Words(each(texts, words)?),
            Match::Regex => Patterns::Regex(each(texts, compile_regex)?),
            Match::Phrase => {
                let phrases = each(texts, |text| phrase::compile(text, lexicon))?;
                let set = RegexSetBuilder::new(&phrases).size_limit(PHRASES_BYTES_MAX).build();
                let refused = |error: regex::Error| (texts.join("; "), last_line(&error));
                Patterns::Phrases(set.map_err(|error| vec![refused(error)])?)
            }
        })
    }

    /// The place of the first one that is in the message.
    fn find(&self, message: &Message) -> Option<usize> {
        match self {
            Patterns::Whole(all) => all.iter().position(|words| message.words == *words),
            Patterns::Words(all) => {
                all.iter().position(|words| message.words.windows(words.len()).any(|window| window == words))
            }
            Patterns::Regex(all) => all.iter().position(|regex| regex.is_match(&message.folded)),
            Patterns::Phrases(set) => set.matches(&message.line).iter().next(),
        }
    }
}

/// All of them made, or every one that cannot be.
fn each<T>(texts: &[String], mut make: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, Vec<(String, String)>> {
    let mut errors = Vec::new();
    let mut made = Vec::with_capacity(texts.len());
    for text in texts {
        match make(text) {
            Ok(one) => made.push(one),
            Err(problem) => errors.push((text.clone(), problem)),
        }
    }
    if errors.is_empty() { Ok(made) } else { Err(errors) }
}

/// The words of a pattern.
fn words(text: &str) -> Result<Vec<String>, String> {
    let folded = fold::fold(text);
    let words: Vec<String> = fold::words(&folded).map(str::to_owned).collect();
    if words.is_empty() {
        return Err("it holds no letter and no digit, so it never matches".to_owned());
    }
    Ok(words)
}

/// A regular expression for normalised text. Accents and capitals that could never match are refused, or made not to
/// matter.
fn compile_regex(text: &str) -> Result<Regex, String> {
    if let Some(accented) = text.chars().find(|c| fold::is_folded_away(*c)) {
        return Err(format!("messages reach it without accents, so {accented:?} never matches"));
    }
    let regex = RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build();
    let regex = regex.map_err(|error| last_line(&error))?;
    if regex.is_match("") {
        return Err("it matches every message, an empty one included".to_owned());
    }
    Ok(regex)
}

/// What a regular expression is refused for, without the drawing above it.
fn last_line(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or("it does not compile").to_owned()
}

/// A message made ready for matching.
struct Message {
    folded: String,
    words: Vec<String>,
    line: String,
}

#[cfg(test)]
mod tests;
