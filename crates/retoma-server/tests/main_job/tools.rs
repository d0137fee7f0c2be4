//! The shop's own tool: what it is told (`call`, C13), and what it is asked before a reminder leaves (the guard of D4); and
//! the time after an outage (D5, FC-57).

use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use retoma_core::flow::Flow;
use retoma_engine::Clock;
use retoma_providers::outbound::WireEnd;
use serde_json::json;

use crate::world::{World, vendas_with};

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const MINUTE: Duration = Duration::from_secs(60);

fn says(status: u16, body: &str) -> Option<WireEnd> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Some(WireEnd::Answer { status, headers: HeaderMap::new(), body })
}

async fn guarded() -> World {
    let guard =
        "grace: 24h\n    revalidate: { payment: { ask: loja, max_age: 60s, timeout: 3s, on_error: retry_in 5m } }";
    World::with_flow(START, vendas_with(&[("grace: 24h", guard)])).await
}

/// D4: what is paid elsewhere is not reminded of, and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_says_paid_stops_the_touch() {
    let world = guarded().await;
    *world.wire.says.lock().unwrap() = says(200, r#"{"paid":true}"#);
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(30 * MINUTE).await;
    assert_eq!((world.sent_to(PHONE).await, world.closed_of(PHONE).await), (vec![], vec!["t15 guard_paid".to_owned()]));
    let asked = world.wire.asked.lock().unwrap().clone();
    assert_eq!((asked.len(), &asked[0]["type"]), (1, &json!("guard.paid")));
    assert_eq!(asked[0]["data"]["vars"]["order.transaction"], "HP0000000001");
}

/// D4: one that says no lets it pass, seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_says_unpaid_lets_the_touch_pass() {
    let world = guarded().await;
    *world.wire.says.lock().unwrap() = says(200, r#"{"paid":false}"#);
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.sent_to(PHONE).await, ["lembrete_pix"]);
    assert_eq!(world.wire.asked.lock().unwrap().len(), 1, "an answer holds for a while");
}

/// D4: "A guard that cannot answer never means send": it waits, asks again, and is too late at last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_does_not_answer_never_means_send() {
    for answer in [None, says(500, ""), says(200, "sim")] {
        let world = guarded().await;
        *world.wire.says.lock().unwrap() = answer;
        world.hotmart("PIX", PHONE, "HP0000000001").await;
        world.pass(25 * MINUTE).await;
        assert_eq!(world.sent_to(PHONE).await, [""; 0]);
        assert_eq!(world.column("SELECT reason FROM task WHERE touch = 't15'").await, ["guard_unknown"]);
        world.pass(40 * MINUTE).await;
        assert_eq!(
            (world.sent_to(PHONE).await, world.closed_of(PHONE).await),
            (vec![], vec!["t15 too_late".to_owned()])
        );
        assert!(world.wire.asked.lock().unwrap().len() > 3, "it is asked again");
    }
}

/// C13: a call carries the conversation to the tool, once, and nothing of it reaches the contact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_tells_the_tool_and_not_the_contact() {
    let row = "event: msg_recebida, to: ENGAJADO, do: [send: boas_vindas]";
    let calls = "event: msg_recebida, to: ENGAJADO, do: [send: boas_vindas, call: loja]";
    let world = World::with_flow(START, vendas_with(&[(row, calls)])).await;
    *world.wire.says.lock().unwrap() = says(204, "");
    world.says(PHONE, "3A01", "oi, tudo bem?").await;
    world.pass(MINUTE).await;
    let asked = world.wire.asked.lock().unwrap().clone();
    assert_eq!((asked.len(), &asked[0]["data"]["text"]), (1, &json!("oi, tudo bem?")));
    assert_eq!(asked[0]["data"]["vars"]["conversation.state"], "ENGAJADO");
    assert_eq!((asked[0]["type"].as_str(), asked[0]["data"]["to"].as_str()), (Some("call:loja"), Some(PHONE)));
    assert_eq!(world.wire.log.lock().unwrap().len(), 1, "the welcome alone reached the contact");
    assert_eq!(world.one("SELECT status FROM task WHERE kind = 'call'").await, json!("sent"));
}

