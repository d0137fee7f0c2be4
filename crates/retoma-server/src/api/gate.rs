//! `/v1/gate`: "may I do this?" for flows that run elsewhere (B1-B7). Each call is one synced commit, made together with
//! whatever else waits for one; what a call means is the store's to say, this only reads requests and words answers.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use retoma_store::{GateAnswer, GateCall, GateClaim, GateOutcome, GateRecord, GateVerb, Store};
use serde_json::{Value, json};

use crate::access::Correlation;
use crate::auth::{Caller, Writer};
use crate::fields::Fields;
use crate::gate::{GatePolicy, is_scope_name};
use crate::problem::{Code, Problem};
use crate::query::Query;
use crate::state::AppState;
use crate::views;

use super::{Answer, JsonBody};

mod reading;
pub(crate) mod trail;

use reading::Asked;

/// Why nothing is done without a key, in the word that operators know from sources.
const NO_KEY: &str = "missing_provider_event_id";

/// What every call of the gate has.
struct Call<S: Store> {
    state: AppState<S>,
    caller: Caller,
    scope: String,
    policy: GatePolicy,
    correlation: Correlation,
    /// For tools that take any error status for a crash.
    always_ok: bool,
    now: Timestamp,
}

impl<S: Store> Call<S> {
    fn new(
        state: AppState<S>,
        caller: Caller,
        scope: String,
        query: &Query,
        correlation: Correlation,
    ) -> Result<Self, Problem> {
        if !is_scope_name(&scope) {
            return Err(Problem::invalid(
                "a scope is named by at most 64 letters, digits, '.', '-' and '_', beginning with a letter or digit",
            ));
        }
        query.only(&["always_ok"])?;
        let always_ok = match query.text("always_ok") {
            None | Some("false" | "0") => false,
            Some("" | "true" | "1") => true,
            Some(_) => return Err(Problem::invalid("always_ok must be true or false")),
        };
        let policy = state.gate.get(&scope).copied().unwrap_or_default();
        let now = state.engine.clock().now();
        Ok(Self { state, caller, scope, policy, correlation, always_ok, now })
    }

    async fn ask(&self, key: String, verb: GateVerb) -> Result<GateAnswer, Problem> {
        let call = GateCall {
            tenant: self.caller.tenant.clone(),
            scope: self.scope.clone(),
            key,
            actor: self.caller.actor.clone(),
            verb,
        };
        let answers = self.state.engine.store().gate(vec![call], self.now).await?;
        answers.into_iter().next().ok_or_else(|| Problem::new(Code::Internal, "the gate did not answer"))
    }

    /// The answer, with the members of a problem where it is none of the good ones.
    fn answer(&self, outcome: GateOutcome, mut body: Value) -> Answer {
        body["outcome"] = json!(outcome.as_str());
        let Some(code) = code_of(outcome) else {
            let is_first = outcome == GateOutcome::Proceed && !self.always_ok;
            return super::with(if is_first { StatusCode::CREATED } else { StatusCode::OK }, body);
        };
        let wait = body["retry_after_s"].as_u64();
        let problem = Problem::new(code, detail_of(outcome));
        for (name, value) in problem.members(&self.correlation.0.to_string()) {
            body[name] = value;
        }
        if self.always_ok {
            return super::ok(body);
        }
        let mut answer: Response = (code.status(), Json(body)).into_response();
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = wait {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        Ok(answer)
    }

    /// Nobody invents a key: evidence is kept, and that is all (B5).
    async fn hold(&self, what: &str, correlation_id: Option<String>) -> Answer {
        let correlation_id = correlation_id.filter(|id| reading::is_impersonal(id));
        let answer = self.ask(String::new(), GateVerb::Hold { what: what.to_owned(), correlation_id }).await?;
        let body = json!({ "proceed": false, "attempt": 0, "duplicates": 0, "first_seen_at": null, "reason": NO_KEY, "key_is": what });
        self.answer(answer.outcome, body)
    }
}

/// The problem that an outcome is, if it is one.
fn code_of(outcome: GateOutcome) -> Option<Code> {
    match outcome {
        GateOutcome::Proceed | GateOutcome::Done | GateOutcome::Ok => None,
        GateOutcome::InProgress => Some(Code::GateInProgress),
        GateOutcome::Uncertain => Some(Code::GateUncertain),
        GateOutcome::Failed => Some(Code::GateFailed),
        GateOutcome::Mismatch => Some(Code::GateMismatch),
        GateOutcome::Held => Some(Code::GateHeld),
        GateOutcome::StaleToken => Some(Code::GateStaleToken),
        GateOutcome::NotFound => Some(Code::NotFound),
    }
}

fn detail_of(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::InProgress => "another execution has the turn; ask again after the time that Retry-After names",
        GateOutcome::Uncertain => "an execution had the turn and fell silent; a person decides",
        GateOutcome::Failed => "it was tried and failed for good; a person may release it",
        GateOutcome::Mismatch => "this key stands for something else already",
        GateOutcome::Held => "there is no usable key, and none is invented",
        GateOutcome::StaleToken => "this token has no turn: another claim took over, or a person decided",
        GateOutcome::NotFound => "no such key in this scope",
        GateOutcome::Proceed | GateOutcome::Done | GateOutcome::Ok => "",
    }
}

/// What a caller is told of a key.
fn shown(record: &GateRecord) -> Value {
    json!({
        "attempt": record.attempt,
        "first_seen_at": record.first_seen_at.to_string(),
        "correlation_id": record.correlation_id,
        "duplicates": record.duplicates,
        "lease_until": views::time(record.lease_until),
    })
}

