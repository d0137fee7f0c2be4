//! Flow files: YAML to [`Flow`], with the line of every name for the checks that follow.
//!
//! Reading goes on after a mistake, so that one run reports all of them. What is wrong in shape or value is said here (N1
//! for unknown keys, N2, Y1 to Y3, C3); what needs the whole flow is said by `check`.

use std::collections::BTreeMap;

use super::Flow;
use crate::classify::lexicon::Lexicon;
use crate::classify::{Roles, Rule};
use crate::finding::{Finding, suggest};
use crate::ids::FlowName;
use crate::scenario;
use crate::yaml::{self, Fields, Node, Reader, Value};

mod cadence;
mod calendar;
mod channels;
mod limits;
mod messages;
mod people;
mod rows;
mod rules;
mod states;
mod words;

pub(super) use words::is_silent;
pub(crate) use words::type_of;

/// The version of the file format that we read.
const SCHEMA: i64 = 1;

/// A flow with the place of everything that a finding may point at.
pub(super) struct Parsed {
    pub(super) flow: Flow,
    pub(super) lines: Lines,
}

/// Lines of the file.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) words: BTreeMap<String, u32>,
    /// The rules as written, with their lines, in file order.
    pub(super) rules: Vec<(u32, RuleEntry)>,
    /// The groups of words that rules may name.
    pub(super) lexicon: Lexicon,
    pub(super) calendar: u32,
    pub(super) states: BTreeMap<String, u32>,
    pub(super) initials: Vec<String>,
    pub(super) globals: Vec<RowLines>,
    pub(super) transitions: Vec<RowLines>,
    pub(super) cadences: BTreeMap<String, CadenceLines>,
    pub(super) messages: BTreeMap<String, MessageLines>,
    pub(super) vars: BTreeMap<String, u32>,
    pub(super) channels: BTreeMap<String, u32>,
    /// Words that rules may emit, where the file declares them.
    pub(super) intents: BTreeMap<String, u32>,
    /// Words that a model may propose.
    pub(super) model: Vec<(u32, String)>,
    /// States that end the cycle only (`final: cycle`).
    pub(super) ends_cycle: Vec<String>,
    /// States that somebody may come back from.
    pub(super) reentry: Vec<(u32, String)>,
    /// Lines of the rows that `timeout: {to}` of states stands for.
    pub(super) clock_rows: Vec<RowLines>,
    /// Lines of `migrate`, by the state that goes.
    pub(super) migrate: BTreeMap<String, u32>,
    /// Words of the takeover's lists, with lines.
    pub(super) takeover: Vec<(u32, String)>,
    /// Whether the file itself bounds how much is said to one person.
    pub(super) says_most: bool,
}

/// A classifier rule with its roles.
pub(super) struct RuleEntry {
    pub(super) rule: Rule,
    opt_out: bool,
    opt_in: bool,
    maybe_opt_out: bool,
}

#[derive(Default)]
pub(super) struct RowLines {
    pub(super) row: u32,
    pub(super) actions: Vec<u32>,
    /// Whether the file says how often it may be taken.
    pub(super) says_max_times: bool,
    /// What a global says of its reach (`contact`).
    pub(super) scope: Option<String>,
}

#[derive(Default)]
pub(super) struct CadenceLines {
    pub(super) cadence: u32,
    pub(super) touches: Vec<u32>,
    /// Words of `cancel_on` and `starts_with` as written, resolved once all words are known.
    pub(super) cancel_on: Vec<(u32, String)>,
    starts_with: Option<(u32, String)>,
    /// Whether the file itself says what happens to touches that pile up.
    pub(super) says_piled_up: bool,
}

#[derive(Default)]
pub(super) struct MessageLines {
    pub(super) message: u32,
    pub(super) text: u32,
    /// Further texts of the same message, with lines.
    pub(super) variants: Vec<(u32, String)>,
}

pub(super) const KEYS: [&str; 22] = [
    "flow",
    "schema",
    "version",
    "timezone",
    "locale",
    "migrate",
    "cycle",
    "vars",
    "events",
    "inbound",
    "takeover",
    "classifier",
    "calendar",
    "limits",
    "channels",
    "states",
    "globals",
    "transitions",
    "cadences",
    "messages",
    "alerts",
    "tests",
];

/// Reads a flow file. `None` where too little could be read to check the rest.
pub(super) fn parse(text: &str, file: &str) -> (Option<Parsed>, Vec<Finding>) {
    let root = match yaml::read(text, file) {
        Ok(root) => root,
        Err(findings) => return (None, findings),
    };
    let mut reader = Reader::new(file);
    let parsed = read_flow(&root, &mut reader);
    (parsed, reader.findings)
}

