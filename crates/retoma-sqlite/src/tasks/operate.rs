//! What people and the API do with tasks: promise, cancel, send again, settle.

use jiff::Timestamp;
use retoma_core::evidence::Witness;
use retoma_core::ids::{TaskId, Tenant};
use retoma_core::task::{Task, TaskStatus};
use retoma_store::{AuditRow, Reopen, ReopenHow, TaskFilter};
use rusqlite::params;
use serde_json::json;

use super::row::{COLUMNS, TaskAt, task};
use super::start::CANCELLED;
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::list::task_where;

impl Database {
    /// See [`Store::schedule_tasks`](retoma_store::Store::schedule_tasks).
    pub fn schedule_tasks(&self, batch: &[Task], actor: &str) -> retoma_store::Result<Vec<(Task, bool)>> {
        batch.iter().map(|task| Ok(self.schedule(task, actor)?)).collect()
    }

    fn schedule(&self, task: &Task, actor: &str) -> Result<(Task, bool)> {
        if !self.promise(task)? {
            // Gone only where retention has removed it; the id stays taken.
            let stored = self.find_task(task.tenant.as_str(), &task.id)?.map_or_else(|| task.clone(), |at| at.task);
            return Ok((stored, false));
        }
        let detail = json!({ "scheduled_for": task.scheduled_for, "channel": task.channel });
        self.audit(&task.tenant, actor, task.created_at, "task.schedule", task.id.as_str(), detail)?;
        let stored = self.find_task(task.tenant.as_str(), &task.id)?.ok_or_else(|| missing(&task.id))?;
        Ok((stored.task, true))
    }

    /// See [`Store::cancel_tasks`](retoma_store::Store::cancel_tasks).
    pub fn cancel_tasks(&self, filter: &TaskFilter, actor: &str, now: Timestamp) -> retoma_store::Result<Vec<TaskId>> {
        Ok(self.cancel(filter, actor, now)?)
    }

    /// Compare-and-set by any node: a waiting task ends, one under way is marked. Needs no epoch.
    fn cancel(&self, filter: &TaskFilter, actor: &str, now: Timestamp) -> Result<Vec<TaskId>> {
        let condition = task_where(filter);
        if condition.values.len() == 1 {
            return Err(Failure::invalid("a filter that names nothing would cancel everything"));
        }
        let found = {
            let mut statement = self.connection.prepare(&format!(
                "SELECT {COLUMNS} FROM task AS t WHERE {} AND t.done = 0 AND t.cancel_reason IS NULL ORDER BY t.seq",
                condition.sql
            ))?;
            let mut rows = statement.query(rusqlite::params_from_iter(&condition.values))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(task(row)?);
            }
            found
        };
        let mut ids = Vec::with_capacity(found.len());
        for mut at in found {
            let before = at.task.status;
            if before.is_waiting() {
                at.move_to(TaskStatus::Cancelled, Some(CANCELLED), now);
            } else {
                at.task.cancel_reason = Some(CANCELLED);
                at.task.updated_at = now;
            }
            self.update_task(before, &at)?;
            ids.push(at.task.id);
        }
        let detail =
            json!({ "tasks": ids, "contact": filter.contact, "reference": filter.reference, "reason": filter.reason });
        self.audit(&filter.tenant, actor, now, "task.cancel", &format!("{} tasks", ids.len()), detail)?;
        Ok(ids)
    }

    /// See [`Store::reopen_tasks`](retoma_store::Store::reopen_tasks).
    pub fn reopen_tasks(&self, reopen: &Reopen, actor: &str, now: Timestamp) -> retoma_store::Result<Vec<TaskId>> {
        let mut reopened = Vec::new();
        for id in &reopen.ids {
            if self.reopen(&reopen.tenant, id, reopen.how, actor, now)? {
                reopened.push(id.clone());
            }
        }
        Ok(reopened)
    }

    pub(crate) fn reopen(
        &self,
        tenant: &Tenant,
        id: &TaskId,
        how: ReopenHow,
        actor: &str,
        now: Timestamp,
    ) -> Result<bool> {
        let Some(mut at) = self.find_task(tenant.as_str(), id)? else { return Ok(false) };
        let before = at.task.status;
        let allowed = match how {
            ReopenHow::Retry => {
                matches!(before, TaskStatus::Held | TaskStatus::Dead | TaskStatus::Failed | TaskStatus::Cancelled)
            }
            ReopenHow::ResolveSent | ReopenHow::ResolveNotSent => {
                matches!(before, TaskStatus::Unsure | TaskStatus::Held)
            }
        };
        if !allowed {
            return Ok(false);
        }
        match how {
            ReopenHow::Retry => {
                if at.task.avoided {
                    self.count("avoided", at.task.reason.map_or("", |reason| reason.as_str()), -1);
                }
                at.task.avoided = false;
                at.task.cancel_reason = None;
                back_to_work(&mut at, now);
                self.forget_dead(tenant.as_str(), "task", id.as_str())?;
            }
            ReopenHow::ResolveSent => {
                at.task.reconcile_until = None;
                at.move_to(TaskStatus::Sent, None, now);
            }
            ReopenHow::ResolveNotSent => {
                self.uncount_last_attempt(at.seq)?;
                match at.task.cancel_reason {
                    Some(reason) => at.move_to(TaskStatus::Cancelled, Some(reason), now),
                    None => back_to_work(&mut at, now),
                }
                at.task.reconcile_until = None;
            }
        }
        self.update_task(before, &at)?;
        let (action, as_what) = match how {
            ReopenHow::Retry => ("task.retry", "retry"),
            ReopenHow::ResolveSent => ("task.resolve", "sent"),
            ReopenHow::ResolveNotSent => ("task.resolve", "not_sent"),
        };
        if how != ReopenHow::Retry {
            let said = if how == ReopenHow::ResolveSent { "a person says: sent" } else { "a person says: not sent" };
            self.note_evidence(tenant, id, now, Witness::Person, said)?;
        }
        self.audit(tenant, actor, now, action, id.as_str(), json!({ "was": before.as_str(), "as": as_what }))?;
        Ok(true)
    }

    /// Surely not sent after all: it counts against no cap.
    fn uncount_last_attempt(&self, task: i64) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE attempt SET counts = 0 WHERE task = ?1 AND ord = (SELECT max(ord) FROM attempt WHERE task = ?1)",
            )?
            .execute(params![task])?;
        Ok(())
    }

    pub(crate) fn audit(
        &self,
        tenant: &Tenant,
        actor: &str,
        at: Timestamp,
        action: &str,
        target: &str,
        detail: serde_json::Value,
    ) -> Result<()> {
        self.insert_audit(&AuditRow {
            tenant: tenant.clone(),
            at,
            actor: actor.to_owned(),
            action: action.to_owned(),
            target: target.to_owned(),
            detail,
        })
    }
}

fn back_to_work(at: &mut TaskAt, now: Timestamp) {
    at.task.next_attempt_at = now;
    at.task.handed = true;
    at.move_to(TaskStatus::Scheduled, None, now);
}

fn missing(id: &TaskId) -> Failure {
    Failure::Row(format!("task {id} was just written and is not there"))
}
