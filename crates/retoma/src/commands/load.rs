//! Reading the configuration for a command: complete, or a list of what is wrong with it.

use std::path::Path;

use retoma_core::finding::{Finding, suggest};
use retoma_core::flow::Flow;
use retoma_core::ids::FlowName;

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
