//! Ends of attempts, and what providers say later (D2, E4, E6, E7).

use retoma_core::event::{EventData, EventKind};
use retoma_core::evidence::{Witness, text_key};
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::TaskStatus;

use super::world::*;
use crate::*;

/// Truth may come late, and twice.
pub async fn an_end_counts_once<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    assert!(
        !finish(store, finish_of("touch", 1, end(Outcome::Accepted), NextStep::Sent, at(1))).await,
        "nothing started"
    );
    let attempt = start(store, "touch", contact, at(1)).await;
    let wrong = finish_of("touch", attempt + 1, end(Outcome::Accepted), NextStep::Sent, at(2));
    assert!(!finish(store, wrong).await);
    assert!(finish(store, finish_of("touch", attempt, end(Outcome::Accepted), NextStep::Sent, at(2))).await);
    let late = finish_of("touch", attempt, end(Outcome::Transient), NextStep::Retry { at: at(3), counts: true }, at(3));
    assert!(!finish(store, late).await);
    let (row, attempts) = task_and_attempts(store, "touch").await;
    assert_eq!((row.task.status, row.outcome, row.last_error), (TaskStatus::Sent, Some(Outcome::Accepted), None));
    assert_eq!(row.provider_message_id.as_deref(), Some("3EB0AAAA0001"));
    assert_eq!(row.receipt, Some(ReceiptStatus::Accepted));
    let ended = &attempts[0];
    assert_eq!((ended.ended_at, ended.outcome, ended.http_status), (Some(at(2)), Some(Outcome::Accepted), Some(201)));
    assert_eq!(ended.provider_message_id.as_deref(), Some("3EB0AAAA0001"));
}

/// D1: two time columns; a failure never moves the commercial one.
pub async fn a_failure_is_tried_again_at_its_time<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 5)]).await;
    start(store, "touch", contact, at(10)).await;
    let next = NextStep::Retry { at: at(70), counts: true };
    finish(store, finish_of("touch", 1, end(Outcome::Transient), next, at(11))).await;
    let row = task(store, "touch").await;
    assert_eq!((row.task.status, row.task.attempts), (TaskStatus::Failed, 1));
    assert_eq!((row.task.scheduled_for, row.task.next_attempt_at), (at(5), at(70)));
    assert_eq!(row.last_error.as_deref(), Some("it was transient"));
    assert_eq!(due_ids(store, at(69)).await, [""; 0]);
    assert_eq!(due_ids(store, at(70)).await, ["touch"]);
    assert_eq!(start(store, "touch", contact, at(70)).await, 2);
    finish(store, finish_of("touch", 2, end(Outcome::Accepted), NextStep::Sent, at(71))).await;
    let (_, attempts) = task_and_attempts(store, "touch").await;
    assert_eq!(
        attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>(),
        [Some(Outcome::Transient), Some(Outcome::Accepted)]
    );
}

/// E3: rate limits and a stopped channel burn no attempts, and are on record.
pub async fn a_try_that_does_not_count_burns_no_attempt<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    for round in 0..3 {
        let attempt = start(store, "touch", contact, at(round * 10)).await;
        let next = NextStep::Retry { at: at(round * 10 + 5), counts: false };
        assert!(finish(store, finish_of("touch", attempt, end(Outcome::RateNumber), next, at(round * 10 + 1))).await);
        assert_eq!(task(store, "touch").await.task.attempts, 0);
    }
    let attempt = start(store, "touch", contact, at(40)).await;
    assert_eq!(attempt, task(store, "touch").await.task.attempts, "an attempt is named by what counts");
    assert!(finish(store, finish_of("touch", attempt, end(Outcome::Accepted), NextStep::Sent, at(41))).await);
    assert_eq!(task_and_attempts(store, "touch").await.1.len(), 4);
}

