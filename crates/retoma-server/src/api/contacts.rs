//! `/v1/contacts`: finding a person, what stands in front of them, and orders about them.

use axum::extract::{Path, State};
use retoma_core::event::{EventKind, Operator};
use retoma_core::ids::ContactId;
use retoma_store::Store;
use serde_json::Value;

use crate::auth::{Reader, Writer};
use crate::fields::Fields;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::contact_ref::{ContactRef, view};
use super::{Answer, JsonBody, command, ok, plan, timeline};

/// An id in a path.
pub(crate) fn id_of(text: &str) -> Result<ContactId, Problem> {
    text.parse().map_err(|_| Problem::not_found("contact"))
}

/// `GET /v1/contacts?phone=|email=|id=`.
pub(crate) async fn find<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    query.only(&["phone", "email", "id"])?;
    let named = ContactRef::parse(query.text("id"), query.text("phone"), query.text("email"))?;
    let named = named.ok_or_else(|| Problem::invalid("say whom: phone, email or id"))?;
    let now = state.engine.clock().now();
    let wanted = named.find(&state).await?.into_iter().map(|id| (state.tenant.clone(), id)).collect();
    let views = state.engine.store().load_contacts(wanted, now).await?;
    ok(views::list(views.iter().map(views::contact).collect()))
}

/// `GET /v1/contacts/{id}`.
pub(crate) async fn show<S: Store>(State(state): State<AppState<S>>, _: Reader, Path(id): Path<String>) -> Answer {
    ok(views::contact(&view(&state, id_of(&id)?).await?))
}

/// `GET /v1/contacts/{id}/plan`.
pub(crate) async fn show_plan<S: Store>(State(state): State<AppState<S>>, _: Reader, Path(id): Path<String>) -> Answer {
    ok(plan::of(&state, id_of(&id)?).await?)
}

/// `GET /v1/contacts/{id}/timeline`.
pub(crate) async fn show_timeline<S: Store>(
    State(state): State<AppState<S>>,
    _: Reader,
    Path(id): Path<String>,
) -> Answer {
    ok(views::list(timeline::of(&state, id_of(&id)?).await?))
}

/// `POST /v1/contacts/{id}/pause {until, reason?}`.
pub(crate) async fn pause<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let until = fields.time("until")?.ok_or_else(|| fields.wrong("until", "a time, and is missing"))?;
    if until <= state.engine.clock().now() {
        return Err(Problem::invalid("until must lie in the future"));
    }
    let operator = Operator { until: Some(until), ..asked_by(&caller.actor, &fields)? };
    fields.finish()?;
    command::run(&state, &caller, id_of(&id)?, EventKind::OperatorPause, operator).await
}

/// `POST /v1/contacts/{id}/resume {reason?}`.
pub(crate) async fn resume<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let operator = only_reason(&caller.actor, &body)?;
    command::run(&state, &caller, id_of(&id)?, EventKind::OperatorResume, operator).await
}

/// `POST /v1/contacts/{id}/optout {reason?}`.
pub(crate) async fn opt_out<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let operator = only_reason(&caller.actor, &body)?;
    command::run(&state, &caller, id_of(&id)?, EventKind::OperatorOptOut, operator).await
}

/// `POST /v1/contacts/{id}/move {conversation, to, reason}`.
pub(crate) async fn move_to<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let contact = id_of(&id)?;
    let fields = Fields::of(&body)?;
    let conversation = fields.required_text("conversation")?;
    let conversation = conversation.parse().map_err(|_| fields.wrong("conversation", "a conversation's id"))?;
    let to = fields.required_text("to")?.to_owned();
    fields.required_text("reason")?;
    let operator =
        Operator { conversation: Some(conversation), to: Some(to.clone()), ..asked_by(&caller.actor, &fields)? };
    fields.finish()?;
    let view = view(&state, contact).await?;
    let cycle =
        view.conversation(conversation).ok_or_else(|| Problem::not_found("open conversation of this contact"))?;
    if let Some(flow) = state.flow(Some(&cycle.flow)).filter(|flow| !flow.states.contains_key(&to)) {
        let known = flow.states.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(Problem::invalid(format!("the flow {} has no such state; it has: {known}", flow.name)));
    }
    command::run(&state, &caller, contact, EventKind::OperatorMove, operator).await
}

/// `POST /v1/contacts/{id}/link {with: {id}|{phone}|{email}, reason?}`: the two are one person. The newer contact gives way, so
/// that whoever links them, and in which order, the same one stays.
pub(crate) async fn link<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let one = view(&state, id_of(&id)?).await?.contact.id;
    let fields = Fields::of(&body)?;
    let wrong = || fields.wrong("with", "{id}, {phone} or {email} of the other contact, and is missing");
    let with = fields.object("with")?.ok_or_else(wrong)?;
    let named = ContactRef::of(&with)?.ok_or_else(wrong)?;
    with.finish()?;
    let other = named.find(&state).await?.into_iter().find(|other| *other != one);
    let Some(other) = other else {
        let same = named.find(&state).await?.contains(&one);
        return Err(if same {
            Problem::invalid("with is this very contact")
        } else {
            Problem::not_found("contact to link with")
        });
    };
    let (stays, goes) = (one.min(other), one.max(other));
    let operator = Operator { with: Some(stays), ..asked_by(&caller.actor, &fields)? };
    fields.finish()?;
    command::run(&state, &caller, goes, EventKind::OperatorLink, operator).await
}

/// `POST /v1/contacts/{id}/erase {reason?}`: what says who this was, and what was said, is removed for good (H2).
pub(crate) async fn erase<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Answer {
    let operator = only_reason(&caller.actor, &body)?;
    command::run(&state, &caller, id_of(&id)?, EventKind::OperatorErase, operator).await
}

fn only_reason(actor: &str, body: &Value) -> Result<Operator, Problem> {
    let fields = Fields::of(body)?;
    let operator = asked_by(actor, &fields)?;
    fields.finish()?;
    Ok(operator)
}

fn asked_by(actor: &str, fields: &Fields<'_>) -> Result<Operator, Problem> {
    let reason = fields.text("reason")?.map(str::to_owned);
    Ok(Operator { actor: actor.to_owned(), until: None, conversation: None, to: None, with: None, reason })
}
