//! Which contacts and channels have a request under way. In memory only; after a crash the start rows tell.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use retoma_core::ids::{ChannelName, ContactId};

/// Requests under way. A lane is (channel, contact), so that a channel that hangs keeps nobody's other channels waiting; it is
/// busy until the end of its attempt is on disk. A seat is free as soon as the answer is there, so that the next message is
/// looked at while the end of the last one is being stored.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    channels: Mutex<HashMap<ChannelName, Way>>,
}

#[derive(Debug, Default)]
struct Way {
    lanes: HashSet<ContactId>,
    seats: usize,
}

impl Flights {
    fn with<R>(&self, look: impl FnOnce(&mut HashMap<ChannelName, Way>) -> R) -> R {
        look(&mut self.channels.lock().expect("no code panics while it holds the flights"))
    }

    pub(crate) fn is_busy(&self, channel: &ChannelName, contact: ContactId) -> bool {
        self.with(|channels| channels.get(channel).is_some_and(|way| way.lanes.contains(&contact)))
    }

    /// Requests under way on a channel.
    pub(crate) fn on_channel(&self, channel: &ChannelName) -> usize {
        self.with(|channels| channels.get(channel).map_or(0, |way| way.seats))
    }

    pub(crate) fn take_off(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|channels| {
            let way = channels.entry(channel.clone()).or_default();
            assert!(way.lanes.insert(contact), "one request per channel and contact is under way");
            way.seats += 1;
        });
    }

    /// The answer is there, or none will come.
    pub(crate) fn answered(&self, channel: &ChannelName) {
        self.with(|channels| {
            if let Some(way) = channels.get_mut(channel) {
                way.seats = way.seats.saturating_sub(1);
            }
        });
    }

    /// The attempt's end is on disk.
    pub(crate) fn land(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|channels| {
            if let Some(way) = channels.get_mut(channel) {
                way.lanes.remove(&contact);
            }
        });
    }
}
