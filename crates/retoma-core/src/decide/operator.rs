//! Commands of people (C8): pause, resume, move, opt-out, link, erase. They are events like any other, so that they keep their place in
//! the contact's history.

use crate::event::{Event, EventKind, Operator};

use super::draft::{Cause, Draft};
use super::{cycle, merge, silence, table};

/// Does what an operator asked for.
pub(super) fn obey(draft: &mut Draft<'_>, event: &Event) {
    let Some(operator) = &event.data.operator else { return draft.ignore("no_transition") };
    let cause = Cause { remark: operator.reason.clone(), ..Cause::of_fact(draft.flow, event) };
    match event.kind {
        EventKind::OperatorPause => match operator.until {
            // Nothing else changes: states, deadlines and log rows move as usual, the check withholds what is automatic.
            Some(until) => {
                draft.contact.paused_until = Some(until);
                draft.answer(format!("paused until {until}"));
            }
            None => draft.ignore("no_transition"),
        },
        EventKind::OperatorResume => {
            draft.contact.paused_until = None;
            draft.answer("resumed");
        }
        EventKind::OperatorLink => merge::give_way(draft, event, operator),
        EventKind::OperatorErase => merge::erase(draft),
        EventKind::OperatorOptOut => silence::opt_out_by_operator(draft, &cause),
        _ => move_cycle(draft, operator, &cause),
    }
}

fn move_cycle(draft: &mut Draft<'_>, operator: &Operator, cause: &Cause<'_>) {
    let found = match operator.conversation {
        Some(id) => draft.cycles().find(|cycle| cycle.id == id).cloned(),
        None => cycle::of_chat(draft),
    };
    let to = operator.to.as_deref().filter(|to| draft.flow.states.contains_key(*to));
    let (Some(mut conversation), Some(to)) = (found, to) else { return draft.ignore("no_transition") };
    table::move_to(draft, &mut conversation, to, cause);
    draft.keep(conversation);
}
