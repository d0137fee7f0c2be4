//! What people ask of the gate: the trail of a key, lists, scopes with their counts; and their word on what is uncertain.

use axum::Extension;
use axum::extract::{MatchedPath, Path, State};
use jiff::Timestamp;
use retoma_store::{GateFilter, GateHeld, GateOutcome, GateRecord, GateScope, GateStatus, GateVerb, Page, Store};
use serde_json::{Value, json};

use crate::access::Correlation;
use crate::api::{Answer, JsonBody, ok};
use crate::auth::{Reader, Writer};
use crate::fields::Fields;
use crate::gate::GatePolicy;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::{Call, NO_KEY};

/// `GET /v1/gate`: every scope that is configured or was used, with what happened in it. With `?status=`, what stands there in
/// any scope.
pub(crate) async fn scopes<S: Store>(State(state): State<AppState<S>>, _: Reader, query: Query) -> Answer {
    if query.text("status").is_some() {
        return keys(&state, None, &query).await;
    }
    query.only(&[])?;
    ok(views::list(all_scopes(&state).await?.iter().map(|scope| shown_scope(&state, scope)).collect()))
}

/// Scopes that were used, and those that are configured and still wait for it.
pub(crate) async fn all_scopes<S: Store>(state: &AppState<S>) -> Result<Vec<GateScope>, Problem> {
    let mut scopes = state.engine.store().gate_scopes(state.tenant.clone()).await?;
    for name in state.gate.keys() {
        if scopes.iter().all(|scope| scope.scope != *name) {
            scopes.push(GateScope { scope: name.clone(), ..GateScope::default() });
        }
    }
    scopes.sort_by(|a, b| a.scope.cmp(&b.scope));
    Ok(scopes)
}

/// Whether a scope's name has room for a phone or the number of an order: then it is no class of effects.
pub(crate) fn looks_like_a_key(scope: &str) -> bool {
    scope.split(|letter: char| !letter.is_ascii_digit()).any(|digits| digits.len() > 7)
}

fn shown_scope<S: Store>(state: &AppState<S>, scope: &GateScope) -> Value {
    let configured = state.gate.get(&scope.scope);
    let policy = configured.copied().unwrap_or_default();
    json!({
        "scope": scope.scope,
        "configured": configured.is_some(),
        "lease_s": policy.lease.as_secs(),
        "keep_s": policy.keep.as_secs(),
        "on_expired_lease": if policy.proceed_when_expired { "proceed" } else { "hold" },
        "duplicates": scope.duplicates(),
        "counts": scope.counts,
    })
}

/// `GET /v1/gate/{scope}?status=locked|uncertain|done|failed|held`: keys, newest first, without results; or claims that came
/// without one.
pub(crate) async fn list<S: Store>(
    State(state): State<AppState<S>>,
    _: Reader,
    Path(scope): Path<String>,
    query: Query,
) -> Answer {
    keys(&state, Some(scope), &query).await
}

async fn keys<S: Store>(state: &AppState<S>, scope: Option<String>, query: &Query) -> Answer {
    query.only(&["status", "limit", "cursor"])?;
    let (now, page) = (state.engine.clock().now(), query.page()?);
    if query.text("status") == Some("held") {
        return held(state, scope, page).await;
    }
    let status = query.word("status", |word| match word.to_ascii_lowercase().as_str() {
        "locked" => Some(GateStatus::Locked),
        "uncertain" => Some(GateStatus::Uncertain { now }),
        "done" => Some(GateStatus::Done),
        "failed" => Some(GateStatus::Failed),
        _ => None,
    })?;
    let filter = GateFilter { scope, status };
    let keys = state.engine.store().list_gate_keys(state.tenant.clone(), filter, page).await?;
    ok(views::page(&keys, |record| {
        let policy = state.gate.get(&record.scope).copied().unwrap_or_default();
        let mut row = shown_key(record, policy, now);
        if !row["result"].is_null() {
            // Only who asks for one key sees what it left.
            row["result"] = json!("(masked)");
        }
        row
    }))
}

async fn held<S: Store>(state: &AppState<S>, scope: Option<String>, page: Page) -> Answer {
    let rows = state.engine.store().list_gate_held(state.tenant.clone(), scope, page).await?;
    ok(views::page(&rows, |held: &GateHeld| {
        json!({
            "id": held.id.to_string(),
            "scope": held.scope,
            "at": held.at.to_string(),
            "reason": NO_KEY,
            "key_is": held.what,
            "correlation_id": held.correlation_id,
            "caller": held.actor,
        })
    }))
}

/// `GET /v1/gate/{scope}/{key}`: the trail (B6).
pub(crate) async fn show<S: Store>(
    State(state): State<AppState<S>>,
    reader: Reader,
    Path((scope, key)): Path<(String, String)>,
    query: Query,
    correlation: Extension<Correlation>,
) -> Answer {
    show_key(state, reader, scope, key, &query, correlation).await
}

/// The trail of a key that is called like one of the calls.
pub(crate) async fn show_word<S: Store>(
    State(state): State<AppState<S>>,
    reader: Reader,
    Path(scope): Path<String>,
    query: Query,
    correlation: Extension<Correlation>,
    route: MatchedPath,
) -> Answer {
    let word = route.as_str().rsplit('/').next().unwrap_or_default().to_owned();
    show_key(state, reader, scope, word, &query, correlation).await
}

