//! `bench deliver` and `bench timers`: messages that were promised before the server started. The first asks how fast a
//! backlog leaves; the second, how late messages are that fall due evenly over some time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use retoma_core::ids::ChannelName;
use retoma_engine::{Clock, NewId};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::{Committed, Store};
use tokio::time::sleep;

use super::child::Server;
use super::effects::{CHANNEL, Effects};
use super::figures::Round;
use super::rows::Rows;
use super::sale::Sale;
use super::sink::Sink;
use super::stored::{new_ones, owner};

/// Promises in one commit of the preparation.
const BATCH: u64 = 500;
/// The preparation's page cache: it is not what is measured.
const CACHE_KIB: u32 = 512 * 1024;
/// The longest until the first message leaves.
const FIRST_WITHIN: Duration = Duration::from_secs(60);
/// Not measured: connections and batches find their size.
const WARM_UP: Duration = Duration::from_secs(1);
/// Between two looks at what arrived.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Rows in one page of the judge.
const PAGE: i64 = 5000;

/// The channel of that number.
pub(super) fn channel_name(n: u64) -> ChannelName {
    ChannelName::from(format!("{CHANNEL}-{n}"))
}

/// Messages that are promised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The first sale.
    pub(super) first: u64,
    /// How many.
    pub(super) tasks: u64,
    /// When the first one is due.
    pub(super) from: Timestamp,
    /// Over how long they fall due, evenly; zero for a backlog.
    pub(super) over: Duration,
    /// Over how many channels they are spread, one after the other.
    pub(super) channels: u64,
}

