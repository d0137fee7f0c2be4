//! Reconciliation (A11): asks platforms what they have, and brings in what never came, through the same dedupe.
//!
//! Run by the binary, one task per source that wants it. A round that fails is told and tried again at the next: what it
//! did not bring in is still missing then. Never sends anything anywhere but the question.

use std::sync::Arc;
use std::time::Duration;

use retoma_engine::transport::Fetch;
use retoma_providers::inbound::{Part, Source};
use retoma_providers::reconcile::{Ask, Listed, NotListed, PAGE_BYTES_MAX, PAGES_MAX, Reconcile};
use retoma_store::{Heartbeat, Store};
use tokio::sync::watch;

use crate::intake::{Origin, intake, raw};
use crate::state::AppState;

/// The longest that one page may take.
const PAGE_FOR: Duration = Duration::from_secs(30);

/// What a round brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Items that the platform listed.
    pub listed: usize,
    /// Of those, the ones that had never come.
    pub missing: usize,
}

/// Why a round ended early. What it brought in before is kept.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The platform's list.
    #[error(transparent)]
    List(#[from] NotListed),
    /// The storage.
    #[error("the storage did not take what was missing")]
    Storage(#[source] retoma_store::Error),
    /// The intake queue.
    #[error("{0}")]
    Refused(String),
}

/// Asks again and again, until told to stop.
pub async fn run<S: Store, F: Fetch>(
    state: AppState<S>,
    fetch: Arc<F>,
    source: String,
    reconcile: Reconcile,
    mut stop: watch::Receiver<bool>,
) {
    while !*stop.borrow_and_update() {
        tokio::select! {
            // Dropping a round half way loses nothing: what is missing is missing again.
            result = round(&state, &*fetch, &source, &reconcile) => told(&source, result),
            _ = stop.changed() => return,
        }
        let beat = Heartbeat { flow: format!("reconcile:{source}"), seen_at: state.engine.clock().now() };
        if let Err(error) = state.engine.store().beat(vec![beat]).await {
            tracing::warn!(event = "beat_failed", error = %error, "a sign of life was not stored");
        }
        tokio::select! {
            () = tokio::time::sleep(reconcile.every) => {}
            _ = stop.changed() => return,
        }
    }
}

fn told(source: &str, result: Result<Round, RoundError>) {
    match result {
        Ok(Round { listed, missing: 0 }) => {
            tracing::debug!(event = "reconciled", source, listed, "nothing was missing")
        }
        Ok(Round { listed, missing }) => {
            tracing::warn!(
                event = "reconciled",
                source,
                listed,
                missing,
                "events had never arrived and were brought in"
            );
        }
        Err(error) => {
            tracing::warn!(event = "reconcile_failed", source, error = %error, "tried again at the next round")
        }
    }
}

/// One look at everything the platform has in the window.
///
/// # Errors
/// [`RoundError`].
pub async fn round<S: Store, F: Fetch>(
    state: &AppState<S>,
    fetch: &F,
    source: &str,
    reconcile: &Reconcile,
) -> Result<Round, RoundError> {
    let Some(door) = state.doors.get(source) else { return Ok(Round::default()) };
    let mut total = Round::default();
    let mut next = Some(reconcile.first(state.engine.clock().now())?);
    for _ in 0..PAGES_MAX {
        let Some(ask) = next.take() else { break };
        let (listed, page) = page(state, fetch, &door.source, reconcile, &ask).await?;
        total.listed += listed.parts.len();
        total.missing += bring_in(state, &door.source, listed.parts, page).await?;
        next = listed.next;
    }
    Ok(total)
}

async fn page<S: Store, F: Fetch>(
    state: &AppState<S>,
    fetch: &F,
    source: &Source,
    reconcile: &Reconcile,
    ask: &Ask,
) -> Result<(Listed, bytes::Bytes), RoundError> {
    let end = fetch.fetch(ask.url.clone(), ask.headers.clone(), PAGE_BYTES_MAX, PAGE_FOR).await;
    let listed = reconcile.read(source, ask, &end, state.engine.clock().now())?;
    let bytes = match end {
        retoma_providers::outbound::WireEnd::Answer { body, .. } => body,
        _ => bytes::Bytes::new(),
    };
    Ok((listed, bytes))
}

/// Has stored what nobody ever said: neither under this id nor as this fact.
async fn bring_in<S: Store>(
    state: &AppState<S>,
    source: &Source,
    parts: Vec<Part>,
    page: bytes::Bytes,
) -> Result<usize, RoundError> {
    let keys =
        parts.iter().flat_map(|part| [part.delivery_key, part.business_key.unwrap_or(part.delivery_key)]).collect();
    let known = state.engine.store().known_keys(keys).await.map_err(RoundError::Storage)?;
    let missing: Vec<Part> = parts
        .into_iter()
        .zip(known.chunks(2))
        .filter(|(_, known)| !known.contains(&true))
        .map(|(part, _)| part)
        .collect();
    if missing.is_empty() {
        return Ok(0);
    }
    let count = missing.len();
    let origin = Origin {
        tenant: &source.tenant,
        source: &source.name,
        channel: source.channel.as_ref().or(state.default_channel.as_ref()),
    };
    let raw = raw(state, Vec::new(), page);
    let intake = intake(state, &origin, missing, Some(raw), state.engine.clock().now());
    state.engine.submit(intake).await.map_err(|refused| RoundError::Refused(refused.to_string()))?;
    for _ in 0..count {
        state.counters.add(source.name.as_str(), "reconciled");
    }
    Ok(count)
}
