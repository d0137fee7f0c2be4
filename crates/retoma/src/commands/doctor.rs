//! `retoma doctor`: whether this installation can keep its promises. Looks, and changes nothing but a file it removes again.

use std::io::Write;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::local_time::zone_data_version;
use retoma_engine::{Clock, SystemClock};
use retoma_providers::outbound::{Channel, ChannelKind};
use serde_json::json;
use tokio::net::TcpStream;

use crate::config::{Setup, folder_of, port_of};
use crate::fail::{DONE, FAILED};
use crate::{config, local, output, wiring};

use super::load;

/// One thing looked at.
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

/// Syncs that are timed.
const SYNCS: u32 = 20;
/// Less room than this and the next busy day may fill the disk.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// How long a channel may take to accept a connection.
const CONNECT_FOR: Duration = Duration::from_secs(3);
/// No clock that is right shows a time before this program was written.
const WRITTEN_AT: i64 = 1_764_000_000;

pub(crate) async fn run(config: &Path, json: bool) -> anyhow::Result<u8> {
    let mut checks = vec![];
    let loaded = load::loaded(config)?;
    let (errors, warnings) = load::split(&loaded.findings);
    let detail = format!("{} error(s), {} warning(s); `retoma check` shows them", errors.len(), warnings.len());
    checks.push(Check { name: "configuration".into(), ok: errors.is_empty(), detail });
    let database = config::whereabouts(config).map_err(|error| load::unreadable(config, &error))?.database;
    checks.push(clock());
    checks.push(durability(&database));
    checks.push(room(&database));
    checks.push(storage(&database).await);
    if let Some(setup) = &loaded.setup {
        for channel in &setup.channels {
            checks.push(reach(channel).await);
        }
        checks.push(sources(setup));
    }
    let ok = checks.iter().all(|check| check.ok);
    if json {
        let shown = checks.iter().map(|check| json!({ "name": check.name, "ok": check.ok, "detail": check.detail }));
        output::json(&json!({ "checks": shown.collect::<Vec<_>>(), "ok": ok }));
    } else {
        for check in &checks {
            let word = if check.ok { "ok  " } else { "BAD " };
            output::line(&format!("{word} {}: {}", check.name, check.detail));
        }
    }
    Ok(if ok { DONE } else { FAILED })
}

fn clock() -> Check {
    let now: Timestamp = SystemClock::new().now();
    let ok = now.as_second() > WRITTEN_AT;
    let detail = if ok {
        format!("{now}, zone data {}", zone_data_version())
    } else {
        format!("{now} is in the past: set the clock, best by NTP")
    };
    Check { name: "clock".into(), ok, detail }
}

/// Times real syncs in the database's folder. A disk that "syncs" in microseconds lies about it.
fn durability(database: &Path) -> Check {
    let name = "disk".to_owned();
    match timed_syncs(database) {
        Ok(each) => {
            let micros = each.as_micros();
            let detail = match micros {
                0..=20 => format!(
                    "a sync takes {micros} us: this storage may not survive a power loss (memory or no barrier)"
                ),
                _ => format!("a sync takes {:.2} ms", each.as_secs_f64() * 1000.0),
            };
            Check { name, ok: true, detail }
        }
        Err(error) => {
            Check { name, ok: false, detail: format!("the database's folder cannot be written and synced: {error}") }
        }
    }
}

fn timed_syncs(database: &Path) -> std::io::Result<Duration> {
    let probe = folder_of(database).join(format!(".retoma-doctor-{}", std::process::id()));
    let clock = SystemClock::new();
    let result = (|| {
        let mut file = std::fs::File::create(&probe)?;
        let began = clock.monotonic();
        for _ in 0..SYNCS {
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
        }
        Ok((clock.monotonic() - began) / SYNCS)
    })();
    let _ = std::fs::remove_file(&probe);
    result
}

fn room(database: &Path) -> Check {
    let name = "room".to_owned();
    match rustix::fs::statvfs(folder_of(database)) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let detail = format!("{} MiB free beside the database", free >> 20);
            Check { name, ok: free >= FREE_BYTES_MIN, detail }
        }
        Err(error) => Check { name, ok: false, detail: format!("unknown: {error}") },
    }
}

/// Opens the database unless a server has it, and then asks the server.
async fn storage(database: &Path) -> Check {
    let name = "database".to_owned();
    if let Some(server) = local::LocalServer::read(database) {
        let address = server.url.trim_start_matches("http://").to_owned();
        if tokio::time::timeout(CONNECT_FOR, TcpStream::connect(address)).await.is_ok_and(|stream| stream.is_ok()) {
            let detail = format!("in use by the server on {} (process {})", server.url, server.pid);
            return Check { name, ok: true, detail };
        }
    }
    if !database.exists() {
        return Check { name, ok: true, detail: "not made yet; `retoma serve` makes it".into() };
    }
    match wiring::open(database) {
        Ok(store) => {
            store.close().await;
            Check { name, ok: true, detail: "opens, its settings hold, its schema is this version's".into() }
        }
        Err(error) => Check { name, ok: false, detail: format!("{error:#}") },
    }
}

async fn reach(channel: &Channel) -> Check {
    let name = format!("channel {}", channel.name);
    let url = match &channel.kind {
        ChannelKind::Evolution { base_url, .. } => base_url,
        ChannelKind::Http { url, .. } => url,
    };
    let uri: http::Uri = url.parse().expect("the configuration's addresses were checked");
    let host = uri.host().unwrap_or_default().to_owned();
    let port = port_of(&uri);
    // Only host and port are shown: the path of a webhook address often is its credential.
    let place = format!("{host}:{port}");
    let Some(address) = (host.as_str(), port).to_socket_addrs().ok().and_then(|mut found| found.next()) else {
        return Check { name, ok: false, detail: format!("{place} has no address (DNS)") };
    };
    match tokio::time::timeout(CONNECT_FOR, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Check { name, ok: true, detail: format!("{place} accepts connections") },
        Ok(Err(error)) => Check { name, ok: false, detail: format!("{place} cannot be reached: {}", error.kind()) },
        Err(_) => Check { name, ok: false, detail: format!("{place} does not answer within 3 s") },
    }
}

fn sources(setup: &Setup) -> Check {
    let unsigned: Vec<_> = setup
        .sources
        .iter()
        .filter(|source| matches!(source.source.auth, retoma_providers::inbound::Auth::None))
        .map(|source| source.source.name.as_str())
        .collect();
    let detail = match unsigned.as_slice() {
        [] => format!("{} source(s), each with a credential", setup.sources.len()),
        names => format!("without a credential, anybody can send: {}", names.join(", ")),
    };
    Check { name: "sources".into(), ok: true, detail }
}
