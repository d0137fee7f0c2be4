//! Events are recognised once, whatever comes how often (A5, A6).

use retoma_core::event::EventKind;
use retoma_core::keys::{body_digest, digest16};

use super::world::*;
use crate::*;

/// A5, FC-02: a hundred identical requests at the same time.
pub async fn a_hundred_identical_deliveries_at_once_are_one_event<S: Store>(store: &S) {
    let copies = (0..100)
        .map(|n| {
            let event = NewEvent { id: event_id(n + 1), ..message(7, "5541999990007") };
            store.append_events(vec![request(n, b"{}", vec![event])])
        })
        .collect();
    let answers: Vec<Appended> = all(copies).await.into_iter().map(|answer| answer.unwrap()[0][0].clone()).collect();
    let new: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            Appended::New { event, .. } => Some(*event),
            _ => None,
        })
        .collect();
    assert_eq!(new.len(), 1);
    let mut counted: Vec<u64> = answers
        .iter()
        .filter_map(|answer| match answer {
            Appended::Duplicate { event, status: EventStatus::Received, duplicates, altered: false, .. }
                if *event == new[0] =>
            {
                Some(*duplicates)
            }
            _ => None,
        })
        .collect();
    counted.sort_unstable();
    assert_eq!(counted, (1..=99).collect::<Vec<_>>());
    assert_eq!(pending_ids(store).await, new);
    let row = store.get_event(tenant(), new[0]).await.unwrap().unwrap();
    assert_eq!((row.duplicates, row.altered), (99, false));
}

/// A5: before it looks at what is stored.
pub async fn a_batch_dedupes_within_itself<S: Store>(store: &S) {
    let copy = |id: u64| bare(NewEvent { id: event_id(id), ..message(7, "5541999990007") });
    let answers =
        store.append_events(vec![copy(1), bare(message(8, "5541999990008")), copy(2), copy(3)]).await.unwrap();
    let shape: Vec<_> = answers
        .iter()
        .map(|parts| match &parts[0] {
            Appended::New { event, .. } => (*event, 0),
            Appended::Duplicate { event, duplicates, .. } => (*event, *duplicates),
            Appended::RepeatedFact { .. } => panic!("no fact is told"),
        })
        .collect();
    assert_eq!(shape, [(event_id(1), 0), (event_id(8), 0), (event_id(1), 1), (event_id(1), 2)]);
    assert_eq!(pending_ids(store).await, [event_id(1), event_id(8)]);
}

/// A5: not merged; the first one stands.
pub async fn the_same_key_with_another_body_is_kept_and_flagged<S: Store>(store: &S) {
    let first = message(1, "5541999990001");
    let other = NewEvent { id: event_id(2), digest: body_digest(b"other"), ..message(1, "5541999990001") };
    store.append_events(vec![request(1, b"first", vec![first])]).await.unwrap();
    let answers = store.append_events(vec![request(2, b"other", vec![other])]).await.unwrap();
    let expected = Appended::Duplicate {
        event: event_id(1),
        status: EventStatus::Received,
        result: None,
        duplicates: 1,
        altered: true,
    };
    assert_eq!(answers, [[expected]]);
    assert!(event(store, 1).await.altered);
    let raw = store.get_raw(tenant(), event_id(1)).await.unwrap().unwrap();
    assert_eq!(&raw.body[..], b"first");
}

/// A2: the recorded outcome is reported.
pub async fn a_repetition_of_a_completed_event_reports_its_outcome<S: Store>(store: &S) {
    let contact = append_new(store, message(1, "5541999990001")).await;
    let before = view(store, contact, at(1)).await;
    commit(store, &before, decide(&before), at(1)).await;
    let again = append(store, NewEvent { id: event_id(2), ..message(1, "5541999990001") }).await;
    let expected = Appended::Duplicate {
        event: event_id(1),
        status: EventStatus::Decided,
        result: Some("NOVO -> ENGAJADO".to_owned()),
        duplicates: 1,
        altered: false,
    };
    assert_eq!(again, expected);
    assert_eq!(event(store, 1).await.completed_at, Some(at(1)));
    assert!(pending_ids(store).await.is_empty());
}

