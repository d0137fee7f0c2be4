//! Following a row: the new state, what the row promises, and the deadline after it (C1, "one clock, never two reminders").

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use crate::cadence;
use crate::event::EventKind;
use crate::flow::{Action, Cadence, Flow, Row};
use crate::ids::TaskId;
use crate::send_check::Reason;
use crate::state::{Conversation, Previous, RunningCadence};
use crate::task::{MessageClass, OnAmbiguous, Reference, Task, TaskKind, TaskStatus};

use super::draft::{Cause, Draft};
use super::{cycle, payment};

/// How late a reminder may leave that belongs to no cadence: as late as a first touch (D5).
const REMINDER_MAX_LATE: Duration = Duration::from_secs(40 * 60);

/// How far ahead a deadline lies at least that is set again because its wait is not over.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The row for a fact in a state. A flow without a table answers with the cadence that the fact starts (`starts_with`).
pub(super) fn row_for_fact<'f>(flow: &'f Flow, state: &str, kind: EventKind) -> Option<Cow<'f, Row>> {
    if let Some(row) = flow.word_of(kind).and_then(|word| flow.row(state, word)) {
        return Some(Cow::Borrowed(row));
    }
    let has_table = flow.has_table();
    let (name, _) = flow.cadences.iter().find(|(_, cadence)| !has_table && cadence.starts_with == Some(kind))?;
    let (from, except, event) = (Vec::new(), Vec::new(), kind.as_str().to_owned());
    Some(Cow::Owned(Row { from, except, event, to: None, actions: vec![Action::StartCadence(name.clone())] }))
}

/// Whether the flow answers a fact of this kind in a state.
pub(super) fn answers(flow: &Flow, state: &str, kind: EventKind) -> bool {
    row_for_fact(flow, state, kind).is_some()
}

/// Moves a cycle without a row of the table (operators).
pub(super) fn move_to(draft: &mut Draft<'_>, conversation: &mut Conversation, to: &str, cause: &Cause<'_>) {
    let (from, except, event) = (Vec::new(), Vec::new(), cause.word.clone());
    let row = Row { from, except, event, to: Some(to.to_owned()), actions: Vec::new() };
    follow(draft, conversation, &row, cause);
}

/// Takes a row.
pub(super) fn follow(draft: &mut Draft<'_>, conversation: &mut Conversation, row: &Row, cause: &Cause<'_>) {
    let was_at_rest = cycle::is_at_rest(draft.flow, conversation);
    let from = conversation.state.clone();
    let to = row.to.clone().unwrap_or_else(|| from.clone());
    conversation.state.clone_from(&to);
    conversation.version += 1;
    conversation.flow_version = draft.flow.version;
    conversation.updated_at = draft.now;
    // Before the actions: what the row arms belongs to the state after it, not to the one that is left.
    leave(draft, conversation, cause);
    let reason = act(draft, conversation, row, cause).map(str::to_owned).or_else(|| cause.remark.clone());
    // Whoever comes back is greeted with where it stopped, and that is where it stood before it came to an end (C9).
    if from != to && !was_at_rest {
        let (state, event) = (Some(from.clone()), Some(cause.word.clone()));
        conversation.previous = Previous { state, event, reason: reason.clone() };
    }
    // Last, since the clock depends on the state and on what was armed.
    set_deadline(draft, conversation);
    let actions: Vec<String> = row.actions.iter().map(name_of).collect();
    let shown = if actions.is_empty() { String::new() } else { format!(" ({})", actions.join(", ")) };
    draft.answer(format!("{from} -> {to}{shown}"));
    draft.log(conversation.id, cause, (&from, &to), reason, actions);
}

/// Ends the running cadence where the cycle stands in none of its states any more.
fn leave(draft: &mut Draft<'_>, conversation: &mut Conversation, cause: &Cause<'_>) {
    if running(draft.flow, conversation).is_none() && conversation.cadence.is_some() {
        end_touches(draft, conversation, Reason::Superseded, cause.touch.as_ref());
        conversation.cadence = None;
    }
}

