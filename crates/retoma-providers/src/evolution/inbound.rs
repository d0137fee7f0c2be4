//! Evolution's webhooks to parts.
//!
//! Only a person's own message in a one-to-one chat is a `message.received` that is decided. A message from our own number is
//! a `message.human`: whether it is one of ours or somebody who answers by hand is for the decision to say (C8). Groups,
//! status posts, reactions, edits, deletions, receipts and history are recorded with their reason and start nothing (C10).
//!
//! The delivery key is (instance, event, message id): not the chat, since one message may come once with a LID and once with
//! a phone; not `date_time`, which is local time and changes with every repetition.

use jiff::{SignedDuration, Timestamp};
use retoma_core::event::{EventKind, HISTORY};
use retoma_core::identity::Identity;
use retoma_core::keys::{Key16, digest16};
use serde_json::Value;

use super::message;
use crate::inbound::content::{Content, describe};
use crate::inbound::json::plain_id;
use crate::inbound::part::{Maker, digest_of};
use crate::inbound::read::items;
use crate::inbound::{Part, PartEntry, Refusal};

/// How old a message may be that comes in the batch after a reconnect. Older ones are history (FC-24).
const APPEND_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Where ids of the other side stand in a message's key, over the versions (reference, "LID matrix").
const SENDER_FIELDS: [&str; 9] = [
    "remoteJid",
    "remoteJidAlt",
    "previousRemoteJid",
    "senderPn",
    "senderLid",
    "participant",
    "participantAlt",
    "participantPn",
    "participantLid",
];
/// The same for our own messages, where the sender is ourselves.
const RECIPIENT_FIELDS: [&str; 3] = ["remoteJid", "remoteJidAlt", "previousRemoteJid"];

/// One webhook body, opened.
struct Envelope<'a> {
    maker: &'a Maker<'a>,
    /// `messages.upsert`, whatever spelling the sender used.
    event: String,
    instance: &'a str,
    /// Our own number, as the body names it.
    own: Option<Identity>,
    data: &'a Value,
    /// `append` or `notify`, where it is said.
    batch: Option<&'a str>,
    /// `date_time`: ends in `Z` and is local time, so it is a label and no instant.
    emitted: &'a str,
}

/// Reads a body: an envelope, or a list of them.
pub(crate) fn read(maker: &Maker<'_>, body: &Value) -> Result<Vec<Part>, Refusal> {
    let mut parts = Vec::new();
    for item in items(body) {
        match open(maker, item)? {
            Ok(envelope) => parts.extend(envelope.parts()),
            Err(reason) => parts.push(maker.quarantined(without_envelope(item).to_string().as_bytes(), reason)),
        }
    }
    if parts.is_empty() {
        // An empty list, or an event whose list of messages is empty: nothing was said, and that is recorded, too.
        parts.push(maker.by_digest("empty", digest_of(&without_envelope(body))).ignored("empty_list"));
    }
    Ok(parts)
}

fn open<'a>(maker: &'a Maker<'a>, item: &'a Value) -> Result<Result<Envelope<'a>, &'static str>, Refusal> {
    let Some(fields) = item.as_object() else { return Ok(Err("the body is no object")) };
    let Some(event) = fields.get("event").and_then(Value::as_str) else { return Ok(Err("no event name")) };
    let Some(instance) = fields.get("instance").and_then(Value::as_str) else {
        return Ok(Err("the body names no instance"));
    };
    if maker.source.instance.as_deref().is_some_and(|expected| expected != instance) {
        return Err(Refusal::Origin("the body names another instance than the source's".to_owned()));
    }
    let data = fields.get("data").unwrap_or(&Value::Null);
    let text_of = |value: Option<&'a Value>| value.and_then(Value::as_str);
    Ok(Ok(Envelope {
        maker,
        event: event.to_ascii_lowercase().replace(['_', '-'], "."),
        instance,
        own: fields.get("sender").and_then(Value::as_str).and_then(Identity::from_jid),
        data,
        batch: text_of(data.get("type")).or_else(|| text_of(fields.get("type"))),
        emitted: text_of(fields.get("date_time")).unwrap_or_default(),
    }))
}

/// A body without the fields of its envelope that change with every attempt, or are secret.
fn without_envelope(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        for name in ["date_time", "destination", "server_url", "apikey", "api_key"] {
            fields.remove(name);
        }
    }
    body
}

