//! Scenarios of the shipped flow, played on the virtual clock: those it brings along, and those of `scenarios/vendas.yaml`.

use retoma_core::flow::{Flow, RECUPERACAO};
use retoma_core::play::{judge, play};
use retoma_core::scenario::{self, Scenario};

fn must_come_true(flow: &Flow, scenarios: &[Scenario]) {
    for scenario in scenarios {
        let failures: Vec<String> = judge(flow, scenario).into_iter().map(|failure| failure.what).collect();
        assert!(failures.is_empty(), "{}: {failures:#?}\n{:#?}", scenario.name, play(flow, scenario).log);
    }
}

/// C15, and the "dozen".
#[test]
fn the_shipped_flow_does_what_its_own_scenarios_say() {
    let flow = Flow::vendas();
    assert!(flow.tests.len() >= 12, "{}", flow.tests.len());
    must_come_true(&flow, &flow.tests);
}

/// C1, C4, C8, C9, C12, D2, D5, FC-36, FC-37.
#[test]
fn and_what_happens_to_sellers_besides() {
    let file = scenario::parse(include_str!("scenarios/vendas.yaml"), "vendas.yaml").unwrap();
    assert_eq!((file.flow.as_deref(), file.scenarios.len()), (Some("vendas"), 18));
    must_come_true(&Flow::vendas(), &file.scenarios);
}

/// The template without a bot (C4, C12, C15): cadences start by their type, whoever answers talks to a person.
#[test]
fn the_flow_without_a_bot_does_what_its_own_scenarios_say() {
    let flow = Flow::parse(RECUPERACAO, "recuperacao.yaml").unwrap();
    assert!(!flow.has_table() && flow.tests.len() >= 8, "{}", flow.tests.len());
    must_come_true(&flow, &flow.tests);
}

/// Replaying a scenario gives the same story to the millisecond (C5: jitter is drawn once).
#[test]
fn a_scenario_played_twice_is_the_same_story() {
    let flow = Flow::vendas();
    for scenario in &flow.tests {
        assert_eq!(play(&flow, scenario).log, play(&flow, scenario).log, "{}", scenario.name);
    }
}
