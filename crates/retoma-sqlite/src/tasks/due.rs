//! What is due, what is stuck, and when to look next.

use jiff::Timestamp;
use retoma_core::task::Task;
use retoma_store::{AttemptRow, DueDeadline, NextWake};
use rusqlite::params;

use super::row::{COLUMNS, WIDTH, task};
use crate::codec::{contact_at, conversation_at, ms, name_at, time, time_at};
use crate::contacts::{ATTEMPT, attempt};
use crate::database::Database;
use crate::error::Result;

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Database {
    /// See [`Store::load_due`](retoma_store::Store::load_due).
    pub fn load_due(&self, now: Timestamp, limit: usize) -> retoma_store::Result<Vec<Task>> {
        Ok(self.due(now, limit)?)
    }

    /// Walks the partial indexes `task_due` and `task_unsure`, which hold nothing else: the cost is that of the answer.
    fn due(&self, now: Timestamp, max: usize) -> Result<Vec<Task>> {
        let mut found = Vec::new();
        for sql in [
            format!(
                "SELECT {COLUMNS} FROM task AS t INDEXED BY task_due
                 WHERE t.handed = 1 AND t.status IN ('scheduled', 'failed') AND t.next_attempt_at <= ?1
                 ORDER BY t.next_attempt_at LIMIT ?2"
            ),
            format!(
                "SELECT {COLUMNS} FROM task AS t INDEXED BY task_unsure
                 WHERE t.status = 'unsure' AND t.reconcile_until <= ?1 ORDER BY t.reconcile_until LIMIT ?2"
            ),
        ] {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![ms(now), limit(max)])?;
            while let Some(row) = rows.next()? {
                found.push(task(row)?.task);
            }
        }
        found.sort_by_key(|task| match task.reconcile_until {
            Some(until) if task.status == retoma_core::task::TaskStatus::Unsure => until,
            _ => task.next_attempt_at,
        });
        found.truncate(max);
        Ok(found)
    }

    /// See [`Store::load_deadlines`](retoma_store::Store::load_deadlines).
    pub fn load_deadlines(&self, now: Timestamp, max: usize) -> retoma_store::Result<Vec<DueDeadline>> {
        Ok(self.deadlines(now, max)?)
    }

    fn deadlines(&self, now: Timestamp, max: usize) -> Result<Vec<DueDeadline>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT tenant, contact, id, deadline_at FROM conversation INDEXED BY conversation_deadline
             WHERE deadline_at IS NOT NULL AND closed = 0 AND deadline_at <= ?1 ORDER BY deadline_at LIMIT ?2",
        )?;
        let mut rows = statement.query(params![ms(now), limit(max)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(DueDeadline {
                tenant: name_at(row, 0)?,
                contact: contact_at(row, 1)?,
                conversation: conversation_at(row, 2)?,
                at: time_at(row, 3)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::next_wake`](retoma_store::Store::next_wake).
    pub fn next_wake(&self) -> retoma_store::Result<NextWake> {
        Ok(self.wake()?)
    }

    /// The first entry of each of the three indexes.
    fn wake(&self) -> Result<NextWake> {
        let first = |sql: &str| -> Result<Option<i64>> {
            Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
        };
        let due = first(
            "SELECT min(next_attempt_at) FROM task INDEXED BY task_due WHERE handed = 1 AND status IN ('scheduled', 'failed')",
        )?;
        let unsure = first("SELECT min(reconcile_until) FROM task INDEXED BY task_unsure WHERE status = 'unsure'")?;
        let deadline = first(
            "SELECT min(deadline_at) FROM conversation INDEXED BY conversation_deadline
             WHERE deadline_at IS NOT NULL AND closed = 0",
        )?;
        Ok(NextWake {
            deadline_at: deadline.map(time).transpose()?,
            task_at: due.into_iter().chain(unsure).min().map(time).transpose()?,
        })
    }

    /// See [`Store::load_stuck`](retoma_store::Store::load_stuck).
    pub fn load_stuck(&self, started_before: Timestamp, max: usize) -> retoma_store::Result<Vec<(Task, AttemptRow)>> {
        Ok(self.stuck(started_before, max)?)
    }

    fn stuck(&self, started_before: Timestamp, max: usize) -> Result<Vec<(Task, AttemptRow)>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS}, {ATTEMPT} FROM task AS t INDEXED BY task_sending
             JOIN attempt AS a ON a.task = t.seq AND a.ended_at IS NULL
             WHERE t.status = 'sending' AND t.started_at < ?1 ORDER BY t.started_at LIMIT ?2"
        ))?;
        let mut rows = statement.query(params![ms(started_before), limit(max)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((task(row)?.task, attempt(row, WIDTH)?));
        }
        Ok(found)
    }
}
