//! A pure fake of Evolution API: a request in, an answer and its effects out. `retoma-server` serves it; tests and the
//! simulator call it.
//!
//! It answers as the real one does, errors included: the guard's order (an unknown instance is 404 even with a wrong key),
//! nested arrays for validations, a 400 for a message that went out. What goes wrong, and how often, is said by
//! [`Faults`]; everything else follows from the seed, so that a run can be repeated.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};

mod bodies;
mod faults;
mod history;

pub(crate) use bodies::{envelope, jid_of, local_time};
pub use faults::{Fault, Faults, Lid, Spelling};

use bodies::Message;
use history::STORED_MAX;

use crate::rng::Rng;

/// The answer to one request, with what else happens because of it.
#[derive(Clone, Debug)]
pub struct FakeAnswer {
    /// Status.
    pub status: u16,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Body.
    pub body: Bytes,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// How long the request is kept waiting.
    pub after: Duration,
    /// Whether no answer comes at all.
    pub drop: Option<Drop>,
    /// What happens, in this order, before the answer.
    pub effects: Vec<Effect>,
}

/// How a request ends without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The connection is reset.
    Reset,
    /// Nothing comes, for as long as the client waits.
    Hang,
}

/// Something that happens because of a request.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A message reached its phone.
    Delivered(Delivered),
    /// A webhook is posted.
    Webhook {
        /// How long after the request; it may overtake the answer.
        after: Duration,
        /// The body.
        body: Bytes,
    },
}

/// A message that reached its phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When.
    pub at: Timestamp,
    /// The number as the sender wrote it.
    pub to: String,
    /// The text.
    pub text: String,
    /// Its WhatsApp id.
    pub id: String,
}

/// The fake.
#[derive(Debug)]
pub struct Fake {
    instance: String,
    api_key: String,
    faults: Faults,
    rng: Rng,
    delivered: Vec<Delivered>,
    /// Messages that the fake's database has; the ones it "could not store" are missing here, as at the real one.
    stored: VecDeque<Message>,
    /// Sends in the present second, for the rate limit.
    window: (i64, u32),
}

impl Fake {
    /// A fake of one instance. The same seed and the same requests give the same answers.
    pub fn new(instance: &str, api_key: &str, faults: Faults, seed: u64) -> Self {
        Self {
            instance: instance.to_owned(),
            api_key: api_key.to_owned(),
            faults,
            rng: Rng::new(seed),
            delivered: Vec::new(),
            stored: VecDeque::new(),
            window: (0, 0),
        }
    }

    /// The delivery log: everything that reached a phone, in order.
    pub fn delivered(&self) -> &[Delivered] {
        &self.delivered
    }

    /// What goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// The customer behind a number writes: the webhook's body.
    pub fn customer_says(&mut self, now: Timestamp, number: &str, text: &str) -> Bytes {
        self.said(now, number, text, false)
    }

    /// Somebody types on the phone that the instance is connected to: the webhook's body.
    pub fn owner_types(&mut self, now: Timestamp, number: &str, text: &str) -> Bytes {
        self.said(now, number, text, true)
    }

    fn said(&mut self, now: Timestamp, number: &str, text: &str, own: bool) -> Bytes {
        let message = Message {
            id: self.rng.message_id(),
            jid: jid_of(number),
            number: number.to_owned(),
            text: text.to_owned(),
            at: now,
        };
        Bytes::from(bodies::upsert(&message, own, self.faults.lid, &self.instance, &self.api_key).to_string())
    }

    /// The instance connects or loses its connection (`open`, `connecting`, `close`): the webhook's body.
    pub fn connection(&mut self, now: Timestamp, state: &str) -> Bytes {
        state.clone_into(&mut self.faults.state);
        Bytes::from(bodies::connection(state, &self.instance, &self.api_key, now).to_string())
    }

