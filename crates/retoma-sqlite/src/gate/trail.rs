//! What the gate tells people: the trail of a key, lists of keys, scopes with their counts, who asked without a key.

use retoma_core::ids::Tenant;
use retoma_store::{GateAttempt, GateFilter, GateHeld, GateRecord, GateRepeat, GateScope, GateStatus, Page, Paged};
use rusqlite::{Row, params};

use crate::codec::{json_at, ms, time_at, time_or_null_at};
use crate::database::Database;
use crate::error::Result;
use crate::list::Where;

/// A key as stored.
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) token: Option<String>,
    pub(super) fingerprint: Option<Vec<u8>>,
    pub(super) record: GateRecord,
}

/// The columns of [`stored`].
pub(super) const RECORD: &str =
    "g.seq, g.token, g.fingerprint, g.status, g.first_seen_at, g.correlation_id, g.attempt, g.duplicates,
    g.last_duplicate_at, g.result, g.error, g.retryable, g.lease_until, g.metadata, g.scope, g.key, g.mismatches,
    g.result_omitted, g.keep_until";

pub(super) fn stored(row: &Row<'_>) -> Result<Stored> {
    let result: Option<String> = row.get(9)?;
    Ok(Stored {
        seq: row.get(0)?,
        token: row.get(1)?,
        fingerprint: row.get(2)?,
        record: GateRecord {
            scope: row.get(14)?,
            key: row.get(15)?,
            status: row.get(3)?,
            first_seen_at: time_at(row, 4)?,
            correlation_id: row.get(5)?,
            attempt: row.get(6)?,
            duplicates: row.get::<_, i64>(7)?.unsigned_abs(),
            last_duplicate_at: time_or_null_at(row, 8)?,
            mismatches: row.get::<_, i64>(16)?.unsigned_abs(),
            result: result.map(|text| serde_json::from_str(&text)).transpose()?,
            result_omitted: row.get::<_, Option<i64>>(17)?.map(i64::unsigned_abs),
            error: row.get(10)?,
            retryable: row.get(11)?,
            lease_until: time_or_null_at(row, 12)?,
            keep_until: time_at(row, 18)?,
            metadata: json_at(row, 13)?,
            attempts: Vec::new(),
            repeats: Vec::new(),
        },
    })
}

impl Database {
    /// See [`Store::get_gate_key`](retoma_store::Store::get_gate_key).
    pub fn get_gate_key(&self, tenant: &Tenant, scope: &str, key: &str) -> retoma_store::Result<Option<GateRecord>> {
        Ok(self.gate_trail(tenant, scope, key)?)
    }

    fn gate_trail(&self, tenant: &Tenant, scope: &str, key: &str) -> Result<Option<GateRecord>> {
        let Some(found) = self.gate_key(tenant, scope, key)? else { return Ok(None) };
        let mut record = found.record;
        record.attempts = self.gate_attempts(found.seq)?;
        record.repeats = self.gate_repeats(found.seq)?;
        Ok(Some(record))
    }

