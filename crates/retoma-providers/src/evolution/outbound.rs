//! Writing to Evolution, and reading what it says. The table is section 2.6 of the reference, row by row.
//!
//! Why a 400 is not simply "bad request": sending happens inside a `try` whose `catch` turns everything into a 400 with an
//! array, also what failed *after* the message went out. What failed before it comes as a 500 with a plain string. So the
//! shape of `response.message` decides, then its text; whatever is not known to be "not sent" is ambiguous.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use retoma_core::identity::{Identity, IdentityKind, Phone};
use retoma_core::outcome::{AttemptEnd, Outcome};
use serde_json::{Value, json};

use crate::inbound::Secret;
use crate::inbound::json as text;
use crate::outbound::end::Answer;
use crate::outbound::{CannotWrite, Outgoing, WireRequest};

mod table;

use table::{Row, Shape};

/// A `sendText`. `delay` is 0: the call would block that long, and pacing is ours.
pub(crate) fn request(
    base_url: &str,
    instance: &str,
    api_key: &Secret,
    message: &Outgoing<'_>,
) -> Result<WireRequest, CannotWrite> {
    let first = || address(message.identities).map(str::to_owned);
    let number = if message.other_spelling { other_spelling(message.identities).or_else(first) } else { first() };
    let number = number.ok_or(CannotWrite::NoAddress)?;
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    key_header(&mut headers, api_key);
    let body = json!({ "number": number, "text": message.text, "delay": 0 }).to_string();
    let url = format!("{}/message/sendText/{}", base_url.trim_end_matches('/'), path_segment(instance));
    Ok(WireRequest { url, headers, body: Bytes::from(body) })
}

/// The spelling that WhatsApp itself reported, else the phone as we know it; a LID only where there is no phone.
pub(crate) fn address(identities: &[Identity]) -> Option<&str> {
    let phones = || identities.iter().filter(|identity| identity.kind == IdentityKind::Phone);
    let lid = || identities.iter().find(|identity| identity.kind == IdentityKind::Lid);
    let found = phones().find(|phone| phone.confirmed).or_else(|| phones().next()).or_else(lid);
    found.map(|identity| identity.value.as_str())
}

/// The number's other spelling, where it has one.
pub(crate) fn other_spelling(identities: &[Identity]) -> Option<String> {
    Phone::reported(address(identities)?)?.variants().into_iter().nth(1)
}

/// A key that cannot stand in a header is a wrong key: without it the answer is 401, and the channel stops.
pub(super) fn key_header(headers: &mut HeaderMap, api_key: &Secret) {
    if let Ok(mut key) = HeaderValue::from_bytes(api_key.0.trim_ascii()) {
        key.set_sensitive(true);
        headers.insert("apikey", key);
    }
}

pub(super) fn path_segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Reads an answer.
pub(crate) fn judge(answer: &Answer<'_>) -> AttemptEnd {
    let body = text::parse(answer.body).unwrap_or(Value::Null);
    match answer.status {
        // "Created" without an id proves nothing (FC-70).
        200..=299 => match body.pointer("/key/id").and_then(text::plain_id) {
            Some(id) => AttemptEnd { provider_message_id: Some(id), ..answer.end(Outcome::Accepted, "") },
            None => answer.end(Outcome::Ambiguous, "the answer names no message"),
        },
        300..=399 => answer.end(Outcome::Credentials, answer.redirect()),
        // Whoever says when to come back did not take it (reliability C.3).
        503 if answer.headers.contains_key(http::header::RETRY_AFTER) => {
            answer.end(Outcome::RateNumber, "the provider asks to come back later")
        }
        status => {
            let row = row_of(status, &body);
            answer.end(row.outcome, row.error)
        }
    }
}

/// The first row that fits. The last one fits everything.
fn row_of(status: u16, body: &Value) -> &'static Row {
    let message = [body.pointer("/response/message"), body.get("message")].into_iter().flatten().next();
    let (shape, said) = shape_of(message);
    table::ROWS.iter().find(|row| row.fits(status, shape, &said)).unwrap_or(&table::UNKNOWN)
}

/// What kind of thing `response.message` is, and its text.
fn shape_of(message: Option<&Value>) -> (Shape, String) {
    match message {
        Some(Value::String(said)) => (Shape::Text, said.clone()),
        Some(Value::Array(items)) => {
            let shape = match items.first() {
                Some(Value::Array(_)) => Shape::Nested,
                Some(Value::Object(_)) => Shape::Objects,
                Some(Value::String(_)) => Shape::List,
                _ => Shape::Other,
            };
            let said: Vec<String> =
                items.iter().map(|item| item.as_str().map(str::to_owned).unwrap_or_else(|| item.to_string())).collect();
            (shape, said.join("\n"))
        }
        _ => (Shape::Other, String::new()),
    }
}

#[cfg(test)]
mod tests;
