//! Retention: removes what is no longer kept, a little at a time, between commits.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use retoma_core::task::TaskStatus;
use retoma_store::{EventStatus, Retention};
use rusqlite::params;

use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;

/// The longest that one call may hold the writer.
const SLICE: Duration = Duration::from_millis(50);
/// Rows looked at between two looks at the clock.
const STEP: usize = 64;

#[allow(clippy::disallowed_methods, reason = "measures its own work; decides nothing")]
fn stopwatch() -> Instant {
    Instant::now()
}

fn cutoff(now: Timestamp, keep: Duration) -> i64 {
    let keep = SignedDuration::try_from(keep).unwrap_or(SignedDuration::MAX);
    now.saturating_sub(keep).map_or(i64::MIN, ms)
}

/// What goes with an event.
struct OldEvent {
    seq: i64,
    delivery_key: Vec<u8>,
    raw: Option<i64>,
    altered: bool,
    status: String,
}

/// What goes with a task.
struct OldTask {
    seq: i64,
    done: bool,
    updated_at: i64,
    status: String,
    id: String,
    tenant: String,
}

impl Database {
    /// See [`Store::sweep_history`](retoma_store::Store::sweep_history).
    pub fn sweep_history(&self, keep: &Retention, now: Timestamp) -> retoma_store::Result<bool> {
        Ok(self.sweep(keep, now)?)
    }

    fn sweep(&self, keep: &Retention, now: Timestamp) -> Result<bool> {
        let started = stopwatch();
        // Where each walk goes on; what it passed by is kept, and not looked at again in this call.
        let (mut events, mut tasks) = (0, 0);
        let mut waits = false;
        loop {
            let swept = self.sweep_events(cutoff(now, keep.events), &mut events, &mut waits)?
                + self.sweep_tasks(cutoff(now, keep.tasks), &mut tasks)?
                + self.sweep_gate(ms(now))?
                + self.sweep_gate_held(cutoff(now, keep.gate_held))?
                + self.sweep_orphans(cutoff(now, keep.events), STEP)?;
            if swept == 0 {
                return Ok(waits);
            }
            if started.elapsed() >= SLICE {
                return Ok(true);
            }
        }
    }

    /// Ended events with their bytes and delivery keys, oldest first. Rows stand in the order of their arrival, so the
    /// walk ends at the first that is too young; what is held or waiting stays, whatever its age.
    fn sweep_events(&self, cutoff: i64, after: &mut i64, waits: &mut bool) -> Result<usize> {
        let merged_until = self.merged_until()?;
        let mut old = Vec::with_capacity(STEP);
        let mut not_merged = false;
        {
            let mut walk = self.connection.prepare_cached(
                "SELECT seq, delivery_key, raw, altered, status, received_at FROM event WHERE seq > ?1 ORDER BY seq",
            )?;
            let mut rows = walk.query([*after])?;
            while old.len() < STEP
                && let Some(row) = rows.next()?
            {
                if row.get::<_, i64>(5)? >= cutoff {
                    break;
                }
                let seq: i64 = row.get(0)?;
                if seq > merged_until {
                    not_merged = true;
                    break;
                }
                *after = seq;
                old.push(OldEvent {
                    seq,
                    delivery_key: row.get(1)?,
                    raw: row.get(2)?,
                    altered: row.get(3)?,
                    status: row.get(4)?,
                });
            }
        }
        // Until its keys are in the table, the row is what they are known by.
        if not_merged && old.is_empty() {
            let merged = self.merge_some()?;
            // A merge that ended in this transaction makes room for the next one when that commits.
            *waits = !merged && self.merge_ends_with_the_commit();
            return Ok(usize::from(merged));
        }
        for OldEvent { seq, delivery_key, raw, altered, status } in &old {
            let Some(status) = EventStatus::parse(status).filter(|status| status.is_completed()) else { continue };
            self.connection
                .prepare_cached("DELETE FROM dedupe WHERE key = ?1 AND what = 1")?
                .execute([delivery_key])?;
            if let Some(raw) = raw {
                self.release_raw(*raw)?;
            }
            if *altered {
                self.connection.prepare_cached("DELETE FROM raw_request WHERE altered_of = ?1")?.execute([seq])?;
            }
            self.connection.prepare_cached("DELETE FROM event WHERE seq = ?1")?.execute([seq])?;
            self.count("events", status.as_str(), -1);
        }
        Ok(old.len())
    }

