//! Decisions: one owner, one version, one end per event, ids claimed for ever (C3).

use retoma_core::decision::{Decision, Transition};
use retoma_core::event::EventKind;
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::state::{Contact, Conversation};
use retoma_core::task::TaskStatus;

use super::world::*;
use crate::*;

/// Never 5, too: its neighbours in the batch are not held up.
pub async fn a_stale_decision_changes_nothing_and_its_neighbours_commit<S: Store>(store: &S) {
    let stale = append_new(store, message(1, "5541999990001")).await;
    let fresh = append_new(store, message(2, "5541999990002")).await;
    let seen = view(store, stale, at(3)).await;
    commit(store, &seen, Decision { events: Vec::new(), ..decide(&seen) }, at(3)).await;
    let promised = Decision {
        new_tasks: vec![of(stale, reminder("never", 60))],
        conversations: vec![conversation(stale, 1, "ENGAJADO")],
        ..decide(&seen)
    };
    let other = view(store, fresh, at(3)).await;
    let batch = vec![commit_of(&seen, promised, at(4)), commit_of(&other, decide(&other), at(4))];
    let answers = store.commit_decisions(owner(store).await, batch).await.unwrap();
    assert_eq!(answers, [Committed::Stale, Committed::Done { already_claimed: Vec::new() }]);
    let after = view(store, stale, at(5)).await;
    assert_eq!((after.contact.version, after.undecided.len()), (1, 1));
    assert!(after.conversations.is_empty() && after.tasks.is_empty());
    assert_eq!(event(store, 2).await.status, EventStatus::Decided);
    // The id was not claimed by what did not happen.
    let again = Decision { new_tasks: vec![of(stale, reminder("never", 60))], ..decide(&after) };
    commit(store, &after, again, at(5)).await;
}

/// Never 4: whoever comes second finds it gone from the inbox.
pub async fn an_event_is_decided_once<S: Store>(store: &S) {
    append(store, NewEvent { subject: Subject::Nobody, ..message(1, "") }).await;
    let waiting = pending(store).await.remove(0);
    let record = || DecisionCommit {
        tenant: tenant(),
        bucket: waiting.bucket,
        expected_version: 0,
        decision: Decision { events: vec![outcome(waiting.id)], ..Decision::default() },
        now: at(2),
    };
    let owner = owner(store).await;
    let both = store.commit_decisions(owner.clone(), vec![record(), record()]).await.unwrap();
    assert_eq!(both, [Committed::Done { already_claimed: Vec::new() }, Committed::Stale]);
    assert_eq!(store.commit_decisions(owner, vec![record()]).await.unwrap(), [Committed::Stale]);
}

/// The second sees what the first left.
pub async fn decisions_of_one_batch_build_on_each_other<S: Store>(store: &S) {
    let contact = append_new(store, message(1, "5541999990001")).await;
    append(store, message(2, "5541999990001")).await;
    let seen = view(store, contact, at(3)).await;
    let first = Decision { events: vec![outcome(event_id(1))], ..decide(&seen) };
    let mut between = seen.clone();
    first.apply(&mut between, at(3));
    let batch = vec![commit_of(&seen, first, at(3)), commit_of(&between, decide(&between), at(3))];
    let answers = store.commit_decisions(owner(store).await, batch).await.unwrap();
    let done = Committed::Done { already_claimed: Vec::new() };
    assert_eq!(answers, [done.clone(), done]);
    assert_eq!(view(store, contact, at(4)).await.contact.version, 2);
}

