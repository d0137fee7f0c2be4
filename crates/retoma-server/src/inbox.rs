//! `POST /in/{source}`: the dumb receiver (A1). Authenticate the raw bytes, read them into parts, have them stored, and only
//! then answer; nothing slow runs here. What the answer may be is the table of INTERFACE.md: one column for generic
//! sources, one for provider presets, which punish anything but 200.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use retoma_providers::inbound::{self, Provider, Refusal};
use retoma_store::{Appended, Entry, EventStatus, Intake, Store};
use serde_json::{Value, json};

use crate::body;
use crate::intake::{Origin, intake, raw};
use crate::problem::{Code, Problem};
use crate::state::{AppState, Door};

/// The route's handler.
pub(crate) async fn post<S: Store>(
    State(state): State<AppState<S>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let Some(door) = state.doors.get(&name) else {
        state.counters.add("?", "refused_unknown_source");
        return Problem::new(Code::UnknownSource, "no source of this name is configured").into_response();
    };
    match receive(&state, door, request).await {
        Ok(answer) => answer,
        Err(problem) => {
            state.counters.add(&name, counted_as(problem.code));
            problem.into_response()
        }
    }
}

async fn receive<S: Store>(state: &AppState<S>, door: &Door, request: Request) -> Result<Response, Problem> {
    let source = &door.source;
    let clock = state.engine.clock();
    if let Some(Err(wait)) = door.rate.as_ref().map(|rate| rate.take(clock.monotonic())) {
        return Err(Problem::new(Code::RateLimited, "this source's rate is used up").retry_after(wait));
    }
    if !source.auth.is_ready() {
        tracing::error!(event = "secret_not_loaded", source = %source.name, "a source has no secret to check against");
        let problem = Problem::new(Code::StorageUnavailable, "the source cannot check credentials now");
        return Err(problem.retry_after(Duration::from_secs(60)));
    }
    let (head, body) = request.into_parts();
    let held = body::read(body, source.body_bytes_max, &state.body_room).await?;
    let request = inbound::Request {
        headers: head.headers,
        query: head.uri.query().unwrap_or_default().to_owned(),
        body: held.bytes.clone(),
        received_at: clock.now(),
    };
    let refused = |refusal| refuse(source, refusal);
    source.authenticate(&request).map_err(refused)?;
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
        Refusal::Origin(_) => (Code::WrongOrigin, "the body names another instance or account"),
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
