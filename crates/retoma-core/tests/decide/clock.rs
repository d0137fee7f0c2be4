//! Deadlines, touches that fall due, and the end of a cadence (C1, C5, D8).

use super::*;

/// C1, D8: one unpaid PIX and no reply is exactly three messages; then the cadence is exhausted.
#[test]
fn an_unpaid_pix_is_three_messages_and_then_lost() {
    for (kind, first) in [(EventKind::PixCreated, "lembrete_pix"), (EventKind::CheckoutAbandoned, "retomar_checkout")] {
        let mut case = Case::vendas();
        case.fact(kind, "HP1", "curso");
        let mut sent = case.deliver();
        while case.cycle().deadline_at.is_some() {
            case.ring();
            sent.extend(case.deliver());
        }
        assert_eq!(sent, [first, "proximo_toque", "proximo_toque"]);
        assert_eq!(case.state(), "PERDIDO");
        assert_eq!(case.cycle().cadence, None);
        let last = case.log.last().unwrap();
        assert_eq!((last.event.as_str(), last.from.as_str()), ("regua_esgotada", "RECUPERANDO"));
    }
}

/// C5: own deadlines, with a jitter drawn once.
#[test]
fn each_state_has_its_clock_or_none() {
    let table = [
        ("ENGAJADO", Some(2 * HOUR)),
        ("NEGOCIANDO", Some(4 * HOUR)),
        ("CHECKOUT_ENVIADO", Some(30 * MINUTE)),
        ("PERDIDO", None),
        ("PAGO", None),
        ("OPT_OUT", None),
    ];
    for (state, after) in table {
        let mut case = Case::vendas();
        case.walk_to(state);
        let cycle = case.cycle();
        assert_eq!(cycle.deadline_at.is_some(), after.is_some(), "{state}");
        if let (Some(at), Some(after)) = (cycle.deadline_at, after) {
            let earliest = cycle.updated_at + after;
            assert!(at >= earliest && at <= earliest + 5 * MINUTE, "{state}");
        }
    }
}

/// C5: sweeping twice is harmless, and so is a timeout that a message overtook.
#[test]
fn a_deadline_that_is_not_the_cycles_any_more_is_stale() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO");
    let timeout = case.next_timeout().unwrap();
    case.wait(HOUR).say("ainda estou pensando");
    case.wait(2 * HOUR);
    let before = (case.view.conversations.clone(), case.view.tasks.clone());
    let decision = case.decide(std::slice::from_ref(&timeout));
    assert_eq!((reason(&decision), decision.events[0].decided), (Some("stale_deadline"), false));
    assert_eq!((case.view.conversations.clone(), case.view.tasks.clone()), before);

    let timeout = case.next_timeout().unwrap();
    case.now = timeout.occurred_at;
    assert_eq!(reason(&case.decide(std::slice::from_ref(&timeout))), None);
    assert_eq!(reason(&case.decide(&[timeout])), Some("stale_deadline"));
}

/// A deadline that the table does not answer must not pass again and again.
#[test]
fn a_deadline_without_a_row_is_used_up() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO");
    case.flow.transitions.retain(|row| row.event != "timeout");
    let decision = case.ring();
    assert_eq!(reason(&decision), Some("no_transition"));
    assert_eq!(case.cycle().deadline_at, None);
}

/// D10: after an outage, the latest touch stands for those before it.
#[test]
fn touches_that_piled_up_during_an_outage_become_one() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.wait(5 * HOUR);
    let decision = case.ring();
    assert_eq!(decision.handed.len(), 1);
    assert_eq!(touches(&case), ["t15 piled_up", "t4h scheduled", "t20h scheduled"]);
    assert_eq!(case.deliver(), ["proximo_toque"]);
    assert_eq!(case.state(), "RECUPERANDO");
}

/// A touch that a person closed by hand is passed over; the clock goes on to the next.
#[test]
fn a_touch_closed_by_hand_does_not_move_the_state() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.view.tasks[0].status = TaskStatus::Cancelled;
    let decision = case.ring();
    assert_eq!((case.state(), reason(&decision)), ("AGUARDANDO_PIX", Some("no_transition")));
    assert_eq!(case.cycle().deadline_at, Some(case.view.tasks[1].scheduled_for));
}

/// D8: nothing is exhausted while a touch is under way, held within its time, or answered less than a grace ago.
#[test]
fn a_cadence_is_exhausted_only_after_its_touches_and_a_silence() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    case.ring();
    case.deliver();
    case.ring();
    // The last touch hangs.
    let last = case.view.tasks.iter().position(|task| task.touch.as_deref() == Some("t20h")).unwrap();
    for (status, is_over) in [
        (TaskStatus::Sending, false),
        (TaskStatus::Scheduled, false),
        (TaskStatus::Failed, false),
        (TaskStatus::Held, true),
        (TaskStatus::Unsure, true),
        (TaskStatus::Dead, true),
    ] {
        let mut case = case.clone();
        case.view.tasks[last].status = status;
        case.view.tasks[last].updated_at = case.now + MINUTE;
        case.ring();
        let looked_again = case.cycle().deadline_at;
        assert_eq!(case.state(), "RECUPERANDO", "{status}: the touch ended less than a day ago");
        assert!(looked_again.is_some_and(|at| at > case.now), "{status}");
        case.wait(48 * HOUR).ring();
        assert_eq!(case.state() == "PERDIDO", is_over, "{status}");
        let held_ends = (case.view.tasks[last].reason == Some(Reason::TooLate)) == (status == TaskStatus::Held);
        assert!(held_ends, "{status}");
    }
}

