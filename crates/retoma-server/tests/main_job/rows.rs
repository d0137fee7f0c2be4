//! Every row of C1, walked through real webhooks; and C1's "one clock, never two reminders".

use std::time::Duration;

use crate::world::World;

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const HOUR: Duration = Duration::from_secs(3600);
const BURST: Duration = Duration::from_secs(5);

/// What happens to the contact, in the words of the flow.
async fn happens(world: &World, what: &str, n: usize) {
    match what {
        "pix_gerado" => world.hotmart("PIX", PHONE, &format!("HP{n:010}")).await,
        "pagamento_recusado" => world.hotmart("REFUSED", PHONE, &format!("HP{n:010}")).await,
        "checkout_abandonado" => world.hotmart("CART", PHONE, &format!("CART{n}")).await,
        "pagamento_aprovado" => world.hotmart("PURCHASE_APPROVED", PHONE, &format!("HP{n:010}")).await,
        "timeout" => return until_the_clock_moves_it(world).await,
        "regua_esgotada" => return world.pass(72 * HOUR).await,
        text => world.says(PHONE, &format!("3A{n:08}"), text).await,
    }
    world.pass(BURST).await;
}

/// Lets time pass until the next deadline has fallen due and was decided.
async fn until_the_clock_moves_it(world: &World) {
    let wake = retoma_store::Store::next_wake(world.engine.store()).await.unwrap();
    let deadline = wake.deadline_at.expect("a state that waits for its timeout has a deadline");
    let span: Duration = deadline.duration_since(retoma_engine::Clock::now(&*world.clock)).try_into().unwrap();
    world.pass(span).await;
}

/// Walks the steps; the last one is judged: state after, and the message that left because of it (or `-`).
async fn walk(steps: &[&str], state: &str, message: &str) {
    let world = World::new(START).await;
    let mut before = 0;
    for (n, step) in steps.iter().enumerate() {
        before = world.sent_to(PHONE).await.len();
        happens(&world, step, n).await;
    }
    let sent = world.sent_to(PHONE).await;
    let new: Vec<&str> = sent[before..].iter().map(String::as_str).collect();
    let expected: &[&str] = if message == "-" { &[] } else { &[message] };
    assert_eq!((world.state_of(PHONE).await.as_str(), new.as_slice()), (state, expected), "after {steps:?}");
}

