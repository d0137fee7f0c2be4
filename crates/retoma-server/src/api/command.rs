//! Operator commands: `operator.*` events through the same door as everything else, so that they are decided in their turn
//! and are on record.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use retoma_core::event::{EventData, EventKind, Operator};
use retoma_core::ids::{ContactId, EventId, SourceName};
use retoma_core::keys::{body_digest, digest16};
use retoma_store::{Appended, AuditRow, Entry, EventStatus, Intake, NewEvent, Store, Subject};
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::problem::{Code, Problem};
use crate::state::AppState;
use crate::views;

use super::{Answer, contact_ref};

/// How long an answer waits for the decision.
pub(crate) const WAIT: Duration = Duration::from_secs(2);

/// Submits a command about a contact, waits for its decision, and answers the contact as it stands then.
pub(crate) async fn run<S: Store>(
    state: &AppState<S>,
    caller: &Caller,
    contact: ContactId,
    kind: EventKind,
    operator: Operator,
) -> Answer {
    contact_ref::view(state, contact).await?;
    let detail = json!({ "until": views::time(operator.until), "to": operator.to,
        "with": operator.with.map(|with| with.to_string()), "reason": operator.reason });
    let event = submit(state, caller, contact, kind, operator).await?;
    audit(state, caller, kind.as_str(), &contact.to_string(), detail).await?;
    let row = state.engine.decided(&caller.tenant, event, WAIT).await?;
    let row = row.ok_or_else(|| Problem::new(Code::Internal, "the command's event is gone"))?;
    let link = format!("/v1/events/{event}");
    let mut body = views::contact(&contact_ref::view(state, contact).await?);
    body["event"] = views::event(&row);
    if row.status == EventStatus::Received {
        let mut answer = (StatusCode::ACCEPTED, axum::Json(body)).into_response();
        answer.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&link).expect("an id is plain text"));
        return Ok(answer);
    }
    super::ok(body)
}

async fn submit<S: Store>(
    state: &AppState<S>,
    caller: &Caller,
    contact: ContactId,
    kind: EventKind,
    operator: Operator,
) -> Result<EventId, Problem> {
    let id = EventId(state.engine.new_id());
    let now = state.engine.clock().now();
    let asked = serde_json::to_vec(&operator).expect("an operator's command is plain data");
    let event = NewEvent {
        id,
        tenant: caller.tenant.clone(),
        source: SourceName::new("operator"),
        kind,
        key: format!("{kind}/{id}"),
        delivery_key: digest16("delivery", &[caller.tenant.as_str().as_bytes(), b"operator", id.as_bytes()]),
        business_key: None,
        digest: body_digest(&asked),
        entry: Entry::Received,
        subject: Subject::Contact(contact),
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData { operator: Some(operator), ..EventData::default() },
        receipt: None,
    };
    let appended = state.engine.submit(Intake { request: None, events: vec![event] }).await?;
    match appended.as_slice() {
        [Appended::New { event, .. }] => Ok(*event),
        _ => Err(Problem::new(Code::Internal, "a fresh event was taken for a known one")),
    }
}

/// Puts an order of a person on record (G3).
pub(crate) async fn audit<S: Store>(
    state: &AppState<S>,
    caller: &Caller,
    action: &str,
    target: &str,
    detail: Value,
) -> Result<(), Problem> {
    let row = AuditRow {
        tenant: caller.tenant.clone(),
        at: state.engine.clock().now(),
        actor: caller.actor.clone(),
        action: action.to_owned(),
        target: target.to_owned(),
        detail,
    };
    Ok(state.engine.store().append_audit(vec![row]).await?)
}
