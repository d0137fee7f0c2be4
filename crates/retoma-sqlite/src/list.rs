//! Pages, single rows and counts for people: live and finished rows alike, newest first.

use jiff::{SignedDuration, Timestamp};
use retoma_core::decision::Transition;
use retoma_core::ids::{ContactId, EventId, RequestId, TaskId, Tenant};
use retoma_core::outcome::Outcome;
use retoma_core::task::TaskStatus;
use retoma_store::{
    AttemptRow, AuditRow, DeadLetter, EventFilter, EventRow, EventStatus, FindContact, Page, Paged, RawRequest,
    ReceiptTimes, TaskFilter, TaskRow,
};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use crate::arrivals;
use crate::codec::{
    contact_at, conversation_at, event_at, json_at, json_or_default_at, kind, ms, name_at, time_at, time_or_null_at,
    uuid_at, uuid_or_null_at, word_at, word_or_null_at,
};
use crate::contacts::{ATTEMPT, attempt};
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::events::kind_number;
use crate::receipts;
use crate::tasks::{COLUMNS, WIDTH, task};

/// The most rows of a page.
const PAGE_MAX: usize = 500;
/// Due for longer than this is stuck.
const LATE: SignedDuration = SignedDuration::from_mins(15);
/// Under way for longer than this is stuck.
const SENDING_LONG: SignedDuration = SignedDuration::from_mins(10);

/// A condition with its values; `?1` is the tenant, whatever follows has followed it.
pub(crate) struct Where {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Where {
    pub(crate) fn of_tenant(column: &str, tenant: &Tenant) -> Self {
        Self { sql: format!("{column} = ?1"), values: vec![Value::Text(tenant.as_str().to_owned())] }
    }

    /// Adds `AND condition`, in which `?` stands for the value.
    pub(crate) fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        let place = format!("?{}", self.values.len());
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('?', &place));
    }
}

/// The tasks that a filter means.
pub(crate) fn task_where(filter: &TaskFilter) -> Where {
    let mut condition = Where::of_tenant("t.tenant", &filter.tenant);
    if !filter.ids.is_empty() {
        let ids = serde_json::to_string(&filter.ids).expect("names are JSON");
        condition.and("t.id IN (SELECT value FROM json_each(?))", ids);
    }
    if let Some(contact) = filter.contact {
        condition.and("t.contact = ?", contact.as_bytes().to_vec());
    }
    if let Some(conversation) = filter.conversation {
        condition.and("t.conversation = ?", conversation.as_bytes().to_vec());
    }
    if let Some(status) = filter.status {
        if matches!(status, TaskStatus::Held | TaskStatus::Unsure | TaskStatus::Dead) {
            // Word for word the condition of the partial index, or SQLite does not use it.
            condition.sql.push_str(" AND t.status IN ('held', 'unsure', 'dead')");
        }
        condition.and("t.status = ?", status.as_str().to_owned());
    }
    if let Some(reason) = &filter.reason {
        condition.and("coalesce(t.cadence, t.message) = ?", reason.clone());
    }
    if let Some(reference) = &filter.reference {
        condition.and("t.done IN (0, 1) AND t.order_txn = ?", reference.clone());
    }
    if let Some(touch) = filter.touch_no {
        condition.and("t.touch_no = ?", i64::from(touch));
    }
    if let Some(silent) = &filter.silent {
        let channels = serde_json::to_string(&silent.channels).expect("names are JSON");
        condition.sql.push_str(
            " AND t.seq IN (SELECT late.seq FROM provider_message AS p INDEXED BY provider_message_taken
               JOIN task AS late ON late.id = p.task AND late.tenant = p.tenant
               WHERE p.tenant = ?1 AND p.task IS NOT NULL AND p.accepted_at IS NOT NULL AND p.rank <= 1
                 AND p.failed_at IS NULL",
        );
        condition.and("p.channel IN (SELECT value FROM json_each(?))", channels);
        condition.and("p.accepted_at > ?", arrivals::before(silent.before, arrivals::LOOK_BACK));
        condition.and("p.accepted_at <= ? AND late.status = 'sent')", ms(silent.before));
    }
    if let Some(now) = filter.stuck_at {
        // Each arm walks its own partial index.
        condition.and(
            "t.seq IN (WITH RECURSIVE way(name) AS (
                         SELECT (SELECT channel FROM task INDEXED BY task_due
                                 WHERE handed = 1 AND status IN ('scheduled', 'failed') ORDER BY channel LIMIT 1)
                         UNION ALL
                         SELECT (SELECT channel FROM task INDEXED BY task_due
                                 WHERE handed = 1 AND status IN ('scheduled', 'failed') AND channel > way.name
                                 ORDER BY channel LIMIT 1)
                         FROM way WHERE way.name IS NOT NULL)
                       SELECT late.seq FROM way JOIN task AS late INDEXED BY task_due ON late.channel = way.name
                       WHERE late.handed = 1 AND late.status IN ('scheduled', 'failed')
                         AND (late.class = 'reminder') IN (0, 1) AND late.next_attempt_at < ?)",
            before(now, LATE),
        );
        let late = condition.sql.split_off(condition.sql.rfind("t.seq IN").expect("just added"));
        condition.values.push(Value::Integer(before(now, SENDING_LONG)));
        condition.sql.push_str(&format!(
            "({late} OR t.seq IN (SELECT seq FROM task INDEXED BY task_sending WHERE status = 'sending' AND started_at < ?{})
              OR t.seq IN (SELECT seq FROM task INDEXED BY task_attention WHERE status IN ('held', 'unsure', 'dead') AND status <> 'dead'))",
            condition.values.len()
        ));
    }
    condition
}

