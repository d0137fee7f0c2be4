//! A TOML file with positions: every table and value remembers where it stands, so that a finding can name its line, and
//! every table remembers which keys were asked for, so that a key that nobody reads is reported instead of ignored.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use retoma_core::finding::{Finding, Level, suggest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a file, its lines, and what was found wrong with it so far.
pub(super) struct Document<'t> {
    file: String,
    text: &'t str,
    findings: RefCell<Vec<Finding>>,
}

/// A value with its place and its full name (`sources.zap.rate`).
#[derive(Clone)]
pub(super) struct Value<'d> {
    pub(super) name: String,
    span: Range<usize>,
    value: &'d DeValue<'d>,
    document: &'d Document<'d>,
}

/// A table whose keys are read one by one; [`Section::finish`] reports those that were not.
pub(super) struct Section<'d> {
    pub(super) name: String,
    span: Range<usize>,
    table: &'d DeTable<'d>,
    document: &'d Document<'d>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'t> Document<'t> {
    pub(super) fn new(file: &str, text: &'t str) -> Self {
        Self { file: file.to_owned(), text, findings: RefCell::default() }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings.into_inner()
    }

    /// Takes findings over that another reader made (a flow file's).
    pub(super) fn adopt(&self, findings: Vec<Finding>) {
        self.findings.borrow_mut().extend(findings);
    }

    pub(super) fn syntax(&self, error: &toml::de::Error) {
        let at = error.span().map_or(0, |span| span.start);
        self.report(Level::Error, "syntax", at, error.message().trim().to_owned(), "correct the TOML at this line");
    }

    fn report(&self, level: Level, code: &'static str, at: usize, message: String, fix: impl Into<String>) {
        let line = self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
        self.findings.borrow_mut().push(Finding {
            code,
            level,
            file: self.file.clone(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            message,
            fix: fix.into(),
        });
    }

    pub(super) fn root(&'t self, table: &'t Spanned<DeTable<'t>>) -> Section<'t> {
        Section {
            name: String::new(),
            span: table.span(),
            table: table.get_ref(),
            document: self,
            asked: RefCell::default(),
        }
    }
}

impl<'d> Section<'d> {
    /// The value of a key, of whatever kind. Asking makes the key a known one.
    pub(super) fn value(&self, key: &'static str) -> Option<Value<'d>> {
        self.asked.borrow_mut().insert(key);
        let (_, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(self.wrap(key, value))
    }

    fn wrap(&self, key: &str, value: &'d Spanned<DeValue<'d>>) -> Value<'d> {
        Value { name: self.name_of(key), span: value.span(), value: value.get_ref(), document: self.document }
    }

    pub(super) fn name_of(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        self.value(key)?.text()
    }

    /// A text that must be there.
    pub(super) fn required_text(&self, key: &'static str, example: &str) -> Option<String> {
        if !self.has(key) {
            self.missing(key, example);
            self.asked.borrow_mut().insert(key);
            return None;
        }
        self.text(key)
    }

    pub(super) fn missing(&self, key: &'static str, example: &str) {
        self.asked.borrow_mut().insert(key);
        self.error("missing_key", format!("{} is missing", self.name_of(key)), format!("add {key} = {example}"));
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    pub(super) fn adopt(&self, findings: Vec<Finding>) {
        self.document.adopt(findings);
    }

    /// A sub-table, inline or not.
    pub(super) fn section(&self, key: &'static str) -> Option<Section<'d>> {
        self.value(key)?.section()
    }

    /// Every entry of a table whose keys are names of the user's own (`[sources.*]`).
    pub(super) fn entries(&self) -> Vec<(String, Value<'d>)> {
        self.table.iter().map(|(name, value)| (name.get_ref().to_string(), self.wrap(name.get_ref(), value))).collect()
    }

    pub(super) fn error(&self, code: &'static str, message: String, fix: impl Into<String>) {
        self.document.report(Level::Error, code, self.span.start, message, fix);
    }

    pub(super) fn warning(&self, code: &'static str, message: String, fix: impl Into<String>) {
        self.document.report(Level::Warning, code, self.span.start, message, fix);
    }

    /// Reports a key that this version knows and cannot do. Silence would be a promise.
    pub(super) fn not_available(&self, level: Level, key: &'static str, instead: &str) {
        if let Some(value) = self.value(key) {
            value.report(level, "not_available", format!("{} is not available in this version", value.name), instead);
        }
    }

    /// Reports every key that nobody asked for.
    pub(super) fn finish(self) {
        let asked = self.asked.borrow();
        for (name, _) in self.table.iter() {
            let key = name.get_ref().as_ref();
            if asked.contains(key) {
                continue;
            }
            let place =
                if self.name.is_empty() { "at the top level".to_owned() } else { format!("in [{}]", self.name) };
            let fix = suggest(key, asked.iter().copied());
            self.document.report(
                Level::Error,
                "unknown_key",
                name.span().start,
                format!("unknown key {key} {place}"),
                fix,
            );
        }
    }
}

impl<'d> Value<'d> {
    pub(super) fn report(&self, level: Level, code: &'static str, message: String, fix: impl Into<String>) {
        self.document.report(level, code, self.span.start, message, fix);
    }

    pub(super) fn error(&self, code: &'static str, message: String, fix: impl Into<String>) {
        self.report(Level::Error, code, message, fix);
    }

    pub(super) fn warning(&self, code: &'static str, message: String, fix: impl Into<String>) {
        self.report(Level::Warning, code, message, fix);
    }

    fn wrong_kind(&self, wanted: &str) {
        let message = format!("{} must be {wanted}, not {}", self.name, self.value.type_str());
        self.error("bad_value", message, format!("write {wanted}"));
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn text(&self) -> Option<String> {
        let text = self.value.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong_kind("a text in quotes");
        }
        text
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        let answer = self.value.as_bool();
        if answer.is_none() {
            self.wrong_kind("true or false");
        }
        answer
    }

    /// A whole number of at least `least`.
    pub(super) fn count(&self, least: u32) -> Option<u32> {
        let number = self.value.as_integer().and_then(|number| {
            u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|number| *number >= least)
        });
        if number.is_none() {
            self.error(
                "bad_value",
                format!("{} must be a whole number of at least {least}", self.name),
                "write a number",
            );
        }
        number
    }

    /// A number, whole or not.
    pub(super) fn number(&self) -> Option<f64> {
        let text = match self.value {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => "",
        };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        if number.is_none() {
            self.wrong_kind("a number");
        }
        number
    }

    /// A list's values, each named by its position.
    pub(super) fn list(&self) -> Option<Vec<Value<'d>>> {
        let Some(array) = self.value.as_array() else {
            self.wrong_kind("a list in [..]");
            return None;
        };
        let wrap = |(position, value): (usize, &'d Spanned<DeValue<'d>>)| Value {
            name: format!("{}[{position}]", self.name),
            span: value.span(),
            value: value.get_ref(),
            document: self.document,
        };
        Some(array.iter().enumerate().map(wrap).collect())
    }

    pub(super) fn section(&self) -> Option<Section<'d>> {
        let Some(table) = self.value.as_table() else {
            self.wrong_kind("a table in {..}");
            return None;
        };
        Some(Section {
            name: self.name.clone(),
            span: self.span.clone(),
            table,
            document: self.document,
            asked: RefCell::default(),
        })
    }

    /// Parses a text by `read`; what it answers instead is the reason.
    pub(super) fn parse<T>(
        &self,
        code: &'static str,
        example: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text()?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.error(code, format!("{}: {why}", self.name), format!("write it like {example}"));
                None
            }
        }
    }

    /// One of a fixed set of words.
    pub(super) fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let fix = suggest(&text, words.iter().map(|(word, _)| *word));
        self.error("unknown_word", format!("{} cannot be {text:?}", self.name), fix);
        None
    }
}
