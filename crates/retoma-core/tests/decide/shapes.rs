//! Flows without a table, cycles of other flows, and the edges of the arguments.

use super::*;

/// C4 `starts_with`: a flow without a table arms by the fact itself, hands touch after touch, and rests.
#[test]
fn a_flow_without_a_table_runs_its_cadence() {
    let mut case = Case::vendas();
    case.flow.globals.clear();
    case.flow.transitions.clear();
    for (name, cadence) in &mut case.flow.cadences {
        cadence.runs_in.clear();
        cadence.starts_with = (name == "pix_pendente").then_some(EventKind::PixCreated);
    }
    assert_eq!(reason(&case.say("oi")), Some("no_transition"));
    case.fact(EventKind::PixCreated, "HP1", "curso");
    let mut sent = Vec::new();
    while case.cycle().deadline_at.is_some() {
        case.ring();
        sent.extend(case.deliver());
    }
    assert_eq!(sent, ["lembrete_pix", "proximo_toque", "proximo_toque"]);
    let mut case = Case::of(case.flow);
    case.fact(EventKind::PixCreated, "HP2", "curso");
    case.fact(EventKind::PaymentApproved, "HP2", "curso");
    assert_eq!((case.waiting().len(), case.cycle().deadline_at), (0, None));
}

/// A cycle of another flow is not this flow's to move.
#[test]
fn cycles_of_another_flow_are_left_alone() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO");
    let other = Conversation { flow: "outro".into(), ..case.cycle().clone() };
    case.view.conversations = vec![other.clone()];
    let timeout = case.next_timeout().unwrap();
    assert_eq!(reason(&case.decide(&[timeout])), Some("stale_deadline"));
    case.say("oi");
    assert_eq!(case.view.conversations[0], other);
    assert_eq!(case.view.conversations.len(), 2);
}

#[test]
fn nothing_to_decide_decides_nothing() {
    let case = Case::vendas();
    let setup = Setup { default_channel: "zap".into() };
    assert_eq!(decide(&case.flow, &case.view, &[], &setup, case.now), Decision::default());
}

/// Deadlines go through a store and come back; they carry nothing finer than a millisecond.
#[test]
fn deadlines_are_whole_milliseconds() {
    let mut case = Case::vendas();
    case.now += std::time::Duration::from_nanos(1_234_567);
    case.walk_to("NEGOCIANDO");
    let deadline = case.cycle().deadline_at.unwrap();
    assert_eq!(deadline, cadence::whole_ms(deadline));
    case.ring();
    assert!(case.view.tasks.iter().all(|task| task.scheduled_for == cadence::whole_ms(task.scheduled_for)));
}
