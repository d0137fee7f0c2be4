//! Which contacts and channels have a request under way. In memory only; after a crash the start rows tell.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use retoma_core::ids::{ChannelName, ContactId};

/// Requests under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lanes: HashSet<ContactId>,
    channels: HashMap<ChannelName, usize>,
}

impl Flights {
    fn with<R>(&self, look: impl FnOnce(&mut Inner) -> R) -> R {
        look(&mut self.inner.lock().expect("no code panics while it holds the flights"))
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|inner| inner.lanes.len())
    }

    pub(crate) fn is_busy(&self, contact: ContactId) -> bool {
        self.with(|inner| inner.lanes.contains(&contact))
    }

    pub(crate) fn on_channel(&self, channel: &ChannelName) -> usize {
        self.with(|inner| inner.channels.get(channel).copied().unwrap_or(0))
    }

    pub(crate) fn take_off(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|inner| {
            assert!(inner.lanes.insert(contact), "one request per contact is under way");
            *inner.channels.entry(channel.clone()).or_default() += 1;
        });
    }

    pub(crate) fn land(&self, contact: ContactId, channel: &ChannelName) {
        self.with(|inner| {
            inner.lanes.remove(&contact);
            if let Some(count) = inner.channels.get_mut(channel) {
                *count = count.saturating_sub(1);
            }
        });
    }
}
