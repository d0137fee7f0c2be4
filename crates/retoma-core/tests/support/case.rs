//! One invented contact, decided event by event and folded with `Decision::apply`: what a store would hold. Time moves only
//! when a test says so.

// Each test binary uses its own part of this.
#![allow(dead_code, reason = "shared by several test binaries")]

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::{Decision, Transition};
use retoma_core::event::{Deadline, Event, EventData, EventKind, Operator, OrderRef};
use retoma_core::flow::Flow;
use retoma_core::ids::{BucketNo, ContactId, EventId, TaskId, Tenant};
use retoma_core::state::{Contact, ContactView, Conversation, PaymentFact};
use retoma_core::task::{Task, TaskStatus};
use uuid::Uuid;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A contact under test.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) flow: Flow,
    pub(crate) view: ContactView,
    pub(crate) now: Timestamp,
    pub(crate) log: Vec<Transition>,
    /// Every task ever promised, as it stands: the view keeps only what a store would load.
    pub(crate) claimed: Vec<TaskId>,
    events: u128,
}

/// The invented order of that number.
pub(crate) fn order(transaction: &str) -> OrderRef {
    OrderRef { platform: "hotmart".to_owned(), account: "loja".to_owned(), transaction: transaction.to_owned() }
}

/// An empty contact.
pub(crate) fn contact() -> Contact {
    Contact {
        id: ContactId(Uuid::from_u128(0x5541999990001)),
        tenant: Tenant::default(),
        bucket: BucketNo(1),
        version: 0,
        opted_out_at: None,
        paused_until: None,
        last_inbound_at: None,
        last_channel: None,
        vars: std::collections::BTreeMap::new(),
        cycles: 0,
        ping_pong: Default::default(),
    }
}

impl Case {
    pub(crate) fn vendas() -> Self {
        static VENDAS: OnceLock<Flow> = OnceLock::new();
        Self::of(VENDAS.get_or_init(Flow::vendas).clone())
    }

    pub(crate) fn of(flow: Flow) -> Self {
        let (identities, conversations, tasks) = (Vec::new(), Vec::new(), Vec::new());
        let (sends, undecided, facts) = (Vec::new(), Vec::new(), Vec::new());
        let view = ContactView {
            contact: contact(),
            identities,
            conversations,
            tasks,
            sends,
            undecided,
            facts,
            echoes: Vec::new(),
        };
        let now = "2026-12-02T15:00:00Z".parse().expect("an instant");
        Self { flow, view, now, log: Vec::new(), claimed: Vec::new(), events: 0 }
    }

    pub(crate) fn wait(&mut self, by: Duration) -> &mut Self {
        self.now += by;
        self
    }

    /// An event of this contact, now.
    pub(crate) fn event(&mut self, kind: EventKind, data: EventData) -> Event {
        self.events += 1;
        Event {
            id: EventId(Uuid::from_u128(self.events)),
            tenant: Tenant::default(),
            bucket: BucketNo(1),
            source: "teste".into(),
            kind,
            contact: Some(self.view.contact.id),
            occurred_at: self.now,
            received_at: self.now,
            urgent: kind.bypasses_debounce(),
            data,
        }
    }

    /// Decides events and folds the decision, as intake and the owner would: payment facts are on record first.
    pub(crate) fn decide(&mut self, events: &[Event]) -> Decision {
        for event in events {
            self.record(event);
        }
        let setup = Setup { default_channel: "zap".into() };
        let mut decision = decide(&self.flow, &self.view, events, &setup, self.now);
        decision.new_tasks.retain(|task| !self.claimed.contains(&task.id));
        self.claimed.extend(decision.new_tasks.iter().map(|task| task.id.clone()));
        decision.apply(&mut self.view, self.now);
        self.log.extend(decision.transitions.iter().cloned());
        decision
    }

    /// Puts a payment fact on record, as intake does before anything is decided.
    pub(crate) fn record(&mut self, event: &Event) {
        if let (Some(order), Some(_)) = (&event.data.order, event.kind.payment_rank()) {
            let (order, kind, occurred_at) = (order.clone(), event.kind, event.occurred_at);
            let fact = PaymentFact { order, kind, occurred_at };
            if !self.view.facts.contains(&fact) {
                self.view.facts.push(fact);
            }
        }
    }

    /// The contact writes.
    pub(crate) fn say(&mut self, text: &str) -> Decision {
        self.burst(&[text])
    }