    fn gate_attempts(&self, gate: i64) -> Result<Vec<GateAttempt>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT n, claimed_at, ended_at, outcome, error, correlation_id, actor FROM gate_attempt
             WHERE gate = ?1 ORDER BY n",
        )?;
        let mut rows = statement.query([gate])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(GateAttempt {
                n: row.get(0)?,
                claimed_at: time_at(row, 1)?,
                ended_at: time_or_null_at(row, 2)?,
                outcome: row.get(3)?,
                error: row.get(4)?,
                correlation_id: row.get(5)?,
                actor: row.get(6)?,
            });
        }
        Ok(found)
    }

    fn gate_repeats(&self, gate: i64) -> Result<Vec<GateRepeat>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT n, at, outcome, correlation_id, actor FROM gate_repeat WHERE gate = ?1 ORDER BY n",
        )?;
        let mut rows = statement.query([gate])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(GateRepeat {
                n: row.get::<_, i64>(0)?.unsigned_abs(),
                at: time_at(row, 1)?,
                outcome: row.get(2)?,
                correlation_id: row.get(3)?,
                actor: row.get(4)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::list_gate_keys`](retoma_store::Store::list_gate_keys).
    pub fn list_gate_keys(
        &self,
        tenant: &Tenant,
        filter: &GateFilter,
        page: &Page,
    ) -> retoma_store::Result<Paged<GateRecord>> {
        let mut condition = Where::of_tenant("g.tenant", tenant);
        // Where few keys stand, their own index is the short way; else the scope's.
        let index = match (filter.status, &filter.scope) {
            (Some(GateStatus::Locked | GateStatus::Uncertain { .. }), _) => "INDEXED BY gate_locked",
            (Some(GateStatus::Failed), _) => "INDEXED BY gate_failed",
            (_, Some(_)) => "INDEXED BY gate_scope",
            _ => "",
        };
        match filter.status {
            None => {}
            // Word for word the conditions of the partial indexes, or SQLite does not use them.
            Some(GateStatus::Locked) => condition.sql.push_str(" AND g.status = 'LOCKED'"),
            Some(GateStatus::Uncertain { now }) => {
                condition.sql.push_str(" AND g.status = 'LOCKED'");
                condition.and("g.lease_until <= ?", ms(now));
            }
            Some(GateStatus::Done) => condition.sql.push_str(" AND g.status = 'DONE'"),
            Some(GateStatus::Failed) => condition.sql.push_str(" AND g.status = 'FAILED'"),
        }
        if let Some(scope) = &filter.scope {
            condition.and("g.scope = ?", scope.clone());
        }
        let select = format!("SELECT {RECORD} FROM gate_key AS g {index}");
        Ok(self.page(&select, "g.seq", condition, page, |row| Ok(stored(row)?.record))?)
    }

    /// See [`Store::list_gate_held`](retoma_store::Store::list_gate_held).
    pub fn list_gate_held(
        &self,
        tenant: &Tenant,
        scope: Option<&str>,
        page: &Page,
    ) -> retoma_store::Result<Paged<GateHeld>> {
        let mut condition = Where::of_tenant("h.tenant", tenant);
        if let Some(scope) = scope {
            condition.and("h.scope = ?", scope.to_owned());
        }
        let select = "SELECT h.seq, h.scope, h.at, h.what, h.correlation_id, h.actor FROM gate_held AS h";
        let read = |row: &Row<'_>| {
            Ok(GateHeld {
                id: row.get::<_, i64>(0)?.unsigned_abs(),
                scope: row.get(1)?,
                at: time_at(row, 2)?,
                what: row.get(3)?,
                correlation_id: row.get(4)?,
                actor: row.get(5)?,
            })
        };
        Ok(self.page(select, "h.seq", condition, page, read)?)
    }

    /// See [`Store::gate_scopes`](retoma_store::Store::gate_scopes).
    pub fn gate_scopes(&self, tenant: &Tenant) -> retoma_store::Result<Vec<GateScope>> {
        Ok(self.gate_counts(tenant)?)
    }

    /// The counters of a tenant lie together, those of a scope beside each other.
    fn gate_counts(&self, tenant: &Tenant) -> Result<Vec<GateScope>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT word, value FROM counter WHERE name = 'gate' AND word > ?1 AND word < ?2 ORDER BY word",
        )?;
        // '0' is the character after '/'.
        let mut rows = statement.query(params![format!("{tenant}/"), format!("{tenant}0")])?;
        let mut scopes: Vec<GateScope> = Vec::new();
        while let Some(row) = rows.next()? {
            let word: String = row.get(0)?;
            let count = row.get::<_, i64>(1)?.unsigned_abs();
            let rest = &word[tenant.as_str().len() + 1..];
            let Some((scope, what)) = rest.rsplit_once('/') else { continue };
            match scopes.last_mut().filter(|last| last.scope == scope) {
                Some(last) => drop(last.counts.insert(what.to_owned(), count)),
                None => scopes.push(GateScope { scope: scope.to_owned(), counts: [(what.to_owned(), count)].into() }),
            }
        }
        Ok(scopes)
    }
}
