//! The fake's JSON, as reference/whatsapp-providers.md 2 shows the real one's.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Delivered, FakeAnswer, Lid};

/// What the real one says when its database fails after the send.
pub(super) const NOT_STORED: &str =
    "PrismaClientKnownRequestError: Invalid `this.prismaRepository.message.create()` invocation";
/// The account that the fake is connected as.
const OWN_JID: &str = "554133330000@s.whatsapp.net";
const INSTANCE_ID: &str = "11111111-2222-4333-8444-555555555555";

/// A message that was sent.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) jid: String,
    pub(super) number: String,
    pub(super) text: String,
    pub(super) at: Timestamp,
}

impl Message {
    /// The 201.
    pub(super) fn created(&self) -> Value {
        json!({
            "key": {"remoteJid": self.jid, "fromMe": true, "id": self.id},
            "pushName": "Você",
            "status": "PENDING",
            "message": {"conversation": self.text},
            "contextInfo": null,
            "messageType": "conversation",
            "messageTimestamp": self.at.as_second(),
            "instanceId": INSTANCE_ID,
            "source": "web",
        })
    }

    /// `send.message`.
    pub(super) fn echo(&self, lid: Lid, instance: &str, api_key: &str) -> Value {
        let mut data = self.created();
        name_chat(&mut data["key"], &self.jid, lid);
        envelope("send.message", data, instance, api_key, self.at)
    }

    /// `messages.update`. `messageId` is a row id of the fake's database and nothing to join by.
    pub(super) fn update(&self, status: &str, lid: Lid, instance: &str, api_key: &str) -> Value {
        let row = format!("cm{}", self.id.to_ascii_lowercase());
        let data = json!({
            "messageId": row, "keyId": self.id, "remoteJid": chat_id(&self.jid, lid), "fromMe": true, "status": status,
            "instanceId": INSTANCE_ID,
        });
        envelope("messages.update", data, instance, api_key, self.at)
    }

    /// An item of the answer for numbers that do not exist.
    pub(super) fn not_there(&self) -> Value {
        json!({"jid": self.jid, "exists": false, "number": self.number})
    }

    /// A record of `findMessages`.
    pub(super) fn record(&self) -> Value {
        json!({
            "id": format!("cm{}", self.id.to_ascii_lowercase()),
            "key": {"id": self.id, "fromMe": true, "remoteJid": self.jid},
            "pushName": "Você",
            "messageType": "conversation",
            "message": {"conversation": self.text},
            "messageTimestamp": self.at.as_second(),
            "instanceId": INSTANCE_ID,
            "source": "web",
            "contextInfo": null,
            "MessageUpdate": [{"status": "SERVER_ACK"}],
        })
    }

    pub(super) fn delivered(&self) -> Delivered {
        Delivered { at: self.at, to: self.number.clone(), text: self.text.clone(), id: self.id.clone() }
    }
}

/// The LID behind a phone: its digits backwards, so that nobody takes it for one.
pub(super) fn lid_of(jid: &str) -> String {
    let digits: String = jid.chars().take_while(char::is_ascii_digit).collect();
    format!("2{}@lid", digits.chars().rev().collect::<String>())
}

/// What a version that hides phones calls a chat.
fn chat_id(jid: &str, lid: Lid) -> String {
    match lid {
        Lid::None | Lid::Overwritten => jid.to_owned(),
        Lid::Only | Lid::SenderPn | Lid::Alt => lid_of(jid),
    }
}

/// Names the chat in a message's key as that version does.
pub(super) fn name_chat(key: &mut Value, jid: &str, lid: Lid) {
    key["remoteJid"] = json!(chat_id(jid, lid));
    match lid {
        Lid::None | Lid::Only => {}
        Lid::SenderPn => key["senderPn"] = json!(jid),
        Lid::Alt => {
            key["remoteJidAlt"] = json!(jid);
            key["addressingMode"] = json!("lid");
        }
        Lid::Overwritten => key["addressingMode"] = json!("lid"),
    }
}

