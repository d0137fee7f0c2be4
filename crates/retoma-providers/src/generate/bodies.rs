//! Bodies as Hotmart and Evolution send them. Everybody in them is invented.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Buyer, Plan};
use crate::evolution::fake::envelope;
use crate::rng::Rng;

pub(super) use crate::evolution::fake::local_time;

/// One sale.
pub(super) struct Sale {
    pub(super) transaction: String,
}

fn price(buyer: &Buyer) -> (u32, &'static str) {
    if buyer.offer == "9000001" { (197, "Curso Exemplo") } else { (97, "Oficina Exemplo") }
}

fn event(rng: &mut Rng, name: &str, at: Timestamp, data: Value) -> Value {
    json!({"id": rng.uuid(), "creation_date": at.as_millisecond(), "event": name, "version": "2.0.0", "data": data})
}

/// The buyer as a checkout writes them: the phone in two fields, as typed.
fn checkout_buyer(rng: &mut Rng, buyer: &Buyer) -> Value {
    let (area, number) = (&buyer.phone[2..4], &buyer.phone[4..]);
    let typed = match rng.below(3) {
        0 => format!("{area}{number}"),
        1 => format!("({area}) {}-{}", &number[..5], &number[5..]),
        _ => format!("0{area} {number}"),
    };
    let first = buyer.name.split(' ').next().unwrap_or_default();
    json!({
        "name": buyer.name, "first_name": first, "email": buyer.email,
        "checkout_phone_code": "55", "checkout_phone": typed,
    })
}

fn purchase(rng: &mut Rng, buyer: &Buyer, sale: &Sale, status: &str, payment: Value, at: Timestamp) -> Value {
    let (value, name) = price(buyer);
    let price = json!({"value": value, "currency_value": "BRL"});
    let id: u64 = buyer.offer.parse().unwrap_or_default();
    json!({
        "product": {"id": id, "name": name},
        "buyer": checkout_buyer(rng, buyer),
        "purchase": {
            "transaction": sale.transaction, "status": status, "order_date": at.as_millisecond(), "recurrence_number": 1,
            "price": price, "full_price": price, "offer": {"code": "abc1def2"}, "payment": payment,
        },
    })
}

/// A PIX code was made.
pub(super) fn pix(rng: &mut Rng, buyer: &Buyer, sale: &Sale, at: Timestamp) -> Value {
    let expires = at.saturating_add(SignedDuration::from_hours(48)).unwrap_or(at);
    let payment = json!({
        "type": "PIX", "installments_number": 1, "pix_code": format!("00020101021226EXEMPLO{}6304ABCD", sale.transaction),
        "pix_qrcode": format!("https://exemplo.invalid/qr/{}", sale.transaction),
        "pix_expiration_date": expires.as_millisecond(),
    });
    let data = purchase(rng, buyer, sale, "BILLET_PRINTED", payment, at);
    event(rng, "PURCHASE_BILLET_PRINTED", at, data)
}

/// Paid.
pub(super) fn approved(rng: &mut Rng, buyer: &Buyer, sale: &Sale, at: Timestamp) -> Value {
    let data = purchase(rng, buyer, sale, "APPROVED", json!({"type": "PIX", "installments_number": 1}), at);
    event(rng, "PURCHASE_APPROVED", at, data)
}

/// Money given back.
pub(super) fn refund(rng: &mut Rng, buyer: &Buyer, sale: &Sale, at: Timestamp) -> Value {
    let data = purchase(rng, buyer, sale, "REFUNDED", json!({"type": "PIX", "installments_number": 1}), at);
    event(rng, "PURCHASE_REFUNDED", at, data)
}

/// A refused card comes as a cancelled purchase.
pub(super) fn card_refused(rng: &mut Rng, buyer: &Buyer, sale: &Sale, at: Timestamp) -> Value {
    let payment = json!({"type": "CREDIT_CARD", "installments_number": 12, "refusal_reason": "Saldo insuficiente"});
    let data = purchase(rng, buyer, sale, "CANCELED", payment, at);
    event(rng, "PURCHASE_CANCELED", at, data)
}

/// A cart was left: another shape, the phone in one piece, no transaction.
pub(super) fn cart(rng: &mut Rng, buyer: &Buyer, at: Timestamp) -> Value {
    let (_, name) = price(buyer);
    let id: u64 = buyer.offer.parse().unwrap_or_default();
    let data = json!({
        "affiliate": false, "product": {"id": id, "name": name}, "offer": {"code": "abc1def2"},
        "buyer": {"name": buyer.name, "email": buyer.email, "phone": buyer.phone},
    });
    event(rng, "PURCHASE_OUT_OF_SHOPPING_CART", at, data)
}

/// Whether a body says something that stays one fact under another event id.
pub(super) fn is_fact(body: &Value) -> bool {
    body["data"]["purchase"].is_object() || body["event"] == "PURCHASE_OUT_OF_SHOPPING_CART"
}

fn key(rng: &mut Rng, jid: &str, own: bool) -> Value {
    json!({"remoteJid": jid, "fromMe": own, "id": rng.message_id()})
}

fn upsert(plan: &Plan, key: Value, name: &str, message: Value, at: Timestamp) -> Value {
    let data = json!({
        "key": key, "pushName": name, "status": "DELIVERY_ACK", "message": message, "messageTimestamp": at.as_second(),
        "instanceId": "11111111-2222-4333-8444-555555555555", "source": "android",
    });
    envelope("messages.upsert", data, &plan.instance, &plan.api_key, at)
}

/// A message of a buyer. One in five is known by a LID, with the phone beside it.
pub(super) fn message(rng: &mut Rng, plan: &Plan, buyer: &Buyer, text: &str, at: Timestamp) -> Value {
    let hidden = buyer.phone.ends_with(['0', '5']);
    let lid = format!("2000000{}@lid", &buyer.phone[4..]);
    let mut key = key(rng, if hidden { &lid } else { &buyer.jid }, false);
    if hidden {
        key["remoteJidAlt"] = buyer.jid.as_str().into();
        key["addressingMode"] = "lid".into();
    }
    let message = match rng.below(4) {
        0 => json!({"extendedTextMessage": {"text": text}}),
        _ => json!({"conversation": text, "messageContextInfo": {"deviceListMetadataVersion": 2}}),
    };
    upsert(plan, key, &buyer.name, message, at)
}

/// Something that must not be taken for a message of a buyer.
pub(super) fn noise(rng: &mut Rng, plan: &Plan, buyer: &Buyer, kind: u32, at: Timestamp) -> Value {
    let text = json!({"conversation": "SAIR"});
    match kind {
        0 => {
            let mut key = key(rng, "120363000000000021@g.us", false);
            key["participant"] = buyer.jid.as_str().into();
            upsert(plan, key, &buyer.name, text, at)
        }
        1 => {
            let mut key = key(rng, "status@broadcast", false);
            key["participant"] = buyer.jid.as_str().into();
            upsert(plan, key, &buyer.name, text, at)
        }
        2 => {
            let message = json!({"reactionMessage": {"key": {"id": "3EB0ANTES"}, "text": "👍"}});
            let key = key(rng, &buyer.jid, false);
            upsert(plan, key, &buyer.name, message, at)
        }
        3 => {
            let key = key(rng, "120363000000000021@g.us", true);
            upsert(plan, key, "Loja", json!({"conversation": "bom dia, grupo"}), at)
        }
        _ => {
            let data = json!({"instance": plan.instance, "state": "connecting", "statusReason": null});
            envelope("connection.update", data, &plan.instance, &plan.api_key, at)
        }
    }
}
