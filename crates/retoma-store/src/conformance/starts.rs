//! What is due, and the point of no return (D3, D4; never 3).

use retoma_core::decision::Decision;
use retoma_core::event::EventKind;
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::{MessageClass, TaskStatus};

use super::world::*;
use crate::*;

/// C1, "one clock": a touch that its `timeout` has not handed over is not due.
pub async fn due_tasks_come_earliest_first_and_only_if_handed_over<S: Store>(store: &S) {
    let waiting = Task { handed: false, ..reminder("not_handed", 10) };
    let held = Task { status: TaskStatus::Held, ..reminder("held", 10) };
    let tasks = vec![reminder("third", 300), reminder("first", 100), waiting, reminder("second", 200), held];
    let contact = contact_with(store, 1, tasks).await;
    assert_eq!(store.next_wake().await.unwrap().task_at, Some(at(100)));
    assert_eq!(due_ids(store, at(99)).await, [""; 0]);
    assert_eq!(due_ids(store, at(200)).await, ["first", "second"]);
    assert_eq!(due_ids(store, at(1000)).await, ["first", "second", "third"]);
    let two = due(store, at(1000), 2).await;
    assert_eq!(two.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    let seen = view(store, contact, at(1)).await;
    commit(store, &seen, Decision { handed: vec!["not_handed".into()], ..decide(&seen) }, at(1)).await;
    assert_eq!(due_ids(store, at(150)).await, ["not_handed", "first"]);
    assert_eq!(store.next_wake().await.unwrap().task_at, Some(at(10)));
}

/// E5, FC-57: work is loaded by channel, and answers to people come before a backlog of reminders.
pub async fn a_full_channel_hides_no_other_and_reminders_hide_no_answer<S: Store>(store: &S) {
    let on = |id: &str, channel: &str, due| Task { channel: channel.into(), ..reminder(id, due) };
    let mut tasks: Vec<Task> = (0..20).map(|n| on(&format!("tar-{n}"), "tarpit", n)).collect();
    let answer = Task { class: MessageClass::Reply, ..on("answer", "tarpit", 50) };
    tasks.extend([answer, on("other", "zap", 40), on("later", "zap", 500)]);
    contact_with(store, 1, tasks).await;
    let query =
        |skip: &[&str]| DueQuery { now: at(60), limit: 2, skip: skip.iter().map(|name| (*name).into()).collect() };
    let ids = |due: &Due| due.tasks.iter().map(|task| task.id.as_str().to_owned()).collect::<Vec<_>>();
    let all = store.load_due(query(&[])).await.unwrap();
    assert_eq!(ids(&all), ["answer", "tar-0", "tar-1", "other"]);
    assert_eq!(all.next_at, Some(at(500)));
    let rest = store.load_due(query(&["tarpit"])).await.unwrap();
    assert_eq!((ids(&rest), rest.next_at), (vec!["other".to_owned()], Some(at(500))));
    let none = store.load_due(query(&["tarpit", "zap"])).await.unwrap();
    assert_eq!((ids(&none).len(), none.next_at), (0, None));
}

/// Never 2: the second of two equal wishes finds it moved.
pub async fn a_task_is_started_once<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let wish = start_of(store, "touch", contact, at(1)).await;
    let owner = owner(store).await;
    let answers = store.start_attempts(owner, vec![wish.clone(), wish.clone()], at(1)).await.unwrap();
    assert_eq!(answers, [Started::Started { attempt: 1 }, Started::Moved]);
    let (row, attempts) = task_and_attempts(store, "touch").await;
    assert_eq!((row.task.status, row.task.attempts), (TaskStatus::Sending, 1));
    let open = &attempts[0];
    assert_eq!((attempts.len(), open.n, open.started_at, open.ended_at), (1, 1, at(1), None));
    assert_eq!(try_start(store, Start { task: "nowhere".into(), ..wish }, at(2)).await, Started::Moved);
}

