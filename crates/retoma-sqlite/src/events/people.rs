//! Who an event is about (C11): walks identities, creates contacts, attaches what is free. Never merges.

use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{BucketNo, ContactId, Tenant};
use retoma_core::keys::digest16;
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use crate::codec::ms;
use crate::database::Database;
use crate::error::Result;

/// The number of a kind in `identity.kind`.
pub(crate) fn number(kind: IdentityKind) -> i64 {
    match kind {
        IdentityKind::Phone => 0,
        IdentityKind::Lid => 1,
        IdentityKind::Bsuid => 2,
        IdentityKind::Document => 3,
        IdentityKind::Email => 4,
        IdentityKind::Order => 5,
        IdentityKind::External => 6,
    }
}

/// Identities that name one person by themselves. The others are shared, mistyped or reused, and decide only where
/// nothing contradicts them.
fn is_strong(kind: IdentityKind) -> bool {
    matches!(kind, IdentityKind::Phone | IdentityKind::Lid | IdentityKind::Bsuid)
}

/// Who holds an identity now.
struct Holder {
    contact: ContactId,
    confirmed: bool,
}

impl Database {
    /// The contact of these identities, created as `candidate` if need be; afterwards every identity is held, by it or
    /// by whoever held it before (then it is an alias).
    pub(super) fn resolve(
        &self,
        tenant: &Tenant,
        candidate: ContactId,
        identities: &[Identity],
        now: jiff::Timestamp,
    ) -> Result<ContactId> {
        let holders = self.holders(tenant, identities)?;
        let contact = match self.decide_contact(identities, &holders)? {
            Some(contact) => contact,
            None => self.create_contact(tenant, candidate, identities, now)?,
        };
        // An identity that is new to us may be one that was forgotten and wants silence (C12).
        if holders.iter().any(Option::is_none)
            && let Some(since) = self.silenced_since(tenant, identities)?
        {
            self.connection
                .prepare_cached("UPDATE contact SET opted_out_at = coalesce(opted_out_at, ?2) WHERE id = ?1")?
                .execute(params![&contact.as_bytes()[..], ms(since)])?;
        }
        for (identity, holder) in identities.iter().zip(&holders) {
            match holder {
                None => self.attach(tenant, contact, identity)?,
                Some(holder) if holder.contact == contact => {
                    if identity.confirmed && !holder.confirmed {
                        self.confirm(tenant, identity)?;
                    }
                }
                Some(_) => self.add_alias(tenant, contact, identity)?,
            }
        }
        Ok(contact)
    }

    /// The contact of these identities, if one is known; writes nothing.
    pub(super) fn known_contact(&self, tenant: &Tenant, identities: &[Identity]) -> Result<Option<ContactId>> {
        let holders = self.holders(tenant, identities)?;
        self.decide_contact(identities, &holders)
    }

    fn holders(&self, tenant: &Tenant, identities: &[Identity]) -> Result<Vec<Option<Holder>>> {
        let mut find = self.connection.prepare_cached(
            "SELECT contact, confirmed FROM identity WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3",
        )?;
        identities
            .iter()
            .map(|identity| {
                let found = find
                    .query_row(params![identity.match_key, number(identity.kind), tenant.as_str()], |row| {
                        Ok(Holder { contact: ContactId(row.get::<_, Uuid>(0)?), confirmed: row.get(1)? })
                    })
                    .optional()?;
                Ok(found)
            })
            .collect()
    }

    /// The first known identity decides, in the order of the list. One transaction is evidence; an e-mail, a document or
    /// a source's own id is not, where it would give a contact a second phone.
    fn decide_contact(&self, identities: &[Identity], holders: &[Option<Holder>]) -> Result<Option<ContactId>> {
        if let Some(known) = identities
            .iter()
            .zip(holders)
            .find_map(|(identity, holder)| holder.as_ref().filter(|_| is_strong(identity.kind)))
        {
            return Ok(Some(known.contact));
        }
        let strong: Vec<IdentityKind> =
            identities.iter().map(|identity| identity.kind).filter(|kind| is_strong(*kind)).collect();
        for (identity, holder) in identities.iter().zip(holders) {
            let Some(holder) = holder else { continue };
            let contradicted = identity.kind != IdentityKind::Order && self.holds_any(holder.contact, &strong)?;
            if !contradicted {
                return Ok(Some(holder.contact));
            }
        }
        Ok(None)
    }

    /// Whether the contact has an identity of one of these kinds (none of which is in the list that asks).
    fn holds_any(&self, contact: ContactId, kinds: &[IdentityKind]) -> Result<bool> {
        let mut holds = self.connection.prepare_cached("SELECT 1 FROM identity WHERE contact = ?1 AND kind = ?2")?;
        for kind in kinds {
            if holds.exists(params![&contact.as_bytes()[..], number(*kind)])? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Creates a contact; under another id where a caller gave one candidate to two people.
    fn create_contact(
        &self,
        tenant: &Tenant,
        candidate: ContactId,
        identities: &[Identity],
        now: jiff::Timestamp,
    ) -> Result<ContactId> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO contact (id, tenant, bucket, version, cycles, created_at) VALUES (?1, ?2, ?3, 0, 0, ?4)
             ON CONFLICT DO NOTHING",
        )?;
        let mut contact = candidate;
        let key = identities.first().map_or("", |identity| identity.match_key.as_str());
        while insert.execute(params![
            &contact.as_bytes()[..],
            tenant.as_str(),
            BucketNo::of_contact(tenant, contact).0,
            ms(now)
        ])? == 0
        {
            contact = ContactId(Uuid::from_bytes(digest16("contact", &[contact.as_bytes(), key.as_bytes()]).0));
        }
        self.count("contacts", "", 1);
        Ok(contact)
    }

    fn attach(&self, tenant: &Tenant, contact: ContactId, identity: &Identity) -> Result<()> {
        // A list may name one identity twice; the second is then held already.
        self.connection
            .prepare_cached(
                "INSERT INTO identity (match_key, kind, tenant, contact, value, confirmed)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                identity.match_key,
                number(identity.kind),
                tenant.as_str(),
                &contact.as_bytes()[..],
                identity.value,
                identity.confirmed
            ])?;
        Ok(())
    }

    /// A provider itself reported this spelling: it is the one to write to.
    fn confirm(&self, tenant: &Tenant, identity: &Identity) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE identity SET value = ?4, confirmed = 1 WHERE match_key = ?1 AND kind = ?2 AND tenant = ?3",
            )?
            .execute(params![identity.match_key, number(identity.kind), tenant.as_str(), identity.value])?;
        Ok(())
    }

    fn add_alias(&self, tenant: &Tenant, contact: ContactId, identity: &Identity) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO identity_alias (match_key, kind, tenant, contact, value)
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                identity.match_key,
                number(identity.kind),
                tenant.as_str(),
                &contact.as_bytes()[..],
                identity.value
            ])?;
        Ok(())
    }
}
