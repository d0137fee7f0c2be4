//! A signed POST to any URL: Standard Webhooks. The receiver deduplicates by `webhook-id`, which is the task's id and stays
//! the same over all attempts; timestamp and signature are fresh for each (FC-45).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::outcome::{AttemptEnd, Outcome};
use serde_json::json;

use crate::inbound::{HmacAlgorithm, Secret};
use crate::outbound::end::Answer;
use crate::outbound::{Outgoing, WireRequest};

/// `{id, type, timestamp, data: {text, to, vars}}`, signed. Without a secret it goes unsigned.
pub(crate) fn request(url: &str, secret: Option<&Secret>, message: &Outgoing<'_>) -> WireRequest {
    let id = header_text(message.task.as_str());
    let seconds = message.unix_seconds;
    let body = json!({
        "id": id,
        "type": message.message,
        "timestamp": Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string(),
        "data": { "text": message.text, "to": address(message.identities), "vars": message.vars },
    })
    .to_string();
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut set = |name: &'static str, value: &str| {
        let value = HeaderValue::from_str(value).expect("ids are escaped; numbers and base64 are plain");
        headers.insert(HeaderName::from_static(name), value);
    };
    set("webhook-id", &id);
    set("webhook-timestamp", &seconds.to_string());
    if let Some(secret) = secret {
        set("webhook-signature", &signature(secret, &id, seconds, body.as_bytes()));
    }
    WireRequest { url: url.to_owned(), headers, body: Bytes::from(body) }
}

/// `v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`.
pub(crate) fn signature(secret: &Secret, id: &str, unix_seconds: i64, body: &[u8]) -> String {
    let stamp = unix_seconds.to_string();
    let pieces = [id.as_bytes(), b".", stamp.as_bytes(), b".", body];
    format!("v1,{}", STANDARD.encode(HmacAlgorithm::Sha256.sign(&key(secret), &pieces)))
}

/// The bytes behind `whsec_`; a secret of another form is taken as it stands.
fn key(secret: &Secret) -> Vec<u8> {
    let text = secret.0.trim_ascii();
    text.strip_prefix(b"whsec_").and_then(|base64| STANDARD.decode(base64).ok()).unwrap_or_else(|| text.to_vec())
}

/// An id as a header can carry it; the same text stands in the body.
fn header_text(id: &str) -> String {
    id.bytes()
        .map(|byte| if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Whom it is for: the phone, else the strongest identity of a person. `null` is possible and no obstacle here.
fn address(identities: &[Identity]) -> Option<&str> {
    let person = || identities.iter().find(|identity| identity.kind != IdentityKind::Order);
    crate::evolution::outbound::address(identities).or_else(|| person().map(|identity| identity.value.as_str()))
}

/// Reads an answer. Receivers deduplicate, so whatever was not accepted may be tried again.
pub(crate) fn judge(answer: &Answer<'_>) -> AttemptEnd {
    let (outcome, error) = match answer.status {
        200..=299 => (Outcome::Accepted, String::new()),
        300..=399 => (Outcome::Content, answer.redirect()),
        401 | 403 => (Outcome::Credentials, "the receiver refuses our signature or address".to_owned()),
        // An automation tool answers so while its workflow is inactive.
        404 => (Outcome::Transient, "the receiver has nothing at this address now".to_owned()),
        408 | 425 => (Outcome::Transient, "the receiver asks to try again".to_owned()),
        410 => (Outcome::Content, "the address is gone".to_owned()),
        429 => (Outcome::RateAccount, "too many requests".to_owned()),
        status @ 400..=499 => (Outcome::Content, format!("the receiver refuses the request with {status}")),
        status => (Outcome::Transient, format!("the receiver failed with {status}")),
    };
    answer.end(outcome, error)
}

#[cfg(test)]
mod tests;
