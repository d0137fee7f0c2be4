//! The world of one invented contact: an inbox, a view, a clock that jumps to whatever is due next.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{Closed, Played, SentMessage};
use crate::burst::burst_ready_at;
use crate::calendar;
use crate::compose::{Composed, compose};
use crate::decide::{Setup, decide};
use crate::decision::Transition;
use crate::event::{Deadline, Event, EventData, EventKind, Operator, OrderRef};
use crate::flow::Flow;
use crate::ids::{BucketNo, ContactId, ConversationId, EventId, TaskId, Tenant};
use crate::outcome::{AttemptEnd, Chances, NextStep, Outcome, after_attempt};
use crate::retry::RetryPolicy;
use crate::scenario::Step;
use crate::send_check::{CheckInput, Guard, Verdict, check};
use crate::state::{Contact, ContactView, Conversation, PaymentFact, SendMark};
use crate::task::{Task, TaskStatus};

/// The platform, the account and the source of invented events.
const INVENTED: &str = "cenario";

/// The world of a scenario.
pub(super) struct World<'f> {
    flow: &'f Flow,
    setup: Setup,
    now: Timestamp,
    view: ContactView,
    /// Task ids ever claimed; none is given twice.
    claimed: BTreeSet<TaskId>,
    /// Deadlines whose timeout was emitted; a second one would be a repetition.
    emitted: BTreeSet<(ConversationId, Timestamp)>,
    /// Tasks that came to their end and left the view.
    finished: Vec<Task>,
    /// Cycles that were closed and left the view.
    closed_cycles: Vec<Conversation>,
    events: u128,
    sent: Vec<SentMessage>,
    closed: Vec<Closed>,
    transitions: Vec<Transition>,
    log: Vec<String>,
}

