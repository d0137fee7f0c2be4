//! A task as a row.

use std::time::Duration;

use retoma_core::event::OrderRef;
use retoma_core::ids::{BucketNo, ContactId, ConversationId, TaskId};
use retoma_core::send_check::Reason;
use retoma_core::task::{MessageClass, OnAmbiguous, Reference, Task, TaskKind, TaskStatus};
use rusqlite::{OptionalExtension, Row, params};

use crate::codec::{
    contact_at, json_or_default_at, ms, ms_or_null, name_at, time_at, time_or_null_at, uuid_or_null_at, word_at,
    word_or_null_at,
};
use crate::database::Database;
use crate::error::{Failure, Result};

/// What [`task`] reads, in its order, of `task AS t`. `seq` comes first.
pub(crate) const COLUMNS: &str = "t.seq, t.id, t.tenant, t.bucket, t.contact, t.conversation, t.flow, t.kind, t.cadence,
    t.touch, t.touch_no, t.message, t.text, t.class, t.channel, t.order_platform, t.order_account, t.order_txn, t.amount,
    t.link, t.scheduled_for, t.next_attempt_at, t.handed, t.max_late, t.on_ambiguous, t.cancel_on, t.status, t.reason,
    t.avoided, t.attempts, t.cancel_reason, t.reconcile_until, t.resent, t.created_at, t.updated_at,
    t.respelled, t.local_time";

/// How many columns [`COLUMNS`] names.
pub(crate) const WIDTH: usize = 37;

/// A task and where it is stored.
pub(crate) struct TaskAt {
    pub(crate) seq: i64,
    pub(crate) task: Task,
}

pub(crate) fn task(row: &Row<'_>) -> Result<TaskAt> {
    let platform: Option<String> = row.get(15)?;
    let order = match (platform, row.get(16)?, row.get(17)?) {
        (Some(platform), Some(account), Some(transaction)) => Some(OrderRef { platform, account, transaction }),
        _ => None,
    };
    let task = Task {
        id: name_at(row, 1)?,
        tenant: name_at(row, 2)?,
        bucket: BucketNo(row.get(3)?),
        contact: contact_at(row, 4)?,
        conversation: uuid_or_null_at(row, 5)?.map(ConversationId),
        flow: name_at(row, 6)?,
        kind: word_at(row, 7, TaskKind::parse)?,
        cadence: row.get(8)?,
        touch: row.get(9)?,
        touch_no: row.get(10)?,
        message: row.get(11)?,
        text: row.get(12)?,
        class: word_at(row, 13, MessageClass::parse)?,
        channel: name_at(row, 14)?,
        reference: Reference { order, amount: row.get(18)?, link: row.get(19)? },
        scheduled_for: time_at(row, 20)?,
        next_attempt_at: time_at(row, 21)?,
        handed: row.get(22)?,
        max_late: row.get::<_, Option<i64>>(23)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        on_ambiguous: word_or_null_at(row, 24, OnAmbiguous::parse)?,
        cancel_on: json_or_default_at(row, 25)?,
        status: word_at(row, 26, TaskStatus::parse)?,
        reason: word_or_null_at(row, 27, Reason::parse)?,
        avoided: row.get(28)?,
        attempts: row.get(29)?,
        cancel_reason: word_or_null_at(row, 30, Reason::parse)?,
        reconcile_until: time_or_null_at(row, 31)?,
        resent: row.get(32)?,
        created_at: time_at(row, 33)?,
        updated_at: time_at(row, 34)?,
        respelled: row.get(35)?,
        local_time: row.get(36)?,
    };
    Ok(TaskAt { seq: row.get(0)?, task })
}

