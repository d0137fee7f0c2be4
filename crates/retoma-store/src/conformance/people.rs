//! Who an event is about, and who else it concerns (C11).

use retoma_core::event::EventKind;
use retoma_core::identity::Identity;
use retoma_core::ids::ContactId;
use retoma_core::outcome::{NextStep, Outcome};

use super::world::*;
use crate::*;

async fn holders<S: Store>(store: &S, identity: Identity) -> Vec<ContactId> {
    store.find_contacts(tenant(), FindContact::Identity(identity)).await.unwrap()
}

async fn of_people<S: Store>(store: &S, n: u64, identities: Vec<Identity>) -> ContactId {
    append_new(store, NewEvent { subject: person(n, identities), ..message(n, "") }).await
}

/// FC-16, both ways round; the spelling that a provider reported is the one to write to.
pub async fn both_spellings_of_a_mobile_are_one_contact<S: Store>(store: &S) {
    let long = phone("5531988160016");
    let short = Identity { confirmed: true, ..phone("553188160016") };
    for (n, first, second) in [(1, long.clone(), short.clone()), (3, short, long)] {
        let contact = of_people(store, n, vec![first]).await;
        assert_eq!(of_people(store, n + 1, vec![second]).await, contact);
        let identities = view(store, contact, at(5)).await.identities;
        let shape: Vec<_> = identities.iter().map(|held| (held.value.as_str(), held.confirmed)).collect();
        assert_eq!(shape, [("553188160016", true)]);
    }
}

/// FC-16: the other direction of the rule.
pub async fn a_confirmed_spelling_is_not_replaced_by_a_guess<S: Store>(store: &S) {
    let contact = of_people(store, 1, vec![Identity { confirmed: true, ..phone("553188160016") }]).await;
    of_people(store, 2, vec![phone("5531988160016")]).await;
    assert_eq!(view(store, contact, at(5)).await.identities[0].value, "553188160016");
}

/// One message that carries two ids is evidence.
pub async fn an_identity_that_comes_later_is_attached<S: Store>(store: &S) {
    let contact = of_people(store, 1, vec![phone("5541999990001")]).await;
    let both = vec![phone("5541999990001"), email("ana@example.com")];
    assert_eq!(of_people(store, 2, both).await, contact);
    assert_eq!(holders(store, email("ana@example.com")).await, [contact]);
    assert_eq!(of_people(store, 3, vec![email("ana@example.com")]).await, contact);
    let by_id = store.find_contacts(tenant(), FindContact::Id(contact)).await.unwrap();
    assert_eq!(by_id, [contact]);
    assert!(store.find_contacts(tenant(), FindContact::Id(contact_id(99))).await.unwrap().is_empty());
}

/// No phone is a normal outcome.
pub async fn an_email_alone_finds_its_contact<S: Store>(store: &S) {
    let contact = of_people(store, 1, vec![email("ana@example.com")]).await;
    assert_eq!(of_people(store, 2, vec![email("ana@example.com")]).await, contact);
}

/// A family that shares one address is still two phones.
pub async fn an_email_never_gives_a_contact_a_second_phone<S: Store>(store: &S) {
    let address = || email("familia@example.com");
    let first = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    let second = of_people(store, 2, vec![phone("5541999990002"), address()]).await;
    assert_ne!(first, second);
    assert_eq!(holders(store, phone("5541999990002")).await, [second]);
    assert_eq!(holders(store, address()).await, [first, second], "who holds it first, then who claims it too");
    assert_eq!(view(store, first, at(3)).await.identities.len(), 2);
}

/// The address is all there was until now.
pub async fn an_email_without_a_phone_takes_the_first_one<S: Store>(store: &S) {
    let contact = of_people(store, 1, vec![email("ana@example.com")]).await;
    let both = vec![phone("5541999990001"), email("ana@example.com")];
    assert_eq!(of_people(store, 2, both).await, contact);
    assert_eq!(holders(store, phone("5541999990001")).await, [contact]);
}

/// What is said of one transaction is said of one person.
pub async fn one_transaction_is_evidence<S: Store>(store: &S) {
    let contact = of_people(store, 1, vec![email("ana@example.com"), order_identity("HP1")]).await;
    assert_eq!(of_people(store, 2, vec![phone("5541999990001"), order_identity("HP1")]).await, contact);
    assert_eq!(holders(store, phone("5541999990001")).await, [contact]);
}

/// ... unless the phone is somebody's already.
pub async fn the_phone_wins_over_the_transaction<S: Store>(store: &S) {
    let buyer = of_people(store, 1, vec![phone("5541999990001"), order_identity("HP1")]).await;
    let other = of_people(store, 2, vec![phone("5541999990002")]).await;
    assert_eq!(of_people(store, 3, vec![phone("5541999990002"), order_identity("HP1")]).await, other);
    assert_eq!(holders(store, order_identity("HP1")).await, [buyer, other]);
}

