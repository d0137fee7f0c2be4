//! Ends of attempts. Truth may come late, from anybody, and counts once.

use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use retoma_core::task::{Task, TaskStatus};
use retoma_store::{DeadLetter, Finish};
use rusqlite::{OptionalExtension, params};

use super::row::TaskAt;
use crate::codec::{ms, word_or_null_at};
use crate::database::Database;
use crate::error::Result;
use crate::receipts::ACCEPTED_RANK;

/// The last attempt of a task.
struct Last {
    ord: i64,
    n: u32,
    open: bool,
    outcome: Option<Outcome>,
}

impl Database {
    /// See [`Store::finish_attempts`](retoma_store::Store::finish_attempts).
    pub fn finish_attempts(&self, batch: &[Finish]) -> retoma_store::Result<Vec<bool>> {
        batch.iter().map(|finish| Ok(self.finish(finish)?)).collect()
    }

    /// Only a task's last attempt can be unfinished, or ambiguous and still being reconciled: a start needs the end of
    /// the one before. An ambiguous end may be replaced once, by what reconciliation or the policy says.
    fn finish(&self, finish: &Finish) -> Result<bool> {
        let Some(mut at) = self.find_task(finish.tenant.as_str(), &finish.task)? else { return Ok(false) };
        let Some(last) = self.last_attempt(at.seq)? else { return Ok(false) };
        let reconciled = at.task.status == TaskStatus::Unsure && last.outcome == Some(Outcome::Ambiguous);
        if last.n != finish.attempt || !(last.open || reconciled) {
            return Ok(false);
        }
        self.end_attempt(at.seq, &last, finish)?;
        if last.outcome.is_none() && finish.end.outcome == Outcome::Ambiguous {
            self.count("attempts", "ambiguous", 1);
        }
        if let Some(message) = &finish.end.provider_message_id {
            let rank = if finish.end.outcome == Outcome::Accepted { ACCEPTED_RANK } else { 0 };
            self.link_message(&at.task, message, rank, finish.ended_at)?;
        }
        if matches!(at.task.status, TaskStatus::Sending | TaskStatus::Unsure) {
            let before = at.task.status;
            advance(&mut at.task, finish);
            self.update_task(before, &at)?;
            self.note_end(&at, finish)?;
            if at.task.status == TaskStatus::Dead {
                self.bury(&at, finish)?;
            }
        }
        Ok(true)
    }

    fn last_attempt(&self, task: i64) -> Result<Option<Last>> {
        let mut find = self.connection.prepare_cached(
            "SELECT ord, n, ended_at IS NULL, outcome FROM attempt WHERE task = ?1 ORDER BY ord DESC LIMIT 1",
        )?;
        let last = find.query_row([task], |row| {
            Ok((|| {
                Ok(Last {
                    ord: row.get(0)?,
                    n: row.get(1)?,
                    open: row.get(2)?,
                    outcome: word_or_null_at(row, 3, Outcome::parse)?,
                })
            })())
        });
        last.optional()?.transpose()
    }

    /// Writes the row's end, once. What settles an ambiguous end later is added to its error as evidence; its class stays
    /// what it was, and only whether it counts as sent may change.
    fn end_attempt(&self, task: i64, last: &Last, finish: &Finish) -> Result<()> {
        let end = &finish.end;
        let counts = matches!(end.outcome, Outcome::Accepted | Outcome::Ambiguous) || finish.next == NextStep::Sent;
        if last.open {
            let error = match (&end.error, &finish.evidence) {
                (Some(error), Some(evidence)) if error != evidence => Some(format!("{error}; {evidence}")),
                (error, evidence) => error.clone().or_else(|| evidence.clone()),
            };
            self.connection
                .prepare_cached(
                    "UPDATE attempt SET ended_at = ?3, outcome = ?4, http_status = ?5, error = ?6, response = ?7,
                        provider_message_id = ?8, counts = ?9 WHERE task = ?1 AND ord = ?2",
                )?
                .execute(params![
                    task,
                    last.ord,
                    ms(finish.ended_at),
                    end.outcome.as_str(),
                    end.http_status,
                    error,
                    end.response,
                    end.provider_message_id,
                    counts,
                ])?;
        } else {
            let evidence = finish.evidence.as_ref().or(end.error.as_ref());
            self.connection
                .prepare_cached(
                    "UPDATE attempt SET provider_message_id = coalesce(?3, provider_message_id), counts = ?4,
                        error = CASE WHEN error IS NULL THEN ?5 WHEN ?5 IS NULL THEN error ELSE error || '; ' || ?5 END
                     WHERE task = ?1 AND ord = ?2",
                )?
                .execute(params![task, last.ord, end.provider_message_id, counts, evidence])?;
        }
        Ok(())
    }

