//! What is known of sends whose outcome nobody knows (E4).

use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind};
use retoma_core::evidence::{Sighting, Witness, text_key};
use retoma_core::ids::{ChannelName, TaskId, Tenant};
use retoma_core::keys::Key16;
use retoma_store::{Evidence, SightingQuery, Sightings, Unsure};
use rusqlite::{OptionalExtension, params};

use super::row::{COLUMNS, WIDTH, task};
use crate::codec::{json_at, ms, time_at, word_at};
use crate::contacts::{ATTEMPT, attempt};
use crate::database::Database;
use crate::error::Result;

/// Columns that [`ATTEMPT`] names.
const ATTEMPT_WIDTH: usize = 8;
/// Messages of one contact in one look. A person is not written to more often within minutes.
const SIGHTINGS_MAX: i64 = 200;

impl Database {
    /// See [`Store::load_unsure`](retoma_store::Store::load_unsure).
    pub fn load_unsure(&self, max: usize) -> retoma_store::Result<Vec<Unsure>> {
        Ok(self.unsure(max)?)
    }

    /// Walks the partial index `task_unsure`, which holds nothing else.
    fn unsure(&self, max: usize) -> Result<Vec<Unsure>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS}, {ATTEMPT}, a.said FROM task AS t INDEXED BY task_unsure
             JOIN attempt AS a ON a.task = t.seq AND a.ord = t.starts
             WHERE t.status = 'unsure' ORDER BY t.reconcile_until LIMIT ?1"
        ))?;
        let mut rows = statement.query([i64::try_from(max).unwrap_or(i64::MAX)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let said: Option<Vec<u8>> = row.get(WIDTH + ATTEMPT_WIDTH)?;
            found.push(Unsure {
                task: task(row)?.task,
                attempt: attempt(row, WIDTH)?,
                said: said.and_then(|bytes| bytes.try_into().ok()).map(Key16),
            });
        }
        Ok(found)
    }

    /// See [`Store::load_sightings`](retoma_store::Store::load_sightings).
    pub fn load_sightings(&self, questions: &[SightingQuery]) -> retoma_store::Result<Vec<Sightings>> {
        questions.iter().map(|question| Ok(self.sightings(question)?)).collect()
    }

    /// Newest events of the contact first, through `event_contact`; ends at the first that is too old.
    fn sightings(&self, question: &SightingQuery) -> Result<Sightings> {
        let mut statement = self.connection.prepare_cached(
            "SELECT kind, occurred_at, received_at, data FROM event INDEXED BY event_contact
             WHERE contact = ?1 AND tenant = ?2 ORDER BY seq DESC LIMIT ?3",
        )?;
        let mut rows =
            statement.query(params![&question.contact.as_bytes()[..], question.tenant.as_str(), SIGHTINGS_MAX])?;
        let mut found = Sightings::default();
        while let Some(row) = rows.next()? {
            let heard_at = time_at(row, 2)?;
            if heard_at < question.since {
                break;
            }
            let kind: EventKind = word_at(row, 0, crate::codec::kind)?;
            if !matches!(kind, EventKind::MessageStatus | EventKind::MessageHuman) {
                continue;
            }
            let data: EventData = json_at(row, 3)?;
            let Some(message_id) = data.message_id else { continue };
            if data.channel.as_ref().is_some_and(|channel| *channel != question.channel) {
                continue;
            }
            let claimed = self.is_claimed_message(&question.tenant, &question.channel, &message_id)?;
            let said = data.text.as_deref().map(text_key);
            let sighting = Sighting { message_id, at: time_at(row, 1)?, heard_at, said, claimed };
            // What a person typed is known with or without a text.
            match (kind, &sighting.said) {
                (EventKind::MessageStatus, None) => found.receipts.push(sighting),
                _ => found.messages.push(sighting),
            }
        }
        let Sightings { messages, receipts } = &mut found;
        receipts.retain(|receipt| messages.iter().all(|message| message.message_id != receipt.message_id));
        Ok(found)
    }

    pub(super) fn is_claimed_message(&self, tenant: &Tenant, channel: &ChannelName, message_id: &str) -> Result<bool> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT 1 FROM provider_message WHERE message_id = ?1 AND channel = ?2 AND tenant = ?3 AND task IS NOT NULL",
            )?
            .exists(params![message_id, channel.as_str(), tenant.as_str()])?)
    }

    /// See [`Store::claimed_messages`](retoma_store::Store::claimed_messages).
    pub fn claimed_messages(
        &self,
        tenant: &Tenant,
        channel: &ChannelName,
        ids: &[String],
    ) -> retoma_store::Result<Vec<String>> {
        let mut claimed = Vec::new();
        for id in ids {
            if self.is_claimed_message(tenant, channel, id)? {
                claimed.push(id.clone());
            }
        }
        Ok(claimed)
    }

    /// See [`Store::add_evidence`](retoma_store::Store::add_evidence).
    pub fn add_evidence(&self, rows: &[Evidence]) -> retoma_store::Result<()> {
        rows.iter()
            .try_for_each(|row| Ok(self.note_evidence(&row.tenant, &row.task, row.at, row.witness, &row.said)?))
    }

    pub(crate) fn note_evidence(
        &self,
        tenant: &Tenant,
        task: &TaskId,
        at: Timestamp,
        witness: Witness,
        said: &str,
    ) -> Result<()> {
        let seq: Option<i64> = self
            .connection
            .prepare_cached("SELECT seq FROM task WHERE id = ?1 AND tenant = ?2")?
            .query_row(params![task.as_str(), tenant.as_str()], |row| row.get(0))
            .optional()?;
        let Some(seq) = seq else { return Ok(()) };
        self.connection
            .prepare_cached(
                "INSERT INTO evidence (task, n, at, witness, said)
                 SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4 FROM evidence WHERE task = ?1",
            )?
            .execute(params![seq, ms(at), witness.as_str(), said])?;
        Ok(())
    }

    /// See [`Store::list_evidence`](retoma_store::Store::list_evidence).
    pub fn list_evidence(&self, tenant: &Tenant, id: &TaskId) -> retoma_store::Result<Vec<Evidence>> {
        Ok(self.evidence_of(tenant, id)?)
    }

    fn evidence_of(&self, tenant: &Tenant, id: &TaskId) -> Result<Vec<Evidence>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT e.at, e.witness, e.said FROM task AS t JOIN evidence AS e ON e.task = t.seq
             WHERE t.id = ?1 AND t.tenant = ?2 ORDER BY e.n",
        )?;
        let mut rows = statement.query(params![id.as_str(), tenant.as_str()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(Evidence {
                tenant: tenant.clone(),
                task: id.clone(),
                at: time_at(row, 0)?,
                witness: word_at(row, 1, Witness::parse)?,
                said: row.get(2)?,
            });
        }
        Ok(found)
    }
}