/// C13: a call to a channel that writes to people is held; it never becomes a message to the contact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_a_chat_channel_is_held() {
    let row = "event: msg_recebida, to: ENGAJADO, do: [send: boas_vindas]";
    let calls = "event: msg_recebida, to: ENGAJADO, do: [send: boas_vindas, notify: zap]";
    let world = World::with_flow(START, vendas_with(&[(row, calls)])).await;
    world.says(PHONE, "3A01", "oi").await;
    world.pass(MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 1);
    assert_eq!(world.one("SELECT status FROM task WHERE kind = 'notify'").await, json!("held"));
}

/// FC-39: money that went back before the approval was heard of is not followed by a delivery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_comes_after_its_refund_delivers_nothing() {
    let world = World::new(START).await;
    world.hotmart("PURCHASE_REFUNDED", PHONE, "HP0000000039").await;
    world.pass(MINUTE).await;
    world.hotmart("PURCHASE_APPROVED", PHONE, "HP0000000039").await;
    world.pass(MINUTE).await;
    assert_eq!((world.state_of(PHONE).await.as_str(), world.sent_to(PHONE).await.len()), ("PAGO", 0));
    assert_eq!(world.closed_of(PHONE).await, ["entregar_acesso refunded"]);
}

/// D5, FC-57: touches that an outage held back do not all leave in the second in which it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_outage_held_back_is_spread_out() {
    let world = World::new(START).await;
    let phone = |n: u32| format!("55419{:08}", 80_000_000 + n);
    for n in 0..40 {
        world.hotmart("PIX", &phone(n), &format!("HP{n:010}")).await;
    }
    world.settle().await;
    // Nothing looks at the clock for half an hour.
    let back = world.clock.now() + 30 * MINUTE;
    world.jump(30 * MINUTE).await;
    world.pass(30 * MINUTE).await;
    let left = world.wire.log.lock().unwrap().clone();
    assert_eq!(left.len(), 40, "late, but within what is allowed");
    let at_once = left.iter().filter(|one| one.at < back + Duration::from_secs(10)).count();
    let minutes: std::collections::BTreeSet<_> = left.iter().map(|one| one.at.as_second() / 60).collect();
    assert!(at_once < 10 && minutes.len() > 3, "{at_once} at once, over {} minutes", minutes.len());
}

/// A flow whose second touch comes when the code of the PIX (48 h) is dead.
fn with_code(text: &str) -> Flow {
    let flow = format!(
        "flow: vendas\nschema: 1\nversion: 1\ntimezone: America/Sao_Paulo\n\
         events: {{ msg_recebida: message.received, pix_gerado: pix.created, pagamento_aprovado: payment.approved }}\n\
         vars: {{ pix.code: {{ perishable: pix.expires_at, refresh: loja }} }}\n\
         classifier: {{ rules: [{{ emit: pediu_parar, opt_out: true, priority: 100, match: whole, any: [sair] }}] }}\n\
         states: {{ NOVO: {{ initial: true }}, AGUARDANDO: {{}}, FIM: {{ final: true }}, PAGO: {{ final: true }}, FORA: {{ final: true }} }}\n\
         globals:\n  - {{ event: pagamento_aprovado, to: PAGO }}\n  - {{ event: pediu_parar, to: FORA, do: [send: saida] }}\n\
         transitions:\n  - {{ from: NOVO, event: pix_gerado, to: AGUARDANDO, do: [start_cadence: pix] }}\n  \
         - {{ from: AGUARDANDO, event: timeout, to: AGUARDANDO, do: [send: codigo] }}\n  \
         - {{ from: AGUARDANDO, event: regua_esgotada, to: FIM }}\n\
         cadences:\n  pix:\n    runs_in: [AGUARDANDO]\n    cancel_on: [payment.approved]\n    grace: 24h\n    when_piled_up: keep_latest\n    \
         touches:\n      - {{ id: t15, at: 15m, max_late: 40m, send: codigo }}\n      - {{ id: t50, at: 50h, max_late: 6h, send: codigo }}\n\
         messages:\n  codigo: {{ class: reminder, refresh: [pix.code], text: \"{text}\" }}\n  saida: {{ class: optout_ack, text: \"ok\" }}\n"
    );
    let (flow, findings) = retoma_core::flow::load(&flow, "vendas.yaml");
    flow.unwrap_or_else(|| panic!("{findings:?}"))
}

const NEW_CODE: &str = r#"{"values":{"pix.code":"PIX-NOVO","pix.expires_at":"2026-12-05T12:00:00-03:00"}}"#;

