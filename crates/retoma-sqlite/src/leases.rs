//! Leases: served where somebody wants several nodes on one file (the simulator); otherwise the process owns all.

use jiff::SignedDuration;
use retoma_core::ids::{BUCKETS, BucketNo, Epoch};
use retoma_store::{Buckets, Lease, LeaseRequest, Owner};
use rusqlite::params;

use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;

/// What the only process of a file owns.
pub(crate) fn everything(request: &LeaseRequest, store_now: jiff::Timestamp) -> Lease {
    Lease { owner: Owner { node: request.node.clone(), buckets: Buckets::All }, store_now }
}

impl Database {
    /// See [`Store::acquire_leases`](retoma_store::Store::acquire_leases).
    pub fn acquire_leases(&self, request: &LeaseRequest) -> retoma_store::Result<Lease> {
        if !request.explicit {
            return Ok(everything(request, self.now()));
        }
        Ok(self.acquire(request)?)
    }

    /// Renews, then takes what no living node holds. A bucket's row changes only on handover, and its epoch only grows.
    fn acquire(&self, request: &LeaseRequest) -> Result<Lease> {
        let now = self.now();
        let lease = SignedDuration::try_from(request.lease).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(lease).map_or(i64::MAX, ms);
        self.connection
            .prepare_cached(
                "INSERT INTO lease_node (node, until) VALUES (?1, ?2) ON CONFLICT (node) DO UPDATE SET until = excluded.until",
            )?
            .execute(params![request.node, until])?;
        let mut owned = self.owned(&request.node)?;
        if owned.len() > request.max_buckets {
            for (bucket, _) in owned.split_off(request.max_buckets) {
                self.connection
                    .prepare_cached("UPDATE lease_bucket SET node = NULL WHERE bucket = ?1")?
                    .execute([bucket.0])?;
            }
        }
        for bucket in self.free(ms(now))? {
            if owned.len() >= request.max_buckets {
                break;
            }
            let epoch: i64 = self
                .connection
                .prepare_cached(
                    "INSERT INTO lease_bucket (bucket, node, epoch) VALUES (?1, ?2, 1)
                     ON CONFLICT (bucket) DO UPDATE SET node = excluded.node, epoch = epoch + 1 RETURNING epoch",
                )?
                .query_row(params![bucket.0, request.node], |row| row.get(0))?;
            owned.push((bucket, Epoch(epoch.unsigned_abs())));
        }
        owned.sort_unstable();
        Ok(Lease { owner: Owner { node: request.node.clone(), buckets: Buckets::Some(owned) }, store_now: now })
    }

    fn owned(&self, node: &str) -> Result<Vec<(BucketNo, Epoch)>> {
        let mut statement =
            self.connection.prepare_cached("SELECT bucket, epoch FROM lease_bucket WHERE node = ?1 ORDER BY bucket")?;
        let rows = statement.query_map([node], |row| Ok((BucketNo(row.get(0)?), row.get::<_, i64>(1)?)))?;
        rows.map(|row| row.map(|(bucket, epoch)| (bucket, Epoch(epoch.unsigned_abs()))).map_err(Into::into)).collect()
    }

    /// Buckets without a living owner, in order.
    fn free(&self, now: i64) -> Result<Vec<BucketNo>> {
        let held: Vec<u16> = self
            .connection
            .prepare_cached(
                "SELECT bucket FROM lease_bucket JOIN lease_node USING (node) WHERE until > ?1 ORDER BY bucket",
            )?
            .query_map([now], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok((0..BUCKETS).filter(|bucket| held.binary_search(bucket).is_err()).map(BucketNo).collect())
    }

    /// See [`Store::release_leases`](retoma_store::Store::release_leases).
    pub fn release_leases(&self, node: &str) -> retoma_store::Result<()> {
        Ok(self.release_node(node)?)
    }

    fn release_node(&self, node: &str) -> Result<()> {
        self.connection.prepare_cached("UPDATE lease_bucket SET node = NULL WHERE node = ?1")?.execute([node])?;
        self.connection.prepare_cached("DELETE FROM lease_node WHERE node = ?1")?.execute([node])?;
        Ok(())
    }
}
