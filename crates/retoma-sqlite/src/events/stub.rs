//! Messages that came without their content first (FC-06): a library could not decrypt them yet, and sends the same id again
//! when it can. The copy with content becomes the event, once; a later empty copy takes nothing away.

use retoma_core::event::EventKind;
use retoma_core::ids::{BucketNo, ContactId, EventId};
use retoma_store::{Appended, Entry, EventStatus, NewEvent, Subject};
use rusqlite::params;

use super::append::INSERT_INBOX;
use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;

/// The reason of an event that still waits for its content.
const CONTENT_PENDING: &str = "content_pending";

/// Whether this copy carries no content.
fn is_stub(event: &NewEvent) -> bool {
    matches!(&event.entry, Entry::Ignored(reason) if reason == CONTENT_PENDING)
}

impl Database {
    /// Whether a repetition whose bytes differ from the first copy's is none that a person must look at: it is empty, or it
    /// repeats the copy that filled the event.
    pub(super) fn says_the_same(&self, seq: i64, copy: &NewEvent) -> Result<bool> {
        if is_stub(copy) {
            return Ok(true);
        }
        let mut find = self.connection.prepare_cached("SELECT 1 FROM event WHERE seq = ?1 AND digest = ?2")?;
        Ok(find.exists(params![seq, &copy.digest.0[..]])?)
    }

    /// Whether the event in this row waits for what `copy` brings.
    pub(super) fn waits_for_content(&self, seq: i64, copy: &NewEvent) -> Result<bool> {
        if copy.entry != Entry::Received {
            return Ok(false);
        }
        let waits = self
            .connection
            .prepare_cached("SELECT 1 FROM event WHERE seq = ?1 AND status = 'ignored' AND reason = ?2")?
            .exists(params![seq, CONTENT_PENDING])?;
        Ok(waits)
    }

    /// Makes `copy` the content of the event in this row, which keeps its id and enters the inbox for the first time. Its
    /// receive time is the copy's: a row that came back with an old one would hide from the owner's scan. The stub's own
    /// bytes say nothing and go.
    pub(super) fn fill_stub(&self, seq: i64, copy: &NewEvent, raw: Option<i64>) -> Result<Appended> {
        let contact = match &copy.subject {
            Subject::Contact(contact) => Some(*contact),
            Subject::Person { identities, .. } if identities.is_empty() => None,
            Subject::Person { candidate, identities } => {
                Some(self.resolve(&copy.tenant, *candidate, identities, copy.received_at)?)
            }
            Subject::Nobody => None,
        };
        let (id, old_raw): (uuid::Uuid, Option<i64>) = self
            .connection
            .prepare_cached("SELECT id, raw FROM event WHERE seq = ?1")?
            .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let id = EventId(id);
        let bucket = match contact {
            Some(contact) => BucketNo::of_contact(&copy.tenant, contact),
            None => BucketNo::of(&copy.tenant, id.as_bytes()),
        };
        let contact_blob = contact.as_ref().map(|contact| &contact.as_bytes()[..]);
        self.connection
            .prepare_cached(
                "UPDATE event SET kind = ?2, bucket = ?3, contact = ?4, raw = coalesce(?5, raw), occurred_at = ?6,
                    received_at = ?7, urgent = ?8, data = ?9, status = 'received', reason = NULL, result = NULL,
                    completed_at = NULL, digest = ?10
                 WHERE seq = ?1",
            )?
            .execute(params![
                seq,
                copy.kind.as_str(),
                bucket.0,
                contact_blob,
                raw,
                ms(copy.occurred_at),
                ms(copy.received_at),
                copy.urgent,
                serde_json::to_string(&copy.data)?,
                // From now on this copy is what repetitions are compared with.
                &copy.digest.0[..]
            ])?;
        self.connection.prepare_cached(INSERT_INBOX)?.execute(params![
            &id.as_bytes()[..],
            seq,
            copy.tenant.as_str(),
            bucket.0,
            contact_blob,
            copy.urgent,
            ms(copy.received_at)
        ])?;
        if let Some(contact) = contact {
            self.settle_by_late_echo(contact, copy)?;
        }
        if let Some(old) = old_raw.filter(|_| raw.is_some()) {
            self.release_raw(old)?;
        }
        if let Some(receipt) = &copy.receipt {
            self.merge_receipt(receipt)?;
        }
        self.count("events", EventStatus::Ignored.as_str(), -1);
        self.count("events", EventStatus::Received.as_str(), 1);
        Ok(Appended::New { event: id, contact })
    }

    /// Whoever sent a stub wrote, whatever it will say: the silence after a message counts from it (D5). A merge, forward only.
    pub(super) fn note_stub(&self, contact: ContactId, copy: &NewEvent) -> Result<()> {
        if !is_stub(copy) || copy.kind != EventKind::MessageReceived {
            return Ok(());
        }
        self.connection
            .prepare_cached("UPDATE contact SET last_inbound_at = max(coalesce(last_inbound_at, 0), ?2) WHERE id = ?1")?
            .execute(params![&contact.as_bytes()[..], ms(copy.occurred_at)])?;
        Ok(())
    }
}
