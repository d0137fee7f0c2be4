//! The decision being made: a working copy of what may change, and the small steps that every story shares.

use jiff::Timestamp;

use crate::decide::Setup;
use crate::decision::{Close, CloseScope, Decision, EventOutcome, Transition};
use crate::event::{Event, EventKind, OrderRef};
use crate::flow::Flow;
use crate::ids::{ChannelName, ConversationId, TaskId};
use crate::send_check::Reason;
use crate::state::{Contact, ContactView, Conversation};
use crate::task::Task;

use super::renewal;

/// Why an event that no flow is asked about moves nothing.
const NOT_FOR_FLOW: &str = "not_for_flow";

/// What the log says of a conversation that a new version of the flow put elsewhere.
const FLOW_CHANGED: &str = "flow.changed";

/// A decision under construction.
pub(super) struct Draft<'a> {
    pub(super) flow: &'a Flow,
    /// The contact as it was stored.
    stored: &'a ContactView,
    /// The same, each conversation in a state that the flow has.
    pub(super) view: &'a ContactView,
    pub(super) setup: &'a Setup,
    pub(super) now: Timestamp,
    pub(super) contact: Contact,
    pub(super) decision: Decision,
    result: String,
    reason: Option<String>,
}

/// What asks the table, and the event behind it.
pub(super) struct Cause<'a> {
    /// The event; the last one of a burst.
    pub(super) event: &'a Event,
    /// The word the table is asked for first.
    pub(super) word: String,
    /// The word whose row is taken instead, where the first has none.
    pub(super) taken_as: Option<String>,
    /// The classifier's rule, for messages.
    pub(super) rule: Option<String>,
    /// A remark that goes into the log beside a row that was taken (an operator's words).
    pub(super) remark: Option<String>,
    /// What a person should look at, in the log and nowhere else.
    pub(super) flag: Option<&'static str>,
    /// The touch that this `timeout` hands over.
    pub(super) touch: Option<TaskId>,
}

impl<'a> Cause<'a> {
    /// A cause that is nothing but a word.
    pub(super) fn word(event: &'a Event, word: &str) -> Self {
        Self { event, word: word.to_owned(), taken_as: None, rule: None, remark: None, flag: None, touch: None }
    }

    /// A platform's fact, under the flow's word for it or, where it has none, under its canonical type.
    pub(super) fn of_fact(flow: &Flow, event: &'a Event) -> Self {
        Self::word(event, flow.word_of(event.kind).unwrap_or(event.kind.as_str()))
    }

    /// Why nothing moves when the table has no row: facts of a sale are "no transition in this state" (C4); receipts,
    /// channels and unknown types are nothing a flow is asked about.
    pub(super) fn missing(&self) -> &'static str {
        let is_sale = |kind: EventKind| {
            kind.payment_rank().is_some()
                || matches!(kind, EventKind::SubscriptionLate | EventKind::SubscriptionCancelled)
                || matches!(kind, EventKind::MessageReceived | EventKind::ClockTimeout)
        };
        let has_word = self.word != self.event.kind.as_str();
        if has_word || is_sale(self.event.kind) { "no_transition" } else { NOT_FOR_FLOW }
    }

    /// The order that effects are keyed by: only facts about a payment bring one. A chat or a clock in a cycle that knows
    /// an order may come many times for it.
    pub(super) fn order(&self) -> Option<&'a OrderRef> {
        self.event.data.order.as_ref().filter(|_| self.event.kind.payment_rank().is_some())
    }
}

impl<'a> Draft<'a> {
    pub(super) fn open(
        flow: &'a Flow,
        stored: &'a ContactView,
        view: &'a ContactView,
        setup: &'a Setup,
        now: Timestamp,
    ) -> Self {
        let contact = Contact { version: view.contact.version + 1, ..view.contact.clone() };
        let (decision, result) = (Decision::default(), String::new());
        Self { flow, stored, view, setup, now, contact, decision, result, reason: None }
    }

    /// The cycles of this flow that take events, as they stand now.
    pub(super) fn cycles(&self) -> impl Iterator<Item = &'a Conversation> + use<'a> {
        let flow = self.flow;
        self.view.conversations.iter().filter(move |cycle| !cycle.closed && cycle.flow == flow.name)
    }

    /// Puts a cycle into the decision, if the decision changed it. Once per cycle.
    pub(super) fn keep(&mut self, mut conversation: Conversation) {
        renewal::plan_again(self, self.stored.conversation(conversation.id), &mut conversation);
        if self.stored.conversation(conversation.id) != Some(&conversation) {
            self.decision.conversations.push(conversation);
        }
    }

    /// The rows that say how conversations came into a state that this version of the flow has, before what happened there.
    fn log_moved(&mut self, events: &[Event]) {
        let Some(last) = events.last() else { return };
        let cause = Cause::word(last, FLOW_CHANGED);
        let changed = self.decision.conversations.iter();
        let moved = changed.filter_map(|cycle| {
            let stood = &self.stored.conversation(cycle.id)?.state;
            let stands = &self.view.conversation(cycle.id)?.state;
            (stood != stands).then(|| (cycle.id, stood.clone(), stands.clone()))
        });
        let moved: Vec<_> = moved.collect();
        let happened = std::mem::take(&mut self.decision.transitions);
        for (id, from, to) in moved {
            let version = format!("version {} of the flow", self.flow.version);
            self.log(id, &cause, (&from, &to), Some(version), Vec::new());
        }
        self.decision.transitions.extend(happened);
    }

