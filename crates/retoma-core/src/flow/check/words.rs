//! Words: what is declared and unused, and who may ask for silence (S5, C2, C4, C5).

use std::collections::BTreeSet;

use super::Checker;
use crate::classify::{Classifier, Match, Roles, Rule, fold};
use crate::event::EventKind;

/// Sentences that every sales chat hears. Two rules of one priority that both hit one of them depend on file order.
const EVERYDAY: [&str; 21] = [
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
    "quero saber o valor",
    "quero pensar melhor",
    "já fiz o pix",
    "achei o valor caro",
    "esse link é golpe?",
];

pub(super) fn check(checker: &mut Checker<'_>) {
    if checker.is_whole {
        unused_words(checker);
    }
    silence(checker);
    short_words(checker);
    emitted_facts(checker);
    unbounded(checker);
    equal_priorities(checker);
}

/// S5: words that no row answers.
fn unused_words(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let answered: BTreeSet<&str> = checker.rows().map(|(row, _)| row.event.as_str()).collect();
    let is_answered = |word: &str| answered.contains(word);
    // A flow without a table uses types, not words.
    let unused: Vec<_> =
        checker.lines.words.iter().filter(|(word, _)| checker.flow.has_table() && !is_answered(word)).collect();
    for (word, line) in unused {
        // Of a word that nothing gives, reading has spoken.
        let Some(kind) = flow.words.get(word) else { continue };
        let is_named = flow
            .cadences
            .values()
            .any(|cadence| cadence.cancel_on.contains(kind) || cadence.starts_with == Some(*kind));
        if !is_named && !is_takeover(checker, word) {
            let message = format!("no row answers `{word}`");
            checker.reader.warn("S5", *line, message, "add a row, or take the word out");
        }
    }
    let mut said: Vec<&str> = Vec::new();
    for (word, line) in &checker.lines.intents {
        let is_known = [&flow.opt_out_word, &flow.opt_in_word].into_iter().any(|role| role.as_ref() == Some(word));
        if checker.flow.has_table() && !is_known && !is_answered(word) && !is_takeover(checker, word) {
            let message = format!("no row answers `{word}`, so it counts as any message");
            checker.reader.warn("S5", *line, message, "add a row, or take the word out");
        }
        said.push(word);
    }
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

/// Whether the takeover's lists name the word.
fn is_takeover(checker: &Checker<'_>, word: &str) -> bool {
    checker.lines.takeover.iter().any(|(_, named)| named == word)
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
    if let Some((line, _)) = checker.lines.model.iter().find(|(_, proposed)| proposed == word) {
        let message = format!("a model may propose `{word}`, and silence is never its to decide");
        checker.reader.error("C2", *line, message, "take it out of `may_emit`");
    }
    for (row, lines) in checker.rows().filter(|(row, _)| row.event == *word) {
        let ends_cycle = row.to.as_ref().is_some_and(|to| checker.lines.ends_cycle.contains(to));
        if lines.scope.as_deref() == Some("cycle") || ends_cycle {
            let message = format!("`{word}` silences one sale only, and whoever asks for silence means all of them");
            checker.reader.error("C2", lines.row, message, "write `scope: contact`, and `final: contact` at the state");
        }
    }
    let is_global = flow.globals.iter().any(|row| row.event == *word);
    if checker.flow.has_table() && !is_global && checker.is_whole {
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
    let emitted = checker.lines.rules.iter().map(|(line, entry)| (*line, entry.rule.emit.as_str()));
    let proposed = checker.lines.model.iter().map(|(line, word)| (*line, word.as_str()));
    for (line, word) in emitted.chain(proposed) {
        let is_chat = |kind: &EventKind| *kind == EventKind::MessageReceived;
        let is_fact = checker.flow.words.get(word).is_some_and(|kind| !is_chat(kind));
        if is_fact || super::BUILT_IN_WORDS.contains(&word) {
            let message = format!("a message can never be `{word}`: only the platform or the clock says that");
            checker.reader.error("C5", line, message, "emit a word of its own");
        }
    }
}

/// C3: a pattern that reaches over any number of characters joins what stands in two sentences.
fn unbounded(checker: &mut Checker<'_>) {
    for (line, entry) in &checker.lines.rules {
        let Rule { matching, any, unless, .. } = &entry.rule;
        let patterns = any.iter().filter(|_| *matching == Match::Regex).chain(unless);
        for pattern in patterns.filter(|pattern| reaches_over_anything(pattern)) {
            let message = format!("the pattern {pattern:?} is unbounded: it joins words of different sentences");
            checker.reader.error("C3", *line, message, "write `.{0,30}` in place of `.*`");
        }
    }
}

/// Whether `.` is repeated without an upper bound. Brackets and escapes are stepped over.
fn reaches_over_anything(pattern: &str) -> bool {
    let mut in_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '.' if !in_class => match characters.peek() {
                Some('*' | '+') => return true,
                Some('{') => {
                    let bound: String = characters.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    if bound.ends_with(',') {
                        return true;
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    false
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
