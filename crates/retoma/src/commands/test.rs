//! `retoma test`: scenarios of flow files and scenario files, played on a virtual clock.

use std::path::{Path, PathBuf};

use anyhow::bail;
use retoma_core::finding::Finding;
use retoma_core::flow::{self, Flow};
use retoma_core::play;
use retoma_core::scenario::{self, Scenario};
use serde_json::{Value, json};

use crate::cli::Test;
use crate::config::flows::read_one;
use crate::config::folder_of;
use crate::fail::{DONE, FAILED, usage};
use crate::output;

use super::load;

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    failures: Vec<Value>,
}

pub(crate) fn run(config: &Path, args: &Test, json: bool) -> anyhow::Result<u8> {
    let flows = folder_of(config).join("flows");
    let mut files = Vec::new();
    for path in if args.paths.is_empty() { std::slice::from_ref(&flows) } else { &args.paths } {
        collect(path, &mut files)?;
    }
    let mut tally = Tally::default();
    for file in &files {
        play_file(file, config, json, &mut tally)?;
    }
    if json {
        output::json(&json!({ "passed": tally.passed, "failed": tally.failed, "failures": tally.failures }));
    } else {
        output::line(&format!("{} passed, {} failed", tally.passed, tally.failed));
    }
    Ok(if tally.failed == 0 { DONE } else { FAILED })
}

/// Files of a path, folders taken apart, in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        if !path.exists() {
            return Err(usage(format!("{} is not there", path.display())));
        }
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| matches!(path.extension().and_then(|end| end.to_str()), Some("yaml" | "yml"));
    let mut found: Vec<_> = entries.filter(|path| path.is_file() && is_yaml(path)).collect();
    found.sort();
    files.extend(found);
    Ok(())
}

fn play_file(file: &Path, config: &Path, json: bool, tally: &mut Tally) -> anyhow::Result<()> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| usage(format!("{shown}: {}", error.kind())))?;
    if is_flow(&text) {
        let (flow, findings) = flow::load(&text, &shown);
        let flow = flow.ok_or_else(|| broken(&shown, &findings))?;
        flow.tests.iter().for_each(|scenario| play_one(&flow, scenario, &shown, json, tally));
        return Ok(());
    }
    let parsed = scenario::parse(&text, &shown).map_err(|findings| broken(&shown, &findings))?;
    let flow = flow_for(parsed.flow.as_deref(), file, config)?;
    parsed.scenarios.iter().for_each(|scenario| play_one(&flow, scenario, &shown, json, tally));
    Ok(())
}

/// A flow file has states or cadences of its own; a scenario file has neither.
fn is_flow(text: &str) -> bool {
    text.lines().any(|line| ["states:", "transitions:", "cadences:"].iter().any(|key| line.starts_with(key)))
}

fn broken(file: &str, findings: &[Finding]) -> anyhow::Error {
    findings.iter().for_each(|finding| output::complain(&finding.to_string()));
    usage(format!("{file} cannot be used"))
}

/// The flow that a scenario file is for: a path beside it, or a name of the configuration's flows, or the only one.
fn flow_for(named: Option<&str>, file: &Path, config: &Path) -> anyhow::Result<Flow> {
    if let Some(path) = named.map(|name| folder_of(file).join(name)).filter(|path| path.is_file()) {
        let (flow, findings) = read_one(&path);
        return flow.ok_or_else(|| broken(&path.display().to_string(), &findings));
    }
    let setup = load::setup(config)?;
    let flow = match named {
        Some(name) => setup.flows.get(&name.into()),
        None if setup.flows.len() == 1 => setup.flows.values().next(),
        None => None,
    };
    match flow {
        Some(flow) => Ok(Flow::clone(flow)),
        None => bail!(usage(format!("{}: say which flow it is for (flow: NAME)", file.display()))),
    }
}

fn play_one(flow: &Flow, scenario: &Scenario, file: &str, json: bool, tally: &mut Tally) {
    let failures = play::judge(flow, scenario);
    if failures.is_empty() {
        tally.passed += 1;
        if !json {
            output::line(&format!("ok    {}", scenario.name));
        }
        return;
    }
    tally.failed += 1;
    for failure in failures {
        if !json {
            output::line(&format!("FAIL  {} ({file}:{}): {}", failure.scenario, failure.line, failure.what));
        }
        let (scenario, line, what) = (failure.scenario, failure.line, failure.what);
        tally.failures.push(json!({ "file": file, "scenario": scenario, "line": line, "what": what }));
    }
}
