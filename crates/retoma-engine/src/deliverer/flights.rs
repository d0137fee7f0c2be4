//! Which contacts and channels have a request under way. In memory only; after a crash the start rows tell.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use retoma_core::ids::{ChannelName, ContactId};

/// Requests under way. A lane is (channel, contact): a channel that hangs keeps nobody's other channels waiting.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    channels: Mutex<HashMap<ChannelName, HashSet<ContactId>>>,
}

impl Flights {
    fn with<R>(&self, look: impl FnOnce(&mut HashMap<ChannelName, HashSet<ContactId>>) -> R) -> R {
        look(&mut self.channels.lock().expect("no code panics while it holds the flights"))
    }

    pub(crate) fn is_busy(&self, channel: &ChannelName, contact: ContactId) -> bool {
        self.with(|channels| channels.get(channel).is_some_and(|lanes| lanes.contains(&contact)))
    }

    pub(crate) fn on_channel(&self, channel: &ChannelName) -> usize {
        self.with(|channels| channels.get(channel).map_or(0, HashSet::len))
    }

    pub(crate) fn take_off(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|channels| {
            let is_new = channels.entry(channel.clone()).or_default().insert(contact);
            assert!(is_new, "one request per channel and contact is under way");
        });
    }

    pub(crate) fn land(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|channels| {
            if let Some(lanes) = channels.get_mut(channel) {
                lanes.remove(&contact);
            }
        });
    }
}