/// D10: a touch that would carry a dead code renews it through the shop's own tool, and the new one is on record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_code_is_renewed_before_the_touch_leaves() {
    let world = World::with_flow(START, with_code("pague: {{ pix.code }}")).await;
    *world.wire.says.lock().unwrap() = says(200, NEW_CODE);
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.wire.asked.lock().unwrap().len(), 0, "the first touch's code is alive");
    assert!(world.wire.last_text.lock().unwrap().contains("00020101021226EXEMPLO"));
    world.pass(50 * 60 * MINUTE).await;
    assert_eq!(*world.wire.last_text.lock().unwrap(), "pague: PIX-NOVO");
    let asked = world.wire.asked.lock().unwrap().clone();
    assert_eq!((asked.len(), asked[0]["type"].as_str()), (1, Some("values.renew")));
    assert_eq!(asked[0]["data"]["vars"]["renew"], "pix.code");
    assert_eq!(asked[0]["data"]["vars"]["order.transaction"], "HP0000000001");
    assert_eq!(world.one("SELECT status FROM task WHERE touch = 't50'").await, json!("sent"));
    let logged = "SELECT count(*) FROM transition_log WHERE event = 'values.renewed'";
    assert_eq!(world.one(logged).await, json!(1));
    assert_eq!(world.wire.log.lock().unwrap().len(), 2);
}

/// D10: where nobody can renew it, the touch leaves without the code if it can, else it is avoided; it never carries a dead one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_that_nobody_renews_is_not_sent() {
    let table = [
        ("pague: {{ pix.code }}", says(500, ""), "cancelled perished", 3),
        (
            "pague: {{ pix.code }}",
            says(200, r#"{"values":{"pix.code":"X","pix.expires_at":"2026-12-04T10:00:00-03:00"}}"#),
            "cancelled perished",
            3,
        ),
        ("{% if pix.code %}pague: {{ pix.code }}{% else %}quer outro codigo?{% endif %}", None, "sent ", 3),
    ];
    for (text, answer, expected, asked) in table {
        let world = World::with_flow(START, with_code(text)).await;
        *world.wire.says.lock().unwrap() = answer;
        world.hotmart("PIX", PHONE, "HP0000000001").await;
        world.pass(52 * 60 * MINUTE).await;
        let end = world.one("SELECT status || ' ' || coalesce(reason, '') FROM task WHERE touch = 't50'").await;
        assert_eq!(end, json!(expected), "{text}");
        assert_eq!(world.wire.asked.lock().unwrap().len(), asked, "{text}");
        let last = world.wire.last_text.lock().unwrap().clone();
        assert!(expected.starts_with("cancelled") || last == "quer outro codigo?", "{last}");
    }
}

/// FC-55: ten o'clock stays ten o'clock. As if the promise had been made by zone data that knew of daylight saving in December.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_promised_for_a_local_time_is_planned_anew_at_the_start() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.settle().await;
    let wish = |key: &str, at: &str| json!({"key": key, "contact": {"phone": PHONE}, "text": "oi", "at": at, "channel": "zap"});
    let local = world.v1_post("/v1/tasks", &wish("natal", "2026-12-15T10:00[America/Sao_Paulo]")).await;
    assert_eq!(local["scheduled_for"], "2026-12-15T13:00:00Z");
    assert_eq!(local["local_time"], "2026-12-15T10:00:00[America/Sao_Paulo]");
    world.v1_post("/v1/tasks", &wish("instante", "2026-12-15T13:00:00Z")).await;
    let db = rusqlite::Connection::open(world.path()).unwrap();
    db.busy_timeout(Duration::from_secs(10)).unwrap();
    db.execute("UPDATE task SET scheduled_for = scheduled_for - 3600000, next_attempt_at = next_attempt_at - 3600000 WHERE id LIKE 'api:%'", []).unwrap();
    let world = world.restarted().await;
    let times = world.column("SELECT strftime('%H:%M', scheduled_for / 1000, 'unixepoch') || strftime(' %H:%M', next_attempt_at / 1000, 'unixepoch') FROM task WHERE id LIKE 'api:%' ORDER BY id").await;
    assert_eq!(times, ["12:00 12:00", "13:00 13:00"], "an instant stays an instant");
    assert!(
        world.get("/healthz/pipeline").await["zone_data"].as_str().is_some_and(|version| version.starts_with("20"))
    );
}
