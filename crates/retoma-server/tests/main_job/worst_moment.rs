//! No start after its reason is gone (never 3): the payment, the opt-out or the takeover is committed between the check and
//! the start, a thousand times, each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use retoma_core::event::{EventData, EventKind, Operator, OrderRef};
use retoma_core::ids::{ContactId, EventId, Tenant};
use retoma_core::keys::digest16;
use retoma_engine::Clock;
use retoma_store::{Entry, Intake, NewEvent, Start, Store, Subject};
use serde_json::json;

use crate::world::{World, at};

const START: &str = "2026-12-02T10:00:00-03:00";
const RUNS: usize = 1_000;

fn phone(run: usize) -> String {
    format!("55419{:08}", 70_000_000 + run)
}

/// What takes the reason away: a payment, an opt-out, a person who takes over, by command or by answering from the phone.
fn taken_away(id: EventId, contact: ContactId, order: &OrderRef, world_now: jiff::Timestamp) -> NewEvent {
    let operator = |until: Option<&str>| Operator {
        actor: "teste".into(),
        until: until.map(at),
        conversation: None,
        to: None,
        reason: None,
        with: None,
    };
    let (kind, data) = match id.0.as_u128() % 4 {
        0 => {
            let data = EventData { order: Some(order.clone()), offer: Some("9000001".into()), ..EventData::default() };
            (EventKind::PaymentApproved, data)
        }
        1 => (EventKind::OperatorOptOut, EventData { operator: Some(operator(None)), ..EventData::default() }),
        2 => {
            let data = EventData {
                text: Some("oi, aqui é a Ana da loja, vi seu pedido".into()),
                message_id: Some(format!("TYPED{}", id.0)),
                channel: Some("zap".into()),
                flow: Some("vendas".into()),
                ..EventData::default()
            };
            (EventKind::MessageHuman, data)
        }
        _ => {
            let until = operator(Some("2026-12-02T23:00:00-03:00"));
            (EventKind::OperatorPause, EventData { operator: Some(until), ..EventData::default() })
        }
    };
    NewEvent {
        id,
        tenant: Tenant::default(),
        source: "teste".into(),
        kind,
        key: format!("worst/{}", id.0),
        delivery_key: digest16("delivery", &[id.as_bytes()]),
        business_key: None,
        digest: digest16("body", &[id.as_bytes()]),
        entry: Entry::Received,
        subject: Subject::Contact(contact),
        occurred_at: world_now,
        received_at: world_now,
        urgent: true,
        data,
        receipt: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_starts_after_its_reason_is_gone_in_a_thousand_runs() {
    let world = World::new(START).await;
    for run in 0..RUNS {
        world.hotmart("PIX", &phone(run), &format!("HP{run:010}")).await;
    }
    world.settle().await;
    let rows = "SELECT DISTINCT lower(hex(contact)), order_platform, order_account, order_txn FROM task";
    let rows = world.engine.store().query_sql(format!("{rows} LIMIT 5000")).await.unwrap().rows;
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let orders: HashMap<ContactId, OrderRef> = rows
        .iter()
        .map(|row| {
            let contact = ContactId(text(&row[0]).parse().unwrap());
            (contact, OrderRef { platform: text(&row[1]), account: text(&row[2]), transaction: text(&row[3]) })
        })
        .collect();
    assert_eq!(orders.len(), RUNS);
    let struck: Arc<Mutex<HashMap<ContactId, u128>>> = Arc::default();
    let (hit, clock) = (Arc::clone(&struck), Arc::clone(&world.clock));
    world.engine.store().at_the_worst_moment(Box::new(move |starts: &[Start]| {
        let mut hit = hit.lock().unwrap();
        let mut events = Vec::new();
        for start in starts.iter().filter(|start| start.block_on_paid) {
            let n = hit.len() as u128;
            if hit.contains_key(&start.contact) {
                continue;
            }
            let event =
                taken_away(EventId(uuid::Uuid::from_u128(n + 1)), start.contact, &orders[&start.contact], clock.now());
            hit.insert(start.contact, (n + 1) % 4);
            events.push(Intake { request: None, events: vec![event] });
        }
        events
    }));
    world.pass(Duration::from_secs(40 * 60)).await;

    let struck = struck.lock().unwrap().clone();
    assert_eq!(struck.len(), RUNS, "every first touch was about to start");
    let started = world.one("SELECT count(*) FROM attempt WHERE class = 'reminder'").await;
    assert_eq!(started, json!(0), "no start was committed after its reason was gone");
    let written: Vec<String> = world.wire.log.lock().unwrap().iter().map(|left| left.to.clone()).collect();
    let reminded = world.one("SELECT count(*) FROM task WHERE message = 'lembrete_pix' AND status = 'sent'").await;
    assert_eq!(reminded, json!(0));
    let paid = struck.values().filter(|kind| **kind == 0).count();
    assert_eq!(written.len(), paid, "what was paid is delivered; nobody else hears a word");
    let closed = world
        .column("SELECT DISTINCT reason FROM task WHERE message = 'lembrete_pix' AND status = 'cancelled' ORDER BY 1")
        .await;
    assert_eq!(closed, ["human_active", "opted_out", "paid"]);
}
