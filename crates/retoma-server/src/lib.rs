//! HTTP: webhooks in (`/in`), the API (`/v1`), health, problems, and a plain status page.
//!
//! **Execution model.** [`router`] is a service like any other: the binary serves it on a listener with [`serve()`], the
//! command line calls it in-process when no server runs, tests do the same. Handlers run on the caller's runtime and block
//! on nothing but the engine's queue and the store's answers; every body, queue and wait is bounded.
//!
//! **Not here:** what an event means (`retoma-providers`, `retoma-core`), how anything is stored or sent (`retoma-store`,
//! `retoma-engine`), where secrets come from (the binary). No handler logs a path as it came, a query, a body or a key.
//!
//! **Start reading** at `inbox.rs` (the dumb receiver), then `api.rs`.

use axum::Router;
use axum::routing::{delete, get, post};
use retoma_store::Store;

mod access;
mod address;
mod api;
pub mod auth;
mod body;
mod counters;
pub mod fake;
mod fields;
pub mod flows;
pub mod gate;
mod health;
mod inbox;
mod intake;
pub mod problem;
mod query;
mod rate;
pub mod reconcile;
mod serve;
mod state;
mod status_page;
mod views;

pub use address::{Network, Peer, Proxies};
pub use auth::LocalKey;
pub use counters::Counters;
pub use rate::{Rate, RatePerAddress};
pub use serve::{Limits, serve};
pub use state::{AppState, Door, ServerSetup};

use problem::{Code, Problem};

/// Every route.
pub fn router<S: Store>(state: AppState<S>) -> Router {
    let layer = axum::middleware::from_fn_with_state(state.clone(), access::layer::<S>);
    Router::new()
        .route("/", get(status_page::page::<S>))
        .route("/status.json", get(status_page::status::<S>))
        .route("/metrics", get(status_page::metrics::<S>))
        .route("/healthz/live", get(health::live))
        .route("/healthz/ready", get(health::ready::<S>))
        .route("/healthz/pipeline", get(health::pipeline::<S>))
        .route("/problems/{code}", get(problem::page))
        // Providers are set up with and without the slash (FC-41); a redirect would count as a failure.
        .route("/in/{source}", post(inbox::post::<S>).get(inbox::handshake::<S>))
        .route("/in/{source}/", post(inbox::post::<S>).get(inbox::handshake::<S>))
        // Senders that can neither sign nor add a header carry their secret in the address.
        .route("/in/{source}/{token}", post(inbox::post::<S>).get(inbox::handshake::<S>))
        .nest("/v1", v1())
        .fallback(async || Problem::new(Code::NotFound, "there is nothing under this address"))
        .method_not_allowed_fallback(async || Problem::new(Code::MethodNotAllowed, "this address takes other methods"))
        .layer(layer)
        .with_state(state)
}

fn v1<S: Store>() -> Router<AppState<S>> {
    use api::{admin, channels, contacts, dead, events, gate, keys, schedule, tasks};
    Router::new()
        .route("/events", get(events::list::<S>).post(events::post::<S>))
        .route("/events/{id}", get(events::show::<S>))
        .route("/events/{id}/raw", get(events::show_raw::<S>))
        .route("/events/{id}/release", post(events::release::<S>))
        .route("/events/{id}/discard", post(events::discard::<S>))
        .route("/events/{id}/replay", post(events::replay::<S>))
        .route("/contacts", get(contacts::find::<S>))
        .route("/contacts/{id}", get(contacts::show::<S>))
        .route("/contacts/{id}/plan", get(contacts::show_plan::<S>))
        .route("/contacts/{id}/timeline", get(contacts::show_timeline::<S>))
        .route("/contacts/{id}/pause", post(contacts::pause::<S>))
        .route("/contacts/{id}/resume", post(contacts::resume::<S>))
        .route("/contacts/{id}/optout", post(contacts::opt_out::<S>))
        .route("/contacts/{id}/move", post(contacts::move_to::<S>))
        .route("/contacts/{id}/link", post(contacts::link::<S>))
        .route("/contacts/{id}/erase", post(contacts::erase::<S>))
        .route("/tasks", get(tasks::list::<S>).post(schedule::post::<S>))
        .route("/tasks/stuck", get(tasks::stuck::<S>))
        .route("/tasks/cancel", post(tasks::cancel_many::<S>))
        .route("/tasks/{id}", get(tasks::show::<S>))
        .route("/tasks/{id}/cancel", post(tasks::cancel_one::<S>))
        .route("/tasks/{id}/retry", post(tasks::retry::<S>))
        .route("/tasks/{id}/resolve", post(tasks::resolve::<S>))
        .route("/receipts/orphans", get(tasks::orphans::<S>))
        .route("/channels", get(channels::list::<S>))
        .route("/channels/{name}/pause", post(channels::pause::<S>))
        .route("/channels/{name}/resume", post(channels::resume::<S>))
        .route("/dead", get(dead::list::<S>))
        .route("/dead/retry", post(dead::retry::<S>))
        .route("/dead/discard", post(dead::discard::<S>))
        .route("/dead/{id}", get(dead::show::<S>))
        .route("/gate", get(gate::trail::scopes::<S>))
        .route("/gate/{scope}", get(gate::trail::list::<S>))
        .route("/gate/{scope}/claim", post(gate::claim::<S>).get(gate::trail::show_word::<S>))
        .route("/gate/{scope}/renew", post(gate::renew::<S>).get(gate::trail::show_word::<S>))
        .route("/gate/{scope}/complete", post(gate::complete::<S>).get(gate::trail::show_word::<S>))
        .route("/gate/{scope}/fail", post(gate::fail::<S>).get(gate::trail::show_word::<S>))
        .route("/gate/{scope}/{key}", get(gate::trail::show::<S>))
        .route("/gate/{scope}/{key}/release", post(gate::trail::release::<S>))
        .route("/keys", get(keys::list::<S>).post(keys::create::<S>))
        .route("/keys/{id}", delete(keys::revoke::<S>))
        .route("/flows", get(flows::routes::list::<S>))
        .route("/flows/history", get(flows::routes::history::<S>))
        .route("/flows/reload", post(flows::routes::post::<S>))
        .route("/stats", get(admin::stats::<S>))
        .route("/heartbeats", get(admin::heartbeats::<S>))
        .route("/audit", get(admin::audit::<S>))
        .route("/db/sql", post(admin::sql::<S>))
        .route("/db/backup", post(admin::backup::<S>))
}