/// D8: a reply within the grace begins it anew.
#[test]
fn a_reply_while_the_pix_waits_puts_the_end_off() {
    let mut case = Case::vendas();
    case.flow.transitions.retain(|row| row.event != "timeout");
    case.fact(EventKind::PixCreated, "HP1", "curso");
    for _ in 0..3 {
        case.ring();
        case.deliver();
    }
    assert_eq!(case.state(), "AGUARDANDO_PIX");
    case.wait(20 * HOUR).say("vou pagar amanhã");
    case.deliver();
    let answered_at = case.now;
    assert_eq!(case.cycle().deadline_at, Some(answered_at + 24 * HOUR));
}

/// What the contact answered ends the cadence: the talk is on again (C1).
#[test]
fn an_answer_during_recovery_closes_the_rest() {
    let mut case = Case::vendas();
    case.walk_to("RECUPERANDO");
    case.say("tive um problema");
    assert_eq!((case.state(), &case.cycle().cadence), ("NEGOCIANDO", &None));
    assert_eq!(touches(&case), ["t15 sent", "t4h superseded", "t20h superseded"]);
    // NEGOCIANDO's own clock runs, and arms the next cadence.
    let decision = case.ring();
    assert_eq!((case.state(), case.let_go(&decision)), ("RECUPERANDO", vec!["retomar_oferta".to_owned()]));
}

/// D10: touches that count back from an expiry move with it, unless they were handed over.
#[test]
fn a_new_expiry_moves_the_touches_that_count_back_from_it() {
    let text = retoma_core::flow::VENDAS.replace(
        "- { id: t20h, at: 20h,",
        "- { id: fim, before: pix.expires_at, at: 1h, max_late: 40m, send: proximo_toque }\n      - { id: t20h, at: 20h,",
    );
    let (flow, findings) = retoma_core::flow::load(&text, "vendas.yaml");
    let mut case = Case::of(flow.unwrap_or_else(|| panic!("{findings:?}")));
    let mut pix = case.fact_event(EventKind::PixCreated, "HP1", "9000001");
    let start = case.now;
    pix.data.vars.insert("pix.expires_at".to_owned(), (start + 3 * HOUR).to_string());
    case.decide(&[pix]);
    let due =
        |case: &Case| case.view.tasks.iter().find(|task| task.touch.as_deref() == Some("fim")).unwrap().scheduled_for;
    assert_eq!(due(&case), start + 2 * HOUR);
    let renew = |case: &mut Case, expires: jiff::Timestamp| {
        let conversation = case.cycle().id;
        let values = [("pix.code".to_owned(), "NOVO".to_owned()), ("pix.expires_at".to_owned(), expires.to_string())];
        let renewed = Some(Renewed { conversation, values: values.into() });
        let event = case.event(EventKind::ValuesRenewed, EventData { renewed, ..EventData::default() });
        case.decide(&[event])
    };
    let decision = renew(&mut case, start + 2 * HOUR);
    assert_eq!((decision.replanned.len(), due(&case)), (1, start + HOUR));
    assert_eq!(case.cycle().vars["pix.code"], "NOVO");
    let running = case.cycle().cadence.clone().unwrap();
    assert!(running.touches.iter().any(|touch| touch.due_at == start + HOUR));
    // The clock follows the earliest of them; here the first touch still comes before.
    assert_eq!(case.cycle().deadline_at, cadence::next_due(&running));
    // The same again moves nothing, and what was handed over stays where it is.
    assert_eq!(renew(&mut case, start + 2 * HOUR).replanned, Vec::new());
    case.wait(2 * HOUR).ring();
    let handed = due(&case);
    assert_eq!(renew(&mut case, start + 9 * HOUR).replanned, Vec::new());
    assert_eq!(due(&case), handed);
}

/// D10: a renewal that comes after the cycle ended changes nothing.
#[test]
fn a_renewal_of_a_closed_cycle_is_nobody_s() {
    let mut case = Case::vendas();
    case.walk_to("AGUARDANDO_PIX");
    let conversation = ConversationId::derive(case.view.contact.id, 99);
    let renewed = Some(Renewed { conversation, values: [("pix.code".to_owned(), "X".to_owned())].into() });
    let event = case.event(EventKind::ValuesRenewed, EventData { renewed, ..EventData::default() });
    assert_eq!(reason(&case.decide(&[event])), Some("cycle_closed"));
}
