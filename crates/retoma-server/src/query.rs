//! Query strings of lists: what is asked for, checked like a body's fields.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use retoma_core::finding::suggest;
use retoma_store::Page;

use crate::problem::Problem;

/// Rows of a page where nobody says how many.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;

/// The parameters of a request.
pub(crate) struct Query(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        axum::extract::Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|_| Problem::invalid("the query string is not well formed"))
    }
}

impl Query {
    /// A parameter's text; an empty one counts as absent.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A parameter that must be an id, or absent.
    pub(crate) fn id<T: FromStr>(&self, key: &str) -> Result<Option<T>, Problem> {
        self.text(key)
            .map(|text| text.parse().map_err(|_| Problem::invalid(format!("{key} must be an id"))))
            .transpose()
    }

    /// A parameter that must be one of the words that `parse` knows, or absent.
    pub(crate) fn word<T>(&self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(key) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| Problem::invalid(format!("{key} is no known word")))
    }

    /// `limit` and `cursor`.
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let limit = match self.text("limit") {
            None => LIMIT,
            Some(text) => {
                let limit = text.parse::<usize>().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                limit.ok_or_else(|| Problem::invalid(format!("limit must be a number from 1 to {LIMIT_MAX}")))?
            }
        };
        Ok(Page { cursor: self.text("cursor").map(str::to_owned), limit })
    }

    /// Refuses parameters that mean nothing here: a misspelt filter must not answer with everything.
    pub(crate) fn only(&self, known: &[&'static str]) -> Result<(), Problem> {
        let unknown = self.0.keys().find(|key| !known.contains(&key.as_str()));
        unknown.map_or(Ok(()), |key| {
            let plain = key.len() <= 40 && key.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            let shown = if plain { key.as_str() } else { "(not shown)" };
            Err(Problem::invalid(format!("unknown parameter {shown}: {}", suggest(key, known.iter().copied()))))
        })
    }
}
