//! How close together messages may be (D5): silence after the contact wrote, the gap between two reminders, pile-up, caps.

use std::time::Duration;

use jiff::Timestamp;

use super::gone::Known;
use crate::event::EventKind;
use crate::receipt::{SILENT_AFTER, Status};
use crate::state::ContactView;
use crate::task::{MessageClass, TaskStatus};

/// Silence after the contact wrote, for reminders that belong to no cadence.
const WAIT_AFTER_INBOUND: Duration = Duration::from_secs(45 * 60);
/// The gap between two reminders, for those that belong to no cadence.
const MIN_GAP: Duration = Duration::from_secs(30 * 60);

/// Until when a person is in the chat. The last command counts, decided or not. A message of our own that nobody explains
/// yet (`message.human`) is no command: it holds up the start until it is decided what it means.
pub(super) fn paused_until(view: &ContactView) -> Option<Timestamp> {
    view.undecided.iter().fold(view.contact.paused_until, |paused, event| match event.kind {
        EventKind::OperatorPause => event.data.operator.as_ref().and_then(|operator| operator.until).or(paused),
        EventKind::OperatorResume => None,
        _ => paused,
    })
}

/// When the silence after the contact's last message ends, if it has not. A message that waits for its burst to end, or for
/// its decision, is as much a word of the contact as a decided one (C7); it may even end the cadence, so nothing leaves while
/// one is waiting.
pub(super) fn silent_until(known: &Known<'_>, now: Timestamp) -> Option<Timestamp> {
    let wait = known.cadence.map_or(WAIT_AFTER_INBOUND, |cadence| cadence.wait_after_inbound);
    let is_waiting = chat(known.view).next().is_some();
    let decided_by = is_waiting.then(|| now + known.flow.debounce.quiet.max(Duration::from_secs(1)));
    last_word(known.view).map(|last| last + wait).max(decided_by).filter(|until| *until > now)
}

/// When the gap after the last reminder ends, if it has not.
pub(super) fn gap_ends(known: &Known<'_>, now: Timestamp) -> Option<Timestamp> {
    // The one resend of a message is no second message.
    if known.task.resent {
        return None;
    }
    let gap = known.cadence.map_or(MIN_GAP, |cadence| cadence.min_gap);
    reminders(known).max().map(|last| last + gap).filter(|ends| *ends > now)
}

/// Whether a later touch of the same cadence is due, under way or sent: that one stands for this one (D10). One that is
/// itself too late, or was closed, stands for nothing.
pub(super) fn is_piled_up(known: &Known<'_>, now: Timestamp) -> bool {
    let task = known.task;
    task.cadence.is_some()
        && known.view.tasks.iter().any(|later| {
            let stands = match later.status {
                TaskStatus::Scheduled | TaskStatus::Failed => {
                    later.max_late.is_none_or(|late| later.scheduled_for + late >= now)
                }
                TaskStatus::Sending | TaskStatus::Unsure | TaskStatus::Sent => true,
                TaskStatus::Cancelled | TaskStatus::Dead | TaskStatus::Held => false,
            };
            (&later.cadence, later.conversation) == (&task.cadence, task.conversation)
                && later.touch_no > task.touch_no
                && later.scheduled_for <= now
                && stands
        })
}

/// Whether one of the rolling caps is reached, over all cadences of the contact. Windows roll, so that 23:00 and 00:10 are
/// not two days.
pub(super) fn is_capped(known: &Known<'_>, now: Timestamp) -> bool {
    let already_counted = usize::from(known.task.resent);
    known.flow.limits.frequency.iter().any(|cap| {
        let inside = reminders(known).filter(|at| *at + cap.per > now).count();
        inside.saturating_sub(already_counted) >= cap.max as usize
    })
}

/// Whether too many automatic messages went out since the contact's last word.
pub(super) fn is_unanswered(known: &Known<'_>) -> bool {
    let last = last_word(known.view);
    let to_contact = known.view.sends.iter().filter(|send| send.class != MessageClass::Internal);
    let unanswered = to_contact.filter(|send| last.is_none_or(|last| send.at > last)).count();
    unanswered >= known.flow.limits.unanswered_automatic as usize
}

/// Whether the last messages since the contact's last word were accepted long ago, and nothing was heard of any of them.
/// Whoever answers, or receives, is reached.
pub(super) fn vanishes(known: &Known<'_>, now: Timestamp) -> bool {
    let limit = known.flow.limits.without_receipt as usize;
    let last = last_word(known.view);
    let since = known.view.sends.iter().rev().take_while(|send| last.is_none_or(|last| send.at > last));
    // What was sent a moment ago tells nothing yet.
    let old = since.filter(|send| send.receipt.is_some() && send.at + SILENT_AFTER <= now);
    limit > 0 && old.take_while(|send| send.receipt == Some(Status::Accepted)).count() >= limit
}

fn reminders(known: &Known<'_>) -> impl Iterator<Item = Timestamp> {
    known.view.sends.iter().filter(|send| send.class == MessageClass::Reminder).map(|send| send.at)
}

/// Messages of the contact that are not decided yet.
fn chat(view: &ContactView) -> impl Iterator<Item = Timestamp> {
    view.undecided.iter().filter(|event| event.kind == EventKind::MessageReceived).map(|event| event.occurred_at)
}

/// The contact's last message, decided or not.
fn last_word(view: &ContactView) -> Option<Timestamp> {
    chat(view).max().max(view.contact.last_inbound_at)
}
