//! YAML read into a tree that remembers lines.
//!
//! Flow and scenario files are read by hand from this tree, not by derived deserialisation: a reader of a broken file is
//! shown everything that is wrong in it at once, each with its line and the nearest known name. Anything a YAML 1.1 tool
//! would read otherwise (`on:` as a boolean, `22:00` as a number) is refused here, since people open these files in such
//! tools. JSON is accepted too, being YAML.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::duration;
use crate::finding::{Finding, suggest};

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Line from 1.
    pub(crate) line: u32,
    column: u32,
    /// What stands there.
    pub(crate) value: Value,
}

/// What stands at a place.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// A number with a fraction. No key of ours takes one.
    Float,
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: u32,
    column: u32,
    pub(crate) value: Node,
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Float => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map of keys",
        }
    }
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Float)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Tree>>()? {
            list.push(Node::from(item));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let value = Node::from(entries.next_value::<Spanned<Tree>>()?);
            let (line, column) = place(&key);
            map.push(Entry { key: key.value, line, column, value });
        }
        Ok(Value::Map(map))
    }
}

fn place<T>(spanned: &Spanned<T>) -> (u32, u32) {
    let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    (clamp(spanned.referenced.line()), clamp(spanned.referenced.column()))
}

impl From<Spanned<Tree>> for Node {
    fn from(spanned: Spanned<Tree>) -> Self {
        let (line, column) = place(&spanned);
        Node { line, column, value: spanned.value.0 }
    }
}

/// Reads a file's text. What a YAML 1.1 tool would misread is refused with `N2`, broken YAML with `Y1`.
pub(crate) fn read(text: &str, file: &str) -> Result<Node, Vec<Finding>> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 32, max_nodes: 100_000, max_documents: 1 },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let root = serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options).map_err(|error| {
        let line = error.location().map_or(0, |location| u32::try_from(location.line()).unwrap_or(0));
        let message = format!("the file is not readable YAML: {}", error.to_string().replace('\n', " "));
        vec![Finding::error("Y1", file, line, message, "see the line named, and the one before it")]
    })?;
    let root = Node::from(root);
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    refuse_old_readings(&root, &lines, file, &mut findings);
    if findings.is_empty() { Ok(root) } else { Err(findings) }
}

/// N2: keys that YAML 1.1 takes for booleans, and clock times without quotes.
fn refuse_old_readings(node: &Node, lines: &[&str], file: &str, findings: &mut Vec<Finding>) {
    const BOOLEAN_WORDS: [&str; 6] = ["on", "off", "yes", "no", "y", "n"];
    match &node.value {
        Value::Text(text) if (is_clock(text) || is_hours(text)) && !is_quoted(lines, node.line, node.column) => {
            let message = format!("{text} without quotes is something else for many YAML tools");
            findings.push(Finding::error("N2", file, node.line, message, format!("write \"{text}\"")));
        }
        Value::List(items) => {
            for item in items {
                refuse_old_readings(item, lines, file, findings);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                let is_word = BOOLEAN_WORDS.contains(&entry.key.to_lowercase().as_str());
                if is_word && !is_quoted(lines, entry.line, entry.column) {
                    let message = format!("the key `{}` is true or false for many YAML tools", entry.key);
                    findings.push(Finding::error("N2", file, entry.line, message, "use another word"));
                }
                refuse_old_readings(&entry.value, lines, file, findings);
            }
        }
        _ => {}
    }
}

fn is_clock(text: &str) -> bool {
    let mut parts = text.split(':');
    let is_number =
        |part: Option<&str>| part.is_some_and(|p| (1..=2).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()));
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}

/// `08:00-20:00`.
fn is_hours(text: &str) -> bool {
    text.split_once('-').is_some_and(|(from, to)| is_clock(from.trim()) && is_clock(to.trim()))
}

fn is_quoted(lines: &[&str], line: u32, column: u32) -> bool {
    let (Some(line), Some(column)) = (line.checked_sub(1), column.checked_sub(1)) else { return true };
    let character = lines.get(line as usize).and_then(|line| line.chars().nth(column as usize));
    matches!(character, Some('"' | '\'' | '|' | '>' | '*'))
}