impl Database {
    /// Claims a task's id for ever and inserts its row; `false` if it was claimed before. While the row is there, it is
    /// the claim; retention leaves one behind.
    pub(crate) fn promise(&self, task: &Task) -> Result<bool> {
        if self.task_is_gone(&task.tenant, &task.id)? {
            return Ok(false);
        }
        let order = task.reference.order.as_ref();
        let cancel_on = match task.cancel_on.as_slice() {
            [] => None,
            kinds => Some(serde_json::to_string(kinds)?),
        };
        let max_late = task.max_late.map(|late| i64::try_from(late.as_millis()).unwrap_or(i64::MAX));
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO task (id, tenant, bucket, contact, conversation, flow, kind, cadence, touch, touch_no, message,
                    text, class, channel, order_platform, order_account, order_txn, amount, link, scheduled_for,
                    next_attempt_at, handed, max_late, on_ambiguous, cancel_on, status, reason, avoided, attempts,
                    cancel_reason, reconcile_until, resent, created_at, updated_at, done, respelled, local_time)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                    ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37)
                 ON CONFLICT (id, tenant) DO NOTHING",
            )?
            .execute(params![
                task.id.as_str(),
                task.tenant.as_str(),
                task.bucket.0,
                &task.contact.as_bytes()[..],
                task.conversation.as_ref().map(|id| &id.as_bytes()[..]),
                task.flow.as_str(),
                task.kind.as_str(),
                task.cadence,
                task.touch,
                task.touch_no,
                task.message,
                task.text,
                task.class.as_str(),
                task.channel.as_str(),
                order.map(|order| &order.platform),
                order.map(|order| &order.account),
                order.map(|order| &order.transaction),
                task.reference.amount,
                task.reference.link,
                ms(task.scheduled_for),
                ms(task.next_attempt_at),
                task.handed,
                max_late,
                task.on_ambiguous.map(OnAmbiguous::as_str),
                cancel_on,
                task.status.as_str(),
                task.reason.map(Reason::as_str),
                task.avoided,
                task.attempts,
                task.cancel_reason.map(Reason::as_str),
                ms_or_null(task.reconcile_until),
                task.resent,
                ms(task.created_at),
                ms(task.updated_at),
                task.status.is_final(),
                task.respelled,
                task.local_time,
            ])?;
        if inserted == 1 {
            self.count("tasks", task.status.as_str(), 1);
        }
        Ok(inserted == 1)
    }

    /// Writes back what may change of a task, and keeps the counters.
    pub(crate) fn update_task(&self, before: TaskStatus, at: &TaskAt) -> Result<()> {
        let task = &at.task;
        self.connection
            .prepare_cached(
                "UPDATE task SET status = ?2, reason = ?3, avoided = ?4, attempts = ?5, cancel_reason = ?6,
                    reconcile_until = ?7, resent = ?8, next_attempt_at = ?9, handed = ?10, updated_at = ?11, done = ?12,
                    respelled = ?13
                 WHERE seq = ?1",
            )?
            .execute(params![
                at.seq,
                task.status.as_str(),
                task.reason.map(Reason::as_str),
                task.avoided,
                task.attempts,
                task.cancel_reason.map(Reason::as_str),
                ms_or_null(task.reconcile_until),
                task.resent,
                ms(task.next_attempt_at),
                task.handed,
                ms(task.updated_at),
                task.status.is_final(),
                task.respelled,
            ])?;
        self.count_move(before, task);
        Ok(())
    }

    pub(crate) fn count_move(&self, before: TaskStatus, task: &Task) {
        if before == task.status {
            return;
        }
        self.count("tasks", before.as_str(), -1);
        self.count("tasks", task.status.as_str(), 1);
        if task.avoided && task.status == TaskStatus::Cancelled {
            self.count("avoided", task.reason.map_or("", Reason::as_str), 1);
        }
    }

    pub(crate) fn find_task(&self, tenant: &str, id: &TaskId) -> Result<Option<TaskAt>> {
        let mut find = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM task AS t WHERE t.id = ?1 AND t.tenant = ?2"))?;
        find.query_row(params![id.as_str(), tenant], |row| Ok(task(row))).optional()?.transpose()
    }

    /// The tasks of a contact that are not final, in the order of their promise.
    pub(crate) fn live_tasks(&self, contact: ContactId) -> Result<Vec<TaskAt>> {
        let mut find = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM task AS t WHERE t.contact = ?1 AND t.done = 0 ORDER BY t.seq"
        ))?;
        let mut rows = find.query([&contact.as_bytes()[..]])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(task(row)?);
        }
        Ok(found)
    }
}

impl TaskAt {
    /// Ends a marked task where anything but an accepted end comes (D2).
    pub(crate) fn move_to(&mut self, status: TaskStatus, reason: Option<Reason>, now: jiff::Timestamp) {
        self.task.status = status;
        self.task.reason = reason;
        self.task.updated_at = now;
    }
}

/// A statement that must have changed exactly one row.
pub(crate) fn exactly_one(changed: usize, what: &str) -> Result<()> {
    if changed == 1 { Ok(()) } else { Err(Failure::Row(format!("{what}: {changed} rows"))) }
}