/// C11: a number's other spelling is tried once, as no attempt of its own.
pub async fn a_number_is_respelled_once<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let attempt = start(store, "touch", contact, at(1)).await;
    let respell = NextStep::Respell { at: at(2) };
    assert!(finish(store, finish_of("touch", attempt, end(Outcome::Recipient), respell, at(2))).await);
    let row = task(store, "touch").await.task;
    assert_eq!((row.status, row.attempts, row.respelled), (TaskStatus::Failed, 0, true));
    assert_eq!(due_ids(store, at(2)).await, ["touch"]);
    assert!(due(store, at(2), 9).await[0].respelled, "the deliverer is told");
    let attempt = start(store, "touch", contact, at(3)).await;
    assert!(finish(store, finish_of("touch", attempt, end(Outcome::Recipient), NextStep::Dead, at(4))).await);
    let (row, attempts) = task_and_attempts(store, "touch").await;
    assert_eq!((row.task.status, attempts.len()), (TaskStatus::Dead, 2));
}

/// D2: any end but accepted makes it `cancelled`, never a retry.
pub async fn a_marked_task_ends_cancelled_unless_accepted<S: Store>(store: &S) {
    let ends = [
        ("accepted", Outcome::Accepted, NextStep::Sent, TaskStatus::Sent),
        ("transient", Outcome::Transient, NextStep::Retry { at: at(60), counts: true }, TaskStatus::Cancelled),
        ("given_up", Outcome::Content, NextStep::Dead, TaskStatus::Cancelled),
        ("held", Outcome::Window, NextStep::Held(Reason::WindowClosed), TaskStatus::Cancelled),
        ("unsure", Outcome::Ambiguous, NextStep::Unsure { until: at(90) }, TaskStatus::Unsure),
    ];
    let contact = contact_with(store, 1, ends.iter().map(|(id, ..)| reminder(id, 0)).collect()).await;
    for (id, ..) in &ends {
        start(store, id, contact, at(1)).await;
    }
    let filter = TaskFilter { contact: Some(contact), ..TaskFilter::default() };
    assert_eq!(store.cancel_tasks(filter, "ana".to_owned(), at(2)).await.unwrap().len(), ends.len());
    for (id, outcome, next, expected) in ends {
        assert_eq!(status(store, id).await, TaskStatus::Sending, "{id} is under way");
        assert!(finish(store, finish_of(id, 1, end(outcome), next, at(3))).await);
        let ended = task(store, id).await.task;
        assert_eq!(ended.status, expected, "{id}");
        if expected == TaskStatus::Cancelled {
            assert_eq!((ended.reason, ended.avoided), (Some(Reason::Cancelled), false), "{id}");
        }
    }
    // What may have left is still looked up; then only an accepted end survives the mark.
    let policy = finish_of("unsure", 1, end(Outcome::Ambiguous), NextStep::Held(Reason::Unconfirmed), at(90));
    assert!(finish(store, policy).await);
    assert_eq!(status(store, "unsure").await, TaskStatus::Cancelled);
    assert!(store.list_dead(tenant(), first_page()).await.unwrap().items.is_empty());
}

/// E4: never retried blindly; evidence or the policy settles it, once, and the row keeps its first end.
pub async fn what_nobody_knows_is_unsure_until_somebody_says<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("found", 0), reminder("assumed", 0)]).await;
    for id in ["found", "assumed"] {
        start(store, id, contact, at(1)).await;
        let unsure = NextStep::Unsure { until: at(100) };
        assert!(finish(store, finish_of(id, 1, end(Outcome::Ambiguous), unsure, at(2))).await);
        let row = task(store, id).await.task;
        assert_eq!((row.status, row.reconcile_until), (TaskStatus::Unsure, Some(at(100))));
    }
    assert_eq!(due_ids(store, at(100)).await, [""; 0], "what may have left is not sent again");
    assert_eq!(store.next_wake().await.unwrap().task_at, Some(at(100)));
    let mut unsure: Vec<String> =
        store.load_unsure(10).await.unwrap().iter().map(|unsure| unsure.task.id.as_str().to_owned()).collect();
    unsure.sort();
    assert_eq!(unsure, ["assumed", "found"]);
    assert_eq!(store.load_unsure(1).await.unwrap().len(), 1);
    let echo = Finish {
        evidence: Some("the echo carried our reference".to_owned()),
        ..finish_of("found", 1, end(Outcome::Accepted), NextStep::Sent, at(50))
    };
    assert!(finish(store, echo.clone()).await);
    assert!(!finish(store, echo).await, "settled once");
    let policy = Finish {
        evidence: Some("no evidence came".to_owned()),
        ..finish_of("assumed", 1, end(Outcome::Ambiguous), NextStep::Sent, at(100))
    };
    assert!(finish(store, policy).await);
    for (id, evidence) in [("found", "the echo carried our reference"), ("assumed", "no evidence came")] {
        let (row, attempts) = task_and_attempts(store, id).await;
        assert_eq!((row.task.status, row.task.reconcile_until), (TaskStatus::Sent, None), "{id}");
        let attempt = &attempts[0];
        assert_eq!((attempt.outcome, attempt.ended_at), (Some(Outcome::Ambiguous), Some(at(2))), "{id}");
        assert_eq!(attempt.error.as_deref(), Some(format!("it was ambiguous; {evidence}").as_str()), "{id}");
    }
    assert_eq!(task(store, "found").await.provider_message_id.as_deref(), Some("3EB0AAAA0001"));
    assert!(due_ids(store, at(9999)).await.is_empty());
    assert!(store.load_unsure(10).await.unwrap().is_empty());
}