impl<'f> World<'f> {
    pub(super) fn new(flow: &'f Flow, start: Timestamp) -> Self {
        let contact = Contact {
            id: ContactId(Uuid::from_u128(1)),
            tenant: Tenant::default(),
            bucket: BucketNo(0),
            version: 0,
            opted_out_at: None,
            paused_until: None,
            last_inbound_at: None,
            last_channel: None,
            vars: std::collections::BTreeMap::new(),
            cycles: 0,
            ping_pong: Default::default(),
        };
        let (identities, conversations, tasks) = (Vec::new(), Vec::new(), Vec::new());
        let (sends, undecided, facts) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            flow,
            setup: Setup { default_channel: INVENTED.into() },
            now: start,
            view: ContactView {
                contact,
                identities,
                conversations,
                tasks,
                sends,
                undecided,
                facts,
                echoes: Vec::new(),
            },
            claimed: BTreeSet::new(),
            emitted: BTreeSet::new(),
            finished: Vec::new(),
            closed_cycles: Vec::new(),
            events: 0,
            sent: Vec::new(),
            closed: Vec::new(),
            transitions: Vec::new(),
            log: Vec::new(),
        }
    }

    /// An event arrives, as intake would store it: payment facts are on record at once, decided or not.
    pub(super) fn receive(&mut self, step: &Step, start: Timestamp) {
        let invented = |transaction: &String| OrderRef {
            platform: INVENTED.to_owned(),
            account: INVENTED.to_owned(),
            transaction: transaction.clone(),
        };
        let operator = step.event.as_str().starts_with("operator.").then(|| Operator {
            actor: INVENTED.to_owned(),
            until: step.until.map(|until| start + until),
            conversation: None,
            to: step.to.clone(),
            with: None,
            reason: None,
        });
        let data = EventData {
            text: step.text.clone(),
            order: step.order.as_ref().map(invented),
            offer: step.offer.clone(),
            vars: step.vars.clone(),
            operator,
            ..EventData::default()
        };
        let event = Event { occurred_at: start + step.occurred_at, ..self.event(step.event, data) };
        if let (Some(order), Some(_)) = (&event.data.order, event.kind.payment_rank()) {
            let (order, kind, occurred_at) = (order.clone(), event.kind, event.occurred_at);
            self.view.facts.push(PaymentFact { order, kind, occurred_at });
        }
        let text = step.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        self.tell(format!("<- {}{text}", event.kind));
        self.view.undecided.push(event);
    }

    /// Lets everything happen that is due before `until`, and moves the clock there. What arrives at that very instant is
    /// received before what is due then.
    pub(super) fn run_until(&mut self, until: Timestamp) {
        loop {
            while self.decide_next() || self.emit_timeout() || self.deliver_next() {}
            match self.next_instant() {
                Some(next) if next < until => self.now = next.max(self.now),
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    /// The end of the story.
    pub(super) fn end(mut self) -> Played {
        let held = self.view.tasks.iter().filter(|task| task.status == TaskStatus::Held);
        self.closed.extend(held.filter_map(closed_as_it_stands));
        let mut conversations = self.closed_cycles;
        conversations.append(&mut self.view.conversations);
        conversations.sort_by_key(|cycle| cycle.ordinal);
        let mut tasks = self.finished;
        tasks.append(&mut self.view.tasks);
        let Self { sent, closed, transitions, log, .. } = self;
        Played { sent, closed, conversations, transitions, tasks, log }
    }

    fn event(&mut self, kind: EventKind, data: EventData) -> Event {
        self.events += 1;
        let asks_for_silence = data.text.as_deref().is_some_and(|text| self.flow.classifier.is_opt_out(text));
        Event {
            id: EventId(Uuid::from_u128(self.events)),
            tenant: self.view.contact.tenant.clone(),
            bucket: self.view.contact.bucket,
            source: INVENTED.into(),
            kind,
            contact: Some(self.view.contact.id),
            occurred_at: self.now,
            received_at: self.now,
            urgent: kind.bypasses_debounce() || asks_for_silence,
            data,
        }
    }

    /// Decides what may be decided now: a fact, or a burst that has ended. Answers whether there was something.
    fn decide_next(&mut self) -> bool {
        let (chat, facts): (Vec<&Event>, Vec<&Event>) =
            self.view.undecided.iter().partition(|event| !event.kind.bypasses_debounce());
        let events: Vec<Event> = match facts.first() {
            // Facts pass a waiting burst at once; the burst stands at its end.
            Some(fact) => vec![(*fact).clone()],
            // So does an opt-out, with what was said before it.
            None if chat.iter().any(|event| event.urgent) => chat.into_iter().cloned().collect(),
            None => {
                let Some(ready_at) = self.burst_ends() else { return false };
                if ready_at > self.now {
                    return false;
                }
                chat.into_iter().filter(|event| event.received_at <= ready_at).cloned().collect()
            }
        };
        self.decide(&events);
        true
    }

    fn burst_ends(&self) -> Option<Timestamp> {
        let chat = self.view.undecided.iter().filter(|event| !event.kind.bypasses_debounce());
        let received: Vec<Timestamp> = chat.map(|event| event.received_at).collect();
        (!received.is_empty()).then(|| burst_ready_at(&received, self.flow.debounce))
    }

    fn decide(&mut self, events: &[Event]) {
        let mut decision = decide(self.flow, &self.view, events, &self.setup, self.now);
        // An id that was ever claimed adds nothing.
        decision.new_tasks.retain(|task| self.claimed.insert(task.id.clone()));
        let was_open: BTreeSet<TaskId> = self.open_tasks().map(|task| task.id.clone()).collect();
        decision.apply(&mut self.view, self.now);
        self.closed_cycles.extend(decision.conversations.iter().filter(|cycle| cycle.closed).cloned());
        if let Some(outcome) = decision.events.last() {
            self.tell(format!("   {}", outcome.result));
        }
        let ended = self.view.tasks.iter().filter(|task| was_open.contains(&task.id) && task.status.is_final());
        let ended: Vec<Closed> = ended.filter_map(closed_as_it_stands).collect();
        self.close(ended);
        self.transitions.append(&mut decision.transitions);
    }

    fn close(&mut self, ended: Vec<Closed>) {
        for closed in ended {
            let name = closed.touch.as_ref().unwrap_or(&closed.message);
            self.tell(format!("   x {name}: {}", closed.reason));
            self.closed.push(closed);
        }
        self.retire();
    }

    /// Lets tasks that came to their end leave the view, as a store does; touches of running cadences stay.
    fn retire(&mut self) {
        let running = self.view.conversations.iter().filter_map(|cycle| cycle.cadence.as_ref());
        let running: BTreeSet<TaskId> =
            running.flat_map(|cadence| &cadence.touches).map(|touch| touch.task.clone()).collect();
        let (gone, stay) = std::mem::take(&mut self.view.tasks)
            .into_iter()
            .partition(|task| task.status.is_final() && !running.contains(&task.id));
        self.view.tasks = stay;
        self.finished.extend::<Vec<Task>>(gone);
    }

    /// The sweeper: a deadline that passed becomes a timeout event, once.
    fn emit_timeout(&mut self) -> bool {
        let passed = self.deadlines().filter(|(at, _)| *at <= self.now).min();
        let Some((at, conversation)) = passed else { return false };
        self.emitted.insert((conversation, at));
        let data = EventData { deadline: Some(Deadline { conversation, at }), ..EventData::default() };
        let event = Event { occurred_at: at, ..self.event(EventKind::ClockTimeout, data) };
        self.view.undecided.push(event);
        true
    }

    fn deadlines(&self) -> impl Iterator<Item = (Timestamp, ConversationId)> {
        let set = self.view.conversations.iter().filter_map(|cycle| Some((cycle.deadline_at?, cycle.id)));
        set.filter(|(at, conversation)| !self.emitted.contains(&(*conversation, *at)))
    }

    /// The deliverer: one due task is checked, and sent or settled.
    fn deliver_next(&mut self) -> bool {
        let due = self.handed_tasks().filter(|task| task.next_attempt_at <= self.now);
        let Some(task) = due.min_by_key(|task| task.scheduled_for).cloned() else { return false };
        let Composed { text, perished, .. } = compose(self.flow, &self.view, &task, self.now);
        let missing = text.clone().err();
        let (view, flow, channel_stopped) = (&self.view, self.flow, false);
        let receipts_told = false;
        // In a story, who paid is told by its events.
        let guard = Some(Guard::Unpaid);
        let input = CheckInput { task: &task, view, flow, channel_stopped, receipts_told, guard, missing, perished };
        let verdict = check(&input, self.now);
        match verdict {
            Verdict::Send => self.send(task, text.unwrap_or_default()),
            Verdict::Avoid(reason) => {
                let avoided = Task { status: TaskStatus::Cancelled, reason: Some(reason), avoided: true, ..task };
                self.update(avoided);
            }
            Verdict::Defer(reason, until) => {
                self.tell(format!("   .. {} waits until {}: {reason}", task.message, self.local(until)));
                // A deferral to now would be no deferral.
                let next_attempt_at = until.max(self.now + Duration::from_secs(1));
                self.update(Task { reason: Some(reason), next_attempt_at, ..task });
            }
            Verdict::Hold(reason, missing) => {
                self.tell(format!("   .. {} is held: {reason} ({missing})", task.message));
                self.update(Task { status: TaskStatus::Held, reason: Some(reason), ..task });
            }
        }
        true
    }

    fn send(&mut self, task: Task, text: String) {
        let attempt = task.attempts + 1;
        self.view.sends.push(SendMark { at: self.now, class: task.class, receipt: None });
        let sending = Task { status: TaskStatus::Sending, attempts: attempt, ..task };
        // Invented recipients are reachable and providers never fail, so that a scenario shows the flow and nothing else.
        let accepted = AttemptEnd {
            outcome: Outcome::Accepted,
            http_status: Some(200),
            error: None,
            response: None,
            provider_message_id: Some(format!("{INVENTED}-{attempt}-{}", sending.id)),
            retry_after: None,
        };
        let rule = Chances { reconcile_for: Duration::ZERO, other_spelling: false };
        let next = after_attempt(&sending, attempt, &accepted, &RetryPolicy::recovery(), rule, self.now);
        let sent = match next {
            NextStep::Sent => Task { status: TaskStatus::Sent, reason: None, ..sending },
            NextStep::Retry { at, .. } => Task { status: TaskStatus::Failed, next_attempt_at: at, ..sending },
            NextStep::Respell { at } => {
                Task { status: TaskStatus::Failed, next_attempt_at: at, respelled: true, ..sending }
            }
            NextStep::Dead => Task { status: TaskStatus::Dead, ..sending },
            NextStep::Unsure { until } => Task { status: TaskStatus::Unsure, reconcile_until: Some(until), ..sending },
            NextStep::Held(reason) => Task { status: TaskStatus::Held, reason: Some(reason), ..sending },
            NextStep::Cancelled(reason) => Task { status: TaskStatus::Cancelled, reason: Some(reason), ..sending },
        };
        let (at, local) = (self.now, self.local(self.now));
        self.tell(format!("-> {}: {}", sent.message, text.trim()));
        self.sent.push(SentMessage { at, local, message: sent.message.clone(), task: sent.id.clone(), text });
        self.update(sent);
    }

    /// Stores a task's new status.
    fn update(&mut self, task: Task) {
        let ended: Vec<Closed> =
            closed_as_it_stands(&task).into_iter().filter(|_| task.status == TaskStatus::Cancelled).collect();
        let now = self.now;
        for old in self.view.tasks.iter_mut().filter(|old| old.id == task.id) {
            *old = Task { updated_at: now, ..task.clone() };
        }
        self.close(ended);
    }

    fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.view.tasks.iter().filter(|task| !task.status.is_final())
    }

    fn handed_tasks(&self) -> impl Iterator<Item = &Task> {
        let waits = |task: &&Task| matches!(task.status, TaskStatus::Scheduled | TaskStatus::Failed);
        self.open_tasks().filter(|task| task.handed).filter(waits)
    }

    /// When something will be due.
    fn next_instant(&self) -> Option<Timestamp> {
        let deadline = self.deadlines().map(|(at, _)| at).min();
        let task = self.handed_tasks().map(|task| task.next_attempt_at).min();
        [self.burst_ends(), deadline, task].into_iter().flatten().min()
    }

    fn local(&self, at: Timestamp) -> jiff::civil::DateTime {
        calendar::zone_of_contact(&self.view, self.flow).to_datetime(at)
    }

    fn tell(&mut self, line: String) {
        let local = self.local(self.now);
        self.log.push(format!("{} {line}", local.strftime("%Y-%m-%d %H:%M:%S")));
    }
}

/// How a task ended, if it ended unsent or is held.
fn closed_as_it_stands(task: &Task) -> Option<Closed> {
    let is_stopped = matches!(task.status, TaskStatus::Cancelled | TaskStatus::Held);
    Some(Closed {
        at: task.updated_at,
        task: task.id.clone(),
        cadence: task.cadence.clone(),
        touch: task.touch.clone(),
        message: task.message.clone(),
        reason: task.reason.filter(|_| is_stopped)?,
    })
}
