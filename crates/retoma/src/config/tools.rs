//! Channels that a flow names for the seller's own tools and people: they must exist, and take requests instead of writing to
//! a contact.

use std::collections::BTreeMap;
use std::sync::Arc;

use retoma_core::finding::{Finding, Level, suggest};
use retoma_core::flow::Flow;
use retoma_core::ids::FlowName;
use retoma_providers::outbound::{Channel, ChannelKind};

/// What is wrong with the tools that flows name. `named` are all channels of the file, those that cannot be read among them.
pub(super) fn check<'a>(
    flows: &BTreeMap<FlowName, Arc<Flow>>,
    files: &BTreeMap<FlowName, String>,
    channels: impl Iterator<Item = &'a Channel> + Clone,
    named: &[String],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, flow) in flows {
        for tool in flow.tools() {
            let channel = channels.clone().find(|channel| channel.name.as_str() == tool);
            let (level, message, fix) = match channel {
                Some(channel) if matches!(channel.kind, ChannelKind::Http { .. }) => continue,
                Some(_) => (
                    Level::Error,
                    format!("the flow {name} calls {tool}, which writes to people"),
                    "name a channel with provider = \"http\"; whatever is meant for the contact goes out by `send`"
                        .to_owned(),
                ),
                None if named.iter().any(|named| named == tool) => continue,
                None => (
                    Level::Warning,
                    format!(
                        "the flow {name} calls {tool}, and there is no channel of that name: it waits until there is"
                    ),
                    format!(
                        "add [channels.{tool}] with provider = \"http\" ({})",
                        suggest(tool, named.iter().map(String::as_str))
                    ),
                ),
            };
            let file = files.get(name).cloned().unwrap_or_default();
            findings.push(Finding { code: "tool_channel", level, file, line: 1, message, fix });
        }
    }
    findings
}
