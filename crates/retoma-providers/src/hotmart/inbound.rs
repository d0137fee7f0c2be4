//! Hotmart's webhooks to parts. Never refuses: what it cannot understand is quarantined with a reason.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use retoma_core::event::EventKind;
use retoma_core::identity::{Identity, PhoneInput};
use retoma_core::origin_time::read_time;
use serde_json::Value;

use super::mapping::{self, Facts};
use crate::inbound::json::{plain_id, scalar_text};
use crate::inbound::money::in_reais;
use crate::inbound::part::{Maker, digest_of};
use crate::inbound::read::items;
use crate::inbound::{Part, PartEntry};

const PLATFORM: &str = "hotmart";

/// Reads a body: one event, or a list of them.
pub(crate) fn read(maker: &Maker<'_>, body: &Value) -> Vec<Part> {
    let parts: Vec<Part> = items(body).map(|item| event(maker, item)).collect();
    if parts.is_empty() { vec![maker.by_digest("empty", digest_of(body)).ignored("empty_list")] } else { parts }
}

fn event(maker: &Maker<'_>, body: &Value) -> Part {
    let quarantined = |reason: &str| maker.quarantined(without_token(body).to_string().as_bytes(), reason);
    // A foreign item among others.
    if let Err(what) = maker.source.check_origin(body) {
        return quarantined(&what);
    }
    if let Some(reason) = unreadable(body) {
        return quarantined(reason);
    }
    let Some(name) = body["event"].as_str() else { return quarantined("no event name") };
    let data = &body["data"];
    let purchase = &data["purchase"];
    let recurrence = plain_id(&purchase["recurrence_number"]).and_then(|text| text.parse().ok()).unwrap_or(1);
    let kind = mapping::kind(&Facts {
        event: name,
        status: purchase["status"].as_str().unwrap_or_default(),
        payment: purchase["payment"]["type"].as_str().unwrap_or_default(),
        refused: scalar_text(&purchase["payment"]["refusal_reason"]).is_some(),
        recurrence,
    });
    let cycle = if recurrence > 1 { recurrence.to_string() } else { String::new() };
    let transaction = plain_id(&purchase["transaction"]);
    let mut part = keyed(maker, body, name, kind, transaction.as_deref(), &cycle);
    part.data.source_type = Some(name.to_owned());
    // One event writes it in camel case.
    let at = body.get("creation_date").or_else(|| body.get("creationDate")).unwrap_or(&Value::Null);
    part.set_time(at, maker.received_at);
    part.data.offer = plain_id(&data["product"]["id"]);
    if part.data.offer.as_deref() == Some("0") {
        // The panel's test button: an invented buyer with nonsense phones. Never anybody's identity.
        return part.ignored("test_event");
    }
    if let Some(transaction) = &transaction {
        let order = maker.order(PLATFORM, transaction);
        part.business_key = maker.business_key(&order, kind, &cycle);
        part.data.order = Some(order);
    }
    people(maker, &mut part, data);
    values(&mut part, data, maker.received_at);
    if kind == EventKind::CheckoutAbandoned && transaction.is_none() {
        let code = plain_id(&data["offer"]["code"]).unwrap_or_default();
        part.business_key = maker.cart_key(PLATFORM, &part, &code);
    }
    if kind == EventKind::Unknown { part.ignored("unknown_type") } else { part }
}

/// Why a body is none of Hotmart's events of version 2.
fn unreadable(body: &Value) -> Option<&'static str> {
    let Some(fields) = body.as_object() else { return Some("the body is no object") };
    let version = fields.get("version").and_then(scalar_text);
    let legacy = ["prod", "callback_type", "payment_type", "phone_local_code"];
    let is_v1 = match &version {
        Some(version) => !version.starts_with('2'),
        None => legacy.iter().any(|name| fields.contains_key(*name)),
    };
    if is_v1 {
        return Some("hotmart v1; recreate the webhook as 2.0.0");
    }
    match fields.get("data") {
        Some(Value::Object(_)) => None,
        _ => Some("data is no object"),
    }
}

/// The body without the account's token, which older deliveries carry.
fn without_token(body: &Value) -> Cow<'_, Value> {
    if body.get("hottok").is_none() {
        return Cow::Borrowed(body);
    }
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("hottok");
    }
    Cow::Owned(body)
}