fn before(now: Timestamp, by: SignedDuration) -> i64 {
    now.saturating_sub(by).map_or(0, ms)
}

/// Reads a page and the cursor of the next: the row number after which to go on.
fn cursor(page: &Page) -> Result<i64> {
    match &page.cursor {
        None => Ok(i64::MAX),
        Some(text) => text.parse().map_err(|_| Failure::invalid("the cursor is none of ours")),
    }
}

impl Database {
    pub(crate) fn page<T>(
        &self,
        select: &str,
        seq: &str,
        mut condition: Where,
        page: &Page,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Paged<T>> {
        let limit = page.limit.clamp(1, PAGE_MAX);
        condition.and(&format!("{seq} < ?"), cursor(page)?);
        let sql = format!("{select} WHERE {} ORDER BY {seq} DESC LIMIT {}", condition.sql, limit + 1);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(&condition.values))?;
        let mut items = Vec::new();
        let mut last = 0_i64;
        while let Some(row) = rows.next()? {
            if items.len() == limit {
                return Ok(Paged { items, next_cursor: Some(last.to_string()) });
            }
            // The row number is the first column of every page.
            last = row.get(0)?;
            items.push(read(row)?);
        }
        Ok(Paged { items, next_cursor: None })
    }

    /// See [`Store::list_events`](retoma_store::Store::list_events).
    pub fn list_events(
        &self,
        tenant: &Tenant,
        filter: &EventFilter,
        page: &Page,
    ) -> retoma_store::Result<Paged<EventRow>> {
        let mut condition = Where::of_tenant("e.tenant", tenant);
        if let Some(status) = filter.status {
            match status {
                EventStatus::Received => condition.sql.push_str(" AND e.seq IN (SELECT seq FROM inbox)"),
                // Word for word the condition of the partial index, or SQLite does not use it.
                EventStatus::Held | EventStatus::Quarantined | EventStatus::Dead => {
                    condition.sql.push_str(" AND e.status IN ('held', 'quarantined', 'dead')");
                }
                EventStatus::Decided | EventStatus::Ignored | EventStatus::Discarded => {}
            }
            condition.and("e.status = ?", status.as_str().to_owned());
        }
        if let Some(source) = &filter.source {
            condition.and("e.source = ?", source.as_str().to_owned());
        }
        if let Some(kind) = filter.kind {
            condition.and("e.kind = ?", kind.as_str().to_owned());
        }
        if let Some(contact) = filter.contact {
            condition.and("e.contact = ?", contact.as_bytes().to_vec());
        }
        Ok(self.page(&format!("SELECT {EVENT_ROW} FROM event AS e"), "e.seq", condition, page, event_row)?)
    }

    /// See [`Store::get_event`](retoma_store::Store::get_event).
    pub fn get_event(&self, tenant: &Tenant, id: EventId) -> retoma_store::Result<Option<EventRow>> {
        Ok(self.event_row(tenant, id)?)
    }

