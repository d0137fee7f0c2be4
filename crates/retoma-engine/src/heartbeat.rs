//! Signs of life (F1): every loop says when a round ended, at most once a second.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use retoma_store::{Heartbeat, Store};

use crate::shared::Shared;

pub(crate) const OWNER: &str = "owner";
pub(crate) const DELIVERER: &str = "deliverer";
pub(crate) const COMPLETER: &str = "completer";
pub(crate) const KEEPER: &str = "keeper";
pub(crate) const RECONCILER: &str = "reconciler";

/// Beats closer together than this say nothing new.
const EVERY: Duration = Duration::from_secs(1);

/// When each loop last beat.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    last: Mutex<HashMap<&'static str, Duration>>,
}

impl Beats {
    fn is_time(&self, flow: &'static str, now: Duration) -> bool {
        let mut last = self.last.lock().expect("no code panics while it holds the beats");
        let due = last.get(flow).is_none_or(|at| now.saturating_sub(*at) >= EVERY);
        if due {
            last.insert(flow, now);
        }
        due
    }
}

/// Records the end of a round. A beat that cannot be stored is no reason to stop: its absence is the alarm.
pub(crate) async fn beat<S: Store>(store: &S, shared: &Shared, flow: &'static str) {
    if !shared.beats.is_time(flow, shared.clock.monotonic()) {
        return;
    }
    let beat = Heartbeat { flow: flow.to_owned(), seen_at: shared.clock.now() };
    if let Err(error) = store.beat(vec![beat]).await {
        tracing::warn!(event = "beat_failed", flow, error = %error, "a sign of life was not stored");
    }
}
