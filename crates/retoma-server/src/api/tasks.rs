//! `/v1/tasks`: promised effects, and what a person may do with one.

use axum::extract::{Path, State};
use retoma_core::ids::TaskId;
use retoma_core::task::TaskStatus;
use retoma_store::{Reopen, ReopenHow, Store, TaskFilter};
use serde_json::json;

use crate::auth::{Caller, Reader, Writer};
use crate::fields::Fields;
use crate::problem::{Code, Problem};
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::contact_ref::ContactRef;
use super::{Answer, JsonBody, ok};

const FILTERS: &[&str] = &["contact", "phone", "email", "status", "reason", "reference", "touch", "limit", "cursor"];

/// `GET /v1/tasks?contact=&status=&reason=&reference=&touch=`.
pub(crate) async fn list<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(FILTERS)?;
    let mut filter = TaskFilter {
        tenant: state.tenant.clone(),
        status: query.word("status", TaskStatus::parse)?,
        reason: query.text("reason").map(str::to_owned),
        reference: query.text("reference").map(str::to_owned),
        touch_no: query.id("touch")?,
        ..TaskFilter::default()
    };
    if let Some(named) = ContactRef::parse(query.text("contact"), query.text("phone"), query.text("email"))? {
        match named.find(&state).await?.first() {
            Some(contact) => filter.contact = Some(*contact),
            None => return ok(views::list(Vec::new())),
        }
    }
    rows(&state, filter, query.page()?).await
}

/// `GET /v1/tasks/stuck`: due for over 15 min, sending too long, held, unsure (D2).
pub(crate) async fn stuck<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&["limit", "cursor"])?;
    let stuck_at = Some(state.engine.clock().now());
    let filter = TaskFilter { tenant: state.tenant.clone(), stuck_at, ..TaskFilter::default() };
    rows(&state, filter, query.page()?).await
}

async fn rows<S: Store>(state: &AppState<S>, filter: TaskFilter, page: retoma_store::Page) -> Answer {
    let rows = state.engine.store().list_tasks(state.tenant.clone(), filter, page).await?;
    ok(views::page(&rows, views::task))
}

/// `GET /v1/tasks/{id}`: the task with its attempts.
pub(crate) async fn show<S: Store>(State(state): State<AppState<S>>, _: Reader, Path(id): Path<String>) -> Answer {
    shown(&state, TaskId::from(id)).await
}

async fn shown<S: Store>(state: &AppState<S>, id: TaskId) -> Answer {
    let found = state.engine.store().get_task(state.tenant.clone(), id.clone()).await?;
    let (row, attempts) = found.ok_or_else(|| Problem::not_found("task"))?;
    let evidence = state.engine.store().list_evidence(state.tenant.clone(), id).await?;
    let mut view = views::task(&row);
    view["evidence"] = json!(evidence.iter().map(views::evidence).collect::<Vec<_>>());
    view["attempt_log"] = json!(attempts.iter().map(views::attempt).collect::<Vec<_>>());
    ok(view)
}

/// `POST /v1/tasks/{id}/cancel {reason?}`.
pub(crate) async fn cancel_one<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    fields.text("reason")?;
    fields.finish()?;
    let id = TaskId::from(id);
    exists(&state, &id).await?;
    let filter = TaskFilter { tenant: state.tenant.clone(), ids: vec![id.clone()], ..TaskFilter::default() };
    let cancelled = cancel(&state, &caller, filter).await?;
    if cancelled.is_empty() {
        return Err(Problem::new(Code::Conflict, "the task has come to its end already"));
    }
    shown(&state, id).await
}

/// `POST /v1/tasks/cancel {contact?|reference?|reason?}`: one statement, answers how many.
pub(crate) async fn cancel_many<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let mut filter = TaskFilter {
        tenant: state.tenant.clone(),
        reference: fields.text("reference")?.map(str::to_owned),
        reason: fields.text("reason")?.map(str::to_owned),
        ..TaskFilter::default()
    };
    if let Some(contact) = fields.object("contact")? {
        let named =
            ContactRef::of(&contact)?.ok_or_else(|| Problem::invalid("contact must hold id, phone or email"))?;
        contact.finish()?;
        let found = named.find(&state).await?;
        filter.contact = Some(*found.first().ok_or_else(|| Problem::not_found("contact"))?);
    }
    fields.finish()?;
    if filter.contact.is_none() && filter.reference.is_none() && filter.reason.is_none() {
        return Err(Problem::invalid("say which tasks: contact, reference or reason"));
    }
    let cancelled = cancel(&state, &caller, filter).await?;
    ok(json!({ "cancelled": cancelled.len(), "task_ids": cancelled.iter().map(TaskId::as_str).collect::<Vec<_>>() }))
}

async fn cancel<S: Store>(state: &AppState<S>, caller: &Caller, filter: TaskFilter) -> Result<Vec<TaskId>, Problem> {
    let now = state.engine.clock().now();
    Ok(state.engine.store().cancel_tasks(filter, caller.actor.clone(), now).await?)
}

/// `POST /v1/tasks/{id}/retry`: due now; the check still has its say.
pub(crate) async fn retry<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    Fields::of(&body)?.finish()?;
    reopen(&state, &caller, TaskId::from(id), ReopenHow::Retry).await
}

/// `POST /v1/tasks/{id}/resolve {as: "sent"|"not_sent"}`.
pub(crate) async fn resolve<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let how = match fields.required_text("as")? {
        "sent" => ReopenHow::ResolveSent,
        "not_sent" => ReopenHow::ResolveNotSent,
        _ => return Err(fields.wrong("as", "\"sent\" or \"not_sent\"")),
    };
    fields.finish()?;
    reopen(&state, &caller, TaskId::from(id), how).await
}

async fn reopen<S: Store>(state: &AppState<S>, caller: &Caller, id: TaskId, how: ReopenHow) -> Answer {
    exists(state, &id).await?;
    let reopen = Reopen { tenant: state.tenant.clone(), ids: vec![id.clone()], how };
    let now = state.engine.clock().now();
    let moved = state.engine.store().reopen_tasks(reopen, caller.actor.clone(), now).await?;
    if moved.is_empty() {
        let detail = match how {
            ReopenHow::Retry => "only a held, dead, failed or cancelled task can be tried again",
            _ => "only an unsure or held task can be resolved",
        };
        return Err(Problem::new(Code::Conflict, detail));
    }
    state.engine.wake();
    shown(state, id).await
}

async fn exists<S: Store>(state: &AppState<S>, id: &TaskId) -> Result<(), Problem> {
    let found = state.engine.store().get_task(state.tenant.clone(), id.clone()).await?;
    found.map(|_| ()).ok_or_else(|| Problem::not_found("task"))
}
