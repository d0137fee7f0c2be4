//! The Cloud API's webhooks to parts.
//!
//! Everything in an envelope is a list: entries, changes, messages, statuses (FC-29). One body may speak of several numbers,
//! so each change is judged by the number that *it* names, never by the address it came to and never by `entry.id`.
//!
//! Delivery keys: (number, `messages`, message id), (number, `statuses`, message id, status, its time): a status may come
//! twice, and one message has several.

use retoma_core::event::EventKind;
use retoma_core::identity::{Identity, Phone};
use retoma_core::keys::{Key16, digest16};
use serde_json::Value;

pub use super::handshake::Handshake;
use super::message::{content, error_code};
use crate::inbound::content::{Content, describe};
use crate::inbound::json::plain_id;
use crate::inbound::part::{Maker, PARTS_MAX, digest_of};
use crate::inbound::read::items;
use crate::inbound::{Part, PartEntry, Refusal};

/// The number of the sample that the "Test" button of Meta's dashboard sends, whoever's dashboard it is.
const SAMPLE_NUMBER: &str = "123456123";
/// Why a part of another number is set aside. Released by a person, it is decided like any other.
const OTHER_NUMBER: &str = "it is about another phone_number_id than the source's";

/// Reads a body: an envelope, or a list of them.
pub(crate) fn read(maker: &Maker<'_>, body: &Value) -> Result<Vec<Part>, Refusal> {
    let mut parts = Vec::new();
    let (mut ours, mut foreign) = (0, 0);
    for envelope in items(body) {
        for change in changes(envelope) {
            let Some(change) = Change::open(maker, change) else {
                parts.push(maker.quarantined(change.to_string().as_bytes(), "no change with a field and a value"));
                ours += 1;
                continue;
            };
            match change.origin {
                Origin::Foreign => foreign += 1,
                _ => ours += 1,
            }
            parts.extend(change.parts());
            if parts.len() > PARTS_MAX {
                return Ok(parts); // too many already; the caller says so
            }
        }
    }
    if foreign > 0 && ours == 0 {
        return Err(Refusal::Origin("every change names another phone_number_id than the source's".to_owned()));
    }
    if parts.is_empty() {
        parts.push(nothing(maker, body));
    }
    Ok(parts)
}

/// A body without a single change.
fn nothing(maker: &Maker<'_>, body: &Value) -> Part {
    let is_empty = body.as_array().is_some_and(Vec::is_empty) || body.get("entry").is_some_and(Value::is_array);
    match is_empty {
        true => maker.by_digest("empty", digest_of(body)).ignored("empty_list"),
        false => maker.quarantined(body.to_string().as_bytes(), "the body has no entry list"),
    }
}

/// The changes of an envelope, in order.
fn changes(envelope: &Value) -> impl Iterator<Item = &Value> {
    let entries = envelope.get("entry").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    entries.iter().flat_map(|entry| match entry.get("changes").and_then(Value::as_array) {
        Some(changes) => changes.as_slice(),
        // An entry of another shape is one unreadable change: it is stored, and its neighbours are read.
        None => std::slice::from_ref(entry),
    })
}

/// Whose number a change is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Ours,
    Foreign,
    /// About the account, not about a number.
    Account,
    /// Meta's own example.
    Sample,
}

/// One change, opened.
struct Change<'a> {
    maker: &'a Maker<'a>,
    field: &'a str,
    value: &'a Value,
    number: &'a str,
    origin: Origin,
    /// Our own number: the other side is somebody else.
    own: Option<Identity>,
}

impl<'a> Change<'a> {
    fn open(maker: &'a Maker<'a>, change: &'a Value) -> Option<Self> {
        let field = change.get("field").and_then(Value::as_str)?;
        let value = change.get("value").filter(|value| value.is_object())?;
        let number = value.pointer("/metadata/phone_number_id").and_then(Value::as_str);
        let known = maker.source.cloud.as_ref().map(|door| door.phone_number_ids.as_slice()).unwrap_or_default();
        let origin = match number {
            None => Origin::Account,
            Some(number) if known.iter().any(|known| known == number) => Origin::Ours,
            Some(SAMPLE_NUMBER) => Origin::Sample,
            Some(_) => Origin::Foreign,
        };
        let own = value.pointer("/metadata/display_phone_number").and_then(Value::as_str).and_then(whatsapp_id);
        Some(Self { maker, field, value, number: number.unwrap_or("account"), origin, own })
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = match self.field {
            "messages" => self.messages(),
            "smb_message_echoes" => self.each("message_echoes", |item| self.echo(item)).collect(),
            // Months of old messages in one body: one row says that it came; the bytes are kept with it.
            "history" => vec![self.note(self.value, "history")],
            "user_preferences" => self.each("user_preferences", |item| self.preference(item)).collect(),
            "user_id_update" => vec![self.note(self.value, "identity_notice")],
            field if is_account_field(field) => vec![self.note(self.value, "account_notice")],
            _ => vec![self.note(self.value, "unknown_type")],
        };
        if parts.is_empty() {
            parts.push(self.note(self.value, "empty_list"));
        }
        match self.origin {
            Origin::Ours | Origin::Account => parts,
            Origin::Sample => parts.into_iter().map(|part| part.ignored("test_event")).collect(),
            Origin::Foreign => parts
                .into_iter()
                .map(|mut part| {
                    // What is not ours says nothing about our messages either.
                    part.receipt = None;
                    part.entering(PartEntry::Quarantined(OTHER_NUMBER.to_owned()))
                })
                .collect(),
        }
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        let list = self.value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().take(PARTS_MAX + 1)
    }

