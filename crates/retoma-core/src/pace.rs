//! How fast messages leave (E5): a channel's rate, a recipient's rate, what a provider's 429 does to both, and the slow
//! start of a channel that comes back (FC-57).
//!
//! Asked by the deliverer for every start, told by the completer. Times are a monotonic clock's.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// So many in so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In which time.
    pub per: Duration,
}

impl Rate {
    /// A rate per second.
    pub fn per_second(count: u32) -> Self {
        Self { count, per: Duration::from_secs(1) }
    }

    fn per_s(self) -> f64 {
        f64::from(self.count) / self.per.as_secs_f64().max(0.001)
    }
}

/// Right after a channel came back, so many per second leave; ...
const RAMP_FROM: f64 = 5.0;
/// ... twice as many after each of these; ...
const RAMP_STEP: Duration = Duration::from_secs(5);
/// ... and after so many of them only the configured rate counts.
const RAMP_STEPS: u32 = 12;
/// A 429 halves the rate, down to this part of it; each quiet [`RECOVER`] doubles it again.
const SLOWEST: f64 = 1.0 / 16.0;
const RECOVER: Duration = Duration::from_secs(30);
/// Whoever has no rate and is told to slow down starts from what it did in the last second, but at least from this.
const LEARNED_MIN: f64 = 2.0;

/// The pace of one channel.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Option<f64>,
    /// What may leave at once; a rate is an average, not a metronome.
    burst: f64,
    tokens: f64,
    at: Duration,
    /// Nothing leaves before: what a 429 asked for.
    paused_until: Duration,
    /// The part of the rate that is used.
    part: f64,
    part_since: Duration,
    /// A rate learned from a 429 where none is configured.
    learned: Option<f64>,
    back_at: Option<Duration>,
    /// Starts in the second that began then.
    recent: (Duration, f64, f64),
}

impl Pace {
    /// The pace of a rate; without one nothing is held back until a provider complains.
    pub fn new(rate: Option<Rate>) -> Self {
        let per_s = rate.map(Rate::per_s);
        // A tenth of a second's worth, at least one: `20/s` never puts more than 22 into any second.
        let burst = per_s.map_or(1.0, |per_s| (per_s / 10.0).max(1.0));
        Self {
            rate: per_s,
            burst,
            tokens: burst,
            at: Duration::ZERO,
            paused_until: Duration::ZERO,
            part: 1.0,
            part_since: Duration::ZERO,
            learned: None,
            back_at: None,
            recent: (Duration::ZERO, 0.0, 0.0),
        }
    }

    /// How many per second may leave now; `None` is as many as come.
    pub fn limit(&self, now: Duration) -> Option<f64> {
        let steps = now.saturating_sub(self.part_since).as_secs() / RECOVER.as_secs();
        let part = (self.part * 2f64.powi(i32::try_from(steps.min(8)).unwrap_or(8))).min(1.0);
        let base = self.rate.or_else(|| self.learned.filter(|_| part < 1.0));
        let ramp = self.back_at.and_then(|back| {
            let steps = u32::try_from(now.saturating_sub(back).as_secs() / RAMP_STEP.as_secs()).unwrap_or(u32::MAX);
            (steps < RAMP_STEPS).then(|| RAMP_FROM * 2f64.powi(i32::try_from(steps).unwrap_or(0)))
        });
        match (base.map(|base| base * part), ramp) {
            (Some(base), Some(ramp)) => Some(base.min(ramp)),
            (base, ramp) => base.or(ramp),
        }
    }

    /// How many of `wanted` may leave now, and when the next one may, if that is fewer.
    pub fn room(&mut self, wanted: usize, now: Duration) -> (usize, Option<Duration>) {
        if now < self.paused_until {
            return (0, Some(self.paused_until));
        }
        let Some(limit) = self.limit(now) else { return (wanted, None) };
        self.fill(limit, now);
        let whole = self.tokens.floor().max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "it is below `wanted`, and whole")]
        let room = if whole >= wanted as f64 { wanted } else { whole as usize };
        let missing = (1.0 - (self.tokens - room as f64)).max(0.0);
        let next = (room < wanted).then(|| now + Duration::from_secs_f64((missing / limit).min(3600.0)));
        (room, next)
    }

    /// So many leave.
    pub fn take(&mut self, count: usize, now: Duration) {
        if self.limit(now).is_some() {
            self.tokens -= count as f64;
        }
        let (since, before, current) = self.recent;
        self.recent = match now.saturating_sub(since).as_secs() {
            0 => (since, before, current + count as f64),
            1 => (since + Duration::from_secs(1), current, count as f64),
            _ => (now, 0.0, count as f64),
        };
    }

    fn fill(&mut self, limit: f64, now: Duration) {
        let burst = if self.rate.is_some() { self.burst } else { (limit / 10.0).max(1.0) };
        let grown = now.saturating_sub(self.at).as_secs_f64() * limit;
        self.tokens = (self.tokens + grown).min(burst);
        self.at = now;
    }

    /// The provider said that it was too much: nothing before `until`, and slower afterwards.
    pub fn slow_down(&mut self, until: Duration, now: Duration) {
        // Requests under way at the same time are told the same; one complaint is one step.
        if now < self.paused_until {
            self.paused_until = self.paused_until.max(until);
            return;
        }
        if self.rate.is_none() && self.learned.is_none_or(|_| self.limit(now).is_none()) {
            self.learned = Some(self.recent.1.max(self.recent.2).max(LEARNED_MIN));
        }
        let steps = now.saturating_sub(self.part_since).as_secs() / RECOVER.as_secs();
        let part = (self.part * 2f64.powi(i32::try_from(steps.min(8)).unwrap_or(8))).min(1.0);
        self.part = (part / 2.0).max(SLOWEST);
        self.part_since = until;
        self.paused_until = until;
        self.tokens = 0.0;
        self.at = until;
    }

    /// The channel came back: it drains slowly at first.
    pub fn came_back(&mut self, now: Duration) {
        self.back_at = Some(now);
        self.tokens = self.tokens.min(1.0);
        self.at = now;
    }
}