/// The cadence that gives the cycle its clock: armed, and alive in its state.
pub(super) fn running<'a>(flow: &'a Flow, conversation: &'a Conversation) -> Option<(&'a RunningCadence, &'a Cadence)> {
    let running = conversation.cadence.as_ref()?;
    let cadence = flow.cadences.get(&running.name)?;
    cadence::runs_in(cadence, &conversation.state).then_some((running, cadence))
}

/// Does what a row says. Answers why something of it was left out.
fn act(draft: &mut Draft<'_>, conversation: &mut Conversation, row: &Row, cause: &Cause<'_>) -> Option<&'static str> {
    let arms = row.actions.iter().any(|action| matches!(action, Action::StartCadence(_)));
    // The send of a row that arms a cadence stands for that cadence's first touch.
    let lead = row.actions.iter().position(|action| arms && matches!(action, Action::Send(_)));
    let mut left_out = None;
    for (position, action) in row.actions.iter().enumerate() {
        let refused = match action {
            // Names the touch that fell due, never an extra message.
            Action::Send(_) if cause.touch.is_some() => None,
            Action::Send(_) if Some(position) == lead => None,
            Action::Send(message) => promise(draft, conversation, message, cause),
            Action::StartCadence(name) => {
                let lead = lead.filter(|_| cause.touch.is_none()).map(|position| &row.actions[position]);
                let lead =
                    lead.and_then(|action| if let Action::Send(message) = action { Some(message) } else { None });
                arm(draft, conversation, name, lead, cause)
            }
            Action::CancelCadence(name) => {
                if conversation.cadence.as_ref().is_some_and(|running| running.name == *name) {
                    end_touches(draft, conversation, Reason::Cancelled, None);
                }
                None
            }
            Action::Call(channel) => {
                call(draft, conversation, channel, cause);
                None
            }
            Action::Notify(whom) => {
                tell(draft, Some(conversation), whom, cause);
                None
            }
        };
        left_out = left_out.or(refused);
    }
    left_out
}

/// Promises a message now.
fn promise(
    draft: &mut Draft<'_>,
    conversation: &Conversation,
    message: &str,
    cause: &Cause<'_>,
) -> Option<&'static str> {
    let mut task = task(draft, conversation, effect_id(conversation, message, cause), message, cause);
    if draft.contact.opted_out_at.is_some() && !task.class.outlives_the_sale() {
        return Some(Reason::OptedOut.as_str());
    }
    // What was paid is delivered once, to the best match of all whom the payment reaches (C11).
    if task.class == MessageClass::Receipt && cause.event.data.delivered_elsewhere {
        return Some("delivered_elsewhere");
    }
    task.max_late = (task.class == MessageClass::Reminder).then_some(REMINDER_MAX_LATE);
    add(draft, task);
    None
}

/// Calls an HTTP channel with the conversation and the words that led to it (C13). Whatever it wants said comes back through
/// the API, as a task with a check of its own.
fn call(draft: &mut Draft<'_>, conversation: &Conversation, channel: &str, cause: &Cause<'_>) {
    let text = cause.event.data.text.clone().unwrap_or_default();
    let told = internal(draft, Some(conversation), TaskKind::Call, &format!("call:{channel}"), text, channel, cause);
    add(draft, told);
}

/// Tells a person of the seller's (C13).
pub(super) fn tell(draft: &mut Draft<'_>, conversation: Option<&Conversation>, whom: &str, cause: &Cause<'_>) {
    let name = draft.contact.vars.get("contact.first_name").map_or("?", String::as_str);
    let state = conversation.map_or("-", |cycle| cycle.state.as_str());
    let text = format!("{name}: {state} ({})", cause.word);
    let told = internal(draft, conversation, TaskKind::Notify, &format!("notify:{whom}"), text, whom, cause);
    add(draft, told);
}

/// A task for the seller's own tools and people.
fn internal(
    draft: &Draft<'_>,
    conversation: Option<&Conversation>,
    kind: TaskKind,
    message: &str,
    text: String,
    channel: &str,
    cause: &Cause<'_>,
) -> Task {
    // By the fact, so that one told twice calls once; another fact of the same order is another call.
    let id = TaskId::from(match cause.order() {
        Some(order) => format!("{}:{}:{message}:{}", order.scope(), cause.event.kind, order.transaction),
        None => format!("{message}:{}", cause.event.id),
    });
    let meant = (MessageClass::Internal, None);
    let bare = bare(draft, conversation, id, message, meant, cause);
    Task { kind, text: Some(text), channel: channel.into(), ..bare }
}

