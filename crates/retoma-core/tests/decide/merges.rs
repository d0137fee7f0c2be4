//! Two contacts that are one person, and a person who is to be forgotten (C11, C12).

use retoma_core::event::Event;
use retoma_core::ids::ContactId;
use retoma_core::state::Merged;

use super::*;

/// Another contact, with a history of its own.
fn other() -> Case {
    let mut case = Case::vendas();
    case.view.contact.id = ContactId(uuid::Uuid::from_u128(0x5541999990002));
    case
}

/// The other one gives way; answers what it hands over, as the event that reaches this one.
fn give_way(goes: &mut Case, stays: &mut Case) -> Event {
    let operator = Operator { with: Some(stays.view.contact.id), ..command("ana") };
    let decision = goes.operator(EventKind::OperatorLink, operator);
    let handover = decision.handover.expect("it gives way");
    assert_eq!(handover.into, stays.view.contact.id);
    assert_eq!((goes.waiting().len(), goes.view.conversations.len()), (0, 0), "nothing goes on there");
    stays.now = stays.now.max(goes.now);
    stays.event(EventKind::ContactMerged, EventData { merged: Some(Box::new(handover.merged)), ..EventData::default() })
}

fn merge(goes: &mut Case, stays: &mut Case) -> Decision {
    let event = give_way(goes, stays);
    stays.decide(&[event])
}

/// Cycles about different things stand side by side, and promises go on under their ids.
#[test]
fn another_sale_goes_on_under_the_same_ids() {
    let (mut goes, mut stays) = (other(), Case::vendas());
    goes.fact(EventKind::PixCreated, "HP2", "mentoria");
    stays.fact(EventKind::PixCreated, "HP1", "curso");
    let promised = goes.waiting().iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    let decision = merge(&mut goes, &mut stays);
    assert_eq!(decision.adopted.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), promised);
    assert_eq!((stays.view.conversations.len(), stays.waiting().len(), ids(&decision).len()), (2, 6, 0));
    assert!(stays.waiting().iter().all(|task| task.contact == stays.view.contact.id));
    // And end with the payment of their own sale.
    stays.fact(EventKind::PaymentApproved, "HP2", "mentoria");
    assert_eq!(stays.waiting().len(), 3 + 1);
}

/// "Linking two contacts repeats no effect": of two reminder clocks for one sale, one stays.
#[test]
fn one_sale_under_two_names_is_one_cadence() {
    let (mut goes, mut stays) = (other(), Case::vendas());
    stays.fact(EventKind::PixCreated, "HP1", "curso");
    goes.now = stays.now + HOUR;
    goes.fact(EventKind::PixCreated, "HP2", "curso");
    merge(&mut goes, &mut stays);
    assert_eq!((stays.view.conversations.len(), stays.waiting().len()), (1, 3));
    assert!(stays.waiting().iter().all(|task| task.id.as_str().contains("HP2")), "the newer clock goes on");
    stays.ring();
    assert_eq!(stays.state(), "RECUPERANDO");
}

/// "Higher rank wins": what one of them paid, the other is not reminded of, whichever gives way; what is still to be
/// delivered is delivered.
#[test]
fn whoever_paid_paid_under_every_name() {
    for payer_goes in [true, false] {
        let (mut goes, mut stays) = (other(), Case::vendas());
        let (payer, reminded) = if payer_goes { (&mut goes, &mut stays) } else { (&mut stays, &mut goes) };
        payer.fact(EventKind::PaymentApproved, "HP1", "curso");
        reminded.now += HOUR;
        reminded.fact(EventKind::PixCreated, "HP2", "curso");
        merge(&mut goes, &mut stays);
        assert_eq!((stays.view.conversations.len(), stays.state()), (1, "PAGO"), "{payer_goes}");
        let waiting: Vec<&str> = stays.waiting().iter().map(|task| task.message.as_str()).collect();
        assert_eq!(waiting, ["entregar_acesso"], "{payer_goes}");
    }
}

/// C12: opt-out outlives merges, whoever asked.
#[test]
fn silence_that_was_asked_for_once_holds_under_every_name() {
    for asker_goes in [true, false] {
        let (mut goes, mut stays) = (other(), Case::vendas());
        let (asker, other) = if asker_goes { (&mut goes, &mut stays) } else { (&mut stays, &mut goes) };
        asker.walk_to("OPT_OUT");
        other.fact(EventKind::PixCreated, "HP1", "curso");
        merge(&mut goes, &mut stays);
        assert!(stays.view.contact.opted_out_at.is_some());
        assert_eq!(stays.waiting().len(), 0, "{asker_goes}");
        assert!(stays.view.conversations.iter().all(|cycle| cycle.deadline_at.is_none()), "{asker_goes}");
    }
}

/// Pauses and the contact's last word come along; what is known of the person fills gaps only.
#[test]
fn what_is_known_of_the_person_comes_together() {
    let (mut goes, mut stays) = (other(), Case::vendas());
    goes.wait(HOUR).say("oi");
    goes.view.contact.paused_until = Some(goes.now + HOUR);
    goes.view.contact.vars = [("contact.first_name", "Ana B"), ("contact.name", "Ana B Teste")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .into();
    stays.view.contact.vars = [("contact.first_name".to_owned(), "Ana".to_owned())].into();
    let heard = goes.view.contact.last_inbound_at;
    merge(&mut goes, &mut stays);
    let contact = &stays.view.contact;
    assert_eq!((contact.last_inbound_at, contact.paused_until), (heard, Some(goes.now + HOUR)));
    assert_eq!(
        (contact.vars["contact.first_name"].as_str(), contact.vars["contact.name"].as_str()),
        ("Ana", "Ana B Teste")
    );
}

/// A merge that says nothing, or names itself, changes nothing.
#[test]
fn a_merge_with_nobody_is_ignored() {
    let mut case = Case::vendas();
    for with in [None, Some(case.view.contact.id)] {
        let decision = case.operator(EventKind::OperatorLink, Operator { with, ..command("ana") });
        assert_eq!((reason(&decision), decision.handover.is_some()), (Some("no_transition"), false));
    }
    let event = case.event(EventKind::ContactMerged, EventData::default());
    assert_eq!(reason(&case.decide(&[event])), Some("no_transition"));
    let contact = other().view.contact;
    let merged = Merged { contact, conversations: Vec::new(), tasks: Vec::new() };
    let event =
        case.event(EventKind::ContactMerged, EventData { merged: Some(Box::new(merged)), ..EventData::default() });
    assert_eq!(reason(&case.decide(&[event])), None, "somebody of whom nothing is known");
}

/// H2, C12: nothing goes on, nothing says who it was; the wish for silence stays.
#[test]
fn whoever_is_forgotten_leaves_nothing_behind() {
    let mut case = Case::vendas();
    let mut pix = case.fact_event(EventKind::PixCreated, "HP1", "curso");
    pix.data.vars =
        [("contact.first_name", "Ana"), ("pix.code", "0002")].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    case.decide(&[pix]);
    case.view.contact.opted_out_at = Some(case.now);
    let decision = case.operator(EventKind::OperatorErase, command("ana"));
    assert!(decision.erase && decision.conversations.iter().all(|cycle| cycle.closed && cycle.vars.is_empty()));
    assert_eq!((case.waiting().len(), case.view.conversations.len()), (0, 0));
    assert!(case.view.contact.vars.is_empty() && case.view.contact.opted_out_at.is_some());
}
