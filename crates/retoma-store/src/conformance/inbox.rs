//! What waits to be decided, and what people do with events (A4, E7).

use retoma_core::event::EventKind;
use retoma_core::ids::EventId;

use super::world::*;
use crate::*;

/// Pending means: committed, not decided.
pub async fn what_is_committed_is_pending_until_it_is_decided<S: Store>(store: &S) {
    let sent = message(1, "5541999990001");
    let contact = append_new(store, sent.clone()).await;
    let waiting = pending(store).await.remove(0);
    assert_eq!(waiting.data, sent.data);
    assert_eq!((waiting.kind, waiting.source.as_str(), waiting.urgent), (EventKind::MessageReceived, "zap", false));
    assert_eq!((waiting.contact, waiting.occurred_at, waiting.received_at), (Some(contact), at(1), at(1)));
    let before = view(store, contact, at(2)).await;
    assert_eq!(before.undecided, [waiting]);
    commit(store, &before, decide(&before), at(2)).await;
    assert!(pending_ids(store).await.is_empty());
    assert!(view(store, contact, at(2)).await.undecided.is_empty());
}

/// Late commits cannot hide behind a cursor.
pub async fn a_rescan_finds_what_sorts_before_the_cursor<S: Store>(store: &S) {
    for n in [10, 20, 30] {
        append(store, message(n, "5541999990001")).await;
    }
    // Its id was made early, its transaction ended late.
    append(store, NewEvent { received_at: at(25), ..message(5, "5541999990005") }).await;
    let owner = owner(store).await;
    let ask = |after, rescan_from| {
        let query = PendingQuery { owner: owner.clone(), after, rescan_from, limit: 100 };
        async { store.load_pending(query).await.unwrap().into_iter().map(|event| event.id).collect::<Vec<_>>() }
    };
    let ids = |numbers: &[u64]| numbers.iter().map(|n| event_id(*n)).collect::<Vec<_>>();
    let cases: [(Option<u64>, Option<i64>, &[u64]); 5] = [
        (None, None, &[5, 10, 20, 30]),
        (Some(20), None, &[30]),
        (Some(20), Some(25), &[5, 30]),
        (Some(30), Some(0), &[5, 10, 20, 30]),
        (Some(30), Some(31), &[]),
    ];
    for (after, from, expected) in cases {
        let found = ask(after.map(event_id), from.map(at)).await;
        assert_eq!(found, ids(expected), "after {after:?}, rescan from {from:?}");
    }
}

/// Never 7: a backlog comes in portions.
pub async fn pending_is_oldest_first_and_bounded<S: Store>(store: &S) {
    for n in [3, 1, 2] {
        append(store, message(n, &format!("554199999000{n}"))).await;
    }
    let query = PendingQuery { owner: owner(store).await, after: None, rescan_from: Some(at(0)), limit: 2 };
    let found: Vec<EventId> = store.load_pending(query).await.unwrap().into_iter().map(|event| event.id).collect();
    assert_eq!(found, [event_id(1), event_id(2)]);
}

/// A7: without a contact, of one order.
pub async fn events_without_a_contact_share_the_bucket_of_their_order<S: Store>(store: &S) {
    let of_order = |n, transaction: &str| {
        let event = payment(n, EventKind::Unknown, transaction, Vec::new());
        bare(NewEvent { subject: Subject::Nobody, business_key: None, ..event })
    };
    store.append_events(vec![of_order(1, "HP1"), of_order(2, "HP1"), of_order(3, "HP2")]).await.unwrap();
    let buckets: Vec<_> = pending(store).await.into_iter().map(|event| event.bucket).collect();
    assert_eq!(buckets[0], buckets[1]);
    assert_ne!(buckets[0], buckets[2]);
}

fn moves(ids: &[u64], to: EventMove) -> EventMoves {
    EventMoves {
        tenant: tenant(),
        ids: ids.iter().map(|n| event_id(*n)).collect(),
        to,
        actor: "ana".to_owned(),
        reason: Some("checked".to_owned()),
        now: at(100),
    }
}

/// A4: no usable id, no side effect, until somebody says so.
pub async fn a_held_event_waits_for_a_person<S: Store>(store: &S) {
    let held = NewEvent { entry: Entry::Held("missing_id".to_owned()), ..message(1, "5541999990001") };
    append(store, held).await;
    assert!(pending_ids(store).await.is_empty());
    let row = event(store, 1).await;
    assert_eq!((row.status, row.reason.as_deref(), row.completed_at), (EventStatus::Held, Some("missing_id"), None));
    assert_eq!(store.move_events(moves(&[1], EventMove::Release)).await.unwrap(), [event_id(1)]);
    let waiting = pending(store).await;
    assert_eq!(waiting.iter().map(|event| event.id).collect::<Vec<_>>(), [event_id(1)]);
    assert!(waiting[0].contact.is_some(), "a released event has its person");
    assert_eq!(event(store, 1).await.status, EventStatus::Received);
    assert_eq!(audit_actions(store).await, ["event.release"]);
}

