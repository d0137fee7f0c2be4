//! How adapters make parts: keys, digests, bounds. What every provider must do alike stands here.

use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind, OrderRef};
use retoma_core::identity::{Identity, PhoneInput, PhoneReading, read_phone};
use retoma_core::keys::{Key16, body_digest, digest16};
use retoma_core::origin_time::read_time;
use serde_json::Value;

use super::{Part, PartEntry, PartReceipt, Source, json};

/// Parts of one request. WhatsApp history and batch senders stay far below; a body of a million `{}` does not.
pub(crate) const PARTS_MAX: usize = 1000;
/// A message's text in the searchable copy; the raw bytes are kept beside it.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// A template value.
const VAR_BYTES_MAX: usize = 8 << 10;
/// One word of a key as shown to people. The key itself covers all of it.
const WORD_CHARS_MAX: usize = 120;

/// Makes the parts of one request.
pub(crate) struct Maker<'a> {
    /// The door.
    pub(crate) source: &'a Source,
    /// When the request came.
    pub(crate) received_at: Timestamp,
    /// The id that the request's envelope gives to the delivery, for bodies that have none (Standard Webhooks).
    pub(crate) envelope_id: Option<String>,
}

impl Maker<'_> {
    /// A part that is to be decided, keyed by `words`, happening now unless told otherwise.
    pub(crate) fn part(&self, kind: EventKind, words: &[&str], digest: Key16) -> Part {
        let mut parts: Vec<&[u8]> = vec![self.source.tenant.as_str().as_bytes(), self.source.name.as_str().as_bytes()];
        parts.extend(words.iter().map(|word| word.as_bytes()));
        Part {
            kind,
            key: words.iter().map(|word| shown(word)).collect::<Vec<_>>().join("/"),
            delivery_key: digest16("delivery", &parts),
            business_key: None,
            digest,
            entry: PartEntry::Received,
            identities: Vec::new(),
            occurred_at: self.received_at,
            data: EventData {
                flow: self.source.flow.clone(),
                channel: self.source.channel.clone(),
                ..EventData::default()
            },
            receipt: None,
        }
    }

    /// A part that nobody understood, keyed by its own bytes. `reason` holds no content.
    pub(crate) fn quarantined(&self, bytes: &[u8], reason: impl Into<String>) -> Part {
        self.by_digest("quarantine", body_digest(bytes)).entering(PartEntry::Quarantined(reason.into()))
    }

    /// A part without an id of its own: repetitions of the same content are one.
    pub(crate) fn by_digest(&self, word: &str, digest: Key16) -> Part {
        self.part(EventKind::Unknown, &[word, &format!("{digest:?}")], digest)
    }

    /// The key of a fact that platforms repeat under several ids (A5).
    pub(crate) fn business_key(&self, order: &OrderRef, kind: EventKind, cycle: &str) -> Option<Key16> {
        // Parts of one sum may be given back one after the other, each a fact of its own (FC-39).
        let is_one_fact = kind.payment_rank().is_some() && kind != EventKind::PaymentPartiallyRefunded
            || kind == EventKind::SubscriptionLate;
        is_one_fact.then(|| {
            let words = [
                self.source.tenant.as_str(),
                &order.platform,
                &order.account,
                &order.transaction,
                kind.as_str(),
                cycle,
            ];
            digest16("business", &words.map(str::as_bytes))
        })
    }

    /// The key of an abandoned cart, which has no transaction: who, what, and the day.
    pub(crate) fn cart_key(&self, platform: &str, part: &Part, offer_code: &str) -> Option<Key16> {
        // E-mail first: of two copies of one cart, only one may carry the phone.
        let strength = |identity: &&Identity| match identity.kind {
            retoma_core::identity::IdentityKind::Email => 0,
            retoma_core::identity::IdentityKind::Phone => 1,
            _ => 2,
        };
        let who = part.identities.iter().min_by_key(strength)?;
        let day = part.occurred_at.as_second().div_euclid(86_400).to_string();
        let words = [
            self.source.tenant.as_str(),
            platform,
            &self.source.account,
            &who.match_key,
            part.data.offer.as_deref().unwrap_or_default(),
            offer_code,
            part.kind.as_str(),
            &day,
        ];
        Some(digest16("business", &words.map(str::as_bytes)))
    }

    /// An order of this source's account.
    pub(crate) fn order(&self, platform: &str, transaction: &str) -> OrderRef {
        OrderRef {
            platform: platform.to_owned(),
            account: self.source.account.clone(),
            transaction: json::clean(transaction),
        }
    }
}

