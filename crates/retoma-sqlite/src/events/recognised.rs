//! What intake has recognised: delivery keys and business facts, each claimed once.
//!
//! A random key costs a page of the log and a page of the checkpoint, far more than the row it stands for. So a new key is
//! first kept in memory, beside the event row that says the same durably, and enters the `dedupe` table later: sorted, a
//! slice per commit, so that many keys share one page. The `dedupe_until` row says up to which event the table is whole;
//! what comes after is read from the event rows when the file is opened. One writer decides, so memory and table together
//! are the truth; the table's unique key remains as the assertion.

use std::cell::RefCell;
use std::collections::HashMap;

use retoma_core::ids::{EventId, TaskId, Tenant};
use retoma_core::keys::digest16;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::database::Database;
use crate::error::Result;

type Key = [u8; 16];

/// `dedupe.what`.
const DELIVERY: i64 = 1;
/// `dedupe.what`.
const FACT: i64 = 2;
/// `dedupe.what`.
const TASK: i64 = 3;

/// Keys that a merge brings into the table for each key that came in meanwhile: it ends long before the next begins.
const MERGE_PER_KEY: usize = 8;
/// The fewest keys of one slice, as a part of those that are merged: fewer would share no pages.
const SLICES_MAX: usize = 128;

/// What a key stands for.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// A delivery: the event it became, and the digest of its bytes where it has some.
    Delivery { seq: i64, digest: Option<Key> },
    /// A business fact, and the event that said it first.
    Fact { event: EventId },
}

/// Keys that the table does not hold yet.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    keys: HashMap<Key, Seen>,
    /// Claimed in the open transaction: forgotten when it rolls back.
    claimed: Vec<Key>,
    merge: Merge,
}

/// A merge under way.
#[derive(Debug, Default)]
struct Merge {
    /// Descending, so that the next slice is its end.
    left: Vec<Key>,
    /// Keys that the open transaction has brought into the table.
    moved: usize,
    /// The table is whole up to this event once nothing is left.
    until: i64,
}

impl Recent {
    pub(crate) fn committed(&mut self) {
        self.claimed.clear();
        let kept = self.merge.left.len() - std::mem::take(&mut self.merge.moved);
        for key in self.merge.left.drain(kept..) {
            self.keys.remove(&key);
        }
    }

    pub(crate) fn rolled_back(&mut self) {
        self.merge.moved = 0;
        for key in self.claimed.drain(..) {
            self.keys.remove(&key);
        }
    }

    /// Whether a merge may begin: the keys of an open transaction may still be forgotten, so none begins beside them.
    fn may_begin(&self) -> bool {
        self.merge.left.is_empty() && self.claimed.is_empty()
    }

    fn begin_merge(&mut self, until: i64) {
        let mut left: Vec<Key> = self.keys.keys().copied().collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        self.merge = Merge { left, moved: 0, until };
    }
}

impl Database {
    /// Claims a delivery key for the event of row `seq`; `false` if somebody has it.
    pub(super) fn claim_delivery(&self, key: &Key, seq: i64, digest: Option<Key>) -> Result<bool> {
        self.claim(key, Seen::Delivery { seq, digest })
    }

    /// Claims a business fact of a new event; answers who said it first, if somebody did. The event's row must say that
    /// it claimed.
    pub(super) fn claim_fact(&self, key: &Key, event: EventId) -> Result<Option<EventId>> {
        if self.claim(key, Seen::Fact { event })? { Ok(None) } else { self.first_to_say(key).map(Some) }
    }

    /// The same for an event that came long ago and is released now: straight into the table.
    pub(super) fn claim_fact_late(&self, key: &Key, event: EventId) -> Result<Option<EventId>> {
        if self.recent.borrow().keys.contains_key(key) {
            return self.first_to_say(key).map(Some);
        }
        let inserted = insert(&self.connection, key, &Seen::Fact { event })?;
        if inserted { Ok(None) } else { self.first_to_say(key).map(Some) }
    }

    /// Whether a task of this id was promised once and is gone since.
    pub(crate) fn task_is_gone(&self, tenant: &Tenant, task: &TaskId) -> Result<bool> {
        self.in_table(&task_key(tenant.as_str(), task.as_str()))
    }

