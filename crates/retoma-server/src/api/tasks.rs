//! `/v1/tasks`: promised effects, and what a person may do with one.

use std::time::Duration;

use axum::extract::{Path, State};
use jiff::SignedDuration;
use retoma_core::duration;
use retoma_core::ids::TaskId;
use retoma_core::receipt::{NO_RECEIPT, SILENT_AFTER};
use retoma_core::task::TaskStatus;
use retoma_store::{Reopen, ReopenHow, Silent, Store, TaskFilter};
use serde_json::json;

use crate::auth::{Caller, Reader, Writer};
use crate::fields::Fields;
use crate::problem::{Code, Problem};
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::contact_ref::ContactRef;
use super::{Answer, JsonBody, ok};

/// A receipt may overtake our own result by moments, not by an hour.
const ORPHAN_AFTER: Duration = Duration::from_secs(3600);

const FILTERS: &[&str] =
    &["contact", "phone", "email", "status", "reason", "reference", "touch", "receipt", "limit", "cursor"];

/// `GET /v1/tasks?contact=&status=&reason=&reference=&touch=&receipt=no_receipt`.
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
    if let Some(word) = query.text("receipt") {
        if word != NO_RECEIPT {
            return Err(Problem::invalid(format!(
                "receipt can only be {NO_RECEIPT}: accepted, and never heard of again"
            )));
        }
        let before =
            state.engine.clock().now().saturating_sub(SignedDuration::try_from(SILENT_AFTER).unwrap_or_default());
        filter.silent = before.ok().map(|before| Silent { channels: state.channels.clone(), before });
    }
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

/// `GET /v1/receipts/orphans?older_than=1h`: receipts of messages that no task is known to have sent (FC-28).
pub(crate) async fn orphans<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&["older_than", "limit"])?;
    let age = match query.text("older_than") {
        None => ORPHAN_AFTER,
        Some(text) => {
            duration::parse(text).map_err(|_| Problem::invalid("older_than must be a duration, such as 1h or 2d"))?
        }
    };
    let now = state.engine.clock().now();
    let before = SignedDuration::try_from(age).ok().and_then(|age| now.checked_sub(age).ok());
    let before = before.ok_or_else(|| Problem::invalid("older_than lies before all time"))?;
    let limit = query.page()?.limit;
    let orphans = state.engine.store().list_orphan_receipts(state.tenant.clone(), before, limit).await?;
    ok(views::list(orphans.iter().map(|orphan| json!(orphan)).collect()))
}

async fn rows<S: Store>(state: &AppState<S>, filter: TaskFilter, page: retoma_store::Page) -> Answer {
    let rows = state.engine.store().list_tasks(state.tenant.clone(), filter, page).await?;
    let now = state.engine.clock().now();
    ok(views::page(&rows, |row| views::task(row, now)))
}

/// `GET /v1/tasks/{id}`: the task with its attempts.
pub(crate) async fn show<S: Store>(State(state): State<AppState<S>>, _: Reader, Path(id): Path<String>) -> Answer {
    shown(&state, TaskId::from(id)).await
}

async fn shown<S: Store>(state: &AppState<S>, id: TaskId) -> Answer {
    let found = state.engine.store().get_task(state.tenant.clone(), id.clone()).await?;
    let (row, attempts) = found.ok_or_else(|| Problem::not_found("task"))?;
    let evidence = state.engine.store().list_evidence(state.tenant.clone(), id).await?;
    let mut view = views::task(&row, state.engine.clock().now());
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
