//! `POST /in/{source}`: the dumb receiver (A1). Authenticate the raw bytes, read them into parts, have them stored, and only
//! then answer; nothing slow runs here. What the answer may be is the table of INTERFACE.md: one column for generic
//! sources, one for provider presets, which punish anything but 200.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use retoma_providers::inbound::{self, Auth, Provider, Refusal};
use retoma_providers::whatsapp_cloud::inbound::Handshake;
use retoma_store::{Appended, Entry, EventStatus, Intake, Store};
use serde_json::{Value, json};

use crate::address::Network;
use crate::body;
use crate::intake::{Origin, intake, raw};
use crate::problem::{Code, Problem};
use crate::state::{AppState, Door};

/// What stands behind `/in/`.
#[derive(serde::Deserialize)]
pub(crate) struct Address {
    source: String,
    token: Option<String>,
}

/// The handler of webhooks.
pub(crate) async fn post<S: Store>(
    State(state): State<AppState<S>>,
    Path(to): Path<Address>,
    request: Request,
) -> Response {
    answered(&state, &to, async |door| receive(&state, door, &to, request).await).await
}

/// The handler of a provider's question whether the address is ours: a GET, which carries no signature.
pub(crate) async fn handshake<S: Store>(
    State(state): State<AppState<S>>,
    Path(to): Path<Address>,
    request: Request,
) -> Response {
    answered(&state, &to, async |door| greet(&state, door, &to, request)).await
}

/// Finds the door, and counts what it refuses.
async fn answered<S: Store>(
    state: &AppState<S>,
    to: &Address,
    enter: impl AsyncFnOnce(&Door) -> Result<Response, Problem>,
) -> Response {
    let Some(door) = state.doors.get(&to.source) else {
        state.counters.add("?", "refused_unknown_source");
        return Problem::new(Code::UnknownSource, "no source of this name is configured").into_response();
    };
    match enter(door).await {
        Ok(answer) => answer,
        Err(problem) => {
            state.counters.add(&to.source, counted_as(problem.code));
            problem.into_response()
        }
    }
}

/// What is asked before anything of the request is read: where it comes from, and whether too much does.
fn admit<S: Store>(state: &AppState<S>, door: &Door, to: &Address, head: &Parts) -> Result<(), Problem> {
    let source = &door.source;
    if to.token.is_some() && !matches!(source.auth, Auth::SecretPath { .. }) {
        return Err(Problem::new(Code::NotFound, "there is nothing under this address"));
    }
    let sender = state.proxies.sender(&head.extensions, &head.headers);
    let listed = |list: &Vec<Network>| sender.is_some_and(|sender| list.iter().any(|network| network.contains(sender)));
    if !door.addresses.as_ref().is_none_or(listed) {
        let address = sender.map_or_else(|| "unknown".to_owned(), |address| address.to_string());
        tracing::warn!(event = "webhook_refused", source = %source.name, code = Code::WrongOrigin.as_str(), address,
            "a webhook came from an address that is not in its source's list");
        return Err(Problem::new(Code::WrongOrigin, "the sender's address is not in this source's list"));
    }
    let now = state.engine.clock().monotonic();
    match door.rate_per_address.as_ref().map(|rate| rate.take(sender, now)) {
        Some(Err(wait)) => Err(Problem::new(Code::RateLimited, "this address sends too much").retry_after(wait)),
        _ => Ok(()),
    }
}

