//! When a burst of messages is over (C7): computed from stored receive times, so that a restart or another node finds the
//! same end.

use jiff::Timestamp;

use crate::flow::Debounce;

/// When the first burst among these messages may be decided: after `quiet` without another one, and `max_wait` after its
/// first at the latest.
///
/// A message that came in after the burst had closed (it was not decided yet, because its owner was busy or down) does not
/// keep it open; it starts the next one, of those received after the answer. Without messages there is nothing to wait for.
pub fn burst_ready_at(received: &[Timestamp], debounce: Debounce) -> Timestamp {
    let mut received = received.to_vec();
    received.sort_unstable();
    let Some(first) = received.first() else { return Timestamp::MIN };
    let latest = *first + debounce.max_wait;
    let closes = |last: Timestamp| (last + debounce.quiet).min(latest);
    received.iter().fold(closes(*first), |ready, next| if *next <= ready { closes(*next) } else { ready })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const RULE: Debounce = Debounce { quiet: Duration::from_secs(4), max_wait: Duration::from_secs(40) };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap()
    }

    // C7, FC-04
    #[test]
    fn a_burst_ends_after_a_silence_or_at_its_ceiling() {
        let steady: Vec<i64> = (0..30).map(|n| n * 3_000).collect();
        let table: [(&[i64], i64); 9] = [
            (&[0], 4_000),
            (&[0, 200], 4_200),
            (&[0, 1_500, 3_000], 7_000),
            (&[3_000, 0, 1_500], 7_000),
            // At the very end of the silence it still belongs to the burst.
            (&[0, 4_000], 8_000),
            // After it, it starts another, whatever follows.
            (&[0, 4_001], 4_000),
            (&[0, 4_001, 5_000, 9_000], 4_000),
            // A steady talker cannot put the answer off for ever, and what comes after the ceiling is the next burst.
            (&steady, 40_000),
            (&[0, 0], 4_000),
        ];
        for (received, expected) in table {
            let received: Vec<Timestamp> = received.iter().copied().map(at).collect();
            assert_eq!(burst_ready_at(&received, RULE), at(expected), "{received:?}");
        }
        assert_eq!(burst_ready_at(&[], RULE), Timestamp::MIN);
    }

    proptest! {
        /// Each message is in exactly one burst, and looking again when more have come in changes no burst that is over.
        #[test]
        fn a_burst_that_is_over_stays_as_it_was(mut received in proptest::collection::vec(0..120_000i64, 1..40)) {
            received.sort_unstable();
            let all: Vec<Timestamp> = received.into_iter().map(at).collect();
            let ready = burst_ready_at(&all, RULE);
            let burst: Vec<Timestamp> = all.iter().copied().filter(|at| *at <= ready).collect();
            prop_assert!(!burst.is_empty() && ready <= burst[0] + RULE.max_wait && ready >= burst[0] + RULE.quiet);
            prop_assert_eq!(burst_ready_at(&burst, RULE), ready);
            for count in 1..=all.len() {
                let seen = burst_ready_at(&all[..count], RULE);
                prop_assert!(seen <= ready && (all.get(count).is_some_and(|next| *next <= seen) || seen == ready));
            }
        }
    }
}
