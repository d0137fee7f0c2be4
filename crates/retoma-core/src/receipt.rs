//! What providers say of a message after they took it (E6), as a lattice: news only moves it forward, in whatever order it
//! arrives.
//!
//! Stores merge by upsert with [`Status::rank`]; this is the rule that they keep.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::words;

words!(
    /// What is known of a message, from nothing to everything.
    Status {
        /// The provider took it.
        Accepted = "accepted",
        /// The provider sent it.
        Sent = "sent",
        /// It did not arrive. A side state: it outranks that somebody tried, and is outranked by its arrival.
        Failed = "failed",
        /// On the device.
        Delivered = "delivered",
        /// Read.
        Read = "read",
        /// Listened to or watched.
        Played = "played",
    }
);

/// A message that was accepted this long ago and never heard of again has no receipt (FC-78, ours): phones are switched off
/// over night, but the provider's own word that it took the message on comes within seconds.
pub const SILENT_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The word for such a message, in lists.
pub const NO_RECEIPT: &str = "no_receipt";

/// What became of a channel's newest messages that are older than [`SILENT_AFTER`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// How many were looked at.
    pub accepted: u32,
    /// How many of them were never heard of again.
    pub silent: u32,
    /// Whether receipts come through this channel at all: where none ever does, a message without one tells nothing.
    pub told: bool,
}

impl Arrivals {
    /// Fewer messages than this tell nothing about a channel.
    const ENOUGH: u32 = 10;
    /// From this part on, in percent, it is the channel and not a few dead numbers.
    const TOO_MANY_PERCENT: u32 = 30;

    /// Whether so much vanishes that somebody should look at the channel.
    pub fn vanish(self) -> bool {
        self.told && self.accepted >= Self::ENOUGH && self.silent * 100 >= self.accepted * Self::TOO_MANY_PERCENT
    }
}

impl Status {
    /// The place in the order, from 1. `read` implies `delivered`, and so on down; a store that keeps the greatest rank ever
    /// said keeps the lattice.
    pub fn rank(self) -> u8 {
        self as u8 + 1
    }

    /// Whether the message reached the device.
    pub fn has_arrived(self) -> bool {
        self >= Status::Delivered
    }

    /// What is known after another word came in. Merging is commutative, associative and idempotent, so that order,
    /// grouping and repetition of receipts do not matter.
    pub fn merge(self, said: Status) -> Status {
        self.max(said)
    }

    /// Merges words as they are stored; a word that is none changes nothing.
    pub fn merge_words(known: Option<&str>, said: &str) -> Option<Status> {
        let known = known.and_then(Status::parse);
        known.max(Status::parse(said))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(words: &[&str]) -> Option<&'static str> {
        let fold =
            words.iter().fold(None, |known: Option<Status>, said| Status::merge_words(known.map(Status::as_str), said));
        fold.map(Status::as_str)
    }

    fn permutations(words: &[&'static str]) -> Vec<Vec<&'static str>> {
        if words.len() < 2 {
            return vec![words.to_vec()];
        }
        let mut all = Vec::new();
        for (n, first) in words.iter().enumerate() {
            let rest: Vec<&str> = words.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, word)| *word).collect();
            all.extend(permutations(&rest).into_iter().map(|rest| [vec![*first], rest].concat()));
        }
        all
    }

    // FC-26: read, delivered, sent, delivered again, in every order.
    #[test]
    fn every_order_of_receipts_ends_in_read() {
        let orders = permutations(&["read", "delivered", "sent", "delivered"]);
        assert_eq!(orders.len(), 24);
        for order in orders {
            assert_eq!(merged(&order), Some("read"), "{order:?}");
        }
    }

    // E6
    #[test]
    fn a_failure_stands_until_the_message_arrives_and_is_only_noted_after() {
        let table: [(&[&str], Option<&str>); 9] = [
            (&["accepted", "failed"], Some("failed")),
            (&["sent", "failed"], Some("failed")),
            (&["failed", "sent"], Some("failed")),
            (&["failed", "delivered"], Some("delivered")),
            (&["delivered", "failed"], Some("delivered")),
            (&["read", "failed", "sent"], Some("read")),
            (&["read", "played", "read"], Some("played")),
            (&["queued"], None),
            (&["sent", "queued"], Some("sent")),
        ];
        for (words, expected) in table {
            assert_eq!(merged(words), expected, "{words:?}");
        }
    }

    #[test]
    fn only_what_reached_the_device_has_arrived() {
        let arrived: Vec<&str> = Status::ALL.iter().filter(|status| status.has_arrived()).map(|s| s.as_str()).collect();
        assert_eq!(arrived, ["delivered", "read", "played"]);
        assert_eq!(Status::ALL.iter().map(|status| status.rank()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }

    // FC-78
    #[test]
    fn a_channel_that_swallows_messages_is_told_from_one_that_tells_nothing() {
        for (accepted, silent, told, vanish) in [
            (0, 0, false, false),
            (9, 9, true, false),
            (100, 10, true, false),
            (100, 30, true, true),
            (10, 10, true, true),
            (10, 10, false, false),
        ] {
            let arrivals = Arrivals { accepted, silent, told };
            assert_eq!(arrivals.vanish(), vanish, "{arrivals:?}");
        }
    }

    proptest! {
        #[test]
        fn receipts_commute_group_and_repeat(
            a in proptest::sample::select(Status::ALL), b in proptest::sample::select(Status::ALL), c in proptest::sample::select(Status::ALL),
        ) {
            prop_assert_eq!(a.merge(b), b.merge(a));
            prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
            prop_assert_eq!(a.merge(a), a);
            prop_assert!(a.merge(b).rank() >= a.rank());
        }
    }
}
