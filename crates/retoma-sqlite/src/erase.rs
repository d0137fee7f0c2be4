//! A person is forgotten (H2): in the transaction of the decision, everything that says who it was or what was said goes.
//!
//! What stays is proof without data: that there was a contact, when what happened, what was promised and how it ended, which
//! transactions were paid. Keys that recognise repetitions are digests and stay, or an old webhook sent again would bring
//! the person back; so does the wish for silence, under digests of the identities (C12).

use jiff::Timestamp;
use retoma_core::identity::Identity;
use retoma_core::ids::{ContactId, Tenant};
use retoma_core::keys::digest16;
use retoma_core::state::Contact;
use rusqlite::{OptionalExtension, params};

use crate::codec::{ms, time};
use crate::database::Database;
use crate::error::Result;
use crate::events::kind_number as number;

/// What becomes of a body, a text, a key that said too much.
const ERASED: &str = "erased";

impl Database {
    /// Forgets a contact. `contact` is what the decision left of it.
    pub(crate) fn erase_contact(&self, tenant: &Tenant, contact: &Contact, now: Timestamp) -> Result<()> {
        if let Some(opted_out_at) = contact.opted_out_at {
            self.silence_identities(tenant, contact.id, opted_out_at)?;
        }
        let id = &contact.id.as_bytes()[..];
        self.drop_undecided(contact.id, now)?;
        // Bodies first, while the events still lead to them. A batch that names several people loses its bytes, too.
        const BY_CONTACT: [&str; 10] = [
            "UPDATE raw_request SET body = x'', headers = '[]'
                WHERE seq IN (SELECT raw FROM event WHERE contact = ?1 AND raw IS NOT NULL)",
            "UPDATE raw_request SET body = x'', headers = '[]'
                WHERE altered_of IN (SELECT seq FROM event WHERE contact = ?1)",
            "DELETE FROM dead_letter WHERE kind = 'event' AND id IN (SELECT lower(substr(hex(id), 1, 8) || '-'
                || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' || substr(hex(id), 17, 4) || '-'
                || substr(hex(id), 21)) FROM event WHERE contact = ?1)",
            "DELETE FROM dead_letter WHERE kind = 'task' AND id IN (SELECT id FROM task WHERE contact = ?1)",
            "UPDATE event SET data = '{}', key = 'erased', error = NULL, result = 'erased' WHERE contact = ?1",
            "UPDATE attempt SET response = NULL, error = NULL WHERE task IN (SELECT seq FROM task WHERE contact = ?1)",
            "UPDATE task SET text = NULL, amount = NULL, link = NULL, detail = NULL, last_error = NULL WHERE contact = ?1",
            "DELETE FROM identity WHERE contact = ?1",
            "DELETE FROM identity_alias WHERE contact = ?1",
            "UPDATE transition_log SET reason = NULL, rule = NULL WHERE contact = ?1",
        ];
        for statement in BY_CONTACT {
            self.connection.prepare_cached(statement)?.execute([id])?;
        }
        self.erase_cycles(contact.id)?;
        self.connection
            .prepare_cached("UPDATE contact SET erased_at = ?2 WHERE id = ?1")?
            .execute(params![id, ms(now)])?;
        Ok(())
    }

    /// Whoever is forgotten is not decided about any more; what came in meanwhile ends on record.
    fn drop_undecided(&self, contact: ContactId, now: Timestamp) -> Result<()> {
        let id = &contact.as_bytes()[..];
        let ended = self
            .connection
            .prepare_cached(
                "UPDATE event SET status = 'ignored', reason = 'erased', completed_at = ?2
                 WHERE seq IN (SELECT seq FROM inbox INDEXED BY inbox_contact WHERE contact = ?1)",
            )?
            .execute(params![id, ms(now)])?;
        self.connection.prepare_cached("DELETE FROM inbox WHERE contact = ?1")?.execute([id])?;
        let ended = i64::try_from(ended).unwrap_or(i64::MAX);
        self.count("events", "received", -ended);
        self.count("events", "ignored", ended);
        Ok(())
    }

    /// Cycles that ended before keep their place and lose their values.
    pub(crate) fn erase_cycles(&self, contact: ContactId) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE conversation SET body = json_set(body, '$.vars', json('{}')) WHERE contact = ?1")?
            .execute([&contact.as_bytes()[..]])?;
        Ok(())
    }

    fn silence_identities(&self, tenant: &Tenant, contact: ContactId, opted_out_at: Timestamp) -> Result<()> {
        let mut held: Vec<(i64, String)> = Vec::new();
        let mut find = self.connection.prepare_cached("SELECT kind, match_key FROM identity WHERE contact = ?1")?;
        let mut rows = find.query([&contact.as_bytes()[..]])?;
        while let Some(row) = rows.next()? {
            held.push((row.get(0)?, row.get(1)?));
        }
        let mut put = self
            .connection
            .prepare_cached("INSERT INTO silenced (digest, opted_out_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        for (kind, match_key) in held.into_iter().filter(|(kind, _)| is_personal(*kind)) {
            put.execute(params![&digest(tenant, kind, &match_key)[..], ms(opted_out_at)])?;
        }
        Ok(())
    }

    /// Since when somebody with one of these identities wants silence, forgotten as they are.
    pub(crate) fn silenced_since(&self, tenant: &Tenant, identities: &[Identity]) -> Result<Option<Timestamp>> {
        let mut find = self.connection.prepare_cached("SELECT opted_out_at FROM silenced WHERE digest = ?1")?;
        for identity in identities.iter().filter(|identity| is_personal(number(identity.kind))) {
            let key = digest(tenant, number(identity.kind), &identity.match_key);
            let found: Option<i64> = find.query_row([&key[..]], |row| row.get(0)).optional()?;
            if let Some(found) = found {
                return Ok(Some(time(found)?));
            }
        }
        Ok(None)
    }
}

/// An order is no person: it stays known, and silences nobody.
fn is_personal(kind: i64) -> bool {
    kind != number(retoma_core::identity::IdentityKind::Order)
}

fn digest(tenant: &Tenant, kind: i64, match_key: &str) -> [u8; 16] {
    digest16(ERASED, &[tenant.as_str().as_bytes(), &kind.to_be_bytes(), match_key.as_bytes()]).0
}
