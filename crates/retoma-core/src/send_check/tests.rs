use super::*;
use crate::cadence;
use crate::event::EventData;
use crate::flow::Calendar;
use crate::identity::Identity;
use crate::ids::ConversationId;
use crate::receipt::Status;
use crate::task::{Reference, TaskStatus};

mod case;

use case::{Case, HOUR, MINUTE, about, at, commanded, cycle, fact, id, order, task};

/// What makes each step object, in the order of the check.
type Change = fn(&mut Case);
const STEPS: [(&str, Change); 21] = [
    ("avoid opted_out", |case| case.view.contact.opted_out_at = Some(case.now)),
    ("avoid cycle_closed", |case| case.view.conversations.clear()),
    ("avoid paid", |case| case.fact(EventKind::PaymentApproved)),
    ("avoid refunded", |case| case.fact(EventKind::PaymentRefunded)),
    ("avoid cancelled", |case| case.fact(EventKind::PaymentCancelled)),
    ("avoid superseded", |case| case.view.conversations.iter_mut().for_each(|cycle| cycle.state = "NEGOCIANDO".into())),
    ("avoid human_active", |case| case.view.contact.paused_until = Some(case.now + HOUR)),
    ("avoid too_late", |case| case.task.scheduled_for = case.now - 41 * MINUTE),
    ("avoid guard_paid", |case| case.guarded(Some(Guard::Paid))),
    ("defer guard_unknown", |case| case.guarded(Some(Guard::Unknown))),
    ("defer quiet_hours", |case| case.flow.calendar = closed_now()),
    ("defer just_wrote", |case| case.view.contact.last_inbound_at = Some(case.now - 10 * MINUTE)),
    ("defer min_gap", |case| case.sends(MessageClass::Reminder, &[10 * MINUTE])),
    ("avoid piled_up", |case| case.view.tasks[1].scheduled_for = case.now),
    ("avoid frequency_cap", |case| case.sends(MessageClass::Reminder, &[3 * HOUR, 4 * HOUR, 5 * HOUR])),
    ("avoid unanswered_limit", |case| case.sends(MessageClass::Reply, &[HOUR; 8])),
    ("avoid no_receipt", |case| {
        case.took(&[(72 * HOUR, Status::Accepted), (60 * HOUR, Status::Accepted), (48 * HOUR, Status::Accepted)])
    }),
    ("hold missing_variable", |case| case.missing = Some("pix.code".into())),
    ("avoid perished", |case| case.perished = true),
    ("defer channel_stopped", |case| case.channel_stopped = true),
    ("send", |_| {}),
];

/// Noon is closed, as 23:00 to 08:00 is by default.
fn closed_now() -> Calendar {
    Calendar { allowed: std::array::from_fn(|_| vec![(13 * 60, 14 * 60)]), release_spread: Duration::ZERO }
}

/// Two pairs are one step each, and the later code is the truer one: what was refunded was paid before, and what perished is
/// not something that somebody forgot.
const ONE_STEP: [(&str, &str); 2] = [("avoid paid", "avoid refunded"), ("hold missing_variable", "avoid perished")];

// D4
#[test]
fn every_step_objects_with_its_own_code() {
    for (expected, change) in STEPS {
        let said = Case::with(change).says();
        assert!(said.starts_with(expected), "{expected}: {said}");
    }
}

// D4: "in a fixed order".
#[test]
fn of_two_objections_the_earlier_step_decides() {
    for (first, (expected, change)) in STEPS.iter().enumerate() {
        for (later, change_too) in &STEPS[first + 1..] {
            let expected = if ONE_STEP.contains(&(*expected, *later)) { later } else { expected };
            for both in [Case::with(change).also(change_too), Case::with(change_too).also(change)] {
                let said = both.says();
                assert!(said.starts_with(expected), "{expected} and {later}: {said}");
            }
        }
    }
}

// D4: the codes stand in the order of INTERFACE.md, and the steps in the order of the codes.
#[test]
fn the_steps_follow_the_order_of_the_codes() {
    let code = |step: &str| step.split(' ').nth(1).and_then(Reason::parse);
    let codes: Vec<Reason> = STEPS.iter().filter_map(|(step, _)| code(step)).collect();
    assert!(codes.is_sorted());
    let unused = [Reason::WindowClosed, Reason::Unconfirmed];
    let missing = Reason::ALL.iter().filter(|reason| !codes.contains(reason) && !unused.contains(reason));
    assert_eq!(missing.count(), 0);
}

