//! `/v1/events`: events in our own words, what became of events, and what a person may do with one.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use retoma_core::event::EventKind;
use retoma_core::ids::{ContactId, EventId, SourceName};
use retoma_providers::generic::event_from_api;
use retoma_providers::inbound::{Provider, kept_headers};
use retoma_store::{EventFilter, EventMove, EventMoves, EventStatus, Store, Subject};
use serde_json::{Value, json};

use crate::auth::{Admin, Caller, Reader, Writer};
use crate::fields::Fields;
use crate::inbox;
use crate::intake::{Origin, intake, raw};
use crate::problem::{Code, Problem};
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::{Answer, JsonBody, RawJson, command, contact_ref, ok};

/// Events of one request.
const LIST_MAX: usize = 1000;

/// `POST /v1/events`: one event or a list; a list is stored together or not at all.
pub(crate) async fn post<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    headers: HeaderMap,
    RawJson { value: body, bytes }: RawJson,
) -> Answer {
    let received_at = state.engine.clock().now();
    let (values, is_list) = match &body {
        Value::Array(list) => (list.iter().collect::<Vec<_>>(), true),
        one => (vec![one], false),
    };
    if values.is_empty() || values.len() > LIST_MAX {
        return Err(Problem::invalid(format!("a list holds 1 to {LIST_MAX} events")));
    }
    let mut parts = Vec::with_capacity(values.len());
    let mut contacts = Vec::with_capacity(values.len());
    for (number, value) in (1..).zip(values) {
        let place = if is_list { format!("event {number}: ") } else { String::new() };
        let part = event_from_api(&caller.tenant, value, received_at);
        parts.push(part.map_err(|why| Problem::invalid(format!("{place}{why}")))?);
        contacts.push(named_contact(&state, value, &place).await?);
    }
    let source = SourceName::new("api");
    let origin = Origin { tenant: &caller.tenant, source: &source, channel: state.default_channel.as_ref() };
    let raw = raw(&state, kept_headers(&headers, Some("authorization")), bytes);
    let mut intake = intake(&state, &origin, parts, Some(raw), received_at);
    for (event, contact) in intake.events.iter_mut().zip(contacts) {
        if let Some(contact) = contact {
            event.subject = Subject::Contact(contact);
        }
    }
    inbox::store(&state, "api", Provider::Generic, intake).await
}

/// `contact: {id}` names a contact of ours; it must be there.
async fn named_contact<S: Store>(
    state: &AppState<S>,
    value: &Value,
    place: &str,
) -> Result<Option<ContactId>, Problem> {
    let Some(id) = value.pointer("/contact/id").filter(|id| !id.is_null()) else { return Ok(None) };
    let id: Option<ContactId> = id.as_str().and_then(|text| text.parse().ok());
    let id = id.ok_or_else(|| Problem::invalid(format!("{place}contact.id must be a contact's id")))?;
    contact_ref::view(state, id).await?;
    Ok(Some(id))
}

/// `GET /v1/events?status=&source=&type=&contact=`.
pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&["status", "source", "type", "contact", "limit", "cursor"])?;
    let filter = EventFilter {
        status: query.word("status", EventStatus::parse)?,
        source: query.text("source").map(SourceName::new),
        kind: query.word("type", |word| word.parse::<EventKind>().ok())?,
        contact: query.id("contact")?,
    };
    let rows = state.engine.store().list_events(state.tenant.clone(), filter, query.page()?).await?;
    ok(views::page(&rows, views::event))
}

fn id_of(text: &str) -> Result<EventId, Problem> {
    text.parse().map_err(|_| Problem::not_found("event"))
}

/// `GET /v1/events/{id}`.
pub(crate) async fn show<S: Store>(State(state): State<AppState<S>>, _: Reader, Path(id): Path<String>) -> Answer {
    let row = state.engine.store().get_event(state.tenant.clone(), id_of(&id)?).await?;
    ok(views::event(&row.ok_or_else(|| Problem::not_found("event"))?))
}

/// `GET /v1/events/{id}/raw`: the bytes as they came. Looking at them is on record.
pub(crate) async fn show_raw<S: Store>(
    State(state): State<AppState<S>>,
    Admin(caller): Admin,
    Path(id): Path<String>,
) -> Answer {
    let raw = state.engine.store().get_raw(state.tenant.clone(), id_of(&id)?).await?;
    let raw = raw.ok_or_else(|| Problem::not_found("raw body of this event"))?;
    command::audit(&state, &caller, "event.raw", &id, json!({})).await?;
    let mut answer = raw.body.into_response();
    let headers = answer.headers_mut();
    // Never shown by a browser as the page that a sender may have made of it.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let kept = serde_json::to_string(&raw.headers).unwrap_or_default();
    if let Ok(kept) = HeaderValue::from_bytes(kept.as_bytes()) {
        headers.insert("x-original-headers", kept);
    }
    Ok(answer)
}

/// `POST /v1/events/{id}/release`.
pub(crate) async fn release<S: Store>(
    state: State<AppState<S>>,
    by: Writer,
    id: Path<String>,
    body: JsonBody,
) -> Answer {
    move_one(state, by, id, body, EventMove::Release).await
}

/// `POST /v1/events/{id}/discard`.
pub(crate) async fn discard<S: Store>(
    state: State<AppState<S>>,
    by: Writer,
    id: Path<String>,
    body: JsonBody,
) -> Answer {
    move_one(state, by, id, body, EventMove::Discard).await
}

/// `POST /v1/events/{id}/replay`.
pub(crate) async fn replay<S: Store>(
    state: State<AppState<S>>,
    by: Writer,
    id: Path<String>,
    body: JsonBody,
) -> Answer {
    move_one(state, by, id, body, EventMove::Replay).await
}

async fn move_one<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
    to: EventMove,
) -> Answer {
    let fields = Fields::of(&body)?;
    let reason = fields.text("reason")?.map(str::to_owned);
    fields.finish()?;
    let id = id_of(&id)?;
    let known = state.engine.store().get_event(state.tenant.clone(), id).await?;
    let status = known.ok_or_else(|| Problem::not_found("event"))?.status;
    if !moved(&state, &caller, id, to, reason).await? {
        let wanted = match to {
            EventMove::Release => "held or quarantined",
            EventMove::Discard => "held, quarantined or dead",
            EventMove::Replay => "one that has ended",
        };
        let detail = format!("the event is {}; this takes {wanted}", status.as_str());
        return Err(Problem::new(Code::Conflict, detail));
    }
    let row = match to {
        EventMove::Discard => state.engine.store().get_event(state.tenant.clone(), id).await?,
        EventMove::Release | EventMove::Replay => {
            state.engine.wake();
            state.engine.decided(&state.tenant, id, command::WAIT).await?
        }
    };
    ok(views::event(&row.ok_or_else(|| Problem::not_found("event"))?))
}

async fn moved<S: Store>(
    state: &AppState<S>,
    caller: &Caller,
    id: EventId,
    to: EventMove,
    reason: Option<String>,
) -> Result<bool, Problem> {
    let moves = EventMoves {
        tenant: caller.tenant.clone(),
        ids: vec![id],
        to,
        actor: caller.actor.clone(),
        reason,
        now: state.engine.clock().now(),
    };
    Ok(!state.engine.store().move_events(moves).await?.is_empty())
}
