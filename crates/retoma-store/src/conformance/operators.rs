//! What people and the API do with promises, and the pages they read.

use retoma_core::ids::{TaskId, Tenant};
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::TaskStatus;

use super::world::*;
use crate::*;

fn ana() -> String {
    "ana".to_owned()
}

/// D9: a second call answers the first promise.
pub async fn scheduling_twice_promises_once<S: Store>(store: &S) {
    let contact = contact_with(store, 1, Vec::new()).await;
    let promise = |due| of(contact, reminder("order-9482:shipped:v1", due));
    let answers = store.schedule_tasks(vec![promise(60), promise(99)], ana()).await.unwrap();
    let shape: Vec<_> = answers.iter().map(|(task, new)| (task.next_attempt_at, *new)).collect();
    assert_eq!(shape, [(at(60), true), (at(60), false)]);
    let again = store.schedule_tasks(vec![promise(99)], ana()).await.unwrap();
    assert_eq!((again[0].0.next_attempt_at, again[0].1), (at(60), false));
    assert_eq!(due_ids(store, at(60)).await, ["order-9482:shipped:v1"]);
    assert_eq!(audit_actions(store).await, ["task.schedule"]);
}

/// FC-55: promises for a local time are found and given another instant, as long as nobody tried them.
pub async fn promises_for_a_local_time_are_planned_anew<S: Store>(store: &S) {
    let local =
        |id: &str| Task { local_time: Some("2027-12-15T10:00:00[America/Sao_Paulo]".to_owned()), ..reminder(id, 500) };
    let contact = contact_with(store, 1, vec![local("waits"), local("tried"), reminder("instant", 500)]).await;
    start(store, "tried", contact, at(501)).await;
    let found: Vec<String> =
        store.load_local_tasks(tenant()).await.unwrap().iter().map(|task| task.id.to_string()).collect();
    assert_eq!(found, ["waits"]);
    let moved = ["waits", "tried"].map(|id| (id.into(), at(900))).to_vec();
    assert_eq!(store.plan_again(tenant(), moved, at(1)).await.unwrap(), 1);
    let row = task(store, "waits").await.task;
    assert_eq!((row.scheduled_for, row.next_attempt_at), (at(900), at(900)));
    assert_eq!(task(store, "tried").await.task.scheduled_for, at(500));
    assert!(store.load_local_tasks(Tenant::new("outra")).await.unwrap().is_empty());
}

/// D2: one statement; what is under way is marked.
pub async fn cancelling_closes_what_waits_and_marks_what_is_under_way<S: Store>(store: &S) {
    let ids = ["failed", "held", "scheduled", "sending", "sent", "unsure"];
    let contact = contact_with(store, 1, ids.map(|id| reminder(id, 0)).to_vec()).await;
    for id in ["sending", "sent", "unsure", "failed"] {
        start(store, id, contact, at(1)).await;
    }
    finish(store, finish_of("sent", 1, end(Outcome::Accepted), NextStep::Sent, at(2))).await;
    let until = NextStep::Unsure { until: at(90) };
    finish(store, finish_of("unsure", 1, end(Outcome::Ambiguous), until, at(2))).await;
    let again = NextStep::Retry { at: at(9), counts: true };
    finish(store, finish_of("failed", 1, end(Outcome::Transient), again, at(2))).await;
    let missing = SettleTo::Held(Reason::MissingVariable, "pix.code".to_owned());
    store
        .settle_tasks(vec![Settle { tenant: tenant(), task: "held".into(), attempts: 0, to: missing }], at(2))
        .await
        .unwrap();
    let filter = TaskFilter { contact: Some(contact), ..TaskFilter::default() };
    let mut taken = store.cancel_tasks(filter.clone(), ana(), at(3)).await.unwrap();
    taken.sort();
    assert_eq!(taken, ["failed", "held", "scheduled", "sending", "unsure"].map(TaskId::new));
    for (id, expected, reason, mark) in [
        ("failed", TaskStatus::Cancelled, Some(Reason::Cancelled), None),
        ("held", TaskStatus::Cancelled, Some(Reason::Cancelled), None),
        ("scheduled", TaskStatus::Cancelled, Some(Reason::Cancelled), None),
        ("sending", TaskStatus::Sending, None, Some(Reason::Cancelled)),
        ("unsure", TaskStatus::Unsure, None, Some(Reason::Cancelled)),
        ("sent", TaskStatus::Sent, None, None),
    ] {
        let row = task(store, id).await.task;
        assert_eq!((row.status, row.reason, row.cancel_reason), (expected, reason, mark), "{id}");
    }
    assert!(store.cancel_tasks(filter, ana(), at(4)).await.unwrap().is_empty(), "there is nothing left to cancel");
    assert!(due_ids(store, at(80)).await.is_empty());
    assert_eq!(audit_actions(store).await, ["task.cancel", "task.cancel"]);
}

