//! What becomes of messages after the provider took them: receipts in any order and at once, echoes that come late, messages of
//! which nothing is heard (E4, E6, FC-26, FC-28, FC-78).

use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use retoma_core::task::MessageClass;
use retoma_providers::outbound::WireEnd;
use serde_json::{Value, json};

use crate::fairness::{promise, until};
use crate::world::World;

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn update(id: &str, status: &str) -> Value {
    json!({
        "event": "messages.update", "instance": "loja-a",
        "data": {"messageId": format!("row-{id}-{status}"), "keyId": id, "remoteJid": "554199990001@s.whatsapp.net",
            "fromMe": true, "status": status},
        "date_time": "2026-12-02T10:15:00.000Z", "sender": "554133330000@s.whatsapp.net"
    })
}

fn own_message(event: &str, id: &str, text: &str, at: i64) -> Value {
    json!({
        "event": event, "instance": "loja-a",
        "data": {
            "key": {"remoteJid": "554199990001@s.whatsapp.net", "fromMe": true, "id": id},
            "status": "PENDING", "message": {"conversation": text}, "messageType": "conversation", "messageTimestamp": at
        },
        "date_time": "2026-12-02T10:15:00.000Z", "sender": "554133330000@s.whatsapp.net"
    })
}

/// Every order of four receipts, of which two say the same.
fn orders() -> Vec<Vec<&'static str>> {
    fn rest(left: &[&'static str]) -> Vec<Vec<&'static str>> {
        if left.is_empty() {
            return vec![Vec::new()];
        }
        let with_first = |n: usize| {
            let mut others = left.to_vec();
            let first = others.remove(n);
            rest(&others).into_iter().map(move |tail| [vec![first], tail].concat())
        };
        (0..left.len()).flat_map(with_first).collect()
    }
    rest(&["READ", "DELIVERY_ACK", "SERVER_ACK", "DELIVERY_ACK"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_in_every_order_and_all_at_once_end_in_read() {
    // FC-26.
    let world = World::new(START).await;
    let orders = orders();
    assert_eq!(orders.len(), 24);
    for (n, order) in orders.iter().enumerate() {
        for status in order {
            world.post("zap", &update(&format!("SEQ{n}"), status)).await;
        }
    }
    for n in 0..24 {
        let [a, b, c, d] =
            ["SERVER_ACK", "READ", "DELIVERY_ACK", "DELIVERY_ACK"].map(|status| update(&format!("PAR{n}"), status));
        tokio::join!(world.post("zap", &a), world.post("zap", &b), world.post("zap", &c), world.post("zap", &d));
    }
    let ends = world
        .column("SELECT DISTINCT rank || ' ' || (sent_at IS NOT NULL) || ' ' || (delivered_at IS NOT NULL) || ' ' || (read_at IS NOT NULL) FROM provider_message")
        .await;
    assert_eq!(ends, ["4 1 1 1"], "read, and every time is kept");
    assert_eq!(world.one("SELECT count(*) FROM provider_message").await, json!(48));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_that_comes_after_the_policy_settles_the_send_and_is_no_person() {
    // E4, FC-10: an hour later, under either event name.
    for event in ["messages.upsert", "send.message"] {
        let world = World::new(START).await;
        *world.wire.ends.lock().unwrap() = vec![WireEnd::NoAnswer { what: "timeout".into() }];
        world.says(PHONE, "3A01", "oi").await;
        world.pass(30 * MINUTE).await;
        assert_eq!(status(&world).await, "held unconfirmed");
        let text = world.wire.last_text.lock().unwrap().clone();
        let started = world.one("SELECT started_at / 1000 FROM attempt").await.as_i64().unwrap();
        world.post("zap", &own_message(event, "3EB0LATE", &text, started + 2)).await;
        world.settle().await;
        assert_eq!(status(&world).await, "sent ");
        let paused = world.one("SELECT coalesce(paused_until, 0) FROM contact").await;
        assert_eq!(paused, json!(0), "{event}: nobody took over");
        world.post("zap", &update("3EB0LATE", "READ")).await;
        let rank = world.one("SELECT rank FROM provider_message WHERE task IS NOT NULL").await;
        assert_eq!(rank, json!(4), "its receipts are its own from now on");
        assert_eq!(world.wire.log.lock().unwrap().len(), 1);
    }
}

async fn status(world: &World) -> String {
    let row = world.one("SELECT status || ' ' || coalesce(reason, '') FROM task WHERE message = 'boas_vindas'").await;
    row.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_exists_under_its_other_spelling_is_reached() {
    // C11: once, and only where there is another spelling.
    let world = World::new(START).await;
    let nobody = |number: &str| {
        let said = json!({"status": 400, "response": {"message": [{"jid": format!("{number}@s.whatsapp.net"), "exists": false, "number": number}]}});
        WireEnd::Answer { status: 400, headers: HeaderMap::new(), body: Bytes::from(said.to_string()) }
    };
    *world.wire.ends.lock().unwrap() = vec![nobody(PHONE)];
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(20 * MINUTE).await;
    let to: Vec<String> = world.wire.log.lock().unwrap().iter().map(|left| left.to.clone()).collect();
    assert_eq!(to, ["5541999990001", "554199990001"]);
    assert_eq!(world.one("SELECT status || attempts FROM task WHERE message = 'lembrete_pix'").await, json!("sent1"));

    let world = World::new(START).await;
    *world.wire.ends.lock().unwrap() = vec![nobody(PHONE), nobody("554199990001")];
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 2, "each spelling once");
    assert_eq!(world.one("SELECT status FROM task WHERE message = 'lembrete_pix'").await, json!("dead"));

    let world = World::new(START).await;
    *world.wire.ends.lock().unwrap() = vec![nobody("554133330001")];
    world.hotmart("PIX", "554133330001", "HP0000000001").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 1, "a landline has one spelling");
    assert_eq!(world.one("SELECT status FROM task WHERE message = 'lembrete_pix'").await, json!("dead"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_accepted_and_never_heard_of_are_told_and_stop_more_of_them() {
    // FC-78: a hundred are accepted, ten of them never heard of.
    let world = World::new(START).await;
    for n in 0..100 {
        promise(&world, n, "zap", MessageClass::Reply).await;
    }
    until(&world, 100, "status = 'sent'").await;
    let ids = world.column("SELECT provider_message_id FROM task ORDER BY id").await;
    for id in &ids[10..] {
        world.post("zap", &update(id, "DELIVERY_ACK")).await;
    }
    let silent = format!("SELECT lower(hex(contact)) FROM task WHERE provider_message_id = '{}'", ids[0]);
    let silent = as_uuid(world.one(&silent).await.as_str().unwrap());
    world.pass(25 * HOUR).await;
    assert_eq!(no_receipt(&world).await, 10);
    let channel = channel(&world, 100).await;
    assert_eq!(channel, json!({"looked_at": 100, "no_receipt": 10, "receipts_come": true, "vanish": false}));
    // The same contact again, at decent intervals.
    for n in 0..2 {
        say_to(&world, &silent, n).await;
        world.pass(25 * HOUR).await;
    }
    say_to(&world, &silent, 2).await;
    world.pass(MINUTE).await;
    let ends = "SELECT status || ' ' || coalesce(reason, '') FROM task WHERE id LIKE 'api:more:%' ORDER BY id";
    assert_eq!(world.column(ends).await, ["sent ", "sent ", "cancelled no_receipt"]);
    assert_eq!(no_receipt(&world).await, 12);
    // A late receipt repairs it, and whoever receives is reached.
    let last = world.column("SELECT provider_message_id FROM task WHERE id = 'api:more:1'").await;
    world.post("zap", &update(&last[0], "READ")).await;
    assert_eq!(no_receipt(&world).await, 11);
    say_to(&world, &silent, 3).await;
    world.pass(MINUTE).await;
    assert_eq!(world.column("SELECT status FROM task WHERE id = 'api:more:3'").await, ["sent"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_swallows_what_it_accepts_is_told_and_slowed_down() {
    // FC-78: most of what left was never heard of again.
    let world = World::new(START).await;
    for n in 0..20 {
        promise(&world, n, "zap", MessageClass::Reply).await;
    }
    until(&world, 20, "status = 'sent'").await;
    for id in world.column("SELECT provider_message_id FROM task ORDER BY id LIMIT 10").await {
        world.post("zap", &update(&id, "DELIVERY_ACK")).await;
    }
    let says = |pipeline: &Value, wrong: &str| pipeline["wrong"].as_array().unwrap().contains(&json!(wrong));
    assert!(!says(&world.get("/healthz/pipeline").await, "messages_vanish"));
    world.pass(25 * HOUR).await;
    let arrivals = channel(&world, 20).await;
    assert_eq!(arrivals, json!({"looked_at": 20, "no_receipt": 10, "receipts_come": true, "vanish": true}));
    let pipeline = pipeline_says(&world, "messages_vanish").await;
    assert_eq!(pipeline["channels_that_swallow_messages"], json!(["zap"]));
    let zap = &world.v1_get("/v1/channels").await["items"][0];
    assert!(zap["per_second"].as_f64().is_some_and(|per_s| per_s < 20.0), "{zap}");
}

/// The pipeline's figures, once they name that: they are up to a second old.
async fn pipeline_says(world: &World, wrong: &str) -> Value {
    for _ in 0..10_000 {
        let pipeline = world.get("/healthz/pipeline").await;
        if pipeline["wrong"].as_array().unwrap().contains(&json!(wrong)) {
            return pipeline;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the pipeline does not say {wrong}");
}

/// `0190..` as the API writes ids.
fn as_uuid(hex: &str) -> String {
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

async fn no_receipt(world: &World) -> usize {
    let listed = world.v1_get("/v1/tasks?receipt=no_receipt&limit=50").await;
    let items = listed["items"].as_array().unwrap();
    assert!(items.iter().all(|task| task["receipt"] == "no_receipt"));
    items.len()
}

/// What is told of the channel's arrivals, once it was looked at.
async fn channel(world: &World, looked_at: u64) -> Value {
    for _ in 0..10_000 {
        world.engine.wake();
        let arrivals = world.v1_get("/v1/channels").await["items"][0]["arrivals"].clone();
        if arrivals["looked_at"] == looked_at {
            return arrivals;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the channel is not looked at");
}

async fn say_to(world: &World, contact: &str, n: u32) {
    let wish = json!({"key": format!("more:{n}"), "contact": {"id": contact}, "channel": "zap", "text": "oi", "flow": "vendas"});
    world.v1_post("/v1/tasks", &wish).await;
}
