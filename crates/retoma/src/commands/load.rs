//! Reading the configuration for a command: complete, or a list of what is wrong with it.

use std::path::Path;
use std::sync::Arc;

use retoma_core::finding::{Finding, Level, suggest};
use retoma_core::flow::Flow;
use retoma_core::ids::FlowName;
use retoma_core::play;
use retoma_server::flows::{FlowFiles, FlowSource};

use crate::config::flows::read_one;
use crate::config::{self, Loaded, Setup};
use crate::fail::usage;
use crate::output;

/// Reads an environment variable.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The configuration with its findings.
pub(crate) fn loaded(config: &Path) -> anyhow::Result<Loaded> {
    config::load(config, &env).map_err(|error| unreadable(config, &error))
}

/// A configuration that can be used; errors end the command, warnings are said.
pub(crate) fn setup(config: &Path) -> anyhow::Result<Setup> {
    let Loaded { setup, findings } = loaded(config)?;
    findings.iter().for_each(|finding| output::complain(&finding.to_string()));
    setup.ok_or_else(|| {
        let errors = findings.iter().filter(|finding| finding.is_error()).count();
        usage(format!("{} has {errors} error(s); `retoma check` shows them with their fixes", config.display()))
    })
}

/// The configuration file is not there, or not readable.
pub(crate) fn unreadable(config: &Path, error: &std::io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        std::io::ErrorKind::NotFound => "`retoma init DIR` makes one; --config FILE names another",
        _ => "check its permissions and that it is text in UTF-8",
    };
    usage(format!("{} cannot be read ({}): {advice}", config.display(), error.kind()))
}

/// Errors and warnings of a list.
pub(crate) fn split(findings: &[Finding]) -> (Vec<&Finding>, Vec<&Finding>) {
    findings.iter().partition(|finding| finding.is_error())
}

/// A flow whose own scenarios fail does not do what its author says (X1).
pub(crate) fn scenarios(flow: &Flow, file: &str) -> Vec<Finding> {
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

/// Where a server that runs reads its flows anew.
pub(crate) fn flow_source(config: &Path) -> FlowSource {
    let config = config.to_owned();
    Arc::new(move || flows_now(&config))
}

fn flows_now(config: &Path) -> Result<FlowFiles, Vec<Finding>> {
    let unreadable = |error: std::io::Error| {
        vec![Finding {
            code: "unreadable",
            level: Level::Error,
            file: config.display().to_string(),
            line: 1,
            message: format!("the file cannot be read: {}", error.kind()),
            fix: "check that it exists, is text in UTF-8, and may be read".to_owned(),
        }]
    };
    let Loaded { setup, findings } = config::load(config, &env).map_err(unreadable)?;
    let files = setup.ok_or(findings)?.flow_files();
    let failed: Vec<Finding> =
        files.flows.iter().flat_map(|(name, flow)| scenarios(flow, &files.files[name])).collect();
    if failed.is_empty() { Ok(files) } else { Err(failed) }
}

/// A flow by its file, or by its name in the configuration.
pub(crate) fn flow(config: &Path, named: &str) -> anyhow::Result<Flow> {
    let path = Path::new(named);
    if path.is_file() {
        let (flow, findings) = read_one(path);
        findings.iter().for_each(|finding| output::complain(&finding.to_string()));
        return flow.ok_or_else(|| usage(format!("{named} cannot be used")));
    }
    let setup = setup(config)?;
    let found = setup.flows.get(&FlowName::new(named));
    found.map(|flow| Flow::clone(flow)).ok_or_else(|| {
        usage(format!("there is no flow {named:?}: {}", suggest(named, setup.flows.keys().map(FlowName::as_str))))
    })
}
