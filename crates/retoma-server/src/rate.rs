//! Requests in a time (A10), of one source and of each address that sends to it: token buckets that hold at most one period's
//! worth.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::Duration;

/// Addresses that are told apart. Beyond them new ones share one bucket: memory stays bounded whoever comes.
const ADDRESSES_MAX: usize = 10_000;

/// How many requests in how long.
#[derive(Clone, Copy, Debug)]
struct Limit {
    burst: f64,
    per_second: f64,
}

/// What is left of a limit, and when that was so (monotonic).
#[derive(Clone, Copy, Debug)]
struct Left {
    tokens: f64,
    at: Duration,
}

impl Limit {
    fn new(count: u32, per: Duration) -> Self {
        let burst = f64::from(count);
        Self { burst, per_second: burst / per.as_secs_f64() }
    }

    fn full(&self, at: Duration) -> Left {
        Left { tokens: self.burst, at }
    }

    fn tokens(&self, left: Left, now: Duration) -> f64 {
        let gained = now.saturating_sub(left.at).as_secs_f64() * self.per_second;
        (left.tokens + gained).min(self.burst)
    }

    fn take(&self, left: &mut Left, now: Duration) -> Result<(), Duration> {
        *left = Left { tokens: self.tokens(*left, now), at: now.max(left.at) };
        if left.tokens >= 1.0 {
            left.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - left.tokens) / self.per_second))
    }
}

/// A limit, with what is left of it.
#[derive(Debug)]
pub struct Rate {
    limit: Limit,
    left: Mutex<Left>,
}

impl Rate {
    /// `count` requests in `per`.
    pub fn new(count: u32, per: Duration) -> Self {
        let limit = Limit::new(count, per);
        Self { limit, left: Mutex::new(limit.full(Duration::ZERO)) }
    }

    /// Takes one at `now` (monotonic), or says how long to wait for one.
    pub fn take(&self, now: Duration) -> Result<(), Duration> {
        self.limit.take(&mut self.left.lock().expect("no code panics while it holds the bucket"), now)
    }
}

/// A limit for each address. An IPv6 customer has a /64 to himself, so that counts as one.
#[derive(Debug)]
pub struct RatePerAddress {
    limit: Limit,
    addresses_max: usize,
    left: Mutex<HashMap<Option<IpAddr>, Left>>,
}

impl RatePerAddress {
    /// `count` requests of one address in `per`.
    pub fn new(count: u32, per: Duration) -> Self {
        Self { limit: Limit::new(count, per), addresses_max: ADDRESSES_MAX, left: Mutex::default() }
    }

    /// Takes one for `address` at `now` (monotonic), or says how long to wait for one. Senders whose address nobody knows
    /// share a bucket.
    pub fn take(&self, address: Option<IpAddr>, now: Duration) -> Result<(), Duration> {
        let mut left = self.left.lock().expect("no code panics while it holds the buckets");
        let mut key = address.map(network);
        if !left.contains_key(&key) && left.len() >= self.addresses_max {
            // Whoever has waited long enough is as good as new.
            left.retain(|_, left| self.limit.tokens(*left, now) < self.limit.burst);
            if left.len() >= self.addresses_max {
                key = None;
            }
        }
        self.limit.take(left.entry(key).or_insert_with(|| self.limit.full(now)), now)
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
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

    #[test]
    fn each_address_has_a_limit_of_its_own_and_memory_stays_bounded() {
        let ip = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        let at = Duration::from_millis;
        let mut rate = RatePerAddress::new(1, Duration::from_secs(1));
        assert_eq!(rate.take(ip("203.0.113.1"), at(0)), Ok(()));
        assert_eq!(rate.take(ip("::ffff:203.0.113.1"), at(500)), Err(at(500)));
        assert_eq!(rate.take(ip("203.0.113.2"), at(500)), Ok(()));
        assert_eq!(rate.take(ip("2001:db8::1"), at(500)), Ok(()));
        assert!(rate.take(ip("2001:db8::2"), at(500)).is_err(), "one customer");
        assert_eq!(rate.take(ip("2001:db8:0:1::1"), at(500)), Ok(()));
        assert_eq!(rate.take(None, at(500)), Ok(()));
        assert!(rate.take(None, at(500)).is_err());

        rate.addresses_max = 5;
        // The first one has waited long enough and makes room; then strangers share.
        assert_eq!(rate.take(ip("198.51.100.1"), at(1200)), Ok(()));
        assert_eq!(rate.take(ip("198.51.100.2"), at(1200)), Err(at(300)), "shares with the unknown");
        assert!(rate.left.lock().unwrap().len() <= 5);
        assert_eq!(rate.take(ip("198.51.100.2"), at(60_000)), Ok(()));
    }
}
