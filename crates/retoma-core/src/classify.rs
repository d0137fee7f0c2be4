//! The rule classifier (C2): text in, the word of a rule out. It only proposes; the table decides.
//!
//! Rules are tried in this order: those of the opt-out word first, whatever their priority, since silence that was asked
//! for outranks every sale; then by priority, highest first; then in file order. Text is normalised before
//! (see [`fold`]), patterns of `whole` and `words` alike. Regular expressions run in linear time on the normalised text,
//! whatever a customer sends.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

pub mod fold;
mod hint;

/// How the patterns of a rule are laid over a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The whole message is the pattern.
    Whole,
    /// The pattern's words stand in the message, next to each other and in order.
    Words,
    /// A regular expression finds something in the normalised message.
    Regex,
}

impl Match {
    /// The words of the flow file.
    pub const WORDS: [&'static str; 3] = ["whole", "words", "regex"];

    /// The value of a word of the flow file.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "whole" => Match::Whole,
            "words" => Match::Words,
            "regex" => Match::Regex,
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
    /// Regular expressions that veto the rule.
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

/// Compiled rules of a flow. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    rules: Arc<[Compiled]>,
    opt_out: Option<Arc<str>>,
    opt_in: Option<Arc<str>>,
}

#[derive(Debug)]
struct Compiled {
    /// Place in the file, from 0.
    number: usize,
    emit: String,
    priority: i64,
    patterns: Vec<(String, Pattern)>,
    unless: Vec<Regex>,
}

#[derive(Debug)]
enum Pattern {
    Whole(Vec<String>),
    Words(Vec<String>),
    Regex(Regex),
}

impl Classifier {
    /// Compiles rules given in file order. `opt_out` and `opt_in` are the words with these roles (see
    /// [`Flow::opt_out_word`](crate::flow::Flow::opt_out_word)).
    pub fn compile(rules: &[Rule], opt_out: Option<&str>, opt_in: Option<&str>) -> Result<Self, Vec<PatternError>> {
        let mut errors = Vec::new();
        let mut compiled: Vec<Compiled> = Vec::with_capacity(rules.len());
        for (number, rule) in rules.iter().enumerate() {
            let mut refuse = |pattern: &str, problem: String| {
                errors.push(PatternError { rule: number, pattern: pattern.to_owned(), problem });
            };
            let mut patterns = Vec::with_capacity(rule.any.len());
            for text in &rule.any {
                match Pattern::compile(rule.matching, text) {
                    Ok(pattern) => patterns.push((text.clone(), pattern)),
                    Err(problem) => refuse(text, problem),
                }
            }
            let mut unless = Vec::with_capacity(rule.unless.len());
            for text in &rule.unless {
                match compile_regex(text) {
                    Ok(regex) => unless.push(regex),
                    Err(problem) => refuse(text, problem),
                }
            }
            compiled.push(Compiled { number, emit: rule.emit.clone(), priority: rule.priority, patterns, unless });
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        compiled.sort_by_key(|rule| (Some(rule.emit.as_str()) != opt_out, -rule.priority, rule.number));
        Ok(Self { rules: compiled.into(), opt_out: opt_out.map(Arc::from), opt_in: opt_in.map(Arc::from) })
    }

    /// What the text is taken for: the first rule that hits.
    pub fn classify(&self, text: &str) -> Hit<'_> {
        let message = Message::of(text);
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
        self.has_role(self.opt_out.as_deref(), &Message::of(text))
    }

    /// Whether the text takes an opt-out back. One that asks for silence too does not.
    pub fn is_opt_in(&self, text: &str) -> bool {
        let message = Message::of(text);
        self.has_role(self.opt_in.as_deref(), &message) && !self.has_role(self.opt_out.as_deref(), &message)
    }

    fn has_role(&self, word: Option<&str>, message: &Message) -> bool {
        let Some(word) = word else { return false };
        self.rules.iter().any(|rule| rule.emit == word && rule.hit(message).is_some())
    }
}

impl Compiled {
    /// The pattern that hits, as written.
    fn hit(&self, message: &Message) -> Option<&str> {
        let (text, _) = self.patterns.iter().find(|(_, pattern)| pattern.is_in(message))?;
        let is_vetoed = self.unless.iter().any(|regex| regex.is_match(&message.folded));
        (!is_vetoed).then_some(text.as_str())
    }
}

impl Pattern {
    fn compile(matching: Match, text: &str) -> Result<Self, String> {
        if matching == Match::Regex {
            return compile_regex(text).map(Pattern::Regex);
        }
        let folded = fold::fold(text);
        let words: Vec<String> = fold::words(&folded).map(str::to_owned).collect();
        if words.is_empty() {
            return Err("it holds no letter and no digit, so it never matches".to_owned());
        }
        Ok(if matching == Match::Whole { Pattern::Whole(words) } else { Pattern::Words(words) })
    }

    fn is_in(&self, message: &Message) -> bool {
        match self {
            Pattern::Whole(words) => message.words == *words,
            Pattern::Words(words) => message.words.windows(words.len()).any(|window| window == words),
            Pattern::Regex(regex) => regex.is_match(&message.folded),
        }
    }
}

/// A regular expression for normalised text. Accents and capitals that could never match are refused, or made not to
/// matter.
fn compile_regex(text: &str) -> Result<Regex, String> {
    if let Some(accented) = text.chars().find(|c| fold::is_folded_away(*c)) {
        return Err(format!("messages reach it without accents, so {accented:?} never matches"));
    }
    let regex = RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build();
    let regex = regex.map_err(|error| error.to_string().lines().last().unwrap_or("it does not compile").to_owned())?;
    if regex.is_match("") {
        return Err("it matches every message, an empty one included".to_owned());
    }
    Ok(regex)
}

/// A message made ready for matching.
struct Message {
    folded: String,
    words: Vec<String>,
}

impl Message {
    fn of(text: &str) -> Self {
        let folded = fold::fold(text);
        let words = fold::words(&folded).map(str::to_owned).collect();
        Self { folded, words }
    }
}

#[cfg(test)]
mod tests;
