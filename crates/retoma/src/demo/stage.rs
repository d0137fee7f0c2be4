//! The stage: store, engine, server and fake provider, put together as `retoma serve` does, over a temporary file that is
//! gone with the stage.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::{HeaderMap, HeaderValue};
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, FlowName, SourceName, Tenant};
use retoma_core::retry::RetryPolicy;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{Clock, Engine, EngineSetup, HttpTransport, Supervisor};
use retoma_providers::evolution::fake::Fake;
use retoma_providers::inbound::{Auth, Provider, Secret, Source};
use retoma_providers::outbound::{Channel, ChannelKind};
use retoma_server::fake::{DeliveryLog, FakeServer, FakeSetup, Webhook};
use retoma_server::{AppState, Door, Limits, ServerSetup, router, serve};
use retoma_sqlite::SqliteStore;
use retoma_store::{Retention, Store};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::counts::Watch;
use super::evidence::{self, Evidence};
use super::player::Doorstep;
use crate::fake_cmd::few;
use crate::{random, wiring};

/// The fake's instance.
pub(super) const INSTANCE: &str = "loja-a";
/// The fake's key. A literal secret is fine here, and only here: it opens nothing.
pub(super) const API_KEY: &str = "chave-da-demonstracao";
const HOTTOK: &str = "hottok-da-demonstracao";
const HOOK_SECRET: &str = "segredo-da-demonstracao";
const HOOK_HEADER: &str = "x-hook-secret";
const CHANNEL: &str = "zap";

/// Real time; a hanging request holds its contact's lane for an hour or two of the shop's.
const DEADLINE: Duration = Duration::from_millis(1_500);
/// The shop's time.
const RECONCILE_FOR: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How often a drain looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The shipped flow.
pub(super) fn flow() -> Flow {
    Flow::vendas()
}

/// Everything that runs.
pub(super) struct Stage {
    folder: Folder,
    address: SocketAddr,
    store: SqliteStore,
    engine: Engine<SqliteStore>,
    supervisor: Supervisor,
    state: AppState<SqliteStore>,
    clock: Arc<dyn Clock>,
    log: DeliveryLog,
    server: Service,
    fake: Service,
}

/// Something that serves until it is told to stop.
struct Service {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

impl Service {
    fn start(serving: impl Future<Output = ()> + Send + 'static, stop: oneshot::Sender<()>) -> Self {
        let mut task = JoinSet::new();
        task.spawn(serving);
        Self { stop, task }
    }

