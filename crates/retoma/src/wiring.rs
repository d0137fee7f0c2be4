//! From a checked configuration to running parts: store, engine, server state. The choice of backend is made here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use retoma_core::ids::Tenant;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{Clock, Engine, EngineSetup, HttpTransport, Supervisor, SystemClock};
use retoma_providers::reconcile::Reconcile;
use retoma_server::flows::{self, FlowSource, Refused};
use retoma_server::{AppState, Door, LocalKey, Rate, RatePerAddress, ServerSetup};
use retoma_sqlite::{OpenError, Options, SqliteStore};
use retoma_store::Retention;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Setup;
use crate::fail::usage;
use crate::{output, random};

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
    reconcilers: Reconcilers,
}

/// The tasks that ask platforms what never came.
struct Reconcilers {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Reconcilers {
    fn start(state: &AppState<SqliteStore>, transport: &Arc<HttpTransport>, wanted: Vec<(String, Reconcile)>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (source, reconcile) in wanted {
            let (state, transport) = (state.clone(), Arc::clone(transport));
            tasks.spawn(retoma_server::reconcile::run(state, transport, source, reconcile, stopped.clone()));
        }
        Self { tasks, stop }
    }

    async fn end(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(event = "reconciler_broke", error = %error, "a reconciler ended before it was told to");
            }
        }
    }
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
    flow_source: Option<FlowSource>,
) -> anyhow::Result<Running> {
    start_at(store, setup, loops, local_key, flow_source, Arc::new(SystemClock::new())).await
}

/// Makes the configuration's flows take effect in the store's record. Refused where a live conversation would be stranded.
pub(crate) async fn publish(store: &SqliteStore, setup: &Setup) -> anyhow::Result<()> {
    let (files, now) = (setup.flow_files(), SystemClock::new().now());
    match flows::publish(store, &Tenant::default(), &files, "start", now).await {
        Ok((_, warnings)) => warnings.iter().for_each(|finding| output::complain(&finding.to_string())),
        Err(Refused::Storage(error)) => return Err(error).context("the database cannot be read"),
        Err(Refused::Findings(findings)) => {
            findings.iter().for_each(|finding| output::complain(&finding.to_string()));
            return Err(usage("the flows do not fit the conversations that live in this database".to_owned()));
        }
    }
    Ok(())
}

/// The same, by another clock.
pub(crate) async fn start_at(
    store: SqliteStore,
    setup: Setup,
    loops: Loops,
    local_key: Option<LocalKey>,
    flow_source: Option<FlowSource>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Running> {
    let transport = Arc::new(HttpTransport::trusting(
        AddressGuard::new(&setup.outbound_allow),
        Arc::clone(&clock),
        &setup.outbound_ca,
    ));
    let channels: BTreeMap<_, _> =
        setup.channels.into_iter().map(|channel| (channel.name.clone(), Arc::new(channel))).collect();
    let mut reconciles = Vec::new();
    let server = ServerSetup {
        doors: setup
            .sources
            .into_iter()
            .map(|setup| Door {
                source: {
                    reconciles.extend(setup.reconcile.map(|list| (setup.source.name.to_string(), list)));
                    setup.source
                },
                rate: setup.rate.map(|(count, per)| Rate::new(count, per)),
                rate_per_address: setup.rate_per_address.map(|(count, per)| RatePerAddress::new(count, per)),
                addresses: setup.addresses,
            })
            .collect(),
        proxies: setup.proxies,
        channels: channels.keys().cloned().collect(),
        default_channel: setup.default_channel.clone(),
        timezone: setup.timezone,
        locale: setup.locale,
        local_key,
        random: random::bytes,
        version: VERSION,
        flow_source,
        gate: setup.gate,
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
        keep: Retention { events: 90 * DAY, tasks: 365 * DAY, gate_held: 30 * DAY },
    };
    let started = Engine::start(store.clone(), engine, clock, Arc::clone(&transport)).await;
    let (engine, supervisor) = started.context("the database cannot be read")?;
    let state = AppState::new(engine.clone(), server);
    let reconcilers = Reconcilers::start(&state, &transport, if loops.deliver { reconciles } else { Vec::new() });
    Ok(Running { store, engine, supervisor, state, reconcilers })
}

impl Running {
    /// Ends the loops in order and gives the database back.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.reconcilers.end().await;
        drop((self.state, self.engine));
        let ended = self.supervisor.shutdown().await;
        self.store.close().await;
        ended.map_err(|why| anyhow!(why))
    }
}