/// D1, D9: also within one decision, also after the task has come to its end.
pub async fn a_task_id_is_claimed_once_for_ever<S: Store>(store: &S) {
    let contact = append_new(store, message(1, "5541999990001")).await;
    let seen = view(store, contact, at(1)).await;
    let promise = |due| of(contact, Task { reference: Default::default(), ..reminder("touch", due) });
    let twice = Decision { new_tasks: vec![promise(10), promise(99)], ..decide(&seen) };
    let owner = owner(store).await;
    let claimed = [Committed::Done { already_claimed: vec!["touch".into()] }];
    let answers = store.commit_decisions(owner.clone(), vec![commit_of(&seen, twice, at(1))]).await.unwrap();
    assert_eq!(answers, claimed);
    assert_eq!(task(store, "touch").await.task.next_attempt_at, at(10));
    let attempt = start(store, "touch", contact, at(11)).await;
    finish(store, finish_of("touch", attempt, end(Outcome::Accepted), NextStep::Sent, at(12))).await;
    let seen = view(store, contact, at(13)).await;
    let again = Decision { new_tasks: vec![promise(20)], ..decide(&seen) };
    let answers = store.commit_decisions(owner, vec![commit_of(&seen, again, at(13))]).await.unwrap();
    assert_eq!(answers, claimed);
    assert_eq!(status(store, "touch").await, TaskStatus::Sent);
    assert!(due_ids(store, at(1000)).await.is_empty());
}

/// A7: it stands alone, and ends with a reason.
pub async fn an_event_without_a_contact_is_only_recorded<S: Store>(store: &S) {
    append(store, NewEvent { subject: Subject::Nobody, ..message(1, "") }).await;
    let waiting = pending(store).await;
    let commit = DecisionCommit {
        tenant: tenant(),
        bucket: waiting[0].bucket,
        expected_version: 0,
        decision: Decision::recorded(&waiting, "no_contact"),
        now: at(2),
    };
    store.commit_decisions(owner(store).await, vec![commit]).await.unwrap();
    let row = event(store, 1).await;
    assert_eq!((row.status, row.reason.as_deref()), (EventStatus::Ignored, Some("no_contact")));
    assert_eq!((row.result.as_deref(), row.completed_at), (Some("no_contact"), Some(at(2))));
    assert!(pending_ids(store).await.is_empty());
}

/// C14: append only, as it was decided.
pub async fn the_transition_log_keeps_its_order<S: Store>(store: &S) {
    let contact = append_new(store, message(1, "5541999990001")).await;
    let step = |n: u64, from: &str, to: &str| Transition {
        contact,
        conversation: conversation(contact, 1, "").id,
        from: from.to_owned(),
        event: "pediu_preco".to_owned(),
        taken_as: (n == 1).then(|| "msg_recebida".to_owned()),
        to: to.to_owned(),
        reason: (n == 3).then(|| "no_transition".to_owned()),
        actions: if n == 2 { vec!["mandar_oferta".to_owned(), "avisar".to_owned()] } else { Vec::new() },
        rule: Some("pediu_preco#1 \"quanto\"".to_owned()),
        event_id: event_id(n),
        at: at(i64::try_from(n).unwrap()),
    };
    let steps = [step(1, "NOVO", "ENGAJADO"), step(2, "ENGAJADO", "NEGOCIANDO"), step(3, "NEGOCIANDO", "NEGOCIANDO")];
    let seen = view(store, contact, at(1)).await;
    commit(store, &seen, Decision { transitions: steps[..2].to_vec(), ..decide(&seen) }, at(2)).await;
    let seen = view(store, contact, at(2)).await;
    commit(store, &seen, Decision { transitions: steps[2..].to_vec(), ..decide(&seen) }, at(3)).await;
    assert_eq!(store.list_transitions(tenant(), contact).await.unwrap(), steps);
    assert!(store.list_transitions(Tenant::new("outra"), contact).await.unwrap().is_empty());
}