/// A5, FC-08: one fact under several event ids.
pub async fn a_fact_known_under_another_key_is_stored_and_reaches_nobody<S: Store>(store: &S) {
    let buyer = || vec![phone("5541999990001")];
    let contact = append_new(store, payment(1, EventKind::PaymentApproved, "HP1", buyer())).await;
    let repeated = append(store, payment(2, EventKind::PaymentApproved, "HP1", buyer())).await;
    assert_eq!(repeated, Appended::RepeatedFact { event: event_id(2), first: event_id(1) });
    let row = event(store, 2).await;
    assert_eq!((row.status, row.reason.as_deref()), (EventStatus::Ignored, Some("repeated_fact")));
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    assert_eq!(view(store, contact, at(1)).await.undecided.len(), 1);
    // Another fact of the same transaction is new.
    let completed = append(store, payment(3, EventKind::OrderCompleted, "HP1", buyer())).await;
    assert!(matches!(completed, Appended::New { .. }), "{completed:?}");
}

/// A5, within one commit.
pub async fn one_fact_told_twice_in_one_batch_happens_once<S: Store>(store: &S) {
    let told = |n| bare(payment(n, EventKind::PaymentApproved, "HP1", vec![phone("5541999990001")]));
    let answers = store.append_events(vec![told(1), told(2)]).await.unwrap();
    assert!(matches!(answers[0][0], Appended::New { .. }));
    assert_eq!(answers[1][0], Appended::RepeatedFact { event: event_id(2), first: event_id(1) });
}

/// A6: each part has its own key.
pub async fn parts_of_one_request_are_stored_together_over_bytes_kept_once<S: Store>(store: &S) {
    append(store, message(2, "5541999990002")).await;
    let parts = vec![
        message(1, "5541999990001"),
        NewEvent { id: event_id(9), ..message(2, "5541999990002") },
        NewEvent {
            entry: Entry::Quarantined("no such message".to_owned()),
            subject: Subject::Nobody,
            ..message(3, "")
        },
    ];
    let answers = store.append_events(vec![request(1, b"[1,2,3]", parts)]).await.unwrap();
    assert!(matches!(answers[0][0], Appended::New { .. }));
    assert!(matches!(answers[0][1], Appended::Duplicate { .. }));
    assert!(matches!(answers[0][2], Appended::New { contact: None, .. }));
    for part in [1, 3] {
        let raw = store.get_raw(tenant(), event_id(part)).await.unwrap().unwrap();
        assert_eq!((&raw.body[..], raw.id), (&b"[1,2,3]"[..], request_id(1)));
    }
    assert_eq!(event(store, 3).await.status, EventStatus::Quarantined);
    assert!(store.get_raw(tenant(), event_id(2)).await.unwrap().is_none(), "it came without bytes");
}

/// A8, A10: byte for byte.
pub async fn bytes_come_back_as_they_came<S: Store>(store: &S) {
    let body: Vec<u8> = (0..=255).chain(*b"{\"t\":\"\\u0000\"}").collect();
    store.append_events(vec![request(1, &body, vec![message(1, "5541999990001")])]).await.unwrap();
    let raw = store.get_raw(tenant(), event_id(1)).await.unwrap().unwrap();
    assert_eq!(&raw.body[..], &body[..]);
    assert_eq!(raw.headers, [("content-type".to_owned(), "application/json".to_owned())]);
}

/// The bytes are kept only if a part is new or altered.
pub async fn a_repeated_request_keeps_no_second_copy_of_its_bytes<S: Store>(store: &S) {
    let body = vec![b'x'; 64 * 1024];
    store.append_events(vec![request(1, &body, vec![message(1, "5541999990001")])]).await.unwrap();
    let before = store.stats(at(1)).await.unwrap().bytes;
    for n in 2..40 {
        store.append_events(vec![request(n, &body, vec![message(1, "5541999990001")])]).await.unwrap();
    }
    let grown = store.stats(at(1)).await.unwrap().bytes.saturating_sub(before);
    assert!(grown < 38 * 64 * 1024, "38 repetitions of 64 KiB took {grown} bytes");
}