/// FC-36: a payment that was received and is not decided yet.
pub async fn an_urgent_event_stops_every_start<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let wish = start_of(store, "touch", contact, at(1)).await;
    append(store, NewEvent { urgent: true, ..message(2, "5541999990001") }).await;
    let receipt = Start { block_on_chat: false, block_on_paid: false, ..wish.clone() };
    for wish in [wish, receipt] {
        assert_eq!(try_start(store, wish, at(3)).await, Started::LookAgain);
    }
    let (row, attempts) = task_and_attempts(store, "touch").await;
    assert_eq!((row.task.status, row.task.attempts, attempts.len()), (TaskStatus::Scheduled, 0, 0));
    assert_eq!(due_ids(store, at(4)).await, ["touch"], "it is looked at again");
    // Somebody else's event stops nobody.
    let seen = view(store, contact, at(4)).await;
    commit(store, &seen, decide(&seen), at(4)).await;
    append(store, NewEvent { urgent: true, ..message(3, "5541999990009") }).await;
    start(store, "touch", contact, at(5)).await;
}

/// C7: a waiting burst counts as "the contact just wrote".
pub async fn a_chat_message_stops_reminders_only<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    append(store, message(2, "5541999990001")).await;
    let wish = start_of(store, "touch", contact, at(3)).await;
    assert_eq!(try_start(store, wish.clone(), at(3)).await, Started::LookAgain);
    let reply = Start { block_on_chat: false, ..wish };
    assert_eq!(try_start(store, reply, at(3)).await, Started::Started { attempt: 1 });
}

/// FC-36, FC-37: paid under another name, seen by the order.
pub async fn money_under_another_contact_stops_a_reminder<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0), reminder("other", 0)]).await;
    let paid = |n, kind, transaction| payment(n, kind, transaction, vec![phone("5541999990002")]);
    append(store, paid(2, EventKind::PixCreated, "HP1")).await;
    append(store, paid(3, EventKind::PaymentRefused, "HP1")).await;
    append(store, paid(4, EventKind::PaymentApproved, "HP2")).await;
    start(store, "other", contact, at(5)).await;
    append(store, paid(5, EventKind::PaymentApproved, "HP1")).await;
    let wish = start_of(store, "touch", contact, at(6)).await;
    assert_eq!(try_start(store, wish.clone(), at(6)).await, Started::LookAgain);
    let delivery = Start { block_on_paid: false, ..wish };
    assert_eq!(try_start(store, delivery, at(6)).await, Started::Started { attempt: 1 });
}

/// Opt-out and pause are decisions: they move the version that the check saw.
pub async fn a_decision_since_the_check_sends_it_back<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let wish = start_of(store, "touch", contact, at(1)).await;
    let seen = view(store, contact, at(1)).await;
    commit(store, &seen, decide(&seen), at(1)).await;
    assert_eq!(try_start(store, wish, at(2)).await, Started::LookAgain);
    start(store, "touch", contact, at(3)).await;
}

/// D7: nothing takes it blindly; a sweep finds it.
pub async fn what_is_sending_is_never_due_and_is_found_when_stuck<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("a", 0), reminder("b", 0)]).await;
    start(store, "a", contact, at(10)).await;
    start(store, "b", contact, at(20)).await;
    assert_eq!(due_ids(store, at(9999)).await, [""; 0]);
    let stuck = async |before| -> Vec<(String, u32, Timestamp)> {
        let found = store.load_stuck(before, 10).await.unwrap();
        found.into_iter().map(|(task, open)| (task.id.as_str().to_owned(), open.n, open.started_at)).collect()
    };
    assert!(stuck(at(10)).await.is_empty());
    assert_eq!(stuck(at(20)).await, [("a".to_owned(), 1, at(10))]);
    assert_eq!(stuck(Timestamp::MAX).await.len(), 2);
    assert_eq!(store.load_stuck(Timestamp::MAX, 1).await.unwrap().len(), 1);
    finish(store, finish_of("a", 1, end(Outcome::Accepted), NextStep::Sent, at(30))).await;
    assert_eq!(stuck(at(999)).await, [("b".to_owned(), 1, at(20))]);
}

