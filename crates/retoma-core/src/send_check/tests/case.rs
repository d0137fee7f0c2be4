//! One unpaid PIX and its contact, ready to be changed in one thing at a time.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use uuid::Uuid;

use super::super::*;
use crate::cadence;
use crate::event::{Event, EventData, Operator, OrderRef};
use crate::flow::Revalidate;
use crate::identity::Identity;
use crate::ids::{BucketNo, ContactId, ConversationId, EventId, Tenant};
use crate::receipt::Status;
use crate::state::{Contact, Conversation, PaymentFact, Previous, SendMark};
use crate::task::{Reference, TaskKind, TaskStatus};

pub(super) static VENDAS: LazyLock<Flow> = LazyLock::new(Flow::vendas);

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// One unpaid PIX: made at 11:45 in São Paulo, the first touch due at noon, the contact silent since the day before.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) now: Timestamp,
    pub(super) task: Task,
    pub(super) view: ContactView,
    pub(super) flow: Flow,
    pub(super) channel_stopped: bool,
    pub(super) missing: Option<String>,
    pub(super) perished: bool,
    pub(super) guard: Option<Guard>,
}

pub(super) fn at(local: &str) -> Timestamp {
    format!("{local}-03:00").parse().unwrap()
}

pub(super) fn noon() -> Timestamp {
    at("2026-12-02T12:00:00")
}

pub(super) fn order(transaction: &str) -> OrderRef {
    OrderRef { platform: "hotmart".into(), account: "loja".into(), transaction: transaction.into() }
}

pub(super) fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

impl Case {
    pub(super) fn new() -> Self {
        let flow = VENDAS.clone();
        let now = noon();
        let conversation = cycle(1, "curso", "HP1");
        let running = conversation.cadence.clone().unwrap();
        let touches = flow.cadences["pix_pendente"].touches.iter().zip(&running.touches).zip(1..);
        let tasks: Vec<Task> = touches
            .map(|((touch, running), number)| Task {
                id: running.task.clone(),
                kind: TaskKind::Touch,
                cadence: Some("pix_pendente".into()),
                touch: Some(touch.id.clone()),
                touch_no: Some(number),
                message: touch.send.clone(),
                max_late: Some(touch.max_late),
                scheduled_for: running.due_at,
                ..task("t", MessageClass::Reminder)
            })
            .collect();
        let view = ContactView {
            contact: Contact {
                id: ContactId(id(1)),
                tenant: Tenant::default(),
                bucket: BucketNo(0),
                version: 3,
                opted_out_at: None,
                paused_until: None,
                last_inbound_at: Some(now - 100 * HOUR),
                last_channel: None,
                vars: BTreeMap::new(),
                cycles: 1,
                ping_pong: Default::default(),
            },
            identities: vec![Identity::from_jid("5541999990001@s.whatsapp.net").unwrap()],
            conversations: vec![conversation],
            tasks: tasks.clone(),
            sends: Vec::new(),
            undecided: Vec::new(),
            facts: vec![fact(EventKind::PixCreated, "HP1", now - 15 * MINUTE)],
            echoes: Vec::new(),
        };
        Self {
            now,
            task: tasks[0].clone(),
            view,
            flow,
            channel_stopped: false,
            missing: None,
            perished: false,
            guard: None,
        }
    }