    fn event_row(&self, tenant: &Tenant, id: EventId) -> Result<Option<EventRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {EVENT_ROW} FROM event AS e WHERE e.id = ?1 AND e.tenant = ?2"))?
            .query_row(params![&id.as_bytes()[..], tenant.as_str()], |row| Ok(event_row(row)))
            .optional()?
            .transpose()
    }

    /// See [`Store::get_raw`](retoma_store::Store::get_raw).
    pub fn get_raw(&self, tenant: &Tenant, id: EventId) -> retoma_store::Result<Option<RawRequest>> {
        Ok(self.raw(tenant, id)?)
    }

    fn raw(&self, tenant: &Tenant, id: EventId) -> Result<Option<RawRequest>> {
        let read = |row: &Row<'_>| -> Result<RawRequest> {
            Ok(RawRequest {
                id: RequestId(uuid_at(row, 0)?),
                headers: json_at(row, 1)?,
                body: row.get::<_, Vec<u8>>(2)?.into(),
            })
        };
        self.connection
            .prepare_cached(
                "SELECT r.id, r.headers, r.body FROM event AS e JOIN raw_request AS r ON r.seq = e.raw
                 WHERE e.id = ?1 AND e.tenant = ?2",
            )?
            .query_row(params![&id.as_bytes()[..], tenant.as_str()], |row| Ok(read(row)))
            .optional()?
            .transpose()
    }

    /// See [`Store::list_tasks`](retoma_store::Store::list_tasks).
    pub fn list_tasks(
        &self,
        tenant: &Tenant,
        filter: &TaskFilter,
        page: &Page,
    ) -> retoma_store::Result<Paged<TaskRow>> {
        let mut filter = filter.clone();
        filter.tenant = tenant.clone();
        Ok(self.page(&select_task_row(), "t.seq", task_where(&filter), page, task_row)?)
    }

    /// See [`Store::get_task`](retoma_store::Store::get_task).
    pub fn get_task(&self, tenant: &Tenant, id: &TaskId) -> retoma_store::Result<Option<(TaskRow, Vec<AttemptRow>)>> {
        Ok(self.task_row(tenant, id)?)
    }

    fn task_row(&self, tenant: &Tenant, id: &TaskId) -> Result<Option<(TaskRow, Vec<AttemptRow>)>> {
        let found = self
            .connection
            .prepare_cached(&format!("{} WHERE t.id = ?1 AND t.tenant = ?2", select_task_row()))?
            .query_row(params![id.as_str(), tenant.as_str()], |row| Ok((row.get::<_, i64>(0)?, task_row(row))))
            .optional()?;
        let Some((seq, row)) = found else { return Ok(None) };
        let mut statement = self
            .connection
            .prepare_cached(&format!("SELECT {ATTEMPT} FROM attempt AS a WHERE a.task = ?1 ORDER BY a.ord"))?;
        let mut rows = statement.query([seq])?;
        let mut attempts = Vec::new();
        while let Some(row) = rows.next()? {
            attempts.push(attempt(row, 0)?);
        }
        Ok(Some((row?, attempts)))
    }

    /// See [`Store::find_contacts`](retoma_store::Store::find_contacts).
    pub fn find_contacts(&self, tenant: &Tenant, find: &FindContact) -> retoma_store::Result<Vec<ContactId>> {
        Ok(self.contacts_of(tenant, find)?)
    }

    /// The holder first, then who claims it too.
    fn contacts_of(&self, tenant: &Tenant, find: &FindContact) -> Result<Vec<ContactId>> {
        let identity = match find {
            FindContact::Id(id) => {
                let id = self.standing(*id)?;
                return Ok(self.contact_version(tenant, id)?.map(|_| id).into_iter().collect());
            }
            FindContact::Identity(identity) => identity,
        };
        let mut statement = self.connection.prepare_cached(
            "SELECT contact, 0 AS place FROM identity WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3
             UNION ALL
             SELECT contact, 1 FROM identity_alias WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3
             ORDER BY place, contact",
        )?;
        let mut rows = statement.query(params![identity.match_key, kind_number(identity.kind), tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(contact_at(row, 0)?);
        }
        Ok(found)
    }

    /// See [`Store::list_transitions`](retoma_store::Store::list_transitions).
    pub fn list_transitions(&self, tenant: &Tenant, contact: ContactId) -> retoma_store::Result<Vec<Transition>> {
        Ok(self.transitions(tenant, contact)?)
    }

    fn transitions(&self, tenant: &Tenant, contact: ContactId) -> Result<Vec<Transition>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT contact, conversation, from_state, event, taken_as, to_state, reason, actions, rule, event_id, at
             FROM transition_log WHERE contact = ?1 AND tenant = ?2 ORDER BY seq",
        )?;
        let mut rows = statement.query(params![&contact.as_bytes()[..], tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(Transition {
                contact: contact_at(row, 0)?,
                conversation: conversation_at(row, 1)?,
                from: row.get(2)?,
                event: row.get(3)?,
                taken_as: row.get(4)?,
                to: row.get(5)?,
                reason: row.get(6)?,
                actions: json_or_default_at(row, 7)?,
                rule: row.get(8)?,
                event_id: event_at(row, 9)?,
                at: time_at(row, 10)?,
            });
        }
        Ok(found)
    }

    /// See [`Store::list_dead`](retoma_store::Store::list_dead).
    pub fn list_dead(&self, tenant: &Tenant, page: &Page) -> retoma_store::Result<Paged<DeadLetter>> {
        let select =
            "SELECT d.seq, d.id, d.kind, d.source, d.flow, d.key, d.attempts, d.last_error, d.errors, d.reason,
                      d.payload, d.consumer_version, d.created_at, d.died_at FROM dead_letter AS d";
        Ok(self.page(select, "d.seq", Where::of_tenant("d.tenant", tenant), page, dead_letter)?)
    }

    /// See [`Store::list_audit`](retoma_store::Store::list_audit).
    pub fn list_audit(&self, tenant: &Tenant, page: &Page) -> retoma_store::Result<Paged<AuditRow>> {
        let select = "SELECT a.seq, a.tenant, a.at, a.actor, a.action, a.target, a.detail FROM audit AS a";
        let read = |row: &Row<'_>| {
            Ok(AuditRow {
                tenant: name_at(row, 1)?,
                at: time_at(row, 2)?,
                actor: row.get(3)?,
                action: row.get(4)?,
                target: row.get(5)?,
                detail: json_at(row, 6)?,
            })
        };
        Ok(self.page(select, "a.seq", Where::of_tenant("a.tenant", tenant), page, read)?)
    }
}

