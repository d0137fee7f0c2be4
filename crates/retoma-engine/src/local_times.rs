//! At every start: what was promised for a local time gets the instant that its zone says today (FC-55).

use jiff::Timestamp;
use retoma_core::ids::TaskId;
use retoma_core::local_time::{LocalTime, zone_data_version};
use retoma_store::{Error, Store};

use crate::shared::Shared;

/// Computes the instants anew and stores those that changed.
pub(crate) async fn plan_again<S: Store>(store: &S, shared: &Shared) -> Result<(), Error> {
    let promised = store.load_local_tasks(shared.setup.tenant.clone()).await?;
    let moved: Vec<(TaskId, Timestamp)> = promised
        .into_iter()
        .filter_map(|task| {
            let at = LocalTime::parse(task.local_time.as_deref()?).ok()?.instant_here()?;
            (at != task.scheduled_for).then_some((task.id, at))
        })
        .collect();
    if moved.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        event = "zone_rules_changed",
        count = moved.len(),
        zone_data = zone_data_version(),
        "promises for a local time were planned anew"
    );
    store.plan_again(shared.setup.tenant.clone(), moved, shared.clock.now()).await?;
    Ok(())
}