fn greet<S: Store>(state: &AppState<S>, door: &Door, to: &Address, request: Request) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    admit(state, door, to, &head)?;
    let source = &door.source;
    match source.handshake(&as_it_came(state, head, to, Bytes::new())) {
        Handshake::Challenge(text) => {
            tracing::info!(event = "handshake", source = %source.name, "a provider verified the address of a source");
            state.counters.add(source.name.as_str(), "handshake");
            let plain = [(header::CONTENT_TYPE, "text/plain"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
            Ok((plain, text).into_response())
        }
        Handshake::Refused(why) => {
            tracing::warn!(event = "handshake_refused", source = %source.name, diagnosis = %why, "a handshake was refused");
            Err(Problem::new(Code::HandshakeRefused, "the handshake was not accepted"))
        }
        Handshake::None => {
            let problem = Problem::new(Code::MethodNotAllowed, "this source takes POST");
            Ok(([(header::ALLOW, "POST")], problem).into_response())
        }
    }
}

async fn receive<S: Store>(
    state: &AppState<S>,
    door: &Door,
    to: &Address,
    request: Request,
) -> Result<Response, Problem> {
    let source = &door.source;
    let (head, body) = request.into_parts();
    admit(state, door, to, &head)?;
    if !source.auth.is_ready() {
        tracing::error!(event = "secret_not_loaded", source = %source.name, "a source has no secret to check against");
        let problem = Problem::new(Code::StorageUnavailable, "the source cannot check credentials now");
        return Err(problem.retry_after(Duration::from_secs(60)));
    }
    let held = body::read(body, source.body_bytes_max, &state.body_room).await?;
    let request = as_it_came(state, head, to, held.bytes.clone());
    let refused = |refusal| refuse(source, refusal);
    source.authenticate(&request).map_err(refused)?;
    // Counted only now: strangers do not use up what the sender may say.
    if let Some(Err(wait)) = door.rate.as_ref().map(|rate| rate.take(state.engine.clock().monotonic())) {
        return Err(Problem::new(Code::RateLimited, "this source's rate is used up").retry_after(wait));
    }
    let parts = source.read(&request).map_err(refused)?;

    let origin = Origin {
        tenant: &source.tenant,
        source: &source.name,
        channel: source.channel.as_ref().or(state.default_channel.as_ref()),
    };
    let raw = raw(state, source.kept_headers(&request.headers), request.body);
    let intake = intake(state, &origin, parts, Some(raw), request.received_at);
    store(state, source.name.as_str(), source.provider, intake).await
}

fn as_it_came<S: Store>(state: &AppState<S>, head: Parts, to: &Address, body: Bytes) -> inbound::Request {
    inbound::Request {
        path: head.uri.path().to_owned(),
        path_token: to.token.clone(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
        received_at: state.engine.clock().now(),
    }
}

/// Has an intake stored, counts what became of it, and answers.
pub(crate) async fn store<S: Store>(
    state: &AppState<S>,
    source: &str,
    provider: Provider,
    intake: Intake,
) -> Result<Response, Problem> {
    let entries: Vec<Entry> = intake.events.iter().map(|event| event.entry.clone()).collect();
    let appended = state.engine.submit(intake).await?;
    let told: Vec<Told> = entries.iter().zip(&appended).map(|(entry, appended)| Told::of(entry, appended)).collect();
    told.iter().for_each(|told| state.counters.add(source, told.counted_as()));
    Ok(answer(provider, &told))
}

/// A refusal as the sender sees it: which rule it broke, never why. The why is for the operator.
fn refuse(source: &inbound::Source, refusal: Refusal) -> Problem {
    let (code, told) = match &refusal {
        Refusal::Credential(_) => (Code::BadCredential, "the credential was not accepted"),
        Refusal::Origin(_) => (Code::WrongOrigin, "the body names another instance, account or number"),
        Refusal::Malformed(_) => (Code::Malformed, "the body is not what this source expects"),
        Refusal::TooLarge => (Code::BodyTooLarge, "the body unpacks to more than this source allows"),
        Refusal::Encoding(_) => (Code::UnsupportedEncoding, "only gzip, or no content encoding"),
    };
    tracing::warn!(event = "webhook_refused", source = %source.name, code = code.as_str(), diagnosis = %refusal,
        "a webhook was refused");
    match refusal {
        // What is wrong with a body is no secret to who sent it: he proved himself, and must correct it.
        Refusal::Malformed(why) => Problem::new(code, why),
        _ => Problem::new(code, told),
    }
}

/// What one part of a request is told to its sender as.
struct Told {
    status: EventStatus,
    event: retoma_core::ids::EventId,
    duplicate: Option<(u64, Option<String>, bool)>,
    repeats: Option<retoma_core::ids::EventId>,
}

impl Told {
    fn of(entry: &Entry, appended: &Appended) -> Self {
        match appended {
            Appended::New { event, .. } => {
                Self { status: status_of(entry), event: *event, duplicate: None, repeats: None }
            }
            Appended::Duplicate { event, status, result, duplicates, altered } => Self {
                status: *status,
                event: *event,
                duplicate: Some((*duplicates, result.clone(), *altered)),
                repeats: None,
            },
            Appended::RepeatedFact { event, first } => {
                Self { status: EventStatus::Ignored, event: *event, duplicate: None, repeats: Some(*first) }
            }
        }
    }

    fn counted_as(&self) -> &'static str {
        match (&self.duplicate, self.repeats, self.status) {
            (Some(_), ..) => "duplicate",
            (_, Some(_), _) => "repeated_fact",
            (.., EventStatus::Held) => "held",
            (.., EventStatus::Quarantined) => "quarantined",
            (.., EventStatus::Ignored) => "ignored",
            _ => "received",
        }
    }

    fn shown(&self) -> Value {
        let mut shown = json!({ "status": self.status.as_str(), "event_id": self.event.to_string() });
        if let Some((duplicates, result, altered)) = &self.duplicate {
            shown["duplicate"] = json!(true);
            shown["duplicates"] = json!(duplicates);
            if let Some(result) = result {
                shown["result"] = json!(result);
            }
            if *altered {
                shown["altered"] = json!(true);
            }
        }
        if let Some(first) = self.repeats {
            shown["repeats"] = json!(first.to_string());
        }
        shown
    }
}

fn status_of(entry: &Entry) -> EventStatus {
    match entry {
        Entry::Received => EventStatus::Received,
        Entry::Ignored(_) => EventStatus::Ignored,
        Entry::Held(_) => EventStatus::Held,
        Entry::Quarantined(_) => EventStatus::Quarantined,
    }
}

/// The answer to a request whose parts are stored (A2). 200 says "known, and concluded"; presets are always told 200.
fn answer(provider: Provider, told: &[Told]) -> Response {
    let concluded = told.iter().all(|told| told.duplicate.is_some() && told.status.is_completed());
    let status = if provider != Provider::Generic || concluded { StatusCode::OK } else { StatusCode::ACCEPTED };
    let body = match told {
        [only] => only.shown(),
        many => {
            // One word for all: the first that is not concluded, since that is what a sender may have to look after.
            let word = many.iter().find(|told| !told.status.is_completed()).or_else(|| many.first());
            let word = word.map_or("ignored", |told| told.status.as_str());
            json!({ "status": word, "events": many.iter().map(Told::shown).collect::<Vec<_>>() })
        }
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn counted_as(code: Code) -> &'static str {
    match code {
        Code::BadCredential => "refused_credential",
        Code::WrongOrigin => "refused_origin",
        Code::HandshakeRefused => "refused_handshake",
        Code::Malformed => "refused_malformed",
        Code::BodyTooLarge => "refused_too_large",
        Code::UnsupportedEncoding => "refused_encoding",
        Code::TooSlow => "refused_too_slow",
        Code::RateLimited => "refused_rate",
        Code::Overloaded => "refused_overloaded",
        Code::StorageUnavailable => "refused_storage",
        _ => "refused_other",
    }
}