/// A4.
pub async fn a_discarded_event_never_enters_the_inbox<S: Store>(store: &S) {
    append(store, NewEvent { entry: Entry::Held("missing_id".to_owned()), ..message(1, "5541999990001") }).await;
    store.move_events(moves(&[1], EventMove::Discard)).await.unwrap();
    let row = event(store, 1).await;
    assert_eq!((row.status, row.completed_at), (EventStatus::Discarded, Some(at(100))));
    assert!(pending_ids(store).await.is_empty());
    let again = append(store, NewEvent { id: event_id(2), ..message(1, "5541999990001") }).await;
    assert!(matches!(again, Appended::Duplicate { status: EventStatus::Discarded, .. }), "{again:?}");
}

/// A5: the business key is claimed when a held fact is released, not while it is held.
pub async fn a_released_fact_that_became_known_meanwhile_is_ignored<S: Store>(store: &S) {
    let buyer = || vec![phone("5541999990001")];
    let fact = payment(1, EventKind::PaymentApproved, "HP1", buyer());
    append(store, NewEvent { entry: Entry::Held("missing_id".to_owned()), ..fact }).await;
    let told = append(store, payment(2, EventKind::PaymentApproved, "HP1", buyer())).await;
    assert!(matches!(told, Appended::New { .. }), "{told:?}");
    store.move_events(moves(&[1], EventMove::Release)).await.unwrap();
    let row = event(store, 1).await;
    assert_eq!((row.status, row.reason.as_deref()), (EventStatus::Ignored, Some("repeated_fact")));
    assert_eq!(pending_ids(store).await, [event_id(2)]);
}

/// E7: what was concluded is recognised, not repeated: the ids of its tasks stay claimed.
pub async fn a_replayed_event_enters_the_inbox_once_more<S: Store>(store: &S) {
    use retoma_core::decision::Decision;
    let contact = append_new(store, message(1, "5541999990001")).await;
    let before = view(store, contact, at(1)).await;
    let promised = Decision { new_tasks: vec![of(contact, reminder("once", 60))], ..decide(&before) };
    commit(store, &before, promised, at(1)).await;
    assert_eq!(store.move_events(moves(&[1], EventMove::Replay)).await.unwrap(), [event_id(1)]);
    let before = view(store, contact, at(2)).await;
    assert_eq!(before.undecided.len(), 1);
    let again = Decision { new_tasks: vec![of(contact, reminder("once", 60))], ..decide(&before) };
    let answers = store.commit_decisions(owner(store).await, vec![commit_of(&before, again, at(2))]).await.unwrap();
    assert_eq!(answers, [Committed::Done { already_claimed: vec!["once".into()] }]);
    assert_eq!(event(store, 1).await.status, EventStatus::Decided);
}

/// Each move has its states; the answer names what it took.
pub async fn moving_what_cannot_move_changes_nothing<S: Store>(store: &S) {
    append(store, message(1, "5541999990001")).await;
    append(store, NewEvent { entry: Entry::Ignored("group".to_owned()), ..message(2, "5541999990002") }).await;
    for (ids, to) in [(&[1][..], EventMove::Release), (&[1, 2], EventMove::Discard), (&[1], EventMove::Replay)] {
        let taken = store.move_events(moves(ids, to)).await.unwrap();
        assert!(taken.is_empty(), "{to:?} took {taken:?}");
    }
    let elsewhere = EventMoves { tenant: Tenant::new("outra"), ..moves(&[2], EventMove::Replay) };
    assert!(store.move_events(elsewhere).await.unwrap().is_empty());
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    assert!(audit_actions(store).await.is_empty());
}

/// Never 5: it holds up nobody; a person sees it with its error and may try again.
pub async fn an_event_that_cannot_be_decided_becomes_a_dead_letter<S: Store>(store: &S) {
    append(store, message(1, "5541999990001")).await;
    store.park_event(event_id(1), "flow vendas is gone".to_owned(), at(50)).await.unwrap();
    store.park_event(event_id(1), "again".to_owned(), at(51)).await.unwrap();
    assert!(pending_ids(store).await.is_empty());
    let row = event(store, 1).await;
    assert_eq!((row.status, row.error.as_deref()), (EventStatus::Dead, Some("flow vendas is gone")));
    let dead = store.list_dead(tenant(), first_page()).await.unwrap().items.remove(0);
    assert_eq!((dead.kind.as_str(), dead.id), ("event", event_id(1).to_string()));
    assert_eq!((dead.source.as_deref(), dead.flow.as_deref()), (Some("zap"), Some("vendas")));
    assert_eq!((dead.key.as_str(), dead.last_error.as_deref()), ("loja-a/1", Some("flow vendas is gone")));
    assert_eq!((dead.created_at, dead.died_at), (at(1), at(50)));
    store.move_events(moves(&[1], EventMove::Replay)).await.unwrap();
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    assert!(store.list_dead(tenant(), first_page()).await.unwrap().items.is_empty());
}