/// Never 2: every such resend is on record.
pub async fn the_one_resend_is_on_record<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("code", 0)]).await;
    start(store, "code", contact, at(1)).await;
    finish(store, finish_of("code", 1, end(Outcome::Ambiguous), NextStep::Unsure { until: at(9) }, at(2))).await;
    let resend = Finish {
        resend: true,
        ..finish_of("code", 1, end(Outcome::Ambiguous), NextStep::Retry { at: at(9), counts: false }, at(9))
    };
    assert!(finish(store, resend).await);
    let row = task(store, "code").await.task;
    assert_eq!((row.status, row.resent), (TaskStatus::Failed, true));
    let again = start(store, "code", contact, at(10)).await;
    finish(store, finish_of("code", again, end(Outcome::Accepted), NextStep::Sent, at(11))).await;
    let (_, attempts) = task_and_attempts(store, "code").await;
    assert_eq!(attempts.len(), 2);
    assert_eq!(view(store, contact, at(12)).await.sends.len(), 2, "both may have arrived");
}

/// E7: with its attempts, errors and payload.
pub async fn what_is_given_up_becomes_a_dead_letter<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    start(store, "touch", contact, at(1)).await;
    let again = NextStep::Retry { at: at(3), counts: true };
    finish(store, finish_of("touch", 1, end(Outcome::Transient), again, at(2))).await;
    start(store, "touch", contact, at(3)).await;
    finish(store, finish_of("touch", 2, end(Outcome::Recipient), NextStep::Dead, at(4))).await;
    assert_eq!(status(store, "touch").await, TaskStatus::Dead);
    let dead = store.list_dead(tenant(), first_page()).await.unwrap().items.remove(0);
    assert_eq!((dead.id.as_str(), dead.kind.as_str(), dead.key.as_str()), ("touch", "task", "touch"));
    assert_eq!((dead.attempts, dead.reason.as_str()), (2, "recipient"));
    assert_eq!(dead.errors, ["it was transient", "it was recipient"]);
    assert_eq!((dead.last_error.as_deref(), dead.flow.as_deref()), (Some("it was recipient"), Some("vendas")));
    assert_eq!((dead.created_at, dead.died_at), (at(0), at(4)));
    assert_eq!(dead.payload["message"], "lembrete_pix");
    assert!(!dead.consumer_version.is_empty());
}

/// The look after the start stopped it: counted as the success it is.
pub async fn an_attempt_closed_before_a_byte_left_is_avoided<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    start(store, "touch", contact, at(1)).await;
    finish(store, finish_of("touch", 1, end(Outcome::NotSent), NextStep::Cancelled(Reason::Paid), at(2))).await;
    let row = task(store, "touch").await.task;
    assert_eq!((row.status, row.reason, row.avoided), (TaskStatus::Cancelled, Some(Reason::Paid), true));
    assert!(view(store, contact, at(3)).await.sends.is_empty());
}