/// Adds a task. Two sends of one row are two effects, even of one message.
fn add(draft: &mut Draft<'_>, mut task: Task) {
    let id = task.id.clone();
    let is_taken = |draft: &Draft<'_>, id: &TaskId| draft.decision.new_tasks.iter().any(|task| task.id == *id);
    let mut copy = 2;
    while is_taken(draft, &task.id) {
        task.id = TaskId::from(format!("{id}:{copy}"));
        copy += 1;
    }
    draft.decision.new_tasks.push(task);
}

/// Effects of payment facts are keyed by the transaction, so that the same fact told twice has them once (C9); answers
/// and what the clock brings, by the version of the cycle.
fn effect_id(conversation: &Conversation, message: &str, cause: &Cause<'_>) -> TaskId {
    TaskId::from(match cause.order() {
        Some(order) => format!("{}:{message}:{}", order.scope(), order.transaction),
        None => format!("{message}:{}.{}", conversation.id, conversation.version),
    })
}

/// Arms a cadence: every touch is promised at once (D2). One cadence runs per cycle, so what another one still had to say
/// is superseded.
fn arm(
    draft: &mut Draft<'_>,
    conversation: &mut Conversation,
    name: &str,
    lead: Option<&String>,
    cause: &Cause<'_>,
) -> Option<&'static str> {
    // Late facts never start reminders for what is paid, whichever contact holds the payment (DESIGN.md, "Intake").
    if cause.order().or(conversation.order.as_ref()).is_some_and(|order| payment::is_paid(draft, order)) {
        return Some("late_fact");
    }
    if draft.contact.opted_out_at.is_some() {
        return Some(Reason::OptedOut.as_str());
    }
    let cadence = draft.flow.cadences.get(name).expect("a checked flow names only its own cadences");
    let key = cadence::key(cadence, cause.order(), conversation.id, conversation.version);
    // The same PIX told twice promises nothing new.
    if conversation.cadence.as_ref().is_some_and(|running| running.name == name && running.key == key) {
        return None;
    }
    end_touches(draft, conversation, Reason::Superseded, cause.touch.as_ref());
    // Touches count from what the platform says happened; a clock of theirs that runs ahead of ours moves nothing.
    let told = cause.event.kind.payment_rank().map(|_| cause.event.occurred_at.min(cause.event.received_at));
    let value = |name: &str| conversation.vars.get(name)?.parse::<Timestamp>().ok();
    let armed = cadence::arm(name, cadence, key, told.unwrap_or(draft.now), lead.map(|_| draft.now), value);
    for running in &armed.touches {
        // By id, since a touch without its anchor was left out.
        let declared = (1..).zip(&cadence.touches);
        let mut of_running = declared.filter(|(_, touch)| cadence::touch_id(&armed.key, &touch.id) == running.task);
        let (number, touch) = of_running.next().expect("a running touch is one of its cadence's");
        let message = lead.filter(|_| running.handed).unwrap_or(&touch.send);
        let promised = task(draft, conversation, running.task.clone(), message, cause);
        draft.decision.new_tasks.push(Task {
            kind: TaskKind::Touch,
            cadence: Some(name.to_owned()),
            touch: Some(touch.id.clone()),
            touch_no: Some(number),
            scheduled_for: running.due_at,
            next_attempt_at: running.due_at,
            handed: running.handed,
            max_late: Some(touch.max_late),
            ..promised
        });
    }
    conversation.cadence = Some(armed);
    None
}

/// A task of this cycle, due and handed over now.
fn task(draft: &Draft<'_>, conversation: &Conversation, id: TaskId, message: &str, cause: &Cause<'_>) -> Task {
    let meant = draft.flow.messages.get(message).expect("a checked flow names only its own messages");
    bare(draft, Some(conversation), id, message, (meant.class, meant.on_ambiguous), cause)
}

