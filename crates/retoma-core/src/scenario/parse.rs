//! Scenarios from YAML: the `tests:` of a flow file, or a file of their own (a list, or `{flow, tests}`).

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Expect, Scenario, ScenarioFile, Step};
use crate::event::EventKind;
use crate::finding::{Finding, suggest};
use crate::flow::Flow;
use crate::send_check::Reason;
use crate::yaml::{self, Fields, Node, Reader, Value};

/// Whether a scenario must say what it expects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expecting {
    Needed,
    /// It is only told.
    Optional,
}

/// Reads a file of scenarios.
pub fn parse(text: &str, file: &str) -> Result<ScenarioFile, Vec<Finding>> {
    read_file(&yaml::read(text, file)?, file, Expecting::Needed)
}

/// Reads what shall be told, not judged: scenarios that may leave `expect` out, or only the steps of one, which then begins
/// at `start`.
pub fn parse_story(text: &str, file: &str, start: Timestamp) -> Result<Vec<Scenario>, Vec<Finding>> {
    let root = yaml::read(text, file)?;
    let is_step =
        |node: &Node| matches!(&node.value, Value::Map(entries) if entries.iter().any(|entry| entry.key == "event"));
    if !matches!(&root.value, Value::List(items) if items.first().is_some_and(is_step)) {
        return read_file(&root, file, Expecting::Optional).map(|file| file.scenarios);
    }
    let mut reader = Reader::new(file);
    let steps = read_steps(&root, &mut reader);
    if !reader.findings.is_empty() {
        return Err(reader.findings);
    }
    Ok(vec![Scenario { name: file.to_owned(), line: root.line, start, steps, expect: Expect::default() }])
}

fn read_file(root: &Node, file: &str, expecting: Expecting) -> Result<ScenarioFile, Vec<Finding>> {
    let mut reader = Reader::new(file);
    let parsed = match &root.value {
        Value::List(_) => ScenarioFile { flow: None, scenarios: read_list(root, expecting, &mut reader) },
        _ => {
            let Some(fields) = reader.fields(root, "a scenario file", &["flow", "tests"]) else {
                return Err(reader.findings);
            };
            let flow = fields.get("flow").and_then(|node| reader.text(node, "`flow`"));
            let tests = fields.need("tests", "the scenario file", &mut reader);
            let scenarios = tests.map(|node| read_list(node, expecting, &mut reader)).unwrap_or_default();
            ScenarioFile { flow, scenarios }
        }
    };
    if reader.findings.is_empty() { Ok(parsed) } else { Err(reader.findings) }
}

/// Reads a list of scenarios.
pub(crate) fn read_all(node: &Node, reader: &mut Reader<'_>) -> Vec<Scenario> {
    read_list(node, Expecting::Needed, reader)
}

fn read_list(node: &Node, expecting: Expecting, reader: &mut Reader<'_>) -> Vec<Scenario> {
    reader.list(node, "`tests`").iter().filter_map(|item| read_scenario(item, expecting, reader)).collect()
}

fn read_scenario(node: &Node, expecting: Expecting, reader: &mut Reader<'_>) -> Option<Scenario> {
    let fields = reader.fields(node, "a scenario", &["name", "start", "steps", "expect"])?;
    let name = fields.need("name", "the scenario", reader).and_then(|node| reader.text(node, "`name`"));
    let start = fields.need("start", "the scenario", reader).and_then(|node| read_instant(node, "`start`", reader));
    let steps = fields.need("steps", "the scenario", reader);
    let steps = steps.map(|node| read_steps(node, reader)).unwrap_or_default();
    let expect = match (fields.get("expect"), expecting) {
        (None, Expecting::Optional) => Some(Expect::default()),
        _ => fields.need("expect", "the scenario", reader).and_then(|node| read_expect(node, reader)),
    };
    Some(Scenario { name: name?, line: node.line, start: start?, steps, expect: expect? })
}

