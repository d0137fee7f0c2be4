//! From a request's bytes to parts: the one place that knows which answer an unreadable body gets (INTERFACE.md, "Answers").
//!
//! Generic sources belong to people who can correct their sender, so they are told what is wrong. Presets belong to platforms
//! that punish the whole endpoint for an error: what they send is stored and answered, understood or not.

use retoma_core::keys::body_digest;
use serde_json::Value;

use super::body::{self, Unreadable};
use super::json::plain_id;
use super::part::{Maker, PARTS_MAX};
use super::{Auth, Part, Path, Provider, Refusal, Request, Source, standard_webhooks};
use crate::{evolution, generic, hotmart, whatsapp_cloud};

impl Source {
    /// Reads what the body says. Call [`Source::authenticate`] first.
    pub fn read(&self, request: &Request) -> Result<Vec<Part>, Refusal> {
        let envelope_id = match &self.auth {
            Auth::StandardWebhooks { .. } => standard_webhooks::id_of(request),
            _ => None,
        };
        let maker = Maker { source: self, received_at: request.received_at, envelope_id };
        let is_preset = self.provider != Provider::Generic;
        match body::read(request, self.body_bytes_max) {
            Ok(value) => self.read_value(&maker, &value, request),
            Err(Unreadable::TooLarge) => Err(Refusal::TooLarge),
            Err(Unreadable::Empty) if is_preset => Ok(vec![ping(&maker, &request.body)]),
            Err(Unreadable::Empty) => Err(Refusal::Malformed("the body is empty".to_owned())),
            Err(Unreadable::Encoding(name)) if is_preset => {
                Ok(vec![maker.quarantined(&request.body, format!("unknown content encoding {name:?}"))])
            }
            Err(Unreadable::Encoding(name)) => Err(Refusal::Encoding(name)),
            Err(Unreadable::Broken(what)) if is_preset => Ok(vec![maker.quarantined(&request.body, what)]),
            Err(Unreadable::Broken(what)) => Err(Refusal::Malformed(what)),
        }
    }

    /// What one body, or one item of a platform's list, says.
    pub(crate) fn read_item(&self, maker: &Maker<'_>, value: &Value) -> Result<Vec<Part>, Refusal> {
        // A body of nothing but foreign items came to the wrong door.
        let mut foreign = items(value).map(|item| self.check_origin(item)).peekable();
        if foreign.peek().is_some() && foreign.all(|checked| checked.is_err()) {
            let first = items(value).find_map(|item| self.check_origin(item).err());
            return Err(Refusal::Origin(first.unwrap_or_default()));
        }
        match self.provider {
            Provider::Generic => generic::inbound::read(maker, value),
            Provider::Evolution => evolution::inbound::read(maker, value),
            Provider::Hotmart => Ok(hotmart::inbound::read(maker, value)),
            Provider::WhatsappCloud => whatsapp_cloud::inbound::read(maker, value),
        }
    }

    /// Whether an item says that it comes from where this source expects it. What it says instead stands in no text.
    pub(crate) fn check_origin(&self, item: &Value) -> Result<(), String> {
        let said = |path: &Path| path.path.query(item).all().into_iter().next().and_then(plain_id);
        match self.origin.iter().find(|(path, expected)| said(path).as_ref() != Some(expected)) {
            Some((path, _)) => Err(format!("{} is not what the source's origin says", path.text)),
            None => Ok(()),
        }
    }

    fn read_value(&self, maker: &Maker<'_>, value: &Value, request: &Request) -> Result<Vec<Part>, Refusal> {
        let parts = self.read_item(maker, value)?;
        if parts.len() <= PARTS_MAX {
            return Ok(parts);
        }
        let what = format!("more than {PARTS_MAX} events in one body");
        match self.provider {
            Provider::Generic => Err(Refusal::Malformed(what)),
            _ => Ok(vec![maker.quarantined(&request.body, what)]),
        }
    }
}

/// What platforms send when a hook is saved: recorded as a sign of life.
fn ping(maker: &Maker<'_>, body: &[u8]) -> Part {
    maker.by_digest("ping", body_digest(body)).ignored("ping")
}

/// The events of a body: the items of a list, or the body itself.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_else(|| std::slice::from_ref(value));
    // One more than is allowed shows that there are too many, without making all of them.
    list.iter().take(PARTS_MAX + 1)
}
