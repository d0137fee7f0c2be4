//! Values that perished were renewed by a tool of the seller's, or are others now for any reason (D10).

use jiff::Timestamp;

use crate::cadence;
use crate::decision::Spread;
use crate::event::Event;
use crate::state::Conversation;

use super::draft::{Cause, Draft};
use super::table;

/// The cycle has new values. Nothing else moves: what was waiting for them is looked at again.
pub(super) fn take(draft: &mut Draft<'_>, event: &Event) {
    let Some(renewed) = &event.data.renewed else { return draft.ignore("nothing_renewed") };
    let Some(mut conversation) = draft.cycles().find(|cycle| cycle.id == renewed.conversation).cloned() else {
        return draft.ignore("cycle_closed");
    };
    let cause = Cause::word(event, event.kind.as_str());
    conversation.vars.extend(renewed.values.iter().map(|(name, value)| (name.clone(), value.clone())));
    let state = conversation.state.clone();
    draft.log(conversation.id, &cause, (&state, &state), None, Vec::new());
    let names: Vec<&str> = renewed.values.keys().map(String::as_str).collect();
    draft.answer(format!("renewed: {}", names.join(", ")));
    draft.keep(conversation);
}

/// Touches that count back from a value (`before: pix.expires_at`) move with it, as long as they were not handed over. Asked
/// for every cycle that a decision changed.
pub(super) fn plan_again(draft: &mut Draft<'_>, stored: Option<&Conversation>, conversation: &mut Conversation) {
    let Some(stored) = stored else { return };
    let Some((running, declared)) = table::running(draft.flow, conversation) else { return };
    // Armed in this very decision: its touches know the value already.
    if stored.cadence.as_ref().is_none_or(|before| before.key != running.key) {
        return;
    }
    let read = |cycle: &Conversation, name: &str| cycle.vars.get(name).and_then(|text| text.parse::<Timestamp>().ok());
    let mut moved = Vec::new();
    for touch in &declared.touches {
        let Some(name) = &touch.before else { continue };
        let (Some(before), Some(value)) = (read(stored, name), read(conversation, name)) else { continue };
        let task = cadence::touch_id(&running.key, &touch.id);
        let waits = running.touches.iter().any(|running| running.task == task && !running.handed);
        if before != value && waits {
            let at = cadence::whole_ms(value - touch.at - cadence::jitter(task.as_str(), touch.jitter));
            moved.push(Spread { task, at });
        }
    }
    if moved.is_empty() {
        return;
    }
    for touch in conversation.cadence.iter_mut().flat_map(|running| &mut running.touches) {
        if let Some(moved) = moved.iter().find(|moved| moved.task == touch.task) {
            touch.due_at = moved.at;
        }
    }
    table::set_deadline(draft, conversation);
    draft.decision.replanned.extend(moved);
}
