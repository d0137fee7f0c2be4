//! Dead letters (E7): written where something is given up, taken by people.

use std::collections::HashSet;

use retoma_core::ids::{EventId, TaskId};
use retoma_store::{DeadLetter, DeadMoves, EventMove, EventMoves, ReopenHow};
use rusqlite::params;
use serde_json::json;

use crate::codec::ms;
use crate::database::Database;
use crate::error::{Failure, Result};

impl Database {
    /// Writes the letter; one that dies again replaces its earlier one.
    pub(crate) fn put_dead(&self, tenant: &str, letter: &DeadLetter) -> Result<()> {
        self.forget_dead(tenant, &letter.kind, &letter.id)?;
        self.connection
            .prepare_cached(
                "INSERT INTO dead_letter (tenant, id, kind, source, flow, key, attempts, last_error, errors, reason,
                    payload, consumer_version, created_at, died_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                tenant,
                letter.id,
                letter.kind,
                letter.source,
                letter.flow,
                letter.key,
                letter.attempts,
                letter.last_error,
                serde_json::to_string(&letter.errors)?,
                letter.reason,
                serde_json::to_string(&letter.payload)?,
                letter.consumer_version,
                ms(letter.created_at),
                ms(letter.died_at),
            ])?;
        self.count("dead", "", 1);
        Ok(())
    }

    pub(crate) fn forget_dead(&self, tenant: &str, kind: &str, id: &str) -> Result<()> {
        let gone = self
            .connection
            .prepare_cached("DELETE FROM dead_letter WHERE id = ?1 AND kind = ?2 AND tenant = ?3")?
            .execute(params![id, kind, tenant])?;
        if gone > 0 {
            self.count("dead", "", -1);
        }
        Ok(())
    }

    /// See [`Store::move_dead`](retoma_store::Store::move_dead).
    pub fn move_dead(&self, moves: &DeadMoves) -> retoma_store::Result<Vec<String>> {
        Ok(self.take_dead(moves)?)
    }

    fn take_dead(&self, moves: &DeadMoves) -> Result<Vec<String>> {
        let letters: Vec<(String, String)> = self
            .connection
            .prepare_cached("SELECT kind, id FROM dead_letter WHERE tenant = ?1 ORDER BY seq")?
            .query_map([moves.tenant.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let wanted: HashSet<&String> = moves.ids.iter().collect();
        let mut taken = Vec::new();
        for (kind, id) in letters {
            if !(wanted.contains(&id) || (moves.all && moves.ids.is_empty())) {
                continue;
            }
            let took = match (kind.as_str(), moves.retry) {
                ("event", retry) => self.take_dead_event(moves, &id, retry)?,
                (_, true) => {
                    self.reopen(&moves.tenant, &TaskId::new(&id), ReopenHow::Retry, &moves.actor, moves.now)?
                }
                (_, false) => self.discard_dead_task(moves, &id)?,
            };
            if took {
                taken.push(id);
            }
        }
        Ok(taken)
    }

    fn take_dead_event(&self, moves: &DeadMoves, id: &str, retry: bool) -> Result<bool> {
        let event: EventId = id.parse().map_err(|_| Failure::Row("a dead event's id".to_owned()))?;
        let moved = self.move_events(&EventMoves {
            tenant: moves.tenant.clone(),
            ids: vec![event],
            to: if retry { EventMove::Replay } else { EventMove::Discard },
            actor: moves.actor.clone(),
            reason: moves.reason.clone(),
            now: moves.now,
        })?;
        Ok(!moved.is_empty())
    }

    /// The task stays `dead`; the letter goes, with who decided it and why.
    fn discard_dead_task(&self, moves: &DeadMoves, id: &str) -> Result<bool> {
        self.forget_dead(moves.tenant.as_str(), "task", id)?;
        self.audit(&moves.tenant, &moves.actor, moves.now, "dead.discard", id, json!({ "why": moves.reason }))?;
        Ok(true)
    }
}
