//! Two contacts become one (C11, DESIGN.md "Merge"), in the transaction of the decision that says so: whoever goes keeps
//! nothing but its row, so that whoever names it by its id is led on.
//!
//! What came in for it and is not decided goes along under the same ids: from this commit on, every event and every task
//! belongs to the contact that stays, and the `contact.merged` event in its inbox blocks its starts until it is decided.

use jiff::Timestamp;
use retoma_core::decision::{Decision, Handover};
use retoma_core::event::{EventData, EventKind};
use retoma_core::ids::{BucketNo, ContactId, EventId, SourceName, Tenant};
use retoma_core::keys::digest16;
use retoma_core::send_check::Reason;
use retoma_core::task::{Task, TaskStatus};
use retoma_store::{Entry, Intake, NewEvent, Subject};
use rusqlite::params;
use uuid::Uuid;

use crate::database::Database;
use crate::error::Result;

/// A chain of merges is as long as people have names; a circle cannot arise, since the larger id gives way.
const CHAIN_MAX: usize = 32;

impl Database {
    /// The contact that a contact turned out to be; itself, as a rule.
    pub(crate) fn standing(&self, contact: ContactId) -> Result<ContactId> {
        let mut find = self
            .connection
            .prepare_cached("SELECT merged_into FROM contact WHERE id = ?1 AND merged_into IS NOT NULL")?;
        let mut standing = contact;
        for _ in 0..CHAIN_MAX {
            let mut rows = find.query([&standing.as_bytes()[..]])?;
            match rows.next()? {
                Some(row) => standing = ContactId(row.get::<_, Uuid>(0)?),
                None => break,
            }
        }
        Ok(standing)
    }

    /// Hands a contact over; `false` if there is no such contact to hand it to.
    pub(crate) fn hand_contact_over(
        &self,
        tenant: &Tenant,
        from: ContactId,
        handover: &Handover,
        now: Timestamp,
    ) -> Result<bool> {
        let into = self.standing(handover.into)?;
        if into == from || self.contact_version(tenant, into)?.is_none() {
            return Ok(false);
        }
        self.connection
            .prepare_cached("UPDATE contact SET merged_into = ?2, vars = NULL, ping_pong = NULL WHERE id = ?1")?
            .execute(params![&from.as_bytes()[..], &into.as_bytes()[..]])?;
        // What is known of the person is kept in one place, so that it can be forgotten in one place.
        self.erase_cycles(from)?;
        self.move_rows(tenant, from, into)?;
        self.append(&[Intake { request: None, events: vec![merged_event(tenant, into, handover, now)] }])?;
        Ok(true)
    }

    /// Every statement finds its rows by the contact.
    fn move_rows(&self, tenant: &Tenant, from: ContactId, into: ContactId) -> Result<()> {
        let bucket = BucketNo::of_contact(tenant, into).0;
        let (from, into) = (&from.as_bytes()[..], &into.as_bytes()[..]);
        const BY_CONTACT: [&str; 5] = [
            "UPDATE identity SET contact = ?2 WHERE contact = ?1",
            // What the other one claimed and this one holds is settled now.
            "DELETE FROM identity_alias WHERE contact = ?2 AND EXISTS (SELECT 1 FROM identity_alias AS a
                WHERE a.contact = ?1 AND a.match_key = identity_alias.match_key AND a.kind = identity_alias.kind
                    AND a.tenant = identity_alias.tenant)",
            "UPDATE identity_alias SET contact = ?2 WHERE contact = ?1",
            "UPDATE transition_log SET contact = ?2 WHERE contact = ?1",
            "UPDATE attempt SET contact = ?2 WHERE task IN (SELECT seq FROM task WHERE contact = ?1)",
        ];
        for statement in BY_CONTACT {
            self.connection.prepare_cached(statement)?.execute(params![from, into])?;
        }
        const OWNED: [&str; 3] = [
            "UPDATE event SET contact = ?2, bucket = ?3 WHERE contact = ?1",
            "UPDATE inbox SET contact = ?2, bucket = ?3 WHERE contact = ?1",
            "UPDATE task SET contact = ?2, bucket = ?3 WHERE contact = ?1",
        ];
        for statement in OWNED {
            self.connection.prepare_cached(statement)?.execute(params![from, into, bucket])?;
        }
        self.connection
            .prepare_cached(
                "DELETE FROM identity_alias WHERE contact = ?1 AND EXISTS (SELECT 1 FROM identity AS i
                    WHERE i.match_key = identity_alias.match_key AND i.kind = identity_alias.kind
                        AND i.tenant = identity_alias.tenant AND i.contact = ?1)",
            )?
            .execute([into])?;
        Ok(())
    }

    /// Takes tasks over: only what a merge closed, and once, since its contact is this one's now and it waits again.
    pub(crate) fn adopt_tasks(&self, contact: ContactId, decision: &Decision) -> Result<()> {
        for task in &decision.adopted {
            self.adopt_task(contact, task)?;
        }
        Ok(())
    }

    fn adopt_task(&self, contact: ContactId, taken: &Task) -> Result<()> {
        let Some(mut at) = self.find_task(taken.tenant.as_str(), &taken.id)? else { return Ok(()) };
        let closed_by_merge = at.task.status == TaskStatus::Cancelled
            && at.task.reason == Some(Reason::Superseded)
            && !at.task.avoided
            && at.task.contact == contact;
        if !closed_by_merge {
            return Ok(());
        }
        let before = at.task.status;
        at.task = Task { contact: at.task.contact, ..taken.clone() };
        self.update_task(before, &at)?;
        self.connection
            .prepare_cached("UPDATE task SET conversation = ?2 WHERE seq = ?1")?
            .execute(params![at.seq, taken.conversation.as_ref().map(|id| &id.as_bytes()[..])])?;
        Ok(())
    }
}

fn merged_event(tenant: &Tenant, into: ContactId, handover: &Handover, now: Timestamp) -> NewEvent {
    let from = handover.merged.contact.id;
    let parts = [tenant.as_str().as_bytes(), b"merged", from.as_bytes(), handover.because_of.as_bytes()];
    let key = digest16("delivery", &parts);
    NewEvent {
        id: derived_id(handover.because_of, key.0),
        tenant: tenant.clone(),
        source: SourceName::new("operator"),
        kind: EventKind::ContactMerged,
        key: format!("contact.merged/{from}"),
        delivery_key: key,
        business_key: None,
        digest: key,
        entry: Entry::Received,
        subject: Subject::Contact(into),
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData { merged: Some(Box::new(handover.merged.clone())), ..EventData::default() },
        receipt: None,
    }
}

/// It keeps the time of the command that it follows from, and sorts after it.
fn derived_id(because_of: EventId, key: [u8; 16]) -> EventId {
    let mut bytes = key;
    bytes[..6].copy_from_slice(&because_of.as_bytes()[..6]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    EventId(Uuid::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_has_one_event_whoever_asks_again() {
        let command = EventId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let id = derived_id(command, [7; 16]);
        assert_eq!(id, derived_id(command, [7; 16]));
        assert_eq!(id.as_bytes()[..6], command.as_bytes()[..6]);
    }
}