fn read_instant(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<Timestamp> {
    let text = reader.text(node, what)?;
    let parsed = text.parse::<Timestamp>().ok();
    if parsed.is_none() {
        let message = format!("{what} {text:?} is not an instant with its offset");
        reader.error("Y2", node.line, message, "write \"2026-12-02T10:00:00-03:00\"");
    }
    parsed
}

fn read_steps(node: &Node, reader: &mut Reader<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for item in reader.list(node, "`steps`") {
        let Some(step) = read_step(item, reader) else { continue };
        if steps.last().is_some_and(|last| step.at < last.at) {
            reader.error("Y2", step.line, "steps must stand in order of time", "move the step up");
        }
        steps.push(step);
    }
    steps
}

fn read_step(node: &Node, reader: &mut Reader<'_>) -> Option<Step> {
    const KEYS: [&str; 9] = ["at", "event", "text", "order", "offer", "vars", "occurred_at", "until", "to"];
    let fields = reader.fields(node, "a step", &KEYS)?;
    let at = fields.need("at", "the step", reader).and_then(|node| reader.duration(node, "`at`"));
    let event = fields.need("event", "the step", reader).and_then(|node| read_kind(node, reader));
    let duration = |key: &str, reader: &mut Reader<'_>| {
        fields.get(key).and_then(|node| reader.duration(node, &format!("`{key}`")))
    };
    let text =
        |key: &str, reader: &mut Reader<'_>| fields.get(key).and_then(|node| reader.text(node, &format!("`{key}`")));
    let occurred_at = duration("occurred_at", reader);
    let until = duration("until", reader);
    let message = text("text", reader);
    let order = text("order", reader);
    let offer = text("offer", reader);
    let to = text("to", reader);
    let vars = read_vars(&fields, reader);
    let (at, event) = (at?, event?);
    for (key, is_given, wanted) in [
        ("text", message.is_some(), EventKind::MessageReceived),
        ("until", until.is_some(), EventKind::OperatorPause),
        ("to", to.is_some(), EventKind::OperatorMove),
    ] {
        if is_given && event != wanted && !(key == "text" && event == EventKind::MessageHuman) {
            reader.error("Y2", node.line, format!("`{key}` says nothing in {event}"), format!("it goes with {wanted}"));
        }
    }
    Some(Step {
        line: node.line,
        at,
        occurred_at: occurred_at.unwrap_or(at),
        event,
        text: message,
        order,
        offer,
        vars,
        until,
        to,
    })
}

fn read_kind(node: &Node, reader: &mut Reader<'_>) -> Option<EventKind> {
    let word = reader.text(node, "`event`")?;
    let kinds = || EventKind::ALL.iter().copied().filter(|kind| *kind != EventKind::ClockTimeout);
    let kind = crate::flow::type_of(&word).filter(|kind| *kind != EventKind::ClockTimeout);
    if kind.is_none() {
        let fix = match word.as_str() {
            "timeout" | "clock.timeout" => "leave it out: the clock speaks by itself".to_owned(),
            _ => suggest(&word, kinds().map(EventKind::as_str)),
        };
        reader.error("N1", node.line, format!("unknown event type `{word}`"), fix);
    }
    kind
}

fn read_vars(fields: &Fields<'_>, reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let Some(node) = fields.get("vars") else { return BTreeMap::new() };
    let entries = reader.entries(node, "`vars`").unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), reader.text(&entry.value, &entry.key)?))).collect()
}

fn read_expect(node: &Node, reader: &mut Reader<'_>) -> Option<Expect> {
    // `skipped` is another word for `avoided`.
    const KEYS: [&str; 7] = ["state", "sent", "sent_count", "sent_at", "sent_between", "avoided", "skipped"];
    let fields = reader.fields(node, "`expect`", &KEYS)?;
    let mut expect = Expect {
        state: fields.get("state").and_then(|node| reader.text(node, "`state`")),
        sent_count: fields.get("sent_count").and_then(|node| reader.count(node, "`sent_count`", 0)),
        ..Expect::default()
    };
    if let Some(node) = fields.get("sent") {
        let names = reader.list(node, "`sent`").iter();
        expect.sent = Some(names.filter_map(|item| reader.name(item, "a message")).collect());
    }
    for (key, value) in pairs(&fields, "sent_at", reader) {
        expect.sent_at.extend(read_instant(value, "`sent_at`", reader).map(|at| (key, at)));
    }
    for (key, value) in pairs(&fields, "sent_between", reader) {
        expect.sent_between.extend(read_hours(value, reader).map(|hours| (key, hours)));
    }
    let skipped = pairs(&fields, "skipped", reader);
    for (key, value) in pairs(&fields, "avoided", reader).into_iter().chain(skipped) {
        expect.avoided.extend(read_reason(value, reader).map(|reason| (key, reason)));
    }
    Some(expect)
}

