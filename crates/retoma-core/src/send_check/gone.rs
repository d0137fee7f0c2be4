//! What took a task's reason away: opt-out, the end of its cycle, money that came or went, another cadence.
//!
//! Two kinds of evidence are read alike: payment *facts*, which intake records for whichever contact (DESIGN.md, "Intake
//! transaction"), and *undecided* events of this contact, whose decision may close the task a moment later.

use jiff::Timestamp;

use super::{CheckInput, Reason};
use crate::cadence;
use crate::event::{Event, EventKind, OrderRef};
use crate::flow::{Cadence, Flow};
use crate::state::{ContactView, Conversation};
use crate::task::{MessageClass, Task};

const PAID: u8 = EventKind::PAID_RANK;

/// A task with what belongs to it.
pub(super) struct Known<'a> {
    pub(super) task: &'a Task,
    pub(super) view: &'a ContactView,
    pub(super) flow: &'a Flow,
    /// Its cycle, if it is open.
    conversation: Option<&'a Conversation>,
    /// Its cadence, as the flow declares it.
    pub(super) cadence: Option<&'a Cadence>,
    /// The order it is about; without one of its own, its cycle's.
    order: Option<&'a OrderRef>,
}

impl<'a> Known<'a> {
    pub(super) fn about(input: &CheckInput<'a>) -> Self {
        let CheckInput { task, view, flow, .. } = *input;
        let conversation = task.conversation.and_then(|id| view.conversation(id)).filter(|cycle| !cycle.closed);
        let cadence = task.cadence.as_ref().and_then(|name| flow.cadences.get(name));
        let order = task.reference.order.as_ref().or_else(|| conversation.and_then(|cycle| cycle.order.as_ref()));
        Self { task, view, flow, conversation, cadence, order }
    }

    /// Opted out, or asking for it in a message or command that is not decided yet. The rules of the flow read every raw
    /// message, whether or not it was marked urgent when it came in.
    pub(super) fn is_opted_out(&self) -> bool {
        let asks = |event: &Event| match event.kind {
            EventKind::OperatorOptOut => true,
            EventKind::MessageReceived => {
                event.data.text.as_deref().is_some_and(|text| self.flow.classifier.is_opt_out(text))
            }
            _ => false,
        };
        self.view.contact.opted_out_at.is_some() || self.view.undecided.iter().any(asks)
    }

    /// The task belongs to a cycle that is not open any more.
    pub(super) fn is_cycle_closed(&self) -> bool {
        self.task.conversation.is_some() && self.conversation.is_none()
    }

    /// Paid: its order is (by a fact of rank 30 or more, or because it was delivered in this cycle), or its cycle is, by an
    /// order of another transaction, which ended the cadence. Money that went back altogether is not paid but refunded; part
    /// of it, or a request for it, leaves it paid.
    pub(super) fn is_paid(&self) -> bool {
        let is_delivered = self.conversation.is_some_and(|cycle| {
            self.order.is_some_and(|order| cycle.paid_orders.contains(order))
                || (self.task.cadence.is_some() && cycle.cadence.is_none() && !cycle.paid_orders.is_empty())
        });
        let is_payment = |kind: EventKind| kind.payment_rank().is_some_and(|rank| rank >= PAID);
        (is_delivered || self.said().any(|(kind, _)| is_payment(kind))) && !self.is_refunded()
    }

    /// All the money went back.
    ///
    /// A reply that was promised after that knew of it: whoever got a refund and writes again is still answered. So only
    /// news count for replies.
    pub(super) fn is_refunded(&self) -> bool {
        self.said().any(|(kind, at)| {
            matches!(kind, EventKind::PaymentRefunded | EventKind::PaymentChargeback) && self.is_news(at)
        })
    }

