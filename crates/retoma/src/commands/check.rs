//! `retoma check`: the configuration, its flows, and the flows' own scenarios.

use std::path::Path;

use retoma_core::finding::{Finding, Level};
use retoma_core::flow::Flow;
use retoma_core::play;
use serde_json::{Value, json};

use crate::cli::Check;
use crate::config::flows::read_one;
use crate::fail::{DONE, FAILED};
use crate::output;

use super::load;

pub(crate) fn run(config: &Path, args: &Check, json: bool) -> anyhow::Result<u8> {
    let (findings, what) = if args.flows.is_empty() { of_config(config)? } else { of_flows(args) };
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
            findings.extend(scenarios(flow, &setup.flow_files[name]));
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

fn of_flows(args: &Check) -> (Vec<Finding>, String) {
    let mut all = Vec::new();
    for path in &args.flows {
        let (flow, findings) = read_one(path);
        all.extend(findings);
        if let Some(flow) = flow {
            all.extend(scenarios(&flow, &path.display().to_string()));
        }
    }
    (all, format!("{} flow(s)", args.flows.len()))
}

/// A flow whose own scenarios fail does not do what its author says (X1).
fn scenarios(flow: &Flow, file: &str) -> Vec<Finding> {
    let failures = flow.tests.iter().flat_map(|scenario| play::judge(flow, scenario));
    failures
        .map(|failure| Finding {
            code: "X1",
            level: Level::Error,
            file: file.to_owned(),
            line: failure.line,
            message: format!("scenario {:?}: {}", failure.scenario, failure.what),
            fix: "correct the flow or the scenario; `retoma test` shows all of it".to_owned(),
        })
        .collect()
}
