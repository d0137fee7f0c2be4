//! Stopped channels (E3): wrong credentials stop a channel, not its tasks. They wait, and one task now and then is let
//! through to find out whether the channel works again.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::ids::ChannelName;
use retoma_store::{Error, Store};

use crate::shared::Shared;

/// How long a stopped channel rests before one task tries it.
const PROBE_EVERY: Duration = Duration::from_secs(300);

/// What the deliverer knows of stopped channels, read from the store every round.
#[derive(Debug, Default)]
pub(crate) struct StoppedChannels {
    since: HashMap<ChannelName, Timestamp>,
    probed: HashMap<ChannelName, Timestamp>,
}

impl StoppedChannels {
    /// Reads the channels' rows.
    pub(crate) async fn refresh<S: Store>(&mut self, store: &S, shared: &Shared) -> Result<(), Error> {
        let states = store.channel_states(shared.setup.tenant.clone()).await?;
        self.since = states
            .into_iter()
            .filter(|state| state.stopped.is_some())
            .map(|state| (state.channel, state.since))
            .collect();
        for channel in self.since.keys() {
            shared.mark_stopped(channel, true);
        }
        self.probed.retain(|channel, _| self.since.contains_key(channel));
        Ok(())
    }

    /// Whether a task of this channel must wait. Lets one through per [`PROBE_EVERY`].
    pub(crate) fn holds_back(&mut self, channel: &ChannelName, now: Timestamp) -> bool {
        let Some(since) = self.since.get(channel) else { return false };
        let last = self.probed.get(channel).copied().unwrap_or(*since).max(*since);
        let rested: Duration = now.duration_since(last).try_into().unwrap_or(Duration::ZERO);
        if rested < PROBE_EVERY {
            return true;
        }
        self.probed.insert(channel.clone(), now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_channel_lets_one_task_through_after_a_rest() {
        let at = |seconds: i64| Timestamp::from_second(1_790_000_000 + seconds).unwrap();
        let zap = ChannelName::new("zap");
        let mut stopped = StoppedChannels { since: HashMap::from([(zap.clone(), at(0))]), probed: HashMap::new() };
        assert!(stopped.holds_back(&zap, at(10)));
        assert!(!stopped.holds_back(&zap, at(300)));
        assert!(stopped.holds_back(&zap, at(301)));
        assert!(!stopped.holds_back(&ChannelName::new("other"), at(10)));
    }
}
