//! `retoma classify FLOW "texto"`: which rule hits, and why.

use std::path::Path;

use retoma_core::event::EventKind;
use retoma_core::finding::suggest;
use retoma_core::flow::Flow;
use retoma_core::ids::FlowName;
use serde_json::json;

use crate::cli::Classify;
use crate::config::flows::read_one;
use crate::fail::{DONE, usage};
use crate::output;

use super::load;

pub(crate) fn run(config: &Path, args: &Classify, json: bool) -> anyhow::Result<u8> {
    let flow = flow_of(config, &args.flow)?;
    let hit = flow.classifier.classify(&args.text);
    let opt_out = flow.classifier.is_opt_out(&args.text);
    if json {
        output::json(&json!({ "word": hit.word, "rule": hit.rule, "priority": hit.priority, "opt_out": opt_out }));
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
    Ok(DONE)
}

/// A flow by its file, or by its name in the configuration.
fn flow_of(config: &Path, named: &str) -> anyhow::Result<Flow> {
    let path = Path::new(named);
    if path.is_file() {
        let (flow, findings) = read_one(path);
        findings.iter().for_each(|finding| output::complain(&finding.to_string()));
        return flow.ok_or_else(|| usage(format!("{named} cannot be used")));
    }
    let setup = load::setup(config)?;
    let found = setup.flows.get(&FlowName::new(named));
    found.map(|flow| Flow::clone(flow)).ok_or_else(|| {
        usage(format!("there is no flow {named:?}: {}", suggest(named, setup.flows.keys().map(FlowName::as_str))))
    })
}
