//! Payments, refunds, and facts that come late or twice (C4, C9, FC-08, FC-37, FC-39).

use super::*;

/// D2: the paid sale often has another transaction than the one waited for.
#[test]
fn a_payment_closes_everything_that_waits_in_its_cycle() {
    for transaction in ["HP1", "HP2"] {
        let mut case = Case::vendas();
        case.fact(EventKind::PixCreated, "HP1", "curso");
        case.say("manda o pix");
        let decision = case.fact(EventKind::PaymentApproved, transaction, "curso");
        let waiting: Vec<&str> = case.waiting().iter().map(|task| task.message.as_str()).collect();
        assert_eq!(waiting, ["entregar_acesso"]);
        assert!(case.view.tasks.iter().all(|task| task.status.is_waiting() || task.reason == Some(Reason::Paid)));
        assert_eq!(touches(&case), ["t15 paid", "t4h paid", "t20h paid"]);
        assert_eq!((case.state(), case.cycle().deadline_at), ("PAGO", None));
        assert_eq!(ids(&decision), [format!("hotmart:entregar_acesso:{transaction}")]);
    }
}

/// D2: a task under way is marked; a receipt that waits stays.
#[test]
fn a_payment_marks_what_is_under_way_and_spares_the_delivery() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    case.ring();
    case.view.tasks[1].status = TaskStatus::Sending;
    case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!(
        (case.view.tasks[1].status, case.view.tasks[1].cancel_reason),
        (TaskStatus::Sending, Some(Reason::Paid))
    );
    case.fact(EventKind::PaymentApproved, "HP9", "curso");
    let waiting: Vec<String> = case.waiting().iter().map(|task| task.id.to_string()).collect();
    assert_eq!(waiting, ["hotmart:entregar_acesso:HP1", "hotmart:entregar_acesso:HP9"]);
}

/// FC-08, C9: a second approved of one transaction, and the end of its guarantee, add nothing.
#[test]
fn one_fact_under_several_event_ids_is_delivered_once() {
    let mut case = Case::vendas();
    case.fact(EventKind::PaymentApproved, "HP0000000801", "curso");
    let again = case.fact(EventKind::PaymentApproved, "HP0000000801", "curso");
    assert_eq!((reason(&again), ids(&again).len()), (Some("repeated_fact"), 0));
    let complete = case.wait(200 * HOUR).fact(EventKind::OrderCompleted, "HP0000000801", "curso");
    assert_eq!((reason(&complete), ids(&complete).len()), (Some("no_transition"), 0));
    let moved = case.log.iter().filter(|row| row.to == "PAGO" && row.from != "PAGO").count();
    assert_eq!((moved, case.state()), (1, "PAGO"));
    // Without a transaction, the paid cycle itself says so.
    let nameless = case.fact(EventKind::PaymentApproved, "", "curso");
    assert_eq!((reason(&nameless), ids(&nameless).len()), (Some("repeated_fact"), 0));
}

/// FC-37: every order of arrival gives one end, and reminds nobody who paid.
#[test]
fn facts_of_one_order_give_one_end_in_every_order_of_arrival() {
    use EventKind::{CheckoutAbandoned, OrderCompleted, PaymentApproved, PaymentRefused, PixCreated};
    let facts = [CheckoutAbandoned, PixCreated, PaymentRefused, PaymentApproved, OrderCompleted];
    let mut orders = Vec::new();
    permute(&mut facts.to_vec(), 0, &mut orders);
    assert_eq!(orders.len(), 120);
    for arrivals in orders {
        // Decided one by one as they arrive, and all of them on record before the first is decided.
        for recorded_first in [false, true] {
            let mut case = Case::vendas();
            let events: Vec<_> = arrivals.iter().map(|kind| case.fact_event(*kind, "HP1", "curso")).collect();
            if recorded_first {
                events.iter().for_each(|event| case.record(event));
            }
            for event in &events {
                case.decide(std::slice::from_ref(event));
            }
            assert_eq!(case.view.conversations.len(), 1, "{arrivals:?}");
            assert_eq!(case.state(), "PAGO", "{arrivals:?}");
            let waiting: Vec<String> = case.waiting().iter().map(|task| task.id.to_string()).collect();
            assert_eq!(waiting, ["hotmart:entregar_acesso:HP1"], "{arrivals:?}");
            assert_eq!(case.cycle().deadline_at, None, "{arrivals:?}");
        }
    }
}

fn permute(kinds: &mut Vec<EventKind>, from: usize, all: &mut Vec<Vec<EventKind>>) {
    if from == kinds.len() {
        return all.push(kinds.clone());
    }
    for other in from..kinds.len() {
        kinds.swap(from, other);
        permute(kinds, from + 1, all);
        kinds.swap(from, other);
    }
}

/// FC-37: "a late abandoned after approved" dies, and a really later checkout of another offer does not.
#[test]
fn a_late_fact_is_recorded_and_moves_nothing() {
    let mut case = Case::vendas();
    case.walk_to("PAGO");
    let version = case.cycle().version;
    let late = case.fact(EventKind::PixCreated, "HP1", "curso");
    assert_eq!((reason(&late), case.cycle().version), (Some("late_fact"), version));
    assert_eq!(case.log.last().unwrap().reason.as_deref(), Some("late_fact"));
    // Told under the offer only, it finds the paid cycle and no row.
    let abandoned = case.fact(EventKind::CheckoutAbandoned, "", "curso");
    assert_eq!(reason(&abandoned), Some("no_transition"));
    assert_eq!(case.waiting().len(), 0);
    case.fact(EventKind::CheckoutAbandoned, "", "mentoria");
    assert_eq!((case.view.conversations.len(), case.state()), (2, "RECUPERANDO"));
}