    /// The bytes of a request go with the last event that was read from them.
    pub(crate) fn release_raw(&self, raw: i64) -> Result<()> {
        self.connection.prepare_cached("UPDATE raw_request SET refs = refs - 1 WHERE seq = ?1")?.execute([raw])?;
        self.connection.prepare_cached("DELETE FROM raw_request WHERE seq = ?1 AND refs <= 0")?.execute([raw])?;
        Ok(())
    }

    /// Final tasks and their attempts, in the order of their promise. Their ids stay claimed.
    fn sweep_tasks(&self, cutoff: i64, after: &mut i64) -> Result<usize> {
        let mut old: Vec<OldTask> = Vec::with_capacity(STEP);
        {
            let mut walk = self.connection.prepare_cached(
                "SELECT seq, done, updated_at, status, created_at, id, tenant FROM task WHERE seq > ?1 ORDER BY seq",
            )?;
            let mut rows = walk.query([*after])?;
            while old.len() < STEP
                && let Some(row) = rows.next()?
            {
                if row.get::<_, i64>(4)? >= cutoff {
                    break;
                }
                *after = row.get(0)?;
                old.push(OldTask {
                    seq: row.get(0)?,
                    done: row.get(1)?,
                    updated_at: row.get(2)?,
                    status: row.get(3)?,
                    id: row.get(5)?,
                    tenant: row.get(6)?,
                });
            }
        }
        for OldTask { seq, done, updated_at, status, id, tenant } in &old {
            // Dead ones wait for a person.
            let Some(status) = TaskStatus::parse(status).filter(|status| *status != TaskStatus::Dead) else { continue };
            if !done || *updated_at >= cutoff {
                continue;
            }
            self.connection
                .prepare_cached(
                    "DELETE FROM provider_message WHERE (message_id, channel, tenant) IN
                        (SELECT provider_message_id, channel, tenant FROM task WHERE seq = ?1)",
                )?
                .execute([seq])?;
            self.connection.prepare_cached("DELETE FROM attempt WHERE task = ?1")?.execute([seq])?;
            self.keep_task_claimed(tenant, id)?;
            self.connection.prepare_cached("DELETE FROM evidence WHERE task = ?1")?.execute([seq])?;
            self.connection.prepare_cached("DELETE FROM task WHERE seq = ?1")?.execute([seq])?;
            self.count("tasks", status.as_str(), -1);
        }
        Ok(old.len())
    }

    /// Gate keys whose time is over. It was set by their last claim, never before the end of its lease.
    fn sweep_gate(&self, now: i64) -> Result<usize> {
        let old: Vec<i64> = self
            .connection
            .prepare_cached("SELECT seq FROM gate_key INDEXED BY gate_keep WHERE keep_until <= ?1 LIMIT ?2")?
            .query_map(params![now, i64::try_from(STEP).unwrap_or(i64::MAX)], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for seq in &old {
            self.connection.prepare_cached("DELETE FROM gate_attempt WHERE gate = ?1")?.execute([seq])?;
            self.connection.prepare_cached("DELETE FROM gate_repeat WHERE gate = ?1")?.execute([seq])?;
            self.connection.prepare_cached("DELETE FROM gate_key WHERE seq = ?1")?.execute([seq])?;
        }
        Ok(old.len())
    }

    /// Claims without a usable key, in the order in which they came.
    fn sweep_gate_held(&self, cutoff: i64) -> Result<usize> {
        Ok(self
            .connection
            .prepare_cached(
                "DELETE FROM gate_held WHERE at < ?1 AND seq IN (SELECT seq FROM gate_held ORDER BY seq LIMIT ?2)",
            )?
            .execute(params![cutoff, i64::try_from(STEP).unwrap_or(i64::MAX)])?)
    }
}
