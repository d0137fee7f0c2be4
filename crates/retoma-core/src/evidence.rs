//! Evidence for sends whose outcome nobody knows (E4): which of the things seen at the provider is our message.
//!
//! The reconciler asks [`find`] with what echoes and searches showed, and [`likely`] with receipts when its time is over.
//! Providers of this kind echo nothing that we chose, so a message is recognised by recipient (the caller asks for one
//! person's only), text and time. That something was *not* seen proves nothing: it may have gone out all the same.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::keys::{Key16, digest16};
use crate::task::words;

words!(
    /// Who says it.
    Witness {
        /// The provider's own notice of a message that was sent through it.
        Echo = "echo",
        /// The provider's answer to a search.
        Search = "search",
        /// A receipt.
        Receipt = "receipt",
        /// Nobody: the policy decided.
        Policy = "policy",
        /// A person.
        Person = "person",
        /// What is left of a process that ended during the send.
        Crash = "crash",
    }
);

/// How much earlier than our start a provider's clock may put our message: its times are whole seconds.
const BEFORE: Duration = Duration::from_secs(5);
/// How much later than our deadline: a message may leave after we gave up waiting.
const AFTER: Duration = Duration::from_secs(60);

/// The key of a text, by which it is recognised without being kept. Line ends and runs of spaces do not count, since not
/// every provider keeps them.
pub fn text_key(text: &str) -> Key16 {
    let words: Vec<&str> = text.split_whitespace().collect();
    digest16("said", &[words.join(" ").as_bytes()])
}

/// A send that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it said; unknown for sends that a program before this one started.
    pub said: Option<Key16>,
    /// When its start was committed.
    pub started_at: Timestamp,
    /// How long its request could take.
    pub deadline: Duration,
}

impl Wanted {
    /// Between which instants it may have gone out.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        let from = self.started_at.saturating_sub(BEFORE).unwrap_or(Timestamp::MIN);
        let to = self.started_at.saturating_add(self.deadline + AFTER).unwrap_or(Timestamp::MAX);
        (from, to)
    }

    fn holds(&self, at: Timestamp) -> bool {
        let (from, to) = self.window();
        (from..=to).contains(&at)
    }
}

/// A message to the same person, seen at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The provider's id of it.
    pub message_id: String,
    /// When it was sent, by the provider's clock.
    pub at: Timestamp,
    /// When we heard of it, by ours.
    pub heard_at: Timestamp,
    /// What it said, where that is known.
    pub said: Option<Key16>,
    /// Whether it is known as another task's message.
    pub claimed: bool,
}

/// The sighting that is our message: the same text, in time, nobody else's; the earliest where there are several.
pub fn find<'a>(wanted: &Wanted, sightings: &'a [Sighting]) -> Option<&'a Sighting> {
    let said = wanted.said?;
    sightings
        .iter()
        .filter(|seen| !seen.claimed && seen.said == Some(said))
        // Clocks differ; either of the two may be right.
        .filter(|seen| wanted.holds(seen.at) || wanted.holds(seen.heard_at))
        .min_by_key(|seen| seen.at)
}

/// The message that a receipt without a text is probably about: exactly one nobody knows, in time. Weak: asked last, when a
/// message typed by a person would have made itself known.
pub fn likely<'a>(wanted: &Wanted, receipts: &'a [Sighting]) -> Option<&'a Sighting> {
    let mut found = receipts.iter().filter(|seen| !seen.claimed && seen.said.is_none() && wanted.holds(seen.heard_at));
    let first = found.next()?;
    found.all(|other| other.message_id == first.message_id).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn seen(id: &str, seconds: i64, text: &str) -> Sighting {
        let said = (!text.is_empty()).then(|| text_key(text));
        Sighting { message_id: id.into(), at: at(seconds), heard_at: at(seconds), said, claimed: false }
    }

    fn wanted(text: &str) -> Wanted {
        Wanted { said: Some(text_key(text)), started_at: at(0), deadline: Duration::from_secs(30) }
    }

    fn found(wanted: &Wanted, sightings: &[Sighting]) -> Option<String> {
        find(wanted, sightings).map(|seen| seen.message_id.clone())
    }

    // E4, whatsapp-providers 2.7
    #[test]
    fn a_message_is_recognised_by_text_and_time_and_only_once() {
        let oi = wanted("Oi Ana");
        let table = [
            (vec![seen("A", 1, "Oi Ana")], Some("A")),
            (vec![seen("A", 1, "Oi  Ana\r\n")], Some("A")),
            (vec![seen("A", 1, "Oi Bia")], None),
            (vec![seen("A", -5, "Oi Ana")], Some("A")),
            (vec![seen("A", -6, "Oi Ana")], None),
            (vec![seen("A", 90, "Oi Ana")], Some("A")),
            (vec![seen("A", 91, "Oi Ana")], None),
            (vec![seen("B", 9, "Oi Ana"), seen("A", 2, "Oi Ana")], Some("A")),
            (vec![Sighting { claimed: true, ..seen("A", 2, "Oi Ana") }, seen("B", 9, "Oi Ana")], Some("B")),
            // The provider's clock is an hour ahead; ours heard it in time.
            (vec![Sighting { at: at(3600), ..seen("A", 2, "Oi Ana") }], Some("A")),
            (vec![seen("A", 1, "")], None),
            (vec![], None),
        ];
        for (sightings, expected) in table {
            assert_eq!(found(&oi, &sightings).as_deref(), expected, "{sightings:?}");
        }
        assert_eq!(found(&Wanted { said: None, ..oi }, &[seen("A", 1, "Oi Ana")]), None, "nothing to compare with");
    }

    #[test]
    fn a_receipt_counts_only_where_it_can_be_no_other_message() {
        let oi = wanted("Oi Ana");
        let id = |receipts: &[Sighting]| likely(&oi, receipts).map(|seen| seen.message_id.clone());
        assert_eq!(id(&[seen("A", 3, ""), seen("A", 9, "")]).as_deref(), Some("A"));
        assert_eq!(id(&[seen("A", 3, ""), seen("B", 9, "")]), None);
        assert_eq!(id(&[Sighting { claimed: true, ..seen("A", 3, "") }]), None);
        assert_eq!(id(&[seen("A", 300, "")]), None);
        assert_eq!(id(&[]), None);
    }
}
