//! Somebody wrote from our own number (C8, FC-10, FC-13): our own message coming back, or a person who took the chat over.

use jiff::Timestamp;

use crate::compose::compose;
use crate::event::Event;
use crate::task::TaskStatus;

use super::draft::{Cause, Draft};
use super::{cycle, table};

/// Takes a message from our own number for what it is. It is never a word of the contact: it opens no window, ends no
/// cadence and counts as no answer.
pub(super) fn step_in(draft: &mut Draft<'_>, event: &Event) {
    if is_echo(draft, event) {
        return draft.ignore("own_echo");
    }
    // From the time of the message, not of its arrival: a history that is replayed after a reconnect pauses nothing.
    let wrote_at = event.occurred_at.min(event.received_at);
    let until = wrote_at + draft.flow.takeover.auto_end;
    if until <= draft.now {
        return draft.ignore("history");
    }
    // A pause that an operator set for longer stays; one that is running is prolonged with every word (it counts from the
    // last one).
    let until = draft.contact.paused_until.map_or(until, |paused: Timestamp| paused.max(until));
    let is_new = draft.contact.paused_until.is_none_or(|paused| paused <= draft.now);
    draft.contact.paused_until = Some(until);
    draft.answer(format!("a person answers; automatic messages wait until {until}"));
    let cause = Cause::of_fact(draft.flow, event);
    let found = cycle::of_chat(draft);
    if let Some(whom) = draft.flow.takeover.notify.as_deref().filter(|_| is_new) {
        table::tell(draft, found.as_ref(), whom, &cause);
    }
    // A flow may have a row for it; without one the state stays, and so does its clock.
    let Some(mut conversation) = found else { return };
    if let Some(row) = table::row_for_fact(draft.flow, &conversation.state, event.kind) {
        table::follow(draft, &mut conversation, &row, &cause);
        draft.keep(conversation);
    }
}

/// Whether one of our own tasks wrote it: known by the provider's id, or, since an echo may overtake the answer to our own
/// request (and an unsure send may never get one), by its text while such a send is open.
fn is_echo(draft: &Draft<'_>, event: &Event) -> bool {
    if event.data.message_id.as_ref().is_some_and(|id| draft.view.echoes.contains(id)) {
        return true;
    }
    let Some(text) = event.data.text.as_deref() else { return false };
    let open = draft.view.tasks.iter().filter(|task| matches!(task.status, TaskStatus::Sending | TaskStatus::Unsure));
    let mut texts = open.filter_map(|task| compose(draft.flow, draft.view, task, draft.now).text.ok());
    texts.any(|ours| is_same(&ours, text))
}

/// Providers trim and re-wrap; nothing else may differ.
fn is_same(ours: &str, theirs: &str) -> bool {
    ours.split_whitespace().eq(theirs.split_whitespace())
}
