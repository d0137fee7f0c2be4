//! Cancel wide (C11): a payment, or what takes one back, reaches every contact that waits for it under another identity.

use retoma_core::event::EventKind;
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{ContactId, EventId};
use retoma_core::keys::{Key16, digest16};
use retoma_core::state::Conversation;
use retoma_store::{NewEvent, Subject};
use rusqlite::params;
use uuid::Uuid;

use super::append::PAID_RANK;
use super::people::number;
use crate::codec::json_at;
use crate::database::Database;
use crate::error::Result;

/// The same event in another contact's inbox.
pub(super) struct Child {
    pub(super) contact: ContactId,
    pub(super) key: Key16,
    pub(super) id: EventId,
}

impl Database {
    /// Everybody but `decided_by` who holds, or claims, an order, phone or e-mail of the event and has an open cycle of the
    /// same offer or order. Empty for most events without a query beyond the identities.
    pub(super) fn children(&self, event: &NewEvent, decided_by: Option<ContactId>) -> Result<Vec<Child>> {
        let reaches = event.kind == EventKind::PaymentCancelled
            || event.kind.payment_rank().is_some_and(|rank| rank >= PAID_RANK);
        let Subject::Person { identities, .. } = &event.subject else { return Ok(Vec::new()) };
        if !reaches {
            return Ok(Vec::new());
        }
        let mut others = self.claimants(event, identities)?;
        others.retain(|contact| Some(*contact) != decided_by);
        let mut children = Vec::new();
        for contact in others {
            if self.waits_for(contact, event)? {
                let key = digest16("child", &[&event.delivery_key.0, contact.as_bytes()]);
                children.push(Child { contact, key, id: child_id(event.id, key) });
            }
        }
        Ok(children)
    }

    fn claimants(&self, event: &NewEvent, identities: &[Identity]) -> Result<Vec<ContactId>> {
        let mut find = self.connection.prepare_cached(
            "SELECT contact FROM identity WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3
             UNION SELECT contact FROM identity_alias WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3",
        )?;
        let mut found = Vec::new();
        let shared = [IdentityKind::Order, IdentityKind::Phone, IdentityKind::Email];
        for identity in identities.iter().filter(|identity| shared.contains(&identity.kind)) {
            let rows = find
                .query_map(params![identity.match_key, number(identity.kind), event.tenant.as_str()], |row| {
                    row.get::<_, Uuid>(0)
                })?;
            for contact in rows {
                found.push(ContactId(contact?));
            }
        }
        // In id order, so that the same batch gives the same rows.
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn waits_for(&self, contact: ContactId, event: &NewEvent) -> Result<bool> {
        let mut open =
            self.connection.prepare_cached("SELECT body FROM conversation WHERE contact = ?1 AND closed = 0")?;
        let mut rows = open.query([&contact.as_bytes()[..]])?;
        while let Some(row) = rows.next()? {
            let conversation: Conversation = json_at(row, 0)?;
            let same_offer = event.data.offer.is_some() && conversation.offer == event.data.offer;
            let same_order = event.data.order.is_some() && conversation.order == event.data.order;
            if same_offer || same_order {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Derived, so that a repeated intake finds it; it keeps its parent's time, so that it sorts beside it.
fn child_id(parent: EventId, key: Key16) -> EventId {
    let mut bytes = key.0;
    bytes[..6].copy_from_slice(&parent.as_bytes()[..6]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    EventId(Uuid::from_bytes(bytes))
}