/// A filter that names nothing would cancel everything.
pub async fn cancelling_needs_a_filter_and_keeps_to_it<S: Store>(store: &S) {
    let ours =
        contact_with(store, 1, vec![reminder("a:t15", 0), Task { touch_no: Some(2), ..reminder("a:t4h", 0) }]).await;
    let other_order = Task { reference: Default::default(), cadence: None, ..reminder("b", 0) };
    contact_with(store, 2, vec![other_order, reminder("b:t15", 0)]).await;
    let refused = store.cancel_tasks(TaskFilter::default(), ana(), at(1)).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let elsewhere = TaskFilter { tenant: Tenant::new("outra"), contact: Some(ours), ..TaskFilter::default() };
    let cases: [(TaskFilter, &[&str]); 5] = [
        (elsewhere, &[]),
        (TaskFilter { contact: Some(ours), touch_no: Some(2), ..TaskFilter::default() }, &["a:t4h"]),
        (TaskFilter { reason: Some("lembrete_pix".to_owned()), ..TaskFilter::default() }, &["b"]),
        (TaskFilter { ids: vec!["b:t15".into(), "nowhere".into()], ..TaskFilter::default() }, &["b:t15"]),
        (TaskFilter { reference: Some("HP1".to_owned()), ..TaskFilter::default() }, &["a:t15"]),
    ];
    for (filter, expected) in cases {
        let taken = store.cancel_tasks(filter.clone(), ana(), at(1)).await.unwrap();
        assert_eq!(taken, expected.iter().map(TaskId::new).collect::<Vec<_>>(), "{filter:?}");
    }
}

/// The check still has its say; the id keeps its claim.
pub async fn a_person_sends_again_what_ended<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("dead", 0), reminder("avoided", 0), reminder("sent", 0)]).await;
    start(store, "dead", contact, at(1)).await;
    finish(store, finish_of("dead", 1, end(Outcome::Content), NextStep::Dead, at(2))).await;
    start(store, "sent", contact, at(1)).await;
    finish(store, finish_of("sent", 1, end(Outcome::Accepted), NextStep::Sent, at(2))).await;
    let avoid = SettleTo::Avoided(Reason::TooLate);
    store
        .settle_tasks(vec![Settle { tenant: tenant(), task: "avoided".into(), attempts: 0, to: avoid }], at(2))
        .await
        .unwrap();
    let ids = ["dead", "avoided", "sent", "nowhere"].map(TaskId::new).to_vec();
    let retry = Reopen { tenant: tenant(), ids, how: ReopenHow::Retry };
    assert_eq!(store.reopen_tasks(retry, ana(), at(50)).await.unwrap(), ["dead", "avoided"].map(TaskId::new));
    for id in ["dead", "avoided"] {
        let row = task(store, id).await.task;
        assert_eq!(
            (row.status, row.reason, row.avoided, row.next_attempt_at),
            (TaskStatus::Scheduled, None, false, at(50))
        );
    }
    let mut due = due_ids(store, at(50)).await;
    due.sort();
    assert_eq!(due, ["avoided", "dead"]);
    assert!(store.list_dead(tenant(), first_page()).await.unwrap().items.is_empty());
    assert_eq!(start(store, "dead", contact, at(51)).await, 2, "numbers go on");
    assert_eq!(audit_actions(store).await, ["task.retry", "task.retry"]);
}

