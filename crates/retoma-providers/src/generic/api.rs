//! `POST /v1/events`: an event in our own words.

use jiff::Timestamp;
use retoma_core::event::{EventKind, OrderRef};
use retoma_core::identity::{Identity, PhoneInput};
use retoma_core::ids::Tenant;
use serde_json::{Map, Value};

use super::inbound::may_come_from_outside;
use crate::inbound::json::{id_text, plain_id, scalar_text};
use crate::inbound::part::{Maker, digest_of};
use crate::inbound::{Auth, Part, Provider, Source};

/// The source's name of events that come through the API.
const SOURCE: &str = "api";
/// How deep `data` is flattened into dotted names, and into how many.
const DATA_DEPTH_MAX: usize = 4;
const VARS_MAX: usize = 200;

/// Reads `{id, type, contact: {phone|email|..}, order?, offer?, occurred_at?, data?}`. The error is a sentence for the
/// caller.
///
/// `contact.id` is a contact of ours and no identity: who calls resolves it. `order` is a transaction, or `{platform,
/// account, transaction}` to speak of an order that came through a webhook. Flow and channel are left open.
pub fn event_from_api(tenant: &Tenant, value: &Value, received_at: Timestamp) -> Result<Part, String> {
    let source = source(tenant);
    let maker = Maker { source: &source, received_at, envelope_id: None };
    let Some(fields) = value.as_object() else { return Err("an event is a JSON object".to_owned()) };
    let known = ["id", "type", "contact", "order", "offer", "occurred_at", "data"];
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        let name: String = name.chars().take(40).collect();
        return Err(format!("unknown field {name:?}; known are {}", known.join(", ")));
    }
    let id =
        id_text(&value["id"]).ok_or("id is missing: give every event an id of its own, so that a repetition is one")?;
    let kind = kind_of(&value["type"])?;
    let mut part = maker.part(kind, &[&id], digest_of(value));
    part.data.source_type = Some(kind.as_str().to_owned());
    part.set_time(&value["occurred_at"], received_at);
    if let Some(flag) = part.data.flags.iter().find(|flag| *flag != retoma_core::origin_time::MISSING) {
        return Err(format!("occurred_at is no usable time ({flag}); write RFC 3339"));
    }
    part.data.offer = plain_id(&value["offer"]);
    add_contact(&mut part, &value["contact"])?;
    if let Some(order) = order(&maker, &value["order"])? {
        part.business_key = maker.business_key(&order, kind, "");
        part.add_identity(Some(Identity::order(&order)));
        part.data.order = Some(order);
    }
    match &value["data"] {
        Value::Null => {}
        Value::Object(data) => {
            if let Some(text) = data.get("text").and_then(Value::as_str) {
                part.set_text(text);
            }
            part.data.message_id = data.get("message_id").and_then(plain_id);
            add_vars(&mut part, data, "", DATA_DEPTH_MAX);
        }
        _ => return Err("data is an object of values".to_owned()),
    }
    Ok(part)
}

/// The door of the API, as a source.
fn source(tenant: &Tenant) -> Source {
    Source {
        name: SOURCE.into(),
        tenant: tenant.clone(),
        provider: Provider::Generic,
        account: SOURCE.to_owned(),
        flow: None,
        channel: None,
        auth: Auth::None,
        instance: None,
        cloud: None,
        mapping: None,
        origin: Vec::new(),
        body_bytes_max: usize::MAX,
    }
}

fn kind_of(value: &Value) -> Result<EventKind, String> {
    let word = value.as_str().ok_or("type is missing")?;
    match word.parse::<EventKind>() {
        Ok(EventKind::Unknown) | Err(_) => {
            let word: String = word.chars().take(60).collect();
            let outside =
                EventKind::ALL.iter().filter(|kind| may_come_from_outside(**kind) && **kind != EventKind::Unknown);
            let words: Vec<&str> = outside.map(|kind| kind.as_str()).collect();
            Err(format!("unknown type {word:?}; known are {}", words.join(", ")))
        }
        Ok(kind) if !may_come_from_outside(kind) => {
            Err(format!("{kind} is no event of a source; use the commands under /v1/contacts/{{id}}"))
        }
        Ok(kind) => Ok(kind),
    }
}

fn add_contact(part: &mut Part, contact: &Value) -> Result<(), String> {
    let fields = match contact {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        _ => return Err("contact is an object: {\"phone\": ..}, {\"email\": ..} or {\"id\": ..}".to_owned()),
    };
    let text = |name: &str| fields.get(name).and_then(scalar_text);
    if let Some(phone) = fields.get("phone").filter(|phone| !phone.is_null()) {
        part.add_phone(&PhoneInput::from_json(phone));
        if part.identities.is_empty() {
            return Err("contact.phone is no phone that can be read for certain; write it with + and the country code"
                .to_owned());
        }
    }
    if let Some(jid) = text("lid") {
        part.add_identity(Some(Identity::from_jid(&jid).ok_or("contact.lid is no id like 123@lid")?));
    }
    if let Some(document) = text("document") {
        part.add_identity(Some(Identity::document(&document).ok_or("contact.document is no valid CPF or CNPJ")?));
    }
    if let Some(email) = text("email") {
        part.add_identity(Some(Identity::email(&email).ok_or("contact.email is no e-mail address")?));
    }
    if let Some(external) = text("external") {
        part.add_identity(Identity::external(&format!("{SOURCE}/{external}")));
    }
    if let Some(name) = text("name") {
        part.set_name(&name);
    }
    if part.identities.is_empty() && !fields.contains_key("id") {
        return Err("contact names nobody: give a phone, an email or an id".to_owned());
    }
    Ok(())
}

