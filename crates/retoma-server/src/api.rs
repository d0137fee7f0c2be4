//! `/v1`: what people, scripts and the command line ask and order. Thin: read the request, call the store or submit an
//! event, show the rows.
//!
//! Orders about a contact (pause, resume, opt-out, move, link, erase) are `operator.*` events like any other, decided by the bucket's
//! owner; the answer waits up to two seconds for the decision, else it is 202 with a link (DESIGN.md, "People and other
//! nodes"). Orders about tasks are one compare-and-set each. Every order leaves an audit row.

use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use retoma_store::Store;
use serde_json::Value;

use crate::body;
use crate::problem::Problem;
use crate::state::AppState;

pub(crate) mod admin;
pub(crate) mod channels;
pub(crate) mod command;
pub(crate) mod contact_ref;
pub(crate) mod contacts;
pub(crate) mod dead;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod keys;
pub(crate) mod plan;
pub(crate) mod schedule;
pub(crate) mod tasks;
pub(crate) mod timeline;

/// What a handler answers.
pub(crate) type Answer = Result<Response, Problem>;

/// Bodies of /v1: a list of events may be long.
const BODY_BYTES_MAX: usize = 4 << 20;

/// A JSON body. An empty one is an empty object, so that orders without arguments need none.
pub(crate) struct JsonBody(pub(crate) Value);

/// A JSON body with its bytes as they came.
pub(crate) struct RawJson {
    pub(crate) value: Value,
    pub(crate) bytes: Bytes,
}

impl<S: Store> FromRequest<AppState<S>> for RawJson {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState<S>) -> Result<Self, Problem> {
        let held = body::read(request.into_body(), BODY_BYTES_MAX, &state.body_room).await?;
        let bytes = held.bytes;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self { value: Value::Object(serde_json::Map::new()), bytes });
        }
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            // The library's message may repeat content; the place is enough.
            let place = format!("line {}, column {}", error.line(), error.column());
            Problem::invalid(format!("the body is not JSON: {place}"))
        })?;
        Ok(Self { value, bytes })
    }
}

impl<S: Store> FromRequest<AppState<S>> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState<S>) -> Result<Self, Problem> {
        Ok(Self(RawJson::from_request(request, state).await?.value))
    }
}

/// 200 with a body.
pub(crate) fn ok(body: Value) -> Answer {
    Ok(Json(body).into_response())
}

/// Another status with a body.
pub(crate) fn with(status: StatusCode, body: Value) -> Answer {
    Ok((status, Json(body)).into_response())
}
