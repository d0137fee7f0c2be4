//! Flow files: YAML to [`Flow`], with the line of every name for the checks that follow.
//!
//! Reading goes on after a mistake, so that one run reports all of them. What is wrong in shape or value is said here (N1
//! for unknown keys, N2, Y1 to Y3, C3); what needs the whole flow is said by `check`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Action, Debounce, Flow, Frequency, Limits, Message, Row, State, Timeout};
use crate::classify::lexicon::Lexicon;
use crate::classify::{Classifier, Match, Roles, Rule};
use crate::event::EventKind;
use crate::finding::{Finding, suggest};
use crate::ids::FlowName;
use crate::scenario;
use crate::task::{MessageClass, OnAmbiguous};
use crate::yaml::{self, Fields, Node, Reader, Value};

mod cadence;
mod calendar;
mod people;
mod rows;

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
}

#[derive(Default)]
pub(super) struct CadenceLines {
    pub(super) cadence: u32,
    pub(super) touches: Vec<u32>,
    /// Words of `cancel_on` and `starts_with` as written, resolved once all words are known.
    cancel_on: Vec<(u32, String)>,
    starts_with: Option<(u32, String)>,
    /// Whether the file itself says what happens to touches that pile up.
    pub(super) says_piled_up: bool,
}

#[derive(Default)]
pub(super) struct MessageLines {
    pub(super) message: u32,
    pub(super) text: u32,
}

