//! Flow files beside the configuration: `flows/*.yaml`, each checked, each name once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use retoma_core::finding::{Finding, Level};
use retoma_core::flow::{self, Flow};
use retoma_core::ids::FlowName;

/// What the folder holds.
#[derive(Default)]
pub(super) struct Flows {
    /// Usable flows.
    pub(super) good: BTreeMap<FlowName, Arc<Flow>>,
    /// The file of each.
    pub(super) files: BTreeMap<FlowName, String>,
    /// The text of each.
    pub(super) texts: BTreeMap<FlowName, String>,
    /// Names (by file) of flows with errors, so that who names them is not told that they do not exist.
    pub(super) broken: Vec<FlowName>,
    pub(super) findings: Vec<Finding>,
}

/// Reads every flow file of `folder`, in the order of their names. A folder that is not there holds none.
pub(super) fn read(folder: &Path, shown: &str) -> Flows {
    let mut flows = Flows::default();
    let Ok(entries) = std::fs::read_dir(folder) else { return flows };
    let mut files: Vec<_> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_flow(path)).collect();
    files.sort();
    for path in files {
        let file = format!("{shown}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        flows.add(&path, file);
    }
    flows
}

/// Reads one flow file.
pub(crate) fn read_one(path: &Path) -> (Option<Flow>, Vec<Finding>) {
    let shown = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => flow::load(&text, &shown),
        Err(error) => (None, vec![unreadable(shown, &error)]),
    }
}

fn is_flow(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("yaml" | "yml"))
}

fn unreadable(file: String, error: &std::io::Error) -> Finding {
    Finding {
        code: "unreadable",
        level: Level::Error,
        file,
        line: 1,
        message: format!("the file cannot be read: {}", error.kind()),
        fix: "check that it exists, is text in UTF-8, and may be read".into(),
    }
}

impl Flows {
    fn add(&mut self, path: &Path, file: String) {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.findings.push(unreadable(file, &error));
                return;
            }
        };
        let (flow, findings) = flow::load(&text, &file);
        let broken = findings.iter().any(|finding| finding.level == Level::Error);
        self.findings.extend(findings);
        match flow {
            Some(flow) if !broken => self.add_good(flow, file, text),
            _ => self.broken.extend(path.file_stem().map(|stem| FlowName::new(stem.to_string_lossy()))),
        }
    }

    fn add_good(&mut self, flow: Flow, file: String, text: String) {
        if self.good.contains_key(&flow.name) {
            self.findings.push(Finding {
                code: "duplicate_flow",
                level: Level::Error,
                file,
                line: 1,
                message: format!("another file already holds the flow {}", flow.name),
                fix: "give it another name under flow:, or remove one of the files".into(),
            });
            return;
        }
        self.files.insert(flow.name.clone(), file);
        self.texts.insert(flow.name.clone(), text);
        self.good.insert(flow.name.clone(), Arc::new(flow));
    }
}
