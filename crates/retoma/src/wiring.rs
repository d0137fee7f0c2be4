//! From a checked configuration to running parts: store, engine, server state. The choice of backend is made here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use retoma_core::ids::Tenant;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{Clock, Engine, EngineSetup, HttpTransport, Supervisor, SystemClock};
use retoma_server::{AppState, Door, LocalKey, Rate, ServerSetup};
use retoma_sqlite::{OpenError, Options, SqliteStore};
use retoma_store::Retention;

use crate::config::Setup;
use crate::random;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Which loops run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loops {
    /// Events are decided.
    pub(crate) decide: bool,
    /// Messages are sent.
    pub(crate) deliver: bool,
}

/// Running parts.
pub(crate) struct Running {
    pub(crate) store: SqliteStore,
    pub(crate) engine: Engine<SqliteStore>,
    pub(crate) supervisor: Supervisor,
    pub(crate) state: AppState<SqliteStore>,
}

/// Opens the database, saying in words what stands in the way.
pub(crate) fn open(database: &Path) -> anyhow::Result<SqliteStore> {
    SqliteStore::open(database, Options::default()).map_err(|error| match error {
        OpenError::AlreadyOpen { path } => anyhow!(
            "{} is in use by another process: a `retoma serve` that starts or ends just now, or one of another user; \
             only one may write to a database",
            path.display()
        ),
        other => anyhow::Error::from(other).context(format!("the database {} cannot be opened", database.display())),
    })
}

/// Starts the loops over an open store.
pub(crate) async fn start(
    store: SqliteStore,
    setup: Setup,
    loops: Loops,
    local_key: Option<LocalKey>,
) -> anyhow::Result<Running> {
    start_at(store, setup, loops, local_key, Arc::new(SystemClock::new())).await
}

/// The same, by another clock.
pub(crate) async fn start_at(
    store: SqliteStore,
    setup: Setup,
    loops: Loops,
    local_key: Option<LocalKey>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Running> {
    let transport = Arc::new(HttpTransport::new(AddressGuard::new(&setup.outbound_allow), Arc::clone(&clock)));
    let channels: BTreeMap<_, _> =
        setup.channels.into_iter().map(|channel| (channel.name.clone(), Arc::new(channel))).collect();
    let server = ServerSetup {
        doors: setup
            .sources
            .into_iter()
            .map(|source| Door { source: source.source, rate: source.rate.map(|(count, per)| Rate::new(count, per)) })
            .collect(),
        channels: channels.keys().cloned().collect(),
        default_channel: setup.default_channel.clone(),
        timezone: setup.timezone,
        locale: setup.locale,
        local_key,
        random: random::bytes,
        version: VERSION,
    };
    let engine = EngineSetup {
        flows: setup.flows,
        channels,
        default_channel: setup.default_channel,
        retry: setup.retry,
        reconcile_for: setup.reconcile_for,
        decide: loops.decide,
        deliver: loops.deliver,
        tenant: Tenant::default(),
        keep: Retention { events: 90 * DAY, tasks: 365 * DAY, gate_keys: 30 * DAY },
    };
    let started = Engine::start(store.clone(), engine, clock, transport).await;
    let (engine, supervisor) = started.context("the database cannot be read")?;
    Ok(Running { store, engine: engine.clone(), supervisor, state: AppState::new(engine, server) })
}

impl Running {
    /// Ends the loops in order and gives the database back.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        drop((self.state, self.engine));
        let ended = self.supervisor.shutdown().await;
        self.store.close().await;
        ended.map_err(|why| anyhow!(why))
    }
}
