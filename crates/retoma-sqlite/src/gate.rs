//! The gate (B1-B5): one row per key, one per claim. Every call is a compare-and-set under the owner's token.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use retoma_core::keys::Key16;
use retoma_store::{GateAnswer, GateAttempt, GateCall, GateOutcome, GateRecord, GateVerb};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Value, json};

use crate::codec::{json_at, ms, time_at, time_or_null_at};
use crate::database::Database;
use crate::error::{Failure, Result};

const LOCKED: &str = "LOCKED";
const DONE: &str = "DONE";
const FAILED: &str = "FAILED";

/// A key as stored.
struct Stored {
    seq: i64,
    token: Option<String>,
    fingerprint: Option<Vec<u8>>,
    record: GateRecord,
}

const STORED: &str = "SELECT seq, token, fingerprint, status, first_seen_at, correlation_id, attempt, duplicates,
    last_duplicate_at, result, error, retryable, lease_until, metadata FROM gate_key
    WHERE key = ?1 AND scope = ?2 AND tenant = ?3";

fn stored(row: &Row<'_>) -> Result<Stored> {
    let result: Option<String> = row.get(9)?;
    Ok(Stored {
        seq: row.get(0)?,
        token: row.get(1)?,
        fingerprint: row.get(2)?,
        record: GateRecord {
            status: row.get(3)?,
            first_seen_at: time_at(row, 4)?,
            correlation_id: row.get(5)?,
            attempt: row.get(6)?,
            duplicates: row.get::<_, i64>(7)?.unsigned_abs(),
            last_duplicate_at: time_or_null_at(row, 8)?,
            result: result.map(|text| serde_json::from_str(&text)).transpose()?,
            error: row.get(10)?,
            retryable: row.get(11)?,
            lease_until: time_or_null_at(row, 12)?,
            metadata: json_at(row, 13)?,
            attempts: Vec::new(),
        },
    })
}

/// What a claim brings.
struct Claim<'a> {
    token: &'a str,
    fingerprint: Option<&'a Key16>,
    lease_until: i64,
    keep_until: i64,
    correlation_id: &'a str,
    metadata: &'a Value,
    proceed_when_expired: bool,
}

impl Database {
    /// See [`Store::gate`](retoma_store::Store::gate).
    pub fn gate(&self, calls: &[GateCall], now: Timestamp) -> retoma_store::Result<Vec<GateAnswer>> {
        calls.iter().map(|call| Ok(self.gate_call(call, now)?)).collect()
    }

    fn gate_call(&self, call: &GateCall, now: Timestamp) -> Result<GateAnswer> {
        let found = self.gate_key(call)?;
        let outcome = match (&call.verb, found) {
            (
                GateVerb::Claim { token, fingerprint, lease, keep, correlation_id, metadata, proceed_when_expired },
                found,
            ) => {
                let claim = Claim {
                    token,
                    fingerprint: fingerprint.as_ref(),
                    lease_until: after(now, *lease),
                    keep_until: after(now, *keep),
                    correlation_id: correlation_id.as_deref().unwrap_or(&call.key),
                    metadata,
                    proceed_when_expired: *proceed_when_expired,
                };
                match found {
                    None => self.first_claim(call, &claim, now)?,
                    Some(found) => self.claim_again(&found, &claim, now)?,
                }
            }
            (_, None) => GateOutcome::NotFound,
            (GateVerb::Renew { token, lease }, Some(found)) => self.renew(&found, token, after(now, *lease))?,
            (GateVerb::Complete { token, result }, Some(found)) => self.complete(&found, token, result, now)?,
            (GateVerb::Fail { token, error, retryable }, Some(found)) => {
                self.fail(&found, token, error, *retryable, now)?
            }
            (GateVerb::Release { actor }, Some(found)) => self.release_key(call, &found, actor, now)?,
            (GateVerb::Show, Some(_)) => GateOutcome::Ok,
        };
        let mut after = self.gate_key(call)?;
        if let (GateVerb::Show, Some(found)) = (&call.verb, &mut after) {
            found.record.attempts = self.gate_attempts(found.seq)?;
        }
        Ok(GateAnswer { outcome, record: after.map(|found| found.record) })
    }

