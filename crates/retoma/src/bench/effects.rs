//! What a paid sale leads to, made without deciding anything: the decision, the start, the request and the end of its one
//! message. For the null pipeline and the bare database.
//!
//! The first sale is decided by the real core once, on the shipped flow; every other sale's decision differs from it in
//! what identifies a sale.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::{CloseScope, Decision};
use retoma_core::event::Event;
use retoma_core::evidence::text_key;
use retoma_core::flow::{self, Flow};
use retoma_core::ids::{BucketNo, ChannelName, ContactId, ConversationId, EventId, TaskId, Tenant};
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::state::{Contact, ContactView};
use retoma_engine::NewId;
use retoma_providers::outbound::WireRequest;
use retoma_store::{DecisionCommit, Entry, Finish, Start, Subject};

use super::rows::Rows;
use super::sale::Sale;

/// The channel that messages leave through.
pub(super) const CHANNEL: &str = "saida";

/// The shipped flow.
pub(super) fn vendas() -> anyhow::Result<Flow> {
    let (flow, findings) = flow::load(flow::VENDAS, "vendas.yaml");
    flow.with_context(|| format!("the shipped flow does not load: {findings:?}"))
}

/// Makes decisions, starts and ends.
pub(super) struct Effects {
    pattern: Decision,
    first: Sale,
    url: String,
}

/// A message under way.
pub(super) struct Message {
    pub(super) contact: ContactId,
    pub(super) task: TaskId,
}

impl Effects {
    /// Decides the pattern. Messages go to `url`.
    pub(super) fn new(rows: &Rows, url: &str, ids: &NewId, now: Timestamp) -> anyhow::Result<Self> {
        let first = Sale(0);
        let flow = vendas()?;
        let (view, event) = first_of(rows, first, ids, now)?;
        let setup = Setup { default_channel: ChannelName::new(CHANNEL) };
        let pattern = decide(&flow, &view, &[event], &setup, now);
        let shape = (pattern.conversations.len(), pattern.transitions.len(), pattern.new_tasks.len());
        ensure!(shape == (1, 1, 1), "a payment is one conversation, one transition and one task, not {shape:?}");
        ensure!(pattern.new_tasks[0].id.as_str().contains(&first.transaction()), "a task's id names its transaction");
        Ok(Self { pattern, first, url: url.to_owned() })
    }

    /// The decision of a sale that was just stored.
    pub(super) fn decision(
        &self,
        rows: &Rows,
        sale: Sale,
        event: EventId,
        contact: ContactId,
        now: Timestamp,
    ) -> (DecisionCommit, Message) {
        let mut decision = self.pattern.clone();
        let tenant = Tenant::default();
        let bucket = BucketNo::of_contact(&tenant, contact);
        let conversation = ConversationId::derive(contact, 1);
        let order = rows.order(sale);
        decision.events[0].event = event;
        if let Some(row) = &mut decision.contact {
            (row.id, row.bucket) = (contact, bucket);
        }
        let cycle = &mut decision.conversations[0];
        (cycle.id, cycle.opened_at, cycle.updated_at) = (conversation, now, now);
        cycle.paid_orders = order.iter().cloned().collect();
        cycle.order.clone_from(&order);
        let row = &mut decision.transitions[0];
        (row.contact, row.conversation, row.event_id, row.at) = (contact, conversation, event, now);
        for close in &mut decision.close {
            if let CloseScope::Conversation(id) = &mut close.scope {
                *id = conversation;
            }
        }
        let task = &mut decision.new_tasks[0];
        task.id = TaskId::from(task.id.as_str().replace(&self.first.transaction(), &sale.transaction()));
        (task.contact, task.bucket, task.conversation) = (contact, bucket, Some(conversation));
        task.reference.order = order;
        (task.scheduled_for, task.next_attempt_at, task.created_at, task.updated_at) = (now, now, now, now);
        let message = Message { contact, task: task.id.clone() };
        (DecisionCommit { tenant, bucket, expected_version: 0, decision, now }, message)
    }

