//! Each promise broken once, by hand, beside a run in which all were kept.

use std::time::Duration;

use retoma_core::event::{EventData, EventKind, OrderRef};
use retoma_core::flow::Flow;
use retoma_core::identity::Identity;
use retoma_core::ids::{BucketNo, TaskId, Tenant};
use retoma_core::send_check::Reason;
use retoma_core::task::{Reference, Task, TaskKind};
use retoma_providers::generate::{Hook, Repeats, Story};
use retoma_server::fake::Delivery;
use retoma_store::{EventRow, TaskRow};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::demo::player::Acknowledged;
use crate::demo::truth::{Paid, Silence};

/// Minutes after nine in the morning.
fn at(minutes: i64) -> Timestamp {
    "2026-12-01T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn contact() -> ContactId {
    ContactId(Uuid::from_u128(7))
}

fn phone_key() -> String {
    Identity::from_jid("554199990001@s.whatsapp.net").unwrap().match_key
}

fn task(id: &str, message: &str, class: MessageClass) -> Task {
    let order = OrderRef { platform: "hotmart".into(), account: "hotmart".into(), transaction: "HP1".into() };
    let touch = id.rsplit_once(':').map(|(_, touch)| touch.to_owned()).filter(|_| class == MessageClass::Reminder);
    Task {
        id: TaskId::new(id),
        tenant: Tenant::default(),
        bucket: BucketNo(0),
        contact: contact(),
        conversation: None,
        flow: "vendas".into(),
        kind: TaskKind::Touch,
        cadence: touch.is_some().then(|| "pix_pendente".to_owned()),
        touch,
        touch_no: None,
        message: message.to_owned(),
        text: None,
        class,
        channel: "zap".into(),
        reference: Reference { order: Some(order), amount: None, link: None },
        scheduled_for: at(0),
        next_attempt_at: at(0),
        handed: true,
        max_late: None,
        on_ambiguous: None,
        cancel_on: Vec::new(),
        status: TaskStatus::Sent,
        reason: None,
        avoided: false,
        attempts: 1,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        local_time: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

fn attempt(n: u32, minutes: i64, outcome: Outcome, id: Option<&str>) -> AttemptRow {
    AttemptRow {
        n,
        started_at: at(minutes),
        ended_at: Some(at(minutes)),
        outcome: Some(outcome),
        http_status: None,
        error: None,
        response: None,
        provider_message_id: id.map(str::to_owned),
    }
}

fn promise(task: Task, attempts: Vec<AttemptRow>) -> Promise {
    let outcome = attempts.last().and_then(|attempt| attempt.outcome);
    let row = TaskRow {
        task,
        outcome,
        last_error: None,
        provider_message_id: None,
        receipt: None,
        receipt_times: Default::default(),
        detail: None,
    };
    Promise { row, attempts }
}

/// A reminder that was accepted, as the `n`-th touch of an order.
fn reminder(order: &str, n: usize, minutes: i64) -> Promise {
    let task = task(&format!("hotmart:pix:{order}:t{n}"), "lembrete_pix", MessageClass::Reminder);
    promise(task, vec![attempt(1, minutes, Outcome::Accepted, Some(&format!("{order}-{n}")))])
}

fn delivery(id: &str, minutes: i64) -> Delivery {
    Delivery { at: at(minutes), number: "5541999990001".into(), text: "Oi".into(), id: id.into() }
}

fn event(n: u128, status: EventStatus) -> EventRow {
    EventRow {
        id: EventId(Uuid::from_u128(n)),
        source: "hotmart".into(),
        kind: EventKind::PixCreated,
        key: "e-1".into(),
        status,
        reason: None,
        duplicates: 0,
        altered: false,
        contact_id: Some(contact()),
        occurred_at: at(0),
        received_at: at(0),
        completed_at: None,
        result: None,
        error: None,
        data: EventData::default(),
    }
}

/// A run with what it is checked against.
struct Run {
    evidence: Evidence,
    schedule: Schedule,
    person: Person,
    played: Played,
}

/// One buyer, one PIX, one reminder that arrived.
fn clean() -> Run {
    let hook = Hook { after: Duration::ZERO, source: "hotmart", body: json!({"id": "e-1"}), repeats: Repeats::No };
    let (hook_at, event_id) = (0, EventId(Uuid::from_u128(1)));
    Run {
        evidence: Evidence {
            flow: Flow::vendas(),
            events: vec![event(1, EventStatus::Decided)],
            promises: vec![reminder("HP1", 1, 15)],
            deliveries: vec![delivery("HP1-1", 15)],
            people: BTreeMap::from([(phone_key(), contact())]),
        },
        schedule: Schedule { hooks: vec![hook.clone(), hook], buyers: Vec::new() },
        person: Person {
            phone: "5541999990001".into(),
            match_key: phone_key(),
            story: Story::PixForgotten,
            paid: None,
            silence: None,
        },
        played: Played {
            acknowledged: vec![Acknowledged { hook: hook_at, event: event_id, posted_at: at(0), at: at(0) }],
            refused: Vec::new(),
        },
    }
}

impl Run {
    fn broken(&self) -> Vec<&'static str> {
        let found = check(&self.evidence, &self.schedule, std::slice::from_ref(&self.person), &self.played);
        found.into_iter().map(|violation| violation.promise).collect()
    }
}

/// What is done to a clean run, and which promise it breaks.
#[track_caller]
fn check_broken(expected: &[&str], damage: impl FnOnce(&mut Run)) {
    let mut run = clean();
    damage(&mut run);
    assert_eq!(run.broken(), expected);
}

#[test]
fn a_clean_run_breaks_nothing() {
    check_broken(&[], |_| {});
}

#[test]
fn an_acknowledged_event_that_is_missing_doubled_undecided_or_dead_is_seen() {
    check_broken(&[STORED], |run| run.evidence.events.clear());
    check_broken(&[STORED], |run| run.evidence.events[0].status = EventStatus::Dead);
    check_broken(&[STORED], |run| run.evidence.events[0].status = EventStatus::Received);
    check_broken(&[STORED], |run| run.played.refused.push((0, "answered 500".into())));
    check_broken(&[STORED], |run| {
        run.evidence.events.push(event(2, EventStatus::Decided));
        run.played.acknowledged.push(Acknowledged {
            hook: 1,
            event: EventId(Uuid::from_u128(2)),
            posted_at: at(0),
            at: at(0),
        });
    });
}

#[test]
fn a_second_delivery_is_seen_with_and_without_its_id() {
    // Under the same id, as a provider would never do; under an id that nobody told us.
    check_broken(&[ONCE], |run| run.evidence.deliveries.push(delivery("HP1-1", 16)));
    check_broken(&[ONCE], |run| run.evidence.deliveries.push(delivery("OTHER", 16)));
    // A blind resend after an ambiguous attempt: both attempts explain their delivery, the task does not.
    let twice = |run: &mut Run| {
        run.evidence.promises[0].attempts.insert(0, attempt(1, 14, Outcome::Ambiguous, None));
        run.evidence.promises[0].attempts[1].n = 2;
        run.evidence.deliveries.push(delivery("OTHER", 14));
    };
    check_broken(&[ONCE], twice);
    check_broken(&[], |run| {
        twice(run);
        run.evidence.promises[0].row.task.resent = true;
    });
    check_broken(&[ONCE], |run| run.evidence.deliveries.clear());
}

#[test]
fn an_ambiguous_attempt_explains_one_delivery_after_its_start() {
    let ambiguous = |run: &mut Run| {
        run.evidence.promises[0].attempts[0] = attempt(1, 15, Outcome::Ambiguous, None);
    };
    check_broken(&[], ambiguous);
    check_broken(&[ONCE], |run| {
        ambiguous(run);
        run.evidence.deliveries[0].at = at(14);
    });
    // What the echo told later stands with the task.
    check_broken(&[], |run| {
        ambiguous(run);
        run.evidence.promises[0].row.provider_message_id = Some("HP1-1".into());
    });
}

#[test]
fn a_reminder_after_the_payment_is_seen_and_one_before_it_is_none() {
    let paid_at = |minutes: i64| {
        move |run: &mut Run| {
            run.person.paid = Some(Paid { transaction: "HP1".into(), at: at(minutes) });
            let access = task("hotmart:entregar_acesso:HP1", "entregar_acesso", MessageClass::Receipt);
            run.evidence.promises.push(promise(access, vec![attempt(1, 20, Outcome::Accepted, Some("ACCESS"))]));
            run.evidence.deliveries.push(delivery("ACCESS", 20));
        }
    };
    check_broken(&[], paid_at(16));
    check_broken(&[PAID], paid_at(14));
    check_broken(&[], |run| {
        paid_at(14)(run);
        run.evidence.promises[0].attempts[0].outcome = Some(Outcome::NotSent);
        run.evidence.deliveries.remove(0);
    });
    check_broken(&[ENDS], |run| {
        paid_at(16)(run);
        run.evidence.promises.pop();
        run.evidence.deliveries.pop();
        // What reached the phone is explained by nobody then, so it is taken away, too.
    });
}

#[test]
fn what_talks_to_people_who_asked_for_silence_is_seen() {
    let silent = |from: i64, until: Option<i64>| {
        move |run: &mut Run| run.person.silence = Some(Silence { from: at(from), until: until.map(at) })
    };
    check_broken(&[SILENT], silent(10, None));
    check_broken(&[SILENT], silent(10, Some(16)));
    check_broken(&[], silent(10, Some(12)));
    check_broken(&[], silent(16, None));
    let confirmed = |run: &mut Run| {
        let task = task("confirmar_saida:1", "confirmar_saida", MessageClass::OptOutAck);
        run.evidence.promises.push(promise(task, vec![attempt(1, 17, Outcome::Accepted, None)]));
    };
    check_broken(&[], |run| {
        silent(16, None)(run);
        confirmed(run);
    });
    check_broken(&[SILENT], |run| {
        silent(16, None)(run);
        confirmed(run);
        confirmed(run);
    });
    check_broken(&[SILENT], confirmed);
}

#[test]
fn a_fourth_reminder_is_seen_by_order_by_cadence_and_by_day() {
    let reminders = |run: &mut Run, orders: [&str; 4], minutes: [i64; 4]| {
        run.evidence.promises.clear();
        run.evidence.deliveries.clear();
        for (n, (order, minutes)) in (1..).zip(orders.into_iter().zip(minutes)) {
            let mut one = reminder(order, n, minutes);
            one.row.task.reference.order.as_mut().unwrap().transaction = order.into();
            run.evidence.promises.push(one);
            run.evidence.deliveries.push(delivery(&format!("{order}-{n}"), minutes));
        }
    };
    const HOUR: i64 = 60;
    // By cadence and by order; far enough apart for the day.
    check_broken(&[THREE, THREE], |run| reminders(run, ["HP1"; 4], [0, HOUR, 2 * HOUR, 48 * HOUR]));
    // By the day alone.
    check_broken(&[THREE], |run| reminders(run, ["HP1", "HP1", "HP2", "HP2"], [0, HOUR, 2 * HOUR, 3 * HOUR]));
    check_broken(&[], |run| reminders(run, ["HP1", "HP1", "HP2", "HP2"], [0, HOUR, 2 * HOUR, 24 * HOUR]));
}

#[test]
fn a_reminder_at_night_is_seen() {
    // 22:59 and 23:00 in São Paulo.
    check_broken(&[], |run| run.evidence.promises[0].attempts[0].started_at = at(13 * 60 + 59));
    check_broken(&[QUIET], |run| run.evidence.promises[0].attempts[0].started_at = at(14 * 60));
}

#[test]
fn a_message_without_an_end_or_a_next_time_is_seen() {
    let becomes = |status: TaskStatus| move |run: &mut Run| run.evidence.promises[0].row.task.status = status;
    check_broken(&[ENDS], becomes(TaskStatus::Sending));
    check_broken(&[ENDS], becomes(TaskStatus::Cancelled));
    check_broken(&[ENDS], becomes(TaskStatus::Dead));
    check_broken(&[ENDS], becomes(TaskStatus::Held));
    check_broken(&[ENDS], becomes(TaskStatus::Unsure));
    check_broken(&[], becomes(TaskStatus::Scheduled));
    check_broken(&[], |run| {
        becomes(TaskStatus::Cancelled)(run);
        run.evidence.promises[0].row.task.reason = Some(Reason::Paid);
    });
    // Both the message and the attempt lack an end.
    check_broken(&[ENDS, ENDS], |run| run.evidence.promises[0].attempts[0].ended_at = None);
}