/// FC-02, H3: the key is scoped.
pub async fn keys_of_two_tenants_are_apart<S: Store>(store: &S) {
    append(store, message(1, "5541999990001")).await;
    let theirs = NewEvent {
        id: event_id(2),
        tenant: Tenant::new("outra"),
        delivery_key: digest16("delivery", &[b"outra", b"zap", b"loja-a/1"]),
        subject: person(2, vec![phone("5541999990001")]),
        ..message(1, "5541999990001")
    };
    assert!(matches!(append(store, theirs).await, Appended::New { .. }));
    assert!(store.get_event(Tenant::new("outra"), event_id(1)).await.unwrap().is_none());
    assert!(store.get_event(tenant(), event_id(2)).await.unwrap().is_none());
    let theirs = store.list_events(Tenant::new("outra"), EventFilter::default(), first_page()).await.unwrap();
    assert_eq!(theirs.items.iter().map(|row| row.id).collect::<Vec<_>>(), [event_id(2)]);
}

/// C10: groups, echoes and unknown types are recorded, with a reason and an end.
pub async fn an_ignored_event_creates_nobody<S: Store>(store: &S) {
    let ignored = NewEvent { entry: Entry::Ignored("group".to_owned()), ..message(1, "5541999990001") };
    assert_eq!(append(store, ignored).await, Appended::New { event: event_id(1), contact: None });
    let row = event(store, 1).await;
    assert_eq!((row.status, row.reason.as_deref()), (EventStatus::Ignored, Some("group")));
    assert!(row.completed_at.is_some());
    assert!(pending_ids(store).await.is_empty());
    let found = store.find_contacts(tenant(), FindContact::Identity(phone("5541999990001"))).await.unwrap();
    assert!(found.is_empty());
}

/// E6: what an event says of a message of ours is stored with it.
pub async fn a_receipt_in_an_event_is_merged_with_it<S: Store>(store: &S) {
    use retoma_core::outcome::{NextStep, Outcome};
    let contact = contact_with(store, 1, vec![reminder("pix:HP1:t15", 0)]).await;
    let attempt = start(store, "pix:HP1:t15", contact, at(1)).await;
    finish(store, finish_of("pix:HP1:t15", attempt, end(Outcome::Accepted), NextStep::Sent, at(2))).await;
    let receipt = Receipt {
        tenant: tenant(),
        channel: "zap".into(),
        provider_message_id: "3EB0AAAA0001".to_owned(),
        status: ReceiptStatus::Read,
        at: at(3),
    };
    let status = NewEvent {
        kind: EventKind::MessageStatus,
        entry: Entry::Ignored("receipt".to_owned()),
        receipt: Some(receipt),
        ..message(2, "5541999990001")
    };
    append(store, status).await;
    assert_eq!(task(store, "pix:HP1:t15").await.receipt, Some(ReceiptStatus::Read));
}

fn stub(id: u64) -> NewEvent {
    let entry = Entry::Ignored("content_pending".to_owned());
    let data = retoma_core::event::EventData::default();
    NewEvent { id: event_id(id), entry, data, digest: body_digest(b"stub"), ..message(7, "5541999990007") }
}

/// FC-06: the copy with content becomes the event, once, in whatever order copies come; an empty one takes nothing away.
pub async fn a_message_without_content_is_filled_by_the_copy_that_has_it<S: Store>(store: &S) {
    let full = |id: u64| NewEvent { id: event_id(id), received_at: at(60), ..message(7, "5541999990007") };
    let append = async |event: NewEvent, body: &'static [u8]| {
        let n = u64::try_from(event.id.0.as_u128() % 1000).unwrap();
        store.append_events(vec![request(n, body, vec![event])]).await.unwrap()[0][0].clone()
    };
    assert!(matches!(append(stub(1), b"stub").await, Appended::New { contact: None, .. }));
    assert!(matches!(append(stub(2), b"stub").await, Appended::Duplicate { status: EventStatus::Ignored, .. }));
    assert_eq!(pending_ids(store).await, [], "a stub starts nothing");
    let filled = append(full(3), b"full").await;
    assert!(matches!(filled, Appended::New { event, contact: Some(_) } if event == event_id(1)), "{filled:?}");
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    for (event, body) in [(full(4), &b"full"[..]), (stub(5), b"stub"), (full(6), b"full")] {
        let again = append(event, body).await;
        assert!(
            matches!(again, Appended::Duplicate { event, status: EventStatus::Received, altered: false, .. } if event == event_id(1)),
            "{again:?}"
        );
    }
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    let row = store.get_event(tenant(), event_id(1)).await.unwrap().unwrap();
    assert_eq!((row.status, row.reason, row.result, row.altered), (EventStatus::Received, None, None, false));
    assert_eq!((row.duplicates, row.received_at, row.data.text.is_some()), (5, at(60), true));
    assert_eq!(&store.get_raw(tenant(), event_id(1)).await.unwrap().unwrap().body[..], b"full");
    let altered = append(NewEvent { digest: body_digest(b"other"), ..full(8) }, b"other").await;
    assert!(matches!(altered, Appended::Duplicate { altered: true, .. }));
}