    /// One part for each item of a list; one that is no object by itself, so that its neighbours are read.
    fn each(&self, name: &'static str, read: impl Fn(&'a Value) -> Part) -> impl Iterator<Item = Part> {
        self.list(name).map(move |item| match item.is_object() {
            true => read(item),
            false => {
                let bytes = [name, "/", &item.to_string()].concat();
                self.maker.quarantined(bytes.as_bytes(), format!("an item of {name} is no object"))
            }
        })
    }

    fn messages(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.each("messages", |item| self.message(item)).collect();
        parts.extend(self.each("statuses", |item| self.status(item)));
        parts.extend(self.list("errors").map(|item| {
            let mut part = self.note(item, "account_error");
            part.set_var("channel.error_code", item.get("code").and_then(plain_id));
            part
        }));
        if self.origin == Origin::Account && !parts.is_empty() {
            return vec![
                self.maker.quarantined(self.value.to_string().as_bytes(), "the change names no phone_number_id"),
            ];
        }
        parts
    }

    fn part(&self, kind: EventKind, words: &[&str], item: &Value) -> Part {
        let words: Vec<&str> = [self.number].into_iter().chain(words.iter().copied()).collect();
        let mut part = self.maker.part(kind, &words, self.digest(item));
        part.data.source_type = Some(self.field.to_owned());
        part
    }

    fn digest(&self, item: &Value) -> Key16 {
        digest16("body", &[self.number.as_bytes(), self.field.as_bytes(), item.to_string().as_bytes()])
    }

    /// Something that is recorded and starts nothing, keyed by its content.
    fn note(&self, item: &Value, reason: &'static str) -> Part {
        self.part(EventKind::Unknown, &[self.field, &format!("{:?}", self.digest(item))], item).ignored(reason)
    }

    /// A message or an echo under its id; without one a person must look at it.
    fn keyed(&self, kind: EventKind, item: &Value) -> Part {
        let Some(id) = item.get("id").and_then(plain_id) else {
            let digest = format!("{:?}", self.digest(item));
            let part = self.part(kind, &[self.field, "no-id", &digest], item);
            return part.entering(PartEntry::Held("missing_id"));
        };
        let mut part = self.part(kind, &[self.field, &id], item);
        part.data.message_id = Some(id);
        part
    }

    fn message(&self, item: &'a Value) -> Part {
        let mut part = self.keyed(EventKind::MessageReceived, item);
        part.set_time(item.get("timestamp").unwrap_or(&Value::Null), self.maker.received_at);
        if item.get("group_id").is_some_and(|id| !id.is_null()) {
            return part.ignored("group");
        }
        let card = self.card_of(item);
        // A business-scoped id names exactly one person to us; a number may change hands.
        self.add_ids(&mut part, [item.get("from_user_id"), card.and_then(|card| card.get("user_id"))]);
        self.add_ids(&mut part, [item.get("from"), card.and_then(|card| card.get("wa_id"))]);
        self.add_ids(&mut part, [item.get("from_parent_user_id"), card.and_then(|card| card.get("parent_user_id"))]);
        if let Some(name) = card.and_then(|card| card.pointer("/profile/name")).and_then(Value::as_str) {
            part.set_name(name);
        }
        let said = content(item);
        describe(&mut part, &said);
        part.set_var("message.error_code", error_code(item));
        match said {
            Content::Nothing { reason: "system_notice" } => self.system(part, item),
            Content::Nothing { reason } => part.ignored(reason),
            Content::Said { .. } if part.identities.is_empty() => part.ignored("unknown_chat"),
            Content::Said { .. } => part,
        }
    }

    /// Somebody has a new number or a new id. The old and the new one together are the evidence that links them (C11), so the
    /// part is decided like any other, and starts nothing.
    fn system(&self, mut part: Part, item: &Value) -> Part {
        part.kind = EventKind::Unknown;
        let system = item.get("system").unwrap_or(&Value::Null);
        let known = part.identities.len();
        self.add_ids(&mut part, ["user_id", "wa_id", "parent_user_id"].map(|name| system.get(name)));
        let is_link = matches!(
            system.get("type").and_then(Value::as_str),
            Some("user_changed_number" | "user_changed_user_id" | "customer_changed_number")
        );
        match is_link && known > 0 && part.identities.len() > known {
            true => part,
            false => part.ignored("system_notice"),
        }
    }

    /// The entry of `contacts` that a message is from.
    fn card_of(&self, item: &Value) -> Option<&'a Value> {
        let cards = self.value.get("contacts")?.as_array()?;
        let same = |card: &&Value, field: &str, of: &str| {
            let id = item.get(field).and_then(Value::as_str);
            id.is_some() && card.get(of).and_then(Value::as_str) == id
        };
        let found = cards.iter().find(|card| same(card, "from", "wa_id") || same(card, "from_user_id", "user_id"));
        // One card beside one message is its sender's, in whichever spelling each names him (ninth digit).
        let is_alone = || cards.len() == 1 && self.list("messages").count() == 1;
        found.or_else(|| cards.first().filter(|_| is_alone()))
    }

    /// A message that somebody typed in the business app: a person took over (C8).
    fn echo(&self, item: &'a Value) -> Part {
        let mut part = self.keyed(EventKind::MessageHuman, item);
        part.set_time(item.get("timestamp").unwrap_or(&Value::Null), self.maker.received_at);
        self.add_ids(&mut part, ["to_user_id", "to", "to_parent_user_id"].map(|name| item.get(name)));
        let said = content(item);
        describe(&mut part, &said);
        match said {
            Content::Nothing { reason } => part.ignored(reason),
            Content::Said { .. } if part.identities.is_empty() => part.ignored("unknown_chat"),
            Content::Said { .. } => part,
        }
    }

    fn status(&self, item: &'a Value) -> Part {
        let id = item.get("id").and_then(plain_id);
        let status = item.get("status").and_then(Value::as_str);
        let (Some(id), Some(status)) = (id, status) else { return self.note(item, "receipt") };
        let stamp = item.get("timestamp").and_then(plain_id).unwrap_or_default();
        // In a group every member has a receipt of his own. Keys are shown to people, so his number stands in it as a digest.
        let member = ["recipient_participant_id", "recipient_participant_user_id"].map(|name| item.get(name));
        let member = member.into_iter().flatten().next().map(|member| format!("{:?}", digest_of(member)));
        let mut words = vec!["statuses", &id, status, &stamp];
        words.extend(member.as_deref());
        let mut part = self.part(EventKind::MessageStatus, &words, item).ignored("receipt");
        part.set_time(item.get("timestamp").unwrap_or(&Value::Null), self.maker.received_at);
        self.add_ids(
            &mut part,
            ["recipient_user_id", "recipient_id", "parent_recipient_user_id", "recipient_parent_user_id"]
                .map(|name| item.get(name)),
        );
        part.set_var("message.error_code", error_code(item));
        // What we wrote beside the message when we sent it: the way back to our task.
        part.set_var("message.reference", item.get("biz_opaque_callback_data").and_then(plain_id));
        match status {
            "sent" | "delivered" | "read" | "played" | "failed" => {
                let at = part.occurred_at;
                part = part.with_receipt(&id, status, at);
            }
            _ => part.flag(Some("status_unknown")),
        }
        part.data.message_id = Some(id);
        part
    }

    /// "Stop" or "resume" of marketing messages, set in the app.
    fn preference(&self, item: &'a Value) -> Part {
        let reason = match item.get("value").and_then(Value::as_str) {
            Some("stop") => "marketing_stopped",
            Some("resume") => "marketing_resumed",
            _ => "unknown_type",
        };
        let mut part = self.note(item, reason);
        part.set_time(item.get("timestamp").unwrap_or(&Value::Null), self.maker.received_at);
        self.add_ids(&mut part, ["user_id", "wa_id"].map(|name| item.get(name)));
        part
    }

    fn add_ids<const N: usize>(&self, part: &mut Part, ids: [Option<&Value>; N]) {
        for id in ids.into_iter().flatten().filter_map(Value::as_str).filter_map(whatsapp_id) {
            let is_own = self.own.as_ref().is_some_and(|own| (own.kind, &own.match_key) == (id.kind, &id.match_key));
            part.add_identity(Some(id).filter(|_| !is_own));
        }
    }
}

/// A number as Meta spells it, or a business-scoped id.
fn whatsapp_id(text: &str) -> Option<Identity> {
    let digits = text.trim().trim_start_matches('+');
    Phone::reported(digits).map(|phone| Identity::phone(&phone, true)).or_else(|| Identity::bsuid(text))
}

/// Fields about templates, quality, limits and the account.
fn is_account_field(field: &str) -> bool {
    [
        "message_template_",
        "template_",
        "phone_number_",
        "account_",
        "business_",
        "security",
        "flows",
        "payment_",
        "partner_",
    ]
    .iter()
    .any(|start| field.starts_with(start))
}

#[cfg(test)]
mod tests;
