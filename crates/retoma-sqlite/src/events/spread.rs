//! Cancel wide (C11): a payment, or what takes one back, reaches every contact that waits for it under another identity.

use retoma_core::event::{EventData, EventKind};
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{BucketNo, ContactId, EventId, Tenant};
use retoma_core::keys::{Key16, digest16};
use retoma_core::state::Conversation;
use retoma_store::EventStatus;
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
    /// How well the contact fits the payment.
    fit: Fit,
    /// Whether what was paid is delivered here.
    delivers: bool,
}

/// How well a contact fits a payment; the better one is the greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Fit {
    /// It can be written to.
    has_address: bool,
    /// A cycle of it is about that very order.
    same_order: bool,
    /// A cycle of it is about that offer.
    same_offer: bool,
}

/// What a payment says, wherever it comes from: an intake, or a person's release of a held event.
pub(super) struct Told<'a> {
    pub(super) id: EventId,
    pub(super) tenant: &'a Tenant,
    pub(super) kind: EventKind,
    pub(super) data: &'a EventData,
    pub(super) delivery_key: &'a [u8],
    /// Whose event it is already.
    pub(super) decided_by: Option<ContactId>,
}

/// Identities that more than one contact may stand for.
const SHARED: [IdentityKind; 3] = [IdentityKind::Order, IdentityKind::Phone, IdentityKind::Email];

impl Database {
    /// Everybody else who holds, or claims, an order, phone or e-mail of the event and has an open cycle of the same offer
    /// or order. Empty, without a query, for events that say nothing of money.
    pub(super) fn children(&self, told: &Told<'_>, identities: &[Identity]) -> Result<Vec<Child>> {
        if !told.reaches_wide() {
            return Ok(Vec::new());
        }
        let mut find = self.connection.prepare_cached(
            "SELECT contact FROM identity WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3
             UNION SELECT contact FROM identity_alias WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3",
        )?;
        let mut others = Vec::new();
        for identity in identities.iter().filter(|identity| SHARED.contains(&identity.kind)) {
            let key = params![identity.match_key, number(identity.kind), told.tenant.as_str()];
            for contact in find.query_map(key, |row| row.get::<_, Uuid>(0))? {
                others.push(ContactId(contact?));
            }
        }
        self.those_who_wait(told, others)
    }