/// The part under its event id; without one, under its transaction; without that, held.
fn keyed(maker: &Maker<'_>, body: &Value, name: &str, kind: EventKind, transaction: Option<&str>, cycle: &str) -> Part {
    let digest = digest_of(&without_token(body));
    match (plain_id(&body["id"]), transaction) {
        (Some(id), _) => maker.part(kind, &[&id], digest),
        (None, Some(transaction)) => maker.part(kind, &["no-id", transaction, name, cycle], digest),
        (None, None) => {
            let word = format!("{digest:?}");
            maker.part(kind, &["no-id", name, &word], digest).entering(PartEntry::Held("missing_id"))
        }
    }
}

fn people(maker: &Maker<'_>, part: &mut Part, data: &Value) {
    let buyer = [&data["buyer"], &data["subscriber"], &data["user"]].into_iter().find(|who| who.is_object());
    let buyer = buyer.unwrap_or(&Value::Null);
    part.add_phone(&phone(buyer));
    part.add_identity(scalar_text(&buyer["document"]).and_then(|text| Identity::document(&text)));
    part.add_identity(scalar_text(&buyer["email"]).and_then(|text| Identity::email(&text)));
    let parent = plain_id(&data["purchase"]["order_bump"]["parent_purchase_transaction"]);
    let orders = part.data.order.clone().into_iter().chain(parent.map(|parent| maker.order(PLATFORM, &parent)));
    for order in orders.collect::<Vec<_>>() {
        part.add_identity(Some(Identity::order(&order)));
    }
    let name = scalar_text(&buyer["name"]).unwrap_or_default();
    part.set_name(&name);
    if let Some(first) = scalar_text(&buyer["first_name"]) {
        part.set_var("contact.first_name", Some(first));
    }
}

/// The buyer's phone: split in purchases, in one piece in carts.
fn phone(buyer: &Value) -> PhoneInput {
    let text = |name: &str| scalar_text(&buyer[name]);
    match (text("checkout_phone_code"), text("checkout_phone").or_else(|| text("phone"))) {
        (_, None) => PhoneInput::Missing,
        (None, Some(number)) => PhoneInput::text(number),
        // Brazil's country code before a number without its area code would be read as area code 55, and name a stranger
        // in Rio Grande do Sul.
        (Some(code), Some(number)) if digits(&code) == "55" && digits(&number).len() < 10 => PhoneInput::text(number),
        (Some(code), Some(number)) => PhoneInput::parts(code, number),
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

fn values(part: &mut Part, data: &Value, received_at: Timestamp) {
    let purchase = &data["purchase"];
    let payment = &purchase["payment"];
    part.set_var("offer.name", scalar_text(&data["product"]["name"]));
    let code = [&purchase["offer"]["code"], &data["offer"]["code"]].into_iter().find_map(scalar_text);
    part.set_var("offer.code", code);
    // What the buyer pays, interest included; the plain price where that is missing.
    let price = [&purchase["full_price"], &purchase["price"]].into_iter().find(|price| price["value"].is_number());
    if let Some(price) = price {
        let amount = price["value"].to_string();
        let currency = price["currency_value"].as_str().unwrap_or("BRL");
        part.set_var("order.total", in_reais(&amount, currency));
        part.set_var("order.amount", Some(format!("{amount} {currency}")));
    }
    part.set_var("payment.type", scalar_text(&payment["type"]));
    part.set_var("payment.refusal_reason", scalar_text(&payment["refusal_reason"]));
    part.set_var("pix.code", scalar_text(&payment["pix_code"]));
    part.set_var("pix.qrcode", scalar_text(&payment["pix_qrcode"]));
    // An expiry lies ahead: judged from a year on, since times beyond tomorrow are no origin's times.
    let in_a_year = received_at.saturating_add(SignedDuration::from_hours(365 * 24)).unwrap_or(received_at);
    let (expires, unreadable) = read_time(&payment["pix_expiration_date"], in_a_year);
    part.set_var("pix.expires_at", unreadable.is_none().then(|| expires.to_string()));
    part.set_var("boleto.url", scalar_text(&payment["billet_url"]));
    part.set_var("boleto.barcode", scalar_text(&payment["billet_barcode"]));
    let subscriber = [&data["subscription"]["subscriber"]["code"], &data["subscriber"]["code"]];
    part.set_var("subscription.code", subscriber.into_iter().find_map(scalar_text));
    part.set_var("subscription.plan", scalar_text(&data["subscription"]["plan"]["name"]));
}

#[cfg(test)]
mod tests;
