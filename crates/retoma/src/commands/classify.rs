//! `retoma classify FLOW "texto"`: which rule hits, and why.

use std::path::Path;

use retoma_core::event::EventKind;
use serde_json::json;

use crate::cli::Classify;
use crate::fail::DONE;
use crate::output;

use super::load;

pub(crate) fn run(config: &Path, args: &Classify, json: bool) -> anyhow::Result<u8> {
    let flow = load::flow(config, &args.flow)?;
    let hit = flow.classifier.classify(&args.text);
    let opt_out = flow.classifier.is_opt_out(&args.text);
    let maybe = flow.classifier.hints_at_opt_out(&args.text);
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
        _ => {
            let plain = flow.word_of(EventKind::MessageReceived).unwrap_or("message.received");
            output::line(&format!("no rule hits: the table is asked for {plain}"));
        }
    }
    if opt_out {
        output::line("asks for silence: takes effect at once, for every conversation of the contact");
    }
    if maybe {
        output::line("may ask for silence: answered as usual, and flagged `maybe_opt_out` for a person");
    }
    Ok(DONE)
}
