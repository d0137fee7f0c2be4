//! The completer: writes the ends of attempts, in batches, before anything new is loaded for their contacts.
//!
//! One task. A result that cannot be stored now is tried again until it can: losing one would make a message that left
//! look unsent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::breaker::Turn;
use retoma_core::outcome::{Chances, NextStep, Outcome, after_attempt};
use retoma_store::{ChannelState, Error, Finish, Store};
use tokio::sync::mpsc;

use crate::deliverer::Landed;
use crate::deliverer::flights::Flights;
use crate::exit::Exit;
use crate::heartbeat;
use crate::shared::Shared;

/// Results in one commit.
const BATCH_MAX: usize = 512;
/// The longest the completer waits before it says that it is alive.
const POLL: Duration = Duration::from_secs(1);
/// Pause after a passing storage error.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Runs until the deliverer is gone and everything that landed is on disk.
pub(crate) async fn run<S: Store>(
    store: S,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
    mut landed: mpsc::Receiver<Landed>,
) -> Exit {
    let mut batch = Vec::new();
    loop {
        // A quiet hour is no silence: the loop says so once a second (F1).
        let Ok(received) = tokio::time::timeout(POLL, landed.recv_many(&mut batch, BATCH_MAX)).await else {
            heartbeat::beat(&store, &shared, heartbeat::COMPLETER).await;
            continue;
        };
        if received == 0 {
            return Exit::Stopped;
        }
        let landed = std::mem::take(&mut batch);
        if let Err(error) = complete(&store, &shared, &landed).await {
            return Exit::Fatal(error.to_string());
        }
        for one in &landed {
            flights.land(one.task.contact, &one.task.channel);
        }
        shared.signals.due.notify_one();
        if landed.iter().any(|one| one.end.outcome == Outcome::Ambiguous) {
            shared.signals.unsure.notify_one();
        }
        heartbeat::beat(&store, &shared, heartbeat::COMPLETER).await;
    }
}

async fn complete<S: Store>(store: &S, shared: &Shared, landed: &[Landed]) -> Result<(), Error> {
    let finishes: Vec<Finish> = landed.iter().map(|one| finish(shared, one)).collect();
    loop {
        match store.finish_attempts(finishes.clone()).await {
            Ok(_) => break,
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                tracing::warn!(event = "finish_failed", error = %error, "results wait to be stored");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
    for one in landed {
        mark_channel(store, shared, one).await?;
    }
    Ok(())
}

fn finish(shared: &Shared, landed: &Landed) -> Finish {
    let Landed { task, attempt, end, other_spelling } = landed;
    let now = shared.clock.now();
    let chances = Chances { reconcile_for: shared.setup.reconcile_for, other_spelling: *other_spelling };
    let next = after_attempt(task, *attempt, end, &shared.setup.retry, chances, now);
    let next = tell_traffic(shared, landed, next, now);
    Finish {
        tenant: task.tenant.clone(),
        task: task.id.clone(),
        attempt: *attempt,
        ended_at: now,
        end: end.clone(),
        next,
        resend: false,
        evidence: None,
    }
}

/// Tells rate, pairs and breaker how it ended. What the breaker let through to find out pays nothing for it: while nothing
/// gets through, messages wait instead of failing one by one (E5).
fn tell_traffic(shared: &Shared, landed: &Landed, next: NextStep, now: Timestamp) -> NextStep {
    let Landed { task, end, .. } = landed;
    let wait = match next {
        NextStep::Retry { at, .. } => at.duration_since(now).try_into().unwrap_or(Duration::ZERO),
        _ => Duration::ZERO,
    };
    let (was_probe, turn) = shared.traffic.ended(task, end, wait, shared.clock.monotonic());
    match turn {
        Some(Turn::Opened) => {
            let why = end.error.as_deref().unwrap_or_default();
            tracing::warn!(event = "breaker_opened", channel = %task.channel, why, "nothing gets through; messages wait");
        }
        Some(Turn::Closed) => {
            tracing::info!(event = "breaker_closed", channel = %task.channel, "messages leave again, slowly at first");
        }
        None => {}
    }
    match next {
        NextStep::Retry { counts: true, .. } | NextStep::Dead if was_probe && end.outcome == Outcome::Transient => {
            NextStep::Retry { at: now + shared.setup.retry.delay(1, task.id.as_str()), counts: false }
        }
        next => next,
    }
}

/// Wrong credentials and blocked accounts stop the channel; an accepted message shows that it works again.
async fn mark_channel<S: Store>(store: &S, shared: &Shared, landed: &Landed) -> Result<(), Error> {
    let stopped = match landed.end.outcome {
        Outcome::Credentials | Outcome::Account => {
            Some(landed.end.error.clone().unwrap_or_else(|| landed.end.outcome.to_string()))
        }
        Outcome::Accepted => None,
        _ => return Ok(()),
    };
    match (shared.stop_of(&landed.task.channel), &stopped) {
        // It runs and it works; or it was told before, and one alarm is enough; or a person has the last word.
        (None, None) | (Some(_), Some(_)) | (Some(true), None) => return Ok(()),
        (None, Some(_)) | (Some(false), None) => {}
    }
    if let Some(why) = &stopped {
        tracing::error!(event = "channel_stopped", channel = %landed.task.channel, why, "the channel stops; its tasks wait");
    }
    shared.note_stop(&landed.task.channel, stopped.as_ref().map(|_| false));
    if stopped.is_none() {
        shared.traffic.came_back(&landed.task.channel, shared.clock.monotonic());
    }
    let state = ChannelState {
        tenant: landed.task.tenant.clone(),
        channel: landed.task.channel.clone(),
        stopped,
        since: shared.clock.now(),
        by_person: false,
    };
    match store.set_channel_state(state, "engine".to_owned()).await {
        Err(error) if error.is_fatal() => Err(error),
        Err(error) => {
            tracing::warn!(event = "channel_state_failed", error = %error, "the channel's state was not stored");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
