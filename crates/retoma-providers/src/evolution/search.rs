//! Asking Evolution which messages we sent to somebody (reference 2.7): `findMessages`, filtered again by us.
//!
//! Its filters are wishes. Some versions ignore the chat, some the direction, some the time; with only one of `remoteJid` and
//! `remoteJidAlt` given, the other one matches everything. So both are always given, and nothing of the answer is believed
//! before recipient and direction are looked at here; text and time are looked at by `retoma_core::evidence`. That a message
//! is *not* there proves nothing: where storing it failed, it went out without a row.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use retoma_core::evidence::{Sighting, text_key};
use retoma_core::identity::{Identity, IdentityKind, Phone};
use retoma_core::origin_time::read_time;
use serde_json::{Value, json};

use super::message;
use super::outbound::{address, key_header, path_segment};
use crate::inbound::Secret;
use crate::inbound::content::Content;
use crate::inbound::json as text;
use crate::outbound::{Lookup, Seen, WireRequest};

/// Messages in one answer. Answers are read up to 64 KiB, and a record with everything around it takes up to 3.
const PAGE: usize = 20;

/// The question for one pair of spellings.
pub(crate) fn request(base_url: &str, instance: &str, api_key: &Secret, lookup: &Lookup<'_>) -> Option<WireRequest> {
    let (jid, alt) = spellings(lookup.identities).into_iter().nth(lookup.spelling)?;
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    key_header(&mut headers, api_key);
    let body = json!({
        "where": {
            "key": { "remoteJid": jid, "remoteJidAlt": alt, "fromMe": true },
            "messageTimestamp": { "gte": lookup.from.to_string(), "lte": lookup.to.to_string() },
        },
        "page": lookup.page,
        "offset": PAGE,
    });
    let url = format!("{}/chat/findMessages/{}", base_url.trim_end_matches('/'), path_segment(instance));
    Some(WireRequest { url, headers, body: Bytes::from(body.to_string()) })
}

/// Pairs of chat ids to ask for: both spellings of the phone, then LID and phone.
fn spellings(identities: &[Identity]) -> Vec<(String, String)> {
    let lid = identities.iter().find(|identity| identity.kind == IdentityKind::Lid).map(|lid| lid.value.clone());
    let phones: Vec<String> = address(identities)
        .and_then(Phone::reported)
        .map(|phone| phone.variants().into_iter().map(|digits| format!("{digits}@s.whatsapp.net")).collect())
        .unwrap_or_default();
    let mut pairs = Vec::new();
    if let Some(first) = phones.first() {
        pairs.push((first.clone(), phones.get(1).unwrap_or(first).clone()));
    }
    if let Some(lid) = lid {
        pairs.push((lid.clone(), phones.first().unwrap_or(&lid).clone()));
    }
    pairs
}

/// Reads an answer: messages that we sent to that very person.
pub(crate) fn read(lookup: &Lookup<'_>, body: &[u8], now: Timestamp) -> Result<Seen, String> {
    let body = text::parse(body).map_err(|_| "the provider's answer to the search is broken or too long".to_owned())?;
    let messages = body.get("messages").unwrap_or(&body);
    let Some(records) = messages.get("records").unwrap_or(messages).as_array() else {
        return Err("the provider's answer to the search holds no messages".to_owned());
    };
    let pages = messages.get("pages").and_then(Value::as_u64).unwrap_or(1);
    let times: Vec<Timestamp> = records.iter().map(|record| time_of(record, now)).collect();
    // Newest first: once a whole page is older than what is looked for, the rest is, too.
    let reached_back = times.iter().any(|at| *at < lookup.from);
    let sightings = records
        .iter()
        .zip(&times)
        .filter(|(record, _)| is_ours(record) && is_to(record, lookup.identities))
        .filter_map(|(record, at)| {
            let message_id = record.pointer("/key/id").and_then(text::plain_id)?;
            let said = match message::content(record) {
                Content::Said { text: Some(said), .. } => Some(text_key(said)),
                _ => None,
            };
            Some(Sighting { message_id, at: *at, heard_at: *at, said, claimed: false })
        })
        .collect();
    Ok(Seen { sightings, records: records.len(), more: !reached_back && u64::from(lookup.page) < pages })
}

fn time_of(record: &Value, now: Timestamp) -> Timestamp {
    read_time(record.get("messageTimestamp").unwrap_or(&Value::Null), now).0
}

fn is_ours(record: &Value) -> bool {
    let from_me = record.pointer("/key/fromMe");
    from_me.is_some_and(|value| *value == Value::Bool(true) || value.as_str() == Some("true"))
}

fn is_to(record: &Value, identities: &[Identity]) -> bool {
    ["/key/remoteJid", "/key/remoteJidAlt", "/remoteJid", "/remoteJidAlt"]
        .iter()
        .filter_map(|place| Identity::from_jid(record.pointer(place)?.as_str()?))
        .any(|there| identities.iter().any(|known| (known.kind, &known.match_key) == (there.kind, &there.match_key)))
}

#[cfg(test)]
mod tests;
