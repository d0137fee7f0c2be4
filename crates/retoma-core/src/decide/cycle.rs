//! Which sale cycle an event belongs to (C1): chat to the latest active one, a fact to the cycle of its order.

use crate::cadence;
use crate::event::{Event, HISTORY};
use crate::flow::Flow;
use crate::ids::ConversationId;
use crate::send_check::Reason;
use crate::state::{Conversation, Previous};

use super::draft::Draft;

/// The cycle that a chat message belongs to: the latest one that is still open, else the latest that came to an end
/// (somebody who paid, or was given up, is answered there).
pub(super) fn of_chat(draft: &Draft<'_>) -> Option<Conversation> {
    latest(draft.cycles(), |cycle| !is_at_rest(draft.flow, cycle)).cloned()
}

/// The cycle that a platform's fact belongs to: the one about its order; else the latest one about its offer; else the
/// latest that does not know yet what it is about. `None`: a new interest, which never erases an earlier one.
pub(super) fn of_fact(draft: &Draft<'_>, event: &Event) -> Option<Conversation> {
    let (order, offer) = (event.data.order.as_ref(), event.data.offer.as_ref());
    let knows_order = |cycle: &&Conversation| {
        order.is_some_and(|order| cycle.order.as_ref() == Some(order) || cycle.paid_orders.contains(order))
    };
    let is_open = |cycle: &Conversation| !is_at_rest(draft.flow, cycle);
    let by_order = latest(draft.cycles().filter(knows_order), is_open);
    let found = by_order.or_else(|| match offer {
        Some(offer) => {
            let same_offer = latest(draft.cycles().filter(|cycle| cycle.offer.as_ref() == Some(offer)), is_open);
            same_offer.or_else(|| latest(draft.cycles().filter(|cycle| cycle.offer.is_none()), is_open))
        }
        // Some platforms name the offer in a few events only. Without it the fact goes where chat goes, before all to a
        // cycle that names none either: a payment that reached no cycle would let the reminders go on.
        None => {
            let is_unnamed = |cycle: &Conversation| order.is_some() && cycle.offer.is_none();
            latest(draft.cycles(), |cycle| (is_open(cycle), is_unnamed(cycle)))
        }
    });
    found.cloned()
}

/// Opens a cycle in the initial state.
pub(super) fn open(draft: &mut Draft<'_>, offer: Option<String>) -> Conversation {
    draft.contact.cycles += 1;
    let ordinal = draft.contact.cycles;
    Conversation {
        id: ConversationId::derive(draft.contact.id, ordinal),
        ordinal,
        flow: draft.flow.name.clone(),
        flow_version: draft.flow.version,
        offer,
        state: draft.flow.initial.clone(),
        version: 0,
        closed: false,
        deadline_at: None,
        cadence: None,
        order: None,
        paid_orders: Vec::new(),
        previous: Previous::default(),
        vars: std::collections::BTreeMap::new(),
        opened_at: draft.now,
        updated_at: draft.now,
    }
}

/// Lets a cycle learn what it is about: the offer once, the order anew with every fact that names one.
pub(super) fn adopt(conversation: &mut Conversation, event: &Event) {
    if conversation.offer.is_none() {
        conversation.offer.clone_from(&event.data.offer);
    }
    if event.data.order.is_some() {
        conversation.order.clone_from(&event.data.order);
    }
}

/// Old messages, seen only now: touches of a cadence that they answered, had we heard them then, are not sent any more.
pub(super) fn replied_long_ago(draft: &mut Draft<'_>, messages: &[Event]) {
    let said_at = messages.iter().map(|message| message.occurred_at.min(message.received_at)).max();
    let answers = |cycle: &Conversation| cycle.cadence.as_ref().is_some_and(|running| Some(running.anchor) < said_at);
    for mut cycle in draft.cycles().filter(|cycle| answers(cycle)).cloned().collect::<Vec<_>>() {
        super::table::end_touches(draft, &mut cycle, Reason::Superseded, None);
        super::table::set_deadline(draft, &mut cycle);
        draft.keep(cycle);
    }
    draft.ignore(HISTORY);
}

/// Whether the cycle came to an end: its state is final, or no clock and no cadence will ever move it on (PERDIDO). Such a
/// cycle still takes events; it is only not the one that is going on.
pub(super) fn is_at_rest(flow: &Flow, conversation: &Conversation) -> bool {
    let word = &conversation.state;
    let Some(state) = flow.states.get(word) else { return false };
    let has_clock = state.timeout.is_some() || flow.cadences.values().any(|cadence| cadence::runs_in(cadence, word));
    state.is_final || (!has_clock && *word != flow.initial)
}

/// The latest of those that `prefer` ranks highest.
fn latest<'a, P: Ord>(
    cycles: impl Iterator<Item = &'a Conversation>,
    prefer: impl Fn(&Conversation) -> P,
) -> Option<&'a Conversation> {
    cycles.max_by_key(|cycle| (prefer(cycle), cycle.updated_at, cycle.ordinal))
}