#[cfg(test)]
thread_local! {
    /// Every list of known keys that was asked for: what the JSON Schema is held against.
    pub(crate) static KNOWN: std::cell::RefCell<std::collections::BTreeSet<std::collections::BTreeSet<String>>> =
        const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// Takes a tree apart and keeps account of what was wrong.
pub(crate) struct Reader<'a> {
    file: &'a str,
    /// What was found so far.
    pub(crate) findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Self { file, findings: Vec::new() }
    }

    pub(crate) fn error(&mut self, code: &'static str, line: u32, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding::error(code, self.file, line, message, fix));
    }

    pub(crate) fn warn(&mut self, code: &'static str, line: u32, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding::warning(code, self.file, line, message, fix));
    }

    /// Y3: the key is understood, and nothing acts on it yet.
    pub(crate) fn no_effect_yet(&mut self, line: u32, what: &str) {
        self.warn("Y3", line, format!("{what} has no effect yet"), "leave it out, or keep it for later");
    }

    fn wrong_shape(&mut self, node: &Node, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, not {}", node.value.kind());
        self.error("Y2", node.line, message, format!("write {wanted}"));
    }

    /// The entries of a map whose keys are all among `known`. Nothing at all counts as an empty map.
    pub(crate) fn fields<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Fields<'n>> {
        #[cfg(test)]
        KNOWN.with_borrow_mut(|lists| lists.insert(known.iter().map(|key| (*key).to_owned()).collect()));
        let entries = self.entries(node, what)?;
        for entry in entries {
            if !known.contains(&entry.key.as_str()) {
                let fix = suggest(&entry.key, known.iter().copied());
                self.error("N1", entry.line, format!("unknown key `{}` in {what}", entry.key), fix);
            }
        }
        Some(Fields { line: node.line, entries })
    }

    /// The entries of a map with keys of the author's own.
    pub(crate) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Null => Some(&[]),
            _ => {
                self.wrong_shape(node, what, "a map of keys");
                None
            }
        }
    }

    pub(crate) fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            Value::Null => &[],
            _ => {
                self.wrong_shape(node, what, "a list");
                &[]
            }
        }
    }

    /// One value, or a list of them.
    pub(crate) fn one_or_list<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        match &node.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(node),
        }
    }

    /// Text; a number is taken as its digits.
    pub(crate) fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Int(number) => Some(number.to_string()),
            _ => {
                self.wrong_shape(node, what, "text");
                None
            }
        }
    }

    /// A name: text that is not empty and holds no white space.
    pub(crate) fn name(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.text(node, what)?;
        if text.is_empty() || text.chars().any(char::is_whitespace) {
            self.error("Y2", node.line, format!("{what} {text:?} is no name"), "write one word");
            return None;
        }
        Some(text)
    }

    pub(crate) fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong_shape(node, what, "true or false");
                None
            }
        }
    }

    pub(crate) fn number(&mut self, node: &Node, what: &str) -> Option<i64> {
        match node.value {
            Value::Int(value) => Some(value),
            _ => {
                self.wrong_shape(node, what, "a whole number");
                None
            }
        }
    }

    /// A whole number that is no less than `least`.
    pub(crate) fn count(&mut self, node: &Node, what: &str, least: u32) -> Option<u32> {
        let number = self.number(node, what)?;
        match u32::try_from(number) {
            Ok(count) if count >= least => Some(count),
            _ => {
                self.error("Y2", node.line, format!("{what} is {number}"), format!("write {least} or more"));
                None
            }
        }
    }

    pub(crate) fn duration(&mut self, node: &Node, what: &str) -> Option<Duration> {
        let text = self.text(node, what)?;
        match duration::parse(&text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.error("Y2", node.line, format!("{what}: {error}"), "write a number with ms, s, m, h or d");
                None
            }
        }
    }
}

/// A map whose keys were checked.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    /// Where the map starts.
    pub(crate) line: u32,
    entries: &'n [Entry],
}

impl<'n> Fields<'n> {
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of a key that has to be there.
    pub(crate) fn need(&self, key: &str, what: &str, reader: &mut Reader<'_>) -> Option<&'n Node> {
        let found = self.get(key);
        if found.is_none() {
            reader.error("Y2", self.line, format!("{what} has no `{key}`"), format!("add `{key}`"));
        }
        found
    }
}