    /// The charge that the task is about was cancelled.
    ///
    /// Only by an event of that very order: a PIX that ran out says nothing about the one that replaced it. For a touch, only
    /// by what its cadence names in `cancel_on` (the shipped flow names `payment.cancelled`, not `payment.expired`: the touches
    /// after 4 and 20 hours outlive most codes), and only if that order armed the cadence. A refused card is no
    /// cancellation, since it is what arms `cartao_recusado`. Whatever the rank 20 facts say, an order with a higher one was
    /// not cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        let undecided = self.view.undecided.iter().any(|event| {
            let is_own_charge =
                !event.kind.ends_one_charge() || event.data.order.as_ref().is_none_or(|order| self.is_armed_by(order));
            self.cancels(event.kind) && is_own_charge && self.concerns(event)
        });
        let Some(order) = self.task.reference.order.as_ref().filter(|order| self.is_armed_by(order)) else {
            return undecided;
        };
        let facts = || self.view.facts.iter().filter(|fact| fact.order == *order);
        let is_higher = facts().any(|fact| fact.kind.payment_rank().is_some_and(|rank| rank >= PAID));
        let recorded = facts()
            .any(|fact| fact.kind.ends_one_charge() && self.cancels(fact.kind) && self.is_news(fact.occurred_at));
        undecided || (recorded && !is_higher)
    }

    /// What the task itself names in `cancel_on` came in, or it was cancelled while it was under way.
    pub(super) fn taken_back(&self) -> Option<Reason> {
        let asked = self.view.undecided.iter().find(|event| self.task.cancel_on.contains(&event.kind));
        self.task.cancel_reason.or_else(|| asked.map(|event| Reason::closing(event.kind)))
    }

    /// A touch whose cadence does not run any more, was armed anew, or does not live in the present state.
    pub(super) fn is_superseded(&self) -> bool {
        let (Some(_), Some(cycle)) = (&self.task.cadence, self.conversation) else { return false };
        let is_running = cycle
            .cadence
            .as_ref()
            .is_some_and(|running| running.touches.iter().any(|touch| touch.task == self.task.id));
        let has_left = self.cadence.is_some_and(|cadence| !cadence::runs_in(cadence, &cycle.state));
        !is_running || has_left
    }

    /// What is said of the money: facts of the order, and undecided events that concern the task.
    fn said(&self) -> impl Iterator<Item = (EventKind, Timestamp)> {
        let facts = self.view.facts.iter().filter(|fact| Some(&fact.order) == self.order);
        let facts = facts.map(|fact| (fact.kind, fact.occurred_at));
        let undecided = self.view.undecided.iter().filter(|event| event.kind.payment_rank().is_some());
        // To an undecided event nobody has reacted yet, whatever its origin says of the time.
        let undecided = undecided.filter(|event| self.concerns(event)).map(|event| (event.kind, Timestamp::MAX));
        facts.chain(undecided)
    }

    /// Whether something of that time can matter to the task.
    fn is_news(&self, at: Timestamp) -> bool {
        self.task.class != MessageClass::Reply || at > self.task.created_at
    }

    /// Whether an undecided event is about what the task is about: the same order; else the same offer, since the paid sale
    /// often has another transaction than the one waited for (D2); else, where the event names neither in a way that
    /// points at another cycle, it may well be, and a reminder to somebody who paid is the worse mistake.
    fn concerns(&self, event: &Event) -> bool {
        let (order, offer) = (event.data.order.as_ref(), event.data.offer.as_ref());
        let Some(cycle) = self.conversation else {
            return order.is_some() && order == self.order;
        };
        if self.task.class == MessageClass::Receipt && order.is_some() && self.order.is_some() {
            // What was bought is delivered order by order: another one's refund does not touch it.
            return order == self.order;
        }
        let names = |cycle: &Conversation| {
            order.is_some_and(|order| cycle.order.as_ref() == Some(order) || cycle.paid_orders.contains(order))
        };
        if (order.is_some() && order == self.order) || names(cycle) {
            return true;
        }
        let others = || self.view.conversations.iter().filter(|other| other.id != cycle.id);
        match (offer, &cycle.offer) {
            (Some(offer), Some(own)) => offer == own,
            _ => !others().any(|other| names(other) || (offer.is_some() && other.offer.as_ref() == offer)),
        }
    }

    fn cancels(&self, kind: EventKind) -> bool {
        match self.cadence {
            Some(cadence) => cadence.cancel_on.contains(&kind),
            None => kind == EventKind::PaymentCancelled,
        }
    }

    /// Whether the task stands for this order: a touch, if its cadence was armed by it; another task, if it names it.
    fn is_armed_by(&self, order: &OrderRef) -> bool {
        let running = self.conversation.and_then(|cycle| Some((cycle.id, cycle.cadence.as_ref()?)));
        match (self.cadence, running) {
            (Some(declared), Some((id, running))) => cadence::key(declared, Some(order), id, 0) == running.key,
            _ => self.task.reference.order.as_ref() == Some(order),
        }
    }
}
