//! `/v1/channels`: how each way out stands, and a person's switch (E3, G1).

use axum::extract::{Path, State};
use retoma_core::ids::ChannelName;
use retoma_store::{ChannelState, Store};
use serde_json::{Value, json};

use crate::auth::{Reader, Writer};
use crate::fields::Fields;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::{Answer, JsonBody, ok};

/// A stop without a word of why still says who did it.
const BY_HAND: &str = "stopped by a person";

/// `GET /v1/channels`.
pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&[])?;
    let states = state.engine.store().channel_states(state.tenant.clone()).await?;
    ok(views::list(state.channels.iter().map(|name| shown(&state, name, &states)).collect()))
}

/// `POST /v1/channels/{name}/pause {reason?}`: nothing leaves through it until a person resumes it; its tasks wait.
pub(crate) async fn pause<S: Store>(
    state: State<AppState<S>>,
    writer: Writer,
    name: Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let reason = fields.text("reason")?.map(str::trim).filter(|reason| !reason.is_empty()).unwrap_or(BY_HAND);
    let reason = reason.to_owned();
    fields.finish()?;
    switch(state, writer, name, Some(reason)).await
}

/// `POST /v1/channels/{name}/resume`: whatever stopped it. What waited leaves, slowly at first.
pub(crate) async fn resume<S: Store>(
    state: State<AppState<S>>,
    writer: Writer,
    name: Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    fields.text("reason")?;
    fields.finish()?;
    switch(state, writer, name, None).await
}

async fn switch<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(name): Path<String>,
    stopped: Option<String>,
) -> Answer {
    let name = ChannelName::from(name);
    if !state.channels.contains(&name) {
        return Err(Problem::not_found("channel"));
    }
    let by_person = stopped.is_some();
    let since = state.engine.clock().now();
    let wish = ChannelState { tenant: state.tenant.clone(), channel: name.clone(), stopped, since, by_person };
    state.engine.store().set_channel_state(wish, caller.actor).await?;
    state.engine.wake();
    let states = state.engine.store().channel_states(state.tenant.clone()).await?;
    ok(shown(&state, &name, &states))
}

fn shown<S: Store>(state: &AppState<S>, name: &ChannelName, states: &[ChannelState]) -> Value {
    let stop = states.iter().find(|state| state.channel == *name && state.stopped.is_some());
    let traffic = state.engine.channel_traffic(name);
    let status = match (stop, traffic.breaker_open) {
        (Some(stop), _) if stop.by_person => "paused",
        (Some(_), _) => "stopped",
        (None, true) => "unreachable",
        (None, false) => "open",
    };
    let arrivals = state.engine.arrivals_of(name);
    json!({
        "name": name.as_str(),
        "status": status,
        "reason": stop.and_then(|stop| stop.stopped.clone()),
        "since": views::time(stop.map(|stop| stop.since)),
        "per_second": traffic.per_s,
        "arrivals": { "looked_at": arrivals.accepted, "no_receipt": arrivals.silent, "receipts_come": arrivals.told, "vanish": arrivals.vanish() },
    })
}