/// C5: the clock of every open cycle, and of no closed one.
pub async fn deadlines_fall_due_earliest_first<S: Store>(store: &S) {
    assert_eq!(store.next_wake().await.unwrap(), NextWake::default());
    let contact = append_new(store, message(1, "5541999990001")).await;
    let clocks = [(1, 300, false), (2, 100, false), (3, 200, false), (4, 50, true)];
    let cycles: Vec<Conversation> = clocks
        .iter()
        .map(|(ordinal, deadline, closed)| Conversation {
            deadline_at: Some(at(*deadline)),
            closed: *closed,
            ..conversation(contact, *ordinal, "ENGAJADO")
        })
        .collect();
    let seen = view(store, contact, at(1)).await;
    commit(store, &seen, Decision { conversations: cycles.clone(), ..decide(&seen) }, at(1)).await;
    assert_eq!(store.next_wake().await.unwrap(), NextWake { deadline_at: Some(at(100)), task_at: None });
    let ordinals = async |now, limit| -> Vec<u32> {
        let due = store.load_deadlines(at(now), limit).await.unwrap();
        let of = |due: &DueDeadline| cycles.iter().find(|cycle| cycle.id == due.conversation).unwrap().ordinal;
        assert!(due.iter().all(|due| due.contact == contact && due.tenant == tenant()));
        due.iter().map(of).collect()
    };
    assert_eq!(ordinals(99, 10).await, [0_u32; 0]);
    assert_eq!(ordinals(100, 10).await, [2]);
    assert_eq!(ordinals(1000, 10).await, [2, 3, 1]);
    assert_eq!(ordinals(1000, 2).await, [2, 3]);
    // Moved, and taken away.
    let seen = view(store, contact, at(2)).await;
    let moved = vec![
        Conversation { deadline_at: Some(at(400)), ..cycles[1].clone() },
        Conversation { deadline_at: None, ..cycles[2].clone() },
    ];
    commit(store, &seen, Decision { conversations: moved, ..decide(&seen) }, at(2)).await;
    assert_eq!(ordinals(1000, 10).await, [1, 2]);
    assert_eq!(store.next_wake().await.unwrap().deadline_at, Some(at(300)));
}

/// DESIGN, "Buckets": two intakes at once cannot see each other, so facts are looked up by the order.
pub async fn facts_of_an_order_are_seen_whichever_contact_holds_it<S: Store>(store: &S) {
    let waiting = append_new(store, message(1, "5541999990001")).await;
    open_cycle(store, waiting, "curso", Some(order("HP1"))).await;
    assert!(view(store, waiting, at(2)).await.facts.is_empty());
    let buyer = || vec![phone("5541999990002")];
    append(store, payment(2, EventKind::PixCreated, "HP1", buyer())).await;
    append(store, payment(3, EventKind::PaymentApproved, "HP1", buyer())).await;
    // Told again, by another event id: still one fact.
    append(store, payment(4, EventKind::PaymentApproved, "HP1", buyer())).await;
    append(store, payment(5, EventKind::PaymentApproved, "HP9", buyer())).await;
    let seen = view(store, waiting, at(6)).await;
    let kinds: Vec<_> = seen.facts.iter().map(|fact| (fact.kind, fact.order.transaction.as_str())).collect();
    assert_eq!(kinds, [(EventKind::PixCreated, "HP1"), (EventKind::PaymentApproved, "HP1")]);
    assert_eq!(seen.fact_of(&order("HP1")).unwrap().occurred_at, at(3));
}

/// The answer follows the question's order.
pub async fn an_unknown_contact_is_left_out<S: Store>(store: &S) {
    let first = append_new(store, message(1, "5541999990001")).await;
    let second = append_new(store, message(2, "5541999990002")).await;
    let asked = [second, contact_id(77), first].map(|contact| (tenant(), contact)).to_vec();
    let found: Vec<Contact> = store.load_contacts(asked, at(3)).await.unwrap().into_iter().map(|v| v.contact).collect();
    assert_eq!(found.iter().map(|contact| contact.id).collect::<Vec<_>>(), [second, first]);
    assert!(found.iter().all(|contact| contact.version == 0 && contact.cycles == 0 && contact.opted_out_at.is_none()));
}
