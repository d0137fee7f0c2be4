//! Reading a JSON body field by field. Answers name the field that is wrong and never repeat its value, which may be a
//! phone or a text; a library's own error messages would.

use std::cell::RefCell;
use std::collections::BTreeSet;

use jiff::Timestamp;
use retoma_core::finding::suggest;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// A JSON object being read.
pub(crate) struct Fields<'v> {
    name: String,
    object: &'v Map<String, Value>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'v> Fields<'v> {
    /// The fields of a body.
    pub(crate) fn of(value: &'v Value) -> Result<Self, Problem> {
        Self::named(value, "the body")
    }

    fn named(value: &'v Value, name: &str) -> Result<Self, Problem> {
        match value {
            Value::Object(object) => Ok(Self { name: name.to_owned(), object, asked: RefCell::default() }),
            _ => Err(Problem::invalid(format!("{name} must be an object"))),
        }
    }

    /// A field, absent where it is null.
    pub(crate) fn value(&self, key: &'static str) -> Option<&'v Value> {
        self.asked.borrow_mut().insert(key);
        self.object.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<&'v str>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    pub(crate) fn required_text(&self, key: &'static str) -> Result<&'v str, Problem> {
        match self.text(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(self.wrong(key, "a text, and is missing or empty")),
        }
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Result<Option<bool>, Problem> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Bool(answer)) => Ok(Some(*answer)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    pub(crate) fn time(&self, key: &'static str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.wrong(key, "a time like 2026-12-02T10:00:00Z"))
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Result<Vec<String>, Problem> {
        let wrong = || self.wrong(key, "a list of texts");
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                list.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// An object inside.
    pub(crate) fn object(&self, key: &'static str) -> Result<Option<Fields<'v>>, Problem> {
        self.value(key).map(|value| Fields::named(value, key)).transpose()
    }

    pub(crate) fn wrong(&self, key: &str, wanted: &str) -> Problem {
        Problem::invalid(format!("{key} in {} must be {wanted}", self.name))
    }

    /// Refuses fields that nobody asked for: a misspelt `cancel_on` must not be silently ignored.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let asked = self.asked.into_inner();
        let unknown = self.object.keys().find(|key| !asked.contains(key.as_str()));
        unknown.map_or(Ok(()), |key| {
            // A key may be content, too, where somebody sends the wrong body; only short plain words are repeated.
            let plain = key.len() <= 40 && key.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            let shown = if plain { key.as_str() } else { "(not shown)" };
            Err(Problem::invalid(format!("unknown field {shown} in {}: {}", self.name, suggest(key, asked))))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_field_is_named_and_its_value_is_not() {
        let canary = "5541999990001";
        for body in [
            json!({ "key": { "phone": canary } }),
            json!({ "at": canary }),
            json!({ "list": [canary, 7] }),
            json!({ canary: 1 }),
            json!({ "flag": canary }),
            json!([canary]),
        ] {
            let read = || -> Result<(), Problem> {
                let fields = Fields::of(&body)?;
                fields.text("key")?;
                fields.time("at")?;
                fields.texts("list")?;
                fields.boolean("flag")?;
                fields.finish()
            };
            let problem = read().expect_err("every one of them is wrong");
            assert!(!problem.detail.contains(canary), "{}", problem.detail);
        }
    }

    #[test]
    fn a_misspelt_field_is_refused_with_the_right_word() {
        let body = json!({ "cancle_on": [] });
        let fields = Fields::of(&body).unwrap();
        fields.texts("cancel_on").unwrap();
        assert!(fields.finish().unwrap_err().detail.contains("cancel_on"));
    }
}
