//! Two contacts turn out to be one person (C11, DESIGN.md "Merge"), and a person who is to be forgotten (H2).
//!
//! A merge is two decisions of two owners. The one that gives way hands everything over ([`give_way`]): its cycles close, what
//! it promised is superseded, and all of it travels in one `contact.merged` event. The one that stays decides that event like
//! any other ([`take_over`]), and promises again, under the same ids, what still has a reason.

use crate::decision::{Close, CloseScope, Handover};
use crate::event::{Event, Operator};
use crate::send_check::Reason;
use crate::state::{Contact, Conversation, Merged, PingPong, Previous};
use crate::task::{MessageClass, Task};

use super::draft::Draft;
use super::{cycle, silence};

/// This contact is the other one. What is under way is left to its end; it belongs to whoever stays.
pub(super) fn give_way(draft: &mut Draft<'_>, event: &Event, operator: &Operator) {
    let Some(into) = operator.with.filter(|into| *into != draft.contact.id) else {
        return draft.ignore("no_transition");
    };
    let tasks: Vec<Task> = draft.view.tasks.iter().filter(|task| task.status.is_waiting()).cloned().collect();
    draft.close_tasks(tasks.iter().map(|task| task.id.clone()).collect(), Reason::Superseded);
    let open: Vec<Conversation> = draft.view.conversations.iter().filter(|cycle| !cycle.closed).cloned().collect();
    for cycle in open.iter().cloned() {
        draft.keep(ended(cycle, draft));
    }
    let merged = Merged { contact: draft.view.contact.clone(), conversations: open, tasks };
    draft.decision.handover = Some(Handover { into, because_of: event.id, merged });
    draft.answer(format!("the same person as {into}"));
}

/// The other contact is this one. Opt-out wins, the longer pause wins, the cycle that came further wins.
pub(super) fn take_over(draft: &mut Draft<'_>, event: &Event) {
    let Some(merged) = event.data.merged.as_deref() else { return draft.ignore("no_transition") };
    join_people(&mut draft.contact, &merged.contact);
    let mut ours: Vec<Conversation> = draft.view.conversations.iter().filter(|cycle| !cycle.closed).cloned().collect();
    for theirs in &merged.conversations {
        match ours.iter().position(|cycle| is_same_sale(cycle, theirs)) {
            Some(place) => {
                let kept = join_cycles(draft, ours[place].clone(), theirs, &merged.tasks);
                ours[place] = kept;
            }
            None => {
                draft.contact.cycles += 1;
                ours.push(Conversation { ordinal: draft.contact.cycles, ..theirs.clone() });
                adopt(draft, merged.tasks.iter().filter(|task| task.conversation == Some(theirs.id)), theirs);
            }
        }
    }
    for task in merged.tasks.iter().filter(|task| task.conversation.is_none()) {
        draft.adopt(task.clone());
    }
    ours.into_iter().for_each(|cycle| draft.keep(cycle));
    draft.answer(format!("took over {}", merged.contact.id));
    // Last, over everything that came together: whoever asked for silence once gets it under every name.
    if draft.contact.opted_out_at.is_some() {
        silence::after_merge(draft);
    }
}

/// The person is to be forgotten: nothing goes on, and nothing that is kept says who it was. What stays is that something
/// was there, and that silence was asked for (C12).
pub(super) fn erase(draft: &mut Draft<'_>) {
    let (scope, reason) = (CloseScope::Contact(draft.contact.id), Reason::Cancelled);
    draft.decision.close.push(Close { scope, except: Vec::new(), reason });
    for cycle in draft.view.conversations.iter().filter(|cycle| !cycle.closed).cloned() {
        let nameless = Conversation { vars: Default::default(), previous: Previous::default(), ..cycle };
        draft.keep(ended(nameless, draft));
    }
    draft.contact.vars.clear();
    draft.contact.last_channel = None;
    draft.contact.ping_pong = PingPong::default();
    draft.decision.erase = true;
    draft.answer("erased");
}

fn ended(cycle: Conversation, draft: &Draft<'_>) -> Conversation {
    Conversation { closed: true, deadline_at: None, cadence: None, updated_at: draft.now, ..cycle }
}

fn join_people(stays: &mut Contact, goes: &Contact) {
    stays.opted_out_at = [stays.opted_out_at, goes.opted_out_at].into_iter().flatten().min();
    stays.paused_until = stays.paused_until.max(goes.paused_until);
    if goes.last_inbound_at > stays.last_inbound_at {
        stays.last_inbound_at = goes.last_inbound_at;
        stays.last_channel = goes.last_channel.clone().or_else(|| stays.last_channel.take());
        stays.ping_pong = goes.ping_pong.clone();
    }
    for (name, value) in &goes.vars {
        stays.vars.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// Two cycles about one sale: the same flow and the same offer, or the same order. A chat that does not know yet what it is
/// about may be about anything, and one person has one chat.
fn is_same_sale(one: &Conversation, other: &Conversation) -> bool {
    let same_order = one.order.is_some() && one.order == other.order;
    one.flow == other.flow && (same_order || one.offer == other.offer || one.offer.is_none() || other.offer.is_none())
}

/// Keeps the cycle that came further, and closes what the other one still promised: two reminders of one sale are one too
/// many. What was paid is delivered all the same.
fn join_cycles(draft: &mut Draft<'_>, ours: Conversation, theirs: &Conversation, tasks: &[Task]) -> Conversation {
    let rank = |cycle: &Conversation| {
        (!cycle.paid_orders.is_empty(), !cycle::is_at_rest(draft.flow, cycle), cycle.updated_at, cycle.version)
    };
    let theirs_wins = rank(theirs) > rank(&ours);
    let of_theirs = tasks.iter().filter(|task| task.conversation == Some(theirs.id));
    let (mut kept, dropped) = if theirs_wins {
        let dropped = Conversation { cadence: None, ..ours.clone() };
        draft.decision.close.push(Close {
            scope: CloseScope::Conversation(ours.id),
            except: vec![MessageClass::Receipt, MessageClass::OptOutAck, MessageClass::Internal],
            reason: Reason::Superseded,
        });
        // Under our own id, so that the place of the cycle among the contact's stays.
        let kept = Conversation { id: ours.id, ordinal: ours.ordinal, opened_at: ours.opened_at, ..theirs.clone() };
        adopt(draft, of_theirs, &kept);
        (kept, dropped)
    } else {
        adopt(draft, of_theirs.filter(|task| task.class.outlives_the_sale()), &ours);
        (ours, theirs.clone())
    };
    kept.version = kept.version.max(dropped.version) + 1;
    kept.updated_at = draft.now;
    kept.offer = kept.offer.or(dropped.offer);
    kept.order = kept.order.or(dropped.order);
    kept.paid_orders.extend(dropped.paid_orders);
    kept.paid_orders.sort();
    kept.paid_orders.dedup();
    for (name, value) in dropped.vars {
        kept.vars.entry(name).or_insert(value);
    }
    kept
}

fn adopt<'t>(draft: &mut Draft<'_>, tasks: impl Iterator<Item = &'t Task>, cycle: &Conversation) {
    for task in tasks {
        draft.adopt(Task { conversation: Some(cycle.id), ..task.clone() });
    }
}
