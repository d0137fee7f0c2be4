//! The promises of the demo, each a pure look at the evidence. Every violation is one line that a person can follow up; the
//! people in it are invented.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::{ContactId, EventId};
use retoma_core::outcome::Outcome;
use retoma_core::task::{MessageClass, TaskStatus};
use retoma_providers::generate::Schedule;
use retoma_store::{AttemptRow, EventStatus};
use serde_json::Value;

use super::evidence::{Evidence, Promise};
use super::player::Played;
use super::truth::Person;

const STORED: &str = "every acknowledged event is stored once and has an end";
const ONCE: &str = "nothing reached a phone twice but by a declared resend";
const PAID: &str = "no reminder started after the payment was stored";
const SILENT: &str = "after an opt-out only its confirmation and what was paid went out";
const THREE: &str = "at most three reminders per unpaid PIX or cart, and a day";
const QUIET: &str = "no reminder left in quiet hours";
const ENDS: &str = "every message has an end with a reason, or a next time";

/// What is promised, for the summary.
pub(super) const PROMISES: [&str; 7] = [STORED, ONCE, PAID, SILENT, THREE, QUIET, ENDS];

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    promise: &'static str,
    what: String,
}

impl Violation {
    pub(super) fn new(promise: &'static str, what: impl Into<String>) -> Self {
        Self { promise, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// Checks everything.
pub(super) fn check(evidence: &Evidence, schedule: &Schedule, people: &[Person], played: &Played) -> Vec<Violation> {
    let mut found = Vec::new();
    acknowledged_events_are_stored_once(evidence, schedule, played, &mut found);
    deliveries_are_single(evidence, &mut found);
    let by_contact = by_contact(evidence);
    let nothing = Vec::new();
    for person in people {
        let contact = evidence.people.get(&person.match_key);
        let promises = contact.and_then(|contact| by_contact.get(contact)).unwrap_or(&nothing);
        paid_people_are_left_alone(person, promises, &mut found);
        silent_people_are_left_alone(person, promises, &mut found);
    }
    for promises in by_contact.values() {
        reminders_are_few(evidence, promises, &mut found);
    }
    for promise in &evidence.promises {
        quiet_hours_are_kept(evidence, promise, &mut found);
        messages_end(promise, &mut found);
    }
    found
}

fn by_contact(evidence: &Evidence) -> BTreeMap<ContactId, Vec<&Promise>> {
    let mut by_contact: BTreeMap<ContactId, Vec<&Promise>> = BTreeMap::new();
    for promise in &evidence.promises {
        by_contact.entry(promise.row.task.contact).or_default().push(promise);
    }
    by_contact
}

/// Never 1. Copies of a delivery must be answered with the event of the first.
fn acknowledged_events_are_stored_once(
    evidence: &Evidence,
    schedule: &Schedule,
    played: &Played,
    found: &mut Vec<Violation>,
) {
    for (hook, heard) in &played.refused {
        found.push(Violation::new(STORED, format!("webhook {hook} was not acknowledged: {heard}")));
    }
    let mut rows: BTreeMap<EventId, EventStatus> = BTreeMap::new();
    for event in &evidence.events {
        if rows.insert(event.id, event.status).is_some() {
            found.push(Violation::new(STORED, format!("event {} is listed twice", event.id)));
        }
        // Deadlines that passed while the shop closed are decided when it opens again.
        if event.status == EventStatus::Received && event.source.as_str() != "clock" {
            found.push(Violation::new(STORED, format!("event {} ({}) was never decided", event.id, event.kind)));
        }
    }
    let mut ids: BTreeMap<String, EventId> = BTreeMap::new();
    let mut looked_at = BTreeSet::new();
    for one in &played.acknowledged {
        let name = id_of(&schedule.hooks[one.hook].body);
        let first = *ids.entry(name.clone()).or_insert(one.event);
        if first != one.event {
            found.push(Violation::new(STORED, format!("{name} became two events, {first} and {}", one.event)));
        }
        if !looked_at.insert(one.event) {
            continue;
        }
        match rows.get(&one.event) {
            None => found.push(Violation::new(STORED, format!("{name}, event {}, is not in the store", one.event))),
            Some(EventStatus::Decided | EventStatus::Ignored | EventStatus::Received) => {}
            Some(other) => {
                found.push(Violation::new(STORED, format!("{name}, event {}, ended as {}", one.event, other.as_str())));
            }
        }
    }
}

/// What a sender calls a webhook: its event id, its message id, or all it says.
fn id_of(body: &Value) -> String {
    let id = body["id"].as_str().or_else(|| body["data"]["key"]["id"].as_str());
    id.map_or_else(|| body.to_string(), str::to_owned)
}

/// Never 2: by the log, and not by what the program says of itself.
fn deliveries_are_single(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut reached: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (belongs, delivery) in evidence.attribute().into_iter().zip(&evidence.deliveries) {
        match belongs {
            Some(belongs) => reached.entry(belongs.promise).or_default().push(belongs.attempt),
            None => found.push(Violation::new(
                ONCE,
                format!("{} reached {} at {}, and no attempt explains it", delivery.id, delivery.number, delivery.at),
            )),
        }
    }
    for (promise, attempts) in reached {
        let task = &evidence.promises[promise].row.task;
        let allowed = 1 + usize::from(task.resent);
        if attempts.len() > allowed {
            let count = attempts.len();
            found.push(Violation::new(
                ONCE,
                format!("task {} reached its phone {count} times, {allowed} allowed", task.id),
            ));
        }
    }
    for promise in &evidence.promises {
        for attempt in promise.attempts.iter().filter(|attempt| attempt.outcome == Some(Outcome::Accepted)) {
            let is_logged = attempt
                .provider_message_id
                .as_ref()
                .is_none_or(|id| evidence.deliveries.iter().any(|one| one.id == *id));
            if !is_logged {
                found.push(Violation::new(
                    ONCE,
                    format!("task {} was accepted and reached nobody", promise.row.task.id),
                ));
            }
        }
    }
}

/// Attempts of which a byte may have left.
fn started(promise: &Promise) -> impl Iterator<Item = &AttemptRow> {
    promise.attempts.iter().filter(|attempt| attempt.outcome != Some(Outcome::NotSent))
}

/// Never 3, for money.
fn paid_people_are_left_alone(person: &Person, promises: &[&Promise], found: &mut Vec<Violation>) {
    let Some(paid) = &person.paid else { return };
    for promise in promises.iter().filter(|promise| promise.row.task.class == MessageClass::Reminder) {
        if let Some(late) = started(promise).find(|attempt| attempt.started_at > paid.at) {
            let task = &promise.row.task;
            let what = format!(
                "{} ({:?}) paid {} at {}, task {} started at {}",
                person.phone, person.story, paid.transaction, paid.at, task.id, late.started_at
            );
            found.push(Violation::new(PAID, what));
        }
    }
    let access = format!("hotmart:entregar_acesso:{}", paid.transaction);
    if !promises.iter().any(|promise| promise.row.task.id.as_str() == access) {
        found.push(Violation::new(
            ENDS,
            format!("{} paid {} and was promised no access", person.phone, paid.transaction),
        ));
    }
}

/// Never 3, for silence.
fn silent_people_are_left_alone(person: &Person, promises: &[&Promise], found: &mut Vec<Violation>) {
    let confirmations = promises.iter().filter(|promise| promise.row.task.class == MessageClass::OptOutAck).count();
    let Some(silence) = &person.silence else {
        if confirmations > 0 {
            let what = format!("{} ({:?}) never asked for silence and was given it", person.phone, person.story);
            found.push(Violation::new(SILENT, what));
        }
        return;
    };
    if confirmations > 1 {
        found.push(Violation::new(
            SILENT,
            format!("{} was told {confirmations} times that nothing more comes", person.phone),
        ));
    }
    let talks = |class| matches!(class, MessageClass::Reminder | MessageClass::Reply);
    for promise in promises.iter().filter(|promise| talks(promise.row.task.class)) {
        let is_silent = |at: Timestamp| at > silence.from && silence.until.is_none_or(|until| at < until);
        if let Some(late) = started(promise).find(|attempt| is_silent(attempt.started_at)) {
            let task = &promise.row.task;
            let what = format!(
                "{} ({:?}) asked for silence at {}, task {} started at {}",
                person.phone, person.story, silence.from, task.id, late.started_at
            );
            found.push(Violation::new(SILENT, what));
        }
    }
}

/// Three touches of one cadence; three reminders about one order, unless the contact wrote meanwhile (then the talk went on,
/// and fell silent anew); and the caps of the flow over all of them.
fn reminders_are_few(evidence: &Evidence, promises: &[&Promise], found: &mut Vec<Violation>) {
    let reminders = || promises.iter().filter(|promise| promise.row.task.class == MessageClass::Reminder);
    let contact = promises[0].row.task.contact;
    let wrote = evidence.wrote(contact);
    let mut by_cause: BTreeMap<String, usize> = BTreeMap::new();
    for promise in reminders().filter(|promise| left(promise).next().is_some()) {
        let task = &promise.row.task;
        let cadence =
            task.cadence.as_ref().and_then(|_| task.id.as_str().rsplit_once(':')).map(|(key, _)| key.to_owned());
        let order = task.reference.order.as_ref().map(|order| format!("order {}", order.transaction));
        for cause in cadence.into_iter().chain(order.filter(|_| !wrote)) {
            *by_cause.entry(cause).or_default() += 1;
        }
    }
    for (cause, count) in by_cause.into_iter().filter(|(_, count)| *count > 3) {
        found.push(Violation::new(THREE, format!("{count} reminders about {cause}")));
    }
    let mut instants: Vec<Timestamp> = reminders().flat_map(left).map(|attempt| attempt.started_at).collect();
    instants.sort();
    for cap in &evidence.flow.limits.frequency {
        let per = SignedDuration::try_from(cap.per).unwrap_or(SignedDuration::MAX);
        for at in &instants {
            let window = instants.iter().filter(|other| *other <= at && at.duration_since(**other) < per).count();
            if window > cap.max as usize {
                found.push(Violation::new(
                    THREE,
                    format!("contact {contact} got {window} reminders within {:?} of {at}", cap.per),
                ));
            }
        }
    }
}

/// Attempts that were, or may have been, sent.
fn left<'a>(promise: &'a &Promise) -> impl Iterator<Item = &'a AttemptRow> {
    let sent = [Some(Outcome::Accepted), Some(Outcome::Ambiguous)];
    promise.attempts.iter().filter(move |attempt| sent.contains(&attempt.outcome))
}

fn quiet_hours_are_kept(evidence: &Evidence, promise: &Promise, found: &mut Vec<Violation>) {
    let task = &promise.row.task;
    if task.class != MessageClass::Reminder {
        return;
    }
    let flow = &evidence.flow;
    for attempt in started(promise).filter(|attempt| !flow.calendar.allows(attempt.started_at, &flow.timezone)) {
        let local = flow.timezone.to_datetime(attempt.started_at);
        found.push(Violation::new(QUIET, format!("task {} started at {}", task.id, local.strftime("%H:%M"))));
    }
}

/// Never 6.
fn messages_end(promise: &Promise, found: &mut Vec<Violation>) {
    let (row, task) = (&promise.row, &promise.row.task);
    let is_explained = match task.status {
        TaskStatus::Sent => promise.attempts.iter().any(|attempt| attempt.ended_at.is_some()),
        TaskStatus::Cancelled => task.reason.is_some(),
        TaskStatus::Dead => row.last_error.is_some(),
        TaskStatus::Held => task.reason.is_some(),
        TaskStatus::Unsure => task.reconcile_until.is_some(),
        // Both have a next time by their very shape.
        TaskStatus::Scheduled | TaskStatus::Failed => true,
        TaskStatus::Sending => false,
    };
    if !is_explained {
        found.push(Violation::new(
            ENDS,
            format!("task {} is {} and nothing says why, or what next", task.id, task.status),
        ));
    }
    for open in promise.attempts.iter().filter(|attempt| attempt.ended_at.is_none()) {
        found.push(Violation::new(ENDS, format!("attempt {} of task {} never ended", open.n, task.id)));
    }
}

#[cfg(test)]
mod tests;