impl<'a> Envelope<'a> {
    fn parts(&self) -> Vec<Part> {
        match self.event.as_str() {
            "messages.upsert" => self.each(Self::message),
            "send.message" => self.each(Self::echo),
            "messages.update" => self.each(Self::receipt),
            "messages.edited" | "send.message.update" => self.each(|it, item| it.change(item, "edited")),
            "messages.delete" => self.each(|it, item| it.change(item, "deleted")),
            // Thousands of old messages in one body: one row says it came; the bytes are kept with it.
            "messages.set" => vec![self.note(self.data, "history")],
            "connection.update" => vec![self.connection()],
            "status.instance" | "logout.instance" | "remove.instance" | "instance.delete" | "instance.create" => {
                vec![self.note(self.data, "instance_notice")]
            }
            _ => vec![self.note(self.data, "unknown_type")],
        }
    }

    /// One part for each item of `data`: an object, a list, or an object that holds the list.
    fn each(&self, read: impl Fn(&Self, &'a Value) -> Part) -> Vec<Part> {
        let list = self.data.get("messages").filter(|list| list.is_array()).unwrap_or(self.data);
        items(list).map(|item| read(self, item)).collect()
    }

    /// A part keyed by (instance, event, `words`).
    fn part(&self, kind: EventKind, words: &[&str], item: &Value) -> Part {
        let words: Vec<&str> = [self.instance, &self.event].into_iter().chain(words.iter().copied()).collect();
        let mut part = self.maker.part(kind, &words, self.digest(item));
        part.data.source_type = Some(self.event.clone());
        part
    }

    fn digest(&self, item: &Value) -> Key16 {
        digest16("body", &[self.event.as_bytes(), self.instance.as_bytes(), item.to_string().as_bytes()])
    }

    /// Something that is recorded and starts nothing, keyed by its content: ids of other events may be phones.
    fn note(&self, item: &Value, reason: &'static str) -> Part {
        self.part(EventKind::Unknown, &[&format!("{:?}", self.digest(item))], item).ignored(reason)
    }

    /// An edit or deletion of a message. The content stands in the key as well: a message may be edited again.
    fn change(&self, item: &Value, reason: &'static str) -> Part {
        let Some(id) = item.pointer("/key/id").or_else(|| item.get("id")).and_then(plain_id) else {
            return self.note(item, reason);
        };
        let digest = format!("{:?}", self.digest(item));
        let mut part = self.part(EventKind::Unknown, &[&id, &digest], item).ignored(reason);
        part.data.message_id = Some(id);
        part
    }

    fn message(&self, item: &'a Value) -> Part {
        let Some(key) = item.get("key").filter(|key| key.is_object()) else {
            return self.maker.quarantined(without_envelope(item).to_string().as_bytes(), "a message without data.key");
        };
        let own = key.get("fromMe").is_some_and(is_true);
        let kind = if own { EventKind::MessageHuman } else { EventKind::MessageReceived };
        let id = key.get("id").and_then(plain_id);
        let mut part = match &id {
            Some(id) => self.part(kind, &[id], item),
            None => {
                let digest = format!("{:?}", self.digest(item));
                self.part(kind, &["no-id", &digest], item).entering(PartEntry::Held("missing_id"))
            }
        };
        part.data.message_id = id;
        part.set_time(item.get("messageTimestamp").unwrap_or(&Value::Null), self.maker.received_at);
        if let Some(reason) = chat_of_many(key.get("remoteJid").and_then(Value::as_str).unwrap_or_default()) {
            return part.ignored(reason);
        }
        self.add_people(&mut part, key, item, if own { &RECIPIENT_FIELDS } else { &SENDER_FIELDS });
        let content = message::content(item);
        describe(&mut part, &content);
        let reason = match content {
            Content::Nothing { reason } => Some(reason),
            _ if part.identities.is_empty() => Some("unknown_chat"),
            Content::Said { .. } => None,
        };
        // Decided, since it is true that it was said; answered by nobody.
        if self.is_history(part.occurred_at) {
            part.flag(Some(HISTORY));
        }
        if !own {
            part.set_name(item.get("pushName").and_then(Value::as_str).unwrap_or_default());
        }
        match reason {
            Some(reason) => part.ignored(reason),
            None => part,
        }
    }

    /// Old messages that come again after a reconnect.
    fn is_history(&self, at: Timestamp) -> bool {
        self.batch == Some("append") && self.maker.received_at.duration_since(at) > APPEND_AGE_MAX
    }

    /// A message that was sent through the API: by us, or by another program with the same key.
    fn echo(&self, item: &'a Value) -> Part {
        let key = item.get("key").unwrap_or(&Value::Null);
        let Some(id) = key.get("id").and_then(plain_id) else { return self.note(item, "own_echo") };
        let mut part = self.part(EventKind::MessageStatus, &[&id], item).ignored("own_echo");
        part.set_time(item.get("messageTimestamp").unwrap_or(&Value::Null), self.maker.received_at);
        if chat_of_many(key.get("remoteJid").and_then(Value::as_str).unwrap_or_default()).is_none() {
            self.add_people(&mut part, key, item, &RECIPIENT_FIELDS);
        }
        describe(&mut part, &message::content(item));
        let at = part.occurred_at;
        let status = status_word(item.get("status")).unwrap_or("accepted");
        part = part.with_receipt(&id, status, at);
        part.data.message_id = Some(id);
        part
    }

    fn receipt(&self, item: &'a Value) -> Part {
        // `messageId` is a row of Evolution's own database; the message is `keyId` (or `key.id` in older bodies).
        let id = item.get("keyId").or_else(|| item.pointer("/key/id")).and_then(plain_id);
        let status = item.get("status").or_else(|| item.pointer("/update/status"));
        let Some(id) = id else { return self.note(item, "receipt") };
        let word = match status {
            // "An update without status" is how the server's own acknowledgement comes.
            None | Some(Value::Null) => Some("sent"),
            status => status_word(status),
        };
        let name = status.and_then(plain_id).unwrap_or_else(|| "SERVER_ACK".to_owned());
        let mut part = self.part(EventKind::MessageStatus, &[&id, &name], item).ignored("receipt");
        // Whose message it was tells the reconciler which unsure send it may be about (E4).
        let key = item.get("key").filter(|key| key.is_object()).unwrap_or(item);
        if chat_of_many(key.get("remoteJid").and_then(Value::as_str).unwrap_or_default()).is_none() {
            self.add_people(&mut part, key, item, &RECIPIENT_FIELDS);
        }
        let mine = item.get("fromMe").or_else(|| item.pointer("/key/fromMe")).is_none_or(is_true);
        match word {
            Some(word) if mine => part = part.with_receipt(&id, word, self.maker.received_at),
            Some(_) => part.flag(Some("status_of_theirs")),
            None => part.flag(Some("status_unknown")),
        }
        part.data.message_id = Some(id);
        part
    }

    fn connection(&self) -> Part {
        let state = self.data.get("state").and_then(Value::as_str).unwrap_or_default();
        let (kind, reason) = match state {
            "open" => (EventKind::ChannelConnected, None),
            "close" | "refused" => (EventKind::ChannelDisconnected, None),
            "connecting" => (EventKind::Unknown, Some("connecting")),
            _ => (EventKind::Unknown, Some("unknown_type")),
        };
        // There is no id. Each change is emitted once and repeated with the same bytes, so here, and only here, the
        // envelope's time of emission tells two changes apart.
        let digest = format!("{:?}", self.digest(self.data));
        let mut part = self.part(kind, &[state, self.emitted, &digest], self.data);
        if let Some(reason) = self.data.get("statusReason").and_then(plain_id) {
            part.set_var("channel.status_reason", Some(reason));
        }
        match reason {
            Some(reason) => part.ignored(reason),
            None => part,
        }
    }

    fn add_people(&self, part: &mut Part, key: &Value, item: &Value, fields: &[&str]) {
        let found = fields.iter().flat_map(|name| [key.get(*name), item.get(*name)]);
        let mut people: Vec<Identity> =
            found.flatten().filter_map(Value::as_str).filter_map(Identity::from_jid).collect();
        // A stable sort: phones before LIDs, each kind in the order of the fields.
        people.sort_by_key(|identity| identity.kind as u8);
        for identity in people {
            let is_own = self.own.as_ref().is_some_and(|own| own.match_key == identity.match_key);
            part.add_identity(Some(identity).filter(|_| !is_own));
        }
    }
}

/// Why a chat is not one person's, by its id (FC-21).
fn chat_of_many(jid: &str) -> Option<&'static str> {
    let jid = jid.trim().to_ascii_lowercase();
    if jid == "status@broadcast" {
        return Some("status_broadcast");
    }
    match jid.rsplit_once('@')?.1 {
        "g.us" => Some("group"),
        "broadcast" => Some("broadcast"),
        "newsletter" => Some("newsletter"),
        _ => None,
    }
}

fn is_true(value: &Value) -> bool {
    matches!(value, Value::Bool(true)) || value.as_str() == Some("true")
}

/// Evolution's status, by name or number, in the words of the receipt lattice.
fn status_word(status: Option<&Value>) -> Option<&'static str> {
    let status = match status? {
        Value::String(name) => name.to_ascii_uppercase(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(match status.as_str() {
        "ERROR" | "0" => "failed",
        "PENDING" | "1" => "accepted",
        "SERVER_ACK" | "2" => "sent",
        "DELIVERY_ACK" | "3" => "delivered",
        "READ" | "4" => "read",
        "PLAYED" | "5" => "played",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
