//! One destination's trouble is its own (E3, E5, FC-57).

use std::sync::atomic::Ordering;
use std::time::Duration;

use retoma_core::event::{EventData, EventKind};
use retoma_core::identity::{Identity, Phone};
use retoma_core::ids::{BucketNo, ContactId, EventId, Tenant};
use retoma_core::keys::digest16;
use retoma_core::task::{MessageClass, Reference, Task, TaskKind, TaskStatus};
use retoma_engine::Clock;
use retoma_providers::outbound::WireEnd;
use retoma_store::{ChannelState, Entry, Intake, NewEvent, Store, Subject};
use serde_json::json;

use crate::world::World;

const START: &str = "2026-12-02T10:00:00-03:00";
const MINUTE: Duration = Duration::from_secs(60);

/// Promises a message to a new contact, now.
pub(crate) async fn promise(world: &World, n: u64, channel: &str, class: MessageClass) {
    let (id, contact) = (EventId(world.engine.new_id()), ContactId(world.engine.new_id()));
    let now = world.clock.now();
    let phone = Identity::phone(&Phone::reported(&format!("55419{:08}", 80_000_000 + n)).unwrap(), true);
    let event = NewEvent {
        id,
        tenant: Tenant::default(),
        source: "api".into(),
        kind: EventKind::Unknown,
        key: format!("contact/{n}"),
        delivery_key: digest16("delivery", &[id.as_bytes()]),
        business_key: None,
        digest: digest16("body", &[id.as_bytes()]),
        entry: Entry::Received,
        subject: Subject::Person { candidate: contact, identities: vec![phone] },
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData::default(),
        receipt: None,
    };
    world.engine.submit(Intake { request: None, events: vec![event] }).await.unwrap();
    let task = Task {
        id: format!("api:{channel}:{n}").into(),
        tenant: Tenant::default(),
        bucket: BucketNo::of_contact(&Tenant::default(), contact),
        contact,
        conversation: None,
        flow: "vendas".into(),
        kind: TaskKind::Scheduled,
        cadence: None,
        touch: None,
        touch_no: None,
        message: "api".into(),
        text: Some(format!("mensagem {n}")),
        class,
        channel: channel.into(),
        reference: Reference::default(),
        scheduled_for: now,
        next_attempt_at: now,
        handed: true,
        max_late: None,
        on_ambiguous: None,
        cancel_on: Vec::new(),
        status: TaskStatus::Scheduled,
        reason: None,
        avoided: false,
        attempts: 0,
        cancel_reason: None,
        reconcile_until: None,
        resent: false,
        respelled: false,
        local_time: None,
        created_at: now,
        updated_at: now,
    };
    world.engine.store().schedule_tasks(vec![task], "teste".into()).await.unwrap();
}

async fn count(world: &World, condition: &str) -> u64 {
    world.one(&format!("SELECT count(*) FROM task WHERE {condition}")).await.as_u64().unwrap()
}

/// Waits, in real time, until so many tasks are as described.
pub(crate) async fn until(world: &World, wanted: u64, condition: &str) {
    for _ in 0..20_000 {
        world.engine.wake();
        if count(world, condition).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} and not {wanted} tasks with {condition}", count(world, condition).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tarpit_with_a_thousand_waiting_messages_holds_nobody_else_up() {
    let world = World::new(START).await;
    for n in 0..1_200 {
        promise(&world, n, "tarpit", MessageClass::Reply).await;
    }
    until(&world, 2, "channel = 'tarpit' AND status = 'sending'").await;
    for n in 2_000..2_100 {
        promise(&world, n, "crm", MessageClass::Reply).await;
    }
    until(&world, 100, "channel = 'crm' AND status = 'sent'").await;
    assert_eq!(world.wire.crm.load(Ordering::SeqCst), 100);
    assert_eq!(count(&world, "channel = 'tarpit' AND status = 'sending'").await, 2, "no more than its seats");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_nothing_gets_through_messages_wait_instead_of_failing_and_all_leave_afterwards() {
    let world = World::new(START).await;
    *world.wire.ends.lock().unwrap() =
        (0..1000).map(|_| WireEnd::NotWritten { what: "connect: refused".into() }).collect();
    for n in 0..40 {
        promise(&world, n, "zap", MessageClass::Reply).await;
    }
    until(&world, 0, "channel = 'zap' AND status = 'scheduled' AND reason IS NULL").await;
    let tried = world.wire.log.lock().unwrap().len();
    world.pass(3 * MINUTE).await;
    assert!(world.wire.log.lock().unwrap().len() <= tried + 6, "probes, not a storm");
    assert_eq!(count(&world, "status = 'dead'").await, 0);
    assert!(count(&world, "reason = 'channel_stopped'").await > 0, "who waits says why");
    // The way is open again; a probe finds out, and the others follow.
    world.wire.ends.lock().unwrap().clear();
    for _ in 0..200 {
        world.clock.advance(Duration::from_secs(20));
        if count(&world, "status = 'sent'").await == 40 {
            break;
        }
        world.engine.wake();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(count(&world, "status = 'sent'").await, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_person_leaves_before_a_backlog_of_reminders() {
    let world = World::new(START).await;
    pause(&world, Some("manutenção")).await;
    for n in 0..700 {
        promise(&world, n, "zap", MessageClass::Reminder).await;
    }
    world.clock.advance(Duration::from_secs(1));
    promise(&world, 9_000, "zap", MessageClass::Reply).await;
    pause(&world, None).await;
    world.clock.advance(MINUTE);
    until(&world, 1, "id = 'api:zap:9000' AND status = 'sent'").await;
    let position = world.wire.log.lock().unwrap().iter().position(|left| left.to.ends_with("80009000"));
    assert!(position.is_some_and(|position| position < 70), "{position:?}");
}

async fn pause(world: &World, why: Option<&str>) {
    let state = ChannelState {
        tenant: Tenant::default(),
        channel: "zap".into(),
        stopped: why.map(str::to_owned),
        since: world.clock.now(),
        by_person: why.is_some(),
    };
    world.engine.store().set_channel_state(state, "ana".into()).await.unwrap();
    world.engine.wake();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_paused_waits_for_that_person_and_then_leaves() {
    let world = World::new(START).await;
    pause(&world, Some("manutenção")).await;
    promise(&world, 1, "zap", MessageClass::Reply).await;
    world.pass(20 * MINUTE).await;
    assert_eq!(world.wire.log.lock().unwrap().len(), 0, "no probe against a person's word");
    assert_eq!(world.one("SELECT reason FROM task").await, json!("channel_stopped"));
    pause(&world, None).await;
    world.pass(2 * MINUTE).await;
    assert_eq!(count(&world, "status = 'sent' AND attempts = 1").await, 1);
}
