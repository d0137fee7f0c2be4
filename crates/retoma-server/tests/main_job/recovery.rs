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

/// What the provider says of a message that it sent: the notice, in the shape of the real one.
fn echo(event: &str, id: &str, text: &str, world: &World) -> serde_json::Value {
    let at = retoma_engine::Clock::now(&*world.clock).as_second();
    json!({
        "event": event, "instance": "loja-a",
        "data": {
            "key": {"remoteJid": "554199990001@s.whatsapp.net", "fromMe": true, "id": id},
            "status": "PENDING", "message": {"conversation": text}, "messageType": "conversation", "messageTimestamp": at
        },
        "date_time": "2026-12-02T10:15:00.000Z", "sender": "554133330000@s.whatsapp.net"
    })
}

fn update(id: &str, status: &str) -> serde_json::Value {
    json!({
        "event": "messages.update", "instance": "loja-a",
        "data": {"messageId": "cm1", "keyId": id, "remoteJid": "554199990001@s.whatsapp.net", "fromMe": true, "status": status},
        "date_time": "2026-12-02T10:15:00.000Z", "sender": "554133330000@s.whatsapp.net"
    })
}

fn record(id: &str, jid: &str, from_me: bool, text: &str, at: i64) -> serde_json::Value {
    json!({"key": {"id": id, "fromMe": from_me, "remoteJid": jid}, "message": {"conversation": text},
        "messageType": "conversation", "messageTimestamp": at})
}

/// An unsure reminder, and what it said.
async fn unsure_reminder(world: &World) -> String {
    plan(world, vec![no_answer()]);
    world.hotmart("PIX", PHONE, "HP0000000001").await;
    world.pass(16 * MINUTE).await;
    assert_eq!(status_of(world, "lembrete_pix").await, "unsure");
    world.wire.last_text.lock().unwrap().clone()
}