    async fn stop(mut self) {
        drop(self.stop);
        while self.task.join_next().await.is_some() {}
    }
}

impl Stage {
    /// Puts everything together and starts it.
    pub(super) async fn set(port: Option<u16>, clock: Arc<dyn Clock>, seed: u64) -> anyhow::Result<Self> {
        let listener = listen(port).await?;
        let address = listener.local_addr()?;
        let folder = Folder::make()?;
        let fake = fake(address, Arc::clone(&clock), seed).await?;
        let (fake_address, log) = (fake.address()?, fake.log());
        let (stop, stopped) = oneshot::channel::<()>();
        let fake = Service::start(fake.serve(until(stopped)), stop);

        let store = wiring::open(&folder.0.join("demo.db"))?;
        let transport = HttpTransport::new(AddressGuard::new(&[fake_address.to_string()]), Arc::clone(&clock));
        let setup = engine_setup(fake_address);
        let started = Engine::start(store.clone(), setup, Arc::clone(&clock), Arc::new(transport)).await;
        let (engine, supervisor) = started.context("the engine does not start")?;
        let state = AppState::new(engine.clone(), server_setup());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = serve(listener, router(state.clone()), Limits::default(), until(stopped));
        let server = Service::start(async move { drop(serving.await) }, stop);
        Ok(Self { folder, address, store, engine, supervisor, state, clock, log, server, fake })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The figures of a line.
    pub(super) fn watch(&self) -> Watch {
        Watch {
            store: self.store.clone(),
            state: self.state.clone(),
            clock: Arc::clone(&self.clock),
            zone: flow().timezone,
        }
    }

    /// Where webhooks are posted to.
    pub(super) fn doorstep(&self) -> Doorstep {
        let transport = HttpTransport::new(AddressGuard::new(&[self.address.to_string()]), Arc::clone(&self.clock));
        Doorstep {
            base: format!("http://{}", self.address),
            hottok: HeaderValue::from_static(HOTTOK),
            hook_secret: HeaderValue::from_static(HOOK_SECRET),
            transport,
        }
    }

    /// Waits until the time is over, and then until nothing is undecided, under way or unsure; not for ever.
    pub(super) async fn drain(&self, time_left: Duration, patience: Duration) -> Result<(), String> {
        tokio::time::sleep(time_left).await;
        let until = self.clock.monotonic() + patience;
        loop {
            let stats = self.store.stats(self.clock.now()).await.map_err(|error| error.to_string())?;
            let events = |word: &str| stats.events.get(word).copied().unwrap_or(0);
            let tasks = |word: &str| stats.tasks.get(word).copied().unwrap_or(0);
            let open = [events("received"), tasks("sending"), tasks("unsure")];
            if open == [0, 0, 0] {
                return Ok(());
            }
            if self.clock.monotonic() >= until {
                let [undecided, sending, unsure] = open;
                return Err(format!("{undecided} events undecided, {sending} tasks sending, {unsure} unsure"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends everything in order and reads what is left. The second answer is how the engine ended.
    pub(super) async fn close(self) -> (anyhow::Result<Evidence>, Result<(), String>) {
        // The loops first: what is under way still gets its answer from the provider.
        let ended = self.supervisor.shutdown().await;
        self.server.stop().await;
        self.fake.stop().await;
        drop((self.state, self.engine));
        let read = evidence::read(&self.store, &self.log, flow()).await;
        self.store.close().await;
        drop(self.folder);
        (read, ended)
    }

    /// Ends everything without looking back.
    pub(super) async fn leave(self) {
        let _ = self.close().await;
    }
}

/// Resolves when the other end is dropped.
async fn until(stopped: oneshot::Receiver<()>) {
    let _ = stopped.await;
}

/// The port that was asked for; else 8080, else any.
async fn listen(port: Option<u16>) -> anyhow::Result<TcpListener> {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    match port {
        Some(port) => TcpListener::bind(address(port)).await.with_context(|| {
            format!("port {port} cannot be used, probably because another program listens there; try another --port")
        }),
        None => match TcpListener::bind(address(8080)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(address(0)).await.context("no port of 127.0.0.1 is free"),
        },
    }
}

async fn fake(server: SocketAddr, clock: Arc<dyn Clock>, seed: u64) -> anyhow::Result<FakeServer> {
    let mut headers = HeaderMap::new();
    headers.insert(HOOK_HEADER, HeaderValue::from_static(HOOK_SECRET));
    let webhook = Webhook { url: format!("http://{server}/in/{CHANNEL}"), headers };
    let fake = Fake::new(INSTANCE, API_KEY, few(), seed);
    let setup = FakeSetup { fake, clock, webhook: Some(webhook), log: None, tell: |_| {} };
    FakeServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), setup).await.context("the fake provider does not start")
}

fn engine_setup(fake: SocketAddr) -> EngineSetup {
    let channel = Channel {
        name: ChannelName::new(CHANNEL),
        tenant: Tenant::default(),
        kind: ChannelKind::Evolution {
            base_url: format!("http://{fake}"),
            instance: INSTANCE.to_owned(),
            api_key: Secret(API_KEY.as_bytes().to_vec()),
        },
        on_ambiguous: None,
        deadline: DEADLINE,
        concurrency: 64,
        rate: None,
        pair_every: None,
    };
    EngineSetup {
        flows: [(flow().name, Arc::new(flow()))].into(),
        channels: [(channel.name.clone(), Arc::new(channel))].into(),
        default_channel: Some(ChannelName::new(CHANNEL)),
        retry: RetryPolicy::recovery(),
        reconcile_for: RECONCILE_FOR,
        decide: true,
        deliver: true,
        tenant: Tenant::default(),
        keep: Retention { events: 90 * DAY, tasks: 90 * DAY, gate_held: 30 * DAY },
    }
}

fn server_setup() -> ServerSetup {
    let secret = |text: &str| vec![Secret(text.as_bytes().to_vec())];
    let hotmart = Auth::Header {
        name: "x-hotmart-hottok".to_owned(),
        secrets: secret(HOTTOK),
        or_body: Some("/hottok".to_owned()),
    };
    let evolution = Auth::Header { name: HOOK_HEADER.to_owned(), secrets: secret(HOOK_SECRET), or_body: None };
    let door = |name: &str, provider: Provider, auth: Auth, instance: Option<&str>| {
        Door::new(Source {
            name: SourceName::new(name),
            tenant: Tenant::default(),
            provider,
            account: name.to_owned(),
            flow: Some(FlowName::new("vendas")),
            channel: Some(ChannelName::new(CHANNEL)),
            auth,
            instance: instance.map(str::to_owned),
            cloud: None,
            mapping: None,
            origin: Vec::new(),
            body_bytes_max: 4 << 20,
        })
    };
    ServerSetup {
        proxies: retoma_server::Proxies::default(),
        doors: vec![
            door("hotmart", Provider::Hotmart, hotmart, None),
            door(CHANNEL, Provider::Evolution, evolution, Some(INSTANCE)),
        ],
        channels: vec![ChannelName::new(CHANNEL)],
        default_channel: Some(ChannelName::new(CHANNEL)),
        timezone: flow().timezone,
        locale: "pt-BR".to_owned(),
        local_key: None,
        random: random::bytes,
        version: wiring::VERSION,
        flow_source: None,
        gate: Default::default(),
    }
}

/// A folder among the system's temporary files, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn make() -> anyhow::Result<Self> {
        let name = format!("retoma-demo-{}-{}", std::process::id(), &random::text()[..8]);
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing depends on it; the system clears its temporary files, too.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
