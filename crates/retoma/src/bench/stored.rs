//! The database without a server: filling it before a run, and how fast it is alone.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use retoma_core::decision::{Decision, EventOutcome};
use retoma_core::ids::{BucketNo, ContactId, EventId, Tenant};
use retoma_engine::{Clock, NewId};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::{Appended, Buckets, Committed, DecisionCommit, Intake, Owner, Started, Store};

use super::Kind;
use super::effects::Effects;
use super::judge;
use super::rows::Rows;
use super::sale::Sale;

/// Events in one commit of the preload.
const PRELOAD_BATCH: u64 = 10_000;
/// The preload's page cache: it is not what is measured.
const PRELOAD_CACHE_KIB: u32 = 512 * 1024;
/// Events in one commit of the bare database.
const BARE_BATCH: u64 = 256;

/// The single process owns everything.
pub(super) fn owner() -> Owner {
    Owner { node: "bench".to_owned(), buckets: Buckets::All }
}

/// Fills a new database with events that have their end; answers the number of the last row. Their raw bytes are left out:
/// they are appended and looked up by nobody, and every copy of the file would carry them.
pub(super) async fn preload(path: &Path, events: u64, rows: &Rows, clock: &dyn Clock) -> anyhow::Result<i64> {
    let options = Options {
        writer_cache_kib: PRELOAD_CACHE_KIB,
        // A page that keys in no order change many times in one large commit is written once.
        commit_items_max: usize::MAX,
        commit_bytes_max: usize::MAX,
        ..Options::default()
    };
    let store = SqliteStore::open(path, options).context("the database of the run cannot be made")?;
    let ids = NewId::new();
    let mut ends: Vec<DecisionCommit> = Vec::new();
    let mut first = 0;
    while first < events || !ends.is_empty() {
        let now = clock.now();
        let until = events.min(first + PRELOAD_BATCH);
        let batch: Vec<Intake> = (first..until).map(|n| rows.intake(Sale(n), None, &ids, now)).collect();
        first = until;
        // Asked for together, so that the ends of one batch are committed with the next one.
        let (appended, ended) =
            tokio::join!(store.append_events(batch), store.commit_decisions(owner(), std::mem::take(&mut ends)));
        ensure!(ended?.iter().all(|one| matches!(one, Committed::Done { .. })), "a preloaded event has no end");
        for (event, _) in new_ones(appended?)? {
            let outcome =
                EventOutcome { event, decided: true, result: "stored before the run".to_owned(), reason: None };
            let decision = Decision { events: vec![outcome], ..Decision::default() };
            let (tenant, bucket) = (Tenant::default(), BucketNo(0));
            ends.push(DecisionCommit { tenant, bucket, expected_version: 0, decision, now });
        }
    }
    let last = judge::last_row(&store).await?;
    // Whole in its one file, to be copied.
    store.close().await;
    Ok(last)
}

pub(super) fn new_ones(appended: Vec<Vec<Appended>>) -> anyhow::Result<Vec<(EventId, ContactId)>> {
    let new = |one| match one {
        Appended::New { event, contact: Some(contact) } => Ok((event, contact)),
        other => anyhow::bail!("an invented sale is new, and somebody's: {other:?}"),
    };
    appended.into_iter().flatten().map(new).collect()
}

/// How many events per second the store takes from one caller, without HTTP: all verbs that a sale goes through, one after
/// the other, 256 sales at a time.
pub(super) async fn bare(
    path: &Path,
    kind: Kind,
    first: u64,
    rows: &Rows,
    lasting: Duration,
    clock: &dyn Clock,
) -> anyhow::Result<f64> {
    let store = SqliteStore::open(path, Options::default()).context("the copy for the bare database does not open")?;
    let ids = NewId::new();
    let effects = Effects::new(rows, "http://127.0.0.1:1/", &ids, clock.now());
    let what = kind.happening();
    let begun = clock.monotonic();
    let mut next = first;
    while clock.monotonic() - begun < lasting {
        let now = clock.now();
        let sales: Vec<Sale> = (next..next + BARE_BATCH).map(Sale).collect();
        next += BARE_BATCH;
        let batch = sales.iter().map(|sale| rows.intake(*sale, Some(sale.body(what)), &ids, now)).collect();
        let stored = new_ones(store.append_events(batch).await?)?;
        // A backlog was decided before it was measured; here it is part of what one caller can do alone.
        if kind != Kind::Intake {
            let effects = effects.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
            deliver(&store, rows, effects, sales.into_iter().zip(stored), clock).await?;
        }
    }
    let per_s = (next - first) as f64 / (clock.monotonic() - begun).as_secs_f64();
    store.close().await;
    Ok(per_s)
}

async fn deliver(
    store: &SqliteStore,
    rows: &Rows,
    effects: &Effects,
    stored: impl Iterator<Item = (Sale, (EventId, ContactId))>,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    let now = clock.now();
    let (decisions, messages): (Vec<_>, Vec<_>) =
        stored.map(|(sale, (event, contact))| effects.decision(rows, sale, event, contact, now)).unzip();
    let decided = store.commit_decisions(owner(), decisions).await?;
    ensure!(decided.iter().all(|one| matches!(one, Committed::Done { .. })), "a decision was not taken: {decided:?}");
    let starts = messages.iter().map(|message| effects.start(message)).collect();
    let started = store.start_attempts(owner(), starts, now).await?;
    ensure!(started.iter().all(|one| *one == Started::Started { attempt: 1 }), "a start was not taken: {started:?}");
    let finishes = messages.into_iter().map(|message| effects.finish(message, 1, now)).collect();
    store.finish_attempts(finishes).await?;
    Ok(())
}
