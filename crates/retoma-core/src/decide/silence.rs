//! Opt-out and opt-in (C12): a property of the person, decided by rules only, before any cycle is asked.

use crate::decision::{Close, CloseScope};
use crate::flow::Flow;
use crate::send_check::Reason;
use crate::task::MessageClass;

use super::burst_words::Burst;
use super::draft::{Cause, Draft};
use super::{cycle, table};

/// The contact asked for silence: everything promised ends, one confirmation goes out.
pub(super) fn opt_out(draft: &mut Draft<'_>, burst: &Burst<'_>) {
    let word = draft.flow.opt_out_word.clone().unwrap_or_default();
    let cause = burst.wish_cause(&word, false);
    let is_repeated = draft.contact.opted_out_at.is_some();
    let mut conversation = match cycle::of_chat(draft) {
        Some(conversation) => conversation,
        None => cycle::open(draft, None),
    };
    hush(draft);
    conversation.cadence = None;
    conversation.deadline_at = None;
    match draft.flow.row(&conversation.state, &word) {
        // Only one confirmation goes out.
        Some(row) if !is_repeated => table::follow(draft, &mut conversation, row, &cause),
        _ => draft.note(&conversation, &cause, "no_transition"),
    }
    stop_clocks(draft, Some(conversation.ordinal));
    draft.keep(conversation);
}

/// An operator recorded an opt-out: the same silence, and no confirmation, since the contact did not ask us.
pub(super) fn opt_out_by_operator(draft: &mut Draft<'_>, cause: &Cause<'_>) {
    let is_repeated = draft.contact.opted_out_at.is_some();
    hush(draft);
    let conversation = cycle::of_chat(draft);
    stop_clocks(draft, conversation.as_ref().map(|conversation| conversation.ordinal));
    draft.answer("opted out");
    let Some(mut conversation) = conversation else { return };
    conversation.cadence = None;
    conversation.deadline_at = None;
    let flow = draft.flow;
    match silent_states(flow).next() {
        Some(state) if !is_repeated => table::move_to(draft, &mut conversation, state, cause),
        _ => draft.note(&conversation, cause, "no_transition"),
    }
    draft.keep(conversation);
}

/// The contact takes its opt-out back: that cycle is over, and this very message opens a new one, greeted like any first
/// message.
pub(super) fn opt_in(draft: &mut Draft<'_>, burst: &Burst<'_>) {
    draft.contact.opted_out_at = None;
    let silent = draft.cycles().filter(|cycle| silent_states(draft.flow).any(|state| state == cycle.state));
    for cycle in silent.cloned().collect::<Vec<_>>() {
        let (closed, deadline_at, updated_at) = (true, None, draft.now);
        draft.keep(crate::state::Conversation { closed, deadline_at, updated_at, ..cycle });
    }
    let mut conversation = cycle::open(draft, None);
    let word = draft.flow.opt_in_word.clone().unwrap_or_default();
    let cause = burst.wish_cause(&word, true);
    draft.remember_in(&mut conversation, burst.last, false);
    match draft.flow.row(&conversation.state, burst.any_message()) {
        Some(row) => table::follow(draft, &mut conversation, row, &cause),
        None => draft.note(&conversation, &cause, "no_transition"),
    }
    draft.keep(conversation);
}

/// A message of somebody who opted out: kept in the log, answered by nobody.
pub(super) fn record_only(draft: &mut Draft<'_>, burst: &Burst<'_>) {
    let Some(conversation) = cycle::of_chat(draft) else { return draft.ignore("no_transition") };
    let (_, cause) = burst.ask(draft.flow, &conversation.state);
    draft.note(&conversation, &cause, "no_transition");
}

/// Opts the contact out and closes what waits, over all cycles. Delivery of what was paid stays (whether it may leave is
/// the check's to say), and so does a confirmation that is still on its way.
fn hush(draft: &mut Draft<'_>) {
    draft.contact.opted_out_at.get_or_insert(draft.now);
    draft.decision.close.push(Close {
        scope: CloseScope::Contact(draft.contact.id),
        except: vec![MessageClass::Receipt, MessageClass::OptOutAck, MessageClass::Internal],
        reason: Reason::OptedOut,
    });
}

/// Two contacts became one and one of them had asked for silence: what came together falls silent.
pub(super) fn after_merge(draft: &mut Draft<'_>) {
    hush(draft);
    draft.decision.adopted.retain(|task| task.class.outlives_the_sale());
    for cycle in &mut draft.decision.conversations {
        (cycle.cadence, cycle.deadline_at) = (None, None);
    }
    let changed: Vec<u32> = draft.decision.conversations.iter().map(|cycle| cycle.ordinal).collect();
    for cycle in draft.view.conversations.iter().filter(|cycle| !cycle.closed && !changed.contains(&cycle.ordinal)) {
        draft.keep(crate::state::Conversation { cadence: None, deadline_at: None, ..cycle.clone() });
    }
}

/// Stops the clocks of the other cycles, of whatever flow: nothing may be said any more, so no deadline has anything to
/// bring about.
fn stop_clocks(draft: &mut Draft<'_>, except: Option<u32>) {
    let others = draft.view.conversations.iter().filter(|cycle| !cycle.closed && Some(cycle.ordinal) != except);
    let ticking = others.filter(|cycle| cycle.cadence.is_some() || cycle.deadline_at.is_some());
    for cycle in ticking.cloned().collect::<Vec<_>>() {
        draft.keep(crate::state::Conversation { cadence: None, deadline_at: None, ..cycle });
    }
}

/// The states that an opt-out leads to; as a rule there is one.
fn silent_states(flow: &Flow) -> impl Iterator<Item = &str> {
    let rows = flow.globals.iter().chain(&flow.transitions);
    let of_opt_out = rows.filter(|row| flow.opt_out_word.as_ref() == Some(&row.event));
    of_opt_out.filter_map(|row| row.to.as_deref())
}
