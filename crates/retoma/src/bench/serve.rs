//! `retoma bench-serve`: the server under measurement, the real one or the null one, on a database of its own. Started by
//! `retoma bench`; says its address on standard output, ends when standard input closes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use retoma_core::ids::{ChannelName, FlowName, Tenant};
use retoma_core::retry::RetryPolicy;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{Clock, FastClock, HttpTransport, SystemClock};
use retoma_providers::inbound::Secret;
use retoma_providers::outbound::{Channel, ChannelKind};
use retoma_server::{Limits, LocalKey};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::config::{Setup, SourceSetup};
use crate::wiring::{self, Loops, Running};
use crate::{fail, output};

use super::effects::{CHANNEL, vendas};
use super::gate;
use super::null::{self, Behind};
use super::queue::channel_name;
use super::rows::source;
use super::tarpit::{DESTINATIONS, SEATS};
use super::{Kind, Mode};

/// What the child is told.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Which part of the way is measured
    #[arg(long, value_enum)]
    kind: Kind,
    /// The real server, or the one that reads and decides nothing
    #[arg(long, value_enum)]
    mode: Mode,
    /// The database, used by nobody else
    #[arg(long)]
    db: PathBuf,
    /// Requests under way at once towards the sink
    #[arg(long)]
    connections: usize,
    /// Where the pipeline's messages go; the discard port where there is no pipeline
    #[arg(long, default_value = "127.0.0.1:9")]
    sink: SocketAddr,
    /// What the clock shows at the start; the real time where nothing is said
    #[arg(long)]
    shows: Option<jiff::Timestamp>,
}

/// Serves until standard input closes or the process is told to end.
pub(crate) async fn serve(args: ServeArgs) -> anyhow::Result<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
    let address = listener.local_addr()?;
    // Intake alone decides and sends nothing, like `serve --role intake`; the null servers have loops of their own.
    let real = args.mode == Mode::Real;
    let loops = Loops {
        decide: real && args.kind == Kind::Pipeline,
        deliver: real && !matches!(args.kind, Kind::Intake | Kind::Gate),
    };
    let clock: Arc<dyn Clock> = match args.shows {
        Some(shows) => Arc::new(FastClock::new(shows, 1.0)),
        None => Arc::new(SystemClock::new()),
    };
    let key = (args.kind == Kind::Gate).then(|| LocalKey(gate::KEY.to_owned()));
    let mut running =
        wiring::start_at(wiring::open(&args.db)?, setup(&args, address)?, loops, key, None, clock).await?;
    let (router, behind) = match (args.mode, args.kind) {
        (Mode::Real, _) => (retoma_server::router(running.state.clone()), Behind::default()),
        (Mode::Null, Kind::Deliver | Kind::Timers) => {
            let behind = null::deliver(&running.engine, &url(args.sink), transport(&args, &running), args.connections)?;
            (axum::Router::new(), behind)
        }
        (Mode::Null, Kind::Gate) => (gate::null(&running.engine), Behind::default()),
        (Mode::Null, _) => null_router(&args, &running)?,
    };
    output::line(&format!("http://{address}"));
    let failed = tokio::select! {
        // Ended or broken, the router is gone after it, and with it what feeds the loops behind it.
        served = retoma_server::serve(listener, router, Limits::default(), told_to_end()) => {
            served.err().map(|error| error.to_string())
        }
        failed = running.supervisor.failed() => Some(failed),
    };
    if let Some(failed) = failed {
        bail!("the measured server broke: {failed}");
    }
    behind.end().await?;
    running.stop().await?;
    Ok(fail::DONE)
}

fn null_router(args: &ServeArgs, running: &Running) -> anyhow::Result<(axum::Router, Behind)> {
    null::router(args.kind, &running.engine, &url(args.sink), transport(args, running))
}

fn transport(args: &ServeArgs, running: &Running) -> Arc<HttpTransport> {
    let guard = AddressGuard::new(&[args.sink.to_string()]);
    Arc::new(HttpTransport::new(guard, Arc::clone(running.engine.clock())))
}

fn url(sink: SocketAddr) -> String {
    format!("http://{sink}/")
}

/// What a configuration with one Hotmart source, the shipped flow and one signed HTTP channel comes to.
fn setup(args: &ServeArgs, listen: SocketAddr) -> anyhow::Result<Setup> {
    let flow = FlowName::new("vendas");
    let channel = |name: ChannelName, url: String, concurrency: usize| Channel {
        name,
        tenant: Tenant::default(),
        kind: ChannelKind::Http { url, secret: Some(Secret(b"bench-signing-key".to_vec())) },
        on_ambiguous: None,
        deadline: Duration::from_secs(45),
        concurrency,
        rate: None,
        pair_every: None,
    };
    let channels = if args.kind == Kind::Tarpit {
        // As a configuration that says nothing of it.
        (0..DESTINATIONS).map(|n| channel(channel_name(n), format!("{}{n}", url(args.sink)), SEATS)).collect()
    } else {
        // As many as can wait for their message; the default of 8 would measure the receiver.
        vec![channel(ChannelName::new(CHANNEL), url(args.sink), args.connections)]
    };
    let default_channel = channels.first().map(|channel| channel.name.clone());
    Ok(Setup {
        proxies: retoma_server::Proxies::default(),
        listen,
        public_url: None,
        database: args.db.clone(),
        timezone: jiff::tz::TimeZone::UTC,
        locale: "pt-BR".to_owned(),
        flows: [(flow.clone(), Arc::new(vendas()?))].into(),
        flow_files: [(flow.clone(), "vendas.yaml".to_owned())].into(),
        flow_texts: [(flow, retoma_core::flow::VENDAS.to_owned())].into(),
        sources: vec![SourceSetup {
            source: source(),
            rate: None,
            rate_per_address: None,
            addresses: None,
            reconcile: None,
        }],
        channels,
        default_channel,
        outbound_allow: vec![args.sink.to_string()],
        gate: retoma_server::gate::GateScopes::new(),
        outbound_ca: Vec::new(),
        retry: RetryPolicy::recovery(),
        reconcile_for: Duration::from_secs(60),
    })
}

/// Resolves when the parent closes our standard input, or the process is told to end.
async fn told_to_end() {
    let (closed, closes) = oneshot::channel();
    // A thread, since a read that never returns cannot be taken back. It ends with the process.
    let reads = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = closed.send(());
    });
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await.ok_or_else(|| anyhow!("no signal can be heard")),
            Err(error) => Err(error.into()),
        }
    };
    tokio::select! {
        Ok(()) = closes, if reads.is_ok() => {}
        Ok(()) = terminated => {}
        else => {}
    }
}