impl Part {
    /// The part, entering in that way.
    pub(crate) fn entering(mut self, entry: PartEntry) -> Self {
        self.entry = entry;
        self
    }

    /// The part, recorded with a reason and not decided.
    pub(crate) fn ignored(self, reason: &'static str) -> Self {
        self.entering(PartEntry::Ignored(reason))
    }

    /// Sets when it happened.
    pub(crate) fn set_time(&mut self, value: &Value, received_at: Timestamp) {
        let (at, flag) = read_time(value, received_at);
        self.occurred_at = at;
        self.flag(flag);
    }

    /// Sets a message's text.
    pub(crate) fn set_text(&mut self, text: &str) {
        let kept = cut(text, TEXT_BYTES_MAX);
        self.flag((kept.len() < text.len()).then_some("text_cut"));
        self.flag(text.contains('\0').then_some("nul_replaced"));
        self.data.text = Some(json::clean(kept));
    }

    /// Sets a template value; blank ones stay unset, so that a missing value is missing.
    pub(crate) fn set_var(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            self.data.vars.insert(name.to_owned(), json::clean(cut(value.trim(), VAR_BYTES_MAX)));
        }
    }

    /// Adds the names of a person, the first one in front.
    pub(crate) fn set_name(&mut self, name: &str) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        self.set_var("contact.first_name", name.split(' ').next().map(str::to_owned));
        self.set_var("contact.name", Some(name));
    }

    /// Adds an identity, unless that one is there.
    pub(crate) fn add_identity(&mut self, identity: Option<Identity>) {
        if let Some(identity) = identity
            && !self
                .identities
                .iter()
                .any(|known| (known.kind, &known.match_key) == (identity.kind, &identity.match_key))
        {
            self.identities.push(identity);
        }
    }

    /// Adds a phone as somebody typed it. One that cannot be read is flagged and never blocks the event (FC-19).
    pub(crate) fn add_phone(&mut self, input: &PhoneInput) {
        let reading = read_phone(input);
        self.flag(reading.flag());
        match reading {
            PhoneReading::Valid(phone) => self.add_identity(Some(Identity::phone(&phone, false))),
            PhoneReading::Ambiguous { raw, .. } | PhoneReading::Invalid { raw, .. } => {
                self.set_var("contact.phone_raw", Some(raw));
            }
            PhoneReading::Missing => {}
        }
    }

    /// Notes something odd.
    pub(crate) fn flag(&mut self, flag: Option<&str>) {
        if let Some(flag) = flag.filter(|flag| !self.data.flags.iter().any(|known| known == flag)) {
            self.data.flags.push(flag.to_owned());
        }
    }

    /// What it says of a message of ours.
    pub(crate) fn with_receipt(mut self, provider_message_id: &str, status: &str, at: Timestamp) -> Self {
        self.receipt =
            Some(PartReceipt { provider_message_id: provider_message_id.to_owned(), status: status.to_owned(), at });
        self
    }
}

/// The digest of a value in its one canonical spelling (keys sorted, no white space).
pub(crate) fn digest_of(value: &Value) -> Key16 {
    // The same bytes as `to_string`, without its detour over the formatter; writing a `Value` to memory cannot fail.
    let mut text = Vec::with_capacity(2_048);
    let written = serde_json::to_writer(&mut text, value);
    debug_assert!(written.is_ok(), "a value has string keys");
    body_digest(&text)
}

fn shown(word: &str) -> String {
    let word = json::clean(word);
    if word.chars().count() <= WORD_CHARS_MAX {
        word
    } else {
        word.chars().take(WORD_CHARS_MAX).chain(['…']).collect()
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