/// `messages.upsert`: the customer wrote, or (`own`) somebody typed on the phone.
pub(super) fn upsert(message: &Message, own: bool, lid: Lid, instance: &str, api_key: &str) -> Value {
    let mut data = json!({
        "key": {"fromMe": own, "id": message.id},
        "pushName": if own { "Você" } else { "Cliente Teste" },
        "status": if own { "SERVER_ACK" } else { "DELIVERY_ACK" },
        "message": {"conversation": message.text},
        "messageType": "conversation",
        "messageTimestamp": message.at.as_second(),
        "instanceId": INSTANCE_ID,
        "source": "android",
    });
    name_chat(&mut data["key"], &message.jid, lid);
    envelope("messages.upsert", data, instance, api_key, message.at)
}

/// `connection.update`.
pub(super) fn connection(state: &str, instance: &str, api_key: &str, at: Timestamp) -> Value {
    let reason = if state == "open" { 200 } else { 401 };
    let data = json!({"instance": instance, "wuid": OWN_JID, "state": state, "statusReason": reason});
    envelope("connection.update", data, instance, api_key, at)
}

/// A webhook body, with the instance's token in it, as the real one has by default.
pub(crate) fn envelope(event: &str, data: Value, instance: &str, api_key: &str, at: Timestamp) -> Value {
    json!({
        "event": event,
        "instance": instance,
        "data": data,
        "destination": "http://127.0.0.1/in/zap",
        "date_time": local_time(at),
        "sender": OWN_JID,
        "server_url": "http://127.0.0.1",
        "apikey": api_key,
    })
}

/// Local time with a `Z` behind it: the real one's mistake, to be seen through.
pub(crate) fn local_time(at: Timestamp) -> String {
    let local = jiff::tz::Offset::constant(-3).to_datetime(at);
    format!("{}.{:03}Z", local.strftime("%Y-%m-%dT%H:%M:%S"), at.as_millisecond().rem_euclid(1000))
}

/// The jid that WhatsApp knows a number by. Of Brazilian mobiles with an area code from 31 on the ninth digit is dropped,
/// so that senders see a spelling that they did not use.
pub(crate) fn jid_of(number: &str) -> String {
    if number.contains('@') {
        return number.to_owned();
    }
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let national = digits.strip_prefix("55").filter(|national| national.len() == 11 && national.is_ascii());
    let short = national.filter(|national| {
        let area: u32 = national[..2].parse().unwrap_or_default();
        area >= 31 && national[2..].starts_with('9') && national.as_bytes()[3] >= b'7'
    });
    match short {
        Some(national) => format!("55{}{}@s.whatsapp.net", &national[..2], &national[3..]),
        None => format!("{digits}@s.whatsapp.net"),
    }
}

/// `GET /`.
pub(super) fn welcome() -> Value {
    json!({
        "status": 200,
        "message": "Welcome to the Evolution API, it is working!",
        "version": "2.3.7",
        "clientName": "fake",
        "whatsappWebVersion": "2.3000.1",
    })
}

/// An answer of JSON, at once.
pub(super) fn answer(status: u16, body: Value) -> FakeAnswer {
    FakeAnswer {
        status,
        content_type: "application/json",
        body: Bytes::from(body.to_string()),
        retry_after: None,
        after: Duration::ZERO,
        drop: None,
        effects: Vec::new(),
    }
}

/// An error in the real one's wrapping.
pub(super) fn error(status: u16, name: &str, message: Value) -> FakeAnswer {
    answer(status, json!({"status": status, "error": name, "response": {"message": message}}))
}

/// What a proxy says.
pub(super) fn html(status: u16, body: &'static str) -> FakeAnswer {
    FakeAnswer { content_type: "text/html", body: Bytes::from_static(body.as_bytes()), ..answer(status, Value::Null) }
}
