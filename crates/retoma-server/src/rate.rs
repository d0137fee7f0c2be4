//! Requests per second of one source (A10): a token bucket that holds at most one period's worth.

use std::sync::Mutex;
use std::time::Duration;

/// A limit, with what is left of it.
#[derive(Debug)]
pub struct Rate {
    burst: f64,
    per_second: f64,
    state: Mutex<(f64, Duration)>,
}

impl Rate {
    /// `count` requests in `per`.
    pub fn new(count: u32, per: Duration) -> Self {
        let burst = f64::from(count);
        Self { burst, per_second: burst / per.as_secs_f64(), state: Mutex::new((burst, Duration::ZERO)) }
    }

    /// Takes one at `now` (monotonic), or says how long to wait for one.
    pub fn take(&self, now: Duration) -> Result<(), Duration> {
        let mut state = self.state.lock().expect("no code panics while it holds the bucket");
        let gained = now.saturating_sub(state.1).as_secs_f64() * self.per_second;
        *state = ((state.0 + gained).min(self.burst), now.max(state.1));
        if state.0 >= 1.0 {
            state.0 -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - state.0) / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_requests_pass_as_time_does() {
        let rate = Rate::new(2, Duration::from_secs(1));
        let at = Duration::from_millis;
        assert_eq!(rate.take(at(0)), Ok(()));
        assert_eq!(rate.take(at(0)), Ok(()));
        assert_eq!(rate.take(at(0)), Err(at(500)));
        assert_eq!(rate.take(at(500)), Ok(()));
        assert_eq!(rate.take(at(500)), Err(at(500)));
        assert_eq!(rate.take(at(60_000)), Ok(()), "waiting long saves no more than one burst");
        assert_eq!(rate.take(at(60_000)), Ok(()));
        assert!(rate.take(at(60_000)).is_err());
    }
}