    /// The start of its message.
    pub(super) fn start(&self, message: &Message) -> Start {
        let tenant = Tenant::default();
        Start {
            bucket: BucketNo::of_contact(&tenant, message.contact),
            tenant,
            task: message.task.clone(),
            contact: message.contact,
            attempts: 0,
            contact_version: 1,
            block_on_chat: false,
            block_on_paid: false,
            said: Some(text_key(message.task.as_str())),
        }
    }

    /// The request of its message: about as large as the real one, and unsigned.
    pub(super) fn request(&self, message: &Message) -> WireRequest {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(id) = HeaderValue::from_str(message.task.as_str()) {
            headers.insert("webhook-id", id);
        }
        WireRequest { url: self.url.clone(), headers, body: Bytes::from_static(&[b' '; 640]) }
    }

    /// The end of its message: accepted.
    pub(super) fn finish(&self, message: Message, attempt: u32, now: Timestamp) -> Finish {
        Finish {
            tenant: Tenant::default(),
            task: message.task,
            attempt,
            ended_at: now,
            end: AttemptEnd {
                outcome: Outcome::Accepted,
                http_status: Some(200),
                error: None,
                response: None,
                provider_message_id: None,
                retry_after: None,
            },
            next: NextStep::Sent,
            resend: false,
            evidence: None,
        }
    }
}

/// The first sale as the owner of its bucket sees it.
fn first_of(rows: &Rows, sale: Sale, ids: &NewId, now: Timestamp) -> anyhow::Result<(ContactView, Event)> {
    let stored = rows.intake(sale, None, ids, now).events.remove(0);
    ensure!(stored.entry == Entry::Received, "a sale is decided");
    let Subject::Person { candidate, identities } = stored.subject else {
        anyhow::bail!("a sale is about a person");
    };
    let bucket = BucketNo::of_contact(&stored.tenant, candidate);
    let event = Event {
        id: stored.id,
        tenant: stored.tenant.clone(),
        bucket,
        source: stored.source,
        kind: stored.kind,
        contact: Some(candidate),
        occurred_at: stored.occurred_at,
        received_at: stored.received_at,
        urgent: stored.urgent,
        data: stored.data,
    };
    let contact = Contact {
        id: candidate,
        tenant: stored.tenant,
        bucket,
        version: 0,
        opted_out_at: None,
        paused_until: None,
        last_inbound_at: None,
        last_channel: None,
        vars: std::collections::BTreeMap::new(),
        cycles: 0,
        ping_pong: Default::default(),
    };
    let view = ContactView {
        contact,
        identities,
        conversations: Vec::new(),
        tasks: Vec::new(),
        sends: Vec::new(),
        undecided: vec![event.clone()],
        facts: Vec::new(),
        echoes: Vec::new(),
    };
    Ok((view, event))
}

#[cfg(test)]
mod tests {
    use super::super::sale::Happening;
    use super::*;

    #[test]
    fn a_decision_made_from_a_number_is_the_one_that_the_core_takes() {
        let now = Timestamp::from_second(1_790_000_000).unwrap();
        let ids = NewId::new();
        let rows = Rows::new(Happening::Approved, now).unwrap();
        let effects = Effects::new(&rows, "http://127.0.0.1:1/", &ids, now).unwrap();
        let (view, event) = first_of(&rows, Sale(41), &ids, now).unwrap();
        let setup = Setup { default_channel: ChannelName::new(CHANNEL) };
        let taken = decide(&vendas().unwrap(), &view, std::slice::from_ref(&event), &setup, now);
        let (made, message) = effects.decision(&rows, Sale(41), event.id, view.contact.id, now);
        let mut made = made.decision;
        // The one value that differs and that nothing is looked up by.
        made.conversations[0].vars.clone_from(&taken.conversations[0].vars);
        assert_eq!(made, taken);
        assert_eq!(message.task, taken.new_tasks[0].id);
    }
}