    /// Answers a request. `path` may carry a query string.
    pub fn handle(&mut self, now: Timestamp, method: &str, path: &str, headers: &HeaderMap, body: &[u8]) -> FakeAnswer {
        let path = path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let route = match (method, parts.as_slice()) {
            ("GET", [""]) => return bodies::answer(200, bodies::welcome()),
            ("POST", ["message", "sendText", instance]) => (Route::SendText, *instance),
            ("GET", ["instance", "connectionState", instance]) => (Route::State, *instance),
            ("POST", ["chat", "findMessages", instance]) => (Route::Find, *instance),
            ("POST", ["chat", "findStatusMessage", instance]) => (Route::Status, *instance),
            ("POST", ["chat", "whatsappNumbers", instance]) => (Route::Numbers, *instance),
            _ => return bodies::error(404, "Not Found", json!([format!("Cannot {method} {path}")])),
        };
        let (route, instance) = route;
        // The real guards stand in this order, too.
        if plain_segment(instance) != self.instance {
            let message = format!("The \"{}\" instance does not exist", plain_segment(instance));
            return bodies::error(404, "Not Found", json!([message]));
        }
        if headers.get("apikey").is_none_or(|key| key.as_bytes() != self.api_key.as_bytes()) {
            return bodies::error(401, "Unauthorized", json!("Unauthorized"));
        }
        let body = crate::inbound::json::parse(body).unwrap_or(Value::Null);
        match route {
            Route::SendText => self.send_text(now, &body),
            Route::State => {
                bodies::answer(200, json!({"instance": {"instanceName": self.instance, "state": self.faults.state}}))
            }
            Route::Find if self.faults.find_fails => {
                bodies::error(500, "Internal Server Error", json!("Can't reach database server"))
            }
            Route::Find => bodies::answer(200, self.find_messages(&body)),
            Route::Status => bodies::answer(200, self.find_status(&body)),
            Route::Numbers => bodies::answer(200, self.numbers(&body)),
        }
    }

    fn send_text(&mut self, now: Timestamp, body: &Value) -> FakeAnswer {
        let missing: Vec<String> = ["number", "text"]
            .iter()
            .filter(|name| !body[**name].is_string())
            .map(|name| format!("instance requires property {name:?}"))
            .collect();
        if !missing.is_empty() {
            return bodies::error(400, "Bad Request", json!([missing]));
        }
        let (number, text) = (body["number"].as_str().unwrap_or_default(), body["text"].as_str().unwrap_or_default());
        if text.is_empty() {
            return bodies::error(400, "Bad Request", json!(["Text is required"]));
        }
        let fault = if self.over_the_rate(now) { Fault::TooMany } else { self.faults.pick(number, &mut self.rng) };
        let message = Message {
            id: self.rng.message_id(),
            jid: jid_of(number),
            number: number.to_owned(),
            text: text.to_owned(),
            at: now,
        };
        let delay = Duration::from_millis(body["delay"].as_u64().unwrap_or(0));
        let mut answer = self.answer_to(fault, &message);
        answer.after += delay;
        if fault.delivers() {
            answer.effects = self.deliver(fault, message, delay);
        }
        answer
    }