/// When each recipient may be written to again.
#[derive(Clone, Debug)]
pub struct Pairs<K> {
    every: Option<Duration>,
    free_at: HashMap<K, Duration>,
}

/// Recipients remembered before those that are free again are forgotten.
const PAIRS_MAX: usize = 10_000;

impl<K: Eq + Hash> Pairs<K> {
    /// At most one message per recipient in `every`.
    pub fn new(every: Option<Duration>) -> Self {
        Self { every, free_at: HashMap::new() }
    }

    /// When this one may be written to again, if not now.
    pub fn waits(&self, who: &K, now: Duration) -> Option<Duration> {
        self.free_at.get(who).copied().filter(|at| *at > now)
    }

    /// A message leaves.
    pub fn take(&mut self, who: K, now: Duration) {
        if let Some(every) = self.every {
            self.rest(who, now + every, now);
        }
    }

    /// Nothing to this one before `until`.
    pub fn rest(&mut self, who: K, until: Duration, now: Duration) {
        if self.free_at.len() >= PAIRS_MAX {
            self.free_at.retain(|_, at| *at > now);
        }
        let at = self.free_at.entry(who).or_default();
        *at = until.max(*at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Starts whatever may start, every 10 ms; answers how many left in each second.
    fn run(pace: &mut Pace, from: u64, seconds: u64) -> Vec<usize> {
        (0..seconds)
            .map(|second| {
                (0..100)
                    .map(|step| {
                        let now = ms(from * 1000 + second * 1000 + step * 10);
                        let (room, _) = pace.room(1000, now);
                        pace.take(room, now);
                        room
                    })
                    .sum()
            })
            .collect()
    }

    // E5
    #[test]
    fn a_rate_holds_in_every_second_and_none_holds_nothing() {
        let mut pace = Pace::new(Some(Rate::per_second(20)));
        let left = run(&mut pace, 0, 10);
        assert!(left.iter().all(|count| (18..=22).contains(count)), "{left:?}");
        let mut slow = Pace::new(Some(Rate { count: 1, per: Duration::from_secs(6) }));
        assert_eq!(run(&mut slow, 0, 60).iter().sum::<usize>(), 10);
        assert_eq!(Pace::new(None).room(1000, ms(1)), (1000, None));
    }

    #[test]
    fn the_next_start_is_said() {
        let mut pace = Pace::new(Some(Rate::per_second(10)));
        let (room, _) = pace.room(5, ms(1000));
        assert_eq!(room, 1);
        pace.take(1, ms(1000));
        let (room, next) = pace.room(5, ms(1000));
        assert_eq!((room, next), (0, Some(ms(1100))));
    }

    // FC-57: 429 lowers the rate.
    #[test]
    fn a_complaint_pauses_and_halves_and_is_forgotten_slowly() {
        let mut pace = Pace::new(Some(Rate::per_second(20)));
        run(&mut pace, 0, 3);
        pace.slow_down(ms(5000), ms(3000));
        pace.slow_down(ms(5000), ms(3001));
        assert_eq!(pace.room(9, ms(4000)), (0, Some(ms(5000))));
        let left = run(&mut pace, 5, 10);
        assert!(left.iter().all(|count| (8..=11).contains(count)), "one step for one complaint: {left:?}");
        let left = run(&mut pace, 36, 3);
        assert!(left.iter().all(|count| (18..=22).contains(count)), "{left:?}");
    }

    #[test]
    fn who_has_no_rate_learns_one_from_a_complaint() {
        let mut pace = Pace::new(None);
        for step in 0..200 {
            pace.take(1, ms(step * 10));
        }
        pace.slow_down(ms(3000), ms(2000));
        let left = run(&mut pace, 3, 5);
        assert!(left.iter().all(|count| (30..=60).contains(count)), "half of a hundred: {left:?}");
        assert_eq!(pace.limit(ms(40_000)), None);
    }

    // FC-57: a channel that comes back drains at a bounded rate.
    #[test]
    fn who_comes_back_starts_slowly() {
        for rate in [None, Some(Rate::per_second(20))] {
            let mut pace = Pace::new(rate);
            pace.came_back(ms(10_000));
            let left = run(&mut pace, 10, 30);
            assert!(left[..5].iter().all(|count| *count <= 6), "{left:?}");
            assert!(left[5..10].iter().all(|count| *count <= 12), "{left:?}");
            assert!(left.windows(2).all(|pair| pair[1] + 3 >= pair[0]), "{left:?}");
        }
    }

    #[test]
    fn a_recipient_rests_alone() {
        let mut pairs = Pairs::new(Some(ms(6000)));
        pairs.take("ana", ms(0));
        assert_eq!(pairs.waits(&"ana", ms(1)), Some(ms(6000)));
        assert_eq!(pairs.waits(&"bia", ms(1)), None);
        assert_eq!(pairs.waits(&"ana", ms(6000)), None);
        let mut pairs = Pairs::new(None);
        pairs.take("ana", ms(0));
        assert_eq!(pairs.waits(&"ana", ms(1)), None);
        pairs.rest("ana", ms(15_000), ms(1));
        assert_eq!(pairs.waits(&"ana", ms(2)), Some(ms(15_000)));
    }
}
