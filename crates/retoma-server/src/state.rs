//! What every handler sees: the engine, the doors, the keys, the counters. One per server, shared by reference.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, FlowName, Tenant};
use retoma_engine::Engine;
use retoma_providers::inbound::Source;
use retoma_store::Store;
use tokio::sync::Semaphore;

use crate::address::{Network, Proxies};
use crate::auth::{Keys, LocalKey};
use crate::counters::Counters;
use crate::flows::{FlowSource, LastReload};
use crate::gate::GateScopes;
use crate::rate::{Rate, RatePerAddress};
use crate::status_page::LastStatus;

/// A door: the provider's source, and what the server itself enforces.
pub struct Door {
    /// The source.
    pub source: Source,
    /// Its limit of requests that proved themselves.
    pub rate: Option<Rate>,
    /// The limit of each address, proof or not.
    pub rate_per_address: Option<RatePerAddress>,
    /// Who may send at all; everybody where there is no list.
    pub addresses: Option<Vec<Network>>,
}

impl Door {
    /// A door without limits of its own.
    pub fn new(source: Source) -> Self {
        Self { source, rate: None, rate_per_address: None, addresses: None }
    }
}

/// What the server is told at its start.
pub struct ServerSetup {
    /// Doors by name.
    pub doors: Vec<Door>,
    /// Proxies whose word on a sender's address counts.
    pub proxies: Proxies,
    /// Channels, for the status page and for checking names.
    pub channels: Vec<ChannelName>,
    /// The channel of whoever names none.
    pub default_channel: Option<ChannelName>,
    /// The zone of people without one of their own.
    pub timezone: TimeZone,
    /// `pt-BR` or `en`: the page's language where a browser asks for neither.
    pub locale: String,
    /// The key of the local command line.
    pub local_key: Option<LocalKey>,
    /// 32 fresh random bytes.
    pub random: fn() -> [u8; 32],
    /// The program's version.
    pub version: &'static str,
    /// Where flows are read anew; `None` where they come from no files.
    pub flow_source: Option<FlowSource>,
    /// The scopes of the gate that are configured.
    pub gate: GateScopes,
}

/// The state of the handlers. A cheap handle.
pub struct AppState<S: Store>(Arc<Inner<S>>);

/// What the handle leads to.
pub struct Inner<S: Store> {
    pub(crate) engine: Engine<S>,
    pub(crate) doors: BTreeMap<String, Door>,
    pub(crate) proxies: Proxies,
    pub(crate) channels: Vec<ChannelName>,
    pub(crate) default_channel: Option<ChannelName>,
    pub(crate) timezone: TimeZone,
    pub(crate) locale: String,
    pub(crate) local_key: Option<LocalKey>,
    pub(crate) random: fn() -> [u8; 32],
    pub(crate) version: &'static str,
    pub(crate) keys: Keys,
    pub(crate) counters: Counters,
    pub(crate) tenant: Tenant,
    /// Bytes of bodies that are being read, in KiB: memory stays bounded whatever number of senders there is.
    pub(crate) body_room: Arc<Semaphore>,
    pub(crate) started: Duration,
    pub(crate) last_status: LastStatus,
    pub(crate) flow_source: Option<FlowSource>,
    pub(crate) gate: GateScopes,
    pub(crate) last_reload: LastReload,
}

/// Bodies under way may hold this much together.
const BODY_ROOM_KIB: usize = 64 * 1024;

impl<S: Store> AppState<S> {
    /// The state of a server over a running engine.
    pub fn new(engine: Engine<S>, setup: ServerSetup) -> Self {
        let started = engine.clock().monotonic();
        Self(Arc::new(Inner {
            engine,
            doors: setup.doors.into_iter().map(|door| (door.source.name.to_string(), door)).collect(),
            proxies: setup.proxies,
            channels: setup.channels,
            default_channel: setup.default_channel,
            timezone: setup.timezone,
            locale: setup.locale,
            local_key: setup.local_key,
            random: setup.random,
            version: setup.version,
            keys: Keys::default(),
            counters: Counters::default(),
            tenant: Tenant::default(),
            body_room: Arc::new(Semaphore::new(BODY_ROOM_KIB)),
            started,
            last_status: LastStatus::default(),
            flow_source: setup.flow_source,
            gate: setup.gate,
            last_reload: LastReload::default(),
        }))
    }

    /// The flow of that name; without a name, the only one there is.
    pub(crate) fn flow(&self, name: Option<&FlowName>) -> Option<Arc<Flow>> {
        let flows = self.engine.flows();
        match name {
            Some(name) => flows.get(name).cloned(),
            None if flows.len() == 1 => flows.values().next().cloned(),
            None => None,
        }
    }

    /// How long ago that was in real time; a demo's clock runs faster.
    pub(crate) fn real_age(&self, now: Timestamp, at: Timestamp) -> Duration {
        let shown: Duration = now.duration_since(at).try_into().unwrap_or(Duration::ZERO);
        self.engine.clock().real_until(now + shown)
    }

    /// The counters, for who wires a server into something larger.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl<S: Store> Clone for AppState<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> Deref for AppState<S> {
    type Target = Inner<S>;

    fn deref(&self) -> &Inner<S> {
        &self.0
    }
}