/// A payment on record at another contact keeps a cadence from being armed here (DESIGN.md, "Intake transaction").
#[test]
fn nothing_is_armed_for_an_order_that_is_paid_elsewhere() {
    let mut case = Case::vendas();
    case.walk_to("CHECKOUT_ENVIADO");
    let mut paid = case.fact_event(EventKind::PaymentApproved, "HP1", "curso");
    case.record(&paid);
    paid.id = retoma_core::ids::EventId(uuid::Uuid::from_u128(999));
    // The cycle is about that order, and its checkout times out before the payment is decided here.
    case.view.conversations[0].order = Some(order("HP1"));
    let decision = case.ring();
    assert_eq!(ids(&decision), [""; 0]);
    assert_eq!(decision.transitions[0].reason.as_deref(), Some("late_fact"));
}

/// C4, FC-39: a refund cancels in any state, is recorded as no_transition, and takes back what was not delivered.
#[test]
fn a_refund_closes_touches_in_any_state_and_the_delivery_of_its_order() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    let refund = case.fact(EventKind::PaymentRefunded, "HP9", "curso");
    assert_eq!((reason(&refund), case.state()), (Some("no_transition"), "RECUPERANDO"));
    assert!(refund.events[0].decided, "it closed promises");
    assert_eq!(touches(&case), ["t15 sent", "t4h refunded", "t20h refunded"]);

    let mut case = Case::vendas();
    case.fact(EventKind::PaymentApproved, "HP1", "curso");
    let refund = case.fact(EventKind::PaymentRefunded, "HP1", "curso");
    assert!(matches!(refund.close[0].scope, CloseScope::Order(..)));
    assert_eq!(case.view.tasks[0].reason, Some(Reason::Refunded));
    assert_eq!(case.state(), "PAGO");
    // Its late copy of the approval delivers nothing.
    let late = case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!((reason(&late), ids(&late).len()), (Some("repeated_fact"), 0));
}

/// FC-39: part of the money back is still a customer.
#[test]
fn a_partial_refund_leaves_the_delivery_alone() {
    let mut case = Case::vendas();
    case.fact(EventKind::PaymentApproved, "HP1", "curso");
    case.fact(EventKind::PaymentPartiallyRefunded, "HP1", "curso");
    assert_eq!((case.state(), case.waiting().len()), ("PAGO", 1));
}

/// A cadence whose touches were cancelled is over a grace later, like any other (D8).
#[test]
fn a_cancelled_charge_ends_in_perdido_after_the_grace() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    case.fact(EventKind::PaymentCancelled, "HP1", "curso");
    assert_eq!(touches(&case), ["t15 sent", "t4h cancelled", "t20h cancelled"]);
    let cancelled_at = case.now;
    assert_eq!(case.cycle().deadline_at, Some(cancelled_at + 24 * HOUR));
    case.ring();
    assert_eq!((case.state(), case.now), ("PERDIDO", cancelled_at + 24 * HOUR));
}

/// And so is one that never reached its first touch, without a word.
#[test]
fn a_charge_cancelled_before_its_first_touch_ends_there_too() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.fact(EventKind::PaymentCancelled, "HP1", "curso");
    let decision = case.ring();
    let moves: Vec<_> = decision.transitions.iter().map(|row| (row.event.as_str(), row.to.as_str())).collect();
    assert_eq!(moves, [("timeout", "RECUPERANDO"), ("regua_esgotada", "PERDIDO")]);
    assert_eq!((case.let_go(&decision).len(), case.cycle().deadline_at), (0, None));
}

/// A charge that was cancelled because a newer one replaced it says nothing about the newer one.
#[test]
fn the_end_of_an_old_charge_does_not_end_the_new_ones_touches() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.fact(EventKind::PixCreated, "HP2", "curso");
    case.fact(EventKind::PaymentCancelled, "HP1", "curso");
    let waiting: Vec<&str> = case.waiting().iter().map(|task| task.id.as_str()).collect();
    assert_eq!(waiting, ["hotmart:pix:HP2:t15", "hotmart:pix:HP2:t4h", "hotmart:pix:HP2:t20h"]);
    case.fact(EventKind::PaymentCancelled, "HP2", "curso");
    assert_eq!(case.waiting().len(), 0);
}

/// D2 `cancel_on` of tasks asked for through the API.
#[test]
fn a_task_of_the_api_is_closed_by_what_it_names() {
    let mut case = Case::vendas();
    let asked = case.say("oi").new_tasks.remove(0);
    let asked = retoma_core::task::Task {
        id: "lembrar".into(),
        kind: TaskKind::Scheduled,
        conversation: None,
        cancel_on: vec![EventKind::PaymentApproved],
        ..asked
    };
    case.deliver();
    case.view.tasks.push(asked);
    case.fact(EventKind::PixCreated, "HP1", "curso");
    assert_eq!(case.task(&"lembrar".into()).status, TaskStatus::Scheduled);
    case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!(case.task(&"lembrar".into()).reason, Some(Reason::Paid));
}
