//! The completer: writes the ends of attempts, in batches, before anything new is loaded for their contacts.
//!
//! One task. A result that cannot be stored now is tried again until it can: losing one would make a message that left
//! look unsent.

use std::sync::Arc;
use std::time::Duration;

use retoma_core::outcome::{AmbiguousRule, Outcome, after_attempt};
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
    let Landed { task, attempt, end } = landed;
    let now = shared.clock.now();
    let rule = AmbiguousRule { reconcile_for: shared.setup.reconcile_for };
    let next = after_attempt(task, *attempt, end, &shared.setup.retry, rule, now);
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

/// Wrong credentials and blocked accounts stop the channel; an accepted message shows that it works again.
async fn mark_channel<S: Store>(store: &S, shared: &Shared, landed: &Landed) -> Result<(), Error> {
    let stopped = match landed.end.outcome {
        Outcome::Credentials | Outcome::Account => {
            Some(landed.end.error.clone().unwrap_or_else(|| landed.end.outcome.to_string()))
        }
        Outcome::Accepted => None,
        _ => return Ok(()),
    };
    if stopped.is_none() && !shared.is_stopped(&landed.task.channel) {
        return Ok(());
    }
    if let Some(why) = &stopped {
        tracing::error!(event = "channel_stopped", channel = %landed.task.channel, why, "the channel stops; its tasks wait");
    }
    shared.mark_stopped(&landed.task.channel, stopped.is_some());
    let state = ChannelState {
        tenant: landed.task.tenant.clone(),
        channel: landed.task.channel.clone(),
        stopped,
        since: shared.clock.now(),
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