fn order(maker: &Maker<'_>, value: &Value) -> Result<Option<OrderRef>, String> {
    if value.is_null() {
        return Ok(None);
    }
    if let Some(transaction) = plain_id(value) {
        return Ok(Some(maker.order(SOURCE, &transaction)));
    }
    let transaction = plain_id(&value["transaction"]).ok_or("order is a transaction, or an object with one")?;
    let mut order = maker.order(SOURCE, &transaction);
    if let Some(platform) = scalar_text(&value["platform"]) {
        order.platform = platform;
    }
    if let Some(account) = scalar_text(&value["account"]) {
        order.account = account;
    }
    Ok(Some(order))
}

/// `{"pix": {"code": ".."}}` and `{"pix.code": ".."}` both become `pix.code`.
fn add_vars(part: &mut Part, fields: &Map<String, Value>, prefix: &str, depth: usize) {
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        if part.data.vars.len() >= VARS_MAX {
            part.flag(Some("vars_cut"));
            return;
        }
        match value {
            Value::Object(inner) if depth > 1 => add_vars(part, inner, &format!("{name}."), depth - 1),
            value if !matches!(name.as_str(), "text" | "message_id") => part.set_var(&name, scalar_text(value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Part, String> {
        event_from_api(&Tenant::default(), value, "2026-11-30T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn an_event_in_our_own_words_becomes_a_part() {
        let part = read(&json!({
            "id": "e-1", "type": "pix.created", "contact": {"phone": "+55 41 99999-0001", "email": "Ana@example.com", "name": "Ana Teste"},
            "order": {"platform": "hotmart", "account": "loja", "transaction": "HP0000000001"}, "offer": 9000001,
            "occurred_at": "2026-11-30T08:59:00-03:00", "data": {"order.total": "R$ 197,00", "pix": {"code": "00020101"}}
        }))
        .unwrap();
        let ids: Vec<String> = part.identities.iter().map(|i| format!("{} {}", i.kind, i.match_key)).collect();
        assert_eq!(ids, ["phone 554199990001", "email ana@example.com", "order hotmart/loja/HP0000000001"]);
        assert_eq!(
            (part.kind, part.key.as_str(), part.data.offer.as_deref()),
            (EventKind::PixCreated, "e-1", Some("9000001"))
        );
        assert_eq!(part.occurred_at, "2026-11-30T11:59:00Z".parse().unwrap());
        assert_eq!(part.data.vars["pix.code"], "00020101");
        assert_eq!(part.data.vars["order.total"], "R$ 197,00");
        assert_eq!(part.data.vars["contact.first_name"], "Ana");
        assert!(part.business_key.is_some());
    }

    #[test]
    fn a_message_carries_its_text_and_no_variable_of_that_name() {
        let part = read(&json!({"id": 7, "type": "message.received", "contact": {"phone": "5541999990001"}, "data": {"text": "oi"}}))
            .unwrap();
        assert_eq!(part.data.text.as_deref(), Some("oi"));
        assert!(!part.data.vars.contains_key("text"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_sentence() {
        let contact = json!({"phone": "5541999990001"});
        for (value, expected) in [
            (json!([]), "an event is a JSON object"),
            (json!({"type": "pix.created"}), "id is missing"),
            (json!({"id": "1"}), "type is missing"),
            (json!({"id": "1", "type": "pix_created"}), "unknown type \"pix_created\"; known are message.received, "),
            (json!({"id": "1", "type": "unknown"}), "unknown type"),
            (json!({"id": "1", "type": "operator.optout"}), "operator.optout is no event of a source"),
            (json!({"id": "1", "type": "clock.timeout"}), "clock.timeout is no event of a source"),
            (json!({"id": "1", "type": "pix.created", "contact": "ana"}), "contact is an object"),
            (json!({"id": "1", "type": "pix.created", "contact": {}}), "contact names nobody"),
            (json!({"id": "1", "type": "pix.created", "contact": {"phone": "123"}}), "contact.phone is no phone"),
            (json!({"id": "1", "type": "pix.created", "contact": {"email": "ana"}}), "contact.email is no e-mail"),
            (json!({"id": "1", "type": "pix.created", "contact": contact, "order": []}), "order is a transaction"),
            (
                json!({"id": "1", "type": "pix.created", "contact": contact, "occurred_at": "ontem"}),
                "occurred_at is no usable",
            ),
            (json!({"id": "1", "type": "pix.created", "contact": contact, "data": "x"}), "data is an object"),
            (json!({"id": "1", "type": "pix.created", "tipo": 1}), "unknown field \"tipo\""),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.starts_with(expected), "{value}: {error}");
            assert!(!error.contains("5541999990001"));
        }
        assert!(
            read(&json!({"id": "1", "type": "pix.created", "contact": {"id": "0190a1b2-0000-7000-8000-000000000001"}}))
                .is_ok()
        );
    }

    #[test]
    fn a_number_and_its_text_are_two_ids() {
        let key = |id: Value| read(&json!({"id": id, "type": "channel.connected"})).unwrap().delivery_key;
        assert_ne!(key(json!(1)), key(json!("1")));
        assert_eq!(key(json!("a")), key(json!("a")));
    }
}
