//! Running it: heartbeats, channels, keys, the audit log, counts, a read-only window for SQL.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::Tenant;
use retoma_store::{ApiKey, AuditRow, ChannelState, Heartbeat, SqlRows, Stats};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use crate::codec::{ms, ms_or_null, name_at, time, time_at, time_or_null_at};
use crate::database::Database;
use crate::error::{Failure, Result};

/// The most rows that one statement of a person may answer.
const SQL_ROWS_MAX: usize = 10_000;

impl Database {
    /// See [`Store::beat`](retoma_store::Store::beat).
    pub fn beat(&self, beats: &[Heartbeat]) -> retoma_store::Result<()> {
        beats.iter().try_for_each(|beat| Ok(self.put_beat(beat)?))
    }

    fn put_beat(&self, beat: &Heartbeat) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO heartbeat (flow, seen_at) VALUES (?1, ?2)
                 ON CONFLICT (flow) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)",
            )?
            .execute(params![beat.flow, ms(beat.seen_at)])?;
        Ok(())
    }

    fn heartbeats(&self) -> Result<Vec<Heartbeat>> {
        let mut statement = self.connection.prepare_cached("SELECT flow, seen_at FROM heartbeat ORDER BY flow")?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(Heartbeat { flow: row.get(0)?, seen_at: time_at(row, 1)? });
        }
        Ok(found)
    }

    /// See [`Store::channel_states`](retoma_store::Store::channel_states).
    pub fn channel_states(&self, tenant: &Tenant) -> retoma_store::Result<Vec<ChannelState>> {
        Ok(self.channels(tenant)?)
    }

    fn channels(&self, tenant: &Tenant) -> Result<Vec<ChannelState>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT tenant, channel, stopped, since, by_person FROM channel_state WHERE tenant = ?1 ORDER BY channel",
        )?;
        let mut rows = statement.query([tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(ChannelState {
                tenant: name_at(row, 0)?,
                channel: name_at(row, 1)?,
                stopped: row.get(2)?,
                since: time_at(row, 3)?,
                by_person: row.get(4)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::set_channel_state`](retoma_store::Store::set_channel_state).
    pub fn set_channel_state(&self, state: &ChannelState, actor: &str) -> retoma_store::Result<()> {
        Ok(self.put_channel(state, actor)?)
    }

    fn put_channel(&self, state: &ChannelState, actor: &str) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO channel_state (tenant, channel, stopped, since, by_person) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (tenant, channel) DO UPDATE SET stopped = excluded.stopped, since = excluded.since,
                    by_person = excluded.by_person",
            )?
            .execute(params![
                state.tenant.as_str(),
                state.channel.as_str(),
                state.stopped,
                ms(state.since),
                state.by_person
            ])?;
        let action = if state.stopped.is_some() { "channel.stop" } else { "channel.resume" };
        self.audit(&state.tenant, actor, state.since, action, state.channel.as_str(), json!({ "why": state.stopped }))
    }

    /// See [`Store::put_api_key`](retoma_store::Store::put_api_key).
    pub fn put_api_key(&self, key: &ApiKey) -> retoma_store::Result<()> {
        Ok(self.insert_key(key)?)
    }

    fn insert_key(&self, key: &ApiKey) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO api_key (id, tenant, name, scope, hash, created_at, revoked_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                key.id,
                key.tenant.as_str(),
                key.name,
                key.scope,
                &key.hash[..],
                ms(key.created_at),
                ms_or_null(key.revoked_at)
            ])?;
        Ok(())
    }

    /// See [`Store::list_api_keys`](retoma_store::Store::list_api_keys).
    pub fn list_api_keys(&self, tenant: &Tenant) -> retoma_store::Result<Vec<ApiKey>> {
        Ok(self.keys(tenant)?)
    }

    fn keys(&self, tenant: &Tenant) -> Result<Vec<ApiKey>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, tenant, name, scope, hash, created_at, revoked_at FROM api_key
             WHERE tenant = ?1 AND revoked_at IS NULL ORDER BY created_at, id",
        )?;
        let mut rows = statement.query([tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(ApiKey {
                id: row.get(0)?,
                tenant: name_at(row, 1)?,
                name: row.get(2)?,
                scope: row.get(3)?,
                hash: row.get(4)?,
                created_at: time_at(row, 5)?,
                revoked_at: time_or_null_at(row, 6)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::revoke_api_key`](retoma_store::Store::revoke_api_key).
    pub fn revoke_api_key(&self, tenant: &Tenant, id: &str, now: Timestamp) -> retoma_store::Result<bool> {
        Ok(self.revoke_key(tenant, id, now)?)
    }

    fn revoke_key(&self, tenant: &Tenant, id: &str, now: Timestamp) -> Result<bool> {
        let revoked = self
            .connection
            .prepare_cached("UPDATE api_key SET revoked_at = ?3 WHERE tenant = ?1 AND id = ?2 AND revoked_at IS NULL")?
            .execute(params![tenant.as_str(), id, ms(now)])?;
        Ok(revoked == 1)
    }

    /// See [`Store::append_audit`](retoma_store::Store::append_audit).
    pub fn append_audit(&self, rows: &[AuditRow]) -> retoma_store::Result<()> {
        rows.iter().try_for_each(|row| Ok(self.insert_audit(row)?))
    }

    pub(crate) fn insert_audit(&self, row: &AuditRow) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO audit (tenant, at, actor, action, target, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                row.tenant.as_str(),
                ms(row.at),
                row.actor,
                row.action,
                row.target,
                serde_json::to_string(&row.detail)?
            ])?;
        Ok(())
    }

    /// See [`Store::stats`](retoma_store::Store::stats).
    pub fn stats(&self, now: Timestamp) -> retoma_store::Result<Stats> {
        Ok(self.counts(now)?)
    }

    /// Reads counters and the heads of two indexes; counts nothing.
    fn counts(&self, now: Timestamp) -> Result<Stats> {
        let mut stats = Stats {
            heartbeats: self.heartbeats()?,
            bytes: self.bytes()?,
            disk_used_percent: self.disk_used_percent(),
            ..Stats::default()
        };
        let mut statement = self.connection.prepare_cached("SELECT name, word, value FROM counter")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (name, word): (String, String) = (row.get(0)?, row.get(1)?);
            let value = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
            match (name.as_str(), word.as_str()) {
                ("events", "duplicates") => stats.duplicates = value,
                ("events", _) => add(&mut stats.events, word, value),
                ("tasks", _) => add(&mut stats.tasks, word, value),
                ("avoided", _) => add(&mut stats.avoided, word, value),
                ("attempts", "ambiguous") => stats.ambiguous = value,
                ("dead", _) => stats.dead = value,
                ("contacts", _) => stats.contacts = value,
                _ => {}
            }
        }
        let ago = |minutes| now.saturating_sub(SignedDuration::from_mins(minutes)).map_or(0, ms);
        let without_content: i64 = self
            .connection
            .prepare_cached(
                "SELECT count(*) FROM event INDEXED BY event_without_content
                 WHERE status = 'ignored' AND reason = 'content_pending' AND received_at > ?1 AND received_at <= ?2",
            )?
            .query_row(params![ago(70), ago(10)], |row| row.get(0))?;
        stats.without_content = without_content.unsigned_abs();
        let pending: Option<i64> = self
            .connection
            .prepare_cached("SELECT received_at FROM inbox ORDER BY id LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        stats.oldest_pending_at = pending.map(time).transpose()?;
        let due = self.first_due()?;
        stats.oldest_due_at = due.filter(|due| *due <= ms(now)).map(time).transpose()?;
        Ok(stats)
    }

    fn bytes(&self) -> Result<u64> {
        let pages: i64 = self.connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let size: i64 = self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let log = std::fs::metadata(crate::checkpoint::log_path(&self.path)).map_or(0, |file| file.len());
        Ok(pages.saturating_mul(size).unsigned_abs() + log)
    }

    /// As `df` counts: what only root may use is no room.
    fn disk_used_percent(&self) -> Option<u8> {
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let disk = rustix::fs::statvfs(folder).ok()?;
        let used = disk.f_blocks.saturating_sub(disk.f_bfree);
        let all = used + disk.f_bavail;
        u8::try_from(used.saturating_mul(100).checked_div(all)?).ok()
    }

    /// See [`Store::query_sql`](retoma_store::Store::query_sql). Meant for a reader; refuses what writes anywhere.
    pub fn query_sql(&self, sql: &str) -> retoma_store::Result<SqlRows> {
        Ok(self.sql_rows(sql)?)
    }

    fn sql_rows(&self, sql: &str) -> Result<SqlRows> {
        // `PRAGMA` and `ATTACH` read, too, by SQLite's judgement; they are not what this window is for.
        let first = sql.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        let reads = ["select", "with", "values", "explain"].iter().any(|word| first.eq_ignore_ascii_case(word));
        if !reads {
            return Err(Failure::invalid("only SELECT, WITH, VALUES and EXPLAIN are answered here"));
        }
        let mut statement = self.connection.prepare(sql).map_err(said_by_sqlite)?;
        if !statement.readonly() {
            return Err(Failure::invalid("the statement writes; this window only reads"));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([])?;
        let mut answer = Vec::new();
        while let Some(row) = rows.next().map_err(said_by_sqlite)? {
            if answer.len() == SQL_ROWS_MAX {
                return Err(Failure::invalid(format!("more than {SQL_ROWS_MAX} rows; add a LIMIT")));
            }
            answer.push((0..columns.len()).map(|column| Ok(json_of(row.get_ref(column)?))).collect::<Result<_>>()?);
        }
        Ok(SqlRows { columns, rows: answer })
    }
}

fn add(counts: &mut BTreeMap<String, u64>, word: String, value: u64) {
    if value > 0 {
        counts.insert(word, value);
    }
}

/// A person's own statement: what SQLite says of it is for them.
fn said_by_sqlite(error: rusqlite::Error) -> Failure {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::Unknown) | None => Failure::invalid(error.to_string()),
        Some(_) => Failure::Sqlite(error),
    }
}

fn json_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => match uuid::Uuid::from_slice(bytes) {
            Ok(id) => Value::String(id.to_string()),
            Err(_) => Value::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        },
    }
}
