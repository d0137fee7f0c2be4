//! `retoma simulate FLOW`: a conversation on a virtual clock, printed. Nothing is sent, nothing is expected; whoever wants to
//! hold a flow to what it shall do writes scenarios and runs `retoma test`.

use std::path::Path;

use retoma_core::flow::Flow;
use retoma_core::play::{self, Played};
use retoma_core::scenario::{self, Scenario};
use serde_json::{Value, json};

use crate::cli::Simulate;
use crate::fail::{DONE, usage};
use crate::output;

use super::load;

/// When a story begins that does not say: a Wednesday morning, the same in every run.
const START: &str = "2026-12-02T10:00:00-03:00";

pub(crate) fn run(config: &Path, args: &Simulate, json: bool) -> anyhow::Result<u8> {
    let flow = load::flow(config, &args.flow)?;
    let stories = match &args.events {
        Some(file) => read(file)?,
        None if flow.tests.is_empty() => {
            let hint = "give the events in a file: --events FILE, a list such as `- { at: 0s, event: pix.created }`";
            return Err(usage(format!("{} has no scenarios of its own to play; {hint}", args.flow)));
        }
        None => flow.tests.clone(),
    };
    let played: Vec<Value> = stories.iter().map(|story| tell(&flow, story, json)).collect();
    if json {
        output::json(&Value::Array(played));
    }
    Ok(DONE)
}

fn read(file: &Path) -> anyhow::Result<Vec<Scenario>> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| usage(format!("{shown}: {}", error.kind())))?;
    scenario::parse_story(&text, &shown, START.parse()?).map_err(|findings| {
        findings.iter().for_each(|finding| output::complain(&finding.to_string()));
        usage(format!("{shown} cannot be played"))
    })
}

fn tell(flow: &Flow, story: &Scenario, json: bool) -> Value {
    let Played { sent, closed, conversations, log, .. } = play::play(flow, story);
    if !json {
        output::line(&format!("# {}", story.name));
        log.iter().for_each(|line| output::line(line));
        output::line("");
    }
    let states: Vec<&str> = conversations.iter().map(|conversation| conversation.state.as_str()).collect();
    json!({ "name": story.name, "log": log, "sent": sent, "closed": closed, "states": states })
}
