//! `classifier:`: the rules with their roles, and what a model might propose.

use std::collections::BTreeMap;

use super::{Lines, RuleEntry};
use crate::classify::lexicon::Lexicon;
use crate::classify::{Classifier, Match, Roles, Rule};
use crate::finding::suggest;
use crate::flow::{Action, Message, Row};
use crate::task::MessageClass;
use crate::yaml::{Node, Reader};

/// What happens to every text before a rule sees it, whether the file says so or not.
const NORMALIZED: [&str; 5] = ["nfkd", "strip_accents", "lowercase", "squeeze_repeats", "trim_punctuation"];

/// Reads `classifier:`. Answers the word of `fallback`, where one is named.
pub(super) fn read(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> Option<(u32, String)> {
    let keys = ["normalize", "groups", "rules", "llm", "fallback"];
    let fields = node.and_then(|node| reader.fields(node, "`classifier`", &keys))?;
    if let Some(node) = fields.get("normalize") {
        super::holds_anyway(node, "normalize", &NORMALIZED, reader);
    }
    lines.lexicon = read_groups(fields.get("groups"), reader);
    for item in fields.get("rules").map(|rules| reader.list(rules, "`rules`")).unwrap_or_default() {
        if let Some(entry) = read_rule(item, reader) {
            lines.rules.push((item.line, entry));
        }
    }
    if let Some(node) = fields.get("llm") {
        lines.model = read_model(node, reader);
    }
    fields.get("fallback").and_then(|node| Some((node.line, reader.name(node, "`fallback`")?)))
}

/// `llm: {enabled, may_emit, ..}`: what a model may propose. Read so that `check` can judge it.
fn read_model(node: &Node, reader: &mut Reader<'_>) -> Vec<(u32, String)> {
    const KEYS: [&str; 7] = ["enabled", "may_emit", "redact", "timeout", "min_confidence", "per_contact", "on_error"];
    let Some(fields) = reader.fields(node, "`llm`", &KEYS) else { return Vec::new() };
    if fields.get("enabled").and_then(|node| reader.flag(node, "`enabled`")) == Some(true) {
        reader.no_effect_yet(node.line, "`llm` (no model is asked: the rules decide)");
    }
    if let Some(node) = fields.get("timeout") {
        reader.duration(node, "`timeout`");
    }
    let words = fields.get("may_emit").map(|node| reader.one_or_list(node)).unwrap_or_default().iter();
    let words = words.chain(fields.get("on_error"));
    words.filter_map(|item| Some((item.line, reader.name(item, "`may_emit`")?))).collect()
}

/// `groups: {name: [words]}`.
fn read_groups(node: Option<&Node>, reader: &mut Reader<'_>) -> Lexicon {
    let entries = node.and_then(|node| reader.entries(node, "`groups`")).unwrap_or_default();
    let groups: Vec<_> = entries.iter().map(|entry| (entry.key.clone(), read_texts(&entry.value, reader))).collect();
    Lexicon::read(&groups).unwrap_or_else(|errors| {
        for (place, problem) in errors {
            let message = format!("the group `{}` cannot be used: {problem}", entries[place].key);
            reader.error("C3", entries[place].line, message, "write words, such as nao, or mand(a|e|ar)");
        }
        Lexicon::default()
    })
}

fn read_rule(node: &Node, reader: &mut Reader<'_>) -> Option<RuleEntry> {
    const KEYS: [&str; 8] = ["emit", "priority", "match", "any", "unless", "opt_out", "opt_in", "maybe_opt_out"];
    let fields = reader.fields(node, "a rule", &KEYS)?;
    let emit = fields.need("emit", "the rule", reader).and_then(|node| reader.name(node, "`emit`"));
    let priority = fields.get("priority").and_then(|node| reader.number(node, "`priority`")).unwrap_or(0);
    let matching = fields.need("match", "the rule", reader).and_then(|node| {
        let word = reader.text(node, "`match`")?;
        let matching = Match::parse(&word);
        if matching.is_none() {
            reader.error("N1", node.line, format!("unknown `match: {word}`"), suggest(&word, Match::WORDS));
        }
        matching
    });
    let any = fields.need("any", "the rule", reader).map(|node| read_texts(node, reader)).unwrap_or_default();
    let unless = fields.get("unless").map(|node| read_texts(node, reader)).unwrap_or_default();
    if any.is_empty() {
        reader.error("Y2", node.line, "the rule has no pattern", "write `any: [..]`, or take the rule out");
    }
    let mut flag = |key: &str| fields.get(key).and_then(|node| reader.flag(node, &format!("`{key}`"))).unwrap_or(false);
    let (opt_out, opt_in, maybe_opt_out) = (flag("opt_out"), flag("opt_in"), flag("maybe_opt_out"));
    let rule = Rule { emit: emit?, priority, matching: matching.unwrap_or(Match::Whole), any, unless };
    Some(RuleEntry { rule, opt_out, opt_in, maybe_opt_out })
}

fn read_texts(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    reader.one_or_list(node).iter().filter_map(|item| reader.text(item, "a pattern")).collect()
}

/// The one word of the rules with a role flag.
pub(super) fn role(
    lines: &Lines,
    reader: &mut Reader<'_>,
    flag: &str,
    has: impl Fn(&RuleEntry) -> bool,
) -> Option<String> {
    let mut flagged = lines.rules.iter().filter(|(_, entry)| has(entry));
    let word = &flagged.next()?.1.rule.emit;
    for (line, entry) in flagged.filter(|(_, entry)| entry.rule.emit != *word) {
        let message = format!("`{flag}` stands at two words, `{word}` and `{}`", entry.rule.emit);
        reader.error("C2", *line, message, "keep one word for it");
    }
    Some(word.clone())
}

/// The event of the global row that confirms an opt-out.
pub(super) fn acknowledged(globals: &[Row], messages: &BTreeMap<String, Message>) -> Option<String> {
    let confirms = |action: &Action| matches!(action, Action::Send(name) if messages.get(name).is_some_and(|m| m.class == MessageClass::OptOutAck));
    globals.iter().find(|row| row.actions.iter().any(confirms)).map(|row| row.event.clone())
}

pub(super) fn compile_rules(lines: &Lines, roles: Roles<'_>, reader: &mut Reader<'_>) -> Classifier {
    let rules: Vec<Rule> = lines.rules.iter().map(|(_, entry)| entry.rule.clone()).collect();
    Classifier::compile(lines.lexicon.clone(), &rules, roles).unwrap_or_else(|errors| {
        for error in errors {
            let message = format!("the pattern {:?} cannot be used: {error}", error.pattern);
            let fix = match rules[error.rule].matching {
                Match::Phrase => "write words and {groups}, with ?, *, + or (a|b) where they may vary",
                _ => "write it without accents, in regex syntax",
            };
            reader.error("C3", lines.rules[error.rule].0, message, fix);
        }
        Classifier::default()
    })
}