    /// The same for an event whose person is stored already: over the identities that it holds or claims.
    pub(super) fn children_of_stored(&self, told: &Told<'_>) -> Result<Vec<Child>> {
        let (true, Some(contact)) = (told.reaches_wide(), told.decided_by) else { return Ok(Vec::new()) };
        let mut find = self.connection.prepare_cached(
            "WITH mine (match_key, kind, tenant) AS (
                SELECT match_key, kind, tenant FROM identity WHERE contact = ?1 AND kind IN (0, 4, 5)
                UNION SELECT match_key, kind, tenant FROM identity_alias WHERE contact = ?1 AND kind IN (0, 4, 5))
             SELECT i.contact FROM mine CROSS JOIN identity AS i USING (match_key, kind, tenant)
             UNION SELECT a.contact FROM mine CROSS JOIN identity_alias AS a USING (match_key, kind, tenant)",
        )?;
        let others = find
            .query_map([&contact.as_bytes()[..]], |row| row.get::<_, Uuid>(0))?
            .map(|other| other.map(ContactId))
            .collect::<rusqlite::Result<_>>()?;
        self.those_who_wait(told, others)
    }

    fn those_who_wait(&self, told: &Told<'_>, mut others: Vec<ContactId>) -> Result<Vec<Child>> {
        // In id order, so that the same batch gives the same rows.
        others.sort_unstable();
        others.dedup();
        let mut children = Vec::new();
        for contact in others.into_iter().filter(|other| Some(*other) != told.decided_by) {
            let (fit, waits) = self.fit_of(contact, told.data)?;
            if waits {
                let key = digest16("child", &[told.delivery_key, contact.as_bytes()]);
                children.push(Child { contact, key, id: child_id(told.id, key), fit, delivers: false });
            }
        }
        self.choose_who_gets_it(told, &mut children)?;
        Ok(children)
    }

    /// What was paid is delivered once, to the best match (C11): whoever talks about this order, else about this offer, and
    /// can be written to; among equals the contact that the payment itself names, then the one that is known longest.
    fn choose_who_gets_it(&self, told: &Told<'_>, children: &mut [Child]) -> Result<()> {
        if children.is_empty() {
            return Ok(());
        }
        let own = told.decided_by.map(|own| self.fit_of(own, told.data)).transpose()?.unwrap_or_default().0;
        let best = children.iter_mut().rev().max_by_key(|child| child.fit);
        let Some(best) = best.filter(|best| best.fit > own) else { return Ok(()) };
        best.delivers = true;
        // The payment's own contact keeps everything of it but the delivery.
        self.connection
            .prepare_cached(
                "UPDATE event SET data = json_set(data, '$.delivered_elsewhere', json('true')) WHERE id = ?1",
            )?
            .execute([&told.id.as_bytes()[..]])?;
        Ok(())
    }

    /// A child is its parent's row under another id, key and contact; it enters that contact's inbox. `false` if it was
    /// there already.
    pub(super) fn insert_child(&self, told: &Told<'_>, parent: i64, child: &Child, seq: i64) -> Result<bool> {
        if !self.claim_delivery(&child.key.0, seq, None)? {
            return Ok(false);
        }
        let raw: Option<i64> = self
            .connection
            .prepare_cached(
                "INSERT INTO event (seq, id, tenant, bucket, source, kind, key, delivery_key, contact, raw, occurred_at,
                    received_at, urgent, data, status)
                 SELECT ?2, ?3, tenant, ?4, source, kind, key || '#' || ?5, ?6, ?7, raw, occurred_at, received_at, urgent,
                    json_patch(data, ?8), 'received' FROM event WHERE seq = ?1 RETURNING raw",
            )?
            .query_row(
                params![
                    parent,
                    seq,
                    &child.id.as_bytes()[..],
                    BucketNo::of_contact(told.tenant, child.contact).0,
                    child.contact.to_string(),
                    &child.key.0[..],
                    &child.contact.as_bytes()[..],
                    // A null removes the mark that the parent may carry.
                    if child.delivers { r#"{"delivered_elsewhere":null}"# } else { r#"{"delivered_elsewhere":true}"# },
                ],
                |row| row.get(0),
            )?;
        self.connection
            .prepare_cached(
                "INSERT INTO inbox (id, seq, tenant, bucket, contact, urgent, received_at)
                 SELECT id, seq, tenant, bucket, contact, urgent, received_at FROM event WHERE seq = ?1",
            )?
            .execute([seq])?;
        if let Some(raw) = raw {
            self.refer_to_raw(raw)?;
        }
        self.count("events", EventStatus::Received.as_str(), 1);
        Ok(true)
    }

    /// How well a contact fits, and whether it has an open cycle that this may be about.
    fn fit_of(&self, contact: ContactId, data: &EventData) -> Result<(Fit, bool)> {
        let mut open =
            self.connection.prepare_cached("SELECT body FROM conversation WHERE contact = ?1 AND closed = 0")?;
        let mut rows = open.query([&contact.as_bytes()[..]])?;
        let (mut fit, mut waits) = (Fit::default(), false);
        while let Some(row) = rows.next()? {
            let conversation: Conversation = json_at(row, 0)?;
            let same_offer = data.offer.is_some() && conversation.offer == data.offer;
            let same_order = data.order.is_some() && conversation.order == data.order;
            fit.same_order |= same_order;
            fit.same_offer |= same_offer;
            // A cycle that does not know yet what it is about may well be about this; nobody is delivered to for that alone.
            waits |= same_offer || same_order || conversation.offer.is_none();
        }
        // A phone, a LID or a business-scoped id.
        fit.has_address = self
            .connection
            .prepare_cached("SELECT 1 FROM identity WHERE contact = ?1 AND kind <= 2")?
            .exists([&contact.as_bytes()[..]])?;
        Ok((fit, waits))
    }
}

impl Told<'_> {
    /// Paid, given back, or cancelled.
    fn reaches_wide(&self) -> bool {
        self.kind == EventKind::PaymentCancelled || self.kind.payment_rank().is_some_and(|rank| rank >= PAID_RANK)
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