const EVENT_ROW: &str = "e.seq, e.id, e.source, e.kind, e.key, e.status, e.reason, e.duplicates, e.altered, e.contact,
    e.occurred_at, e.received_at, e.completed_at, e.result, e.error, e.data";

fn event_row(row: &Row<'_>) -> Result<EventRow> {
    Ok(EventRow {
        id: event_at(row, 1)?,
        source: name_at(row, 2)?,
        kind: word_at(row, 3, kind)?,
        key: row.get(4)?,
        status: word_at(row, 5, EventStatus::parse)?,
        reason: row.get(6)?,
        duplicates: row.get::<_, i64>(7)?.unsigned_abs(),
        altered: row.get(8)?,
        contact_id: uuid_or_null_at(row, 9)?.map(ContactId),
        occurred_at: time_at(row, 10)?,
        received_at: time_at(row, 11)?,
        completed_at: time_or_null_at(row, 12)?,
        result: row.get(13)?,
        error: row.get(14)?,
        data: json_at(row, 15)?,
    })
}

fn select_task_row() -> String {
    format!(
        "SELECT {COLUMNS}, t.outcome, t.last_error, t.provider_message_id, t.detail, p.rank, p.accepted_at, p.sent_at,
            p.delivered_at, p.read_at, p.played_at, p.failed_at
         FROM task AS t LEFT JOIN provider_message AS p
         ON p.message_id = t.provider_message_id AND p.channel = t.channel AND p.tenant = t.tenant"
    )
}

fn task_row(row: &Row<'_>) -> Result<TaskRow> {
    let rank: Option<i64> = row.get(WIDTH + 4)?;
    let times = ReceiptTimes {
        accepted_at: time_or_null_at(row, WIDTH + 5)?,
        sent_at: time_or_null_at(row, WIDTH + 6)?,
        delivered_at: time_or_null_at(row, WIDTH + 7)?,
        read_at: time_or_null_at(row, WIDTH + 8)?,
        played_at: time_or_null_at(row, WIDTH + 9)?,
        failed_at: time_or_null_at(row, WIDTH + 10)?,
    };
    Ok(TaskRow {
        task: task(row)?.task,
        outcome: word_or_null_at(row, WIDTH, Outcome::parse)?,
        last_error: row.get(WIDTH + 1)?,
        provider_message_id: row.get(WIDTH + 2)?,
        receipt: rank.and_then(|rank| receipts::word(rank, times.failed_at.is_some())),
        receipt_times: times,
        detail: row.get(WIDTH + 3)?,
    })
}

pub(crate) fn dead_letter(row: &Row<'_>) -> Result<DeadLetter> {
    Ok(DeadLetter {
        id: row.get(1)?,
        kind: row.get(2)?,
        source: row.get(3)?,
        flow: row.get(4)?,
        key: row.get(5)?,
        attempts: row.get(6)?,
        last_error: row.get(7)?,
        errors: json_at(row, 8)?,
        reason: row.get(9)?,
        payload: json_at(row, 10)?,
        consumer_version: row.get(11)?,
        created_at: time_at(row, 12)?,
        died_at: time_at(row, 13)?,
    })
}
