//! Stopped channels (E3): wrong credentials stop a channel, not its tasks. They wait, and one task now and then is let
//! through to find out whether the channel works again. What a person stopped waits for a person.

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
    stopped: HashMap<ChannelName, Stop>,
    probed: HashMap<ChannelName, Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Stop {
    since: Timestamp,
    by_person: bool,
}

impl StoppedChannels {
    /// Reads the channels' rows.
    pub(crate) async fn refresh<S: Store>(&mut self, store: &S, shared: &Shared) -> Result<(), Error> {
        let states = store.channel_states(shared.setup.tenant.clone()).await?;
        let stopped: HashMap<ChannelName, Stop> = states
            .into_iter()
            .filter(|state| state.stopped.is_some())
            .map(|state| (state.channel, Stop { since: state.since, by_person: state.by_person }))
            .collect();
        for channel in self.stopped.keys().filter(|channel| !stopped.contains_key(*channel)) {
            // A person resumed it; a message that got through was seen by the completer already.
            if shared.stop_of(channel).is_some() {
                shared.traffic.came_back(channel, shared.clock.monotonic());
            }
            shared.note_stop(channel, None);
        }
        for (channel, stop) in &stopped {
            shared.note_stop(channel, Some(stop.by_person));
        }
        self.stopped = stopped;
        self.probed.retain(|channel, _| self.stopped.contains_key(channel));
        Ok(())
    }

    /// Whether it is stopped, and not due to be tried.
    pub(crate) fn is_stopped(&self, channel: &ChannelName, now: Timestamp) -> bool {
        self.stopped.get(channel).is_some_and(|stop| stop.by_person || !self.may_probe(channel, *stop, now))
    }

    fn may_probe(&self, channel: &ChannelName, stop: Stop, now: Timestamp) -> bool {
        let last = self.probed.get(channel).copied().unwrap_or(stop.since).max(stop.since);
        let rested: Duration = now.duration_since(last).try_into().unwrap_or(Duration::ZERO);
        rested >= PROBE_EVERY
    }

    /// Whether a task of this channel must wait. Lets one through per [`PROBE_EVERY`], unless a person stopped it.
    pub(crate) fn holds_back(&mut self, channel: &ChannelName, now: Timestamp) -> bool {
        let Some(stop) = self.stopped.get(channel).copied() else { return false };
        if stop.by_person || !self.may_probe(channel, stop, now) {
            return true;
        }
        self.probed.insert(channel.clone(), now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn stopped(by_person: bool) -> StoppedChannels {
        let stop = Stop { since: at(0), by_person };
        StoppedChannels { stopped: HashMap::from([(ChannelName::new("zap"), stop)]), probed: HashMap::new() }
    }

    #[test]
    fn a_stopped_channel_lets_one_task_through_after_a_rest() {
        let (zap, mut stopped) = (ChannelName::new("zap"), stopped(false));
        assert!(stopped.holds_back(&zap, at(10)));
        assert!(!stopped.holds_back(&zap, at(300)));
        assert!(stopped.holds_back(&zap, at(301)));
        assert!(!stopped.holds_back(&ChannelName::new("other"), at(10)));
    }

    #[test]
    fn what_a_person_stopped_waits_for_a_person() {
        let mut stopped = stopped(true);
        assert!(stopped.holds_back(&ChannelName::new("zap"), at(86_400)));
    }
}