    /// The contact writes several messages in one go.
    pub(crate) fn burst(&mut self, texts: &[&str]) -> Decision {
        let data = |text: &str| EventData { text: Some(text.to_owned()), ..EventData::default() };
        let events: Vec<Event> = texts.iter().map(|text| self.event(EventKind::MessageReceived, data(text))).collect();
        self.decide(&events)
    }

    /// A platform tells a fact of an order and an offer; empty texts stand for none.
    pub(crate) fn fact(&mut self, kind: EventKind, transaction: &str, offer: &str) -> Decision {
        let event = self.fact_event(kind, transaction, offer);
        self.decide(&[event])
    }

    pub(crate) fn fact_event(&mut self, kind: EventKind, transaction: &str, offer: &str) -> Event {
        let order = (!transaction.is_empty()).then(|| order(transaction));
        let offer = (!offer.is_empty()).then(|| offer.to_owned());
        self.event(kind, EventData { order, offer, ..EventData::default() })
    }

    /// An operator's command.
    pub(crate) fn operator(&mut self, kind: EventKind, operator: Operator) -> Decision {
        let event = self.event(kind, EventData { operator: Some(operator), ..EventData::default() });
        self.decide(&[event])
    }

    /// Time moves to the earliest deadline, and its timeout is decided.
    pub(crate) fn ring(&mut self) -> Decision {
        let event = self.next_timeout().expect("a deadline is set");
        self.now = self.now.max(event.occurred_at);
        self.decide(&[event])
    }

    pub(crate) fn next_timeout(&mut self) -> Option<Event> {
        let next = self.view.conversations.iter().filter_map(|cycle| Some((cycle.deadline_at?, cycle.id))).min()?;
        let (at, conversation) = next;
        let event = self.event(
            EventKind::ClockTimeout,
            EventData { deadline: Some(Deadline { conversation, at }), ..EventData::default() },
        );
        Some(Event { occurred_at: at, ..event })
    }

    /// Everything that was handed to delivery is accepted now.
    pub(crate) fn deliver(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        for task in self.view.tasks.iter_mut().filter(|task| task.handed && task.status.is_waiting()) {
            task.status = TaskStatus::Sent;
            task.updated_at = self.now;
            sent.push(task.message.clone());
        }
        sent
    }

    pub(crate) fn cycle(&self) -> &Conversation {
        self.view.conversations.last().expect("a cycle is open")
    }

    pub(crate) fn state(&self) -> &str {
        &self.cycle().state
    }

    pub(crate) fn waiting(&self) -> Vec<&Task> {
        self.view.tasks.iter().filter(|task| task.status.is_waiting()).collect()
    }

    pub(crate) fn task(&self, id: &TaskId) -> &Task {
        self.view.tasks.iter().find(|task| task.id == *id).expect("the task was promised")
    }

    /// Tasks that a decision let go at once: new ones handed over, and touches handed.
    pub(crate) fn let_go(&self, decision: &Decision) -> Vec<String> {
        let new = decision.new_tasks.iter().filter(|task| task.handed).map(|task| task.message.clone());
        new.chain(decision.handed.iter().map(|id| self.task(id).message.clone())).collect()
    }

    /// Walks to a state of `vendas` as a customer would.
    pub(crate) fn walk_to(&mut self, state: &str) -> &mut Self {
        const OFFER: &str = "curso";
        match state {
            "NOVO" => {}
            "ENGAJADO" => drop(self.say("oi")),
            "NEGOCIANDO" => drop(self.walk_to("ENGAJADO").say("quanto custa?")),
            "CHECKOUT_ENVIADO" => drop(self.walk_to("NEGOCIANDO").say("quero comprar")),
            "AGUARDANDO_PIX" => drop(self.fact(EventKind::PixCreated, "HP1", OFFER)),
            "RECUPERANDO" => drop(self.walk_to("AGUARDANDO_PIX").ring()),
            "PERDIDO" => {
                self.walk_to("RECUPERANDO");
                while self.state() != "PERDIDO" {
                    self.deliver();
                    self.ring();
                }
            }
            "PAGO" => drop(self.walk_to("AGUARDANDO_PIX").fact(EventKind::PaymentApproved, "HP1", OFFER)),
            "OPT_OUT" => drop(self.walk_to("ENGAJADO").say("SAIR")),
            other => panic!("no way to {other} is known"),
        }
        if state != "NOVO" {
            assert_eq!(self.state(), state);
        }
        self.deliver();
        self
    }
}
