//! `bench tarpit`: a hundred destinations to which messages leave at an even pace, one of which takes every request and never
//! answers. How late do the others' messages arrive, with and without it (E5)?

use std::time::Duration;

use anyhow::{Context, ensure};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::Store;
use serde::Serialize;

use super::child::Server;
use super::figures::Round;
use super::queue::{Queue, channel_name};
use super::rows::Rows;
use super::sink::Sink;
use super::{Bench, BenchArgs, Mode, stored};

/// Destinations, the tarpit included.
pub(super) const DESTINATIONS: u64 = 100;
/// Requests under way at once towards each: the default of a channel.
pub(super) const SEATS: usize = 8;
/// Messages for each second, to all destinations together.
const PER_SECOND: u64 = 1_000;
/// What the tarpit may cost the others.
const FACTOR: f64 = 1.25;
const EXTRA: Duration = Duration::from_millis(5);

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    bench: &'static str,
    store: &'static str,
    sync: &'static str,
    seconds: u64,
    destinations: u64,
    preloaded: u64,
    per_s: f64,
    /// Medians of the rounds: from the time that a message was promised for to its answer, 99 of 100 are faster.
    p99_alone_ms: f64,
    p99_ms: f64,
    /// Each round: alone, beside the tarpit.
    rounds: Vec<(f64, f64)>,
    /// Whether the second is at most 1.25 times the first and 5 ms.
    within: bool,
    lost: u64,
    doubled: u64,
    rss_mb: f64,
}

impl Found {
    pub(super) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut out = format!(
            "tarpit: {} destinations, {:.0} messages per second, {} s, synchronous=FULL, {} events stored before\n\n\
             lateness of 99 of 100 messages to the others, ms\n{:>10} {:>10}\n",
            self.destinations, self.per_s, self.seconds, self.preloaded, "alone", "beside it"
        );
        for (alone, beside) in &self.rounds {
            out.push_str(&format!("{alone:>10.0} {beside:>10.0}\n"));
        }
        let verdict = if self.within { "at most" } else { "MORE than" };
        out.push_str(&format!(
            "\nmedians {:.0} and {:.0}: {verdict} 1.25 times and 5 ms\nRSS {:.1} MB, lost {}, doubled {}\n",
            self.p99_alone_ms, self.p99_ms, self.rss_mb, self.lost, self.doubled
        ));
        out
    }
}

/// Rounds without and with the tarpit, alternating.
pub(super) async fn measure(bench: &Bench, args: &BenchArgs) -> anyhow::Result<Found> {
    let rows = Rows::new(bench.kind.happening(), bench.clock.now())?;
    stored::preload(&bench.workdir.base(), args.preload, &rows, &*bench.clock).await?;
    let tasks = args.tasks.unwrap_or(args.seconds * PER_SECOND);
    let over = Duration::from_secs(args.seconds);
    let queue = Queue { first: bench.first, tasks, from: bench.clock.now(), over, channels: DESTINATIONS };
    queue.prepare(&bench.workdir.base(), &rows).await?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for number in 1..=args.rounds {
        alone.push(round(bench, &queue, false).await?);
        beside.push(round(bench, &queue, true).await?);
        let (a, b) = (&alone[alone.len() - 1], &beside[beside.len() - 1]);
        tracing::info!(event = "bench_round", number, alone = ?a.p99, beside = ?b.p99, "two rounds are over");
    }
    let (p99_alone, p99) = (median(&alone), median(&beside));
    let all = || alone.iter().chain(&beside);
    Ok(Found {
        bench: "tarpit",
        store: "sqlite",
        sync: "FULL",
        seconds: args.seconds,
        destinations: DESTINATIONS,
        preloaded: args.preload,
        per_s: tasks as f64 / over.as_secs_f64(),
        p99_alone_ms: ms(p99_alone),
        p99_ms: ms(p99),
        rounds: alone.iter().zip(&beside).map(|(alone, beside)| (ms(alone.p99), ms(beside.p99))).collect(),
        within: is_within(p99_alone, p99),
        lost: all().map(|round| round.lost).sum(),
        doubled: all().map(|round| round.doubled).sum(),
        rss_mb: all().map(|round| round.rss_mb).fold(0.0, f64::max),
    })
}

async fn round(bench: &Bench, queue: &Queue, tarpit: bool) -> anyhow::Result<Round> {
    let database = bench.workdir.copy(if tarpit { "beside" } else { "alone" })?;
    let sink = Sink::open(tarpit).await?;
    let server =
        Server::start(bench.kind, Mode::Real, &database, bench.connections, Some(sink.address()), Some(queue.from))
            .await?;
    // The tarpit's own never arrive.
    let expected = if tarpit { queue.tasks - queue.tasks.div_ceil(DESTINATIONS) } else { queue.tasks };
    let (arrivals, begun) = (sink.arrivals(), bench.clock.monotonic());
    while arrivals.total() < expected && bench.clock.monotonic() - begun < queue.over + Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(arrivals.total() >= expected, "{} of {expected} messages arrived", arrivals.total());
    let rss_mb = server.peak_memory_mb()?;
    server.stop().await?;
    let store = SqliteStore::open(&database, Options::default()).context("the round's database does not open")?;
    let mut judged = queue.look(&store, &sink, Round { rss_mb, ..Round::default() }).await?;
    judged.p99 = lateness_of_others(&store).await?;
    store.close().await;
    bench.workdir.discard(&database);
    Ok(judged)
}

/// From the promised time to the answer, of messages to all destinations but the tarpit: 99 of 100 are faster.
async fn lateness_of_others(store: &SqliteStore) -> anyhow::Result<Duration> {
    let others = format!(
        "FROM attempt AS a JOIN task AS t ON t.seq = a.task
         WHERE a.outcome = 'accepted' AND t.channel <> '{}'",
        channel_name(0)
    );
    let number = |rows: Vec<Vec<serde_json::Value>>| rows.first().and_then(|row| row.first()?.as_u64());
    let count = number(store.query_sql(format!("SELECT count(*) {others}")).await?.rows).unwrap_or(0);
    let rank = (count * 99).div_ceil(100).max(1) - 1;
    let sql =
        format!("SELECT max(a.ended_at - t.scheduled_for, 0) AS late {others} ORDER BY late LIMIT 1 OFFSET {rank}");
    let millis = number(store.query_sql(sql).await?.rows).context("messages were accepted")?;
    Ok(Duration::from_millis(millis))
}

fn median(rounds: &[Round]) -> Duration {
    let mut p99: Vec<Duration> = rounds.iter().map(|round| round.p99).collect();
    p99.sort();
    p99.get(p99.len() / 2).copied().unwrap_or_default()
}

fn is_within(alone: Duration, beside: Duration) -> bool {
    beside <= alone.mul_f64(FACTOR) + EXTRA
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tarpit_may_cost_is_a_quarter_and_five_milliseconds() {
        let millis = Duration::from_millis;
        for (alone, beside, within) in [(10, 17, true), (10, 18, false), (0, 5, true), (0, 6, false)] {
            assert_eq!(is_within(millis(alone), millis(beside)), within, "{alone} and {beside}");
        }
        let rounds = [3, 9, 1, 7, 5].map(|p99| Round { p99: millis(p99), ..Round::default() });
        assert_eq!(median(&rounds), millis(5));
    }
}