fn pairs<'n>(fields: &Fields<'n>, key: &str, reader: &mut Reader<'_>) -> Vec<(String, &'n Node)> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    let entries = reader.entries(node, &format!("`{key}`")).unwrap_or_default();
    entries.iter().map(|entry| (entry.key.clone(), &entry.value)).collect()
}

fn read_hours(node: &Node, reader: &mut Reader<'_>) -> Option<(u16, u16)> {
    let items = reader.list(node, "`sent_between`");
    let times: Vec<Option<u16>> =
        items.iter().map(|item| if let Value::Text(text) = &item.value { minute_of_day(text) } else { None }).collect();
    match times[..] {
        [Some(from), Some(to)] => Some((from, to)),
        _ => {
            let message = "`sent_between` takes two local times of day";
            reader.error("Y2", node.line, message, "write [\"08:00\", \"08:20\"]");
            None
        }
    }
}

/// `08:20` as minutes of the day; `24:00` is the end of the day.
pub(crate) fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |part: &str| -> Option<u16> {
        let is_plain = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| part.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let is_time = minutes < 60 && (hours < 24 || (hours == 24 && minutes == 0));
    is_time.then_some(hours * 60 + minutes)
}

fn read_reason(node: &Node, reader: &mut Reader<'_>) -> Option<Reason> {
    let word = reader.text(node, "a reason")?;
    let reason = Reason::parse(&word);
    if reason.is_none() {
        let fix = suggest(&word, Reason::ALL.iter().map(|reason| reason.as_str()));
        reader.error("N1", node.line, format!("unknown reason `{word}`"), fix);
    }
    reason
}

/// N1: names in scenarios that the flow does not have.
pub(crate) fn unknown_names(scenarios: &[Scenario], flow: &Flow, file: &str) -> Vec<Finding> {
    let mut reader = Reader::new(file);
    let messages = || flow.messages.keys().map(String::as_str);
    let states = || flow.states.keys().map(String::as_str);
    for scenario in scenarios {
        let expect = &scenario.expect;
        let sent = expect.sent.iter().flatten().chain(expect.sent_at.keys()).chain(expect.sent_between.keys());
        for name in sent.filter(|name| !flow.messages.contains_key(*name)) {
            let message = format!("scenario {:?} expects the unknown message `{name}`", scenario.name);
            reader.error("N1", scenario.line, message, suggest(name, messages()));
        }
        let moved = scenario.steps.iter().filter_map(|step| step.to.as_ref().map(|to| (step.line, to)));
        let named = expect.state.iter().map(|state| (scenario.line, state)).chain(moved);
        for (line, name) in named.filter(|(_, name)| !flow.states.contains_key(*name)) {
            let message = format!("scenario {:?} names the unknown state `{name}`", scenario.name);
            reader.error("N1", line, message, suggest(name, states()));
        }
        let is_known = |name: &str| has_touch(flow, name) || flow.messages.contains_key(name);
        for name in expect.avoided.keys().filter(|name| !is_known(name)) {
            let touches = flow.cadences.values().flat_map(|cadence| &cadence.touches).map(|touch| touch.id.as_str());
            let message = format!("scenario {:?} expects the unknown touch or message `{name}`", scenario.name);
            reader.error("N1", scenario.line, message, suggest(name, touches.chain(messages())));
        }
    }
    reader.findings
}

fn has_touch(flow: &Flow, name: &str) -> bool {
    let (cadence, touch) = match name.split_once('.') {
        Some((cadence, touch)) => (Some(cadence), touch),
        None => (None, name),
    };
    let cadences = flow.cadences.iter().filter(|(name, _)| cadence.is_none_or(|wanted| *name == wanted));
    cadences.flat_map(|(_, cadence)| &cadence.touches).any(|known| known.id == touch)
}

#[cfg(test)]
mod tests;
