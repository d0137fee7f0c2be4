//! The program is killed at random moments under load, while its provider hangs, lies and drops connections (FC-32, FC-33,
//! FC-36). Afterwards everything that was acknowledged is there once and decided, every promise was kept at most once
//! beyond what its policy declares, and nothing is in between for ever.
//!
//! Ten kills, or a hundred with RETOMA_TEST_LONG=1. The seed is printed and can be given as RETOMA_TEST_SEED; it fixes the
//! moments and the load, not what the scheduler makes of them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what it sees, and where it cannot go on")]

#[path = "harness/harness.rs"]
mod harness;

#[path = "crash/evidence.rs"]
mod evidence;
#[path = "crash/load.rs"]
mod load;

use std::path::Path;
use std::time::Duration;

use harness::process::Running;
use harness::random::Random;
use harness::shop::{self, Shop};
use harness::{free_port, http, now};

/// What the fake does wrong: every kind of ambiguity, and failures that surely sent nothing. A third of all sends.
const FAULTS: &str = r#"{
    "chances": {
        "slow": 0.06, "sent400": 0.04, "sent500": 0.02, "hang_sent": 0.03, "hang_unsent": 0.02, "reset_sent": 0.04,
        "reset_unsent": 0.03, "no_id": 0.01, "closed400": 0.02, "closed500": 0.05, "proxy502": 0.02
    },
    "latency_ms": 15, "slow_ms": 300, "webhook_pace_ms": 50, "duplicates": 0.1, "out_of_order": true
}"#;

fn seed() -> u64 {
    std::env::var("RETOMA_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_130)
}

fn rounds() -> u64 {
    if std::env::var_os("RETOMA_TEST_LONG").is_some_and(|value| value == "1") { 100 } else { 10 }
}

fn serve(folder: &Path, port: u16) -> Running {
    Running::start("serve", folder, &["serve"], &[("RETOMA_LOG", "warn")]).ready(port, "/healthz/live")
}

fn fake(folder: &Path, port: u16, serve_port: u16, seed: u64) -> Running {
    let args = [
        "fake",
        "evolution",
        "--port",
        &port.to_string(),
        "--api-key",
        shop::API_KEY,
        "--webhook",
        &format!("http://127.0.0.1:{serve_port}/in/zap"),
        "--secret-header",
        &format!("x-hook-secret:{}", shop::HOOK_SECRET),
        "--faults",
        FAULTS,
        "--log",
        "deliveries.jsonl",
        "--seed",
        &seed.to_string(),
    ];
    Running::start("fake", folder, &args, &[]).ready(port, "/log")
}

#[test]
fn kills_at_random_moments_lose_nothing_and_double_nothing() {
    let mut folder = tempfile::tempdir().unwrap();
    // A failing run leaves its evidence: database, logs, deliveries.
    folder.disable_cleanup(true);
    let (port, fake_port) = (free_port(), free_port());
    let (seed, rounds) = (seed(), rounds());
    println!("crash: seed {seed}, {rounds} rounds, {}", folder.path().display());
    Shop::new(port, fake_port).write(folder.path());
    let _fake = fake(folder.path(), fake_port, port, seed);

    let mut random = Random(seed);
    let mut server = serve(folder.path(), port);
    let load = load::start(port, seed);
    for round in 0..rounds {
        // The moment of the kill is what the round is about: nothing to wait for but chance.
        std::thread::sleep(Duration::from_millis(150 + random.below(1_200)));
        server.kill_9();
        println!("crash: round {round}, killed with {} acknowledged", load.acknowledged());
        server = serve(folder.path(), port);
    }
    // The server stays up now: whatever was not acknowledged gets its answer, as a platform would go on trying.
    let done = load.finish();
    wait_for_the_end(port, &server);
    let status = server.stop(Duration::from_secs(40));
    assert!(status.success(), "serve ended with {status} after SIGTERM\n{}", server.tail());

    let evidence = evidence::read(folder.path());
    let violations = evidence::violations(&evidence, &done);
    println!("crash: {}", evidence.summary(&done));
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
    assert!(evidence.proves_something(), "the run was too tame to prove anything: {}", evidence.summary(&done));
    folder.disable_cleanup(false);
}

/// Waits until every event is decided and every task has come to its end, or waits for a person.
fn wait_for_the_end(port: u16, server: &Running) {
    let begun = now();
    loop {
        let open = open(port);
        if open.as_ref().is_some_and(|open| open.iter().all(|(_, count)| *count == 0)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "in between for ever: {open:?}\n{}", server.tail());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What is still in between.
fn open(port: u16) -> Option<Vec<(&'static str, u64)>> {
    let status = http::get(port, "/status.json", &[]).ok()?.json();
    let open = [
        ("events", "received"),
        ("tasks", "scheduled"),
        ("tasks", "sending"),
        ("tasks", "failed"),
        ("tasks", "unsure"),
    ];
    Some(open.iter().map(|(group, word)| (*word, status[*group][*word].as_u64().unwrap_or(0))).collect())
}
