//! `retoma classify FLOW "texto"`: which rule hits, and why; or a file of phrases, against what their author expects.

use std::path::Path;

use anyhow::Context;
use retoma_core::event::EventKind;
use retoma_core::flow::Flow;
use serde_json::json;

use crate::cli::Classify;
use crate::fail::{DONE, FAILED};
use crate::output;

use super::load;

pub(crate) fn run(config: &Path, args: &Classify, json: bool) -> anyhow::Result<u8> {
    let flow = load::flow(config, &args.flow)?;
    match (&args.file, &args.text) {
        (Some(file), _) => of_file(&flow, file, json),
        (None, text) => of_text(&flow, text.as_deref().unwrap_or_default(), json),
    }
}

fn of_text(flow: &Flow, text: &str, json: bool) -> anyhow::Result<u8> {
    let hit = flow.classifier.classify(text);
    let opt_out = flow.classifier.is_opt_out(text);
    let maybe = flow.classifier.hints_at_opt_out(text);
    if json {
        output::json(
            &json!({ "word": hit.word, "rule": hit.rule, "priority": hit.priority, "opt_out": opt_out, "maybe_opt_out": maybe }),
        );
        return Ok(DONE);
    }
    match (hit.word, &hit.rule) {
        (Some(word), Some(rule)) => {
            output::line(word);
            output::line(&format!("rule {rule}, priority {}", hit.priority));
        }
        _ => output::line(&format!("no rule hits: the table is asked for {}", any_message(flow))),
    }
    if opt_out {
        output::line("asks for silence: takes effect at once, for every conversation of the contact");
    }
    if maybe {
        output::line("may ask for silence: answered as usual, and flagged `maybe_opt_out` for a person");
    }
    Ok(DONE)
}

/// The word of a message that no rule understands.
fn any_message(flow: &Flow) -> &str {
    flow.word_of(EventKind::MessageReceived).unwrap_or("message.received")
}

/// A phrase of a file, and what its author takes it for.
struct Phrase<'t> {
    text: &'t str,
    expected: Option<&'t str>,
}

/// Phrases of a file's text: one a line, after the expected word and a tab where there is one. Empty lines and those that
/// begin with `#` are the author's own.
fn phrases(text: &str) -> Vec<Phrase<'_>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let read = |line| match str::split_once(line, '\t') {
        Some((word, text)) => Phrase { text: text.trim(), expected: Some(word.trim()) },
        None => Phrase { text: line.trim(), expected: None },
    };
    lines.map(read).collect()
}

fn of_file(flow: &Flow, file: &Path, json: bool) -> anyhow::Result<u8> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let phrases = phrases(&text);
    let none = any_message(flow);
    let (mut hits, mut wrong) = (0_usize, 0_usize);
    let mut listed = Vec::with_capacity(phrases.len());
    for Phrase { text, expected } in &phrases {
        let hit = flow.classifier.classify(text);
        let word = hit.word.unwrap_or(none);
        let agrees = expected.is_none_or(|expected| expected == word || (expected == "-" && hit.word.is_none()));
        hits += usize::from(hit.word.is_some());
        wrong += usize::from(!agrees);
        if json {
            listed.push(
                json!({ "text": text, "word": hit.word, "rule": hit.rule, "expected": expected, "agrees": agrees }),
            );
        } else {
            let mark = if agrees { "  " } else { "x " };
            let expected =
                if agrees { String::new() } else { format!("  (expected {})", expected.unwrap_or_default()) };
            let rule = hit.rule.map_or_else(|| "no rule".to_owned(), |rule| format!("rule {rule}"));
            output::line(&format!("{mark}{word:20} {text}{expected}  [{rule}]"));
        }
    }
    if json {
        output::json(&json!({
            "phrases": listed, "total": phrases.len(), "hits": hits, "disagreements": wrong,
        }));
    } else {
        output::line(&format!("{} phrase(s): {hits} hit a rule, {wrong} taken for something else", phrases.len()));
    }
    Ok(if wrong == 0 { DONE } else { FAILED })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_may_say_what_it_is_expected_to_be() {
        let read = phrases("# comment\n\npediu_preco\tquanto custa?\r\n-\t bom dia \nsair\n");
        let shown: Vec<_> = read.iter().map(|phrase| (phrase.expected, phrase.text)).collect();
        assert_eq!(shown, [(Some("pediu_preco"), "quanto custa?"), (Some("-"), "bom dia"), (None, "sair")]);
    }
}
