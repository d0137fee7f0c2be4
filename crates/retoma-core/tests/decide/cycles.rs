//! Whose cycle an event belongs to (C1).

use super::*;

/// C1: a new interest in another offer opens a new cycle and never erases the earlier one.
#[test]
fn another_offer_is_another_cycle_and_each_payment_finds_its_own() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.fact(EventKind::PixCreated, "HP2", "mentoria");
    assert_eq!(case.view.conversations.len(), 2);
    assert_eq!(case.waiting().len(), 6);
    case.wait(MINUTE).fact(EventKind::PaymentApproved, "HP1", "curso");
    let states: Vec<&str> = case.view.conversations.iter().map(|cycle| cycle.state.as_str()).collect();
    assert_eq!(states, ["PAGO", "AGUARDANDO_PIX"]);
    let waiting: Vec<&str> = case.waiting().iter().map(|task| task.id.as_str()).collect();
    assert_eq!(
        waiting,
        ["hotmart:pix:HP2:t15", "hotmart:pix:HP2:t4h", "hotmart:pix:HP2:t20h", "hotmart:entregar_acesso:HP1"]
    );
    // Chat goes to what is still going on, though the paid cycle moved last.
    case.wait(MINUTE).say("manda o pix");
    assert_eq!(case.log.last().unwrap().conversation, case.view.conversations[1].id);
}

/// A chat that does not know yet what it is about learns it from the platform.
#[test]
fn a_chat_without_an_offer_adopts_that_of_the_first_fact() {
    let mut case = Case::vendas();
    case.walk_to("CHECKOUT_ENVIADO");
    case.fact(EventKind::PixCreated, "HP1", "curso");
    let cycle = case.cycle();
    assert_eq!((case.view.conversations.len(), cycle.offer.as_deref()), (1, Some("curso")));
    assert_eq!((cycle.state.as_str(), &cycle.order), ("AGUARDANDO_PIX", &Some(order("HP1"))));
}

/// A platform that does not name the offer in a payment still reaches the cycle whose touches wait.
#[test]
fn a_payment_without_an_offer_reaches_the_cycle_that_waits() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.fact(EventKind::PaymentApproved, "HP7", "");
    assert_eq!((case.view.conversations.len(), case.state()), (1, "PAGO"));
}

/// Nor does one that was given up, and named nothing, take it away from the one that is going on.
#[test]
fn a_payment_without_an_offer_prefers_what_is_going_on() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO");
    let to = Operator { to: Some("PERDIDO".to_owned()), ..command("ana") };
    case.operator(EventKind::OperatorMove, to);
    // Its offer is another one, so it opens a cycle of its own; the unnamed one stays as it is.
    case.view.conversations[0].offer = Some("mentoria".to_owned());
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.view.conversations[0].offer = None;
    case.fact(EventKind::PaymentApproved, "HP7", "");
    let states: Vec<&str> = case.view.conversations.iter().map(|cycle| cycle.state.as_str()).collect();
    assert_eq!(states, ["PERDIDO", "PAGO"]);
}

/// A late "abandoned" that names the offer, after a payment that did not, still finds the paid cycle (FC-37).
#[test]
fn a_late_fact_that_names_the_offer_finds_the_paid_cycle_that_does_not() {
    let mut case = Case::vendas();
    case.fact(EventKind::PaymentApproved, "HP1", "");
    let late = case.fact(EventKind::CheckoutAbandoned, "", "curso");
    assert_eq!((reason(&late), case.view.conversations.len()), (Some("no_transition"), 1));
}

/// Facts that the flow has no answer to open nothing.
#[test]
fn a_fact_without_an_answer_opens_no_cycle() {
    for (kind, expected) in [
        (EventKind::PaymentRefunded, "no_transition"),
        (EventKind::SubscriptionLate, "no_transition"),
        (EventKind::MessageStatus, "not_for_flow"),
        (EventKind::ChannelConnected, "not_for_flow"),
        (EventKind::Unknown, "not_for_flow"),
    ] {
        let mut case = Case::vendas();
        let decision = case.fact(kind, "HP1", "curso");
        assert_eq!((reason(&decision), decision.events[0].decided), (Some(expected), false), "{kind}");
        assert_eq!((case.view.conversations.len(), case.log.len()), (0, 0), "{kind}");
    }
}

#[test]
fn an_event_of_nobody_is_only_recorded() {
    let mut case = Case::vendas();
    let event = case.fact_event(EventKind::PaymentApproved, "HP1", "curso");
    let decision = case.decide(&[retoma_core::event::Event { contact: None, ..event }]);
    assert_eq!((reason(&decision), &decision.contact), (Some("no_contact"), &None));
}

/// C9: whoever comes back is greeted with where it stopped.
#[test]
fn coming_back_remembers_where_it_stopped() {
    let mut case = Case::vendas();
    case.walk_to("PERDIDO").say("oi, voltei");
    let previous = &case.cycle().previous;
    assert_eq!(case.state(), "ENGAJADO");
    assert_eq!((previous.state.as_deref(), previous.event.as_deref()), (Some("RECUPERANDO"), Some("regua_esgotada")));
}
