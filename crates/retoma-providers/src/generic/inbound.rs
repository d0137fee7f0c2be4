//! A generic body to parts, by its source's mapping.
//!
//! One event alone is refused with a sentence if it cannot be used, for its sender can be corrected. In a list a bad item is
//! quarantined by itself: its neighbours were not wrong (A6).

use jiff::tz::Offset;
use retoma_core::event::EventKind;
use retoma_core::identity::{Identity, PhoneInput, PhoneReading, read_phone};
use retoma_core::keys::Key16;
use serde_json::Value;

use crate::inbound::json::{id_text, plain_id, scalar_text};
use crate::inbound::part::{Maker, digest_of};
use crate::inbound::read::items;
use crate::inbound::{Mapping, OnMissingId, Part, PartEntry, Path, Refusal};

const PLATFORM: &str = "generic";

/// Reads a body: one event, or a list of them.
pub(crate) fn read(maker: &Maker<'_>, body: &Value) -> Result<Vec<Part>, Refusal> {
    let nothing = Mapping::default();
    read_by(maker, maker.source.mapping.as_ref().unwrap_or(&nothing), body)
}

/// Reads a body by that mapping.
pub(crate) fn read_by(maker: &Maker<'_>, mapping: &Mapping, body: &Value) -> Result<Vec<Part>, Refusal> {
    if !body.is_array() {
        return event(maker, mapping, body, None).map(|part| vec![part]).map_err(Refusal::Malformed);
    }
    let mut parts = Vec::new();
    for (position, item) in items(body).enumerate() {
        // A foreign item among others is set aside; whether all of them are was asked before.
        let what = maker.source.check_origin(item).and_then(|()| event(maker, mapping, item, Some(position)));
        parts.push(what.unwrap_or_else(|what| maker.quarantined(item.to_string().as_bytes(), what)));
    }
    Ok(if parts.is_empty() { vec![maker.by_digest("empty", digest_of(body)).ignored("empty_list")] } else { parts })
}

/// One event, at its position if it stands in a list. The error says what is missing and where, without content.
fn event(maker: &Maker<'_>, mapping: &Mapping, body: &Value, position: Option<usize>) -> Result<Part, String> {
    if !body.is_object() {
        return Err("the event is no JSON object".to_owned());
    }
    if let Some(path) = mapping.required.iter().find(|path| at(Some(path), body).is_none()) {
        return Err(format!("{} is required and missing", path.text));
    }
    let word = at(mapping.kind.as_ref(), body).and_then(scalar_text);
    let kind = word.as_deref().map_or(EventKind::Unknown, |word| kind_of(mapping, word));
    let mut part = keyed(maker, mapping, body, kind, word.as_deref(), position)?;
    part.data.source_type = word;
    part.set_time(at(mapping.occurred_at.as_ref(), body).unwrap_or(&Value::Null), maker.received_at);
    part.data.offer = at(mapping.offer.as_ref(), body).and_then(plain_id);
    if let Some(text) = at(mapping.text.as_ref(), body).and_then(Value::as_str) {
        part.set_text(text);
    }
    for (name, path) in &mapping.vars {
        part.set_var(name, at(Some(path), body).and_then(scalar_text));
    }
    if let Some(contact) = at(mapping.contact.as_ref(), body) {
        add_contact(maker, &mut part, contact);
    }
    set_order(maker, &mut part, at(mapping.order.as_ref(), body).and_then(plain_id));
    if kind == EventKind::Unknown && part.entry == PartEntry::Received {
        return Ok(part.ignored("unknown_type"));
    }
    Ok(part)
}

/// The first value at a path that is not null.
fn at<'a>(path: Option<&Path>, body: &'a Value) -> Option<&'a Value> {
    path?.path.query(body).first().filter(|value| !value.is_null())
}

fn kind_of(mapping: &Mapping, word: &str) -> EventKind {
    let kind = mapping.types.get(word).copied().or_else(|| word.parse().ok()).unwrap_or(EventKind::Unknown);
    if may_come_from_outside(kind) { kind } else { EventKind::Unknown }
}

/// Whether a source may say this. Operators act through their own commands, with a name in the audit log, and the clock is
/// ours.
pub(super) fn may_come_from_outside(kind: EventKind) -> bool {
    !kind.is_internal()
}

