//! The decision: what `decide` answers and the store commits in one transaction (C3).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Event, OrderRef};
use crate::ids::{ContactId, ConversationId, EventId, TaskId};
use crate::send_check::Reason;
use crate::state::{Contact, ContactView, Conversation, Merged};
use crate::task::{MessageClass, Task, TaskStatus};

/// What happens to a contact because of one event, or of one burst of messages.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Decision {
    /// The events that this decision consumes, with their outcome.
    pub events: Vec<EventOutcome>,
    /// The contact after it; `None` where there is no contact (the event is only recorded).
    pub contact: Option<Contact>,
    /// Conversations after it: changed and new ones, whole.
    pub conversations: Vec<Conversation>,
    /// Rows for the transition log, in order.
    pub transitions: Vec<Transition>,
    /// Waiting tasks to close. Applied before `new_tasks`.
    pub close: Vec<Close>,
    /// Tasks to add. An id that was ever claimed before adds nothing.
    pub new_tasks: Vec<Task>,
    /// Touches handed to delivery.
    pub handed: Vec<TaskId>,
    /// Of those, the ones that are overdue and leave later, so that what an outage held back does not leave at once (D5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Spread>,
    /// Touches that count back from a value which is another one now, and were not handed over: their new times (D10).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replanned: Vec<Spread>,
    /// Tasks taken over from a contact that turned out to be this one, under the ids that they had there: only an id that
    /// the merge closed may be taken again, and once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adopted: Vec<Task>,
    /// This contact gives way to another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// What says who the contact was is removed for good.
    #[serde(default)]
    pub erase: bool,
}

/// A contact gives way to the one that it turns out to be (DESIGN.md, "Merge"): its identities and its history go there, and
/// a `contact.merged` event enters that contact's inbox.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Handover {
    /// The contact that stays.
    pub into: ContactId,
    /// The command that said so; the new event's id derives from it.
    pub because_of: EventId,
    /// What is handed over.
    pub merged: Merged,
}

/// A touch and a time: of one that is handed over, the earliest look; of one that is planned anew, when it is due.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// Which touch.
    pub task: TaskId,
    /// That time.
    pub at: Timestamp,
}

/// How an event ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventOutcome {
    /// Which event.
    pub event: EventId,
    /// Whether it was decided; otherwise it was ignored, for `reason`.
    pub decided: bool,
    /// One line for people: `NOVO -> ENGAJADO (boas_vindas)`.
    pub result: String,
    /// A code where nothing moved: `no_transition`, `late_fact`, `stale_deadline`, `no_contact`.
    pub reason: Option<String>,
}

/// A row of the append-only transition log (C14).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transition {
    /// Whose.
    pub contact: ContactId,
    /// Which cycle.
    pub conversation: ConversationId,
    /// State before.
    pub from: String,
    /// The flow's word for the event that the table was asked for first (`pediu_preco`).
    pub event: String,
    /// The word whose row was taken, where it is another one (`msg_recebida`).
    pub taken_as: Option<String>,
    /// State after; the same as `from` where nothing moved.
    pub to: String,
    /// `no_transition`, `late_fact`, ... where the table had no row.
    pub reason: Option<String>,
    /// Actions of the row (`boas_vindas`).
    pub actions: Vec<String>,
    /// The classifier rule that hit, for messages.
    pub rule: Option<String>,
    /// The event that caused it (the last one of a burst).
    pub event_id: EventId,
    /// When it was decided.
    pub at: Timestamp,
}

/// Which waiting tasks to close.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Close {
    /// Where to look.
    pub scope: CloseScope,
    /// Classes that stay (`receipt` on payment).
    pub except: Vec<MessageClass>,
    /// The code written into the tasks.
    pub reason: Reason,
}

/// The reach of a [`Close`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CloseScope {
    /// These tasks.
    Tasks(Vec<TaskId>),
    /// Every task of a cycle.
    Conversation(ConversationId),
    /// Every task of a contact.
    Contact(ContactId),
    /// Every receipt-class and other task of one order (a refund takes back the delivery, too).
    Order(ContactId, OrderRef),
}

impl Close {
    /// Whether this close concerns the task.
    pub fn concerns(&self, task: &Task) -> bool {
        let in_scope = match &self.scope {
            CloseScope::Tasks(ids) => ids.contains(&task.id),
            CloseScope::Conversation(id) => task.conversation == Some(*id),
            CloseScope::Contact(id) => task.contact == *id,
            CloseScope::Order(id, order) => task.contact == *id && task.reference.order.as_ref() == Some(order),
        };
        in_scope && !self.except.contains(&task.class)
    }
}

impl Decision {
    /// A decision that only records: every event ends, nothing moves.
    pub fn recorded(events: &[Event], reason: &str) -> Self {
        let outcome = |event: &Event| EventOutcome {
            event: event.id,
            decided: false,
            result: reason.to_owned(),
            reason: Some(reason.to_owned()),
        };
        Self { events: events.iter().map(outcome).collect(), ..Self::default() }
    }

    /// Folds the decision into the view: the definition of what every store must do when it commits one. The only thing
    /// it cannot know is whether a task's id was claimed long ago; the store skips those.
    pub fn apply(&self, view: &mut ContactView, now: Timestamp) {
        if let Some(contact) = &self.contact {
            view.contact = contact.clone();
        }
        for task in &mut view.tasks {
            let Some(close) = self.close.iter().find(|close| close.concerns(task)) else { continue };
            if task.status.is_waiting() {
                task.status = TaskStatus::Cancelled;
                task.reason = Some(close.reason);
                task.updated_at = now;
            } else if !task.status.is_final() {
                task.cancel_reason.get_or_insert(close.reason);
            }
        }
        for new in &self.conversations {
            match view.conversations.iter_mut().find(|old| old.id == new.id) {
                Some(old) => *old = new.clone(),
                None => view.conversations.push(new.clone()),
            }
        }
        view.conversations.retain(|conversation| !conversation.closed);
        for new in &self.new_tasks {
            if !view.tasks.iter().any(|old| old.id == new.id) {
                view.tasks.push(new.clone());
            }
        }
        for taken in &self.adopted {
            view.tasks.retain(|old| old.id != taken.id);
            view.tasks.push(taken.clone());
        }
        for task in view.tasks.iter_mut().filter(|task| self.handed.contains(&task.id)) {
            task.handed = true;
            if let Some(spread) = self.spread.iter().find(|spread| spread.task == task.id) {
                task.next_attempt_at = spread.at;
            }
        }
        for moved in &self.replanned {
            let waits = |task: &&mut Task| task.id == moved.task && !task.handed && task.status.is_waiting();
            if let Some(task) = view.tasks.iter_mut().find(waits) {
                (task.scheduled_for, task.next_attempt_at, task.updated_at) = (moved.at, moved.at, now);
            }
        }
        view.undecided.retain(|event| !self.events.iter().any(|outcome| outcome.event == event.id));
    }
}
