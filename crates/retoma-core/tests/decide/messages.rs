//! What the contact writes (C2, C7).

use super::*;

/// FC-04, C7: five messages at once are one decision, one answer, one cycle.
#[test]
fn a_burst_is_one_decision_with_one_answer() {
    let mut case = Case::vendas();
    let decision = case.burst(&["oi", "", "", "preço?", "pix?"]);
    assert_eq!((decision.events.len(), decision.transitions.len(), ids(&decision).len()), (5, 1, 1));
    assert!(
        decision.events.iter().all(|outcome| outcome.decided && outcome.result == "NOVO -> ENGAJADO (boas_vindas)")
    );
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