async fn sent<S: Store>(store: &S, n: u64, message: &str) -> String {
    let id = format!("touch-{n}");
    let contact = contact_with(store, n, vec![Task { reference: Default::default(), ..reminder(&id, 0) }]).await;
    start(store, &id, contact, at(1)).await;
    let mut accepted = end(Outcome::Accepted);
    accepted.provider_message_id = Some(message.to_owned());
    assert!(finish(store, finish_of(&id, 1, accepted, NextStep::Sent, at(2))).await);
    id
}

fn receipt(message: &str, status: ReceiptStatus) -> Receipt {
    Receipt { tenant: tenant(), channel: "zap".into(), provider_message_id: message.to_owned(), status, at: at(9) }
}

/// E6: READ before DELIVERED is fine.
pub async fn receipts_in_any_order_say_the_same<S: Store>(store: &S) {
    use ReceiptStatus::{Delivered, Failed, Read, Sent};
    let orders = [[Sent, Delivered, Read, Failed], [Read, Failed, Sent, Delivered], [Failed, Delivered, Read, Sent]];
    for (n, order) in (1..).zip(orders) {
        let message = format!("3EB0{n}");
        let id = sent(store, n, &message).await;
        for status in order {
            store.merge_receipts(vec![receipt(&message, status), receipt(&message, status)]).await.unwrap();
        }
        assert_eq!(task(store, &id).await.receipt, Some(Read), "{order:?}");
    }
}

/// E6: the side state.
pub async fn a_failed_receipt_is_overridden_by_delivery_only<S: Store>(store: &S) {
    use ReceiptStatus::{Accepted, Delivered, Failed, Played, Sent};
    let cases = [
        (vec![], Accepted),
        (vec![Sent], Sent),
        (vec![Failed], Failed),
        (vec![Failed, Sent], Failed),
        (vec![Sent, Failed, Accepted], Failed),
        (vec![Failed, Delivered], Delivered),
        (vec![Played, Failed], Played),
    ];
    for (n, (told, expected)) in (1..).zip(cases) {
        let message = format!("3EB0{n}");
        let id = sent(store, n, &message).await;
        store.merge_receipts(told.iter().map(|status| receipt(&message, *status)).collect()).await.unwrap();
        assert_eq!(task(store, &id).await.receipt, Some(expected), "{told:?}");
    }
}

/// E6: the status before our own HTTP answer; no orphan, no race.
pub async fn a_receipt_may_come_before_our_own_result<S: Store>(store: &S) {
    store.merge_receipts(vec![receipt("3EB01", ReceiptStatus::Delivered)]).await.unwrap();
    // The same id on another channel, or of another tenant, is another message.
    let other = Receipt { channel: "cloud".into(), ..receipt("3EB01", ReceiptStatus::Played) };
    let theirs = Receipt { tenant: Tenant::new("outra"), ..receipt("3EB01", ReceiptStatus::Played) };
    store.merge_receipts(vec![other, theirs]).await.unwrap();
    let id = sent(store, 1, "3EB01").await;
    assert_eq!(task(store, &id).await.receipt, Some(ReceiptStatus::Delivered));
}

/// FC-26: "all times recorded (each first time)".
pub async fn each_receipt_keeps_its_first_time<S: Store>(store: &S) {
    use ReceiptStatus::{Delivered, Failed, Read, Sent};
    let id = sent(store, 1, "3EB01").await;
    let said = [(Read, 40), (Delivered, 30), (Failed, 35), (Sent, 20), (Delivered, 25), (Read, 50)];
    for (status, when) in said {
        store.merge_receipts(vec![Receipt { at: at(when), ..receipt("3EB01", status) }]).await.unwrap();
    }
    let row = task(store, &id).await;
    let times = row.receipt_times;
    assert_eq!(row.receipt, Some(Read));
    assert_eq!((times.accepted_at, times.sent_at), (Some(at(2)), Some(at(20))));
    assert_eq!((times.delivered_at, times.read_at, times.played_at), (Some(at(25)), Some(at(40)), None));
    assert_eq!(times.failed_at, Some(at(35)));
}

