//! What holds a channel back, each channel by itself: seats, rate, breaker, a stop. Shared by the deliverer, which asks, and
//! the completer, which tells how attempts ended. In memory only: after a restart the channels' rows and a few messages
//! tell again.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use retoma_core::breaker::{Breaker, Pass, Signal, Turn};
use retoma_core::ids::{ChannelName, ContactId, TaskId};
use retoma_core::outcome::{AttemptEnd, Outcome};
use retoma_core::pace::{Pace, Pairs};
use retoma_core::task::Task;
use retoma_providers::outbound::Channel;

/// Every channel's traffic.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    channels: Mutex<HashMap<ChannelName, Way>>,
}

#[derive(Debug)]
struct Way {
    breaker: Breaker,
    pace: Pace,
    pairs: Pairs<ContactId>,
    /// What the breaker let through to find out: its failure is not counted against the task.
    probe: Option<TaskId>,
}

/// What may leave through a channel now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// How many.
    pub(crate) count: usize,
    /// When to ask again, where it is fewer than wanted for a reason that time cures.
    pub(crate) again_at: Option<Duration>,
    /// Whether the breaker lets nothing through now.
    pub(crate) breaker_rests: bool,
}

/// How a channel stands, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelTraffic {
    /// Nothing gets through, and messages wait.
    pub breaker_open: bool,
    /// Messages per second that may leave now, if limited.
    pub per_s: Option<f64>,
}

impl Way {
    fn of(channel: Option<&Channel>) -> Self {
        Self {
            breaker: Breaker::default(),
            pace: Pace::new(channel.and_then(|channel| channel.rate)),
            pairs: Pairs::new(channel.and_then(|channel| channel.pair_every)),
            probe: None,
        }
    }
}

impl Traffic {
    /// A way for each channel.
    pub(crate) fn new<'a>(channels: impl Iterator<Item = &'a Channel>) -> Self {
        let ways = channels.map(|channel| (channel.name.clone(), Way::of(Some(channel))));
        Self { channels: Mutex::new(ways.collect()) }
    }

    fn with<R>(&self, channel: &ChannelName, look: impl FnOnce(&mut Way) -> R) -> R {
        let mut channels = self.channels.lock().expect("no code panics while it holds the traffic");
        look(channels.entry(channel.clone()).or_insert_with(|| Way::of(None)))
    }

    /// How many of `seats` may be used now.
    pub(crate) fn room(&self, channel: &ChannelName, seats: usize, now: Duration) -> Room {
        self.with(channel, |way| {
            let seats = match way.breaker.pass(now) {
                Pass::Free => seats,
                Pass::Probe => seats.min(1),
                Pass::Wait(until) => return Room { count: 0, again_at: Some(until), breaker_rests: true },
            };
            let (count, again_at) = way.pace.room(seats, now);
            Room { count, again_at, breaker_rests: false }
        })
    }

    /// When this contact may be written to through this channel, if not now.
    pub(crate) fn pair_waits(&self, channel: &ChannelName, contact: &ContactId, now: Duration) -> Option<Duration> {
        self.with(channel, |way| way.pairs.waits(contact, now))
    }

    /// A message leaves.
    pub(crate) fn leaves(&self, task: &Task, now: Duration) {
        self.with(&task.channel, |way| {
            if way.breaker.is_open() {
                way.breaker.probe();
                way.probe = Some(task.id.clone());
            }
            way.pace.take(1, now);
            way.pairs.take(task.contact, now);
        });
    }

    /// An attempt ended. Answers whether it was a probe, and whether the breaker turned by it.
    pub(crate) fn ended(&self, task: &Task, end: &AttemptEnd, wait: Duration, now: Duration) -> (bool, Option<Turn>) {
        self.with(&task.channel, |way| {
            let was_probe = way.probe.as_ref() == Some(&task.id);
            if was_probe {
                way.probe = None;
            }
            match end.outcome {
                Outcome::RateNumber | Outcome::RateAccount => way.pace.slow_down(now + wait, now),
                Outcome::RatePair => way.pairs.rest(task.contact, now + wait, now),
                _ => {}
            }
            let turn = way.breaker.told(&task.id, Signal::of(end.outcome, end.http_status), was_probe, now);
            if turn == Some(Turn::Closed) {
                way.pace.came_back(now);
            }
            (was_probe, turn)
        })
    }

    /// A stopped channel runs again.
    pub(crate) fn came_back(&self, channel: &ChannelName, now: Duration) {
        self.with(channel, |way| way.pace.came_back(now));
    }

    /// Too much of what leaves vanishes: slower, for as long as this is said every few seconds.
    pub(crate) fn ease(&self, channel: &ChannelName, now: Duration) {
        self.with(channel, |way| way.pace.slow_down(now, now));
    }

    /// How a channel stands.
    pub(crate) fn shown(&self, channel: &ChannelName, now: Duration) -> ChannelTraffic {
        self.with(channel, |way| ChannelTraffic { breaker_open: way.breaker.is_open(), per_s: way.pace.limit(now) })
    }
}