fn read_flow(root: &Node, reader: &mut Reader<'_>) -> Option<Parsed> {
    let fields = reader.fields(root, "the flow", &KEYS)?;
    let name = fields.need("flow", "the file", reader).and_then(|node| reader.name(node, "`flow`"));
    read_schema(&fields, reader);
    let version = fields.get("version").and_then(|node| reader.count(node, "`version`", 1)).unwrap_or(1);
    let locale = fields.get("locale").and_then(|node| reader.text(node, "`locale`"));
    let timezone = calendar::read_timezone(fields.get("timezone"), reader);
    let mut lines = Lines { calendar: fields.get("calendar").map_or(0, |node| node.line), ..Lines::default() };
    let mut words = words::read(fields.get("events"), reader, &mut lines);
    lines.reentry = channels::read_cycle(fields.get("cycle"), reader);
    let vars = messages::read_vars(fields.get("vars"), reader, &mut lines);
    let channels = channels::read(fields.get("channels"), reader, &mut lines);
    channels::read_alerts(fields.get("alerts"), reader);
    let inbound = fields.get("inbound");
    let keys = ["debounce", "bypass_debounce", "bot_loop_guard"];
    let inbound = inbound.and_then(|node| reader.fields(node, "`inbound`", &keys));
    let bypass = inbound.as_ref().and_then(|fields| fields.get("bypass_debounce"));
    let debounce = limits::read_debounce(inbound.as_ref().and_then(|fields| fields.get("debounce")), reader);
    let guard = inbound.as_ref().and_then(|fields| fields.get("bot_loop_guard"));
    lines.says_most = guard.is_some_and(
        |node| matches!(&node.value, Value::Map(entries) if entries.iter().any(|entry| entry.key == "most")),
    );
    let fallback = rules::read(fields.get("classifier"), reader, &mut lines);
    words::fall_back(fallback, &mut words, reader, &mut lines);
    let (states, clock_rows) = states::read(fields.get("states"), reader, &mut lines);
    let (mut globals, mut global_lines) = rows::read(fields.get("globals"), rows::Kind::Global, reader);
    let (mut transitions, mut transition_lines) = rows::read(fields.get("transitions"), rows::Kind::Transition, reader);
    let messages = messages::read(fields.get("messages"), reader, &mut lines);
    let mut cadences = cadence::read(fields.get("cadences"), reader, &mut lines);
    let opt_out_word = rules::role(&lines, reader, "opt_out", |rule| rule.opt_out)
        .or_else(|| rules::acknowledged(&globals, &messages));
    let opt_in_word = rules::role(&lines, reader, "opt_in", |rule| rule.opt_in)
        .or_else(|| lines.rules.iter().any(|(_, entry)| entry.rule.emit == "voltar").then(|| "voltar".to_owned()));
    cadence::resolve_types(&mut cadences, &words, opt_out_word.as_deref(), &lines, reader);
    if let Some(node) = bypass {
        let known: Vec<&str> = opt_out_word.as_deref().into_iter().collect();
        holds_anyway(node, "bypass_debounce", &known, reader);
    }
    for (rows, places) in [(&mut globals, &mut global_lines), (&mut transitions, &mut transition_lines)] {
        rows::expand(rows, places, &cadences);
    }
    cadence::arm_by_type(
        &cadences,
        &words,
        &mut [(&mut globals, &mut global_lines), (&mut transitions, &mut transition_lines)],
    );
    lines.globals = global_lines;
    lines.transitions = transition_lines;
    let maybe_opt_out_word = rules::role(&lines, reader, "maybe_opt_out", |rule| rule.maybe_opt_out);
    let roles = Roles {
        opt_out: opt_out_word.as_deref(),
        opt_in: opt_in_word.as_deref(),
        maybe: maybe_opt_out_word.as_deref(),
    };
    let classifier = rules::compile_rules(&lines, roles, reader);
    let flow = Flow {
        name: FlowName::from(name.unwrap_or_default()),
        version,
        timezone,
        words,
        locale: locale.unwrap_or_else(|| "pt-BR".to_owned()),
        debounce,
        takeover: people::read_takeover(fields.get("takeover"), reader, &mut lines),
        loop_guard: people::read_loop_guard(guard, reader),
        classifier,
        opt_out_word,
        opt_in_word,
        maybe_opt_out_word,
        calendar: calendar::read(fields.get("calendar"), reader),
        limits: limits::read_limits(fields.get("limits"), reader),
        states,
        initial: lines.initials.first().cloned().unwrap_or_default(),
        globals,
        transitions,
        clock_rows,
        vars,
        channels,
        cadences,
        messages,
        migrate: states::read_migrate(fields.get("migrate"), reader, &mut lines),
        tests: fields.get("tests").map(|node| scenario::read_all(node, reader)).unwrap_or_default(),
    };
    Some(Parsed { flow, lines })
}

fn read_schema(fields: &Fields<'_>, reader: &mut Reader<'_>) {
    let Some(node) = fields.get("schema") else { return };
    let schema = reader.number(node, "`schema`");
    if schema.is_some_and(|schema| schema != SCHEMA) {
        reader.error(
            "Y2",
            node.line,
            "this version of the file format is not known here",
            format!("write schema: {SCHEMA}"),
        );
    }
}

/// A key, or a list of words, that states what holds anyway. Another word would be a promise that nobody keeps.
fn holds_anyway(node: &Node, key: &str, known: &[&str], reader: &mut Reader<'_>) {
    for item in reader.one_or_list(node) {
        let Some(word) = reader.text(item, &format!("`{key}`")) else { continue };
        if !known.contains(&word.as_str()) {
            let message = format!("unknown `{key}: {word}`");
            reader.error("N1", item.line, message, suggest(&word, known.iter().copied()));
        }
    }
}

/// One word of a fixed set.
fn word_of<T>(
    node: &Node,
    key: &str,
    parse: impl Fn(&str) -> Option<T>,
    known: impl Iterator<Item = &'static str>,
    reader: &mut Reader<'_>,
) -> Option<T> {
    let word = reader.text(node, key)?;
    let value = parse(&word);
    if value.is_none() {
        reader.error("N1", node.line, format!("unknown `{key}: {word}`"), suggest(&word, known));
    }
    value
}

#[cfg(test)]
mod tests;