    pub(super) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self::new();
        change(&mut case);
        case
    }

    /// The same contact, with a task of another class that belongs to the cycle and no cadence.
    pub(super) fn of_class(class: MessageClass) -> Self {
        Self::with(|case| case.task = task("m", class))
    }

    pub(super) fn also(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The cadence asks a guard, which says that.
    pub(super) fn guarded(&mut self, says: Option<Guard>) {
        let (max_age, timeout, retry_in) = (MINUTE, Duration::from_secs(3), 5 * MINUTE);
        let cadence = self.flow.cadences.get_mut("pix_pendente").unwrap();
        cadence.revalidate = Some(Revalidate { ask: "loja".into(), max_age, timeout, retry_in });
        // What it said once it goes on saying.
        self.guard = self.guard.filter(|guard| *guard == Guard::Paid).or(says);
    }

    pub(super) fn check(&self) -> Verdict {
        let input = CheckInput {
            guard: self.guard,
            task: &self.task,
            view: &self.view,
            flow: &self.flow,
            channel_stopped: self.channel_stopped,
            receipts_told: true,
            missing: self.missing.clone(),
            perished: self.perished,
        };
        check(&input, self.now)
    }

    /// The verdict in words: `avoid paid`, `defer quiet_hours 8:03`, `hold missing_variable`, `send`.
    pub(super) fn says(&self) -> String {
        match self.check() {
            Verdict::Send => "send".into(),
            Verdict::Avoid(reason) => format!("avoid {reason}"),
            Verdict::Hold(reason, _) => format!("hold {reason}"),
            Verdict::Defer(reason, until) => {
                assert!(until > self.now, "a look in the past would spin");
                format!("defer {reason} {}", until.duration_since(self.now).as_secs())
            }
        }
    }

    pub(super) fn cycle(&mut self) -> &mut Conversation {
        &mut self.view.conversations[0]
    }

    pub(super) fn fact(&mut self, kind: EventKind) {
        self.view.facts.push(fact(kind, "HP1", self.now));
    }

    pub(super) fn undecided(&mut self, kind: EventKind, data: EventData) {
        let n = 100 + self.view.undecided.len() as u128;
        let event = Event {
            id: EventId(id(n)),
            tenant: Tenant::default(),
            bucket: BucketNo(0),
            source: "loja-hotmart".into(),
            kind,
            contact: Some(ContactId(id(1))),
            occurred_at: self.now,
            received_at: self.now,
            urgent: kind.bypasses_debounce(),
            data,
        };
        self.view.undecided.push(event);
    }

    pub(super) fn wrote(&mut self, text: &str) {
        self.undecided(EventKind::MessageReceived, EventData { text: Some(text.into()), ..EventData::default() });
    }

    pub(super) fn sends(&mut self, class: MessageClass, ago: &[Duration]) {
        self.view.sends.extend(ago.iter().rev().map(|ago| SendMark { at: self.now - *ago, class, receipt: None }));
    }

    /// Messages that the provider took so long ago, and what became of each.
    pub(super) fn took(&mut self, receipts: &[(Duration, Status)]) {
        let mark = |(ago, receipt): &(Duration, Status)| SendMark {
            at: self.now - *ago,
            class: MessageClass::Reply,
            receipt: Some(*receipt),
        };
        self.view.sends.extend(receipts.iter().map(mark));
    }
}

pub(super) fn cycle(n: u32, offer: &str, transaction: &str) -> Conversation {
    let conversation = ConversationId(id(n.into()));
    let pix = &VENDAS.cadences["pix_pendente"];
    let key = cadence::key(pix, Some(&order(transaction)), conversation, 1);
    let mut running = cadence::arm("pix_pendente", pix, key, noon() - 15 * MINUTE, None, |_| None);
    // Without jitter, so that the tests can name instants.
    for (touch, declared) in running.touches.iter_mut().zip(&pix.touches) {
        touch.due_at = running.anchor + declared.at;
    }
    running.touches[0].handed = true;
    Conversation {
        id: conversation,
        ordinal: n,
        flow: "vendas".into(),
        flow_version: 1,
        offer: Some(offer.into()),
        state: "AGUARDANDO_PIX".into(),
        version: 2,
        closed: false,
        deadline_at: None,
        cadence: Some(running),
        order: Some(order(transaction)),
        paid_orders: Vec::new(),
        previous: Previous::default(),
        vars: BTreeMap::new(),
        opened_at: noon() - 48 * HOUR,
        updated_at: noon() - 15 * MINUTE,
    }
}

pub(super) fn task(name: &str, class: MessageClass) -> Task {
    Task {
        id: name.into(),
        tenant: Tenant::default(),
        bucket: BucketNo(0),
        contact: ContactId(id(1)),
        conversation: Some(ConversationId(id(1))),
        flow: "vendas".into(),
        kind: TaskKind::Message,
        cadence: None,
        touch: None,
        touch_no: None,
        message: "mensagem".into(),
        text: None,
        class,
        channel: "zap".into(),
        reference: Reference { order: Some(order("HP1")), ..Reference::default() },
        scheduled_for: noon(),
        next_attempt_at: noon(),
        handed: true,
        max_late: None,
        on_ambiguous: None,
        cancel_on: Vec::new(),
        status: TaskStatus::Scheduled,
        reason: None,
        avoided: false,
        attempts: 0,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        local_time: None,
        created_at: noon() - 15 * MINUTE,
        updated_at: noon() - 15 * MINUTE,
    }
}

pub(super) fn fact(kind: EventKind, transaction: &str, occurred_at: Timestamp) -> PaymentFact {
    PaymentFact { order: order(transaction), kind, occurred_at }
}

pub(super) fn about(transaction: Option<&str>, offer: Option<&str>) -> EventData {
    EventData { order: transaction.map(order), offer: offer.map(Into::into), ..EventData::default() }
}

pub(super) fn commanded(until: Option<Timestamp>) -> EventData {
    let operator = Operator { actor: "ana".into(), until, conversation: None, to: None, with: None, reason: None };
    EventData { operator: Some(operator), ..EventData::default() }
}
