//! Decisions that the table alone does not show: whose cycle, what is closed, which ids, which deadline.

#[path = "support/case.rs"]
mod case;

use case::{Case, HOUR, MINUTE, order};
use retoma_core::cadence;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::{CloseScope, Decision};
use retoma_core::event::{EventData, EventKind, Operator};
use retoma_core::ids::{ChannelName, ConversationId};
use retoma_core::send_check::Reason;
use retoma_core::state::Conversation;
use retoma_core::task::{MessageClass, TaskKind, TaskStatus};

fn ids(decision: &Decision) -> Vec<String> {
    decision.new_tasks.iter().map(|task| task.id.to_string()).collect()
}

fn reason(decision: &Decision) -> Option<&str> {
    decision.events[0].reason.as_deref()
}

/// Why each touch of the case ended or waits: `t4h paid`.
fn touches(case: &Case) -> Vec<String> {
    let touches = case.view.tasks.iter().filter(|task| task.kind == TaskKind::Touch);
    let shown = touches.map(|task| {
        let why = task.reason.map_or(task.status.as_str(), Reason::as_str);
        format!("{} {why}", task.touch.as_deref().unwrap_or("?"))
    });
    shown.collect()
}

fn command(actor: &str) -> Operator {
    Operator { actor: actor.to_owned(), until: None, conversation: None, to: None, reason: None }
}

// ---- ids and promises ----------------------------------------------------------------------------------------------

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
    for (task, (minutes, jitter, message)) in
        decision.new_tasks.iter().zip([(15, 2, "lembrete_pix"), (240, 10, "proximo_toque"), (1_200, 20, "proximo_toque")])
    {
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
    let mut named = pix.clone();
    named.data.channel = Some("loja".into());
    assert_eq!(channel_of(&case.clone().decide(&[named.clone()])), ChannelName::new("loja"));
    let message = case.event(EventKind::MessageReceived, on("pessoal"));
    assert_eq!(channel_of(&case.decide(&[message])), ChannelName::new("pessoal"));
    assert_eq!(channel_of(&case.decide(&[named])), ChannelName::new("pessoal"));
}

// ---- one clock -----------------------------------------------------------------------------------------------------

