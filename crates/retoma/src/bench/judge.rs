//! What became of the acknowledged events: each must be in the store once, and its message at the sink once.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, ensure};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::Store;

use super::sale::Sale;
use super::sink::Arrivals;

/// Rows in one look.
const PAGE: usize = 5000;

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Acknowledged, and not in the store, or without its message.
    pub(super) lost: u64,
    /// Copies beyond the first, in the store or at the sink.
    pub(super) doubled: u64,
}

/// The last row before a round.
pub(super) async fn last_row<S: Store>(store: &S) -> anyhow::Result<i64> {
    let found = store.query_sql("SELECT coalesce(max(seq), 0) FROM event".to_owned()).await?;
    found.rows.first().and_then(|row| row.first()?.as_i64()).context("the number of the last event is a number")
}

/// Judges a round by the rows that came after `after`. The server must have ended.
pub(super) async fn judge(
    database: &Path,
    after: i64,
    acknowledged: &[Sale],
    arrivals: Option<&Arrivals>,
) -> anyhow::Result<Verdict> {
    let store = SqliteStore::open(database, Options::default()).context("the round's database does not open")?;
    let stored = stored_after(&store, after).await;
    store.close().await;
    Ok(compare(acknowledged, &stored?, arrivals))
}

/// How often each sale's event is stored.
async fn stored_after<S: Store>(store: &S, mut after: i64) -> anyhow::Result<HashMap<u64, u64>> {
    let mut stored = HashMap::new();
    loop {
        let page = format!("SELECT seq, key FROM event WHERE seq > {after} ORDER BY seq LIMIT {PAGE}");
        let rows = store.query_sql(page).await?.rows;
        let Some(last) = rows.last().and_then(|row| row.first()?.as_i64()) else { return Ok(stored) };
        ensure!(last > after, "events come in the order of their numbers");
        after = last;
        for row in &rows {
            let sale = row.get(1).and_then(|key| Sale::of_key(key.as_str()?));
            if let Some(sale) = sale {
                *stored.entry(sale.0).or_default() += 1;
            }
        }
    }
}

fn compare(acknowledged: &[Sale], stored: &HashMap<u64, u64>, arrivals: Option<&Arrivals>) -> Verdict {
    let mut verdict = Verdict::default();
    for sale in acknowledged {
        let rows = stored.get(&sale.0).copied().unwrap_or(0);
        let copies = arrivals.map_or(1, |arrivals| arrivals.copies(*sale));
        verdict.lost += u64::from(rows == 0 || copies == 0);
        verdict.doubled += rows.saturating_sub(1) + copies.saturating_sub(1);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_lost_and_what_is_there_twice_is_doubled() {
        let stored = HashMap::from([(1, 1), (2, 2), (4, 1)]);
        let acknowledged = [1, 2, 3].map(Sale);
        assert_eq!(compare(&acknowledged, &stored, None), Verdict { lost: 1, doubled: 1 });
        let nothing_arrived = Arrivals::default();
        assert_eq!(compare(&acknowledged, &stored, Some(&nothing_arrived)), Verdict { lost: 3, doubled: 1 });
    }
}