/// The part under its id, or what the source says about events without one (A4).
fn keyed(
    maker: &Maker<'_>,
    mapping: &Mapping,
    body: &Value,
    kind: EventKind,
    word: Option<&str>,
    position: Option<usize>,
) -> Result<Part, String> {
    let digest = digest_of(body);
    if let Some(id) = id_of(maker, mapping, body, position) {
        return Ok(maker.part(kind, &id.iter().map(String::as_str).collect::<Vec<_>>(), digest));
    }
    let hex = format!("{digest:?}");
    match mapping.on_missing_id {
        OnMissingId::Hold => Ok(maker.part(kind, &["no-id", &hex], digest).entering(PartEntry::Held("missing_id"))),
        OnMissingId::Reject => {
            let missing = mapping.id.iter().find(|path| at(Some(path), body).and_then(id_text).is_none());
            let path = missing.map_or("an id path", |path| &path.text);
            Err(format!("{path} is missing, and events without an id are refused here"))
        }
        // Context beside the content: the same payload under another type, or about another order, is another event.
        OnMissingId::Fingerprint => {
            let order = at(mapping.order.as_ref(), body).and_then(plain_id).unwrap_or_default();
            let print = format!("{:?}", fingerprint(mapping, body));
            Ok(maker.part(kind, &["fingerprint", word.unwrap_or_default(), &order, &print], digest))
        }
    }
}

/// The id in the body, all of its pieces; else the one in the envelope, where the body was promised none.
fn id_of(maker: &Maker<'_>, mapping: &Mapping, body: &Value, position: Option<usize>) -> Option<Vec<String>> {
    if !mapping.id.is_empty() {
        return mapping.id.iter().map(|path| at(Some(path), body).and_then(id_text)).collect();
    }
    let id = maker.envelope_id.clone()?;
    // One envelope around a list: its place tells an item from its neighbours.
    Some(["envelope".to_owned(), id].into_iter().chain(position.map(|position| position.to_string())).collect())
}

/// The digest of the content in its one canonical spelling, without what changes with every attempt.
fn fingerprint(mapping: &Mapping, body: &Value) -> Key16 {
    if mapping.fingerprint_without.is_empty() {
        return digest_of(body);
    }
    let mut kept = body.clone();
    for path in &mapping.fingerprint_without {
        let places = path.path.query_located(body);
        for place in places.locations() {
            if let Some(found) = kept.pointer_mut(&place.to_json_pointer()) {
                *found = Value::Null;
            }
        }
    }
    digest_of(&kept)
}

/// A phone, an e-mail address, a WhatsApp id, `{ddd, number}` or `{phone, email}`, or an id of the source's own.
fn add_contact(maker: &Maker<'_>, part: &mut Part, contact: &Value) {
    match contact {
        Value::String(text) if text.contains('@') => {
            part.add_identity(Identity::from_jid(text).or_else(|| Identity::email(text)));
            if part.identities.is_empty() {
                part.flag(Some("contact_unreadable"));
            }
        }
        Value::String(text) if is_own_id(text) => {
            part.add_identity(Identity::external(&format!("{}/{text}", maker.source.name)));
        }
        other => {
            part.add_phone(&PhoneInput::from_json(other));
            for name in ["document", "cpf"] {
                part.add_identity(scalar_text(&other[name]).and_then(|text| Identity::document(&text)));
            }
            part.add_identity(scalar_text(&other["email"]).and_then(|text| Identity::email(&text)));
            if let Some(name) = scalar_text(&other["name"]) {
                part.set_name(&name);
            }
        }
    }
}

/// Whether a text with letters in it is an id rather than a phone.
fn is_own_id(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
        && matches!(read_phone(&PhoneInput::text(text)), PhoneReading::Invalid { why: "not_a_phone", .. })
}

fn set_order(maker: &Maker<'_>, part: &mut Part, transaction: Option<String>) {
    let is_cart = matches!(part.kind, EventKind::CheckoutAbandoned | EventKind::CheckoutCreated);
    let Some(transaction) = transaction else {
        if is_cart && part.data.offer.is_some() {
            part.business_key = maker.cart_key(PLATFORM, part, "");
        }
        return;
    };
    let order = maker.order(PLATFORM, &transaction);
    // A later charge of a subscription may repeat the order's id; its day tells them apart.
    let day = Offset::UTC.to_datetime(part.occurred_at).date().to_string();
    let is_cycle = matches!(part.kind, EventKind::SubscriptionRenewed | EventKind::SubscriptionLate);
    part.business_key = maker.business_key(&order, part.kind, if is_cycle { &day } else { "" });
    part.add_identity(Some(Identity::order(&order)));
    part.data.order = Some(order);
}

#[cfg(test)]
mod tests;
