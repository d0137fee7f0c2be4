//! What is known of contacts: the view that decisions and the check before sending look at.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::event::{Event, EventKind, OrderRef};
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{BucketNo, ContactId, Tenant};
use retoma_core::outcome::Outcome;
use retoma_core::receipt::Status;
use retoma_core::state::{Contact, ContactView, Conversation, PaymentFact, SendMark};
use retoma_core::task::{MessageClass, Task};
use retoma_store::AttemptRow;
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use crate::codec::{
    contact_at, json_at, json_or_default_at, kind, ms, name_at, name_or_null_at, time_at, time_or_null_at,
    uuid_or_null_at, word_at, word_or_null_at,
};
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::inbox::{EVENT, event};
use crate::receipts;

/// How far back sends count against caps.
const SENDS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What [`attempt`] reads, of `attempt AS a`.
pub(crate) const ATTEMPT: &str =
    "a.n, a.started_at, a.ended_at, a.outcome, a.http_status, a.error, a.response, a.provider_message_id";

/// An attempt whose columns start at `from`.
pub(crate) fn attempt(row: &Row<'_>, from: usize) -> Result<AttemptRow> {
    Ok(AttemptRow {
        n: row.get(from)?,
        started_at: time_at(row, from + 1)?,
        ended_at: time_or_null_at(row, from + 2)?,
        outcome: word_or_null_at(row, from + 3, Outcome::parse)?,
        http_status: row.get(from + 4)?,
        error: row.get(from + 5)?,
        response: row.get(from + 6)?,
        provider_message_id: row.get(from + 7)?,
    })
}

impl Database {
    /// See [`Store::load_contacts`](retoma_store::Store::load_contacts).
    pub fn load_contacts(
        &self,
        tenant_contacts: &[(Tenant, ContactId)],
        now: Timestamp,
    ) -> retoma_store::Result<Vec<ContactView>> {
        let mut views = Vec::with_capacity(tenant_contacts.len());
        for (tenant, contact) in tenant_contacts {
            views.extend(self.view(tenant, *contact, now)?);
        }
        Ok(views)
    }

    /// A handful of indexed point queries; nothing in it grows with history.
    fn view(&self, tenant: &Tenant, id: ContactId, now: Timestamp) -> Result<Option<ContactView>> {
        let Some((contact, merged_into)) = self.contact(tenant, id)? else { return Ok(None) };
        // Whoever names a contact that turned out to be another one means that one.
        if merged_into.is_some() {
            return self.view(tenant, self.standing(id)?, now);
        }
        let conversations = self.open_conversations(id)?;
        let tasks = self.tasks_of_view(tenant, id, &conversations)?;
        let undecided = self.undecided(id)?;
        let facts = self.facts(tenant, &orders_of(&conversations, &tasks, &undecided))?;
        Ok(Some(ContactView {
            contact,
            identities: self.identities(id)?,
            conversations,
            tasks,
            sends: self.sends(id, now)?,
            echoes: self.echoes(tenant, &undecided)?,
            undecided,
            facts,
        }))
    }

