//! `retoma bench`: how fast this machine is with this program, beside a null server in the same run (DESIGN.md, "Speed").
//!
//! Run by people and by `./bench`, never by tests of correctness. This process is the load generator, the receiving end and
//! the judge; the measured server is a child process with its CPU time and memory to itself, on a fresh copy of a database
//! that was filled before. Real and null rounds alternate, so that a slow minute of the disk hits both.
//!
//! Every commit is synced: there is no faster setting to measure with. What is acknowledged and not found afterwards, or
//! found twice, is counted, and makes the command fail.

mod child;
mod effects;
mod figures;
mod gate;
mod judge;
mod load;
mod null;
mod queue;
mod rows;
mod sale;
mod serve;
mod sink;
mod stored;
mod tarpit;
mod wire;
mod workdir;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use retoma_engine::{Clock, SystemClock};

use crate::{fail, output};

use child::Server;
use figures::{Figures, Round, Rounds, Setting, percentile};
use load::Load;
use queue::Queue;
use rows::Rows;
use sale::{Happening, PHONES, SALES_MAX, Sale};
pub(crate) use serve::{ServeArgs, serve};
use sink::Sink;
use workdir::Workdir;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A webhook comes in and is acknowledged, on disk.
    Intake,
    /// From the webhook to the message at its receiver.
    Pipeline,
    /// A backlog of due messages leaves.
    Deliver,
    /// Many messages are armed and fall due evenly: how long until it serves, how late they leave.
    Timers,
    /// A hundred destinations, one of which takes every request and never answers: what it costs the others.
    Tarpit,
    /// Keys are claimed and completed at the gate, over two requests each.
    Gate,
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Retoma.
    Real,
    /// The one that reads and decides nothing.
    Null,
}

/// Options of `retoma bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// What is measured
    #[arg(value_enum)]
    kind: Kind,
    /// sqlite://PATH measures on the disk of PATH, without touching it; temporary files by default
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Measured seconds of each round, after one second of warm-up
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=2048))]
    connections: u64,
    /// Events stored before
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    preload: u64,
    /// Rounds against each server; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    rounds: u64,
    /// deliver, timers, tarpit: messages promised before; by default 15000 for each second (deliver), a million (timers), 1000
    /// for each second (tarpit)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    tasks: Option<u64>,
    /// timers: over how many seconds they fall due, evenly
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    over: u64,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Intake => "intake",
            Kind::Pipeline => "pipeline",
            Kind::Deliver => "deliver",
            Kind::Timers => "timers",
            Kind::Tarpit => "tarpit",
            Kind::Gate => "gate",
        }
    }

    fn happening(self) -> Happening {
        if self == Kind::Intake { Happening::PixPrinted } else { Happening::Approved }
    }
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Mode::Real => "real",
            Mode::Null => "null",
        }
    }
}

/// Measures and prints. Fails if anything was lost or doubled.
pub(crate) async fn run(args: &BenchArgs, json: bool) -> anyhow::Result<u8> {
    let kind = args.kind;
    let first = args.preload.next_multiple_of(PHONES);
    if first >= SALES_MAX {
        return Err(fail::usage(format!("--preload: at most {}, so that every buyer has a phone", SALES_MAX - PHONES)));
    }
    let bench = Bench {
        kind,
        first,
        connections: usize::try_from(args.connections)?,
        measured: Duration::from_secs(args.seconds),
        clock: Arc::new(SystemClock::new()),
        workdir: Workdir::make(args.store.as_deref(), args.preload)?,
    };
    if kind == Kind::Tarpit {
        let found = tokio::select! {
            found = tarpit::measure(&bench, args) => found?,
            () = interrupted() => bail!("interrupted; nothing was measured"),
        };
        output::line(&if json { found.json()? } else { found.table() });
        return Ok(if found.is_clean() { fail::DONE } else { fail::FAILED });
    }
    // Both ends drop what they hold: children are killed, files removed.
    let figures = tokio::select! {
        figures = async {
            if kind == Kind::Gate { gate::measure(&bench, args).await } else { bench.measure(args).await }
        } => figures?,
        () = interrupted() => bail!("interrupted; nothing was measured"),
    };
    output::line(&if json { figures.json()? } else { figures.table() });
    Ok(if figures.are_clean() { fail::DONE } else { fail::FAILED })
}

async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

struct Bench {
    kind: Kind,
    /// The first sale that is not preloaded.
    first: u64,
    connections: usize,
    measured: Duration,
    clock: Arc<dyn Clock>,
    workdir: Workdir,
}

impl Bench {
    async fn measure(&self, args: &BenchArgs) -> anyhow::Result<Figures> {
        let rows = Rows::new(self.kind.happening(), self.clock.now())?;
        let setting = Setting {
            bench: self.kind.as_str(),
            seconds: args.seconds,
            connections: self.connections,
            preloaded: args.preload,
            payload_bytes: Sale(self.first).body(self.kind.happening()).len(),
            sync_time: self.workdir.sync_time(&*self.clock)?,
            in_memory: self.workdir.is_in_memory(),
        };
        tracing::info!(event = "bench_preload", events = args.preload, "storing events before the rounds");
        let last_row = stored::preload(&self.workdir.base(), args.preload, &rows, &*self.clock).await?;
        if matches!(self.kind, Kind::Deliver | Kind::Timers) {
            return self.measure_queue(args, setting, &rows).await;
        }
        let (mut real, mut null) = (Rounds::default(), Rounds::default());
        for number in 1..=args.rounds {
            for (mode, rounds) in [(Mode::Null, &mut null), (Mode::Real, &mut real)] {
                let round = self.round(mode, last_row).await?;
                tracing::info!(
                    event = "bench_round",
                    number,
                    mode = mode.as_str(),
                    per_s = round.per_s,
                    "a round is over"
                );
                rounds.0.push(round);
            }
        }
        let bare_per_s = self.bare(&rows, self.first).await?;
        Ok(Figures { setting, real, null, bare_per_s, start: None })
    }