    /// A task's row goes; its id stays taken.
    pub(crate) fn keep_task_claimed(&self, tenant: &str, task: &str) -> Result<()> {
        self.connection
            .prepare_cached("INSERT INTO dedupe (key, what) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![&task_key(tenant, task)[..], TASK])?;
        Ok(())
    }

    fn claim(&self, key: &Key, seen: Seen) -> Result<bool> {
        let recent = &mut *self.recent.borrow_mut();
        if recent.keys.contains_key(key) || self.in_table(key)? {
            return Ok(false);
        }
        recent.keys.insert(*key, seen);
        recent.claimed.push(*key);
        Ok(true)
    }

    /// Whether somebody claimed the key, as a delivery or as a fact.
    pub(super) fn is_claimed(&self, key: &Key) -> Result<bool> {
        Ok(self.recent.borrow().keys.contains_key(key) || self.in_table(key)?)
    }

    fn in_table(&self, key: &Key) -> Result<bool> {
        Ok(self.connection.prepare_cached("SELECT 1 FROM dedupe WHERE key = ?1")?.exists([&key[..]])?)
    }

    fn first_to_say(&self, key: &Key) -> Result<EventId> {
        if let Some(Seen::Fact { event }) = self.recent.borrow().keys.get(key) {
            return Ok(*event);
        }
        let mut find = self.connection.prepare_cached("SELECT ref FROM dedupe WHERE key = ?1")?;
        Ok(EventId(find.query_row([&key[..]], |row| row.get::<_, Uuid>(0))?))
    }

    /// The event row of a claimed delivery key, and whether its bytes were these.
    pub(super) fn delivered(&self, key: &Key, digest: &Key) -> Result<(i64, bool)> {
        if let Some(Seen::Delivery { seq, digest: first }) = self.recent.borrow().keys.get(key) {
            return Ok((*seq, first.as_ref() == Some(digest)));
        }
        let mut find = self.connection.prepare_cached("SELECT seq, digest IS ?2 FROM dedupe WHERE key = ?1")?;
        Ok(find.query_row(params![&key[..], &digest[..]], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Brings recent keys into the table where it is time to, beside `arriving` new ones.
    pub(super) fn merge_recent(&self, arriving: usize) -> Result<()> {
        let slice = (arriving * MERGE_PER_KEY).max(self.options.recent_keys_max / SLICES_MAX);
        self.merge_from(self.options.recent_keys_max, slice).map(drop)
    }

    /// Brings a slice into the table, whatever the time. `false` when there is nothing to bring.
    pub(crate) fn merge_some(&self) -> Result<bool> {
        self.merge_from(1, (self.options.recent_keys_max / SLICES_MAX).max(1))
    }

    /// Whether the open transaction holds the end of a merge, so that the next one can begin after it.
    pub(crate) fn merge_ends_with_the_commit(&self) -> bool {
        let merge = &self.recent.borrow().merge;
        !merge.left.is_empty() && merge.moved == merge.left.len()
    }

    fn merge_from(&self, keys_min: usize, slice: usize) -> Result<bool> {
        let recent = &mut *self.recent.borrow_mut();
        if recent.may_begin() && recent.keys.len() >= keys_min.max(1) {
            recent.begin_merge(self.last_event()?);
        }
        let merge = &mut recent.merge;
        let end = merge.left.len() - merge.moved;
        if end == 0 {
            return Ok(false);
        }
        let begin = end.saturating_sub(slice);
        for key in merge.left[begin..end].iter().rev() {
            if let Some(seen) = recent.keys.get(key) {
                insert(&self.connection, key, seen)?;
            }
        }
        merge.moved = merge.left.len() - begin;
        if begin == 0 {
            set_until(&self.connection, merge.until)?;
        }
        Ok(true)
    }

    /// The number of the newest event, retention or not: numbers are not given twice.
    pub(super) fn last_event(&self) -> Result<i64> {
        let mut last = self.connection.prepare_cached("SELECT coalesce(max(seq), 0) FROM event")?;
        let newest: i64 = last.query_row([], |row| row.get(0))?;
        Ok(newest.max(self.merged_until()?))
    }

    /// The table holds the keys of all events up to this one.
    pub(crate) fn merged_until(&self) -> Result<i64> {
        until(&self.connection)
    }
}

/// At open: brings what a former process kept in memory into the table.
pub(crate) fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    connection.execute(
        "INSERT INTO dedupe (key, what, seq, digest)
         SELECT delivery_key, ?1, seq, digest FROM event WHERE seq > (SELECT coalesce(max(seq), 0) FROM dedupe_until)
         ORDER BY delivery_key ON CONFLICT DO NOTHING",
        [DELIVERY],
    )?;
    connection.execute(
        "INSERT INTO dedupe (key, what, ref)
         SELECT business_key, ?1, id FROM event WHERE said_first AND seq > (SELECT coalesce(max(seq), 0) FROM dedupe_until)
         ORDER BY business_key ON CONFLICT DO NOTHING",
        [FACT],
    )?;
    let last: i64 = connection.query_row("SELECT coalesce(max(seq), 0) FROM event", [], |row| row.get(0))?;
    if last > 0 {
        set_until(connection, last)?;
    }
    transaction.commit()
}

fn task_key(tenant: &str, task: &str) -> Key {
    digest16("task", &[tenant.as_bytes(), task.as_bytes()]).0
}

fn until(connection: &Connection) -> Result<i64> {
    let found =
        connection.prepare_cached("SELECT seq FROM dedupe_until")?.query_row([], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(0))
}

fn set_until(connection: &Connection, seq: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO dedupe_until (one, seq) VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET seq = max(seq, excluded.seq)",
        )?
        .execute([seq])?;
    Ok(())
}

/// `false` if the table holds the key already.
fn insert(connection: &Connection, key: &Key, seen: &Seen) -> Result<bool> {
    let inserted = match seen {
        Seen::Delivery { seq, digest } => connection
            .prepare_cached(
                "INSERT INTO dedupe (key, what, seq, digest) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?
            .execute(params![&key[..], DELIVERY, seq, digest.as_ref().map(|digest| &digest[..])])?,
        Seen::Fact { event } => connection
            .prepare_cached("INSERT INTO dedupe (key, what, ref) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(params![&key[..], FACT, &event.as_bytes()[..]])?,
    };
    Ok(inserted == 1)
}

/// The store's own cell of them.
pub(crate) type RecentKeys = RefCell<Recent>;