/// D4: avoided, put off, held; by compare-and-set.
pub async fn the_check_settles_only_what_it_saw<S: Store>(store: &S) {
    let tasks = ["avoid", "defer", "hold", "moved"].map(|id| reminder(id, 0)).to_vec();
    let contact = contact_with(store, 1, tasks).await;
    start(store, "moved", contact, at(1)).await;
    let settle = |id: &str, attempts, to| Settle { tenant: tenant(), task: id.into(), attempts, to };
    let batch = vec![
        settle("avoid", 0, SettleTo::Avoided(Reason::Paid)),
        settle("avoid", 0, SettleTo::Avoided(Reason::OptedOut)),
        settle("defer", 0, SettleTo::Deferred(Reason::QuietHours, at(500))),
        settle("hold", 1, SettleTo::Held(Reason::MissingVariable, "seen otherwise".to_owned())),
        settle("hold", 0, SettleTo::Held(Reason::MissingVariable, "pix.code".to_owned())),
        settle("moved", 0, SettleTo::Avoided(Reason::Paid)),
        settle("moved", 1, SettleTo::Avoided(Reason::Paid)),
        settle("nowhere", 0, SettleTo::Avoided(Reason::Paid)),
    ];
    let took = store.settle_tasks(batch, at(2)).await.unwrap();
    assert_eq!(took, [true, false, true, false, true, false, false, false]);
    let avoided = task(store, "avoid").await.task;
    assert_eq!((avoided.status, avoided.reason, avoided.avoided), (TaskStatus::Cancelled, Some(Reason::Paid), true));
    let deferred = task(store, "defer").await.task;
    assert_eq!((deferred.status, deferred.reason), (TaskStatus::Scheduled, Some(Reason::QuietHours)));
    assert_eq!((deferred.next_attempt_at, deferred.scheduled_for), (at(500), at(0)));
    let held = task(store, "hold").await;
    assert_eq!((held.task.status, held.task.reason), (TaskStatus::Held, Some(Reason::MissingVariable)));
    assert_eq!(held.detail.as_deref(), Some("pix.code"));
    assert_eq!(status(store, "moved").await, TaskStatus::Sending);
    assert_eq!(due_ids(store, at(499)).await, [""; 0]);
    assert_eq!(due_ids(store, at(500)).await, ["defer"]);
}

/// D5: caps count what was sent, is being sent, or may have been.
pub async fn starts_of_the_last_seven_days_count_unless_surely_not_sent<S: Store>(store: &S) {
    let ids = ["old", "sent", "unsure", "failed", "open"];
    let mut tasks = ids.map(|id| reminder(id, 0)).to_vec();
    tasks[1].class = MessageClass::Reply;
    let contact = contact_with(store, 1, tasks).await;
    let begin = |id: &'static str, now| async move { start(store, id, contact, now).await };
    let sent = begin("old", at(10)).await;
    finish(store, finish_of("old", sent, end(Outcome::Accepted), NextStep::Sent, at(11))).await;
    let ends = [
        ("sent", Outcome::Accepted, NextStep::Sent),
        ("unsure", Outcome::Ambiguous, NextStep::Unsure { until: at(days(9)) }),
        ("failed", Outcome::Transient, NextStep::Retry { at: at(days(9)), counts: true }),
    ];
    for (day, (id, outcome, next)) in (1..).zip(ends) {
        let attempt = begin(id, at(days(day))).await;
        finish(store, finish_of(id, attempt, end(outcome), next, at(days(day)))).await;
    }
    begin("open", at(days(4))).await;
    let marks: Vec<_> =
        view(store, contact, at(days(7) + 11)).await.sends.iter().map(|mark| (mark.at, mark.class)).collect();
    let reminder = MessageClass::Reminder;
    assert_eq!(marks, [(at(days(1)), MessageClass::Reply), (at(days(2)), reminder), (at(days(4)), reminder)]);
    assert_eq!(view(store, contact, at(days(7) + 9)).await.sends.len(), 4);
}