/// FC-04: an album of a new contact, each part with its own candidate.
pub async fn five_messages_at_once_make_one_contact<S: Store>(store: &S) {
    let parts = (1..=5).map(|n| store.append_events(vec![bare(message(n, "5541999990001"))])).collect();
    let mut contacts: Vec<Appended> =
        all(parts).await.into_iter().flat_map(|answer| answer.unwrap().concat()).collect();
    contacts.sort_by_key(|appended| match appended {
        Appended::New { event, .. } => *event,
        _ => panic!("each is new"),
    });
    let found = holders(store, phone("5541999990001")).await;
    assert_eq!(found.len(), 1);
    assert!(
        contacts.iter().all(|appended| matches!(appended, Appended::New { contact, .. } if *contact == Some(found[0])))
    );
    assert_eq!(view(store, found[0], at(9)).await.undecided.len(), 5);
}

/// C11, cancel wide: paid from another phone, under the same address.
pub async fn a_payment_reaches_everybody_who_waits_for_it<S: Store>(store: &S) {
    let address = || email("ana@example.com");
    let waiting = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    open_cycle(store, waiting, "curso", None).await;
    let paid = payment(2, EventKind::PaymentApproved, "HP2", vec![phone("5541999990002"), address()]);
    let buyer = append_new(store, paid).await;
    assert_ne!(buyer, waiting);
    let child = view(store, waiting, at(3)).await.undecided.remove(0);
    assert_eq!((child.kind, child.contact, child.urgent), (EventKind::PaymentApproved, Some(waiting), true));
    assert_eq!(child.data.order, Some(order("HP2")));
    assert_eq!(view(store, buyer, at(3)).await.undecided.len(), 1);
    let ids = pending_ids(store).await;
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&child.id) && ids.contains(&event_id(2)));
    assert_eq!(child.bucket, view(store, waiting, at(3)).await.contact.bucket);
}

/// A4: what a person releases happens then, to everybody.
pub async fn a_released_payment_reaches_everybody_too<S: Store>(store: &S) {
    let address = || email("ana@example.com");
    let waiting = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    open_cycle(store, waiting, "curso", None).await;
    let paid = payment(2, EventKind::PaymentApproved, "HP2", vec![phone("5541999990002"), address()]);
    append(store, NewEvent { entry: Entry::Held("missing_id".to_owned()), ..paid }).await;
    assert!(view(store, waiting, at(3)).await.undecided.is_empty());
    let release = EventMoves {
        tenant: tenant(),
        ids: vec![event_id(2)],
        to: EventMove::Release,
        actor: "ana".to_owned(),
        reason: None,
        now: at(4),
    };
    store.move_events(release).await.unwrap();
    let seen = view(store, waiting, at(5)).await;
    assert_eq!(seen.undecided.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::PaymentApproved]);
    assert_eq!(pending_ids(store).await.len(), 2);
}

/// C11, cancel wide: a cycle that does not know yet what it is about may well be about this. What was paid is delivered to
/// whom the payment names.
pub async fn a_payment_reaches_who_talks_of_nothing_named_yet<S: Store>(store: &S) {
    let address = || email("ana@example.com");
    let chats = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    let seen = view(store, chats, at(0)).await;
    let mut decision = Decision { conversations: vec![conversation(chats, 1, "NEGOCIANDO")], ..decide(&seen) };
    decision.contact.iter_mut().for_each(|contact| contact.cycles = 1);
    commit(store, &seen, decision, at(0)).await;
    let paid = payment(2, EventKind::PaymentApproved, "HP2", vec![phone("5541999990002"), address()]);
    let buyer = append_new(store, paid).await;
    let child = view(store, chats, at(3)).await.undecided.remove(0);
    assert_eq!((child.kind, child.data.delivered_elsewhere), (EventKind::PaymentApproved, true));
    assert!(!view(store, buyer, at(3)).await.undecided[0].data.delivered_elsewhere);
}

/// ... but nobody else.
pub async fn a_payment_spares_who_waits_for_something_else<S: Store>(store: &S) {
    let address = || email("ana@example.com");
    let other_offer = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    open_cycle(store, other_offer, "mentoria", Some(order("HP1"))).await;
    let who = || vec![phone("5541999990002"), address()];
    // A PIX concerns its own contact only, and so does what says nothing of money.
    append(store, payment(2, EventKind::PixCreated, "HP2", who())).await;
    append(store, payment(3, EventKind::PaymentApproved, "HP2", who())).await;
    assert!(view(store, other_offer, at(9)).await.undecided.is_empty());
    // The same order is enough, whatever the offer.
    append(store, payment(4, EventKind::PaymentCancelled, "HP1", who())).await;
    assert_eq!(view(store, other_offer, at(9)).await.undecided.len(), 1);
}

