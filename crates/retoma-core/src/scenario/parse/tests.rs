use std::time::Duration;

use super::*;

fn find(text: &str) -> Vec<String> {
    parse(text, "s.yaml")
        .map(|_| Vec::new())
        .unwrap_or_else(|findings| findings.iter().map(ToString::to_string).collect())
}

#[test]
fn a_scenario_is_read_with_its_times_and_lines() {
    let text = r#"
flow: vendas
tests:
  - name: pagou antes do segundo toque
    start: "2026-12-02T10:00:00-03:00"
    steps:
      - { at: 0s, event: message.received, text: "quero comprar" }
      - { at: 1m, event: pix.created, order: 0042, offer: curso, vars: { order.total: "R$ 97,00", pix.code: 123 } }
      - { at: 90m, event: operator.pause, until: 4h }
      - { at: 2h, event: payment.approved, order: 0042, occurred_at: 1h }
      - { at: 3h, event: operator.move, to: NOVO }
    expect:
      state: PAGO
      sent: [mandar_link, entregar_acesso]
      sent_count: 2
      sent_at: { entregar_acesso: "2026-12-02T15:00:00Z" }
      sent_between: { mandar_link: ["08:00", "08:20"] }
      avoided: { t4h: paid, pix_pendente.t20h: cancelled }
"#;
    let file = parse(text, "s.yaml").unwrap();
    assert_eq!((file.flow.as_deref(), file.scenarios.len()), (Some("vendas"), 1));
    let scenario = &file.scenarios[0];
    assert_eq!((scenario.name.as_str(), scenario.line), ("pagou antes do segundo toque", 4));
    assert_eq!(scenario.start.to_string(), "2026-12-02T13:00:00Z");
    let times: Vec<_> =
        scenario.steps.iter().map(|step| (step.line, step.at.as_secs(), step.occurred_at.as_secs())).collect();
    assert_eq!(times, [(7, 0, 0), (8, 60, 60), (9, 5_400, 5_400), (10, 7_200, 3_600), (11, 10_800, 10_800)]);
    assert_eq!(scenario.steps[0].text.as_deref(), Some("quero comprar"));
    let pix = &scenario.steps[1];
    assert_eq!(
        (pix.event, pix.order.as_deref(), pix.offer.as_deref()),
        (EventKind::PixCreated, Some("0042"), Some("curso"))
    );
    assert_eq!((pix.vars["order.total"].as_str(), pix.vars["pix.code"].as_str()), ("R$ 97,00", "123"));
    assert_eq!(scenario.steps[2].until, Some(Duration::from_secs(4 * 3600)));
    assert_eq!(scenario.steps[4].to.as_deref(), Some("NOVO"));
    let expect = &scenario.expect;
    assert_eq!((expect.state.as_deref(), expect.sent_count), (Some("PAGO"), Some(2)));
    assert_eq!(expect.sent.as_deref(), Some(&["mandar_link".to_owned(), "entregar_acesso".to_owned()][..]));
    assert_eq!(expect.sent_at["entregar_acesso"].to_string(), "2026-12-02T15:00:00Z");
    assert_eq!(expect.sent_between["mandar_link"], (480, 500));
    assert_eq!((expect.avoided["t4h"], expect.avoided["pix_pendente.t20h"]), (Reason::Paid, Reason::Cancelled));
}

#[test]
fn a_plain_list_is_a_scenario_file_too_and_unsaid_things_are_not_expected() {
    let file = parse("- { name: a, start: \"2026-12-02T10:00:00-03:00\", steps: [], expect: {} }", "s.yaml").unwrap();
    assert_eq!((file.flow, &file.scenarios[0].expect), (None, &Expect::default()));
}

#[test]
fn what_is_wrong_in_a_scenario_is_named() {
    let step = |step: &str| {
        format!("- {{ name: a, start: \"2026-12-02T10:00:00-03:00\", expect: {{}},\n    steps: [{{ {step} }}] }}")
    };
    let expect = |expect: &str| {
        format!("- {{ name: a, start: \"2026-12-02T10:00:00-03:00\", steps: [],\n    expect: {{ {expect} }} }}")
    };
    let table = [
        (
            step("at: 0s, event: payment.aproved"),
            "N1: unknown event type `payment.aproved` (did you mean `payment.approved`?)",
        ),
        (step("at: 0s, event: timeout"), "(leave it out: the clock speaks by itself)"),
        (step("at: 0s, event: clock.timeout"), "unknown event type `clock.timeout`"),
        (step("event: pix.created"), "Y2: the step has no `at`"),
        (step("at: 10, event: pix.created"), "\"10\" is not a duration"),
        (step("at: 0s, event: pix.created, text: oi"), "`text` says nothing in pix.created"),
        (step("at: 0s, event: pix.created, until: 1h"), "`until` says nothing in pix.created"),
        (step("at: 0s, event: message.received, texto: oi"), "unknown key `texto` in a step (did you mean `text`?)"),
        (step("at: 1m, event: pix.created }, { at: 0s, event: pix.created"), "in order of time"),
        (expect("sents: []"), "unknown key `sents` in `expect` (did you mean `sent`?)"),
        (expect("avoided: { t4h: payed }"), "unknown reason `payed` (did you mean `paid`?)"),
        (expect("sent_between: { oi: [\"08:00\"] }"), "takes two local times of day"),
        (expect("sent_between: { oi: [\"08:00\", \"8h\"] }"), "takes two local times of day"),
        (expect("sent_between: { oi: [08:00, 09:00] }"), "N2: 08:00 without quotes"),
        (expect("sent_at: { oi: \"amanhã\" }"), "is not an instant with its offset"),
        (expect("sent_count: muitas"), "must be a whole number"),
        (
            "- { name: a, start: \"2026-12-02T10:00:00\", steps: [], expect: {} }".to_owned(),
            "is not an instant with its offset",
        ),
        ("- { start: \"2026-12-02T10:00:00Z\", steps: [], expect: {} }".to_owned(), "the scenario has no `name`"),
        ("flow: vendas".to_owned(), "the scenario file has no `tests`"),
        ("fluxo: vendas\ntests: []".to_owned(), "unknown key `fluxo`"),
    ];
    for (text, expected) in table {
        let found = find(&text);
        assert!(found.iter().any(|line| line.contains(expected)), "{text}\n{found:#?}");
    }
}

#[test]
fn times_of_day_are_read_to_the_minute() {
    let table = [
        ("08:20", Some(500)),
        ("8:05", Some(485)),
        ("00:00", Some(0)),
        ("24:00", Some(1440)),
        ("24:01", None),
        ("23:60", None),
        ("0820", None),
        ("+8:00", None),
        ("008:00", None),
    ];
    for (text, expected) in table {
        assert_eq!(minute_of_day(text), expected, "{text}");
    }
}