    /// One round against one server on a fresh copy.
    async fn round(&self, mode: Mode, last_row: i64) -> anyhow::Result<Round> {
        let database = self.workdir.copy(mode.as_str())?;
        let sink = match self.kind {
            Kind::Pipeline => Some(Sink::open(false).await?),
            _ => None,
        };
        let to = sink.as_ref().map(Sink::address);
        let server = Server::start(self.kind, mode, &database, self.connections, to, None).await?;
        let load = Load {
            what: self.kind.happening(),
            first: self.first,
            connections: self.connections,
            measured: self.measured,
            arrivals: sink.as_ref().map(|sink| Arc::clone(sink.arrivals())),
        };
        let seen = load::run(load, &server, Arc::clone(&self.clock)).await?;
        let rss_mb = server.peak_memory_mb()?;
        server.stop().await?;
        let arrivals = sink.as_ref().map(|sink| &**sink.arrivals());
        let verdict = judge::judge(&database, last_row, &seen.acknowledged, arrivals).await?;
        self.workdir.discard(&database);
        if let Some(refusal) = &seen.refusal {
            tracing::warn!(
                event = "bench_refused",
                count = seen.refused,
                first = refusal,
                "requests were not acknowledged"
            );
        }
        Ok(Round {
            per_s: seen.closed as f64 / seen.window.as_secs_f64(),
            p50: percentile(&seen.times_us, 50),
            p99: percentile(&seen.times_us, 99),
            cpu_us_per_event: seen.cpu.as_secs_f64() * 1e6 / seen.closed as f64,
            rss_mb,
            lost: verdict.lost,
            doubled: verdict.doubled,
            refused: seen.refused,
        })
    }

    /// `deliver` and `timers`: what is sent was promised before the server started.
    async fn measure_queue(&self, args: &BenchArgs, setting: Setting, rows: &Rows) -> anyhow::Result<Figures> {
        let timers = self.kind == Kind::Timers;
        let backlog = (args.seconds + 2) * 15_000;
        let tasks = args.tasks.unwrap_or(if timers { 1_000_000 } else { backlog });
        let over = if timers { Duration::from_secs(args.over) } else { Duration::ZERO };
        let queue = Queue { first: self.first, tasks, from: self.clock.now(), over, channels: 1 };
        tracing::info!(event = "bench_promise", tasks, "promising messages before the rounds");
        queue.prepare(&self.workdir.base(), rows).await?;
        let (mut real, mut null, mut start) = (Rounds::default(), Rounds::default(), Duration::ZERO);
        // Lateness needs the whole time once; there is nothing to compare it with.
        let rounds = if timers { 1 } else { args.rounds };
        for number in 1..=rounds {
            if !timers {
                null.0.push(self.queue_round(Mode::Null, &queue).await?.0);
            }
            let (round, started_in) = self.queue_round(Mode::Real, &queue).await?;
            tracing::info!(event = "bench_round", number, per_s = round.per_s, "a round is over");
            start = start.max(started_in);
            real.0.push(round);
        }
        let bare_per_s = if timers { 0.0 } else { self.bare(rows, self.first + tasks).await? };
        Ok(Figures { setting, real, null, bare_per_s, start: Some(start) })
    }

    /// One round of a queue on a fresh copy; answers how long the server took to start, too.
    async fn queue_round(&self, mode: Mode, queue: &Queue) -> anyhow::Result<(Round, Duration)> {
        let database = self.workdir.copy(mode.as_str())?;
        let sink = Sink::open(false).await?;
        let timers = self.kind == Kind::Timers;
        // The clock of a run of timers shows the instant for which the first one is promised.
        let shows = timers.then_some(queue.from);
        let begun = self.clock.monotonic();
        let server = Server::start(self.kind, mode, &database, self.connections, Some(sink.address()), shows).await?;
        let started_in = self.clock.monotonic() - begun;
        let measured = if timers { queue.over + Duration::from_secs(30) } else { self.measured };
        let mut round = queue.watch(&server, &sink, measured, &self.clock).await?;
        round.rss_mb = server.peak_memory_mb()?;
        server.stop().await?;
        let round = queue.judge(&database, &sink, round).await?;
        self.workdir.discard(&database);
        Ok((round, started_in))
    }

    async fn bare(&self, rows: &Rows, first: u64) -> anyhow::Result<f64> {
        let database = self.workdir.copy("bare")?;
        let per_s = stored::bare(&database, self.kind, first, rows, self.measured, &*self.clock).await?;
        self.workdir.discard(&database);
        Ok(per_s)
    }
}
