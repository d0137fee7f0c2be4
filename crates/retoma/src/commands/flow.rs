//! `retoma flow`: which version of a flow runs, what ran before, and reading the files anew.

use serde_json::{Value, json};

use crate::cli::Flow;
use crate::client::encoded;
use crate::fail::{DONE, usage};
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Flow) -> anyhow::Result<u8> {
    match command {
        Flow::List => list(session).await,
        Flow::History { flow, text } => history(session, flow.as_deref(), text).await,
        Flow::Reload => reload(session).await,
    }
}

async fn list(session: &Session) -> anyhow::Result<u8> {
    let answer = session.client.get("/v1/flows").await?;
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    let zone = &session.client.zone;
    let rows = shown::items(&answer).iter().map(|flow| {
        let live = flow["live"].as_object().into_iter().flatten();
        let live: Vec<String> = live.map(|(state, count)| format!("{state} {count}")).collect();
        vec![cell(flow, "name"), cell(flow, "version"), local(flow, "published_at", zone), live.join(", ")]
    });
    output::table(&["flow", "version", "since", "conversations"], &rows.collect::<Vec<_>>(), "no flows");
    for gone in answer["gone"].as_array().into_iter().flatten() {
        output::line(&format!(
            "{} conversation(s) in {} follow the flow {}, which is not there any more",
            gone["live"],
            cell(gone, "state"),
            cell(gone, "flow")
        ));
    }
    let last = &answer["last_reload"];
    if last["ok"] == false {
        output::line(&format!("the last reload, {} by {}, was refused:", local(last, "at", zone), cell(last, "by")));
        for error in last["errors"].as_array().into_iter().flatten() {
            output::line(&format!(
                "  {}:{}: {} {} ({})",
                cell(error, "file"),
                cell(error, "line"),
                cell(error, "code"),
                cell(error, "message"),
                cell(error, "fix")
            ));
        }
    }
    Ok(DONE)
}

async fn history(session: &Session, flow: Option<&str>, text: bool) -> anyhow::Result<u8> {
    let query = flow.map(|flow| format!("?flow={}", encoded(flow))).unwrap_or_default();
    let answer = session.client.get(&format!("/v1/flows/history{query}")).await?;
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    let zone = &session.client.zone;
    let items = shown::items(&answer);
    if text {
        for one in items {
            let (flow, version) = (cell(one, "flow"), cell(one, "version"));
            let (at, by) = (local(one, "published_at", zone), cell(one, "published_by"));
            output::line(&format!("# {flow}, version {version}, since {at}, by {by}"));
            output::line(cell(one, "text").trim_end());
        }
        return Ok(DONE);
    }
    let row = |one: &Value| {
        vec![cell(one, "flow"), cell(one, "version"), local(one, "published_at", zone), cell(one, "published_by")]
    };
    let rows: Vec<_> = items.iter().map(row).collect();
    output::table(&["flow", "version", "since", "by"], &rows, "nothing took effect yet");
    Ok(DONE)
}

async fn reload(session: &Session) -> anyhow::Result<u8> {
    if !session.client.is_served() {
        return Err(usage("no server runs on this database; `retoma serve` reads the flows when it starts".to_owned()));
    }
    let answer = session.client.post("/v1/flows/reload", &json!({})).await?;
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        output::line(&format!("{}: {} ({})", cell(warning, "file"), cell(warning, "message"), cell(warning, "fix")));
    }
    let changed = answer["changed"].as_array().map_or(&[][..], Vec::as_slice);
    let is_changed = |flow: &Value| if changed.contains(&flow["name"]) { "changed" } else { "as before" };
    for flow in answer["flows"].as_array().into_iter().flatten() {
        output::line(&format!("{}, version {}: {}", cell(flow, "name"), cell(flow, "version"), is_changed(flow)));
    }
    Ok(DONE)
}
