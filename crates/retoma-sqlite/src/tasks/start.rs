//! Starts, the point of no return, and what the check said instead.

use jiff::Timestamp;
use retoma_core::send_check::Reason;
use retoma_core::task::TaskStatus;
use retoma_store::{Owner, Settle, SettleTo, Start, Started};
use rusqlite::params;

use super::row::{TaskAt, exactly_one};
use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;
use crate::events::PAID_RANK;

impl Database {
    /// See [`Store::start_attempts`](retoma_store::Store::start_attempts).
    pub fn start_attempts(&self, owner: &Owner, batch: &[Start], now: Timestamp) -> retoma_store::Result<Vec<Started>> {
        batch.iter().map(|start| Ok(self.start(owner, start, now)?)).collect()
    }

    /// Looks, then writes; both in the transaction whose commit is the start, so that whatever took the reason away and
    /// committed before is seen here (never 3).
    fn start(&self, owner: &Owner, start: &Start, now: Timestamp) -> Result<Started> {
        if !self.owns(owner, start.bucket)? {
            return Ok(Started::NotOwner);
        }
        let Some(mut at) = self.find_task(start.tenant.as_str(), &start.task)? else { return Ok(Started::Moved) };
        if !is_startable(at.task.status) || at.task.attempts != start.attempts {
            return Ok(Started::Moved);
        }
        if self.must_look_again(start, &at)? {
            return Ok(Started::LookAgain);
        }
        let before = at.task.status;
        let attempt = start.attempts + 1;
        at.move_to(TaskStatus::Sending, None, now);
        at.task.attempts = attempt;
        let mut update = self.connection.prepare_cached(
            "UPDATE task SET status = 'sending', reason = NULL, attempts = ?2, starts = starts + 1, started_at = ?3,
                updated_at = ?3 WHERE seq = ?1 RETURNING starts",
        )?;
        let ord: i64 = update.query_row(params![at.seq, attempt, ms(now)], |row| row.get(0))?;
        drop(update);
        self.connection
            .prepare_cached(
                "INSERT INTO attempt (task, ord, n, contact, class, started_at, counts, said)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7)",
            )?
            .execute(params![
                at.seq,
                ord,
                attempt,
                &at.task.contact.as_bytes()[..],
                at.task.class.as_str(),
                ms(now),
                start.said.as_ref().map(|key| &key.0[..])
            ])?;
        self.count_move(before, &at.task);
        Ok(Started::Started { attempt })
    }

    /// Whether something came in since the check that may take the reason away: a decision (it moves the version), an
    /// event that waits to be decided, or money that arrived under any contact's name.
    fn must_look_again(&self, start: &Start, at: &TaskAt) -> Result<bool> {
        // Two contacts became one since the check.
        if at.task.contact != start.contact {
            return Ok(true);
        }
        if self.contact_version(&start.tenant, at.task.contact)? != Some(start.contact_version) {
            return Ok(true);
        }
        let undecided = self
            .connection
            .prepare_cached("SELECT 1 FROM inbox INDEXED BY inbox_contact WHERE contact = ?1 AND urgent >= ?2")?
            .exists(params![&at.task.contact.as_bytes()[..], !start.block_on_chat])?;
        if undecided {
            return Ok(true);
        }
        let Some(order) = at.task.reference.order.as_ref().filter(|_| start.block_on_paid) else { return Ok(false) };
        let paid = self
            .connection
            .prepare_cached(
                "SELECT 1 FROM payment_fact
                 WHERE txn = ?1 AND platform = ?2 AND account = ?3 AND tenant = ?4 AND rank >= ?5",
            )?
            .exists(params![order.transaction, order.platform, order.account, start.tenant.as_str(), PAID_RANK])?;
        Ok(paid)
    }

    /// See [`Store::settle_tasks`](retoma_store::Store::settle_tasks).
    pub fn settle_tasks(&self, batch: &[Settle], now: Timestamp) -> retoma_store::Result<Vec<bool>> {
        batch.iter().map(|settle| Ok(self.settle(settle, now)?)).collect()
    }

    fn settle(&self, settle: &Settle, now: Timestamp) -> Result<bool> {
        let Some(mut at) = self.find_task(settle.tenant.as_str(), &settle.task)? else { return Ok(false) };
        let before = at.task.status;
        if !is_startable(before) || at.task.attempts != settle.attempts {
            return Ok(false);
        }
        match &settle.to {
            SettleTo::Avoided(reason) => {
                at.task.avoided = true;
                at.move_to(TaskStatus::Cancelled, Some(*reason), now);
            }
            SettleTo::Deferred(reason, until) => {
                at.task.next_attempt_at = *until;
                at.move_to(before, Some(*reason), now);
            }
            SettleTo::Held(reason, missing) => {
                at.move_to(TaskStatus::Held, Some(*reason), now);
                self.set_detail(at.seq, missing)?;
            }
        }
        self.update_task(before, &at)?;
        Ok(true)
    }

    pub(super) fn set_detail(&self, seq: i64, detail: &str) -> Result<()> {
        let changed = self
            .connection
            .prepare_cached("UPDATE task SET detail = ?2 WHERE seq = ?1")?
            .execute(params![seq, detail])?;
        exactly_one(changed, "detail of a task")
    }
}

fn is_startable(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Scheduled | TaskStatus::Failed)
}

/// The reason of tasks that a person or the API cancelled.
pub(super) const CANCELLED: Reason = Reason::Cancelled;
