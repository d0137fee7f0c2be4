//! Where time comes from. The engine never asks the system itself, so that a demo may run faster and a simulator may own
//! time.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// A wall clock, a monotonic clock, and how long to sleep.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, in whole milliseconds (what the store keeps).
    fn now(&self) -> Timestamp;
    /// Real time since some fixed start; never jumps. The point of no return is measured with it.
    fn monotonic(&self) -> Duration;
    /// How much real time passes until the wall clock shows `at`; zero if it already does.
    fn real_until(&self, at: Timestamp) -> Duration;
}

/// Cuts a timestamp to whole milliseconds.
pub fn whole_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).expect("a timestamp's own milliseconds are in range")
}

/// The system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the one place where the system's clocks enter")]
fn system_now() -> Timestamp {
    whole_millis(Timestamp::now())
}

#[expect(clippy::disallowed_methods, reason = "the one place where the system's clocks enter")]
fn monotonic_now() -> Instant {
    Instant::now()
}

impl SystemClock {
    /// The system's clocks, monotonic time counting from now.
    pub fn new() -> Self {
        Self { started: monotonic_now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        system_now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn real_until(&self, at: Timestamp) -> Duration {
        at.duration_since(system_now()).try_into().unwrap_or(Duration::ZERO)
    }
}

/// A wall clock that runs `factor` times as fast as real time, from `epoch`. For `retoma demo`.
#[derive(Debug)]
pub struct FastClock {
    started: Instant,
    epoch: Timestamp,
    factor: f64,
}

impl FastClock {
    /// A clock that shows `epoch` now.
    pub fn new(epoch: Timestamp, factor: f64) -> Self {
        assert!(factor >= 1.0, "a fast clock is never slower than real time");
        Self { started: monotonic_now(), epoch: whole_millis(epoch), factor }
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let shown = SignedDuration::from_secs_f64(self.started.elapsed().as_secs_f64() * self.factor);
        whole_millis(self.epoch.saturating_add(shown).unwrap_or(Timestamp::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn real_until(&self, at: Timestamp) -> Duration {
        let shown: Duration = at.duration_since(self.now()).try_into().unwrap_or(Duration::ZERO);
        shown.div_f64(self.factor)
    }
}