/// FC-06: a content that never comes is told, for an hour.
pub async fn content_that_never_comes_is_counted<S: Store>(store: &S) {
    let other = |id: u64| NewEvent { delivery_key: digest16("delivery", &[&id.to_be_bytes()]), ..stub(id) };
    store.append_events(vec![bare(other(1)), bare(other(2)), bare(message(3, "5541999990003"))]).await.unwrap();
    let counted = |minute: i64| async move { store.stats(at(minutes(minute))).await.unwrap().without_content };
    assert_eq!((counted(9).await, counted(11).await, counted(69).await, counted(71).await), (0, 2, 2, 0));
    let full = NewEvent { entry: Entry::Received, digest: body_digest(b"full"), ..other(1) };
    let full = NewEvent { id: event_id(9), received_at: at(minutes(12)), ..full };
    append(store, full).await;
    assert_eq!(counted(13).await, 1, "what is filled waits no more");
}

/// FC-06: in one batch, and the other way round.
pub async fn a_later_copy_without_content_takes_nothing_away<S: Store>(store: &S) {
    let full = |id: u64| NewEvent { id: event_id(id), ..message(7, "5541999990007") };
    let answers = store.append_events(vec![bare(full(1)), bare(stub(2))]).await.unwrap();
    assert!(matches!(answers[1][0], Appended::Duplicate { altered: false, status: EventStatus::Received, .. }));
    assert_eq!(pending_ids(store).await, [event_id(1)]);
    let other = |event: NewEvent| NewEvent { delivery_key: digest16("delivery", &[b"other"]), ..event };
    let answers = store.append_events(vec![bare(other(stub(3))), bare(other(full(4)))]).await.unwrap();
    assert!(matches!(answers[0][0], Appended::New { event, .. } if event == event_id(3)));
    assert!(matches!(answers[1][0], Appended::New { event, .. } if event == event_id(3)), "{answers:?}");
    assert_eq!(pending_ids(store).await, [event_id(1), event_id(3)]);
}

/// FC-06, D5: whoever sent a stub wrote.
pub async fn a_message_without_content_counts_as_written<S: Store>(store: &S) {
    let first = store.append_events(vec![bare(message(1, "5541999990007"))]).await.unwrap();
    let Appended::New { contact: Some(contact), .. } = first[0][0] else { panic!("{first:?}") };
    let last = async || store.load_contacts(vec![(tenant(), contact)], at(0)).await.unwrap()[0].contact.last_inbound_at;
    assert_eq!(last().await, None);
    for (second, expected) in [(50, 50), (20, 50), (90, 90)] {
        let key = digest16("delivery", &[&[second]]);
        let late = NewEvent { occurred_at: at(second.into()), delivery_key: key, ..stub(second.into()) };
        store.append_events(vec![bare(late)]).await.unwrap();
        assert_eq!(last().await, Some(at(expected)));
    }
}

/// A11: whoever lists what a platform has brings in only what nobody said.
pub async fn keys_are_known_once_somebody_claimed_them<S: Store>(store: &S) {
    let event = payment(1, EventKind::PaymentApproved, "T1", vec![phone("5541999990001")]);
    let keys = vec![event.delivery_key, event.business_key.unwrap(), digest16("delivery", &[b"never"])];
    assert_eq!(store.known_keys(keys.clone()).await.unwrap(), [false, false, false]);
    append_new(store, event).await;
    assert_eq!(store.known_keys(keys).await.unwrap(), [true, true, false]);
    assert_eq!(store.known_keys(vec![]).await.unwrap(), Vec::<bool>::new());
}