/// E4: a person who looked at the phone knows.
pub async fn a_person_settles_what_is_unsure<S: Store>(store: &S) {
    let ids = ["was_sent", "was_not", "cancelled", "scheduled"];
    let contact = contact_with(store, 1, ids.map(|id| reminder(id, 0)).to_vec()).await;
    for id in &ids[..3] {
        start(store, id, contact, at(1)).await;
        let until = NextStep::Unsure { until: at(90) };
        finish(store, finish_of(id, 1, end(Outcome::Ambiguous), until, at(2))).await;
    }
    let cancel = TaskFilter { ids: vec!["cancelled".into()], ..TaskFilter::default() };
    store.cancel_tasks(cancel, ana(), at(3)).await.unwrap();
    let reopen =
        |id: &str, how| store.reopen_tasks(Reopen { tenant: tenant(), ids: vec![id.into()], how }, ana(), at(50));
    assert_eq!(reopen("was_sent", ReopenHow::ResolveSent).await.unwrap().len(), 1);
    assert_eq!(reopen("was_not", ReopenHow::ResolveNotSent).await.unwrap().len(), 1);
    assert_eq!(reopen("cancelled", ReopenHow::ResolveNotSent).await.unwrap().len(), 1);
    assert!(reopen("scheduled", ReopenHow::ResolveSent).await.unwrap().is_empty());
    assert_eq!(status(store, "was_sent").await, TaskStatus::Sent);
    assert_eq!(status(store, "was_not").await, TaskStatus::Scheduled);
    assert_eq!(status(store, "cancelled").await, TaskStatus::Cancelled);
    let mut due = due_ids(store, at(90)).await;
    due.sort();
    assert_eq!(due, ["scheduled", "was_not"]);
    assert_eq!(view(store, contact, at(60)).await.sends.len(), 1, "only what was sent counts");
}

/// E7.
pub async fn dead_letters_are_retried_or_discarded<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("a", 0), reminder("b", 0), reminder("c", 0)]).await;
    append(store, message(5, "5541999990005")).await;
    store.park_event(event_id(5), "cannot".to_owned(), at(1)).await.unwrap();
    for id in ["a", "b", "c"] {
        start(store, id, contact, at(1)).await;
        finish(store, finish_of(id, 1, end(Outcome::Content), NextStep::Dead, at(2))).await;
    }
    let moves = |ids: &[&str], all, retry| DeadMoves {
        tenant: tenant(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        all,
        retry,
        reason: Some("fixed".to_owned()),
        actor: ana(),
        now: at(50),
    };
    assert!(store.move_dead(moves(&[], false, true)).await.unwrap().is_empty(), "nothing was named");
    assert!(
        store.move_dead(DeadMoves { tenant: Tenant::new("outra"), ..moves(&[], true, true) }).await.unwrap().is_empty()
    );
    assert_eq!(store.move_dead(moves(&["a", "nowhere"], false, true)).await.unwrap(), ["a"]);
    assert_eq!(store.move_dead(moves(&["b"], false, false)).await.unwrap(), ["b"]);
    assert_eq!(due_ids(store, at(50)).await, ["a"]);
    assert_eq!(status(store, "b").await, TaskStatus::Dead);
    let mut rest = store.move_dead(moves(&[], true, true)).await.unwrap();
    rest.sort();
    let mut expected = vec![event_id(5).to_string(), "c".to_owned()];
    expected.sort();
    assert_eq!(rest, expected);
    assert!(store.list_dead(tenant(), first_page()).await.unwrap().items.is_empty());
    assert_eq!(pending_ids(store).await, [event_id(5)]);
    let mut actions = audit_actions(store).await;
    actions.sort();
    assert_eq!(actions, ["dead.discard", "event.replay", "task.retry", "task.retry"]);
}

