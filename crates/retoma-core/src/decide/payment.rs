//! Facts about a payment: which ones come too late, which are only repeated, and what each one closes (C4, C9, FC-37, 39).

use crate::cadence;
use crate::decision::{Close, CloseScope};
use crate::event::{Event, EventKind, OrderRef};
use crate::send_check::Reason;
use crate::state::Conversation;
use crate::task::MessageClass;

use super::draft::Draft;

const PAID: u8 = EventKind::PAID_RANK;

/// Whether a higher fact of this order is known: by rank, since platforms deliver out of order and their times are often
/// equal or missing.
///
/// The first approval is never late (C1: "any state, first pagamento_aprovado"): whatever came of the money since, the sale
/// was paid, and any order of the same facts ends in the same state. What it delivers is held to the check, which knows of
/// a refund.
pub(super) fn is_late(draft: &Draft<'_>, event: &Event) -> bool {
    let (Some(order), Some(rank)) = (&event.data.order, event.kind.payment_rank()) else { return false };
    event.kind != EventKind::PaymentApproved && known_rank(draft, order).is_some_and(|known| known > rank)
}

/// Whether something of the order is known that says it was paid, whatever came of the money later.
pub(super) fn is_paid(draft: &Draft<'_>, order: &OrderRef) -> bool {
    known_rank(draft, order).is_some_and(|known| known >= PAID)
}

fn known_rank(draft: &Draft<'_>, order: &OrderRef) -> Option<u8> {
    let recorded = draft.view.fact_of(order).and_then(|fact| fact.kind.payment_rank());
    recorded.max(is_delivered(draft, order).then_some(PAID))
}

fn is_delivered(draft: &Draft<'_>, order: &OrderRef) -> bool {
    draft.view.conversations.iter().any(|cycle| cycle.paid_orders.contains(order))
}

/// Whether an approval adds nothing: its order was delivered. Without an order, the cycle that is paid already says so.
pub(super) fn is_repeated(draft: &Draft<'_>, conversation: &Conversation, event: &Event) -> bool {
    if event.kind != EventKind::PaymentApproved {
        return false;
    }
    match &event.data.order {
        Some(order) => is_delivered(draft, order),
        None => {
            let row = super::table::row_for_fact(draft.flow, &conversation.state, event.kind);
            row.is_some_and(|row| row.to.as_ref() == Some(&conversation.state))
        }
    }
}

/// Ends the running cadence of the cycle if it declares this kind in `cancel_on`. The cadence stays, with every touch
/// closed: a grace later it is exhausted like any other (D8), unless the table leads elsewhere before.
pub(super) fn close_declared(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event) {
    let Some(running) = &conversation.cadence else { return };
    let Some(declared) = draft.flow.cadences.get(&running.name) else { return };
    if !declared.cancel_on.contains(&event.kind) {
        return;
    }
    // A charge that ran out says nothing about the one that replaced it. A payment does: the paid sale often has another
    // transaction than the one waited for (D2).
    let order = event.data.order.as_ref();
    let own_key = cadence::key(declared, order, conversation.id, 0);
    if event.kind.ends_one_charge() && order.is_some() && own_key != running.key {
        return;
    }
    super::table::end_touches(draft, conversation, Reason::closing(event.kind), None);
    super::table::set_deadline(draft, conversation);
}

/// Money that went back takes back what of that order was not delivered yet.
pub(super) fn take_back(draft: &mut Draft<'_>, event: &Event) {
    let went_back = matches!(event.kind, EventKind::PaymentRefunded | EventKind::PaymentChargeback);
    let Some(order) = event.data.order.clone().filter(|_| went_back) else { return };
    let is_waiting = draft.view.tasks.iter().any(|task| {
        !task.status.is_final() && task.class == MessageClass::Receipt && task.reference.order.as_ref() == Some(&order)
    });
    if is_waiting {
        let scope = CloseScope::Order(draft.contact.id, order);
        draft.decision.close.push(Close { scope, except: Vec::new(), reason: Reason::Refunded });
    }
}

/// An approval: the order is remembered as paid, and nothing but its delivery is still waited for in this cycle.
pub(super) fn settle(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event) {
    if event.kind != EventKind::PaymentApproved {
        return;
    }
    conversation.paid_orders.extend(event.data.order.clone());
    draft.decision.close.push(Close {
        scope: CloseScope::Conversation(conversation.id),
        except: vec![MessageClass::Receipt, MessageClass::OptOutAck, MessageClass::Internal],
        reason: Reason::Paid,
    });
    if conversation.cadence.take().is_some() {
        super::table::set_deadline(draft, conversation);
    }
}
