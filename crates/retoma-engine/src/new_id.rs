//! Fresh ids: UUID version 7, strictly increasing within the process.

use std::hash::{BuildHasher, Hasher};
use std::sync::Mutex;

use jiff::Timestamp;
use uuid::Uuid;

/// Makes ids. Two processes differ in their random part; one process never repeats or goes back.
#[derive(Debug)]
pub struct NewId {
    node: u32,
    last: Mutex<(u64, u64)>,
}

/// Random bits for telling processes apart; the standard library seeds its hashers from the system.
fn random_u64() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

impl NewId {
    /// A fresh maker, with random node bits.
    pub fn new() -> Self {
        let [a, b, c, d, ..] = random_u64().to_be_bytes();
        Self { node: u32::from_be_bytes([a, b, c, d]), last: Mutex::new((0, 0)) }
    }

    /// The next id at that time.
    pub fn next(&self, now: Timestamp) -> Uuid {
        let now_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let (ms, count) = {
            let mut last = self.last.lock().expect("no code panics while it makes an id");
            *last = if now_ms > last.0 { (now_ms, 0) } else { (last.0, last.1 + 1) };
            *last
        };
        let mut tail = [0; 10];
        tail[..6].copy_from_slice(&count.to_be_bytes()[2..]);
        tail[6..].copy_from_slice(&self.node.to_be_bytes());
        // The first 12 bits beside the version and the variant bits are the count's highest: they stay zero.
        uuid::Builder::from_unix_timestamp_millis(ms, &tail).into_uuid()
    }
}

impl Default for NewId {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_only_grow_even_when_the_clock_goes_back() {
        let ids = NewId::new();
        let later = Timestamp::from_millisecond(1_790_000_000_500).unwrap();
        let earlier = Timestamp::from_millisecond(1_790_000_000_000).unwrap();
        let mut made: Vec<Uuid> = (0..5000).map(|_| ids.next(later)).collect();
        made.extend((0..5000).map(|_| ids.next(earlier)));
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
