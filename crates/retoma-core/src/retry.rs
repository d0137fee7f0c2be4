//! How long to wait before the next try (E2). A policy is data; the wait it gives is derived from the task's id, so that a
//! replay waits as long and no two tasks of one outage come back in step.

use std::time::Duration;

use crate::cadence;

/// A backoff: `base * factor^(n-1)`, at most `cap`, give or take `jitter`, and after `attempts` tries it is over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryPolicy {
    /// The wait after the first attempt.
    pub base: Duration,
    /// How much longer each further wait is.
    pub factor: f64,
    /// The longest wait, before jitter.
    pub cap: Duration,
    /// The part of a wait that is drawn: 0.2 is give or take a fifth.
    pub jitter: f64,
    /// How many attempts are made in all.
    pub attempts: u32,
}

impl RetryPolicy {
    /// The preset of messages (E2): 60 s, doubled up to an hour, give or take a fifth, six attempts.
    pub fn recovery() -> Self {
        Self { base: Duration::from_secs(60), factor: 2.0, cap: Duration::from_secs(3600), jitter: 0.2, attempts: 6 }
    }

    /// The wait after the `attempt`-th attempt, from 1.
    pub fn delay(&self, attempt: u32, seed: &str) -> Duration {
        // Far beyond any cap a power is infinite, and so is its product; the cap holds all the same.
        let exponent = attempt.saturating_sub(1).min(1_000);
        let exponent = i32::try_from(exponent).expect("it is at most 1000");
        let grown = self.base.as_secs_f64() * self.factor.powi(exponent);
        let wait = Duration::from_secs_f64(grown.min(self.cap.as_secs_f64()));
        jittered(wait, self.jitter, &format!("{seed} {attempt}"))
    }
}

/// A wait, give or take a part of it, drawn once by `seed`.
pub(crate) fn jittered(wait: Duration, part: f64, seed: &str) -> Duration {
    let span = wait.mul_f64(part.clamp(0.0, 1.0));
    wait - span + cadence::jitter(&format!("retry {seed}"), 2 * span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // E2
    #[test]
    fn recovery_doubles_from_a_minute_to_an_hour() {
        let even = RetryPolicy { jitter: 0.0, ..RetryPolicy::recovery() };
        let waits = [
            (0, 60),
            (1, 60),
            (2, 120),
            (3, 240),
            (4, 480),
            (5, 960),
            (6, 1920),
            (7, 3600),
            (8, 3600),
            (u32::MAX, 3600),
        ];
        for (attempt, seconds) in waits {
            assert_eq!(even.delay(attempt, "t").as_secs(), seconds, "after attempt {attempt}");
        }
    }

    #[test]
    fn tasks_of_one_outage_do_not_come_back_in_step() {
        let policy = RetryPolicy::recovery();
        let waits: std::collections::BTreeSet<u64> =
            (0..300).map(|n| policy.delay(1, &format!("t{n}")).as_secs()).collect();
        assert!(waits.len() > 20, "{waits:?}");
        assert_ne!(policy.delay(1, "t").as_millis() * 2, policy.delay(2, "t").as_millis(), "each wait is drawn anew");
    }

    proptest! {
        #[test]
        fn a_wait_lies_within_its_window_and_never_changes(
            base in 1..600u64, factor in 1.0..4.0f64, cap in 600..7200u64, jitter in 0.0..=1.0f64, attempt in 1..40u32, seed in "[a-z:0-9]{1,20}",
        ) {
            let (base, cap) = (Duration::from_secs(base), Duration::from_secs(cap));
            let policy = RetryPolicy { base, factor, cap, jitter, attempts: 6 };
            let middle = (base.as_secs_f64() * factor.powi(i32::try_from(attempt).unwrap() - 1)).min(cap.as_secs_f64());
            let wait = policy.delay(attempt, &seed).as_secs_f64();
            prop_assert!(wait >= middle * (1.0 - jitter) - 0.002 && wait <= middle * (1.0 + jitter) + 0.002, "{wait} {middle}");
            prop_assert_eq!(policy.delay(attempt, &seed), policy.delay(attempt, &seed));
        }
    }
}
