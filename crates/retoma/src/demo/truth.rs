//! What really happened to each buyer, as seen from outside: the generator's truth, with the instants at which the program
//! acknowledged it. An answer is younger than its commit, so whatever starts after the answer started after the commit.

use std::collections::BTreeMap;

use jiff::Timestamp;
use retoma_core::identity::Identity;
use retoma_core::ids::EventId;
use retoma_providers::generate::{Buyer, Hook, Schedule, Story};
use serde_json::Value;

use super::player::Played;

/// A buyer.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) phone: String,
    /// The match key of the phone.
    pub(super) match_key: String,
    pub(super) story: Story,
    pub(super) paid: Option<Paid>,
    pub(super) silence: Option<Silence>,
}

/// A payment that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Paid {
    pub(super) transaction: String,
    pub(super) at: Timestamp,
}

/// From the acknowledgement of the wish until the first byte of its withdrawal.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    pub(super) from: Timestamp,
    pub(super) until: Option<Timestamp>,
}

/// The truth about everybody.
pub(super) fn of(schedule: &Schedule, played: &Played) -> Vec<Person> {
    let told = Told::of(schedule, played);
    schedule.buyers.iter().map(|buyer| told.person(buyer)).collect()
}

/// When each thing was first said and first acknowledged.
struct Told {
    /// Payments by transaction, whatever id they came under.
    payments: BTreeMap<String, Timestamp>,
    /// Messages by (chat, offset in the schedule), copies included.
    messages: BTreeMap<(String, std::time::Duration), Span>,
}

/// The earliest post and the earliest acknowledgement.
#[derive(Clone, Copy)]
struct Span {
    posted_at: Timestamp,
    acknowledged_at: Timestamp,
}

impl Told {
    fn of(schedule: &Schedule, played: &Played) -> Self {
        let mut payments = BTreeMap::new();
        let mut by_event: BTreeMap<EventId, Span> = BTreeMap::new();
        for one in &played.acknowledged {
            let span = by_event.entry(one.event).or_insert(Span { posted_at: one.posted_at, acknowledged_at: one.at });
            span.posted_at = span.posted_at.min(one.posted_at);
            span.acknowledged_at = span.acknowledged_at.min(one.at);
            let hook = &schedule.hooks[one.hook];
            if let Some(transaction) = payment_of(hook) {
                let at = payments.entry(transaction).or_insert(one.at);
                *at = one.at.min(*at);
            }
        }
        let mut messages = BTreeMap::new();
        for one in &played.acknowledged {
            let hook = &schedule.hooks[one.hook];
            for chat in chats_of(&hook.body) {
                messages.insert((chat, hook.after), by_event[&one.event]);
            }
        }
        Self { payments, messages }
    }

    fn person(&self, buyer: &Buyer) -> Person {
        let paid = buyer.paid_transaction.as_ref().and_then(|transaction| {
            Some(Paid { transaction: transaction.clone(), at: *self.payments.get(transaction)? })
        });
        let said = |after: Option<std::time::Duration>| self.messages.get(&(buyer.jid.clone(), after?)).copied();
        let silence = said(buyer.opted_out_at).map(|out| Silence {
            from: out.acknowledged_at,
            until: said(buyer.opted_in_at).map(|back| back.posted_at),
        });
        let identity = Identity::from_jid(&buyer.jid).expect("the generator's buyers have phones");
        Person { phone: buyer.phone.clone(), match_key: identity.match_key, story: buyer.story, paid, silence }
    }
}

fn payment_of(hook: &Hook) -> Option<String> {
    let is_payment = hook.body["event"] == "PURCHASE_APPROVED";
    is_payment.then(|| hook.body["data"]["purchase"]["transaction"].as_str().map(str::to_owned)).flatten()
}

/// The one-to-one chats that a message may be known by.
fn chats_of(body: &Value) -> Vec<String> {
    let key = &body["data"]["key"];
    let ids = [&key["remoteJid"], &key["remoteJidAlt"]];
    ids.into_iter().filter_map(Value::as_str).filter(|id| id.ends_with("@s.whatsapp.net")).map(str::to_owned).collect()
}
