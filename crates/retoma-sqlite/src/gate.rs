//! The gate (B1-B7): one row per key, one per claim that proceeded, a bounded number per claim that did not. Every call is a
//! compare-and-set under the owner's token, inside the writer's transaction.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::Tenant;
use retoma_store::{GateAnswer, GateCall, GateClaim, GateOutcome, GatePrevious, GateResult, GateVerb};
use rusqlite::{OptionalExtension, params};
use serde_json::json;

use crate::codec::ms;
use crate::database::Database;
use crate::error::{Failure, Result};

mod trail;

use trail::{RECORD, Stored, stored};

const LOCKED: &str = "LOCKED";
const DONE: &str = "DONE";
const FAILED: &str = "FAILED";

/// Claims without a usable key that are kept of each scope, roughly.
const HELD_MAX: i64 = 1000;
/// Claims that did not proceed: the first so many keep their rows, the others share so many.
const REPEATS_FIRST: u64 = 10;
const REPEATS_LAST: u64 = 40;

/// The row of a repetition.
fn slot(n: u64) -> u64 {
    if n <= REPEATS_FIRST { n } else { REPEATS_FIRST + 1 + n % REPEATS_LAST }
}

impl Database {
    /// See [`Store::gate`](retoma_store::Store::gate).
    pub fn gate(&self, calls: &[GateCall], now: Timestamp) -> retoma_store::Result<Vec<GateAnswer>> {
        calls.iter().map(|call| Ok(self.gate_call(call, now)?)).collect()
    }

    fn gate_call(&self, call: &GateCall, now: Timestamp) -> Result<GateAnswer> {
        if let GateVerb::Hold { what, correlation_id } = &call.verb {
            self.hold(call, what, correlation_id.as_deref(), now)?;
            return Ok(GateAnswer { outcome: GateOutcome::Held, record: None, previous: None });
        }
        let found = self.gate_key(&call.tenant, &call.scope, &call.key)?;
        let mut previous = None;
        let outcome = match (&call.verb, &found) {
            (GateVerb::Hold { .. }, _) => unreachable!("answered above"),
            (GateVerb::Claim(claim), None) => self.first_claim(call, claim, now)?,
            (GateVerb::Claim(claim), Some(found)) => self.claim_again(call, found, claim, now, &mut previous)?,
            (_, None) => GateOutcome::NotFound,
            (GateVerb::Renew { token, lease }, Some(found)) => self.renew(found, token, after(now, *lease))?,
            (GateVerb::Complete { token, result }, Some(found)) => self.complete(call, found, token, result, now)?,
            (GateVerb::Fail { token, error, retryable }, Some(found)) => {
                self.fail(call, found, token, error, *retryable, now)?
            }
            (GateVerb::Release { done, reason }, Some(found)) => {
                self.release_key(call, found, *done, reason.as_deref(), now)?
            }
        };
        if matches!(call.verb, GateVerb::Claim(_)) || outcome == GateOutcome::StaleToken {
            self.count_gate(&call.tenant, &call.scope, outcome.as_str());
        }
        let after = self.gate_key(&call.tenant, &call.scope, &call.key)?;
        Ok(GateAnswer { outcome, record: after.map(|found| found.record), previous })
    }

    /// One more of those in the scope, with the transaction.
    fn count_gate(&self, tenant: &Tenant, scope: &str, word: &str) {
        self.count_own("gate", format!("{tenant}/{scope}/{word}"), 1);
    }

    fn gate_key(&self, tenant: &Tenant, scope: &str, key: &str) -> Result<Option<Stored>> {
        // By the unique key; its first column is the most random one.
        self.connection
            .prepare_cached(&format!(
                "SELECT {RECORD} FROM gate_key AS g WHERE key = ?1 AND scope = ?2 AND tenant = ?3"
            ))?
            .query_row(params![key, scope, tenant.as_str()], |row| Ok(stored(row)))
            .optional()?
            .transpose()
    }

    /// Evidence that somebody asked without a key (B5). The oldest go where a scope has too many.
    fn hold(&self, call: &GateCall, what: &str, correlation_id: Option<&str>, now: Timestamp) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO gate_held (tenant, scope, at, what, correlation_id, actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![call.tenant.as_str(), call.scope, ms(now), what, correlation_id, call.actor])?;
        if self.connection.last_insert_rowid() % 64 == 0 {
            self.connection
                .prepare_cached(
                    "DELETE FROM gate_held WHERE tenant = ?1 AND scope = ?2 AND seq <=
                        (SELECT seq FROM gate_held WHERE tenant = ?1 AND scope = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
                )?
                .execute(params![call.tenant.as_str(), call.scope, HELD_MAX])?;
        }
        self.count_gate(&call.tenant, &call.scope, GateOutcome::Held.as_str());
        Ok(())
    }

