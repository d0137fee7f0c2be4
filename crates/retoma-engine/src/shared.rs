//! What the loops share: configuration, clock, wake-ups.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, FlowName, Tenant};
use retoma_core::receipt::Arrivals;
use retoma_core::retry::RetryPolicy;
use retoma_providers::outbound::Channel;

use crate::clock::Clock;
use crate::deliverer::traffic::Traffic;
use crate::heartbeat::Beats;
use crate::new_id::NewId;
use crate::signal::Signals;

/// Flows by name.
pub type Flows = BTreeMap<FlowName, Arc<Flow>>;

/// What the engine runs with.
pub struct EngineSetup {
    /// Flows by name, at the start.
    pub flows: Flows,
    /// Channels by name.
    pub channels: BTreeMap<ChannelName, Arc<Channel>>,
    /// Where messages go when neither the event nor the contact says.
    pub default_channel: Option<ChannelName>,
    /// How surely unsent messages are tried again.
    pub retry: RetryPolicy,
    /// How long an ambiguous outcome waits for evidence before its policy decides.
    pub reconcile_for: Duration,
    /// Whether the owner runs. An intake-only process leaves it out.
    pub decide: bool,
    /// Whether the deliverer runs. Commands that only need decisions leave it out.
    pub deliver: bool,
    /// Whose data; one tenant until tenants are configured.
    pub tenant: Tenant,
    /// Retention of history.
    pub keep: retoma_store::Retention,
}

pub(crate) struct Shared {
    /// Its `flows` have moved to [`Shared::flows`].
    pub(crate) setup: EngineSetup,
    /// The flows as they are now: read once for each decision and each message, replaced as a whole (C15).
    pub(crate) flows: ArcSwap<Flows>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) ids: NewId,
    pub(crate) node: String,
    pub(crate) beats: Beats,
    /// Channels that this process stopped or saw stopped, so that an accepted message knows whether to resume one; and
    /// whether a person stopped it, whom no message overrules.
    stopped: Mutex<HashMap<ChannelName, bool>>,
    /// What holds each channel back.
    pub(crate) traffic: Traffic,
    /// What became of each channel's messages after they were accepted, as the deliverer saw it last (FC-78).
    arrivals: Mutex<HashMap<ChannelName, Arrivals>>,
}

impl Shared {
    pub(crate) fn new(
        mut setup: EngineSetup,
        clock: Arc<dyn Clock>,
        signals: Arc<Signals>,
        ids: NewId,
        node: String,
        beats: Beats,
    ) -> Self {
        let traffic = Traffic::new(setup.channels.values().map(|channel| &**channel));
        let flows = ArcSwap::from_pointee(std::mem::take(&mut setup.flows));
        Self {
            setup,
            flows,
            clock,
            signals,
            ids,
            node,
            beats,
            stopped: Mutex::default(),
            traffic,
            arrivals: Mutex::default(),
        }
    }

    /// Whether a channel is known as stopped, and then whether by a person.
    pub(crate) fn stop_of(&self, channel: &ChannelName) -> Option<bool> {
        self.stopped.lock().expect("no code panics while it holds the map").get(channel).copied()
    }

    /// Takes note of a stop (`Some`, with whether a person did it) or of its end.
    pub(crate) fn note_stop(&self, channel: &ChannelName, stop: Option<bool>) {
        let mut stopped = self.stopped.lock().expect("no code panics while it holds the map");
        match stop {
            Some(by_person) => stopped.insert(channel.clone(), by_person),
            None => stopped.remove(channel),
        };
    }

    /// What became of a channel's messages, as far as it was looked at.
    pub(crate) fn arrivals_of(&self, channel: &ChannelName) -> Arrivals {
        self.arrivals.lock().expect("no code panics while it holds the map").get(channel).copied().unwrap_or_default()
    }

    /// Takes note of it. Answers what was known before.
    pub(crate) fn note_arrivals(&self, channel: &ChannelName, seen: Arrivals) -> Arrivals {
        let mut arrivals = self.arrivals.lock().expect("no code panics while it holds the map");
        arrivals.insert(channel.clone(), seen).unwrap_or_default()
    }

    /// The flow of that name; without a name, the only one there is.
    pub(crate) fn flow(&self, name: Option<&FlowName>) -> Option<Arc<Flow>> {
        let flows = self.flows.load();
        match name {
            Some(name) => flows.get(name).cloned(),
            None if flows.len() == 1 => flows.values().next().cloned(),
            None => None,
        }
    }
}
