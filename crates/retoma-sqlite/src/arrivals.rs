//! What was heard of messages after they were accepted: per channel (FC-78), and of messages that nobody knows (FC-28).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::{ChannelName, Tenant};
use retoma_core::receipt::{Arrivals, SILENT_AFTER};
use retoma_store::{Error, OrphanReceipt};
use rusqlite::params;

use crate::codec::{ms, name_at, time_at};
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::receipts::word;

/// Messages of a channel that tell how it does.
const SAMPLE: i64 = 200;
/// How far back they may lie.
pub(crate) const LOOK_BACK: Duration = Duration::from_secs(7 * 86_400);
/// The most rows of one list.
const ORPHANS_MAX: usize = 500;

pub(crate) fn before(at: Timestamp, by: Duration) -> i64 {
    at.saturating_sub(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX)).map_or(0, ms)
}

impl Database {
    /// See [`Store::arrivals`](retoma_store::Store::arrivals).
    pub fn arrivals(
        &self,
        tenant: &Tenant,
        channels: &[ChannelName],
        now: Timestamp,
    ) -> retoma_store::Result<Vec<Arrivals>> {
        channels.iter().map(|channel| Ok(self.arrivals_of(tenant, channel, now)?)).collect()
    }

    fn arrivals_of(&self, tenant: &Tenant, channel: &ChannelName, now: Timestamp) -> Result<Arrivals> {
        let last = before(now, SILENT_AFTER);
        let first = before(now, LOOK_BACK);
        let sample = |order: &str| -> Result<(u32, u32)> {
            let mut look = self.connection.prepare_cached(&format!(
                "SELECT count(*), coalesce(sum(silent), 0) FROM (
                     SELECT rank <= 1 AND failed_at IS NULL AS silent
                     FROM provider_message INDEXED BY provider_message_taken
                     WHERE tenant = ?1 AND channel = ?2 AND accepted_at > ?3 AND accepted_at <= ?4
                       AND task IS NOT NULL AND accepted_at IS NOT NULL
                     ORDER BY accepted_at {order} LIMIT ?5)"
            ))?;
            Ok(look.query_row(params![tenant.as_str(), channel.as_str(), first, last, SAMPLE], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?)
        };
        let (accepted, silent) = sample("DESC")?;
        // A channel whose newest messages all vanish may have told of its older ones.
        let told = silent < accepted || {
            let (oldest, silent) = sample("ASC")?;
            silent < oldest
        };
        Ok(Arrivals { accepted, silent, told })
    }

    /// See [`Store::list_orphan_receipts`](retoma_store::Store::list_orphan_receipts).
    pub fn list_orphan_receipts(
        &self,
        tenant: &Tenant,
        before: Timestamp,
        limit: usize,
    ) -> retoma_store::Result<Vec<OrphanReceipt>> {
        self.orphans(tenant, before, limit.min(ORPHANS_MAX)).map_err(Error::from)
    }

    fn orphans(&self, tenant: &Tenant, before: Timestamp, limit: usize) -> Result<Vec<OrphanReceipt>> {
        let mut find = self.connection.prepare_cached(
            "SELECT channel, message_id, rank, failed_at IS NOT NULL, coalesce(rank_at, failed_at)
             FROM provider_message INDEXED BY provider_message_orphan
             WHERE task IS NULL AND coalesce(rank_at, failed_at) <= ?2 AND tenant = ?1
             ORDER BY coalesce(rank_at, failed_at) DESC LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = find.query(params![tenant.as_str(), ms(before), limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(OrphanReceipt {
                channel: name_at(row, 0)?,
                provider_message_id: row.get(1)?,
                receipt: word(row.get(2)?, row.get(3)?)
                    .ok_or_else(|| Failure::Row("a receipt that says nothing".to_owned()))?,
                at: time_at(row, 4)?,
            });
        }
        Ok(found)
    }

    /// Receipts that nobody claimed for as long as events are kept.
    pub(crate) fn sweep_orphans(&self, cutoff: i64, limit: usize) -> Result<usize> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let swept = self
            .connection
            .prepare_cached(
                "DELETE FROM provider_message WHERE (message_id, channel, tenant) IN (
                     SELECT message_id, channel, tenant FROM provider_message INDEXED BY provider_message_orphan
                     WHERE task IS NULL AND coalesce(rank_at, failed_at) < ?1
                     ORDER BY coalesce(rank_at, failed_at) LIMIT ?2)",
            )?
            .execute(params![cutoff, limit])?;
        Ok(swept)
    }
}