/// D2: "what is stuck right now?" and "how many wait for their second touch?"
pub async fn stuck_tasks_are_one_query<S: Store>(store: &S) {
    let ids = ["late", "waiting", "sending_long", "sending", "unsure", "held"];
    let mut tasks = ids.map(|id| reminder(id, 0)).to_vec();
    tasks[1] = Task { touch_no: Some(2), ..reminder("waiting", minutes(19)) };
    let contact = contact_with(store, 1, tasks).await;
    start(store, "sending_long", contact, at(1)).await;
    start(store, "sending", contact, at(minutes(19))).await;
    start(store, "unsure", contact, at(1)).await;
    let until = NextStep::Unsure { until: at(days(1)) };
    finish(store, finish_of("unsure", 1, end(Outcome::Ambiguous), until, at(2))).await;
    let hold = SettleTo::Held(Reason::WindowClosed, "no template".to_owned());
    store
        .settle_tasks(vec![Settle { tenant: tenant(), task: "held".into(), attempts: 0, to: hold }], at(2))
        .await
        .unwrap();
    let named = async |filter| -> Vec<String> {
        let page = store.list_tasks(tenant(), filter, first_page()).await.unwrap();
        let mut ids: Vec<_> = page.items.iter().map(|row| row.task.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    };
    let stuck = TaskFilter { stuck_at: Some(at(minutes(20))), ..TaskFilter::default() };
    assert_eq!(named(stuck.clone()).await, ["held", "late", "sending_long", "unsure"]);
    assert_eq!(named(TaskFilter { status: Some(TaskStatus::Held), ..stuck }).await, ["held"]);
    let second = TaskFilter { status: Some(TaskStatus::Scheduled), touch_no: Some(2), ..TaskFilter::default() };
    assert_eq!(named(second).await, ["waiting"]);
}

/// Newest first, whatever is added meanwhile.
pub async fn pages_follow_each_other_without_gap_or_repetition<S: Store>(store: &S) {
    for n in 1..=7 {
        append(store, message(n, "5541999990001")).await;
    }
    contact_with(store, 8, (1..=5).map(|n| reminder(&format!("task-{n}"), n)).collect()).await;
    let mut events = Vec::new();
    let mut page = Page { cursor: None, limit: 3 };
    loop {
        let filter = EventFilter { status: Some(EventStatus::Received), ..EventFilter::default() };
        let answer = store.list_events(tenant(), filter, page.clone()).await.unwrap();
        assert!(answer.items.len() <= 3);
        events.extend(answer.items.into_iter().map(|row| row.id));
        append(store, message(100 + u64::try_from(events.len()).unwrap(), "5541999990001")).await;
        match answer.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(events, (1..=7).rev().map(event_id).collect::<Vec<_>>());
    let first = store.list_tasks(tenant(), TaskFilter::default(), Page { cursor: None, limit: 2 }).await.unwrap();
    let next = Page { cursor: first.next_cursor.clone(), limit: 500 };
    let rest = store.list_tasks(tenant(), TaskFilter::default(), next).await.unwrap();
    let ids: Vec<_> = first.items.iter().chain(&rest.items).map(|row| row.task.id.as_str()).collect();
    assert_eq!(ids, ["task-5", "task-4", "task-3", "task-2", "task-1"]);
    assert!(rest.next_cursor.is_none());
    let of_kind = EventFilter {
        source: Some("zap".into()),
        kind: Some(retoma_core::event::EventKind::PixCreated),
        ..EventFilter::default()
    };
    assert!(store.list_events(tenant(), of_kind, first_page()).await.unwrap().items.is_empty());
}

/// Not a crash, and not the first page.
pub async fn a_cursor_of_somebody_else_is_refused<S: Store>(store: &S) {
    let page = Page { cursor: Some("'; DROP TABLE event".to_owned()), limit: 10 };
    let refused = store.list_events(tenant(), EventFilter::default(), page.clone()).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(matches!(store.list_audit(tenant(), page).await, Err(Error::Invalid(_))));
}
