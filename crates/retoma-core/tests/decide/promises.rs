//! What is promised, under which ids, for when, and where to.

use super::*;

/// D1, D2: the whole cadence at once, under ids that derive from the transaction.
#[test]
fn a_pix_promises_three_touches_under_its_transaction() {
    let mut case = Case::vendas();
    let started = case.now;
    let decision = case.fact(EventKind::PixCreated, "HP0000000001", "curso");
    assert_eq!(
        ids(&decision),
        ["hotmart:pix:HP0000000001:t15", "hotmart:pix:HP0000000001:t4h", "hotmart:pix:HP0000000001:t20h"]
    );
    for (task, (minutes, jitter, message)) in decision.new_tasks.iter().zip([
        (15, 2, "lembrete_pix"),
        (240, 10, "proximo_toque"),
        (1_200, 20, "proximo_toque"),
    ]) {
        let earliest = started + minutes * MINUTE;
        assert!(task.scheduled_for >= earliest && task.scheduled_for <= earliest + jitter * MINUTE, "{}", task.id);
        assert_eq!((task.kind, task.handed, task.status), (TaskKind::Touch, false, TaskStatus::Scheduled));
        assert_eq!((task.message.as_str(), task.class), (message, MessageClass::Reminder));
        assert_eq!(task.next_attempt_at, task.scheduled_for);
        assert_eq!(task.reference.order, Some(order("HP0000000001")));
    }
    // There the deadline is the due time of the next touch.
    assert_eq!(case.cycle().deadline_at, Some(decision.new_tasks[0].scheduled_for));
}

/// D2: the same PIX under another event id promises nothing new and moves no timer.
#[test]
fn the_same_pix_told_twice_slides_nothing() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    let before = (case.view.tasks.clone(), case.cycle().deadline_at, case.cycle().cadence.clone());
    let decision = case.wait(10 * MINUTE).fact(EventKind::PixCreated, "HP1", "curso");
    assert_eq!(ids(&decision), [""; 0]);
    assert_eq!(decision.close, []);
    assert_eq!((case.view.tasks.clone(), case.cycle().deadline_at, case.cycle().cadence.clone()), before);
}

/// C1: a new PIX starts over; what the first still had to say is superseded.
#[test]
fn a_new_pix_starts_over() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    let decision = case.fact(EventKind::PixCreated, "HP2", "curso");
    assert_eq!(ids(&decision), ["hotmart:pix:HP2:t15", "hotmart:pix:HP2:t4h", "hotmart:pix:HP2:t20h"]);
    assert_eq!(
        touches(&case),
        ["t15 sent", "t4h superseded", "t20h superseded", "t15 scheduled", "t4h scheduled", "t20h scheduled"]
    );
}

/// C1: the action of a row that arms a cadence is that cadence's first touch, sent at once as a reminder.
#[test]
fn a_refused_card_is_answered_at_once_in_place_of_the_first_touch() {
    let mut case = Case::vendas();
    let now = case.now;
    let decision = case.fact(EventKind::PaymentRefused, "HP1", "curso");
    let first = &decision.new_tasks[0];
    assert_eq!(decision.new_tasks.len(), 3);
    assert_eq!((first.id.as_str(), first.message.as_str()), ("hotmart:cartao:HP1:t15", "ajuda_cartao"));
    assert_eq!((first.scheduled_for, first.next_attempt_at, first.handed), (now, now, true));
    assert_eq!((first.kind, first.touch.as_deref(), first.touch_no), (TaskKind::Touch, Some("t15"), Some(1)));
    assert_eq!(first.max_late, Some(40 * MINUTE));
    assert_eq!(case.cycle().deadline_at, Some(decision.new_tasks[1].scheduled_for));
}

/// Cadences that the clock arms have no transaction: their ids come from the cycle and its version.
#[test]
fn a_cadence_armed_by_the_clock_is_keyed_by_the_cycle() {
    let mut case = Case::vendas();
    case.walk_to("CHECKOUT_ENVIADO");
    let decision = case.ring();
    let (cycle, version) = (case.cycle().id, case.cycle().version);
    let expected = ["t15", "t4h", "t20h"].map(|touch| format!("carrinho:{cycle}.{version}:{touch}"));
    assert_eq!(ids(&decision), expected);
}

/// Replies are keyed by the version of the cycle, so that two answers are two tasks.
#[test]
fn replies_leave_at_once_and_are_never_too_late() {
    let mut case = Case::vendas();
    let decision = case.say("oi");
    let reply = &decision.new_tasks[0];
    assert_eq!(reply.id.to_string(), format!("boas_vindas:{}.1", case.cycle().id));
    assert_eq!((reply.kind, reply.class, reply.max_late), (TaskKind::Message, MessageClass::Reply, None));
    assert_eq!((reply.scheduled_for, reply.handed), (case.now, true));
    assert_ne!(ids(&case.say("e aí?")), ids(&case.say("e agora?")));
}

/// C9: effects of payment facts are keyed by action and transaction.
#[test]
fn a_delivery_is_keyed_by_its_transaction() {
    let mut case = Case::vendas();
    let decision = case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!(ids(&decision), ["hotmart:entregar_acesso:HP1"]);
    assert_eq!(case.cycle().paid_orders, [order("HP1")]);
}

#[test]
fn answers_go_to_the_channel_of_the_message_then_the_contacts_then_the_events_then_the_default() {
    let on = |name: &str| EventData { channel: Some(name.into()), text: Some("oi".to_owned()), ..EventData::default() };
    let mut case = Case::vendas();
    let channel_of = |decision: &Decision| decision.new_tasks[0].channel.clone();
    let pix = case.fact_event(EventKind::PixCreated, "HP1", "curso");
    assert_eq!(channel_of(&case.clone().decide(std::slice::from_ref(&pix))), ChannelName::new("zap"));
    let mut named = pix;
    named.data.channel = Some("loja".into());
    assert_eq!(channel_of(&case.clone().decide(&[named.clone()])), ChannelName::new("loja"));
    let message = case.event(EventKind::MessageReceived, on("pessoal"));
    assert_eq!(channel_of(&case.decide(&[message])), ChannelName::new("pessoal"));
    assert_eq!(channel_of(&case.decide(&[named])), ChannelName::new("pessoal"));
}
