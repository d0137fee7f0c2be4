//! `retoma check`: the configuration, its flows, and the flows' own scenarios.

use std::path::Path;

use retoma_core::finding::{Finding, suggest};
use retoma_core::flow::{self, Standing};
use retoma_core::ids::FlowName;
use retoma_server::flows::strandings;
use serde_json::{Value, json};

use crate::cli::Check;
use crate::client::Client;
use crate::config::flows::read_one;
use crate::fail::{DONE, FAILED, usage};
use crate::output;

use super::load;

pub(crate) async fn run(config: &Path, args: &Check, json: bool) -> anyhow::Result<u8> {
    if let Some(code) = &args.explain {
        return tell(code, json);
    }
    if args.schema {
        let schema: Value = serde_json::from_str(flow::SCHEMA)?;
        if json {
            output::json(&schema)
        } else {
            output::line(flow::SCHEMA.trim_end())
        }
        return Ok(DONE);
    }
    let (mut findings, what) = if args.flows.is_empty() { of_config(config)? } else { of_flows(args) };
    if args.against_running && !findings.iter().any(Finding::is_error) {
        findings.extend(of_the_living(config).await?);
    }
    let (errors, warnings) = load::split(&findings);
    if json {
        let shown = |list: &[&Finding]| list.iter().map(|finding| shown(finding)).collect::<Vec<_>>();
        output::json(&json!({ "errors": shown(&errors), "warnings": shown(&warnings) }));
    } else {
        findings.iter().for_each(|finding| output::line(&finding.to_string()));
        match (errors.len(), warnings.len()) {
            (0, 0) => output::line(&format!("all well: {what}")),
            (0, n) => output::line(&format!("usable, with {n} warning(s): {what}")),
            (n, m) => output::line(&format!("{n} error(s), {m} warning(s)")),
        }
    }
    Ok(if errors.is_empty() { DONE } else { FAILED })
}

/// The long form of a code.
fn tell(code: &str, json: bool) -> anyhow::Result<u8> {
    let Some((short, long)) = flow::explain(code) else {
        let known = flow::CODES.iter().map(|(code, _)| *code);
        return Err(usage(format!("there is no code {code:?}: {}", suggest(&code.to_uppercase(), known))));
    };
    let code = code.to_uppercase();
    if json {
        output::json(&json!({ "code": code, "short": short, "long": long }));
    } else {
        output::line(&format!("{code}: {short}"));
        output::line("");
        output::line(long);
    }
    Ok(DONE)
}

fn shown(finding: &Finding) -> Value {
    json!({
        "code": finding.code,
        "file": finding.file,
        "line": finding.line,
        "message": finding.message,
        "fix": finding.fix,
    })
}

fn of_config(config: &Path) -> anyhow::Result<(Vec<Finding>, String)> {
    let loaded = load::loaded(config)?;
    let mut findings = loaded.findings;
    let mut what = config.display().to_string();
    if let Some(setup) = loaded.setup {
        for (name, flow) in &setup.flows {
            findings.extend(load::scenarios(flow, &setup.flow_files[name]));
        }
        what = format!(
            "{} source(s), {} channel(s), {} flow(s)",
            setup.sources.len(),
            setup.channels.len(),
            setup.flows.len()
        );
    }
    Ok((findings, what))
}

/// M1: whom these flows would strand, by the server that runs, else by its database.
async fn of_the_living(config: &Path) -> anyhow::Result<Vec<Finding>> {
    let setup = load::setup(config)?;
    if !setup.database.exists() {
        return Ok(Vec::new());
    }
    let client = Client::open_to_look(config).await?;
    let answer = client.get("/v1/flows").await;
    client.close().await?;
    let answer = answer?;
    let live = |flow: &Value, state: &str, live: &Value| Standing {
        flow: FlowName::new(flow.as_str().unwrap_or_default()),
        state: state.to_owned(),
        live: live.as_u64().unwrap_or(0),
    };
    let items = answer["items"].as_array().into_iter().flatten();
    let mut standing: Vec<Standing> = items
        .flat_map(|flow| flow["live"].as_object().into_iter().flatten().map(|(state, n)| live(&flow["name"], state, n)))
        .collect();
    let gone = answer["gone"].as_array().into_iter().flatten();
    standing.extend(gone.map(|one| live(&one["flow"], one["state"].as_str().unwrap_or_default(), &one["live"])));
    Ok(strandings(&setup.flow_files(), &standing))
}

fn of_flows(args: &Check) -> (Vec<Finding>, String) {
    let mut all = Vec::new();
    for path in &args.flows {
        let (flow, findings) = read_one(path);
        all.extend(findings);
        if let Some(flow) = flow {
            all.extend(load::scenarios(&flow, &path.display().to_string()));
        }
    }
    (all, format!("{} flow(s)", args.flows.len()))
}
