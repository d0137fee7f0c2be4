//! What people do with events, and what becomes of one that cannot be decided.

use jiff::Timestamp;
use retoma_core::event::Event;
use retoma_core::ids::EventId;
use retoma_store::{DeadLetter, EventMove, EventMoves, EventStatus};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::json;

use super::append::INSERT_INBOX;
use super::spread::Told;
use crate::codec::{ms, word_at};
use crate::database::Database;
use crate::error::Result;
use crate::inbox::{EVENT, event};

/// An event with the columns that moving it needs.
struct Stored {
    event: Event,
    seq: i64,
    status: EventStatus,
    key: String,
    business_key: Option<[u8; 16]>,
    delivery_key: Vec<u8>,
}

fn stored(row: &Row<'_>) -> Result<Stored> {
    Ok(Stored {
        event: event(row)?,
        seq: row.get(10)?,
        status: word_at(row, 11, EventStatus::parse)?,
        key: row.get(12)?,
        business_key: row.get_ref(13)?.as_blob_or_null()?.and_then(|key| key.try_into().ok()),
        delivery_key: row.get(14)?,
    })
}

impl Database {
    /// See [`Store::move_events`](retoma_store::Store::move_events).
    pub fn move_events(&self, moves: &EventMoves) -> retoma_store::Result<Vec<EventId>> {
        let mut moved = Vec::new();
        for id in &moves.ids {
            if self.move_event(moves, *id)? {
                moved.push(*id);
            }
        }
        Ok(moved)
    }

    fn move_event(&self, moves: &EventMoves, id: EventId) -> Result<bool> {
        let Some(stored) = self.stored(id)?.filter(|stored| stored.event.tenant == moves.tenant) else {
            return Ok(false);
        };
        use EventStatus::{Dead, Decided, Discarded, Held, Ignored, Quarantined};
        let (allowed, action): (&[EventStatus], _) = match moves.to {
            EventMove::Release => (&[Held, Quarantined], "event.release"),
            EventMove::Discard => (&[Held, Quarantined, Dead], "event.discard"),
            EventMove::Replay => (&[Decided, Ignored, Dead, Discarded], "event.replay"),
        };
        if !allowed.contains(&stored.status) {
            return Ok(false);
        }
        match moves.to {
            EventMove::Discard => self.discard(&stored, moves)?,
            EventMove::Release => self.release(&stored, moves.now)?,
            EventMove::Replay => self.enter_inbox(&stored)?,
        }
        if stored.status == Dead {
            self.forget_dead(moves.tenant.as_str(), "event", &id.to_string())?;
        }
        let detail = json!({ "was": stored.status, "why": moves.reason });
        self.audit(&moves.tenant, &moves.actor, moves.now, action, &id.to_string(), detail)?;
        Ok(true)
    }

    /// A released event happens now: its fact is claimed like any other, and may turn out to be known already.
    fn release(&self, stored: &Stored, now: Timestamp) -> Result<()> {
        let event = &stored.event;
        if let Some(key) = &stored.business_key
            && self.claim_fact_late(key, event.id)?.is_some_and(|first| first != event.id)
        {
            return self.set_end(stored, EventStatus::Ignored, Some("repeated_fact"), Some("repeated_fact"), now);
        }
        self.record_fact_of(event.id, &event.tenant, event.kind, event.occurred_at, &event.data)?;
        self.enter_inbox(stored)?;
        let told = Told {
            id: event.id,
            tenant: &event.tenant,
            kind: event.kind,
            data: &event.data,
            delivery_key: &stored.delivery_key,
            decided_by: event.contact,
        };
        for child in self.children_of_stored(&told)? {
            let next: i64 =
                self.connection.prepare_cached("SELECT max(seq) + 1 FROM event")?.query_row([], |row| row.get(0))?;
            self.insert_child(&told, stored.seq, &child, next)?;
        }
        Ok(())
    }

    fn discard(&self, stored: &Stored, moves: &EventMoves) -> Result<()> {
        self.set_end(stored, EventStatus::Discarded, moves.reason.as_deref(), Some("discarded"), moves.now)
    }

    fn set_end(
        &self,
        stored: &Stored,
        status: EventStatus,
        reason: Option<&str>,
        result: Option<&str>,
        now: Timestamp,
    ) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE event SET status = ?2, reason = ?3, result = ?4, completed_at = ?5 WHERE seq = ?1")?
            .execute(params![stored.seq, status.as_str(), reason, result, ms(now)])?;
        self.count("events", stored.status.as_str(), -1);
        self.count("events", status.as_str(), 1);
        Ok(())
    }

    fn enter_inbox(&self, stored: &Stored) -> Result<()> {
        let event = &stored.event;
        self.connection
            .prepare_cached(
                "UPDATE event SET status = 'received', reason = NULL, result = NULL, completed_at = NULL, error = NULL
                 WHERE seq = ?1",
            )?
            .execute([stored.seq])?;
        self.connection.prepare_cached(INSERT_INBOX)?.execute(params![
            &event.id.as_bytes()[..],
            stored.seq,
            event.tenant.as_str(),
            event.bucket.0,
            event.contact.as_ref().map(|contact| &contact.as_bytes()[..]),
            event.urgent,
            ms(event.received_at)
        ])?;
        self.count("events", stored.status.as_str(), -1);
        self.count("events", EventStatus::Received.as_str(), 1);
        Ok(())
    }

    fn stored(&self, id: EventId) -> Result<Option<Stored>> {
        let mut find = self.connection.prepare_cached(&format!(
            "SELECT {EVENT}, e.seq, e.status, e.key, e.business_key, e.delivery_key FROM event AS e WHERE e.id = ?1"
        ))?;
        find.query_row([&id.as_bytes()[..]], |row| Ok(stored(row))).optional()?.transpose()
    }

    /// See [`Store::park_event`](retoma_store::Store::park_event).
    pub fn park_event(&self, event: EventId, error: &str, now: Timestamp) -> retoma_store::Result<()> {
        Ok(self.park(event, error, now)?)
    }

    /// Out of the inbox, into the dead letters: it holds up nobody any more. Nothing to do if it was decided meanwhile.
    fn park(&self, id: EventId, error: &str, now: Timestamp) -> Result<()> {
        let Some(stored) = self.stored(id)?.filter(|stored| stored.status == EventStatus::Received) else {
            return Ok(());
        };
        self.connection
            .prepare_cached("UPDATE event SET status = 'dead', reason = 'undecidable', error = ?2 WHERE seq = ?1")?
            .execute(params![stored.seq, error])?;
        self.connection.prepare_cached("DELETE FROM inbox WHERE id = ?1")?.execute([&id.as_bytes()[..]])?;
        self.count("events", EventStatus::Received.as_str(), -1);
        self.count("events", EventStatus::Dead.as_str(), 1);
        let event = &stored.event;
        let attempts: u32 = 1;
        self.put_dead(
            event.tenant.as_str(),
            &DeadLetter {
                id: id.to_string(),
                kind: "event".to_owned(),
                source: Some(event.source.as_str().to_owned()),
                flow: event.data.flow.as_ref().map(|flow| flow.as_str().to_owned()),
                key: stored.key,
                attempts,
                last_error: Some(error.to_owned()),
                errors: vec![error.to_owned()],
                reason: "undecidable".to_owned(),
                payload: serde_json::to_value(&event.data)?,
                consumer_version: env!("CARGO_PKG_VERSION").to_owned(),
                created_at: event.received_at,
                died_at: now,
            },
        )?;
        Ok(())
    }
}