/// `POST /v1/gate/{scope}/claim {key, fingerprint?, lease?, correlation_id?, metadata?}`.
pub(crate) async fn claim<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(scope): Path<String>,
    query: Query,
    Extension(correlation): Extension<Correlation>,
    JsonBody(body): JsonBody,
) -> Answer {
    let call = Call::new(state, caller, scope, &query, correlation)?;
    let fields = Fields::of(&body)?;
    let asked = Asked::read(&fields)?;
    fields.finish()?;
    let key = match asked.key {
        Ok(key) => key,
        Err(what) => return call.hold(what, asked.correlation_id).await,
    };
    let token = reading::new_token(call.state.engine.new_id(), (call.state.random)());
    let claim = GateClaim {
        token: token.clone(),
        fingerprint: asked.fingerprint,
        lease: asked.lease.unwrap_or(call.policy.lease),
        keep: call.policy.keep,
        correlation_id: asked.correlation_id,
        metadata: asked.metadata,
        proceed_when_expired: call.policy.proceed_when_expired,
    };
    let answer = call.ask(key, GateVerb::Claim(claim)).await?;
    let Some(record) = &answer.record else { return Err(Problem::new(Code::Internal, "a claim left no record")) };
    let mut body = shown(record);
    body["proceed"] = json!(answer.outcome == GateOutcome::Proceed);
    match answer.outcome {
        GateOutcome::Proceed => {
            body["token"] = json!(token);
            if let Some(previous) = answer.previous {
                body["previous_attempt"] = json!(previous.as_str());
            }
        }
        GateOutcome::Done => {
            body["result"] = json!(record.result);
            body["result_omitted_bytes"] = json!(record.result_omitted);
        }
        GateOutcome::InProgress => body["retry_after_s"] = json!(wait(record, call.now).as_secs()),
        GateOutcome::Uncertain => body["reason"] = json!("lease_expired"),
        GateOutcome::Failed => body["reason"] = json!(record.error),
        GateOutcome::Mismatch => body["reason"] = json!("fingerprint_mismatch"),
        GateOutcome::Held | GateOutcome::Ok | GateOutcome::StaleToken | GateOutcome::NotFound => {}
    }
    call.answer(answer.outcome, body)
}

/// Until the turn ends, in whole seconds.
fn wait(record: &GateRecord, now: Timestamp) -> Duration {
    let left = record.lease_until.map_or(0, |until| until.as_millisecond() - now.as_millisecond());
    Duration::from_secs(u64::try_from(left).unwrap_or(0).div_ceil(1000).max(1))
}

/// Which of the calls of an owner.
#[derive(Clone, Copy)]
enum Owner {
    Renew,
    Complete,
    Fail,
}

/// `POST /v1/gate/{scope}/renew {key, token, lease?}`.
pub(crate) async fn renew<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(scope): Path<String>,
    query: Query,
    Extension(correlation): Extension<Correlation>,
    JsonBody(body): JsonBody,
) -> Answer {
    owner(Call::new(state, caller, scope, &query, correlation)?, Owner::Renew, &body).await
}

/// `POST /v1/gate/{scope}/complete {key, token, result?}`.
pub(crate) async fn complete<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(scope): Path<String>,
    query: Query,
    Extension(correlation): Extension<Correlation>,
    JsonBody(body): JsonBody,
) -> Answer {
    owner(Call::new(state, caller, scope, &query, correlation)?, Owner::Complete, &body).await
}

/// `POST /v1/gate/{scope}/fail {key, token, error?, retryable?}`.
pub(crate) async fn fail<S: Store>(
    State(state): State<AppState<S>>,
    Writer(caller): Writer,
    Path(scope): Path<String>,
    query: Query,
    Extension(correlation): Extension<Correlation>,
    JsonBody(body): JsonBody,
) -> Answer {
    owner(Call::new(state, caller, scope, &query, correlation)?, Owner::Fail, &body).await
}

async fn owner<S: Store>(call: Call<S>, what: Owner, body: &Value) -> Answer {
    let fields = Fields::of(body)?;
    let key = reading::key(&fields)?;
    let token = fields.text("token")?.unwrap_or_default().trim().to_owned();
    let verb = match what {
        Owner::Renew => {
            let lease = reading::lease(&fields)?.unwrap_or(call.policy.lease);
            GateVerb::Renew { token, lease }
        }
        Owner::Complete => GateVerb::Complete { token, result: reading::result(&fields) },
        Owner::Fail => {
            let error = reading::error(&fields)?;
            GateVerb::Fail { token, error, retryable: fields.boolean("retryable")? == Some(true) }
        }
    };
    fields.finish()?;
    // What was never claimed cannot be concluded; a missing key has its evidence from the claim.
    let key = match key {
        Ok(key) => key,
        Err(what) => return call.hold(what, None).await,
    };
    let may_go_on = matches!(what, Owner::Renew);
    let answer = call.ask(key, verb).await?;
    let is_ok = answer.outcome == GateOutcome::Ok;
    let mut body = answer.record.as_ref().map_or_else(|| json!({}), shown);
    body["proceed"] = json!(is_ok && may_go_on);
    body["state"] = json!(answer.record.as_ref().map(|record| &record.status));
    if is_ok && let Some(bytes) = answer.record.as_ref().and_then(|record| record.result_omitted) {
        body["result_omitted_bytes"] = json!(bytes);
    }
    call.answer(answer.outcome, body)
}