    /// What the caller hears.
    fn answer_to(&self, fault: Fault, message: &Message) -> FakeAnswer {
        let mut answer = match fault {
            Fault::None
            | Fault::Slow
            | Fault::HangSent
            | Fault::HangUnsent
            | Fault::ResetSent
            | Fault::ResetUnsent
            | Fault::NeverArrives => bodies::answer(201, message.created()),
            Fault::Stored400 => bodies::error(400, "Bad Request", json!(["Error: media store failed"])),
            Fault::NoId => bodies::answer(201, json!({"status": "PENDING"})),
            Fault::Sent400 => bodies::error(400, "Bad Request", json!([bodies::NOT_STORED])),
            Fault::Sent500 => bodies::error(500, "Internal Server Error", json!("Timed Out")),
            Fault::Closed400 => bodies::error(400, "Bad Request", json!(["Error: Connection Closed"])),
            Fault::Closed500 => bodies::error(500, "Internal Server Error", json!("Connection Closed")),
            Fault::TooMany => bodies::error(429, "Too Many Requests", json!(["Too many requests"])),
            Fault::Unauthorized => bodies::error(401, "Unauthorized", json!("Unauthorized")),
            Fault::NotOnWhatsapp => bodies::error(400, "Bad Request", json!([message.not_there()])),
            Fault::Proxy502 => bodies::html(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"),
        };
        answer.after = Duration::from_millis(self.faults.latency_ms);
        if self.faults.echo_first {
            // Long enough for the echo and every receipt.
            answer.after += Duration::from_millis(self.faults.webhook_pace_ms.max(20)) * 5;
        }
        match fault {
            Fault::Slow => answer.after += Duration::from_millis(self.faults.slow_ms),
            Fault::HangSent | Fault::HangUnsent => answer.drop = Some(Drop::Hang),
            Fault::ResetSent | Fault::ResetUnsent => answer.drop = Some(Drop::Reset),
            Fault::TooMany => answer.retry_after = Some(self.faults.retry_after_s),
            _ => {}
        }
        answer
    }

    /// What happens to a message that goes out.
    fn deliver(&mut self, fault: Fault, message: Message, delay: Duration) -> Vec<Effect> {
        let delivered = message.delivered();
        self.delivered.push(delivered.clone());
        let mut effects = vec![Effect::Delivered(delivered)];
        // Whoever has no row of the message emits nothing about it: neither echo nor receipts.
        if fault.is_stored() {
            effects.extend(self.webhooks(fault, &message, delay));
            self.stored.push_front(message);
            self.stored.truncate(STORED_MAX);
        }
        effects
    }

    fn webhooks(&mut self, fault: Fault, message: &Message, delay: Duration) -> Vec<Effect> {
        let mut bodies = Vec::new();
        let lid = self.faults.lid;
        if self.faults.echoes && fault.is_echoed() {
            bodies.push(message.echo(lid, &self.instance, &self.api_key));
        }
        if self.faults.receipts {
            let mut levels = ["SERVER_ACK", "DELIVERY_ACK", "READ"];
            if self.faults.receipts_backwards {
                levels.reverse();
            }
            bodies.extend(levels.iter().map(|status| message.update(status, lid, &self.instance, &self.api_key)));
        }
        let pace = Duration::from_millis(self.faults.webhook_pace_ms);
        let mut effects = Vec::new();
        for (step, body) in (0u32..).zip(bodies) {
            // The echo is emitted without waiting and may reach us before the answer; receipts follow at their pace, or in
            // any order if asked for.
            let step = if self.faults.out_of_order { self.rng.below(4) } else { step };
            let body = Bytes::from(body.to_string());
            let after = delay + pace * step;
            if self.faults.both_webhooks {
                effects.push(Effect::Webhook { after, body: body.clone() });
            }
            if self.rng.chance(self.faults.duplicates) {
                effects.push(Effect::Webhook { after: after + pace, body: body.clone() });
            }
            effects.push(Effect::Webhook { after, body });
        }
        effects
    }

    /// Counts a send, and answers whether there were too many in this second.
    fn over_the_rate(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.faults.rate_per_s else { return false };
        if self.window.0 != now.as_second() {
            self.window = (now.as_second(), 0);
        }
        self.window.1 += 1;
        self.window.1 > limit
    }

    fn numbers(&self, body: &Value) -> Value {
        let numbers = body["numbers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known =
            |number: &str| self.faults.exists(number) && self.faults.of_number(number) != Some(Fault::NotOnWhatsapp);
        Value::Array(
            numbers
                .iter()
                .filter_map(Value::as_str)
                .map(|number| json!({"jid": jid_of(number), "exists": known(number), "number": number}))
                .collect(),
        )
    }
}

#[derive(Clone, Copy)]
enum Route {
    SendText,
    State,
    Find,
    Status,
    Numbers,
}

fn plain_segment(segment: &str) -> String {
    // A plus sign is itself in a path.
    crate::inbound::body::pairs(&segment.replace('+', "%2B")).next().map(|(name, _)| name).unwrap_or_default()
}

#[cfg(test)]
mod tests;