/// What says that a message left: an echo, or what a person typed; `text` is missing in a receipt.
fn told(n: u64, kind: EventKind, id: &str, text: Option<&str>) -> NewEvent {
    let mut event = message(n, "5541999990001");
    event.kind = kind;
    event.entry = Entry::Ignored("own_echo".to_owned());
    event.data.text = text.map(str::to_owned);
    event.data.message_id = Some(id.to_owned());
    event
}

/// E4: echoes, what a person typed, and receipts that nothing else explains; what belongs to a task is marked.
pub async fn messages_of_our_own_are_found_by_their_contact<S: Store>(store: &S) {
    use EventKind::{MessageHuman, MessageStatus};
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    start(store, "touch", contact, at(1)).await;
    let mut accepted = end(Outcome::Accepted);
    accepted.provider_message_id = Some("CLAIMED".to_owned());
    finish(store, finish_of("touch", 1, accepted, NextStep::Sent, at(2))).await;
    append(store, told(3, MessageStatus, "EARLY", Some("Oi"))).await;
    append(store, told(10, MessageStatus, "CLAIMED", Some("Oi"))).await;
    append(store, told(11, MessageStatus, "ECHO", Some("Oi Ana"))).await;
    append(store, told(12, MessageHuman, "TYPED", None)).await;
    append(store, told(13, MessageStatus, "ECHO", None)).await;
    append(store, told(14, MessageStatus, "ORPHAN", None)).await;
    append(store, message(15, "5541999990001")).await;
    let other = NewEvent {
        data: EventData { channel: Some("cloud".into()), ..told(16, MessageStatus, "X", None).data },
        ..told(16, MessageStatus, "X", None)
    };
    append(store, other).await;
    let question = |contact| SightingQuery { tenant: tenant(), contact, channel: "zap".into(), since: at(5) };
    let nobody = contact_id(99);
    let mut found = store.load_sightings(vec![question(contact), question(nobody)]).await.unwrap();
    assert_eq!(found.pop(), Some(Sightings::default()));
    let Sightings { mut messages, receipts } = found.remove(0);
    messages.sort_by_key(|seen| seen.heard_at);
    let shape: Vec<_> = messages.iter().map(|seen| (seen.message_id.as_str(), seen.said, seen.claimed)).collect();
    assert_eq!(
        shape,
        [("CLAIMED", Some(text_key("Oi")), true), ("ECHO", Some(text_key("Oi  Ana")), false), ("TYPED", None, false)]
    );
    assert_eq!(receipts.iter().map(|seen| seen.message_id.as_str()).collect::<Vec<_>>(), ["ORPHAN"]);
    let asked = vec!["ECHO".to_owned(), "CLAIMED".to_owned()];
    assert_eq!(store.claimed_messages(tenant(), "zap".into(), asked.clone()).await.unwrap(), ["CLAIMED"]);
    assert!(store.claimed_messages(tenant(), "cloud".into(), asked).await.unwrap().is_empty());
}

/// E4: "every such case is visible, with its evidence".
pub async fn evidence_is_kept_in_order<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    start(store, "touch", contact, at(1)).await;
    finish(store, finish_of("touch", 1, end(Outcome::Ambiguous), NextStep::Unsure { until: at(90) }, at(2))).await;
    let unsure = store.load_unsure(10).await.unwrap().remove(0);
    assert_eq!((unsure.attempt.n, unsure.attempt.ended_at, unsure.said), (1, Some(at(2)), Some(text_key("Oi"))));
    let row = |task: &str, when, witness, said: &str| Evidence {
        tenant: tenant(),
        task: task.into(),
        at: at(when),
        witness,
        said: said.to_owned(),
    };
    let rows = vec![row("touch", 3, Witness::Search, "nothing"), row("touch", 9, Witness::Policy, "held")];
    store.add_evidence(rows.clone()).await.unwrap();
    store.add_evidence(vec![row("nowhere", 9, Witness::Policy, "held")]).await.unwrap();
    assert_eq!(store.list_evidence(tenant(), "touch".into()).await.unwrap(), rows);
    let resolve = Reopen { tenant: tenant(), ids: vec!["touch".into()], how: ReopenHow::ResolveSent };
    store.reopen_tasks(resolve, "ana".to_owned(), at(10)).await.unwrap();
    let kept = store.list_evidence(tenant(), "touch".into()).await.unwrap();
    assert_eq!(
        kept.iter().map(|row| row.witness).collect::<Vec<_>>(),
        [Witness::Search, Witness::Policy, Witness::Person]
    );
}

