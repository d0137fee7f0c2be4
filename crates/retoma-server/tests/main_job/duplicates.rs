//! Copies and bursts that arrive at the same instant (FC-02, FC-04, A5, C6), and facts in any order (FC-08, FC-37).

use std::time::Duration;

use retoma_engine::Clock;
use serde_json::json;
use tokio::task::JoinSet;

use crate::world::{World, message, purchase};

const START: &str = "2026-12-02T10:00:00-03:00";
const PHONE: &str = "5541999990001";
const BURST: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_copies_in_the_same_millisecond_are_one_event() {
    let world = World::new(START).await;
    for round in 0..20 {
        let body = message(PHONE, &format!("3AFC02{round:04}"), "oi", world.clock.now());
        let posts = (0..50).map(|_| world.post("zap", &body));
        futures_all(posts).await;
    }
    assert_eq!(world.one("SELECT count(*) FROM event").await, json!(20));
    assert_eq!(world.one("SELECT sum(duplicates) FROM event").await, json!(20 * 49));
    world.pass(BURST).await;
    assert_eq!(world.sent_to(PHONE).await, ["boas_vindas"]);
}

/// Awaits all of them at once.
async fn futures_all<F: Future>(all: impl Iterator<Item = F>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_new_contacts_write_five_times_at_once_and_each_is_answered_once() {
    let world = std::sync::Arc::new(World::new(START).await);
    let phone = |n: u32| format!("55419{:08}", 80_000_000 + n);
    let mut posts = JoinSet::new();
    for contact in 0..100 {
        for (n, text) in ["oi", "tudo bem?", "preço?", "pix?", "alô"].into_iter().enumerate() {
            let (world, phone) = (std::sync::Arc::clone(&world), phone(contact));
            posts.spawn(async move { world.says(&phone, &format!("3AFC04{contact:03}{n}"), text).await });
        }
    }
    while let Some(done) = posts.join_next().await {
        done.unwrap();
    }
    world.pass(BURST).await;
    assert_eq!(world.one("SELECT count(*) FROM contact").await, json!(100));
    assert_eq!(world.one("SELECT count(*) FROM conversation").await, json!(100));
    for contact in 0..100 {
        assert_eq!(world.sent_to(&phone(contact)).await, ["boas_vindas"], "contact {contact}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_fact_under_two_event_ids_is_one_transition_and_one_welcome() {
    // FC-08: approved twice under different ids, in parallel, and `complete` days later.
    let world = World::new(START).await;
    let now = world.clock.now();
    let approved = |id: &str| purchase("PURCHASE_APPROVED", id, PHONE, "HP0000000801", now);
    let (first, second) = (approved("evt-1"), approved("evt-2"));
    tokio::join!(world.post("loja-hotmart", &first), world.post("loja-hotmart", &second));
    world.pass(200 * HOUR).await;
    world.post("loja-hotmart", &purchase("PURCHASE_COMPLETE", "evt-3", PHONE, "HP0000000801", world.clock.now())).await;
    world.pass(HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["entregar_acesso"]);
    assert_eq!(world.state_of(PHONE).await, "PAGO");
    assert_eq!(world.one("SELECT count(*) FROM event WHERE source = 'loja-hotmart'").await, json!(3));
    assert_eq!(
        world.one("SELECT count(*) FROM transition_log WHERE to_state = 'PAGO' AND reason IS NULL").await,
        json!(1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_every_order_of_the_same_facts_a_paid_order_ends_paid_and_unbothered() {
    // FC-37: each event with its own time, received in every order.
    let facts = ["PURCHASE_APPROVED", "PIX", "CART"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let world = World::new(START).await;
        for index in order {
            world.hotmart(facts[index], PHONE, "HP0000000037").await;
            world.settle().await;
        }
        world.pass(72 * HOUR).await;
        assert_eq!(world.state_of(PHONE).await, "PAGO", "{order:?}");
        let sent = world.sent_to(PHONE).await;
        let reminders: Vec<_> = sent.iter().filter(|name| *name != "entregar_acesso").collect();
        // Only what left before the payment came may have left: the cart's first message goes out at once.
        let before_paid = order.iter().position(|index| *index == 0).unwrap();
        let cart_first = order[..before_paid].contains(&2) && !order[..before_paid].contains(&1);
        assert!(reminders.len() <= usize::from(cart_first || order[..before_paid].contains(&2)), "{order:?}: {sent:?}");
        assert_eq!(sent.iter().filter(|name| *name == "entregar_acesso").count(), 1, "{order:?}: {sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_stored_but_not_decided_stops_the_reminder() {
    // FC-36, first variant: the payment comes 50 ms before the touch falls due; nothing has decided it yet.
    let world = World::new(START).await;
    world.hotmart("PIX", PHONE, "HP0000000036").await;
    world.settle().await;
    let wake = retoma_store::Store::next_wake(world.engine.store()).await.unwrap();
    let due = wake.deadline_at.unwrap();
    let before: Duration = due.duration_since(world.clock.now()).try_into().unwrap();
    world.pass(before - Duration::from_millis(50)).await;
    world.hotmart("PURCHASE_APPROVED", PHONE, "HP0000000036").await;
    world.pass(HOUR).await;
    assert_eq!(world.sent_to(PHONE).await, ["entregar_acesso"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_status_posts_and_messages_of_our_own_wake_nobody() {
    // FC-10, FC-21.
    let world = World::new(START).await;
    for (n, jid) in
        ["120363000000000021@g.us", "status@broadcast", "1600000021@broadcast", "120363000000000099@newsletter"]
            .into_iter()
            .enumerate()
    {
        let mut body = message(PHONE, &format!("3AFC21{n}"), "quero comprar", world.clock.now());
        body["data"]["key"]["remoteJid"] = json!(jid);
        body["data"]["key"]["participant"] = json!("5541999990001@s.whatsapp.net");
        world.post("zap", &body).await;
    }
    let mut echo = message(PHONE, "3AFC10", "Oi! Como posso ajudar?", world.clock.now());
    echo["data"]["key"]["fromMe"] = json!(true);
    world.post("zap", &echo).await;
    echo["event"] = json!("send.message");
    world.post("zap", &echo).await;
    world.pass(HOUR).await;
    assert!(world.wire.log.lock().unwrap().is_empty());
    assert_eq!(world.one("SELECT count(*) FROM conversation").await, json!(0));
    // None of our tasks sent it, so somebody did by hand: it is decided, and keeps the bot away.
    let by_hand = world.one("SELECT result FROM event WHERE kind = 'message.human' AND status = 'decided'").await;
    assert!(by_hand.as_str().is_some_and(|result| result.starts_with("a person answers")), "{by_hand}");
    let unexplained = world
        .one("SELECT count(*) FROM event WHERE kind <> 'message.human' AND (status <> 'ignored' OR reason IS NULL)")
        .await;
    assert_eq!(unexplained, json!(0), "every drop has a row and a reason");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_instance_key_inside_a_body_is_kept_nowhere_but_in_the_raw_bytes() {
    // FC-80: Evolution's `apikey`.
    let world = World::new(START).await;
    world.says(PHONE, "3AFC80", "oi").await;
    world.pass(BURST).await;
    let tables = world.column("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").await;
    for table in tables.iter().filter(|table| *table != "raw_request") {
        let rows =
            retoma_store::Store::query_sql(world.engine.store(), format!("SELECT * FROM {table}")).await.unwrap();
        let text = serde_json::to_string(&rows.rows).unwrap();
        assert!(!text.contains("TOKEN-DA-INSTANCIA"), "{table}");
    }
}