/// C1, D8: one unpaid PIX and no reply is exactly three messages; then the cadence is exhausted.
#[test]
fn an_unpaid_pix_is_three_messages_and_then_lost() {
    for (kind, first) in
        [(EventKind::PixCreated, "lembrete_pix"), (EventKind::CheckoutAbandoned, "retomar_checkout")]
    {
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

// ---- money ---------------------------------------------------------------------------------------------------------

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
    assert_eq!((case.view.tasks[1].status, case.view.tasks[1].cancel_reason), (TaskStatus::Sending, Some(Reason::Paid)));
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
    assert_eq!((reason(&late), ids(&late).len()), (Some("late_fact"), 0));
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

// ---- cycles --------------------------------------------------------------------------------------------------------

/// C1: a new interest in another offer opens a new cycle and never erases the earlier one.
#[test]
fn another_offer_is_another_cycle_and_each_payment_finds_its_own() {
    let mut case = Case::vendas();
    case.fact(EventKind::PixCreated, "HP1", "curso");
    case.fact(EventKind::PixCreated, "HP2", "mentoria");
    assert_eq!(case.view.conversations.len(), 2);
    assert_eq!(case.waiting().len(), 6);
    case.fact(EventKind::PaymentApproved, "HP1", "curso");
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

/// Facts that the flow has no answer to open nothing.
#[test]
fn a_fact_without_an_answer_opens_no_cycle() {
    for (kind, expected) in [
        (EventKind::PaymentRefunded, "no_transition"),
        (EventKind::SubscriptionLate, "no_transition"),
        (EventKind::MessageStatus, "not_for_flow"),
        (EventKind::ChannelConnected, "not_for_flow"),
        (EventKind::MessageHuman, "not_for_flow"),
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
    assert_eq!(
        (previous.state.as_deref(), previous.event.as_deref()),
        (Some("RECUPERANDO"), Some("regua_esgotada"))
    );
}

// ---- messages ------------------------------------------------------------------------------------------------------

/// FC-04, C7: five messages at once are one decision, one answer, one cycle.
#[test]
fn a_burst_is_one_decision_with_one_answer() {
    let mut case = Case::vendas();
    let decision = case.burst(&["oi", "", "", "preço?", "pix?"]);
    assert_eq!((decision.events.len(), decision.transitions.len(), ids(&decision).len()), (5, 1, 1));
    assert!(decision.events.iter().all(|outcome| outcome.decided && outcome.result == "NOVO -> ENGAJADO (boas_vindas)"));
    assert_eq!(case.view.conversations.len(), 1);
    // C2: asked for a price in NOVO, it is greeted, and the row names both.
    let row = &decision.transitions[0];
    assert_eq!((row.event.as_str(), row.taken_as.as_deref()), ("pediu_preco", Some("msg_recebida")));
    assert!(row.rule.as_deref().is_some_and(|rule| rule.starts_with("pediu_preco")));
}

/// Of several intents, one that this state has a row for.
#[test]
fn a_burst_takes_the_strongest_word_that_has_a_row_here() {
    let table = [
        ("ENGAJADO", ["quero comprar", "quanto custa?"], "mandar_oferta"),
        ("NEGOCIANDO", ["quanto custa?", "quero comprar"], "mandar_link"),
        ("NEGOCIANDO", ["quero comprar", "quanto custa?"], "mandar_link"),
        ("CHECKOUT_ENVIADO", ["quanto custa?", "quero comprar"], "ajudar_no_checkout"),
    ];
    for (state, texts, message) in table {
        let mut case = Case::vendas();
        case.walk_to(state);
        let decision = case.burst(&texts);
        assert_eq!(case.let_go(&decision), [message], "{state} {texts:?}");
    }
}

/// The window and the silence are counted from the contact's own time, never backwards, never from a future.
#[test]
fn the_last_word_of_the_contact_never_goes_backwards() {
    let mut case = Case::vendas();
    case.say("oi");
    let first = case.now;
    let mut old = case.event(EventKind::MessageReceived, EventData::default());
    old.occurred_at = first - 2 * HOUR;
    old.data.channel = Some("antigo".into());
    case.decide(&[old]);
    assert_eq!((case.view.contact.last_inbound_at, &case.view.contact.last_channel), (Some(first), &None));
    let mut ahead = case.wait(HOUR).event(EventKind::MessageReceived, EventData::default());
    ahead.occurred_at = case.now + 9 * HOUR;
    case.decide(&[ahead]);
    assert_eq!(case.view.contact.last_inbound_at, Some(case.now));
}

/// What a platform says of a person replaces what we had; the name on a chat profile only fills a gap.
#[test]
fn template_values_go_to_the_person_or_to_the_sale() {
    let vars = |name: &str, total: &str| EventData {
        text: Some("oi".to_owned()),
        offer: Some("curso".to_owned()),
        vars: [("contact.first_name", name), ("order.total", total)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..EventData::default()
    };
    let mut case = Case::vendas();
    let chat = case.event(EventKind::MessageReceived, vars("🌻", "1"));
    case.decide(&[chat]);
    let pix = case.event(EventKind::PixCreated, vars("Maria", "R$ 97,00"));
    case.decide(&[pix]);
    let chat = case.event(EventKind::MessageReceived, vars("🌻", "1"));
    case.decide(&[chat]);
    assert_eq!(case.view.contact.vars.get("contact.first_name").map(String::as_str), Some("Maria"));
    assert_eq!(case.cycle().vars.get("order.total").map(String::as_str), Some("R$ 97,00"));
    assert_eq!(case.view.tasks.last().unwrap().reference.amount.as_deref(), Some("R$ 97,00"));
}

// ---- silence -------------------------------------------------------------------------------------------------------

/// FC-58, C12: contact-wide, over all cycles, one confirmation.
#[test]
fn an_opt_out_closes_every_cycle_and_confirms_once() {
    for text in ["SAIR", " sair ", "Sair.", "PARAR", "stop", "quero sair da lista", "pare de mandar mensagem", "descadastrar"]
    {
        let mut case = Case::vendas();
        case.fact(EventKind::PixCreated, "HP1", "curso");
        case.fact(EventKind::PixCreated, "HP2", "mentoria");
        let decision = case.say(text);
        assert_eq!(case.let_go(&decision), ["confirmar_saida"], "{text}");
        assert_eq!(case.view.contact.opted_out_at, Some(case.now));
        assert_eq!(case.state(), "OPT_OUT");
        let waiting: Vec<MessageClass> = case.waiting().iter().map(|task| task.class).collect();
        assert_eq!(waiting, [MessageClass::OptOutAck], "{text}");
        assert!(case.view.conversations.iter().all(|cycle| cycle.deadline_at.is_none() && cycle.cadence.is_none()));
        // Asked again before the confirmation left: it stays, and is not doubled.
        let again = case.say(text);
        assert_eq!((ids(&again).len(), case.waiting().len()), (0, 1), "{text}");
        assert_eq!(reason(&case.say("alguém aí?")), Some("no_transition"));
        assert_eq!(case.waiting().len(), 1);
    }
}

#[test]
fn a_sentence_about_leaving_is_no_opt_out() {
    let mut case = Case::vendas();
    case.walk_to("ENGAJADO").say("não quero sair do grupo, obrigado");
    assert_eq!((case.state(), case.view.contact.opted_out_at), ("ENGAJADO", None));
}

/// C12: after an opt-out what is paid is still delivered, and nothing is armed.
#[test]
fn somebody_who_opted_out_gets_what_was_paid_and_no_reminder() {
    let mut case = Case::vendas();
    case.walk_to("OPT_OUT");
    let pix = case.fact(EventKind::PixCreated, "HP1", "curso");
    assert_eq!((ids(&pix).len(), case.cycle().deadline_at), (0, None));
    let other = case.fact(EventKind::PaymentRefused, "HP5", "mentoria");
    assert_eq!((ids(&other).len(), case.cycle().deadline_at), (0, None));
    let paid = case.fact(EventKind::PaymentApproved, "HP1", "curso");
    assert_eq!(ids(&paid), ["hotmart:entregar_acesso:HP1"]);
}

/// C12: `VOLTAR` closes the OPT_OUT cycle, and that message opens a new one in NOVO.
#[test]
fn voltar_opens_a_new_cycle_and_is_greeted() {
    let mut case = Case::vendas();
    case.walk_to("OPT_OUT");
    let closed = case.cycle().id;
    let decision = case.wait(HOUR).say("VOLTAR");
    assert_eq!(case.view.contact.opted_out_at, None);
    assert_eq!(case.let_go(&decision), ["boas_vindas"]);
    assert_eq!((case.view.conversations.len(), case.state()), (1, "ENGAJADO"));
    assert_ne!(case.cycle().id, closed);
    assert_eq!(case.cycle().id, ConversationId::derive(case.view.contact.id, 2));
    let row = decision.transitions.last().unwrap();
    assert_eq!((row.event.as_str(), row.taken_as.as_deref()), ("voltar", Some("msg_recebida")));
    // And may ask for silence again, with a confirmation of its own.
    let again = case.say("sair");
    assert_eq!(case.let_go(&again), ["boas_vindas", "confirmar_saida"][1..]);
}

#[test]
fn voltar_of_somebody_who_is_here_is_just_a_message() {
    let mut case = Case::vendas();
    let decision = case.walk_to("ENGAJADO").say("voltar");
    assert_eq!((case.state(), case.let_go(&decision)), ("ENGAJADO", vec!["responder_duvida".to_owned()]));
    // Taken back in the same breath, an opt-out is none.
    let decision = case.burst(&["sair", "voltar"]);
    assert_eq!(case.view.contact.opted_out_at, None);
    assert_eq!(case.let_go(&decision), ["responder_duvida"]);
    case.burst(&["voltar", "sair"]);
    assert_eq!(case.state(), "OPT_OUT");
}

// ---- people --------------------------------------------------------------------------------------------------------

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

// ---- flows of other shapes -----------------------------------------------------------------------------------------

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
