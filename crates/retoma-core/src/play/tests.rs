use std::collections::BTreeMap;

use super::*;
use crate::event::EventKind;
use crate::scenario::{Expect, Step};

const START: &str = "2026-12-02T14:00:00-03:00";

fn step(minutes: u64, event: EventKind) -> Step {
    let at = Duration::from_secs(60 * minutes);
    Step {
        line: 1,
        at,
        occurred_at: at,
        event,
        text: None,
        order: None,
        offer: None,
        vars: BTreeMap::new(),
        until: None,
        to: None,
    }
}

fn say(minutes: u64, text: &str) -> Step {
    Step { text: Some(text.to_owned()), ..step(minutes, EventKind::MessageReceived) }
}

fn pix(minutes: u64) -> Step {
    Step { order: Some("HP1".to_owned()), offer: Some("curso".to_owned()), ..step(minutes, EventKind::PixCreated) }
}

fn scenario(start: &str, steps: Vec<Step>) -> Scenario {
    Scenario { name: "teste".to_owned(), line: 7, start: start.parse().unwrap(), steps, expect: Expect::default() }
}

fn sent(played: &Played) -> Vec<&str> {
    played.sent.iter().map(|sent| sent.message.as_str()).collect()
}

/// C1: exactly three messages, each at its time, and then PERDIDO.
#[test]
fn one_unpaid_pix_is_three_messages_at_their_times() {
    let played = play(&Flow::vendas(), &scenario(START, vec![pix(0)]));
    assert_eq!(sent(&played), ["lembrete_pix", "proximo_toque", "proximo_toque"]);
    let start: Timestamp = START.parse().unwrap();
    let minutes: Vec<i64> = played.sent.iter().map(|sent| (sent.at.as_second() - start.as_second()) / 60).collect();
    assert!(
        (15..=17).contains(&minutes[0]) && (240..=250).contains(&minutes[1]) && (1_200..=1_220).contains(&minutes[2])
    );
    assert_eq!(played.conversations.last().map(|cycle| cycle.state.as_str()), Some("PERDIDO"));
    assert!(played.sent[0].text.contains("Pix"), "{}", played.sent[0].text);
    assert_eq!(played.tasks.len(), 3);
    assert!(played.log.iter().any(|line| line.contains("-> lembrete_pix")), "{:#?}", played.log);
}

/// C7: messages within the quiet time are one decision, and the answer stands at the burst's end.
#[test]
fn a_burst_is_answered_once_after_its_silence() {
    let mut second = say(0, "quanto custa?");
    second.at = Duration::from_secs(3);
    let played = play(&Flow::vendas(), &scenario(START, vec![say(0, "oi"), second]));
    let start: Timestamp = START.parse().unwrap();
    assert_eq!(played.sent[0].message, "boas_vindas");
    assert_eq!(played.sent[0].at, start + Duration::from_secs(7));
    assert_eq!(played.transitions[0].event, "pediu_preco");
}

/// FC-36: a payment that arrives before a touch, or at its very instant, is decided first.
#[test]
fn a_payment_up_to_the_instant_of_a_touch_wins() {
    let flow = Flow::vendas();
    let start: Timestamp = START.parse().unwrap();
    let touched_at = play(&flow, &scenario(START, vec![pix(0)])).sent[0].at;
    let due = Duration::try_from(touched_at.duration_since(start)).unwrap();
    let after = Duration::from_secs(10);
    for (at, expected) in [
        (due - Duration::from_millis(50), &["entregar_acesso"][..]),
        (due, &["entregar_acesso"]),
        (due + after, &["lembrete_pix", "entregar_acesso"]),
    ] {
        let paid = Step { at, order: Some("HP1".to_owned()), ..step(0, EventKind::PaymentApproved) };
        let played = play(&flow, &scenario(START, vec![pix(0), paid]));
        assert_eq!(sent(&played), expected, "paid {at:?} after the PIX");
        assert!(played.closed.iter().all(|closed| closed.reason == Reason::Paid));
    }
}

/// What is expected and does not come is told in one line each; what comes is not.
#[test]
fn the_judge_names_what_did_not_come_true() {
    let flow = Flow::vendas();
    let mut case =
        scenario(START, vec![pix(0), Step { order: Some("HP1".to_owned()), ..step(60, EventKind::PaymentApproved) }]);
    case.expect = Expect {
        state: Some("PAGO".to_owned()),
        sent: Some(vec!["lembrete_pix".to_owned(), "entregar_acesso".to_owned()]),
        sent_count: Some(2),
        sent_at: [("entregar_acesso".to_owned(), "2026-12-02T15:00:00-03:00".parse().unwrap())].into(),
        sent_between: [("lembrete_pix".to_owned(), (855, 857))].into(),
        avoided: [("t4h".to_owned(), Reason::Paid), ("pix_pendente.t20h".to_owned(), Reason::Paid)].into(),
    };
    assert_eq!(judge(&flow, &case), []);
    case.expect = Expect {
        state: Some("PERDIDO".to_owned()),
        sent: Some(vec!["lembrete_pix".to_owned()]),
        sent_count: Some(3),
        sent_at: [("entregar_acesso".to_owned(), "2026-12-02T15:30:00-03:00".parse().unwrap())].into(),
        sent_between: [("boas_vindas".to_owned(), (0, 1_439))].into(),
        avoided: [
            ("t4h".to_owned(), Reason::TooLate),
            ("t15".to_owned(), Reason::Paid),
            ("entregar_acesso".to_owned(), Reason::Paid),
        ]
        .into(),
    };
    let failures = judge(&flow, &case);
    let said: Vec<&str> = failures.iter().map(|failure| failure.what.as_str()).collect();
    let expected = [
        "state: expected PERDIDO, got PAGO",
        "sent: expected [lembrete_pix], got [lembrete_pix, entregar_acesso]",
        "sent_count: expected 3, got 2: [lembrete_pix, entregar_acesso]",
        "sent_at: entregar_acesso expected at 2026-12-02T18:30:00Z, sent at 2026-12-02T18:00:00Z (15:00:00 local)",
        "sent_between: boas_vindas expected between 00:00 and 23:59, it was not sent",
        "avoided: entregar_acesso expected paid, no task of that name was stopped",
        "avoided: t15 expected paid, no task of that name was stopped",
        "avoided: t4h expected too_late, stopped for paid",
    ];
    assert_eq!(said, expected);
    assert!(failures.iter().all(|failure| (failure.scenario.as_str(), failure.line) == ("teste", 7)));
}

#[test]
fn hours_of_a_day_may_span_midnight() {
    let at = |hour, minute| Time::new(hour, minute, 30, 0).unwrap();
    for (time, from, to, expected) in [
        (at(8, 0), 480, 500, true),
        (at(8, 20), 480, 500, true),
        (at(8, 21), 480, 500, false),
        (at(23, 30), 1_380, 480, true),
        (at(2, 0), 1_380, 480, true),
        (at(12, 0), 1_380, 480, false),
    ] {
        assert_eq!(is_between(time, from, to), expected, "{time} {from} {to}");
    }
}

/// A world that never comes to rest would never end a test either.
#[test]
fn a_held_message_is_told_and_ends_nothing() {
    let mut flow = Flow::vendas();
    flow.messages.get_mut("boas_vindas").unwrap().text = "Seu link: {{ checkout.url }}".to_owned();
    let played = play(&flow, &scenario(START, vec![say(0, "oi")]));
    assert_eq!(played.closed[0].reason, Reason::MissingVariable);
    assert!(!sent(&played).contains(&"boas_vindas"));
}