fn bare(
    draft: &Draft<'_>,
    conversation: Option<&Conversation>,
    id: TaskId,
    message: &str,
    (class, on_ambiguous): (MessageClass, Option<OnAmbiguous>),
    cause: &Cause<'_>,
) -> Task {
    let now = cadence::whole_ms(draft.now);
    let var = |name: &str| conversation.and_then(|cycle| cycle.vars.get(name).cloned());
    Task {
        id,
        tenant: draft.contact.tenant.clone(),
        bucket: draft.contact.bucket,
        contact: draft.contact.id,
        conversation: conversation.map(|cycle| cycle.id),
        flow: draft.flow.name.clone(),
        kind: TaskKind::Message,
        cadence: None,
        touch: None,
        touch_no: None,
        message: message.to_owned(),
        text: None,
        class,
        channel: draft.channel(cause.event),
        reference: Reference {
            order: cause.event.data.order.clone().or_else(|| conversation.and_then(|cycle| cycle.order.clone())),
            amount: var("order.total"),
            link: var("checkout.url"),
        },
        scheduled_for: now,
        next_attempt_at: now,
        handed: true,
        max_late: None,
        on_ambiguous,
        cancel_on: Vec::new(),
        status: TaskStatus::Scheduled,
        reason: None,
        avoided: false,
        attempts: 0,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        local_time: None,
        created_at: now,
        updated_at: now,
    }
}

/// Closes what the running cadence has not sent. It counts as handed, so that its clock goes straight to the grace.
pub(super) fn end_touches(
    draft: &mut Draft<'_>,
    conversation: &mut Conversation,
    reason: Reason,
    except: Option<&TaskId>,
) {
    let Some(running) = &mut conversation.cadence else { return };
    let is_open = |id: &TaskId| {
        let promised = draft.view.tasks.iter().filter(|task| !task.status.is_final());
        promised.chain(&draft.decision.new_tasks).any(|task| task.id == *id)
    };
    let unsent = running.touches.iter().map(|touch| &touch.task).filter(|id| Some(*id) != except && is_open(id));
    let unsent: Vec<TaskId> = unsent.cloned().collect();
    for touch in running.touches.iter_mut().filter(|touch| !touch.handed) {
        touch.handed = true;
        touch.due_at = touch.due_at.min(cadence::whole_ms(draft.now));
    }
    draft.close_tasks(unsent, reason);
}

/// Sets the deadline anew: the next touch of the cadence that runs here, or its grace; else the state's own; else none.
pub(super) fn set_deadline(draft: &Draft<'_>, conversation: &mut Conversation) {
    conversation.deadline_at = deadline(draft, conversation).map(cadence::whole_ms);
}

fn deadline(draft: &Draft<'_>, conversation: &Conversation) -> Option<Timestamp> {
    // To whoever asked for silence no deadline has anything to say.
    if draft.contact.opted_out_at.is_some() {
        return None;
    }
    if let Some((running, cadence)) = running(draft.flow, conversation) {
        let grace_ends = || silence_ends(draft, cadence::last_due(running), cadence).max(look_again(draft.now));
        return Some(cadence::next_due(running).unwrap_or_else(grace_ends));
    }
    let timeout = draft.flow.states.get(&conversation.state)?.timeout?;
    let seed = format!("{}.{}", conversation.id, conversation.version);
    Some(draft.now + timeout.after + cadence::jitter(&seed, timeout.jitter))
}

/// When a grace of silence has passed, counted from the last touch or the contact's own last word.
pub(super) fn silence_ends(draft: &Draft<'_>, last_touch: Timestamp, cadence: &Cadence) -> Timestamp {
    let silent_since = draft.contact.last_inbound_at.map_or(last_touch, |inbound| inbound.max(last_touch));
    cadence::whole_ms(silent_since + cadence.grace)
}

/// The earliest instant of a deadline that is set again because its wait is not over: never one that passed already, or
/// its timeout would be taken for a repetition.
pub(super) fn look_again(now: Timestamp) -> Timestamp {
    cadence::whole_ms(now) + LOOK_AGAIN
}

fn name_of(action: &Action) -> String {
    match action {
        Action::Send(message) => message.clone(),
        Action::Call(channel) => format!("call: {channel}"),
        Action::Notify(whom) => format!("notify: {whom}"),
        Action::StartCadence(name) => format!("start_cadence: {name}"),
        Action::CancelCadence(name) => format!("cancel_cadence: {name}"),
    }
}
