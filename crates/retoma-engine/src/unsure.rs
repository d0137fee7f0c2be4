//! Unsure sends (E4): what the policy says after the time for evidence; after a crash, what was under way is ambiguous.
//!
//! Nothing here sends. `resend_once` puts the task back to be checked and started like any other, once, on record.

use std::time::Duration;

use jiff::Timestamp;
use retoma_core::evidence::Witness;
use retoma_core::outcome::{AttemptEnd, Chances, NextStep, Outcome, Settled, after_attempt, settle_unsure};
use retoma_core::send_check::Reason;
use retoma_core::task::Task;
use retoma_store::{AttemptRow, Error, Evidence, Finish, Store};

use crate::deliverer::flights::Flights;
use crate::shared::Shared;

/// Tasks in one look.
const LOAD_MAX: usize = 500;
/// A send older than every channel's deadline plus this is stuck (D7: found within 10 minutes).
const MARGIN: Duration = Duration::from_secs(60);

/// What the policy says of a task whose time for evidence is over.
pub(crate) fn by_policy(shared: &Shared, task: &Task, now: Timestamp) -> Finish {
    let policy = shared.setup.channels.get(&task.channel).and_then(|channel| channel.on_ambiguous);
    let settled = settle_unsure(task, policy);
    let (next, resend, evidence) = match (task.cancel_reason, settled) {
        // Any end but accepted closes it, whatever the policy (D2): it is not sent again, and nobody needs to decide.
        (Some(reason), _) => (NextStep::Cancelled(reason), false, "no evidence came; it was cancelled meanwhile"),
        (None, Settled::AssumeSent) => (NextStep::Sent, false, "no evidence came; the policy takes it as sent"),
        (None, Settled::ResendOnce) => {
            (NextStep::Retry { at: now, counts: false }, true, "no evidence came; the policy sends it once more")
        }
        (None, Settled::Hold) => (NextStep::Held(Reason::Unconfirmed), false, "no evidence came; a person decides"),
    };
    Finish {
        tenant: task.tenant.clone(),
        task: task.id.clone(),
        attempt: task.attempts,
        ended_at: now,
        end: ambiguous(evidence),
        next,
        resend,
        evidence: Some(evidence.to_owned()),
    }
}

/// Before anything is sent: every send that a process before us left open is ambiguous, whatever it was about to do.
pub(crate) async fn recover<S: Store>(store: &S, shared: &Shared) -> Result<usize, Error> {
    let now = shared.clock.now();
    let mut count = 0;
    loop {
        let open = store.load_stuck(Timestamp::MAX, LOAD_MAX).await?;
        if open.is_empty() {
            return Ok(count);
        }
        count += open.len();
        let finishes = open.iter().map(|(task, attempt)| left_open(shared, task, attempt, now)).collect();
        store.add_evidence(open.iter().map(|(task, _)| crashed(task, now)).collect()).await?;
        store.finish_attempts(finishes).await?;
    }
}

/// The sweep of D7 in a running process: what is `sending` for too long and not under way here.
pub(crate) async fn sweep<S: Store>(store: &S, shared: &Shared, flights: &Flights) -> Result<(), Error> {
    let now = shared.clock.now();
    let deadline = shared.setup.channels.values().map(|channel| channel.deadline).max().unwrap_or_default();
    let before = now.saturating_sub(deadline + MARGIN).unwrap_or(now);
    let open = store.load_stuck(before, LOAD_MAX).await?;
    let finishes: Vec<Finish> = open
        .iter()
        .filter(|(task, _)| !flights.is_busy(&task.channel, task.contact))
        .map(|(task, attempt)| left_open(shared, task, attempt, now))
        .collect();
    if !finishes.is_empty() {
        tracing::warn!(event = "stuck_sends_found", count = finishes.len(), "they are being reconciled");
        let rows = open.iter().filter(|(task, _)| !flights.is_busy(&task.channel, task.contact));
        store.add_evidence(rows.map(|(task, _)| crashed(task, now)).collect()).await?;
        store.finish_attempts(finishes).await?;
        shared.signals.unsure.notify_one();
    }
    Ok(())
}

fn left_open(shared: &Shared, task: &Task, attempt: &AttemptRow, now: Timestamp) -> Finish {
    let end = ambiguous("the process ended during send");
    let rule = Chances { reconcile_for: shared.setup.reconcile_for, other_spelling: false };
    let next = after_attempt(task, attempt.n, &end, &shared.setup.retry, rule, now);
    Finish {
        tenant: task.tenant.clone(),
        task: task.id.clone(),
        attempt: attempt.n,
        ended_at: now,
        end,
        next,
        resend: false,
        evidence: Some("the process ended during send".to_owned()),
    }
}

fn crashed(task: &Task, now: Timestamp) -> Evidence {
    let said = "the process ended during send; whether a byte left is not known".to_owned();
    Evidence { tenant: task.tenant.clone(), task: task.id.clone(), at: now, witness: Witness::Crash, said }
}

fn ambiguous(error: &str) -> AttemptEnd {
    AttemptEnd {
        outcome: Outcome::Ambiguous,
        http_status: None,
        error: Some(error.to_owned()),
        response: None,
        provider_message_id: None,
        retry_after: None,
    }
}
