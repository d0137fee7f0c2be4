//! Ambiguous sends, wrong credentials, dead letters: what the deliverer does with what a provider answers (E2-E4, E7).

use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use retoma_providers::outbound::WireEnd;
use serde_json::json;

use crate::world::World;

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const MINUTE: Duration = Duration::from_secs(60);

fn answer(status: u16, body: serde_json::Value) -> WireEnd {
    WireEnd::Answer { status, headers: HeaderMap::new(), body: Bytes::from(body.to_string()) }
}

fn no_answer() -> WireEnd {
    WireEnd::NoAnswer { what: "timeout".into() }
}

fn plan(world: &World, ends: Vec<WireEnd>) {
    *world.wire.ends.lock().unwrap() = ends;
}

async fn status_of(world: &World, message: &str) -> String {
    world.one(&format!("SELECT status FROM task WHERE message = '{message}'")).await.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ambiguous_reminder_is_unsure_then_taken_as_sent_and_never_sent_twice() {
    // FC-32 (a), (b), (c), (d).
    let lies = [
        no_answer(),
        answer(500, json!({"status": 500, "response": {"message": "Timed Out"}})),
        answer(
            400,
            json!({"status": 400, "response": {"message": ["PrismaClientKnownRequestError: message.create()"]}}),
        ),
        WireEnd::NoAnswer { what: "the connection closed before the answer".into() },
    ];
    for lie in lies {
        let world = World::new(START).await;
        plan(&world, vec![lie]);
        world.hotmart("PIX", PHONE, "HP0000000001").await;
        world.pass(20 * MINUTE).await;
        assert_eq!(status_of(&world, "lembrete_pix").await, "unsure");
        world.pass(15 * MINUTE).await;
        assert_eq!(status_of(&world, "lembrete_pix").await, "sent");
        assert_eq!(world.wire.log.lock().unwrap().len(), 1, "one request, whatever the answer");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ambiguous_code_that_the_contact_asked_for_is_sent_once_more_and_a_reply_is_held() {
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.settle().await;
    plan(&world, vec![no_answer(), no_answer()]);
    world.says(PHONE, "3A01", "cade o codigo").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 2, "resend_once means once");
    assert_eq!(status_of(&world, "reenviar_pix").await, "held");

    let world = World::new(START).await;
    plan(&world, vec![no_answer()]);
    world.says(PHONE, "3A01", "oi").await;
    world.pass(30 * MINUTE).await;
    assert_eq!(status_of(&world, "boas_vindas").await, "held");
    assert_eq!(world.wire.log.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_surely_not_sent_is_tried_again_with_backoff_until_it_is_dead() {
    // E2 `recovery`, E7.
    let world = World::new(START).await;
    plan(&world, (0..6).map(|_| WireEnd::NotWritten { what: "connect: refused".into() }).collect());
    world.says(PHONE, "3A01", "oi").await;
    world.pass(3 * 60 * MINUTE).await;
    assert_eq!(status_of(&world, "boas_vindas").await, "dead");
    let letter = world.one("SELECT attempts FROM dead_letter").await;
    assert_eq!(letter, json!(6));
    let gaps: Vec<i64> = {
        let log = world.wire.log.lock().unwrap();
        log.windows(2).map(|pair| pair[1].at.as_second() - pair[0].at.as_second()).collect()
    };
    for (gap, base) in gaps.iter().zip([60, 120, 240, 480, 960]) {
        assert!((base * 8 / 10 - 1..=base * 12 / 10 + 2).contains(gap), "{gaps:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_stop_the_channel_and_burn_no_attempts() {
    let world = World::new(START).await;
    plan(&world, vec![answer(401, json!({"status": 401, "response": {"message": "Unauthorized"}}))]);
    for n in 0..5 {
        world.says(&format!("554199999000{n}"), &format!("3A{n}"), "oi").await;
        world.pass(Duration::from_secs(5)).await;
    }
    let stopped = world.one("SELECT count(*) FROM channel_state WHERE stopped IS NOT NULL").await;
    assert_eq!(stopped, json!(1));
    assert_eq!(world.wire.log.lock().unwrap().len(), 1, "the others wait");
    // After a rest one task tries the channel; it works again, and the others follow.
    world.pass(10 * MINUTE).await;
    let sent = world.one("SELECT count(*) FROM task WHERE status = 'sent'").await;
    assert_eq!(sent, json!(5));
    assert_eq!(world.one("SELECT count(*) FROM channel_state WHERE stopped IS NOT NULL").await, json!(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_withholds_automatic_messages_and_survives_what_the_contact_writes() {
    // C8, by the store's own event (the command and the API submit the same one).
    let world = World::new(START).await;
    world.says(PHONE, "3A01", "oi").await;
    world.pass(Duration::from_secs(5)).await;
    pause(&world, "2026-12-02T12:00:00-03:00").await;
    world.says(PHONE, "3A02", "quanto custa?").await;
    world.pass(MINUTE).await;
    assert_eq!(world.state_of(PHONE).await, "NEGOCIANDO", "the state moves as usual");
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas"]);
    assert_eq!(world.closed_of(PHONE).await, ["mandar_oferta human_active"]);
}

/// Submits `operator.pause` for the only contact there is.
async fn pause(world: &World, until: &str) {
    use retoma_core::event::{EventData, EventKind, Operator};
    use retoma_core::ids::{ContactId, EventId, Tenant};
    use retoma_core::keys::digest16;
    use retoma_store::{Entry, Intake, NewEvent, Subject};
    let hex = world.one("SELECT lower(hex(id)) FROM contact").await;
    let contact = ContactId(hex.as_str().unwrap().parse().unwrap());
    let id = EventId(world.engine.new_id());
    let now = retoma_engine::Clock::now(&*world.clock);
    let operator = Operator {
        actor: "teste".into(),
        until: Some(until.parse().unwrap()),
        conversation: None,
        to: None,
        with: None,
        reason: None,
    };
    let event = NewEvent {
        id,
        tenant: Tenant::default(),
        source: "operator".into(),
        kind: EventKind::OperatorPause,
        key: "operator/pause".into(),
        delivery_key: digest16("delivery", &[id.as_bytes()]),
        business_key: None,
        digest: digest16("body", &[id.as_bytes()]),
        entry: Entry::Received,
        subject: Subject::Contact(contact),
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData { operator: Some(operator), ..EventData::default() },
        receipt: None,
    };
    world.engine.submit(Intake { request: None, events: vec![event] }).await.unwrap();
    world.settle().await;
}
