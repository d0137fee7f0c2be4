//! The outermost layer: gives every request an id, writes problems with it, and logs method, route template, status and
//! time. Never a path as it came (it may hold a token), a query, a header or a body.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderValue, Method, header};
use retoma_store::Store;

use crate::problem::Problem;
use crate::state::AppState;

/// The id of a request, in its extensions.
#[derive(Clone, Debug)]
pub(crate) struct Correlation(pub(crate) uuid::Uuid);

pub(crate) async fn layer<S: Store>(State(state): State<AppState<S>>, mut request: Request, next: Next) -> Response {
    let began = state.engine.clock().monotonic();
    let correlation = Correlation(state.engine.new_id());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    request.extensions_mut().insert(correlation.clone());

    let mut answer = next.run(request).await;
    if let Some(problem) = answer.extensions_mut().remove::<Problem>() {
        let allow = answer.headers().get(header::ALLOW).cloned();
        answer = problem.answer(&correlation.0.to_string());
        if let Some(allow) = allow {
            answer.headers_mut().insert(header::ALLOW, allow);
        }
    }
    if let Ok(id) = HeaderValue::from_str(&correlation.0.to_string()) {
        answer.headers_mut().insert("x-request-id", id);
    }
    let took = state.engine.clock().monotonic().saturating_sub(began);
    log(&method, route.as_ref().map_or("(none)", MatchedPath::as_str), answer.status().as_u16(), took, &correlation);
    answer
}

fn log(method: &Method, route: &str, status: u16, took: Duration, correlation: &Correlation) {
    let ms = took.as_secs_f64() * 1000.0;
    let id = correlation.0;
    if status >= 500 {
        tracing::warn!(target: "retoma::access", %method, route, status, ms, request = %id, "answered");
    } else {
        tracing::debug!(target: "retoma::access", %method, route, status, ms, request = %id, "answered");
    }
}