    fn gate_attempts(&self, gate: i64) -> Result<Vec<GateAttempt>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT n, claimed_at, ended_at, outcome, error FROM gate_attempt WHERE gate = ?1 ORDER BY n",
        )?;
        let mut rows = statement.query([gate])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(GateAttempt {
                n: row.get(0)?,
                claimed_at: time_at(row, 1)?,
                ended_at: time_or_null_at(row, 2)?,
                outcome: row.get(3)?,
                error: row.get(4)?,
            });
        }
        Ok(found)
    }

    fn gate_key(&self, call: &GateCall) -> Result<Option<Stored>> {
        self.connection
            .prepare_cached(STORED)?
            .query_row(params![call.key, call.scope, call.tenant.as_str()], |row| Ok(stored(row)))
            .optional()?
            .transpose()
    }

    fn first_claim(&self, call: &GateCall, claim: &Claim<'_>, now: Timestamp) -> Result<GateOutcome> {
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
                claim.lease_until,
                ms(now),
                claim.correlation_id,
                claim.fingerprint.map(|key| &key.0[..]),
                serde_json::to_string(claim.metadata)?,
                claim.keep_until,
            ])?;
        self.open_attempt(self.connection.last_insert_rowid(), 1, now)?;
        Ok(GateOutcome::Proceed)
    }

    fn claim_again(&self, found: &Stored, claim: &Claim<'_>, now: Timestamp) -> Result<GateOutcome> {
        // Before anything else: another content under this key is no repetition (B4).
        if let (Some(stored), Some(asked)) = (&found.fingerprint, claim.fingerprint)
            && stored[..] != asked.0[..]
        {
            return Ok(GateOutcome::Mismatch);
        }
        let record = &found.record;
        let lapsed = record.lease_until.is_none_or(|until| until <= now);
        match record.status.as_str() {
            // The same caller, whose answer was lost.
            LOCKED if found.token.as_deref() == Some(claim.token) => Ok(GateOutcome::Proceed),
            LOCKED if lapsed && claim.proceed_when_expired => {
                self.close_attempt(found, "lapsed", None, now)?;
                self.take_over(found, claim, now)
            }
            LOCKED if lapsed => self.repetition(found, now, GateOutcome::Uncertain),
            LOCKED => self.repetition(found, now, GateOutcome::InProgress),
            DONE => self.repetition(found, now, GateOutcome::Done),
            FAILED if record.retryable => self.take_over(found, claim, now),
            FAILED => self.repetition(found, now, GateOutcome::Failed),
            other => Err(Failure::Row(format!("gate status {other:?}"))),
        }
    }

    fn take_over(&self, found: &Stored, claim: &Claim<'_>, now: Timestamp) -> Result<GateOutcome> {
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
                claim.lease_until,
                attempt,
                claim.keep_until,
                claim.fingerprint.map(|key| &key.0[..])
            ])?;
        self.open_attempt(found.seq, attempt, now)?;
        Ok(GateOutcome::Proceed)
    }

    fn repetition(&self, found: &Stored, now: Timestamp, outcome: GateOutcome) -> Result<GateOutcome> {
        self.connection
            .prepare_cached("UPDATE gate_key SET duplicates = duplicates + 1, last_duplicate_at = ?2 WHERE seq = ?1")?
            .execute(params![found.seq, ms(now)])?;
        Ok(outcome)
    }

    /// The owner is still at it, also after its lease ran out, as long as nobody took over.
    fn renew(&self, found: &Stored, token: &str, lease_until: i64) -> Result<GateOutcome> {
        if !found.is_locked_by(token) {
            return Ok(GateOutcome::StaleToken);
        }
        self.connection
            .prepare_cached("UPDATE gate_key SET lease_until = ?2 WHERE seq = ?1")?
            .execute(params![found.seq, lease_until])?;
        Ok(GateOutcome::Ok)
    }

    fn complete(&self, found: &Stored, token: &str, result: &Value, now: Timestamp) -> Result<GateOutcome> {
        if found.ended_by(token, DONE) {
            return Ok(GateOutcome::Ok);
        }
        if !found.is_locked_by(token) {
            return Ok(GateOutcome::StaleToken);
        }
        self.connection
            .prepare_cached("UPDATE gate_key SET status = 'DONE', lease_until = NULL, result = ?2 WHERE seq = ?1")?
            .execute(params![found.seq, serde_json::to_string(result)?])?;
        self.close_attempt(found, "done", None, now)?;
        Ok(GateOutcome::Ok)
    }

    fn fail(&self, found: &Stored, token: &str, error: &str, retryable: bool, now: Timestamp) -> Result<GateOutcome> {
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
        Ok(GateOutcome::Ok)
    }

    /// A person frees what is uncertain or failed for good. The old owner's token dies with it.
    fn release_key(&self, call: &GateCall, found: &Stored, actor: &str, now: Timestamp) -> Result<GateOutcome> {
        match found.record.status.as_str() {
            DONE => return Ok(GateOutcome::Done),
            LOCKED if found.record.lease_until.is_some_and(|until| until > now) => return Ok(GateOutcome::InProgress),
            _ => {}
        }
        self.connection
            .prepare_cached(
                "UPDATE gate_key SET status = 'FAILED', token = NULL, lease_until = NULL, retryable = 1,
                    error = coalesce(error, 'released') WHERE seq = ?1",
            )?
            .execute([found.seq])?;
        self.close_attempt(found, "released", None, now)?;
        let detail = json!({ "was": found.record.status });
        self.audit(&call.tenant, actor, now, "gate.release", &format!("{}/{}", call.scope, call.key), detail)?;
        Ok(GateOutcome::Ok)
    }

    fn open_attempt(&self, gate: i64, n: u32, now: Timestamp) -> Result<()> {
        self.connection
            .prepare_cached("INSERT INTO gate_attempt (gate, n, claimed_at) VALUES (?1, ?2, ?3)")?
            .execute(params![gate, n, ms(now)])?;
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
