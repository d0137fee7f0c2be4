//! What is due, what is stuck, and when to look next.

use jiff::Timestamp;
use retoma_core::ids::{TaskId, Tenant};
use retoma_core::task::{MessageClass, Task};
use retoma_store::{AttemptRow, Due, DueDeadline, DueQuery, NextWake};
use rusqlite::{OptionalExtension, params};

use super::row::{COLUMNS, WIDTH, task};
use crate::codec::{contact_at, conversation_at, ms, name_at, time, time_at};
use crate::contacts::{ATTEMPT, attempt};
use crate::database::Database;
use crate::error::Result;

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Database {
    /// See [`Store::load_local_tasks`](retoma_store::Store::load_local_tasks).
    pub fn load_local_tasks(&self, tenant: &Tenant) -> retoma_store::Result<Vec<Task>> {
        Ok(self.local_tasks(tenant)?)
    }

    fn local_tasks(&self, tenant: &Tenant) -> Result<Vec<Task>> {
        let mut find = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM task AS t INDEXED BY task_local
             WHERE t.local_time IS NOT NULL AND t.done = 0 AND t.status = 'scheduled' AND t.attempts = 0 AND t.tenant = ?1
             ORDER BY t.seq"
        ))?;
        let mut rows = find.query([tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(task(row)?.task);
        }
        Ok(found)
    }

    /// See [`Store::plan_again`](retoma_store::Store::plan_again).
    pub fn plan_tasks_again(
        &self,
        tenant: &Tenant,
        tasks: &[(TaskId, Timestamp)],
        now: Timestamp,
    ) -> retoma_store::Result<usize> {
        Ok(self.give_times(tenant, tasks, now)?)
    }

    fn give_times(&self, tenant: &Tenant, tasks: &[(TaskId, Timestamp)], now: Timestamp) -> Result<usize> {
        let mut moved = 0;
        for (task, at) in tasks {
            moved += self
                .connection
                .prepare_cached(
                    "UPDATE task SET scheduled_for = ?3, next_attempt_at = ?3, updated_at = ?4
                     WHERE id = ?1 AND tenant = ?2 AND status = 'scheduled' AND attempts = 0",
                )?
                .execute(params![task.as_str(), tenant.as_str(), ms(*at), ms(now)])?;
        }
        Ok(moved)
    }

    /// See [`Store::load_due`](retoma_store::Store::load_due).
    pub fn load_due(&self, query: &DueQuery) -> retoma_store::Result<Due> {
        Ok(self.due(query)?)
    }

    /// Walks the partial index `task_due` channel by channel: the cost is that of the answer, and two seeks for each channel
    /// on which anything waits.
    fn due(&self, query: &DueQuery) -> Result<Due> {
        let mut load = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM task AS t INDEXED BY task_due
             WHERE t.handed = 1 AND t.status IN ('scheduled', 'failed')
               AND t.channel = ?1 AND (t.class = 'reminder') = ?2 AND t.next_attempt_at <= ?3
             ORDER BY t.next_attempt_at LIMIT ?4"
        ))?;
        let mut found = Due::default();
        for channel in self.channels_with_work()? {
            if query.skip.iter().any(|skipped| skipped.as_str() == channel) {
                continue;
            }
            for reminder in [false, true] {
                let mut rows = load.query(params![channel, reminder, ms(query.now), limit(query.limit)])?;
                while let Some(row) = rows.next()? {
                    found.tasks.push(task(row)?.task);
                }
                let next = self.first_due_after(&channel, reminder, ms(query.now))?.map(time).transpose()?;
                found.next_at = found.next_at.into_iter().chain(next).min();
            }
        }
        let is_reminder = |task: &Task| task.class == MessageClass::Reminder;
        found.tasks.sort_by_key(|task| (is_reminder(task), task.next_attempt_at));
        Ok(found)
    }

    /// Hops from channel to channel through the index.
    fn channels_with_work(&self) -> Result<Vec<String>> {
        let mut hop = self.connection.prepare_cached(
            "SELECT channel FROM task INDEXED BY task_due
             WHERE handed = 1 AND status IN ('scheduled', 'failed') AND channel > ?1 ORDER BY channel LIMIT 1",
        )?;
        let mut found: Vec<String> = Vec::new();
        loop {
            let last = found.last().map_or("", String::as_str);
            match hop.query_row([last], |row| row.get(0)).optional()? {
                Some(channel) => found.push(channel),
                None => return Ok(found),
            }
        }
    }

    /// The first due time of a channel's reminders or of its other tasks, later than `after`.
    fn first_due_after(&self, channel: &str, reminder: bool, after: i64) -> Result<Option<i64>> {
        let mut first = self.connection.prepare_cached(
            "SELECT next_attempt_at FROM task INDEXED BY task_due
             WHERE handed = 1 AND status IN ('scheduled', 'failed')
               AND channel = ?1 AND (class = 'reminder') = ?2 AND next_attempt_at > ?3
             ORDER BY next_attempt_at LIMIT 1",
        )?;
        Ok(first.query_row(params![channel, reminder, after], |row| row.get(0)).optional()?)
    }

    /// The first due time of all.
    pub(crate) fn first_due(&self) -> Result<Option<i64>> {
        let mut first = None;
        for channel in self.channels_with_work()? {
            for reminder in [false, true] {
                first = first.into_iter().chain(self.first_due_after(&channel, reminder, i64::MIN)?).min();
            }
        }
        Ok(first)
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

    /// The first entries of the three indexes.
    fn wake(&self) -> Result<NextWake> {
        let first = |sql: &str| -> Result<Option<i64>> {
            Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
        };
        let due = self.first_due()?;
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
