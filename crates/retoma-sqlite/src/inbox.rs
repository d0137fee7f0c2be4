//! Events that wait to be decided.

use retoma_core::event::Event;
use retoma_core::ids::BucketNo;
use retoma_store::{Buckets, PendingQuery};
use rusqlite::{Row, params};

use crate::codec::{event_at, json_at, kind, ms, name_at, time_at, uuid_or_null_at, word_at};
use crate::database::Database;
use crate::error::Result;

/// What [`event`] reads, of `event AS e`.
pub(crate) const EVENT: &str =
    "e.id, e.tenant, e.bucket, e.source, e.kind, e.contact, e.occurred_at, e.received_at, e.urgent, e.data";

pub(crate) fn event(row: &Row<'_>) -> Result<Event> {
    Ok(Event {
        id: event_at(row, 0)?,
        tenant: name_at(row, 1)?,
        bucket: BucketNo(row.get(2)?),
        source: name_at(row, 3)?,
        kind: word_at(row, 4, kind)?,
        contact: uuid_or_null_at(row, 5)?.map(retoma_core::ids::ContactId),
        occurred_at: time_at(row, 6)?,
        received_at: time_at(row, 7)?,
        urgent: row.get(8)?,
        data: json_at(row, 9)?,
    })
}

impl Database {
    /// See [`Store::load_pending`](retoma_store::Store::load_pending).
    pub fn load_pending(&self, query: &PendingQuery) -> retoma_store::Result<Vec<Event>> {
        Ok(self.pending(query)?)
    }

    /// Two range scans of the inbox, which holds nothing but undecided events: the old part, where the caller asks for it
    /// again, then what is new. Both in id order, so the whole is.
    fn pending(&self, query: &PendingQuery) -> Result<Vec<Event>> {
        let mut found = Vec::new();
        let after = query.after.map_or([0; 16], |id| *id.as_bytes());
        if let (Some(from), Some(_)) = (query.rescan_from, query.after) {
            let again = format!(
                "SELECT {EVENT} FROM inbox AS i JOIN event AS e ON e.seq = i.seq
                 WHERE i.id <= ?1 AND i.received_at >= ?2 ORDER BY i.id"
            );
            self.take_owned(&again, params![&after[..], ms(from)], query, &mut found)?;
        }
        if query.after.is_none() {
            let all = format!("SELECT {EVENT} FROM inbox AS i JOIN event AS e ON e.seq = i.seq ORDER BY i.id");
            self.take_owned(&all, params![], query, &mut found)?;
        } else {
            let new = format!(
                "SELECT {EVENT} FROM inbox AS i JOIN event AS e ON e.seq = i.seq WHERE i.id > ?1 ORDER BY i.id"
            );
            self.take_owned(&new, params![&after[..]], query, &mut found)?;
        }
        Ok(found)
    }

    /// Rows of the owner's buckets, up to the limit. Ownership is judged here, not in SQL: the set may be any.
    fn take_owned(
        &self,
        sql: &str,
        parameters: &[&dyn rusqlite::ToSql],
        query: &PendingQuery,
        found: &mut Vec<Event>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while found.len() < query.limit
            && let Some(row) = rows.next()?
        {
            if owns(&query.owner.buckets, BucketNo(row.get(2)?)) {
                found.push(event(row)?);
            }
        }
        Ok(())
    }
}

/// Whether the caller believes to own a bucket. Commits check; loading only spares the work.
fn owns(buckets: &Buckets, bucket: BucketNo) -> bool {
    match buckets {
        Buckets::All => true,
        Buckets::Some(owned) => owned.binary_search_by_key(&bucket, |(owned, _)| *owned).is_ok(),
    }
}
