//! The clock speaks: a deadline passed (C5). It is a state's own, or it belongs to the cadence that runs there, and then a
//! touch falls due, or nothing is left to fall due and the cadence is exhausted (D8).

use std::time::Duration;

use jiff::Timestamp;

use crate::cadence;
use crate::calendar;
use crate::decision::Spread;
use crate::event::Event;
use crate::flow::{REGUA_ESGOTADA, Row, TIMEOUT};
use crate::ids::TaskId;
use crate::send_check::Reason;
use crate::state::Conversation;
use crate::task::{Task, TaskStatus};

use super::draft::{Cause, Draft};
use super::table;

/// A touch handed over later than this after its time is overdue; less is the ordinary pace of a sweep.
const OVERDUE: Duration = Duration::from_secs(2 * 60);

/// A deadline passed.
pub(super) fn ring(draft: &mut Draft<'_>, event: &Event) {
    let Some(deadline) = &event.data.deadline else { return draft.ignore("stale_deadline") };
    let found = draft.cycles().find(|cycle| cycle.id == deadline.conversation);
    // Something moved the cycle since: this deadline is nobody's any more. So sweeping twice is harmless.
    let is_current =
        |cycle: &&Conversation| cycle.deadline_at.is_some_and(|at| at.as_millisecond() == deadline.at.as_millisecond());
    let Some(mut conversation) = found.filter(is_current).cloned() else {
        return draft.ignore("stale_deadline");
    };
    let now = draft.now.max(deadline.at);
    let rung = table::running(draft.flow, &conversation).is_some();
    let due = match &mut conversation.cadence {
        Some(running) if rung => cadence::take_due(running, now),
        _ => Vec::new(),
    };
    match (rung, due.is_empty()) {
        (false, _) => own_timeout(draft, &mut conversation, event),
        (true, false) => {
            hand_over(draft, &mut conversation, event, due.into_iter().map(|touch| touch.task).collect());
        }
        (true, true) => exhaust(draft, &mut conversation, event),
    }
    draft.keep(conversation);
}

/// The state's own deadline.
fn own_timeout(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event) {
    let row = draft.flow.deadline_row(&conversation.state);
    ask(draft, conversation, row, &Cause::word(event, TIMEOUT));
}

/// Touches fell due. After an outage there may be several: the latest stands for all of them, so that nobody is written to
/// twice in a minute.
fn hand_over(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event, due: Vec<TaskId>) {
    let mut alive: Vec<TaskId> = due.into_iter().filter(|id| touch(draft, id).is_some_and(is_unsent)).collect();
    let Some(latest) = alive.pop() else {
        // A person closed it by hand. The clock goes on to the next; nothing fell due that the table could be asked about.
        table::set_deadline(draft, conversation);
        return draft.note(conversation, &Cause::word(event, TIMEOUT), "no_transition");
    };
    draft.close_tasks(alive, Reason::PiledUp);
    spread(draft, &latest);
    draft.decision.handed.push(latest.clone());
    let row = draft.flow.touch_row(&conversation.state);
    ask(draft, conversation, row, &Cause { touch: Some(latest), ..Cause::word(event, TIMEOUT) });
}

/// A touch that is handed over late (we were down, or the clock was) does not leave with all the others at once, as far as its
/// own lateness leaves room (D5, FC-57).
fn spread(draft: &mut Draft<'_>, id: &TaskId) {
    let Some(task) = touch(draft, id) else { return };
    let latest = task.max_late.map_or(draft.now, |late| task.scheduled_for + late);
    let room = Duration::try_from(latest.duration_since(draft.now)).unwrap_or_default() / 2;
    if draft.now > task.scheduled_for + OVERDUE && !room.is_zero() {
        let at = calendar::release_at(draft.now, draft.flow.calendar.release_spread.min(room), id.as_str());
        draft.decision.spread.push(Spread { task: id.clone(), at });
    }
}

/// No touch is left to fall due: once all of them came to an end and a grace of silence has passed, the cadence is
/// exhausted; until then the clock looks again.
fn exhaust(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event) {
    let Some((running, declared)) = table::running(draft.flow, conversation) else { return };
    if let Some(next) = cadence::next_due(running) {
        // Our clock was set back; the touch is still to come.
        conversation.deadline_at = Some(next);
        return draft.answer("not due yet");
    }
    let touches: Vec<&Task> = running.touches.iter().filter_map(|running| touch(draft, &running.task)).collect();
    let too_late = touches.iter().filter(|task| task.status == TaskStatus::Held && is_past(task, draft));
    let too_late: Vec<TaskId> = too_late.map(|task| task.id.clone()).collect();
    let is_over = touches.iter().all(|task| match task.status {
        TaskStatus::Held | TaskStatus::Unsure => is_past(task, draft),
        status => status.is_final(),
    });
    let last_touch = touches.iter().map(|task| task.updated_at).fold(cadence::last_due(running), Timestamp::max);
    let silent_until = table::silence_ends(draft, last_touch, declared);
    draft.close_tasks(too_late, Reason::TooLate);
    if is_over && silent_until <= draft.now {
        conversation.cadence = None;
        lead_on(draft, conversation, event);
        let row = draft.flow.row(&conversation.state, REGUA_ESGOTADA);
        return ask(draft, conversation, row, &Cause::word(event, REGUA_ESGOTADA));
    }
    conversation.deadline_at = Some(silent_until.max(table::look_again(draft.now)));
    draft.answer("waiting for the grace to pass");
}

/// Touches that were all closed before one fell due never led the cycle to where a cadence ends (AGUARDANDO_PIX to
/// RECUPERANDO). It takes that step now, without its message, or it would wait there for ever.
fn lead_on(draft: &mut Draft<'_>, conversation: &mut Conversation, event: &Event) {
    let flow = draft.flow;
    let ends_in = |state: &str| flow.row(state, REGUA_ESGOTADA).is_some();
    if ends_in(&conversation.state) {
        return;
    }
    let step = flow.touch_row(&conversation.state).filter(|row| row.to.as_deref().is_some_and(ends_in));
    if let Some(row) = step {
        let silent = Row { actions: Vec::new(), ..row.clone() };
        table::follow(draft, conversation, &silent, &Cause::word(event, TIMEOUT));
    }
}

/// Takes what the table answered. A deadline that it does not answer is used up all the same, or it would pass for ever.
fn ask(draft: &mut Draft<'_>, conversation: &mut Conversation, row: Option<&Row>, cause: &Cause<'_>) {
    match row {
        Some(row) => table::follow(draft, conversation, row, cause),
        None => {
            conversation.deadline_at = None;
            if cause.word == REGUA_ESGOTADA || table::running(draft.flow, conversation).is_some() {
                table::set_deadline(draft, conversation);
            }
            draft.note(conversation, cause, "no_transition");
        }
    }
}

fn touch<'a>(draft: &Draft<'a>, id: &TaskId) -> Option<&'a Task> {
    draft.view.tasks.iter().find(|task| task.id == *id)
}

fn is_unsent(task: &Task) -> bool {
    !task.status.is_final()
}

fn is_past(task: &Task, draft: &Draft<'_>) -> bool {
    task.max_late.is_some_and(|late| task.scheduled_for + late < draft.now)
}