    /// What lists show of the last attempt.
    fn note_end(&self, at: &TaskAt, finish: &Finish) -> Result<()> {
        let error = if at.task.status == TaskStatus::Sent { None } else { finish.end.error.as_ref() };
        self.connection
            .prepare_cached(
                "UPDATE task SET outcome = ?2, last_error = ?3, provider_message_id = coalesce(?4, provider_message_id),
                    detail = coalesce(?5, detail) WHERE seq = ?1",
            )?
            .execute(params![
                at.seq,
                finish.end.outcome.as_str(),
                error,
                finish.end.provider_message_id,
                finish.evidence
            ])?;
        Ok(())
    }

    /// The dead letter of a task (E7).
    fn bury(&self, at: &TaskAt, finish: &Finish) -> Result<()> {
        let task = &at.task;
        let errors: Vec<String> = self
            .connection
            .prepare_cached("SELECT error FROM attempt WHERE task = ?1 AND error IS NOT NULL ORDER BY ord")?
            .query_map([at.seq], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        self.put_dead(
            task.tenant.as_str(),
            &DeadLetter {
                id: task.id.as_str().to_owned(),
                kind: "task".to_owned(),
                source: None,
                flow: Some(task.flow.as_str().to_owned()),
                key: task.id.as_str().to_owned(),
                attempts: task.attempts,
                last_error: finish.end.error.clone(),
                errors,
                reason: finish.end.outcome.as_str().to_owned(),
                payload: serde_json::to_value(task)?,
                consumer_version: env!("CARGO_PKG_VERSION").to_owned(),
                created_at: task.created_at,
                died_at: finish.ended_at,
            },
        )
    }
}

/// Where the task goes. Marked by a cancel, it goes nowhere but to its end: `sent` if it was accepted, else `cancelled`.
/// `unsure` is no end: what may have left is still looked up.
fn advance(task: &mut Task, finish: &Finish) {
    task.updated_at = finish.ended_at;
    task.resent |= finish.resend;
    task.reconcile_until = None;
    let (status, reason) = match (&finish.next, task.cancel_reason) {
        (NextStep::Sent, _) => (TaskStatus::Sent, None),
        (NextStep::Unsure { until }, _) => {
            task.reconcile_until = Some(*until);
            (TaskStatus::Unsure, None)
        }
        (_, Some(cancelled)) => (TaskStatus::Cancelled, Some(cancelled)),
        (NextStep::Retry { at, counts }, None) => {
            task.next_attempt_at = *at;
            if !counts {
                task.attempts = task.attempts.saturating_sub(1);
            }
            (TaskStatus::Failed, None)
        }
        (NextStep::Respell { at }, None) => {
            task.next_attempt_at = *at;
            task.attempts = task.attempts.saturating_sub(1);
            task.respelled = true;
            (TaskStatus::Failed, None)
        }
        (NextStep::Dead, None) => (TaskStatus::Dead, None),
        (NextStep::Held(reason), None) => (TaskStatus::Held, Some(*reason)),
        (NextStep::Cancelled(reason), None) => {
            // The look after the start stopped it: as good as the check before.
            task.avoided = finish.end.outcome == Outcome::NotSent;
            (TaskStatus::Cancelled, Some::<Reason>(*reason))
        }
    };
    task.status = status;
    task.reason = reason;
}
