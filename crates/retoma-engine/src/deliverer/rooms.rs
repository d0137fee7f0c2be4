//! What each channel has room for in one round.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::ids::ChannelName;
use retoma_core::task::{MessageClass, Task};
use retoma_store::DueQuery;

/// Due tasks of one channel in one look, beyond those whose lane is busy.
const LOAD_MAX: usize = 512;
/// Tasks of a resting channel that are looked at in one go, and how long until the next.
const LOOKS: usize = 64;
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// One seat in so many is kept free of reminders, so that a backlog of them hides no answer to a person (FC-57).
const KEPT_PART: usize = 8;

/// The seats of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    /// Free now.
    pub(crate) count: usize,
    /// Nothing leaves; tasks are only looked at.
    pub(crate) resting: bool,
    /// All there are.
    pub(crate) concurrency: usize,
}

/// The rooms of all configured channels.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    seats: HashMap<ChannelName, Seats>,
    /// When a channel that time cures has room again.
    pub(crate) again_at: Option<Duration>,
}

impl Rooms {
    pub(crate) fn add(&mut self, channel: ChannelName, seats: Seats, again_at: Option<Duration>) {
        self.again_at = self.again_at.into_iter().chain(again_at).min();
        self.seats.insert(channel, seats);
    }

    /// Asks for what has room.
    pub(crate) fn query(&self, now: Timestamp, wide: usize) -> DueQuery {
        let full = self.seats.iter().filter(|(_, seats)| seats.count == 0);
        let widest = self.seats.values().map(|seats| seats.count).max().unwrap_or(LOAD_MAX);
        // A contact may have several tasks, and only one of them may leave; some slack for that.
        let widest = widest.min(LOAD_MAX);
        let limit = (widest + widest / 4 + LOOKS / 8) * wide;
        DueQuery { now, limit, skip: full.map(|(channel, _)| channel.clone()).collect() }
    }

    /// Whether its tasks are only looked at.
    pub(crate) fn is_resting(&self, channel: &ChannelName) -> bool {
        self.seats.get(channel).is_some_and(|seats| seats.resting)
    }

    /// How many of a channel's free seats this task may be the last one in. Tasks of channels that are not configured are
    /// only looked at, and told so.
    pub(crate) fn seats_for(&self, task: &Task, busy: usize) -> usize {
        self.open_seats(&task.channel, task.class, busy)
    }

    fn open_seats(&self, channel: &ChannelName, class: MessageClass, busy: usize) -> usize {
        let Some(seats) = self.seats.get(channel) else { return LOAD_MAX };
        if seats.resting || class != MessageClass::Reminder {
            return seats.count;
        }
        let open_to_reminders = seats.concurrency - seats.concurrency / KEPT_PART;
        seats.count.min(open_to_reminders.saturating_sub(busy))
    }
}

/// How many tasks of each resting channel may still be looked at in this second.
#[derive(Debug, Default)]
pub(crate) struct Looks(HashMap<ChannelName, (usize, Duration)>);

impl Looks {
    /// How many may be looked at now.
    pub(crate) fn room(&mut self, channel: &ChannelName, now: Duration) -> usize {
        let (left, since) = self.0.entry(channel.clone()).or_insert((LOOKS, now));
        if now.saturating_sub(*since) >= LOOK_EVERY {
            (*left, *since) = (LOOKS, now);
        }
        *left
    }

    /// So many are looked at.
    pub(crate) fn take(&mut self, channel: &ChannelName, count: usize) {
        if let Some((left, _)) = self.0.get_mut(channel) {
            *left = left.saturating_sub(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resting_channel_is_looked_at_once_in_a_while() {
        let (mut looks, zap) = (Looks::default(), ChannelName::new("zap"));
        let at = Duration::from_millis;
        assert_eq!(looks.room(&zap, at(0)), LOOKS);
        looks.take(&zap, LOOKS - 1);
        assert_eq!(looks.room(&zap, at(500)), 1);
        looks.take(&zap, 1);
        assert_eq!(looks.room(&zap, at(999)), 0);
        assert_eq!(looks.room(&zap, at(1000)), LOOKS);
        assert_eq!(looks.room(&ChannelName::new("other"), at(500)), LOOKS);
    }

    // FC-57: live replies do not wait behind a backlog.
    #[test]
    fn some_seats_are_kept_free_of_reminders() {
        let mut rooms = Rooms::default();
        rooms.add("zap".into(), Seats { count: 2, resting: false, concurrency: 16 }, None);
        assert_eq!(rooms.open_seats(&"zap".into(), MessageClass::Reminder, 14), 0);
        assert_eq!(rooms.open_seats(&"zap".into(), MessageClass::Reply, 14), 2);
        rooms.add("zap".into(), Seats { count: 1, resting: false, concurrency: 1 }, None);
        assert_eq!(rooms.open_seats(&"zap".into(), MessageClass::Reminder, 0), 1, "a channel of one seat keeps none");
    }

    #[test]
    fn a_full_channel_is_not_even_loaded() {
        let mut rooms = Rooms::default();
        let seats = |count| Seats { count, resting: false, concurrency: 8 };
        rooms.add("tarpit".into(), seats(0), None);
        rooms.add("zap".into(), seats(3), Some(Duration::from_secs(9)));
        rooms.add("cloud".into(), seats(8), Some(Duration::from_secs(4)));
        let query = rooms.query(Timestamp::UNIX_EPOCH, 1);
        assert_eq!(rooms.query(Timestamp::UNIX_EPOCH, 4).limit, query.limit * 4);
        assert_eq!(query.skip, ["tarpit".into()]);
        assert!(query.limit > 8, "{}", query.limit);
        assert_eq!(rooms.again_at, Some(Duration::from_secs(4)));
    }
}