impl Queue {
    fn due(&self, n: u64) -> Timestamp {
        let part = self.over.as_secs_f64() * n as f64 / self.tasks.max(1) as f64;
        let millis = i64::try_from(Duration::from_secs_f64(part).as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(self.from.as_millisecond().saturating_add(millis)).unwrap_or(self.from)
    }

    /// Stores the sales, decided, each with its message promised for its time.
    pub(super) async fn prepare(&self, path: &Path, rows: &Rows) -> anyhow::Result<()> {
        let options = Options { writer_cache_kib: CACHE_KIB, ..Options::default() };
        let store = SqliteStore::open(path, options).context("the database of the run cannot be opened")?;
        let ids = NewId::new();
        let effects = Effects::new(rows, "http://127.0.0.1:1/", &ids, self.from)?;
        let mut next = 0;
        while next < self.tasks {
            let until = self.tasks.min(next + BATCH);
            let sales: Vec<u64> = (next..until).collect();
            next = until;
            let sale = |n: u64| Sale(self.first + n);
            let batch = sales.iter().map(|n| rows.intake(sale(*n), None, &ids, self.from)).collect();
            let stored = new_ones(store.append_events(batch).await?)?;
            let decisions = sales
                .iter()
                .zip(stored)
                .map(|(n, (event, contact))| {
                    let (mut commit, _) = effects.decision(rows, sale(*n), event, contact, self.from);
                    let task = &mut commit.decision.new_tasks[0];
                    (task.scheduled_for, task.next_attempt_at) = (self.due(*n), self.due(*n));
                    if self.channels > 1 {
                        task.channel = channel_name(*n % self.channels);
                    }
                    commit
                })
                .collect();
            let decided = store.commit_decisions(owner(), decisions).await?;
            ensure!(decided.iter().all(|one| matches!(one, Committed::Done { .. })), "a promise was not taken");
        }
        store.close().await;
        Ok(())
    }

    /// Watches what arrives: all of it, or as much as `measured` takes.
    pub(super) async fn watch(
        &self,
        server: &Server,
        sink: &Sink,
        measured: Duration,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Round> {
        let (arrivals, begun) = (sink.arrivals(), clock.monotonic());
        while arrivals.total() == 0 {
            if clock.monotonic() - begun > FIRST_WITHIN {
                bail!("no message left within {FIRST_WITHIN:?}");
            }
            sleep(LOOK_EVERY).await;
        }
        if self.over.is_zero() {
            sleep(WARM_UP).await;
        }
        let (begun, before, cpu) = (clock.monotonic(), arrivals.total(), server.cpu_time()?);
        while clock.monotonic() - begun < measured && arrivals.total() < self.tasks {
            sleep(LOOK_EVERY).await;
        }
        let window = clock.monotonic() - begun;
        let left = arrivals.total() - before;
        ensure!(left > 0, "the backlog was gone before it was measured: more --tasks, or fewer --seconds");
        let cpu = server.cpu_time()? - cpu;
        Ok(Round {
            per_s: left as f64 / window.as_secs_f64(),
            cpu_us_per_event: cpu.as_secs_f64() * 1e6 / left as f64,
            ..Round::default()
        })
    }

    /// Judges a round by what its database says was sent, and what arrived; adds how long requests took (a backlog) or how
    /// late they started. The server must have ended.
    pub(super) async fn judge(&self, database: &Path, sink: &Sink, round: Round) -> anyhow::Result<Round> {
        let store = SqliteStore::open(database, Options::default()).context("the round's database does not open")?;
        let judged = self.look(&store, sink, round).await;
        store.close().await;
        judged
    }

    pub(super) async fn look(&self, store: &SqliteStore, sink: &Sink, mut round: Round) -> anyhow::Result<Round> {
        let (mut after, mut sent) = (0, 0_u64);
        loop {
            let page = format!(
                "SELECT seq, order_txn, status FROM task WHERE seq > {after} AND order_txn IS NOT NULL ORDER BY seq LIMIT {PAGE}"
            );
            let rows = store.query_sql(page).await?.rows;
            let Some(last) = rows.last().and_then(|row| row.first()?.as_i64()) else { break };
            after = last;
            for row in &rows {
                let number = row.get(1).and_then(|txn| txn.as_str()?.strip_prefix("HP")?.parse().ok());
                let copies = number.map_or(0, |number| sink.arrivals().copies_of(number));
                let is_sent = row.get(2).and_then(|status| status.as_str()) == Some("sent");
                sent += u64::from(is_sent);
                round.lost += u64::from(is_sent && copies == 0);
                round.doubled += copies.saturating_sub(1);
            }
        }
        ensure!(sent > 0, "nothing was recorded as sent");
        let took = if self.over.is_zero() { "a.ended_at - a.started_at" } else { "a.started_at - t.scheduled_for" };
        (round.p50, round.p99) = (percentile(store, took, 50).await?, percentile(store, took, 99).await?);
        Ok(round)
    }
}

/// The value below or at which so many percent of the attempts lie, in whole milliseconds.
async fn percentile(store: &SqliteStore, took: &str, percent: u64) -> anyhow::Result<Duration> {
    let count = store.query_sql("SELECT count(*) FROM attempt WHERE ended_at IS NOT NULL".to_owned()).await?;
    let count = count.rows.first().and_then(|row| row.first()?.as_u64()).unwrap_or(0);
    let rank = (count * percent).div_ceil(100).max(1) - 1;
    let sql = format!(
        "SELECT {took} AS took FROM attempt AS a JOIN task AS t ON t.seq = a.task WHERE a.ended_at IS NOT NULL
         ORDER BY took LIMIT 1 OFFSET {rank}"
    );
    let found = store.query_sql(sql).await?;
    let millis = found.rows.first().and_then(|row| row.first()?.as_i64()).context("attempts have times")?;
    Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn armed_messages_fall_due_evenly() {
        let from = Timestamp::from_second(1_790_000_000).unwrap();
        let queue = Queue { first: 0, tasks: 1000, from, over: Duration::from_secs(600), channels: 1 };
        let at = |n| queue.due(n).duration_since(from).as_millis();
        assert_eq!((at(0), at(1), at(500), at(999)), (0, 600, 300_000, 599_400));
        let backlog = Queue { over: Duration::ZERO, ..queue };
        assert_eq!(backlog.due(999), from);
    }
}