/// Waits until a task has that status: the reconciler looks in real time, too.
async fn becomes(world: &World, message: &str, status: &str) {
    for _ in 0..10_000 {
        world.engine.wake();
        if status_of(world, message).await == status {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{message} stays {}, not {status}", status_of(world, message).await);
}

/// Waits until a row of evidence says that.
async fn is_on_record(world: &World, what: &str) {
    for _ in 0..10_000 {
        world.engine.wake();
        if evidence(world).await.iter().any(|row| row.contains(what)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("nothing says {what:?}: {:?}", evidence(world).await);
}

async fn evidence(world: &World) -> Vec<String> {
    world.column("SELECT witness || ': ' || said FROM evidence ORDER BY task, n").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_own_echo_settles_an_unsure_send_under_either_event_name() {
    // E4, FC-10, FC-32.
    for event in ["send.message", "messages.upsert"] {
        let world = World::new(START).await;
        let text = unsure_reminder(&world).await;
        world.post("zap", &echo(event, "3EB0OTHER", "outro texto", &world)).await;
        world.post("zap", &echo(event, "3EB0ECHO", &text, &world)).await;
        becomes(&world, "lembrete_pix", "sent").await;
        let id = world.one("SELECT provider_message_id FROM task WHERE message = 'lembrete_pix'").await;
        assert_eq!(id, json!("3EB0ECHO"));
        assert!(evidence(&world).await.iter().any(|row| row.starts_with("echo: ")), "{:?}", evidence(&world).await);
        // Its receipts are its own from now on.
        world.post("zap", &update("3EB0ECHO", "READ")).await;
        let rank =
            world.one("SELECT rank FROM provider_message WHERE message_id = '3EB0ECHO' AND task IS NOT NULL").await;
        assert_eq!(rank, json!(4));
        world.pass(30 * MINUTE).await;
        assert_eq!(world.wire.log.lock().unwrap().len(), 1, "one request in all");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_lies_about_its_filters_settles_nothing_it_should_not() {
    let world = World::new(START).await;
    let text = unsure_reminder(&world).await;
    let now = retoma_engine::Clock::now(&*world.clock).as_second();
    let (ana, bia) = ("554199990001@s.whatsapp.net", "554199990002@s.whatsapp.net");
    *world.wire.records.lock().unwrap() = vec![
        record("OTHER-PERSON", bia, true, &text, now),
        record("THEIRS", ana, false, &text, now),
        record("OLD", ana, true, &text, now - 7200),
        record("OTHER-TEXT", ana, true, "oi", now),
    ];
    world.pass(Duration::from_secs(5)).await;
    is_on_record(&world, "4 messages looked at").await;
    assert_eq!(status_of(&world, "lembrete_pix").await, "unsure");
    world.wire.records.lock().unwrap().push(record("OURS", ana, true, &text, now));
    world.pass(3 * MINUTE).await;
    becomes(&world, "lembrete_pix", "sent").await;
    assert_eq!(world.one("SELECT provider_message_id FROM task WHERE message = 'lembrete_pix'").await, json!("OURS"));
    assert!(world.wire.searches.load(std::sync::atomic::Ordering::SeqCst) <= 5, "a handful of looks, not a flood");
    assert_eq!(world.wire.log.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_nobody_else_explains_is_evidence_at_the_end() {
    let world = World::new(START).await;
    plan(&world, vec![no_answer()]);
    world.says(PHONE, "3A01", "oi").await;
    world.pass(Duration::from_secs(5)).await;
    becomes(&world, "boas_vindas", "unsure").await;
    world.post("zap", &update("3EB0LOST", "DELIVERY_ACK")).await;
    world.pass(5 * MINUTE).await;
    assert_eq!(status_of(&world, "boas_vindas").await, "unsure", "weak evidence waits for better");
    world.pass(10 * MINUTE).await;
    becomes(&world, "boas_vindas", "sent").await;
    assert!(evidence(&world).await.iter().any(|row| row.starts_with("receipt: ")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_could_tell_is_held_with_every_look_on_record_and_a_person_settles_it() {
    // E4, FC-33 (the operator sees why).
    let world = World::new(START).await;
    plan(&world, vec![no_answer()]);
    world.says(PHONE, "3A01", "oi").await;
    world.pass(Duration::from_secs(10)).await;
    is_on_record(&world, "search: ").await;
    world.pass(15 * MINUTE).await;
    becomes(&world, "boas_vindas", "held").await;
    let seen = evidence(&world).await;
    assert!(seen.iter().filter(|row| row.starts_with("search: ")).count() >= 2, "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("policy: no evidence came; a person decides"));
    let id = world.one("SELECT id FROM task WHERE message = 'boas_vindas'").await.as_str().unwrap().to_owned();
    let resolve = retoma_store::Reopen {
        tenant: Default::default(),
        ids: vec![id.as_str().into()],
        how: retoma_store::ReopenHow::ResolveNotSent,
    };
    let now = retoma_engine::Clock::now(&*world.clock);
    retoma_store::Store::reopen_tasks(world.engine.store(), resolve, "ana".into(), now).await.unwrap();
    world.pass(MINUTE).await;
    becomes(&world, "boas_vindas", "sent").await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 2, "sent again because a person said so");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_before_our_own_answer_is_kept_and_applied() {
    // E6, FC-28.
    let world = World::new(START).await;
    world.post("zap", &update("WIRE1", "READ")).await;
    world.post("zap", &update("WIRE1", "DELIVERY_ACK")).await;
    world.says(PHONE, "3A01", "oi").await;
    world.pass(Duration::from_secs(5)).await;
    let row = world
        .one("SELECT rank || ' ' || (task IS NOT NULL) || ' ' || (delivered_at IS NOT NULL) FROM provider_message")
        .await;
    assert_eq!(row, json!("4 1 1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_that_was_left_open_is_found_within_ten_minutes() {
    // D7.
    let world = World::new(START).await;
    world.says(PHONE, "3A01", "oi").await;
    world.pass(Duration::from_secs(5)).await;
    // As a node that died would leave it: started, and no end.
    let db = rusqlite::Connection::open(world.path()).unwrap();
    db.busy_timeout(Duration::from_secs(10)).unwrap();
    db.execute_batch(
        "UPDATE task SET status = 'sending', done = 0; UPDATE attempt SET ended_at = NULL, outcome = NULL, provider_message_id = NULL;",
    )
    .unwrap();
    world.clock.advance(10 * MINUTE);
    becomes(&world, "boas_vindas", "unsure").await;
    assert!(evidence(&world).await.iter().any(|row| row.starts_with("crash: ")));
    assert_eq!(world.wire.log.lock().unwrap().len(), 1, "no blind resend");
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