const KEYS: [&str; 17] = [
    "flow",
    "schema",
    "version",
    "timezone",
    "locale",
    "events",
    "inbound",
    "takeover",
    "classifier",
    "calendar",
    "limits",
    "states",
    "globals",
    "transitions",
    "cadences",
    "messages",
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
    let words = read_words(fields.get("events"), reader, &mut lines);
    let inbound =
        fields.get("inbound").and_then(|node| reader.fields(node, "`inbound`", &["debounce", "bot_loop_guard"]));
    let debounce = read_debounce(inbound.as_ref().and_then(|fields| fields.get("debounce")), reader);
    let guard = inbound.as_ref().and_then(|fields| fields.get("bot_loop_guard"));
    read_rules(fields.get("classifier"), reader, &mut lines);
    let states = read_states(fields.get("states"), reader, &mut lines);
    let (globals, global_lines) = rows::read(fields.get("globals"), rows::Kind::Global, reader);
    let (transitions, transition_lines) = rows::read(fields.get("transitions"), rows::Kind::Transition, reader);
    let messages = read_messages(fields.get("messages"), reader, &mut lines);
    let mut cadences = cadence::read(fields.get("cadences"), reader, &mut lines);
    lines.globals = global_lines;
    lines.transitions = transition_lines;
    let opt_out_word =
        role(&lines, reader, "opt_out", |rule| rule.opt_out).or_else(|| acknowledged(&globals, &messages));
    let opt_in_word = role(&lines, reader, "opt_in", |rule| rule.opt_in)
        .or_else(|| lines.rules.iter().any(|(_, entry)| entry.rule.emit == "voltar").then(|| "voltar".to_owned()));
    cadence::resolve_types(&mut cadences, &words, opt_out_word.as_deref(), &lines, reader);
    let maybe_opt_out_word = role(&lines, reader, "maybe_opt_out", |rule| rule.maybe_opt_out);
    let roles = Roles {
        opt_out: opt_out_word.as_deref(),
        opt_in: opt_in_word.as_deref(),
        maybe: maybe_opt_out_word.as_deref(),
    };
    let classifier = compile_rules(&lines, roles, reader);
    let flow = Flow {
        name: FlowName::from(name.unwrap_or_default()),
        version,
        timezone,
        words,
        locale: locale.unwrap_or_else(|| "pt-BR".to_owned()),
        debounce,
        takeover: people::read_takeover(fields.get("takeover"), reader),
        loop_guard: people::read_loop_guard(guard, reader),
        classifier,
        opt_out_word,
        opt_in_word,
        maybe_opt_out_word,
        calendar: calendar::read(fields.get("calendar"), reader),
        limits: read_limits(fields.get("limits"), reader),
        states,
        initial: lines.initials.first().cloned().unwrap_or_default(),
        globals,
        transitions,
        cadences,
        messages,
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

/// `events: {word: canonical type}`.
fn read_words(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, EventKind> {
    let mut words: BTreeMap<String, EventKind> = BTreeMap::new();
    let entries = node.and_then(|node| reader.entries(node, "`events`")).unwrap_or_default();
    for entry in entries {
        // Also of a word that is wrong: its rows need not complain again.
        lines.words.insert(entry.key.clone(), entry.line);
        let Some(named) = reader.text(&entry.value, &entry.key) else { continue };
        let Ok(kind) = named.parse::<EventKind>() else {
            let fix = suggest(&named, EventKind::ALL.iter().map(|kind| kind.as_str()));
            reader.error("N1", entry.line, format!("unknown event type `{named}`"), fix);
            continue;
        };
        if super::BUILT_IN_WORDS.contains(&entry.key.as_str()) {
            let message = format!("`{}` is the clock's own word", entry.key);
            reader.error("Y2", entry.line, message, "use another word");
            continue;
        }
        if let Some((other, _)) = words.iter().find(|(_, known)| **known == kind) {
            let message = format!("`{other}` and `{}` are both {kind}", entry.key);
            reader.error("Y2", entry.line, message, "keep one word for each type");
            continue;
        }
        words.insert(entry.key.clone(), kind);
    }
    words
}

fn read_debounce(node: Option<&Node>, reader: &mut Reader<'_>) -> Debounce {
    let mut debounce = Debounce { quiet: Duration::from_secs(4), max_wait: Duration::from_secs(40) };
    let Some(node) = node else { return debounce };
    let Some(fields) = reader.fields(node, "`debounce`", &["quiet", "max_wait"]) else { return debounce };
    if let Some(quiet) = fields.get("quiet").and_then(|node| reader.duration(node, "`quiet`")) {
        debounce.quiet = quiet;
    }
    match fields.get("max_wait").and_then(|node| reader.duration(node, "`max_wait`")) {
        Some(max_wait) => debounce.max_wait = max_wait,
        None => debounce.max_wait = debounce.max_wait.max(debounce.quiet),
    }
    if debounce.max_wait < debounce.quiet {
        reader.error("Y2", node.line, "`max_wait` is shorter than `quiet`", "write a longer `max_wait`");
    }
    debounce
}

fn read_rules(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) {
    let Some(fields) = node.and_then(|node| reader.fields(node, "`classifier`", &["groups", "rules"])) else { return };
    lines.lexicon = read_groups(fields.get("groups"), reader);
    let Some(rules) = fields.get("rules") else { return };
    for item in reader.list(rules, "`rules`") {
        if let Some(entry) = read_rule(item, reader) {
            lines.rules.push((item.line, entry));
        }
    }
}

/// `groups: {name: [words]}`.
fn read_groups(node: Option<&Node>, reader: &mut Reader<'_>) -> Lexicon {
    let entries = node.and_then(|node| reader.entries(node, "`groups`")).unwrap_or_default();
    let groups: Vec<_> = entries.iter().map(|entry| (entry.key.clone(), read_texts(&entry.value, reader))).collect();
    Lexicon::read(&groups).unwrap_or_else(|errors| {
        for (place, problem) in errors {
            let message = format!("the group `{}` cannot be used: {problem}", entries[place].key);
            reader.error("C3", entries[place].line, message, "write words, such as nao, or mand(a|e|ar)");
        }
        Lexicon::default()
    })
}

fn read_rule(node: &Node, reader: &mut Reader<'_>) -> Option<RuleEntry> {
    const KEYS: [&str; 8] = ["emit", "priority", "match", "any", "unless", "opt_out", "opt_in", "maybe_opt_out"];
    let fields = reader.fields(node, "a rule", &KEYS)?;
    let emit = fields.need("emit", "the rule", reader).and_then(|node| reader.name(node, "`emit`"));
    let priority = fields.get("priority").and_then(|node| reader.number(node, "`priority`")).unwrap_or(0);
    let matching = fields.need("match", "the rule", reader).and_then(|node| {
        let word = reader.text(node, "`match`")?;
        let matching = Match::parse(&word);
        if matching.is_none() {
            reader.error("N1", node.line, format!("unknown `match: {word}`"), suggest(&word, Match::WORDS));
        }
        matching
    });
    let any = fields.need("any", "the rule", reader).map(|node| read_texts(node, reader)).unwrap_or_default();
    let unless = fields.get("unless").map(|node| read_texts(node, reader)).unwrap_or_default();
    if any.is_empty() {
        reader.error("Y2", node.line, "the rule has no pattern", "write `any: [..]`, or take the rule out");
    }
    let mut flag = |key: &str| fields.get(key).and_then(|node| reader.flag(node, &format!("`{key}`"))).unwrap_or(false);
    let (opt_out, opt_in, maybe_opt_out) = (flag("opt_out"), flag("opt_in"), flag("maybe_opt_out"));
    let rule = Rule { emit: emit?, priority, matching: matching.unwrap_or(Match::Whole), any, unless };
    Some(RuleEntry { rule, opt_out, opt_in, maybe_opt_out })
}

fn read_texts(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    reader.one_or_list(node).iter().filter_map(|item| reader.text(item, "a pattern")).collect()
}

/// The one word of the rules with a role flag.
fn role(lines: &Lines, reader: &mut Reader<'_>, flag: &str, has: impl Fn(&RuleEntry) -> bool) -> Option<String> {
    let mut flagged = lines.rules.iter().filter(|(_, entry)| has(entry));
    let word = &flagged.next()?.1.rule.emit;
    for (line, entry) in flagged.filter(|(_, entry)| entry.rule.emit != *word) {
        let message = format!("`{flag}` stands at two words, `{word}` and `{}`", entry.rule.emit);
        reader.error("C2", *line, message, "keep one word for it");
    }
    Some(word.clone())
}

/// The event of the global row that confirms an opt-out.
fn acknowledged(globals: &[Row], messages: &BTreeMap<String, Message>) -> Option<String> {
    let confirms = |action: &Action| matches!(action, Action::Send(name) if messages.get(name).is_some_and(|m| m.class == MessageClass::OptOutAck));
    globals.iter().find(|row| row.actions.iter().any(confirms)).map(|row| row.event.clone())
}

fn compile_rules(lines: &Lines, roles: Roles<'_>, reader: &mut Reader<'_>) -> Classifier {
    let rules: Vec<Rule> = lines.rules.iter().map(|(_, entry)| entry.rule.clone()).collect();
    Classifier::compile(lines.lexicon.clone(), &rules, roles).unwrap_or_else(|errors| {
        for error in errors {
            let message = format!("the pattern {:?} cannot be used: {error}", error.pattern);
            let fix = match rules[error.rule].matching {
                Match::Phrase => "write words and {groups}, with ?, *, + or (a|b) where they may vary",
                _ => "write it without accents, in regex syntax",
            };
            reader.error("C3", lines.rules[error.rule].0, message, fix);
        }
        Classifier::default()
    })
}

fn read_states(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, State> {
    let mut states = BTreeMap::new();
    let entries = node.and_then(|node| reader.entries(node, "`states`")).unwrap_or_default();
    for entry in entries {
        let what = format!("state {}", entry.key);
        let Some(fields) = reader.fields(&entry.value, &what, &["initial", "final", "timeout"]) else { continue };
        if fields.get("initial").and_then(|node| reader.flag(node, "`initial`")).unwrap_or(false) {
            lines.initials.push(entry.key.clone());
        }
        let is_final = fields.get("final").and_then(|node| reader.flag(node, "`final`")).unwrap_or(false);
        let timeout = fields.get("timeout").and_then(|node| read_timeout(node, &what, reader));
        lines.states.insert(entry.key.clone(), entry.line);
        states.insert(entry.key.clone(), State { timeout, is_final });
    }
    states
}

/// `{after, jitter}`, or `after` alone.
fn read_timeout(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<Timeout> {
    let (after, jitter) = if matches!(node.value, Value::Map(_)) {
        let fields = reader.fields(node, &format!("the timeout of {what}"), &["after", "jitter"])?;
        let after = fields.need("after", "the timeout", reader).and_then(|node| reader.duration(node, "`after`"));
        (after?, fields.get("jitter").and_then(|node| reader.duration(node, "`jitter`")))
    } else {
        (reader.duration(node, "`timeout`")?, None)
    };
    if after.is_zero() {
        reader.error("Y2", node.line, format!("{what} is left the moment it is entered"), "write a longer `after`");
    }
    // C5: up to five minutes, but never so much that a short deadline loses its meaning (T2).
    let jitter = jitter.unwrap_or_else(|| Duration::from_secs(300).min(after / 2));
    Some(Timeout { after, jitter })
}

fn read_limits(node: Option<&Node>, reader: &mut Reader<'_>) -> Limits {
    const DAY: Duration = Duration::from_secs(86_400);
    let mut limits = Limits {
        frequency: vec![Frequency { max: 3, per: DAY }, Frequency { max: 6, per: DAY * 7 }],
        unanswered_automatic: 8,
        receipts_after_opt_out: true,
    };
    let keys = ["frequency", "unanswered_automatic", "receipts_after_opt_out"];
    let Some(fields) = node.and_then(|node| reader.fields(node, "`limits`", &keys)) else { return limits };
    if let Some(node) = fields.get("frequency") {
        limits.frequency =
            reader.list(node, "`frequency`").iter().filter_map(|item| read_frequency(item, reader)).collect();
    }
    if let Some(count) =
        fields.get("unanswered_automatic").and_then(|node| reader.count(node, "`unanswered_automatic`", 1))
    {
        limits.unanswered_automatic = count;
    }
    if let Some(flag) =
        fields.get("receipts_after_opt_out").and_then(|node| reader.flag(node, "`receipts_after_opt_out`"))
    {
        limits.receipts_after_opt_out = flag;
    }
    limits
}

fn read_frequency(node: &Node, reader: &mut Reader<'_>) -> Option<Frequency> {
    /// The store keeps a contact's sends of seven days at hand; a longer window would be counted short.
    const LONGEST: Duration = Duration::from_secs(7 * 86_400);
    let fields = reader.fields(node, "a frequency", &["max", "per"])?;
    let max = fields.need("max", "the frequency", reader).and_then(|node| reader.count(node, "`max`", 0));
    let per = fields.need("per", "the frequency", reader).and_then(|node| reader.duration(node, "`per`"));
    if per.is_some_and(|per| per.is_zero() || per > LONGEST) {
        reader.error("Y2", node.line, "`per` must be more than nothing and at most 7d", "write 24h, or 7d");
    }
    Some(Frequency { max: max?, per: per? })
}

fn read_messages(node: Option<&Node>, reader: &mut Reader<'_>, lines: &mut Lines) -> BTreeMap<String, Message> {
    let mut messages = BTreeMap::new();
    let entries = node.and_then(|node| reader.entries(node, "`messages`")).unwrap_or_default();
    for entry in entries {
        let what = format!("message {}", entry.key);
        let keys = ["class", "text", "template", "on_ambiguous"];
        let Some(fields) = reader.fields(&entry.value, &what, &keys) else { continue };
        let class = fields.need("class", &what, reader).and_then(|node| {
            let parse = |word: &str| MessageClass::OF_MESSAGES.iter().copied().find(|class| class.as_str() == word);
            word_of(node, "class", parse, MessageClass::OF_MESSAGES.iter().map(|class| class.as_str()), reader)
        });
        let text = fields.need("text", &what, reader);
        let text_line = text.map_or(entry.line, |node| node.line);
        let text = text.and_then(|node| reader.text(node, "`text`"));
        let on_ambiguous = fields.get("on_ambiguous").and_then(|node| {
            word_of(node, "on_ambiguous", OnAmbiguous::parse, OnAmbiguous::ALL.iter().map(|way| way.as_str()), reader)
        });
        if let Some(node) = fields.get("template") {
            reader.no_effect_yet(node.line, "`template`");
        }
        // Also where the message itself is broken: its name is known, so nothing else needs to complain.
        let text = text.unwrap_or_default().trim_end().to_owned();
        lines.messages.insert(entry.key.clone(), MessageLines { message: entry.line, text: text_line });
        let class = class.unwrap_or(MessageClass::Reminder);
        messages.insert(entry.key.clone(), Message { class, text, on_ambiguous });
    }
    messages
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
