//! `retoma serve`: everything, until it is told to stop or cannot keep its promises any more.
//!
//! The end, in order: no new connection, requests under way are answered, the committer drains, nothing new starts, sends
//! under way land and are stored, the database is given back, exit 0. If the storage fails, what was not acknowledged is
//! refused and the exit is not 0, so that a service manager and a person notice.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, anyhow};
use retoma_server::{Limits, LocalKey};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::{Role, Serve};
use crate::fail::{DONE, usage};
use crate::local::LocalServer;
use crate::wiring::{self, Loops};
use crate::{output, random};

use super::load;

/// Why it ends.
enum End {
    /// A person or the service manager asked for it.
    Asked(&'static str),
    /// The listener broke.
    Server(std::io::Result<()>),
    /// The engine cannot go on.
    Broken(String),
}

pub(crate) async fn run(config: &Path, args: &Serve) -> anyhow::Result<u8> {
    // First of all: whoever is told to end before everything stands must end in order, too.
    let mut signals = Signals::catch()?;
    let works = works(&args.role)?;
    let setup = load::setup(config)?;
    let listener = TcpListener::bind(setup.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", setup.listen))?;
    let address = listener.local_addr()?;
    let database = setup.database.clone();
    let shown = Shown::of(&setup);
    let store = wiring::open(&database)?;
    wiring::publish(&store, &setup).await?;
    let key = random::text();
    let loops = Loops { decide: works, deliver: works };
    let source = load::flow_source(config);
    let mut running = wiring::start(store, setup, loops, Some(LocalKey(key.clone())), Some(source)).await?;
    let local = LocalServer { url: format!("http://{}", reachable(address)), key, pid: std::process::id() };
    let published = local.write(&database).context("the local key file cannot be written")?;
    shown.print(&local.url, &database);

    let (stop, mut stopped) = watch::channel(false);
    let router = retoma_server::router(running.state.clone());
    let server = retoma_server::serve(listener, router, Limits::default(), async move {
        // An error means that the sender is gone, which is as good a reason.
        let _ = stopped.wait_for(|stop| *stop).await;
    });
    let mut server = std::pin::pin!(server);
    // Beside the server, which answers meanwhile.
    let mut reloads = JoinSet::new();
    let end = loop {
        tokio::select! {
            // Cancel-safe: the server goes on where it stood, signals stay pending, a failure is told again.
            served = &mut server => break End::Server(served),
            signal = signals.next() => match signal {
                Said::End(name) => break End::Asked(name),
                Said::Reload => {
                    let state = running.state.clone();
                    // What came of it is in the log and under /v1/flows.
                    reloads.spawn(async move { retoma_server::flows::reload(&state, "SIGHUP").await.is_ok() });
                }
            },
            why = running.supervisor.failed() => break End::Broken(why),
        }
    };
    reloads.shutdown().await;
    if !matches!(end, End::Server(_)) {
        tracing::info!(event = "stopping", "no new requests; finishing what is under way");
        stop.send_replace(true);
        server.await.context("the server did not end well")?;
    }
    let ended = running.stop().await;
    drop(published);
    match end {
        End::Asked(name) => {
            ended.context("the loops did not end well")?;
            tracing::info!(event = "stopped", signal = name, "everything acknowledged is on disk");
            Ok(DONE)
        }
        End::Server(served) => Err(anyhow!("the listener ended: {served:?}")),
        End::Broken(why) => Err(anyhow!(
            "the engine cannot keep its promises and stopped: {why}. Everything acknowledged is on disk; nothing else was \
             acknowledged. Check the disk and start again"
        )),
    }
}

/// Whether this process decides and sends.
fn works(roles: &[Role]) -> anyhow::Result<bool> {
    if roles.contains(&Role::Watch) {
        return Err(usage("--role watch is not available in this version; watch /healthz/pipeline from outside"));
    }
    let works = roles.is_empty() || roles.contains(&Role::Work);
    if !works {
        // The one process on a SQLite file is the only one that could do it.
        tracing::warn!(event = "no_work", "without --role work nothing is decided or sent on this database");
    }
    Ok(works)
}

/// The address under which this machine reaches a listener.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, v6.port())),
        other => other,
    }
}

/// What a person or a service manager sends to a process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Flows are to be read anew (`systemctl reload`, `kill -HUP`).
    hang_up: Signal,
}

/// What a signal asks for.
enum Said {
    End(&'static str),
    Reload,
}

impl Signals {
    fn catch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Said {
        tokio::select! {
            _ = self.terminate.recv() => Said::End("SIGTERM"),
            _ = self.interrupt.recv() => Said::End("SIGINT"),
            _ = self.hang_up.recv() => Said::Reload,
        }
    }
}

/// What is said at the start: addresses to give to the senders.
struct Shown {
    sources: Vec<String>,
    public_url: Option<String>,
}

impl Shown {
    fn of(setup: &crate::config::Setup) -> Self {
        Self {
            sources: setup.sources.iter().map(|source| source.source.name.to_string()).collect(),
            public_url: setup.public_url.clone(),
        }
    }

    fn print(&self, url: &str, database: &Path) {
        let public = self.public_url.as_deref().unwrap_or(url).trim_end_matches('/');
        output::line(&format!(
            "Retoma {} on {url} (status page: {url}/), database {}",
            wiring::VERSION,
            database.display()
        ));
        for source in &self.sources {
            output::line(&format!("  webhooks of {source}: {public}/in/{source}"));
        }
        output::line("  Ctrl-C ends it in order");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_listener_is_reached_on_loopback() {
        for (listening, reached) in
            [("0.0.0.0:8080", "127.0.0.1:8080"), ("[::]:8080", "[::1]:8080"), ("10.0.0.5:80", "10.0.0.5:80")]
        {
            assert_eq!(reachable(listening.parse().unwrap()).to_string(), reached);
        }
    }
}