async fn show_key<S: Store>(
    state: AppState<S>,
    Reader(caller): Reader,
    scope: String,
    key: String,
    query: &Query,
    Extension(correlation): Extension<Correlation>,
) -> Answer {
    let call = Call::new(state, caller, scope, query, correlation)?;
    match call.trail(&key).await? {
        Some(record) => ok(shown_trail(&record, call.policy, call.now)),
        None => call.answer(GateOutcome::NotFound, json!({})),
    }
}

/// `POST /v1/gate/{scope}/{key}/release {as?, reason?}`: a person's word on a key that is uncertain or failed (B3).
pub(crate) async fn release<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path((scope, key)): Path<(String, String)>,
    query: Query,
    Extension(correlation): Extension<Correlation>,
    JsonBody(body): JsonBody,
) -> Answer {
    let fields = Fields::of(&body)?;
    let done = match fields.text("as")? {
        None | Some("not_done") => false,
        Some("done") => true,
        Some(_) => return Err(fields.wrong("as", "not_done (the next caller may try) or done")),
    };
    let reason = fields.text("reason")?.map(|reason| reason.chars().take(500).collect());
    fields.finish()?;
    let call = Call::new(state, caller, scope, &query, correlation)?;
    let answer = call.ask(key.clone(), GateVerb::Release { done, reason }).await?;
    if answer.outcome == GateOutcome::Done {
        return Err(Problem::new(crate::problem::Code::Conflict, "it is done already; there is nothing to release"));
    }
    match call.trail(&key).await? {
        Some(record) if answer.outcome == GateOutcome::Ok => ok(shown_trail(&record, call.policy, call.now)),
        Some(record) => call.answer(answer.outcome, super::shown(&record)),
        None => call.answer(GateOutcome::NotFound, json!({})),
    }
}

impl<S: Store> Call<S> {
    async fn trail(&self, key: &str) -> Result<Option<GateRecord>, Problem> {
        let tenant = self.caller.tenant.clone();
        Ok(self.state.engine.store().get_gate_key(tenant, self.scope.clone(), key.to_owned()).await?)
    }
}

/// What the next claim of the key would be told, and why.
fn next(record: &GateRecord, policy: GatePolicy, now: Timestamp) -> (GateOutcome, Option<&str>) {
    match record.status.as_str() {
        "DONE" => (GateOutcome::Done, Some("already_done")),
        "FAILED" if record.retryable => (GateOutcome::Proceed, record.error.as_deref()),
        "FAILED" => (GateOutcome::Failed, record.error.as_deref()),
        _ if record.lease_until.is_some_and(|until| until > now) => (GateOutcome::InProgress, Some("in_progress")),
        _ if policy.proceed_when_expired => (GateOutcome::Proceed, Some("lease_expired")),
        _ => (GateOutcome::Uncertain, Some("lease_expired")),
    }
}

fn shown_key(record: &GateRecord, policy: GatePolicy, now: Timestamp) -> Value {
    let (told, reason) = next(record, policy, now);
    json!({
        "scope": record.scope,
        "key": record.key,
        "status": record.status,
        "first_seen_at": record.first_seen_at.to_string(),
        "correlation_id": record.correlation_id,
        "attempt": record.attempt,
        "duplicates": record.duplicates,
        "last_duplicate_at": views::time(record.last_duplicate_at),
        "mismatches": record.mismatches,
        "result": record.result,
        "result_omitted_bytes": record.result_omitted,
        "reason": reason,
        "next_claim": told.as_str(),
        "lease_until": views::time(record.lease_until),
        "keep_until": record.keep_until.to_string(),
    })
}

/// Was it executed, when, by which execution, how many repetitions were stopped, and why: in one answer.
fn shown_trail(record: &GateRecord, policy: GatePolicy, now: Timestamp) -> Value {
    let mut trail = shown_key(record, policy, now);
    let done = record.attempts.iter().find(|attempt| matches!(attempt.outcome.as_deref(), Some("done" | "confirmed")));
    trail["executed_at"] = views::time(done.and_then(|attempt| attempt.ended_at));
    trail["executed_by"] = json!(done.map(|attempt| attempt.correlation_id.as_ref().or(attempt.actor.as_ref())));
    trail["metadata"] = record.metadata.clone();
    trail["attempts"] = record
        .attempts
        .iter()
        .map(|attempt| {
            json!({
                "n": attempt.n,
                "claimed_at": attempt.claimed_at.to_string(),
                "ended_at": views::time(attempt.ended_at),
                "outcome": attempt.outcome,
                "error": attempt.error,
                "correlation_id": attempt.correlation_id,
                "caller": attempt.actor,
            })
        })
        .collect();
    trail["repeats"] = record
        .repeats
        .iter()
        .map(|repeat| {
            json!({
                "n": repeat.n,
                "at": repeat.at.to_string(),
                "told": repeat.outcome,
                "correlation_id": repeat.correlation_id,
                "caller": repeat.actor,
            })
        })
        .collect();
    trail
}