/// E4: an echo that comes after the policy had decided proves the send all the same; nothing else does.
pub async fn a_late_echo_settles_what_the_policy_had_given_up<S: Store>(store: &S) {
    use EventKind::{MessageHuman, MessageStatus};
    let ids = ["held", "assumed", "settled"];
    let contact = contact_with(store, 1, ids.map(|id| reminder(id, 0)).to_vec()).await;
    for (id, now) in ids.into_iter().zip([1, 1000, 2000]) {
        start(store, id, contact, at(now)).await;
        let unsure = NextStep::Unsure { until: at(now + 90) };
        finish(store, finish_of(id, 1, end(Outcome::Ambiguous), unsure, at(now + 30))).await;
        let policy = if id == "held" { NextStep::Held(Reason::Unconfirmed) } else { NextStep::Sent };
        finish(store, finish_of(id, 1, end(Outcome::Ambiguous), policy, at(now + 90))).await;
    }
    let resolve = Reopen { tenant: tenant(), ids: vec!["held".into()], how: ReopenHow::ResolveNotSent };
    let echo = |n, kind, id, text, sent: i64| NewEvent {
        entry: Entry::Received,
        subject: person(n, vec![phone("5541999990001")]),
        occurred_at: at(sent),
        received_at: at(5000),
        ..told(n, kind, id, Some(text))
    };
    // Another text, the same text hours later, and the same text of somebody else prove nothing.
    append(store, echo(11, MessageHuman, "OTHER", "Oi Bia", 5)).await;
    append(store, echo(12, MessageHuman, "LATER", "Oi", 4000)).await;
    let elsewhere =
        NewEvent { subject: person(13, vec![phone("5541999990009")]), ..echo(13, MessageHuman, "ELSE", "Oi", 5) };
    append(store, elsewhere).await;
    assert_eq!(status(store, "held").await, TaskStatus::Held);
    let before = task(store, "assumed").await;
    assert_eq!((before.task.status, before.provider_message_id), (TaskStatus::Sent, None));
    // Under either event name; the second copy adds nothing.
    append(store, echo(14, MessageHuman, "ECHO1", "Oi\n", 5)).await;
    append(store, echo(15, MessageStatus, "ECHO1", "Oi", 5)).await;
    append(store, echo(16, MessageStatus, "ECHO2", "Oi", 1003)).await;
    for (id, message) in [("held", "ECHO1"), ("assumed", "ECHO2")] {
        let (row, attempts) = task_and_attempts(store, id).await;
        assert_eq!((row.task.status, row.task.reason), (TaskStatus::Sent, None), "{id}");
        assert_eq!(row.provider_message_id.as_deref(), Some(message), "{id}");
        assert_eq!(attempts[0].provider_message_id.as_deref(), Some(message), "{id}");
        assert_eq!(attempts[0].outcome, Some(Outcome::Ambiguous), "{id}: its end stays what it was");
        assert_eq!(row.receipt, Some(ReceiptStatus::Accepted), "{id}");
        let witnesses: Vec<Witness> = evidence_of(store, id).await;
        assert_eq!(witnesses, [Witness::Echo], "{id}");
    }
    assert_eq!(task(store, "settled").await.provider_message_id, None, "an echo proves one send");
    assert!(
        store.reopen_tasks(resolve, "ana".to_owned(), at(6000)).await.unwrap().is_empty(),
        "nothing is left to resolve"
    );
    // The decision will see that it was no person.
    assert!(view(store, contact, at(6000)).await.echoes.contains(&"ECHO1".to_owned()));
}

async fn evidence_of<S: Store>(store: &S, id: &str) -> Vec<Witness> {
    store.list_evidence(tenant(), id.into()).await.unwrap().iter().map(|row| row.witness).collect()
}
