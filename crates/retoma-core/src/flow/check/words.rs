//! Words: what is declared and unused, and who may ask for silence (S5, C2, C4, C5).

use super::Checker;
use crate::classify::{Classifier, Match, Roles, Rule, fold};
use crate::event::EventKind;

/// Sentences that every sales chat hears. Two rules of one priority that both hit one of them depend on file order.
const EVERYDAY: [&str; 16] = [
    "oi",
    "bom dia",
    "tudo bem?",
    "quanto custa?",
    "qual o valor?",
    "tem desconto?",
    "quero comprar",
    "manda o link",
    "como faço para pagar?",
    "já paguei",
    "não recebi o acesso",
    "vou pensar",
    "achei caro",
    "obrigado",
    "sair",
    "quero falar com uma pessoa",
];

pub(super) fn check(checker: &mut Checker<'_>) {
    if checker.is_whole {
        unused_words(checker);
    }
    silence(checker);
    short_words(checker);
    emitted_facts(checker);
    equal_priorities(checker);
}

/// S5: words that no row answers.
fn unused_words(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let is_answered = |word: &str| checker.rows().any(|(row, _)| row.event == word);
    // A flow without a table uses types, not words.
    let unused: Vec<_> =
        checker.lines.words.iter().filter(|(word, _)| has_table(checker) && !is_answered(word)).collect();
    for (word, line) in unused {
        let kind = flow.words[word];
        let is_named = flow.cadences.values().any(|cadence| cadence.cancel_on.contains(&kind));
        if !is_named {
            let message = format!("no row answers `{word}`");
            checker.reader.warn("S5", *line, message, "add a row, or take the word out");
        }
    }
    let mut said: Vec<&str> = Vec::new();
    for (line, entry) in &checker.lines.rules {
        let word = entry.rule.emit.as_str();
        let has_role = [&flow.opt_out_word, &flow.opt_in_word, &flow.maybe_opt_out_word]
            .into_iter()
            .any(|role| role.as_deref() == Some(word));
        if !has_role && !said.contains(&word) && !checker.rows().any(|(row, _)| row.event == word) {
            let message = format!("no row answers `{word}`, so it counts as any message");
            checker.reader.warn("S5", *line, message, "add a row, or take the rule out");
            said.push(word);
        }
    }
}

fn has_table(checker: &Checker<'_>) -> bool {
    !checker.flow.transitions.is_empty() || !checker.flow.globals.is_empty()
}

/// C2: rules that ask for silence, and a row for it in every state.
fn silence(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let word = flow.opt_out_word.as_deref();
    let rule = word.and_then(|word| checker.lines.rules.iter().find(|(_, entry)| entry.rule.emit == word));
    let Some((line, entry)) = rule else {
        let message = match word {
            Some(word) => format!("no rule emits `{word}`, so nobody can ask for silence"),
            None => "nobody can ask for silence".to_owned(),
        };
        let fix = "add a rule with `opt_out: true` for words such as sair, parar, stop";
        let line = checker.rows().find(|(row, _)| Some(row.event.as_str()) == word).map_or(0, |(_, lines)| lines.row);
        return checker.reader.error("C2", line, message, fix);
    };
    let word = &entry.rule.emit;
    if flow.words.contains_key(word) {
        let message = format!("`{word}` asks for silence and names a platform event");
        checker.reader.error("C2", *line, message, "use another word for one of them");
    }
    let is_global = flow.globals.iter().any(|row| row.event == *word);
    if has_table(checker) && !is_global && checker.is_whole {
        let message = format!("`{word}` asks for silence in some states only");
        let fix = format!("add a row to `globals`: event: {word}, to: OPT_OUT, do: [send: CONFIRMATION]");
        checker.reader.error("C2", *line, message, fix);
    }
}

/// C2: a single word inside a sentence asks for nothing (FC-58).
fn short_words(checker: &mut Checker<'_>) {
    let opt_out = checker.flow.opt_out_word.as_deref();
    for (line, entry) in &checker.lines.rules {
        let Rule { emit, matching, any, .. } = &entry.rule;
        if Some(emit.as_str()) != opt_out || *matching != Match::Words {
            continue;
        }
        for pattern in any.iter().filter(|pattern| fold::words(&fold::fold(pattern)).count() == 1) {
            let message = format!("`{pattern}` anywhere in a sentence would silence the contact");
            checker.reader.error("C2", *line, message, "move it to a rule with `match: whole`");
        }
    }
}

/// C5: only the platform says that something was paid (semantics 7 of the format).
fn emitted_facts(checker: &mut Checker<'_>) {
    for (line, entry) in &checker.lines.rules {
        let word = entry.rule.emit.as_str();
        let is_chat = |kind: &EventKind| *kind == EventKind::MessageReceived;
        let is_fact = checker.flow.words.get(word).is_some_and(|kind| !is_chat(kind));
        if is_fact || super::BUILT_IN_WORDS.contains(&word) {
            let message = format!("a message can never be `{word}`: only the platform or the clock says that");
            checker.reader.error("C5", *line, message, "emit a word of its own");
        }
    }
}

/// C4: two words for one sentence, and nothing but file order to choose between them.
fn equal_priorities(checker: &mut Checker<'_>) {
    let opt_out = checker.flow.opt_out_word.as_deref();
    // The everyday sentences that a rule hits. The opt-out word has no rivals: it is always tried first.
    let heard = |rule: &Rule| -> Vec<&'static str> {
        let only = Classifier::compile(checker.lines.lexicon.clone(), std::slice::from_ref(rule), Roles::default())
            .unwrap_or_default();
        EVERYDAY.into_iter().filter(|text| only.classify(text).word.is_some()).collect()
    };
    let rules = checker.lines.rules.iter().filter(|(_, entry)| Some(entry.rule.emit.as_str()) != opt_out);
    let rules: Vec<_> = rules.map(|(line, entry)| (*line, &entry.rule, heard(&entry.rule))).collect();
    for (place, (line, rule, texts)) in rules.iter().enumerate() {
        let rivals = rules[..place].iter().filter(|(_, rival, _)| rival.priority == rule.priority);
        for (_, rival, rival_texts) in rivals.filter(|(_, rival, _)| rival.emit != rule.emit) {
            if let Some(text) = texts.iter().find(|text| rival_texts.contains(text)) {
                let message = format!("{text:?} is both `{}` and `{}`, at one priority", rival.emit, rule.emit);
                checker.reader.warn("C4", *line, message, "give one of them a higher priority");
            }
        }
    }
}
