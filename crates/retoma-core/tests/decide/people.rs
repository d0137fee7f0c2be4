//! Commands of operators (C8).

use super::*;

/// C8: a pause withholds nothing here; states, deadlines and tasks move as usual.
#[test]
fn a_pause_is_a_date_on_the_contact() {
    let mut case = Case::vendas();
    let until = case.now + 4 * HOUR;
    case.operator(EventKind::OperatorPause, Operator { until: Some(until), ..command("ana") });
    assert_eq!((case.view.contact.paused_until, case.view.conversations.len()), (Some(until), 0));
    let decision = case.say("oi");
    assert_eq!((case.state(), ids(&decision).len()), ("ENGAJADO", 1));
    assert_eq!(case.view.contact.paused_until, Some(until), "it survives further messages");
    case.operator(EventKind::OperatorResume, command("ana"));
    assert_eq!(case.view.contact.paused_until, None);
    assert_eq!(reason(&case.operator(EventKind::OperatorPause, command("ana"))), Some("no_transition"));
}

#[test]
fn an_operator_moves_a_named_cycle_and_the_log_says_why() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    let to = |conversation, state: &str| Operator {
        conversation: Some(conversation),
        to: Some(state.to_owned()),
        reason: Some("comprou no concorrente".to_owned()),
        ..command("ana")
    };
    let cycle = case.cycle().id;
    let decision = case.operator(EventKind::OperatorMove, to(cycle, "PERDIDO"));
    let row = &decision.transitions[0];
    assert_eq!((row.event.as_str(), row.from.as_str(), row.to.as_str()), ("operator.move", "RECUPERANDO", "PERDIDO"));
    assert_eq!(row.reason.as_deref(), Some("comprou no concorrente"));
    assert_eq!(touches(&case), ["t15 sent", "t4h superseded", "t20h superseded"]);
    assert_eq!((reason(&decision), case.cycle().deadline_at), (None, None));
    assert_eq!(case.cycle().previous.reason.as_deref(), Some("comprou no concorrente"));
    case.operator(EventKind::OperatorMove, to(cycle, "NEGOCIANDO"));
    assert!(case.cycle().deadline_at.is_some());
    for command in [to(cycle, "LUA"), to(ConversationId(uuid::Uuid::nil()), "PAGO")] {
        assert_eq!(reason(&case.operator(EventKind::OperatorMove, command)), Some("no_transition"));
    }
    assert_eq!(case.state(), "NEGOCIANDO");
}

#[test]
fn an_operators_opt_out_is_as_silent_and_not_confirmed() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    let decision = case.operator(EventKind::OperatorOptOut, command("ana"));
    assert_eq!((ids(&decision).len(), case.waiting().len(), case.state()), (0, 0, "OPT_OUT"));
    assert_eq!(case.view.contact.opted_out_at, Some(case.now));
    assert_eq!(touches(&case), ["t15 opted_out", "t4h opted_out", "t20h opted_out"]);
    let mut nobody = Case::vendas();
    nobody.operator(EventKind::OperatorOptOut, command("ana"));
    assert_eq!((nobody.view.contact.opted_out_at, nobody.view.conversations.len()), (Some(nobody.now), 0));
    assert_eq!(reason(&nobody.say("oi")), Some("no_transition"));
    assert_eq!(nobody.let_go(&nobody.clone().say("voltar")), ["boas_vindas"]);
}