    /// Takes note of the contact's own messages: when, and on which channel. Never backwards, and never into the future
    /// of a phone whose clock is wrong.
    pub(super) fn remember_inbound(&mut self, messages: &[Event]) {
        for message in messages {
            self.remember_person(message, false);
            let at = message.occurred_at.min(message.received_at);
            let is_newer = self.contact.last_inbound_at.is_none_or(|last| last <= at);
            if is_newer {
                self.contact.last_inbound_at = Some(at);
            }
            if is_newer && message.data.channel.is_some() {
                self.contact.last_channel = message.data.channel.clone();
            }
        }
    }

    /// Takes note of what an event says of the person. A platform's newer word replaces what we had; the name that
    /// somebody gave a chat profile only fills a gap.
    pub(super) fn remember_person(&mut self, event: &Event, replace: bool) {
        for (name, value) in event.data.vars.iter().filter(|(name, _)| name.starts_with("contact.")) {
            if replace || !self.contact.vars.contains_key(name) {
                self.contact.vars.insert(name.clone(), value.clone());
            }
        }
    }

    /// Takes note of what an event says of the sale.
    pub(super) fn remember_in(&self, conversation: &mut Conversation, event: &Event, replace: bool) {
        for (name, value) in event.data.vars.iter().filter(|(name, _)| !name.starts_with("contact.")) {
            if replace || !conversation.vars.contains_key(name) {
                conversation.vars.insert(name.clone(), value.clone());
            }
        }
    }

    /// Where answers and reminders of this decision go.
    pub(super) fn channel(&self, event: &Event) -> ChannelName {
        let of_message = (event.kind == EventKind::MessageReceived).then(|| event.data.channel.clone()).flatten();
        of_message
            .or_else(|| self.contact.last_channel.clone())
            .or_else(|| event.data.channel.clone())
            .unwrap_or_else(|| self.setup.default_channel.clone())
    }

    /// Closes waiting tasks; those under way are marked (D2).
    pub(super) fn close_tasks(&mut self, tasks: Vec<TaskId>, reason: Reason) {
        if tasks.is_empty() {
            return;
        }
        // A row may arm twice; what the first armed was never promised.
        self.decision.new_tasks.retain(|task| !tasks.contains(&task.id));
        self.decision.close.push(Close { scope: CloseScope::Tasks(tasks), except: Vec::new(), reason });
    }

    /// Takes a task over from a contact that turned out to be this one.
    pub(super) fn adopt(&mut self, task: Task) {
        let (contact, bucket, updated_at) = (self.contact.id, self.contact.bucket, self.now);
        self.decision.adopted.push(Task { contact, bucket, updated_at, ..task });
    }

    /// Closes tasks asked for through the API that name this kind in `cancel_on`.
    pub(super) fn close_asked_for(&mut self, kind: EventKind) {
        let asked = self.view.tasks.iter().filter(|task| !task.status.is_final() && task.cancel_on.contains(&kind));
        let asked = asked.map(|task| task.id.clone()).collect();
        self.close_tasks(asked, Reason::closing(kind));
    }

    /// Records that the table moved nothing. A flow is not asked about receipts and channels, so its log is not filled
    /// with them.
    pub(super) fn note(&mut self, conversation: &Conversation, cause: &Cause<'_>, reason: &str) {
        let state = conversation.state.clone();
        if reason != NOT_FOR_FLOW {
            self.log(conversation.id, cause, (&state, &state), Some(reason.to_owned()), Vec::new());
        }
        self.result = format!("{state} ({reason})");
        self.reason = Some(reason.to_owned());
    }

    /// Records that nothing was asked of any cycle.
    pub(super) fn ignore(&mut self, reason: &str) {
        self.answer(reason);
        self.reason = Some(reason.to_owned());
    }

    /// Says in one line how the event ended.
    pub(super) fn answer(&mut self, result: impl Into<String>) {
        self.result = result.into();
    }

    /// Appends a row to the transition log.
    pub(super) fn log(
        &mut self,
        conversation: ConversationId,
        cause: &Cause<'_>,
        (from, to): (&str, &str),
        reason: Option<String>,
        actions: Vec<String>,
    ) {
        self.decision.transitions.push(Transition {
            contact: self.contact.id,
            conversation,
            from: from.to_owned(),
            event: cause.word.clone(),
            taken_as: cause.taken_as.clone(),
            to: to.to_owned(),
            reason: reason.or_else(|| cause.flag.map(str::to_owned)),
            actions,
            rule: cause.rule.clone(),
            event_id: cause.event.id,
            at: self.now,
        });
    }

    /// The finished decision: every event has its end.
    pub(super) fn close(mut self, events: &[Event]) -> Decision {
        // An event that only closed promises (a refund the table has no row for) had its effect: it was decided.
        let decided = self.reason.is_none() || !self.decision.close.is_empty();
        let outcome = |event: &Event| EventOutcome {
            event: event.id,
            decided,
            result: self.result.clone(),
            reason: self.reason.clone(),
        };
        self.decision.events = events.iter().map(outcome).collect();
        self.log_moved(events);
        self.decision.contact = Some(self.contact);
        self.decision
    }
}