/// Ways into each state, in words.
const ENGAJADO: &[&str] = &["oi"];
const NEGOCIANDO: &[&str] = &["oi", "quanto custa?"];
const CHECKOUT: &[&str] = &["oi", "quanto custa?", "quero comprar"];
const AGUARDANDO: &[&str] = &["pix_gerado"];
const RECUPERANDO: &[&str] = &["pagamento_recusado"];
const PERDIDO: &[&str] = &["checkout_abandonado", "regua_esgotada"];
const PAGO: &[&str] = &["pagamento_aprovado"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_the_shipped_flow_is_walked_through_real_webhooks() {
    // C1: way in, event, state after, message.
    let table: &[(&[&str], &str, &str, &str)] = &[
        (&[], "oi", "ENGAJADO", "boas_vindas"),
        (&[], "quanto custa?", "ENGAJADO", "boas_vindas"),
        (ENGAJADO, "e como funciona?", "ENGAJADO", "responder_duvida"),
        (ENGAJADO, "quanto custa?", "NEGOCIANDO", "mandar_oferta"),
        (ENGAJADO, "timeout", "RECUPERANDO", "retomar_conversa"),
        (NEGOCIANDO, "achei complicado", "NEGOCIANDO", "tratar_objecao"),
        (NEGOCIANDO, "quero comprar", "CHECKOUT_ENVIADO", "mandar_link"),
        (NEGOCIANDO, "timeout", "RECUPERANDO", "retomar_oferta"),
        (CHECKOUT, "nao abriu aqui", "CHECKOUT_ENVIADO", "ajudar_no_checkout"),
        (CHECKOUT, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (CHECKOUT, "pagamento_recusado", "RECUPERANDO", "-"),
        (CHECKOUT, "checkout_abandonado", "RECUPERANDO", "-"),
        (AGUARDANDO, "cade o codigo", "AGUARDANDO_PIX", "reenviar_pix"),
        (AGUARDANDO, "timeout", "RECUPERANDO", "lembrete_pix"),
        (RECUPERANDO, "tive um problema", "NEGOCIANDO", "retomar_de_onde_parou"),
        (RECUPERANDO, "timeout", "RECUPERANDO", "proximo_toque"),
        (PERDIDO, "oi, voltei", "ENGAJADO", "boas_vindas_de_volta"),
        (PAGO, "como acesso?", "PAGO", "pos_venda"),
        // Rows of ours.
        (&[], "pix_gerado", "AGUARDANDO_PIX", "-"),
        (ENGAJADO, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (NEGOCIANDO, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (AGUARDANDO, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (RECUPERANDO, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (PERDIDO, "pix_gerado", "AGUARDANDO_PIX", "-"),
        (&[], "pagamento_recusado", "RECUPERANDO", "ajuda_cartao"),
        (AGUARDANDO, "pagamento_recusado", "RECUPERANDO", "ajuda_cartao"),
        (PERDIDO, "pagamento_recusado", "RECUPERANDO", "ajuda_cartao"),
        (&[], "checkout_abandonado", "RECUPERANDO", "retomar_checkout"),
        (PERDIDO, "checkout_abandonado", "RECUPERANDO", "retomar_checkout"),
    ];
    for (way, event, state, message) in table {
        let steps: Vec<&str> = way.iter().copied().chain([*event]).collect();
        walk(&steps, state, message).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payment_and_opt_out_hold_in_any_state() {
    for way in [&[][..], ENGAJADO, NEGOCIANDO, CHECKOUT, AGUARDANDO, RECUPERANDO, PERDIDO] {
        let paid: Vec<&str> = way.iter().copied().chain(["pagamento_aprovado"]).collect();
        walk(&paid, "PAGO", "entregar_acesso").await;
        let stop: Vec<&str> = way.iter().copied().chain(["SAIR"]).collect();
        walk(&stop, "OPT_OUT", "confirmar_saida").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_unpaid_pix_and_no_reply_is_exactly_three_messages_then_lost() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["lembrete_pix", "proximo_toque", "proximo_toque"]);
    assert_eq!(world.state_of(PHONE).await, "PERDIDO");
    // D9: each touch carries its own key, and the provider's message id is kept with it.
    let keys = world.column("SELECT provider_message_id FROM task ORDER BY scheduled_for").await;
    assert_eq!(keys, ["WIRE1", "WIRE2", "WIRE3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_abandoned_cart_is_exactly_three_messages_too() {
    let world = World::new(START).await;
    world.hotmart("CART", PHONE, "CART1").await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["retomar_checkout", "proximo_toque", "proximo_toque"]);
    assert_eq!(world.state_of(PHONE).await, "PERDIDO");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_payment_the_touches_are_closed_with_their_reason() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(HOUR).await;
    world.hotmart("PURCHASE_APPROVED", PHONE, "HP0000000001").await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["lembrete_pix", "entregar_acesso"]);
    assert_eq!(world.closed_of(PHONE).await, ["t4h paid", "t20h paid"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_webhook_adds_nothing() {
    // FC-01, FC-08: the same delivery ten times, and the same fact under another id.
    let world = World::new(START).await;
    for _ in 0..10 {
        world.hotmart("PIX", PHONE, "HP0000000001").await;
    }
    let now = retoma_engine::Clock::now(&*world.clock);
    world.post("loja-hotmart", &crate::world::purchase("PIX", "another-id", PHONE, "HP0000000001", now)).await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.sent_to(PHONE).await.len(), 3);
    let count = world.one("SELECT duplicates FROM event WHERE kind = 'pix.created' AND duplicates > 0").await;
    assert_eq!(count, serde_json::json!(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_one_new_contact_is_one_contact_one_conversation_one_answer() {
    // FC-04, C6, C7.
    let world = World::new(START).await;
    let texts = ["oi", "tudo bem?", "preço?", "pix?", "alô"];
    let posts = texts.iter().enumerate().map(|(n, text)| {
        let world = &world;
        async move { world.says(PHONE, &format!("3AFC04{n}"), text).await }
    });
    for post in posts {
        post.await;
    }
    world.pass(BURST).await;
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas"]);
    assert_eq!(world.one("SELECT count(*) FROM contact").await, serde_json::json!(1));
    assert_eq!(world.one("SELECT count(*) FROM conversation").await, serde_json::json!(1));
    assert_eq!(world.one("SELECT count(*) FROM event WHERE status = 'decided'").await, serde_json::json!(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_spellings_of_a_brazilian_mobile_are_one_person() {
    // FC-16: the cart in the long form, the message in the short one; the reported address is written to.
    let world = World::new(START).await;
    world.hotmart("CART", "5531988160016", "CART1").await;
    world.pass(BURST).await;
    world.says("553188160016", "3AFC16", "tenho uma dúvida").await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.one("SELECT count(*) FROM contact").await, serde_json::json!(1));
    let last = world.wire.log.lock().unwrap().get(1).cloned().unwrap();
    assert_eq!(last.to, "553188160016");
    assert_eq!(world.closed_of("553188160016").await[0], "t4h superseded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_written_to_at_three_in_the_morning() {
    // D5: a PIX at 22:40 is reminded at 22:55; its 4 h touch waits for the morning.
    let world = World::new("2026-12-02T22:40:00-03:00").await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(72 * HOUR).await;
    let zone = jiff::tz::TimeZone::get("America/Sao_Paulo").unwrap();
    let hours: Vec<i8> =
        world.wire.log.lock().unwrap().iter().map(|left| left.at.to_zoned_datetime(zone.clone()).hour()).collect();
    assert!(hours.iter().all(|hour| (8..23).contains(hour)), "{hours:?}");
    assert_eq!(hours.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_opt_out_nothing_leaves_but_one_confirmation_and_what_was_paid() {
    // C12, FC-58.
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(60 * BURST).await;
    world.says(PHONE, "3AFC58a", " sair. ").await;
    world.pass(BURST).await;
    world.says(PHONE, "3AFC58b", "SAIR").await;
    world.says(PHONE, "3AFC58c", "oi?").await;
    world.pass(24 * HOUR).await;
    world.hotmart("PURCHASE_APPROVED", PHONE, "HP0000000001").await;
    world.pass(72 * HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["confirmar_saida", "entregar_acesso"]);
    world.says(PHONE, "3AFC58d", "VOLTAR").await;
    world.pass(BURST).await;
    assert_eq!(world.sent_to(PHONE).await.last().map(String::as_str), Some("boas_vindas"));
    assert_eq!(world.state_of(PHONE).await, "ENGAJADO");
}
