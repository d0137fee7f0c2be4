//! `retoma channel`: ways out, and a person's switch.

use serde_json::{Value, json};

use crate::cli::Channel;
use crate::client::encoded;
use crate::fail::DONE;
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Channel) -> anyhow::Result<u8> {
    let answer = match command {
        Channel::List => session.client.get("/v1/channels").await?,
        Channel::Pause { name, reason } => order(session, &name, "pause", reason).await?,
        Channel::Resume { name, reason } => order(session, &name, "resume", reason).await?,
    };
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    let one = [answer.clone()];
    let channels = if answer["items"].is_array() { shown::items(&answer) } else { &one };
    let zone = &session.client.zone;
    let rows = channels.iter().map(|channel| {
        vec![
            cell(channel, "name"),
            cell(channel, "status"),
            local(channel, "since", zone),
            cell(channel, "reason"),
            receipts(&channel["arrivals"]),
        ]
    });
    output::table(&["channel", "status", "since", "why", "receipts"], &rows.collect::<Vec<_>>(), "no channels");
    Ok(DONE)
}

/// What is heard of messages that were accepted a day ago or longer.
fn receipts(arrivals: &Value) -> String {
    let count = |key: &str| arrivals[key].as_u64().unwrap_or(0);
    match (count("looked_at"), arrivals["receipts_come"] == true) {
        (0, _) => String::new(),
        (of, false) => format!("none for {of}: does the webhook tell?"),
        (of, true) => format!("missing for {} of {of}", count("no_receipt")),
    }
}

async fn order(session: &Session, name: &str, verb: &str, reason: Option<String>) -> anyhow::Result<Value> {
    session.client.post(&format!("/v1/channels/{}/{verb}", encoded(name)), &json!({ "reason": reason })).await
}
