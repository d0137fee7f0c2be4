//! The keeper: slow chores. Finds stuck sends (D7), tells of messages whose content never came (FC-06), and removes history whose retention is over, a slice at a time.

use std::sync::Arc;
use std::time::Duration;

use retoma_store::{Error, Store};

use crate::deliverer::flights::Flights;
use crate::exit::Exit;
use crate::heartbeat;
use crate::shared::Shared;
use crate::unsure;

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(10);
/// Rounds between two sweeps of history.
const HISTORY_EVERY: u32 = 60;
/// Between two slices of a sweep, so that the writer breathes.
const SLICE_GAP: Duration = Duration::from_millis(200);

/// Runs until the engine stops.
pub(crate) async fn run<S: Store>(store: S, shared: Arc<Shared>, flights: Arc<Flights>) -> Exit {
    let mut stopping = shared.signals.stopping();
    let mut without_content = 0;
    for round in 0_u32.. {
        if *stopping.borrow_and_update() {
            break;
        }
        match chores(&store, &shared, &flights, &mut without_content, round % HISTORY_EVERY == 0).await {
            Ok(()) => {}
            Err(error) if error.is_fatal() => return Exit::Fatal(error.to_string()),
            Err(error) => tracing::warn!(event = "keeper_round_failed", error = %error, "the keeper tries again"),
        }
        heartbeat::beat(&store, &shared, heartbeat::KEEPER).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stopping.changed() => {}
        }
    }
    Exit::Stopped
}

async fn chores<S: Store>(
    store: &S,
    shared: &Shared,
    flights: &Flights,
    without_content: &mut u64,
    history: bool,
) -> Result<(), Error> {
    unsure::sweep(store, shared, flights).await?;
    let stats = store.stats(shared.clock.now()).await?;
    let waiting = stats.without_content;
    if waiting > *without_content {
        tracing::warn!(
            event = "content_missing",
            count = waiting,
            "messages came without their content ten minutes ago, and it never followed: somebody may wait for an answer"
        );
    }
    *without_content = waiting;
    let stopping = shared.signals.stopping();
    while history && !*stopping.borrow() {
        if !store.sweep_history(shared.setup.keep, shared.clock.now()).await? {
            break;
        }
        tokio::time::sleep(SLICE_GAP).await;
    }
    Ok(())
}