// D4: which class is held to which step. A letter for each step that objects, in the order of STEPS.
#[test]
fn a_class_is_held_to_its_own_steps() {
    use MessageClass::{Internal, OptOutAck, Receipt, Reply};
    let table = [
        // What a reply was promised for is known to be gone only by what happened since; the facts of STEPS are of now.
        (
            Reply,
            "opted_out cycle_closed refunded cancelled human_active unanswered_limit no_receipt missing_variable perished channel_stopped",
        ),
        (Receipt, "refunded cancelled missing_variable perished channel_stopped"),
        (OptOutAck, "missing_variable perished channel_stopped"),
        (Internal, "missing_variable perished channel_stopped"),
    ];
    for (class, expected) in table {
        let objecting: Vec<String> = STEPS
            .iter()
            .map(|(_, change)| Case::of_class(class).also(change).says())
            .filter(|said| said != "send")
            .map(|said| said.split(' ').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(objecting.join(" "), expected, "{class}");
    }
}

// D4: a guard that was not asked yet is asked while the task waits; a cadence without one asks nobody.
#[test]
fn no_answer_of_the_guard_never_means_send() {
    for (says, expected) in [(None, 3), (Some(Guard::Unknown), 300)] {
        let case = Case::with(|case| case.guarded(says));
        let until = case.now + Duration::from_secs(expected);
        assert_eq!(case.check(), Verdict::Defer(Reason::GuardUnknown, until));
    }
    assert_eq!(Case::with(|case| case.guarded(Some(Guard::Unpaid))).says(), "send");
    assert_eq!(Case::with(|case| case.guard = Some(Guard::Paid)).says(), "send");
}

// FC-78
#[test]
fn who_is_reached_by_nothing_is_written_to_no_more() {
    use Status::{Accepted, Delivered, Failed, Sent};
    let (old, new) = (48 * HOUR, HOUR);
    let table: [(&[(Duration, Status)], &str); 6] = [
        (&[(old, Accepted), (old, Accepted)], "send"),
        (&[(old, Accepted), (old, Accepted), (old, Accepted), (new, Accepted)], "avoid no_receipt"),
        (&[(old, Accepted), (old, Accepted), (new, Accepted), (new, Accepted)], "send"),
        (&[(old, Accepted), (old, Accepted), (old, Accepted), (old, Sent)], "send"),
        (&[(old, Delivered), (old, Accepted), (old, Accepted), (old, Accepted)], "avoid no_receipt"),
        // A failure is a word, too; its own class says what follows.
        (&[(old, Accepted), (old, Failed), (old, Accepted), (old, Accepted)], "send"),
    ];
    for (sends, expected) in table {
        assert_eq!(Case::with(|case| case.took(sends)).says(), expected, "{sends:?}");
    }
    let three = [(old, Accepted); 3];
    let unlimited = Case::with(|case| case.took(&three)).also(|case| case.flow.limits.without_receipt = 0);
    assert_eq!(unlimited.says(), "send");
    let answered = Case::with(|case| case.took(&three)).also(|case| {
        case.view.contact.last_inbound_at = Some(case.now - 2 * HOUR);
    });
    assert_eq!(answered.says(), "send");
}

// C12
#[test]
fn what_was_paid_is_delivered_after_an_opt_out_unless_configured_otherwise() {
    let opted_out = Case::of_class(MessageClass::Receipt).also(|case| case.view.contact.opted_out_at = Some(case.now));
    assert_eq!(opted_out.says(), "send");
    assert_eq!(opted_out.also(|case| case.flow.limits.receipts_after_opt_out = false).says(), "avoid opted_out");
}

// FC-36: received before the start, undecided; received while the task is checked; received after the start.
#[test]
fn a_payment_that_is_not_decided_yet_stops_the_reminder() {
    let due = Case::new();
    assert_eq!(due.says(), "send");
    // T - 50 ms, still in the inbox: before the decision, by the event, and by the fact that intake recorded with it.
    let in_the_inbox =
        due.clone().also(|case| case.undecided(EventKind::PaymentApproved, about(Some("HP1"), Some("curso"))));
    assert_eq!(in_the_inbox.says(), "avoid paid");
    assert_eq!(due.clone().also(|case| case.fact(EventKind::PaymentApproved)).says(), "avoid paid");
    // Decided: the cadence is over and the order remembered. The reason is still told by its right name.
    let decided = due.also(|case| {
        case.cycle().state = "PAGO".into();
        case.cycle().cadence = None;
        case.cycle().paid_orders.push(order("HP1"));
    });
    assert_eq!(decided.says(), "avoid paid");
    // T + 10 s: this touch left, the next one finds it.
    let next = decided.also(|case| case.task = case.view.tasks[1].clone());
    assert_eq!(next.says(), "avoid paid");
}

// D2, C11: which undecided events concern a task.
#[test]
fn an_undecided_event_concerns_the_task_by_order_else_by_offer_else_by_doubt() {
    let paid = |data: EventData| move |case: &mut Case| case.undecided(EventKind::PaymentApproved, data);
    let another = |case: &mut Case| case.view.conversations.push(cycle(2, "mentoria", "HP7"));
    let table = [
        (about(Some("HP1"), None), "avoid paid"),
        (about(Some("HP1"), Some("outro nome")), "avoid paid"),
        (about(Some("HP2"), Some("curso")), "avoid paid"),
        (about(Some("HP2"), None), "avoid paid"),
        (about(None, None), "avoid paid"),
        (about(Some("HP2"), Some("mentoria")), "send"),
        (about(Some("HP7"), None), "send"),
    ];
    for (data, expected) in table {
        assert_eq!(Case::new().also(another).also(paid(data.clone())).says(), expected, "{data:?}");
    }
}

// D4: money, by facts and by undecided events alike.
#[test]
fn money_takes_reasons_away() {
    use EventKind::*;
    let receipt = |case: &mut Case| case.task = task("m", MessageClass::Receipt);
    let reply = |case: &mut Case| case.task = task("m", MessageClass::Reply);
    let reminder = |_: &mut Case| {};
    let table: [(EventKind, [&str; 3]); 12] = [
        // Of a reminder, a reply, a receipt.
        (PaymentApproved, ["avoid paid", "send", "send"]),
        (SubscriptionRenewed, ["avoid paid", "send", "send"]),
        (OrderCompleted, ["avoid paid", "send", "send"]),
        (PaymentRefundRequested, ["avoid paid", "send", "send"]),
        (PaymentPartiallyRefunded, ["avoid paid", "send", "send"]),
        (PaymentRefunded, ["avoid refunded", "avoid refunded", "avoid refunded"]),
        (PaymentChargeback, ["avoid refunded", "avoid refunded", "avoid refunded"]),
        (PaymentCancelled, ["avoid cancelled", "avoid cancelled", "avoid cancelled"]),
        // The shipped cadence does not name these: a touch may outlive its code.
        (PaymentExpired, ["send", "send", "send"]),
        (PixExpired, ["send", "send", "send"]),
        (PaymentRefused, ["send", "send", "send"]),
        (PixCreated, ["send", "send", "send"]),
    ];
    for (kind, expected) in table {
        let classes: [(Change, &str); 3] = [(reminder, expected[0]), (reply, expected[1]), (receipt, expected[2])];
        for (class, expected) in classes {
            assert_eq!(Case::with(class).also(|case| case.fact(kind)).says(), expected, "{kind} recorded");
            let undecided = Case::with(class).also(|case| case.undecided(kind, about(Some("HP1"), None)));
            assert_eq!(undecided.says(), expected, "{kind} undecided");
        }
    }
}

#[test]
fn a_refused_card_does_not_cancel_the_cadence_that_it_armed() {
    let refused = Case::with(|case| {
        case.task.cadence = Some("cartao_recusado".into());
        let declared = &case.flow.cadences["cartao_recusado"];
        let key = cadence::key(declared, Some(&order("HP1")), ConversationId(id(1)), 1);
        let running = case.view.conversations[0].cadence.as_mut().unwrap();
        (running.name, running.key) = ("cartao_recusado".into(), key);
        case.view.facts = vec![fact(EventKind::PaymentRefused, "HP1", case.now - 15 * MINUTE)];
    });
    assert_eq!(refused.says(), "send");
    // The order itself being cancelled is another thing.
    assert_eq!(refused.also(|case| case.fact(EventKind::PaymentCancelled)).says(), "avoid cancelled");
}

#[test]
fn a_charge_that_was_cancelled_says_nothing_about_the_one_that_replaced_it() {
    let older = Case::with(|case| {
        case.view.facts.push(fact(EventKind::PaymentCancelled, "HP0", case.now));
        case.undecided(EventKind::PaymentCancelled, about(Some("HP0"), Some("curso")));
    });
    assert_eq!(older.says(), "send");
    // A cadence that the clock armed is about the talk, even if its tasks still name the order.
    let retomada = Case::with(|case| {
        case.task.cadence = Some("retomada".into());
        let running = case.cycle().cadence.as_mut().unwrap();
        (running.name, running.key) = ("retomada".into(), "retomada:1.7".into());
        case.fact(EventKind::PaymentCancelled);
    });
    assert_eq!(retomada.says(), "send");
    // By rank: an order that was paid was not cancelled, whatever came in later.
    let receipt = Case::of_class(MessageClass::Receipt).also(|case| {
        case.fact(EventKind::PaymentApproved);
        case.fact(EventKind::PaymentCancelled);
    });
    assert_eq!(receipt.says(), "send");
}

#[test]
fn who_got_a_refund_and_writes_again_is_answered() {
    let before = Case::of_class(MessageClass::Reply)
        .also(|case| case.view.facts.push(fact(EventKind::PaymentRefunded, "HP1", case.task.created_at - HOUR)));
    assert_eq!(before.says(), "send");
    // A receipt has no such excuse.
    assert_eq!(before.also(|case| case.task.class = MessageClass::Receipt).says(), "avoid refunded");
}

#[test]
fn another_orders_refund_does_not_withhold_what_was_paid() {
    let other = |case: &mut Case| case.undecided(EventKind::PaymentRefunded, about(Some("HP2"), Some("curso")));
    assert_eq!(Case::of_class(MessageClass::Receipt).also(other).says(), "send");
    // Reminders of the offer end with it (D2).
    assert_eq!(Case::new().also(other).says(), "avoid refunded");
}

// C12, FC-58: in any raw message, decided or not.
#[test]
fn asking_for_silence_stops_everything_at_once() {
    let asks = |text: &'static str| move |case: &mut Case| case.wrote(text);
    assert_eq!(Case::new().also(asks("SAIR")).says(), "avoid opted_out");
    assert_eq!(Case::of_class(MessageClass::Reply).also(asks("pare de mandar mensagem")).says(), "avoid opted_out");
    assert!(Case::new().also(asks("não quero sair do grupo")).says().starts_with("defer just_wrote"));
    let by_operator = Case::with(|case| case.undecided(EventKind::OperatorOptOut, commanded(None)));
    assert_eq!(by_operator.says(), "avoid opted_out");
}

// C8
#[test]
fn the_last_command_says_whether_a_person_is_in_the_chat() {
    let pause = |case: &mut Case| case.undecided(EventKind::OperatorPause, commanded(Some(case.now + HOUR)));
    let resume = |case: &mut Case| case.undecided(EventKind::OperatorResume, commanded(None));
    let paused = |case: &mut Case| case.view.contact.paused_until = Some(case.now + HOUR);
    assert_eq!(Case::with(pause).says(), "avoid human_active");
    assert_eq!(Case::with(pause).also(resume).says(), "send");
    assert_eq!(Case::with(paused).also(resume).says(), "send");
    assert_eq!(Case::with(resume).also(pause).says(), "avoid human_active");
    assert_eq!(
        Case::with(|case| case.view.contact.paused_until = Some(case.now)).says(),
        "send",
        "it ends at its time"
    );
}

#[test]
fn a_touch_is_superseded_when_its_cadence_was_armed_anew_or_is_gone() {
    let anew = |case: &mut Case| case.cycle().cadence.as_mut().unwrap().touches[0].task = "hotmart:pix:HP2:t15".into();
    assert_eq!(Case::with(anew).says(), "avoid superseded");
    assert_eq!(Case::with(|case| case.cycle().cadence = None).says(), "avoid superseded");
    assert_eq!(Case::with(|case| case.cycle().state = "RECUPERANDO".into()).says(), "send");
    // A message that belongs to no cadence has nothing that could take over.
    let message = Case::of_class(MessageClass::Reminder).also(|case| case.cycle().cadence = None);
    assert_eq!(message.says(), "send");
}

// D2, D9: tasks asked for through the API.
#[test]
fn a_task_asked_for_ends_with_what_it_named() {
    let asked = |cancel_on: EventKind| {
        Case::of_class(MessageClass::Reply).also(|case| {
            case.task.conversation = None;
            case.task.reference = Reference::default();
            case.task.cancel_on = vec![cancel_on];
        })
    };
    let happened = |kind: EventKind| move |case: &mut Case| case.undecided(kind, about(Some("HP9"), None));
    assert_eq!(asked(EventKind::PaymentApproved).also(happened(EventKind::PaymentApproved)).says(), "avoid paid");
    assert_eq!(asked(EventKind::CheckoutCreated).also(happened(EventKind::CheckoutCreated)).says(), "avoid cancelled");
    assert_eq!(asked(EventKind::CheckoutCreated).also(happened(EventKind::PaymentApproved)).says(), "send");
    let marked = Case::with(|case| case.task.cancel_reason = Some(Reason::PiledUp));
    assert_eq!(marked.says(), "avoid piled_up");
}

// D5: at their very borders.
#[test]
fn limits_hold_at_their_borders() {
    let table: [(&str, Change); 16] = [
        // 40 min of lateness are allowed, a second more is not.
        ("send", |case| case.task.scheduled_for = case.now - 40 * MINUTE),
        ("avoid too_late", |case| case.task.scheduled_for = case.now - 40 * MINUTE - Duration::from_secs(1)),
        // 45 min of silence.
        ("defer just_wrote 1", |case| {
            case.view.contact.last_inbound_at = Some(case.now - 45 * MINUTE + Duration::from_secs(1));
        }),
        ("send", |case| case.view.contact.last_inbound_at = Some(case.now - 45 * MINUTE)),
        // 30 min between two reminders; other classes do not count.
        ("defer min_gap 1", |case| case.sends(MessageClass::Reminder, &[30 * MINUTE - Duration::from_secs(1)])),
        ("send", |case| case.sends(MessageClass::Reminder, &[30 * MINUTE])),
        ("send", |case| case.sends(MessageClass::Reply, &[MINUTE])),
        // Three in 24 h, rolling: the third oldest drops out after exactly a day.
        ("send", |case| case.sends(MessageClass::Reminder, &[HOUR, 2 * HOUR])),
        ("avoid frequency_cap", |case| {
            case.sends(MessageClass::Reminder, &[HOUR, 2 * HOUR, 24 * HOUR - Duration::from_secs(1)]);
        }),
        ("send", |case| case.sends(MessageClass::Reminder, &[HOUR, 2 * HOUR, 24 * HOUR])),
        // Six in seven days, though never three in one.
        ("avoid frequency_cap", |case| {
            case.sends(MessageClass::Reminder, &[20, 40, 60, 80, 100, 120].map(|hours| hours * HOUR));
        }),
        ("send", |case| case.sends(MessageClass::Reminder, &[20, 40, 60, 80, 100, 168].map(|hours| hours * HOUR))),
        // Eight automatic messages since the contact's last one, which was 100 h ago.
        ("send", |case| case.sends(MessageClass::Reply, &[HOUR; 7])),
        ("send", |case| case.sends(MessageClass::Reply, &[101 * HOUR; 8])),
        ("avoid unanswered_limit", |case| {
            case.view.contact.last_inbound_at = None;
            case.sends(MessageClass::Reply, &[100 * HOUR; 8]);
        }),
        // The one resend is neither a second message for the gap nor for the cap.
        ("send", |case| {
            case.task.resent = true;
            case.sends(MessageClass::Reminder, &[MINUTE, 2 * HOUR, 3 * HOUR]);
        }),
    ];
    for (row, (expected, change)) in table.into_iter().enumerate() {
        assert_eq!(Case::with(change).says(), expected, "row {row}");
    }
}

// C7: a waiting burst counts as "the contact just wrote".
#[test]
fn nothing_leaves_while_a_message_waits_to_be_decided() {
    let fresh = Case::with(|case| case.wrote("tenho uma dúvida"));
    assert_eq!(fresh.says(), format!("defer just_wrote {}", 45 * 60));
    // However old it is by its origin's clock: what it says may end the cadence.
    let old = fresh.also(|case| case.view.undecided[0].occurred_at = case.now - 2 * HOUR);
    assert_eq!(old.says(), "defer just_wrote 4");
    // An answer does not wait for the next question.
    assert_eq!(Case::of_class(MessageClass::Reply).also(|case| case.wrote("oi?")).says(), "send");
}

// D5, FC-53: quiet hours are the contact's own.
#[test]
fn quiet_hours_are_those_of_the_contact() {
    let night = |case: &mut Case| {
        case.now = at("2026-12-03T23:30:00");
        case.task.scheduled_for = case.now;
        case.flow.calendar.release_spread = Duration::ZERO;
        case.view.tasks.truncate(1);
    };
    assert_eq!(Case::with(night).says(), format!("defer quiet_hours {}", 8 * 3600 + 30 * 60));
    let in_manaus =
        |case: &mut Case| case.view.identities = vec![Identity::from_jid("559299990001@s.whatsapp.net").unwrap()];
    assert_eq!(Case::with(night).also(in_manaus).says(), "send", "22:30 there");
    let in_lisbon = |case: &mut Case| {
        case.view.contact.vars.insert("contact.timezone".into(), "Europe/Lisbon".into());
    };
    assert_eq!(
        Case::with(night).also(in_manaus).also(in_lisbon).says(),
        format!("defer quiet_hours {}", 5 * 3600 + 30 * 60)
    );
    let never = |case: &mut Case| case.flow.calendar.allowed = std::array::from_fn(|_| Vec::new());
    assert_eq!(Case::with(never).says(), format!("defer quiet_hours {}", 24 * 3600));
}

// D10: two touches after the night become one.
#[test]
fn a_later_touch_that_is_due_stands_for_the_earlier_one() {
    // t4h was put off over the night until t20h fell due, too.
    let piled = Case::with(|case| {
        case.now = at("2026-12-03T08:05:00");
        case.task = Task { scheduled_for: case.now - 5 * HOUR, ..case.view.tasks[1].clone() };
        case.view.tasks[2].scheduled_for = case.now - 10 * MINUTE;
    });
    assert_eq!(piled.says(), "avoid piled_up");
    assert_eq!(piled.clone().also(|case| case.task = case.view.tasks[2].clone()).says(), "send");
    let later_is = |status: TaskStatus| piled.clone().also(|case| case.view.tasks[2].status = status).says();
    for status in [TaskStatus::Failed, TaskStatus::Sending, TaskStatus::Unsure, TaskStatus::Sent] {
        assert_eq!(later_is(status), "avoid piled_up", "{status}");
    }
    for status in [TaskStatus::Cancelled, TaskStatus::Dead, TaskStatus::Held] {
        assert_eq!(later_is(status), "send", "{status}");
    }
    let later_too_late = piled.also(|case| case.view.tasks[2].max_late = Some(MINUTE));
    assert_eq!(later_too_late.says(), "send");
}

#[test]
fn what_perished_is_not_missing() {
    let both = Case::with(|case| {
        case.missing = Some("pix.code".into());
        case.perished = true;
    });
    assert_eq!(both.says(), "avoid perished");
    let missing = Case::with(|case| case.missing = Some("order.total".into()));
    assert_eq!(missing.check(), Verdict::Hold(Reason::MissingVariable, "order.total".into()));
}

// FC-55: a deferral is no promise of an hour. Whatever the zone was thought to be when it was made, the hour is looked up anew
// when the message would leave, so that changed zone data never sends in the night.
#[test]
fn a_deferral_made_under_old_zone_data_is_looked_at_under_the_new() {
    use jiff::tz::{Offset, TimeZone};
    let of_zone = |hours: i8| {
        Case::with(|case| {
            case.flow.timezone = TimeZone::fixed(Offset::constant(hours));
            case.view.identities.clear();
            case.view.tasks.truncate(1);
            // Half an hour after midnight in the zone that is thought to hold, for a touch that may be late until noon.
            case.now = "2026-12-03T03:30:00Z".parse().unwrap();
            case.task.scheduled_for = case.now;
            case.task.max_late = Some(12 * HOUR);
            case.flow.calendar.release_spread = Duration::ZERO;
        })
    };
    let Verdict::Defer(Reason::QuietHours, until) = of_zone(-2).check() else { panic!("it is night") };
    assert_eq!(until, "2026-12-03T10:00:00Z".parse::<Timestamp>().unwrap(), "08:00 under daylight saving");
    // The rules changed meanwhile: there it is seven now.
    let later = of_zone(-3).also(|case| case.now = until);
    let expected = "2026-12-03T11:00:00Z".parse::<Timestamp>().unwrap();
    assert_eq!(later.check(), Verdict::Defer(Reason::QuietHours, expected));
    assert_eq!(of_zone(-3).also(|case| case.now = expected).says(), "send");
}
