//! Who writes, and who is who: takeover, echoes, robots, linked and forgotten contacts (C8, C10, C11, H2), end to end.

use std::time::Duration;

use retoma_engine::Clock;
use serde_json::json;

use crate::world::{World, message};

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const OTHER: &str = "5541999990002";
const MINUTE: Duration = Duration::from_secs(60);

/// A message from the shop's own number to a contact.
async fn own(world: &World, phone: &str, id: &str, text: &str) {
    let mut body = message(phone, id, text, world.clock.now());
    body["data"]["key"]["fromMe"] = json!(true);
    world.post("zap", &body).await;
}

/// FC-13: the touch that falls due while a person is in the chat is avoided, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_answers_from_the_phone_stops_the_touch() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(5 * MINUTE).await;
    own(&world, PHONE, "OWN1", "Oi, aqui é a vendedora").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.sent_to(PHONE).await, [""; 0]);
    assert_eq!(world.closed_of(PHONE).await, ["t15 human_active"]);
    // With each word it lasts longer; it ends at a stated time, and what falls due then leaves.
    own(&world, PHONE, "OWN2", "ficou alguma dúvida?").await;
    world.pass(26 * 60 * MINUTE).await;
    assert_eq!(world.closed_of(PHONE).await, ["t15 human_active", "t4h human_active"]);
    assert_eq!(world.sent_to(PHONE).await, ["proximo_toque"]);
}

/// FC-10: a closed loop that echoes every send, before and after the answer. One message each, and no takeover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn echoes_of_our_own_messages_change_nothing() {
    let world = World::new(START).await;
    world.says(PHONE, "3A01", "oi").await;
    world.pass(MINUTE).await;
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas"]);
    own(&world, PHONE, "WIRE1", "Oi! Que bom ter você por aqui").await;
    world.pass(MINUTE).await;
    assert_eq!(world.one("SELECT count(*) FROM contact WHERE paused_until IS NOT NULL").await, json!(0));
    assert_eq!(world.column("SELECT reason FROM event WHERE kind = 'message.human'").await, ["own_echo"]);
    world.says(PHONE, "3A02", "quanto custa?").await;
    world.pass(MINUTE).await;
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas", "mandar_oferta"]);
}

/// C10, FC-12: whoever answers each of our messages at once and with the same words is answered once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_robots_end_on_the_second_turn() {
    let world = World::new(START).await;
    world.says(PHONE, "3A00", "Olá! Nosso horário é das 8h às 18h.").await;
    let mut seen = 0;
    for second in 0..300 {
        world.pass(Duration::from_secs(1)).await;
        let left = world.wire.log.lock().unwrap().len();
        if left > seen {
            seen = left;
            world.says(PHONE, &format!("3B{second:04}"), "Olá! Nosso horário é das 8h às 18h.").await;
        }
    }
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas"]);
    assert_eq!(world.one("SELECT count(*) FROM transition_log WHERE reason = 'bot_loop'").await, json!(1));
}

/// C11: two contacts turn out to be one person. What both had promised for one sale is one cadence, and what one of them
/// paid ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linked_contacts_are_one_person_from_then_on() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(MINUTE).await;
    world.hotmart("PIX", OTHER, "HP0000000002").await;
    world.settle().await;
    let one = world.contact_of(PHONE).await;
    let answer = world.v1_post(&format!("/v1/contacts/{one}/link"), &json!({"with": {"phone": OTHER}})).await;
    assert_eq!(answer["id"], json!(one.min(world.contact_of(PHONE).await)), "the older contact stays");
    world.settle().await;
    assert_eq!(world.contact_of(OTHER).await, world.contact_of(PHONE).await);
    assert_eq!(world.one("SELECT count(*) FROM task WHERE status = 'scheduled'").await, json!(3), "one clock");
    world.hotmart("PURCHASE_APPROVED", PHONE, "HP0000000001").await;
    world.pass(24 * 60 * MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 1, "what was paid is delivered once, and nothing reminds");
    // Either phone is the same chat.
    world.says(OTHER, "3A01", "obrigada!").await;
    world.pass(MINUTE).await;
    assert_eq!(world.state_of(OTHER).await, "PAGO");
}

/// H2, C12: what a forgotten person said is nowhere, and their wish for silence holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_forgotten_is_nowhere_and_stays_silent() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.says(PHONE, "3A01", "palavra-canario").await;
    world.pass(MINUTE).await;
    world.says(PHONE, "3A02", "SAIR").await;
    world.pass(MINUTE).await;
    let id = world.contact_of(PHONE).await;
    world.v1_post(&format!("/v1/contacts/{id}/erase"), &json!({})).await;
    world.settle().await;
    for canary in ["palavra-canario", PHONE, "Ana Teste"] {
        assert_eq!(world.places_of(canary).await, [""; 0], "{canary}");
    }
    world.says(PHONE, "3A03", "oi").await;
    world.hotmart("PIX", PHONE, "HP0000000003").await;
    world.pass(24 * 60 * MINUTE).await;
    let left = world.wire.log.lock().unwrap().len();
    assert_eq!(left, 2, "the welcome and the confirmation, both before");
}
