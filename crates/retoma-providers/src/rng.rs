//! Chance from a seed, for fakes and invented traffic: SplitMix64. Not for secrets.

use std::time::Duration;

/// A repeatable source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit` (0 where that is 0).
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit.max(1))).expect("below a u32")
    }

    /// True with that chance, 0 to 1.
    pub(crate) fn chance(&mut self, chance: f64) -> bool {
        self.unit() < chance
    }

    /// 0 up to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(self.below(1 << 24)) / f64::from(1u32 << 24)
    }

    /// One of some things.
    pub(crate) fn one_of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        let at = self.below(u32::try_from(things.len()).unwrap_or(u32::MAX));
        &things[at as usize]
    }

    /// A time between two.
    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        from + to.saturating_sub(from).mul_f64(self.unit())
    }

    /// An id as WhatsApp Web makes them.
    pub(crate) fn message_id(&mut self) -> String {
        format!("3EB0{:016X}", self.next())
    }

    /// A random UUID's text.
    pub(crate) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let low = low & 0x0fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}
