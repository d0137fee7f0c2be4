//! Chance from a seed: SplitMix64. Not for secrets.

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

    /// One of `from..=to`.
    pub(crate) fn between(&mut self, from: u32, to: u32) -> u32 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True with that chance, 0 to 1.
    pub(crate) fn chance(&mut self, chance: f64) -> bool {
        self.unit() < chance
    }

    /// 0 up to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        f64::from(self.below(1 << 24)) / f64::from(1u32 << 24)
    }

    /// An id as WhatsApp Web makes them.
    pub(crate) fn message_id(&mut self) -> String {
        format!("3EB0{:016X}", self.next())
    }
}
