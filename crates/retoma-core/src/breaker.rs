//! The circuit breaker of a destination (E5): while nothing gets through, messages wait instead of failing one by one, and
//! one message at a time finds out whether the way is open again.
//!
//! Fed with outcomes by the completer, asked by the deliverer. Times are a monotonic clock's. It remembers nothing over a
//! restart: a few messages find out again.

use std::time::Duration;

use crate::ids::TaskId;
use crate::outcome::Outcome;

/// So many different messages in a row must fail. One message that fails again and again is its own trouble.
const TRIP_AFTER: usize = 8;
/// Failures further apart than this are no row.
const ROW_GAP: Duration = Duration::from_secs(60);
/// The first rest; each failed probe doubles it.
const REST: Duration = Duration::from_secs(10);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(300);

/// What an attempt's end says about the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Somebody answered like a working provider.
    Open,
    /// Nothing got through.
    Shut,
    /// Neither.
    Nothing,
}

impl Signal {
    /// Reads an attempt's end. An answer that speaks of this one message shows that the provider works, even where it lies
    /// about the message; a timeout, a reset or a proxy's error shows that it does not.
    pub fn of(outcome: Outcome, http_status: Option<u16>) -> Self {
        match (outcome, http_status) {
            (Outcome::Accepted | Outcome::Recipient | Outcome::Content, _) => Signal::Open,
            (Outcome::Template | Outcome::Window | Outcome::Marketing, _) => Signal::Open,
            (Outcome::Transient, _) | (Outcome::Ambiguous, None | Some(502..=504)) => Signal::Shut,
            // A limit is a brake of its own; wrong credentials stop the channel by another switch.
            _ => Signal::Nothing,
        }
    }
}

/// Whether a message may try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Yes.
    Free,
    /// One may, to find out.
    Probe,
    /// Not before then.
    Wait(Duration),
}

/// The breaker of one destination.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    failed: Vec<TaskId>,
    last_failure: Duration,
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    rest: Duration,
    until: Duration,
    probing: bool,
}

impl Breaker {
    /// Whether a message may try now.
    pub fn pass(&self, now: Duration) -> Pass {
        match &self.open {
            None => Pass::Free,
            Some(open) if now >= open.until && !open.probing => Pass::Probe,
            // A probe under way tells by its end; the deliverer is woken then.
            Some(open) if now >= open.until => Pass::Wait(now + REST),
            Some(open) => Pass::Wait(open.until),
        }
    }

    /// Whether it lets nothing but probes through.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A probe leaves.
    pub fn probe(&mut self) {
        if let Some(open) = &mut self.open {
            open.probing = true;
        }
    }

    /// An attempt ended. Answers whether the breaker opened or closed by it.
    pub fn told(&mut self, task: &TaskId, signal: Signal, was_probe: bool, now: Duration) -> Option<Turn> {
        match (signal, &mut self.open) {
            (Signal::Open, open) => {
                self.failed.clear();
                // What left before it opened and arrives late proves as much as a probe.
                open.take().map(|_| Turn::Closed)
            }
            (Signal::Shut, Some(open)) if was_probe => {
                let rest = (open.rest * 2).min(REST_MAX);
                *open = Open { rest, until: now + rest, probing: false };
                None
            }
            (Signal::Nothing, Some(open)) if was_probe => {
                *open = Open { rest: open.rest, until: now + open.rest, probing: false };
                None
            }
            (Signal::Shut, None) => {
                if now.saturating_sub(self.last_failure) > ROW_GAP {
                    self.failed.clear();
                }
                self.last_failure = now;
                if !self.failed.contains(task) {
                    self.failed.push(task.clone());
                }
                if self.failed.len() < TRIP_AFTER {
                    return None;
                }
                self.failed.clear();
                self.open = Some(Open { rest: REST, until: now + REST, probing: false });
                Some(Turn::Opened)
            }
            (Signal::Shut | Signal::Nothing, _) => None,
        }
    }
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Messages wait from now on.
    Opened,
    /// They leave again.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn task(n: usize) -> TaskId {
        TaskId::new(format!("t{n}"))
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for n in 1..TRIP_AFTER {
            assert_eq!(breaker.told(&task(n), Signal::Shut, false, s(1)), None);
        }
        assert_eq!(breaker.told(&task(0), Signal::Shut, false, s(1)), Some(Turn::Opened));
        breaker
    }

    // E5
    #[test]
    fn it_opens_after_a_row_of_failures_and_lets_one_probe_through_after_a_rest() {
        let mut breaker = opened();
        assert_eq!(breaker.pass(s(2)), Pass::Wait(s(11)));
        assert_eq!(breaker.pass(s(11)), Pass::Probe);
        breaker.probe();
        assert!(matches!(breaker.pass(s(12)), Pass::Wait(_)), "one at a time");
        assert_eq!(breaker.told(&task(1), Signal::Shut, true, s(12)), None);
        assert_eq!(breaker.pass(s(13)), Pass::Wait(s(32)), "twice as long");
        breaker.probe();
        assert_eq!(breaker.told(&task(1), Signal::Open, true, s(33)), Some(Turn::Closed));
        assert_eq!(breaker.pass(s(33)), Pass::Free);
    }

    #[test]
    fn the_rest_grows_to_five_minutes_and_no_further() {
        let mut breaker = opened();
        let mut now = s(1);
        for _ in 0..20 {
            let Pass::Wait(until) = breaker.pass(now) else { panic!("it rests") };
            assert!(until - now <= REST_MAX);
            now = until;
            assert_eq!(breaker.pass(now), Pass::Probe);
            breaker.probe();
            breaker.told(&task(1), Signal::Shut, true, now);
        }
    }

    #[test]
    fn one_stubborn_message_and_failures_far_apart_open_nothing() {
        let mut breaker = Breaker::default();
        for n in 0..50 {
            assert_eq!(breaker.told(&task(1), Signal::Shut, false, s(n)), None);
        }
        let mut breaker = Breaker::default();
        for n in 0..50 {
            assert_eq!(breaker.told(&task(n), Signal::Shut, false, s(61 * n as u64)), None);
        }
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut breaker = Breaker::default();
        for n in 0..50 {
            let signal = if n % TRIP_AFTER == 0 { Signal::Open } else { Signal::Shut };
            assert_eq!(breaker.told(&task(n), signal, false, s(1)), None);
        }
    }

    #[test]
    fn a_provider_that_lies_about_one_message_is_no_dead_one() {
        let table = [
            (Outcome::Accepted, Some(201), Signal::Open),
            (Outcome::Recipient, Some(400), Signal::Open),
            (Outcome::Ambiguous, Some(400), Signal::Nothing),
            (Outcome::Ambiguous, Some(500), Signal::Nothing),
            (Outcome::Ambiguous, Some(502), Signal::Shut),
            (Outcome::Ambiguous, None, Signal::Shut),
            (Outcome::Transient, None, Signal::Shut),
            (Outcome::Transient, Some(500), Signal::Shut),
            (Outcome::RateNumber, Some(429), Signal::Nothing),
            (Outcome::Credentials, Some(401), Signal::Nothing),
            (Outcome::NotSent, None, Signal::Nothing),
        ];
        for (outcome, status, expected) in table {
            assert_eq!(Signal::of(outcome, status), expected, "{outcome} {status:?}");
        }
    }
}
