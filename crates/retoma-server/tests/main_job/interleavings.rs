//! Payments at the worst moment: never a message whose start committed after the payment did (never 3, FC-36).
//!
//! The order of commits is read from the database itself: triggers, put there by the test, number the inserts of events
//! and starts in the order in which the one writer made them.

use std::time::Duration;

use retoma_engine::Clock;
use serde_json::json;

use crate::world::{World, purchase};

const START: &str = "2026-12-02T10:00:00-03:00";
const RUNS: u64 = 200;

fn number_commits(world: &World) {
    let db = rusqlite::Connection::open(world.path()).unwrap();
    db.busy_timeout(Duration::from_secs(10)).unwrap();
    db.execute_batch(
        "CREATE TABLE probe (n INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, contact BLOB);
         CREATE TRIGGER probe_event AFTER INSERT ON event WHEN NEW.kind = 'payment.approved'
           BEGIN INSERT INTO probe (what, contact) VALUES ('paid', NEW.contact); END;
         CREATE TRIGGER probe_start AFTER INSERT ON attempt WHEN NEW.class = 'reminder'
           BEGIN INSERT INTO probe (what, contact) VALUES ('start', NEW.contact); END;",
    )
    .unwrap();
}

/// A small deterministic spread of numbers.
fn spread(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 32)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reminder_starts_after_the_commit_of_the_payment() {
    let world = World::new(START).await;
    number_commits(&world);
    let phone = |run: u64| format!("55419{:08}", 70_000_000 + run);
    let transaction = |run: u64| format!("HP{run:010}");
    for run in 0..RUNS {
        world.hotmart("PIX", &phone(run), &transaction(run)).await;
    }
    world.settle().await;
    // All first touches fall due within a few minutes; payments race them, spread over each step, some with another
    // transaction of the same offer.
    let mut unpaid: Vec<u64> = (0..RUNS).collect();
    for step in 0..18 {
        let now = world.clock.now();
        world.engine.wake();
        let racing: Vec<u64> = unpaid.extract_if(.., |run| spread(*run) % 18 == step).collect();
        let move_clock = async {
            world.pass(Duration::from_secs(60)).await;
        };
        let pay = async {
            for run in racing {
                for _ in 0..spread(run * 7) % 40 {
                    tokio::task::yield_now().await;
                }
                let paid = if run % 5 == 0 { format!("HP9{run:09}") } else { transaction(run) };
                let body = purchase("PURCHASE_APPROVED", &format!("paid-{run}"), &phone(run), &paid, now);
                world.post("loja-hotmart", &body).await;
            }
        };
        tokio::join!(move_clock, pay);
    }
    world.pass(Duration::from_secs(48 * 3600)).await;

    let late = world
        .one(
            "SELECT count(*) FROM probe AS start JOIN probe AS paid ON paid.contact = start.contact
             WHERE start.what = 'start' AND paid.what = 'paid' AND start.n > paid.n",
        )
        .await;
    assert_eq!(late, json!(0), "a reminder started after its payment was committed");
    let paid = world.one("SELECT count(*) FROM probe WHERE what = 'paid'").await;
    assert_eq!(paid, json!(RUNS));
    let delivered = world.one("SELECT count(*) FROM task WHERE message = 'entregar_acesso' AND status = 'sent'").await;
    assert_eq!(delivered, json!(RUNS), "what was paid is delivered once each");
    // The race was real: some reminders won it, and some lost it.
    let started = world.one("SELECT count(*) FROM probe WHERE what = 'start'").await.as_u64().unwrap();
    assert!(started > 0 && started < RUNS, "{started} of {RUNS} first touches left");
}