/// A5: the parent's key, and each child's, are claimed.
pub async fn a_repeated_payment_spreads_no_further<S: Store>(store: &S) {
    let address = || email("ana@example.com");
    let waiting = of_people(store, 1, vec![phone("5541999990001"), address()]).await;
    open_cycle(store, waiting, "curso", None).await;
    let who = || vec![phone("5541999990002"), address()];
    append(store, payment(2, EventKind::PaymentApproved, "HP2", who())).await;
    append(store, NewEvent { id: event_id(3), ..payment(2, EventKind::PaymentApproved, "HP2", who()) }).await;
    append(store, payment(4, EventKind::PaymentApproved, "HP2", who())).await;
    assert_eq!(view(store, waiting, at(9)).await.undecided.len(), 1);
}

/// Parts of one request come from several people.
pub async fn one_candidate_given_to_two_people_makes_two_contacts<S: Store>(store: &S) {
    let from = |n, digits: &str| bare(NewEvent { subject: person(1, vec![phone(digits)]), ..message(n, "") });
    let batch = vec![from(1, "5541999990001"), from(2, "5541999990002"), from(3, "5541999990001")];
    store.append_events(batch).await.unwrap();
    let first = holders(store, phone("5541999990001")).await;
    let second = holders(store, phone("5541999990002")).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    assert_eq!(view(store, first[0], at(4)).await.undecided.len(), 2);
}

/// H3.
pub async fn identities_of_two_tenants_are_apart<S: Store>(store: &S) {
    let ours = of_people(store, 1, vec![phone("5541999990001")]).await;
    let theirs = NewEvent { tenant: Tenant::new("outra"), ..message(2, "5541999990001") };
    assert_ne!(append_new(store, theirs).await, ours);
    assert_eq!(holders(store, phone("5541999990001")).await, [ours]);
    let found = store.load_contacts(vec![(Tenant::new("outra"), ours)], at(3)).await.unwrap();
    assert!(found.is_empty());
}

/// C11: "what was paid is delivered once, to the best match": who waits for that very order, else who waits for the offer
/// and can be written to, else the contact that the payment names.
pub async fn what_was_paid_is_delivered_to_the_best_match<S: Store>(store: &S) {
    // The buyer typed another phone at the checkout; the e-mail is the one of the chat.
    let chat = of_people(store, 1, vec![phone("5541999990001"), email("ana@example.com")]).await;
    open_cycle(store, chat, "curso", None).await;
    let typed = vec![phone("5541999990009"), email("ana@example.com")];
    let buyer = append_new(store, payment(2, EventKind::PaymentApproved, "HP2", typed)).await;
    assert_ne!(buyer, chat);
    let delivers = |events: &[retoma_core::event::Event]| {
        let mut shown: Vec<_> = events.iter().map(|event| (event.contact, !event.data.delivered_elsewhere)).collect();
        shown.sort();
        shown
    };
    let mut expected = [(Some(chat), true), (Some(buyer), false)];
    expected.sort();
    assert_eq!(delivers(&pending(store).await), expected);
    for contact in [chat, buyer] {
        let seen = view(store, contact, at(3)).await;
        commit(store, &seen, decide(&seen), at(3)).await;
    }
    // Both wait for the offer now: the one that the payment names gets it.
    open_cycle(store, buyer, "curso", None).await;
    let typed = vec![phone("5541999990009"), email("ana@example.com")];
    append_new(store, payment(4, EventKind::PaymentApproved, "HP3", typed)).await;
    let mut expected = [(Some(chat), false), (Some(buyer), true)];
    expected.sort();
    assert_eq!(delivers(&pending(store).await), expected);
}

/// FC-10: an undecided message from our own number is an echo if the provider's id leads to a task.
pub async fn an_echo_is_known_by_the_providers_id<S: Store>(store: &S) {
    let contact = contact_with(store, 1, vec![reminder("touch", 0)]).await;
    start(store, "touch", contact, at(1)).await;
    finish(store, finish_of("touch", 1, end(Outcome::Accepted), NextStep::Sent, at(1))).await;
    for (n, id) in [(2, "3EB0AAAA0001"), (3, "OWN1")] {
        let mut event = message(n, "5541999990001");
        (event.kind, event.subject) = (EventKind::MessageHuman, Subject::Contact(contact));
        event.data.message_id = Some(id.to_owned());
        append_new(store, event).await;
    }
    assert_eq!(view(store, contact, at(5)).await.echoes, ["3EB0AAAA0001"]);
}
