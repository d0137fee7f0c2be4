//! The measured server as a process of its own, so that its CPU time and its memory are nobody else's.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::{Kind, Mode};

/// The longest a server may take until it serves, and until it ended. Opening a large database is part of the first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server under way. Killed when dropped.
pub(super) struct Server {
    process: Child,
    pid: u32,
    address: SocketAddr,
    /// Closing it asks the server to end.
    stdin: ChildStdin,
}

impl Server {
    /// Starts this very program as a server on a database of its own, and waits until it serves.
    pub(super) async fn start(
        kind: Kind,
        mode: Mode,
        database: &Path,
        connections: usize,
        sink: Option<SocketAddr>,
        shows: Option<Timestamp>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("the program does not find itself")?;
        let mut command = Command::new(program);
        command.args(["bench-serve", "--kind", kind.as_str(), "--mode", mode.as_str(), "--db"]).arg(database);
        command.args(["--connections", &connections.to_string()]);
        if let Some(sink) = sink {
            command.args(["--sink", &sink.to_string()]);
        }
        if let Some(shows) = shows {
            command.args(["--shows", &shows.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("the measured server does not start")?;
        let pid = process.id().context("the measured server ended at once")?;
        let stdin = process.stdin.take().context("the measured server has no standard input")?;
        let stdout = process.stdout.take().context("the measured server has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let said =
            timeout(PATIENCE, lines.next_line()).await.context("the measured server takes too long to start")??;
        let Some(said) = said else { bail!("the measured server ended before it served; its reason stands above") };
        let address = said.trim().trim_start_matches("http://");
        let address = address.parse().with_context(|| format!("the measured server said {said:?} and no address"))?;
        Ok(Self { process, pid, address, stdin })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time so far, in user and kernel mode, of all its threads.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let path = format!("/proc/{}/stat", self.pid);
        let text = std::fs::read_to_string(&path).with_context(|| format!("{path} (the bench needs Linux)"))?;
        let ticks = ticks_of(&text).with_context(|| format!("{path} is not what Linux writes"))?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    }

    /// The most memory that it ever held, in MB.
    pub(super) fn peak_memory_mb(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/status", self.pid);
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let kib = peak_kib_of(&text).with_context(|| format!("{path} names no VmHWM"))?;
        Ok(kib as f64 * 1024.0 / 1e6)
    }

    /// Ends it in order, and waits for that: only then is everything it acknowledged in the file.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        let ended = timeout(PATIENCE, self.process.wait()).await.context("the measured server does not end")??;
        ensure!(ended.success(), "the measured server failed ({ended}); its reason stands above");
        Ok(())
    }
}

/// utime + stime. The second field, the program's name, may hold spaces and parentheses; the last `)` ends it.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn peak_kib_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_peak_memory_are_read_from_what_linux_writes() {
        let stat = "4711 (a) b (c)) S 1 4711 4711 0 -1 4194560 500 0 0 0 123 45 0 0 20 0 4 0 9 8 7 6 5";
        assert_eq!(ticks_of(stat), Some(168));
        assert_eq!(ticks_of("4711"), None);
        assert_eq!(peak_kib_of("VmPeak:\t  99 kB\nVmHWM:\t   51200 kB\n"), Some(51200));
        assert_eq!(peak_kib_of("VmPeak:\t  99 kB\n"), None);
    }
}
