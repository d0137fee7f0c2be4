//! What the tests on the real binary share: processes with their output in files, a small HTTP client that says in which
//! phase a request failed, and waiting on a condition. Included by `#[path]`; not a test by itself.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod http;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod shop;

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Looks at a condition until it holds. Panics with `what` when `within` has passed: the only way in which a wait ends badly.
#[track_caller]
pub(crate) fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let begun = now();
    while !holds() {
        assert!(begun.elapsed() < within, "still waiting after {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "tests on the real binary run in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall clock, which is the program's, too: both run on one machine.
#[expect(clippy::disallowed_methods, reason = "tests on the real binary run in real time")]
pub(crate) fn wall_clock() -> Timestamp {
    Timestamp::now()
}

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