    /// A contact, and the one that it turned out to be.
    fn contact(&self, tenant: &Tenant, id: ContactId) -> Result<Option<(Contact, Option<Uuid>)>> {
        let mut find = self.connection.prepare_cached(
            "SELECT id, tenant, bucket, version, opted_out_at, paused_until, last_inbound_at, last_channel, vars, cycles,
                ping_pong, merged_into
             FROM contact WHERE id = ?1 AND tenant = ?2",
        )?;
        let read = |row: &Row<'_>| -> Result<(Contact, Option<Uuid>)> {
            let contact = Contact {
                id: contact_at(row, 0)?,
                tenant: name_at(row, 1)?,
                bucket: BucketNo(row.get(2)?),
                version: row.get::<_, i64>(3)?.unsigned_abs(),
                opted_out_at: time_or_null_at(row, 4)?,
                paused_until: time_or_null_at(row, 5)?,
                last_inbound_at: time_or_null_at(row, 6)?,
                last_channel: name_or_null_at(row, 7)?,
                vars: json_or_default_at(row, 8)?,
                cycles: row.get(9)?,
                ping_pong: json_or_default_at(row, 10)?,
            };
            Ok((contact, uuid_or_null_at(row, 11)?))
        };
        find.query_row(params![&id.as_bytes()[..], tenant.as_str()], |row| Ok(read(row))).optional()?.transpose()
    }

    fn identities(&self, contact: ContactId) -> Result<Vec<Identity>> {
        let mut find = self.connection.prepare_cached(
            "SELECT kind, value, match_key, confirmed FROM identity WHERE contact = ?1 ORDER BY kind, confirmed DESC, match_key",
        )?;
        let mut rows = find.query([&contact.as_bytes()[..]])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let kind: u8 = row.get(0)?;
            found.push(Identity {
                kind: *IdentityKind::ALL
                    .get(usize::from(kind))
                    .ok_or_else(|| Failure::Row(format!("identity kind {kind}")))?,
                value: row.get(1)?,
                match_key: row.get(2)?,
                confirmed: row.get(3)?,
            });
        }
        Ok(found)
    }

    fn open_conversations(&self, contact: ContactId) -> Result<Vec<Conversation>> {
        let mut find = self
            .connection
            .prepare_cached("SELECT body FROM conversation WHERE contact = ?1 AND closed = 0 ORDER BY ordinal")?;
        let mut rows = find.query([&contact.as_bytes()[..]])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(json_at(row, 0)?);
        }
        Ok(found)
    }

    /// Live tasks, and the touches of running cadences that have come to their end.
    fn tasks_of_view(&self, tenant: &Tenant, contact: ContactId, conversations: &[Conversation]) -> Result<Vec<Task>> {
        let mut tasks: Vec<Task> = self.live_tasks(contact)?.into_iter().map(|at| at.task).collect();
        for touch in
            conversations.iter().filter_map(|conversation| conversation.cadence.as_ref()).flat_map(|c| &c.touches)
        {
            if !tasks.iter().any(|task| task.id == touch.task)
                && let Some(at) = self.find_task(tenant.as_str(), &touch.task)?
            {
                tasks.push(at.task);
            }
        }
        Ok(tasks)
    }

    fn sends(&self, contact: ContactId, now: Timestamp) -> Result<Vec<SendMark>> {
        let since =
            now.saturating_sub(SignedDuration::try_from(SENDS_KEPT).unwrap_or(SignedDuration::MAX)).map_or(0, ms);
        let mut find = self.connection.prepare_cached(
            "SELECT a.started_at, a.class, p.rank, p.failed_at IS NOT NULL
             FROM attempt AS a INDEXED BY attempt_contact JOIN task AS t ON t.seq = a.task
             LEFT JOIN provider_message AS p
             ON p.message_id = a.provider_message_id AND p.channel = t.channel AND p.tenant = t.tenant
             WHERE a.counts = 1 AND a.contact = ?1 AND a.started_at > ?2 ORDER BY a.started_at",
        )?;
        let mut rows = find.query(params![&contact.as_bytes()[..], since])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let word = match row.get::<_, Option<i64>>(2)? {
                Some(rank) => receipts::word(rank, row.get(3)?),
                None => None,
            };
            found.push(SendMark {
                at: time_at(row, 0)?,
                class: word_at(row, 1, MessageClass::parse)?,
                receipt: word.and_then(|word| Status::parse(word.as_str())),
            });
        }
        Ok(found)
    }

    fn undecided(&self, contact: ContactId) -> Result<Vec<Event>> {
        let mut find = self.connection.prepare_cached(&format!(
            "SELECT {EVENT} FROM inbox AS i INDEXED BY inbox_contact JOIN event AS e ON e.seq = i.seq
             WHERE i.contact = ?1 ORDER BY i.seq"
        ))?;
        let mut rows = find.query([&contact.as_bytes()[..]])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(event(row)?);
        }
        Ok(found)
    }

    /// Which of the undecided messages from our own number are ours: the provider's id leads to a task. Whatever the channel
    /// is called, an id is one message.
    fn echoes(&self, tenant: &Tenant, undecided: &[Event]) -> Result<Vec<String>> {
        let own = undecided.iter().filter(|event| event.kind == EventKind::MessageHuman);
        let mut found = Vec::new();
        for id in own.filter_map(|event| event.data.message_id.as_ref()) {
            let mut find = self.connection.prepare_cached(
                "SELECT 1 FROM provider_message WHERE message_id = ?1 AND tenant = ?2 AND task IS NOT NULL",
            )?;
            if find.exists(params![id, tenant.as_str()])? {
                found.push(id.clone());
            }
        }
        Ok(found)
    }

    fn facts(&self, tenant: &Tenant, orders: &[&OrderRef]) -> Result<Vec<PaymentFact>> {
        let mut find = self.connection.prepare_cached(
            "SELECT kind, occurred_at FROM payment_fact
             WHERE txn = ?1 AND platform = ?2 AND account = ?3 AND tenant = ?4 ORDER BY rank, kind",
        )?;
        let mut found = Vec::new();
        for order in orders {
            let mut rows = find.query(params![order.transaction, order.platform, order.account, tenant.as_str()])?;
            while let Some(row) = rows.next()? {
                found.push(PaymentFact {
                    order: (*order).clone(),
                    kind: word_at(row, 0, kind)?,
                    occurred_at: time_at(row, 1)?,
                });
            }
        }
        Ok(found)
    }
}

/// The orders that a view's facts are wanted for, once each.
fn orders_of<'a>(conversations: &'a [Conversation], tasks: &'a [Task], undecided: &'a [Event]) -> Vec<&'a OrderRef> {
    let mut orders: Vec<&OrderRef> = conversations
        .iter()
        .flat_map(|conversation| conversation.order.iter().chain(&conversation.paid_orders))
        .chain(tasks.iter().filter_map(|task| task.reference.order.as_ref()))
        .chain(undecided.iter().filter_map(|event| event.data.order.as_ref()))
        .collect();
    orders.sort_unstable();
    orders.dedup();
    orders
}