    fn first_claim(&self, call: &GateCall, claim: &GateClaim, now: Timestamp) -> Result<GateOutcome> {
        self.connection
            .prepare_cached(
                "INSERT INTO gate_key (tenant, scope, key, status, token, lease_until, first_seen_at, correlation_id,
                    attempt, fingerprint, metadata, keep_until)
                 VALUES (?1, ?2, ?3, 'LOCKED', ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10)",
            )?
            .execute(params![
                call.tenant.as_str(),
                call.scope,
                call.key,
                claim.token,
                after(now, claim.lease),
                ms(now),
                claim.correlation_id.as_deref().unwrap_or(&call.key),
                claim.fingerprint.map(|key| key.0),
                serde_json::to_string(&claim.metadata)?,
                keep_until(claim, now),
            ])?;
        self.open_attempt(self.connection.last_insert_rowid(), 1, call, claim, now)?;
        Ok(GateOutcome::Proceed)
    }

    fn claim_again(
        &self,
        call: &GateCall,
        found: &Stored,
        claim: &GateClaim,
        now: Timestamp,
        previous: &mut Option<GatePrevious>,
    ) -> Result<GateOutcome> {
        // Before anything else: another content under this key is no repetition (B4).
        if let (Some(stored), Some(asked)) = (&found.fingerprint, claim.fingerprint)
            && stored[..] != asked.0[..]
        {
            return self.refuse(call, found, claim, now, GateOutcome::Mismatch);
        }
        let record = &found.record;
        let lapsed = record.lease_until.is_none_or(|until| until <= now);
        let told = match record.status.as_str() {
            // The same caller, whose answer was lost.
            LOCKED if found.token.as_deref() == Some(&*claim.token) => return Ok(GateOutcome::Proceed),
            LOCKED if lapsed && claim.proceed_when_expired => {
                self.close_attempt(found, "lapsed", None, now)?;
                *previous = Some(GatePrevious::Unknown);
                return self.take_over(call, found, claim, now);
            }
            FAILED if record.retryable => {
                // A release takes the last owner's token away.
                let released = found.token.is_none();
                *previous = Some(if released { GatePrevious::Released } else { GatePrevious::Failed });
                return self.take_over(call, found, claim, now);
            }
            LOCKED if lapsed => GateOutcome::Uncertain,
            LOCKED => GateOutcome::InProgress,
            DONE => GateOutcome::Done,
            FAILED => GateOutcome::Failed,
            other => return Err(Failure::Row(format!("gate status {other:?}"))),
        };
        self.refuse(call, found, claim, now, told)
    }

    fn take_over(&self, call: &GateCall, found: &Stored, claim: &GateClaim, now: Timestamp) -> Result<GateOutcome> {
        let attempt = found.record.attempt + 1;
        self.connection
            .prepare_cached(
                "UPDATE gate_key SET status = 'LOCKED', token = ?2, lease_until = ?3, attempt = ?4, error = NULL,
                    retryable = 0, keep_until = max(keep_until, ?5), fingerprint = coalesce(fingerprint, ?6)
                 WHERE seq = ?1",
            )?
            .execute(params![
                found.seq,
                claim.token,
                after(now, claim.lease),
                attempt,
                keep_until(claim, now),
                claim.fingerprint.map(|key| key.0),
            ])?;
        self.open_attempt(found.seq, attempt, call, claim, now)?;
        Ok(GateOutcome::Proceed)
    }

    /// A claim that does not proceed: counted, and on record with who and when (B6).
    fn refuse(
        &self,
        call: &GateCall,
        found: &Stored,
        claim: &GateClaim,
        now: Timestamp,
        told: GateOutcome,
    ) -> Result<GateOutcome> {
        let record = &found.record;
        let statement = if told == GateOutcome::Mismatch {
            "UPDATE gate_key SET mismatches = mismatches + 1 WHERE seq = ?1 AND ?2 = ?2"
        } else {
            "UPDATE gate_key SET duplicates = duplicates + 1, last_duplicate_at = ?2 WHERE seq = ?1"
        };
        self.connection.prepare_cached(statement)?.execute(params![found.seq, ms(now)])?;
        let n = record.duplicates + record.mismatches + 1;
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO gate_repeat (gate, slot, n, at, outcome, correlation_id, actor)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                found.seq,
                i64::try_from(slot(n)).unwrap_or(i64::MAX),
                i64::try_from(n).unwrap_or(i64::MAX),
                ms(now),
                told.as_str(),
                claim.correlation_id,
                call.actor
            ])?;
        Ok(told)
    }

    /// The owner is still at it, also after its lease ran out, as long as nobody took over.
    fn renew(&self, found: &Stored, token: &str, lease_until: i64) -> Result<GateOutcome> {
        if !found.is_locked_by(token) {
            return Ok(GateOutcome::StaleToken);
        }
        self.connection
            .prepare_cached("UPDATE gate_key SET lease_until = ?2, keep_until = max(keep_until, ?2) WHERE seq = ?1")?
            .execute(params![found.seq, lease_until])?;
        Ok(GateOutcome::Ok)
    }

    fn complete(
        &self,
        call: &GateCall,
        found: &Stored,
        token: &str,
        result: &GateResult,
        now: Timestamp,
    ) -> Result<GateOutcome> {
        if found.ended_by(token, DONE) {
            return Ok(GateOutcome::Ok);
        }
        if !found.is_locked_by(token) {
            return Ok(GateOutcome::StaleToken);
        }
        let (kept, omitted) = match result {
            GateResult::Kept(result) => (Some(serde_json::to_string(result)?), None),
            GateResult::TooLarge(bytes) => (None, Some(i64::try_from(*bytes).unwrap_or(i64::MAX))),
        };
        self.connection
            .prepare_cached(
                "UPDATE gate_key SET status = 'DONE', lease_until = NULL, result = ?2, result_omitted = ?3 WHERE seq = ?1",
            )?
            .execute(params![found.seq, kept, omitted])?;
        self.close_attempt(found, "done", None, now)?;
        self.count_gate(&call.tenant, &call.scope, "completed");
        Ok(GateOutcome::Ok)
    }

    fn fail(
        &self,
        call: &GateCall,
        found: &Stored,
        token: &str,
        error: &str,
        retryable: bool,
        now: Timestamp,
    ) -> Result<GateOutcome> {
        if found.ended_by(token, FAILED) {
            return Ok(GateOutcome::Ok);
        }
        if !found.is_locked_by(token) {
            return Ok(GateOutcome::StaleToken);
        }
        self.connection
            .prepare_cached(
                "UPDATE gate_key SET status = 'FAILED', lease_until = NULL, error = ?2, retryable = ?3 WHERE seq = ?1",
            )?
            .execute(params![found.seq, error, retryable])?;
        self.close_attempt(found, "failed", Some(error), now)?;
        self.count_gate(&call.tenant, &call.scope, "failures");
        Ok(GateOutcome::Ok)
    }

    /// A person decides about what is uncertain or failed for good. The old owner's token dies with it.
    fn release_key(
        &self,
        call: &GateCall,
        found: &Stored,
        done: bool,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<GateOutcome> {
        match found.record.status.as_str() {
            DONE => return Ok(GateOutcome::Done),
            LOCKED if found.record.lease_until.is_some_and(|until| until > now) => return Ok(GateOutcome::InProgress),
            _ => {}
        }
        let statement = if done {
            "UPDATE gate_key SET status = 'DONE', token = NULL, lease_until = NULL, retryable = 0, error = NULL
             WHERE seq = ?1"
        } else {
            "UPDATE gate_key SET status = 'FAILED', token = NULL, lease_until = NULL, retryable = 1,
                error = coalesce(error, 'released') WHERE seq = ?1"
        };
        self.connection.prepare_cached(statement)?.execute([found.seq])?;
        self.close_attempt(found, if done { "confirmed" } else { "released" }, None, now)?;
        self.count_gate(&call.tenant, &call.scope, "released");
        let was = if found.record.status == LOCKED { "uncertain" } else { "failed" };
        let detail = json!({ "was": was, "as": if done { "done" } else { "not_done" }, "reason": reason });
        let target = format!("{}/{}", call.scope, call.key);
        self.audit(&call.tenant, &call.actor, now, "gate.release", &target, detail)?;
        Ok(GateOutcome::Ok)
    }

    fn open_attempt(&self, gate: i64, n: u32, call: &GateCall, claim: &GateClaim, now: Timestamp) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO gate_attempt (gate, n, claimed_at, correlation_id, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![gate, n, ms(now), claim.correlation_id, call.actor])?;
        Ok(())
    }

    fn close_attempt(&self, found: &Stored, outcome: &str, error: Option<&str>, now: Timestamp) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE gate_attempt SET ended_at = ?3, outcome = ?4, error = ?5
                 WHERE gate = ?1 AND n = ?2 AND ended_at IS NULL",
            )?
            .execute(params![found.seq, found.record.attempt, ms(now), outcome, error])?;
        Ok(())
    }
}

impl Stored {
    fn is_locked_by(&self, token: &str) -> bool {
        self.record.status == LOCKED && self.token.as_deref() == Some(token)
    }

    /// The same word from the same owner, whose answer was lost.
    fn ended_by(&self, token: &str, status: &str) -> bool {
        self.record.status == status && self.token.as_deref() == Some(token)
    }
}

fn after(now: Timestamp, by: Duration) -> i64 {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).map_or(i64::MAX, ms)
}

/// Never before its lease ends.
fn keep_until(claim: &GateClaim, now: Timestamp) -> i64 {
    after(now, claim.keep.max(claim.lease))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_keep_their_first_ten_rows_and_share_the_rest() {
        let slots: std::collections::BTreeSet<u64> = (1..10_000).map(slot).collect();
        assert_eq!(slots.len(), 50);
        assert!((1..=10).all(|n| slot(n) == n) && (11..10_000).all(|n| slot(n) > 10));
        assert_eq!((slot(500), slot(540)), (slot(460), slot(500)), "the oldest of the last forty gives way");
    }
}
