//! `GET /`: a plain live page of counts, and `/status.json` and `/metrics` behind it. No key is asked for, so nothing here
//! may tell of a person: counts, words of the configuration, types and times.

use std::sync::Mutex;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use retoma_store::{EventFilter, GateScope, Page, Store};
use serde_json::{Value, json};

use crate::api::admin::doors;
use crate::api::gate::trail as gate;
use crate::health;
use crate::problem::Problem;
use crate::state::AppState;

const PAGE: &str = include_str!("status_page.html");

/// Counting reads the store; whoever reloads the page a thousand times makes it count once a second.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Scopes of the gate in the metrics.
const GATE_SCOPES_MAX: usize = 200;
/// Events shown.
const LAST_EVENTS: usize = 12;

/// The last answer of `/status.json` and when it was made.
#[derive(Default)]
pub(crate) struct LastStatus(Mutex<Option<(Duration, Value)>>);

/// `GET /`.
pub(crate) async fn page<S: Store>(State(state): State<AppState<S>>, headers: HeaderMap) -> Response {
    let wanted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let page =
        PAGE.replacen("data-lang=\"\"", &format!("data-lang=\"{0}\" lang=\"{0}\"", language(wanted, &state.locale)), 1);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::VARY, "Accept-Language"),
    ];
    (headers, page).into_response()
}

/// The first language of the list that the page speaks; the installation's where none is.
fn language<'a>(accepted: &str, default: &'a str) -> &'a str {
    let words =
        accepted.split(',').map(|entry| entry.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    for word in words {
        if word == "pt" || word.starts_with("pt-") {
            return "pt-BR";
        }
        if word == "en" || word.starts_with("en-") {
            return "en";
        }
    }
    default
}

/// `GET /status.json`.
pub(crate) async fn status<S: Store>(State(state): State<AppState<S>>) -> Response {
    match current(&state).await {
        Ok(status) => ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(status)).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// What the page shows, at most a second old.
pub(crate) async fn current<S: Store>(state: &AppState<S>) -> Result<Value, Problem> {
    let asked = state.engine.clock().monotonic();
    {
        let last = state.last_status.0.lock().expect("no code panics while it holds the status");
        if let Some((_, status)) = last.as_ref().filter(|(at, _)| asked.saturating_sub(*at) < FRESH_FOR) {
            return Ok(status.clone());
        }
    }
    let status = collect(state, asked).await?;
    *state.last_status.0.lock().expect("no code panics while it holds the status") = Some((asked, status.clone()));
    Ok(status)
}

async fn collect<S: Store>(state: &AppState<S>, asked: Duration) -> Result<Value, Problem> {
    let store = state.engine.store();
    let now = state.engine.clock().now();
    let stats = store.stats(now).await?;
    let page = Page { cursor: None, limit: LAST_EVENTS };
    let events = store.list_events(state.tenant.clone(), EventFilter::default(), page).await?;
    let last = events.items.iter().map(|row| {
        json!({
            "at": row.received_at.to_string(),
            "source": row.source.as_str(),
            "type": row.kind.as_str(),
            "status": row.status.as_str(),
            "duplicates": row.duplicates,
        })
    });
    let stopped = store.channel_states(state.tenant.clone()).await?;
    let state_of = &state.engine;
    let channels = state.channels.iter().map(|name| {
        let stop = stopped.iter().find(|state| state.channel == *name && state.stopped.is_some());
        json!({
            "name": name.as_str(),
            "stopped": stop.and_then(|state| state.stopped.clone()),
            "since": stop.map(|state| state.since.to_string()),
            "no_receipt": state_of.arrivals_of(name).silent,
            "vanish": state_of.arrivals_of(name).vanish(),
        })
    });
    let vanish: Vec<&str> = state
        .channels
        .iter()
        .filter(|name| state.engine.arrivals_of(name).vanish())
        .map(|name| name.as_str())
        .collect();
    Ok(json!({
        "version": state.version,
        "uptime_s": asked.saturating_sub(state.started).as_secs(),
        "events": stats.events,
        "duplicates": stats.duplicates,
        "tasks": stats.tasks,
        "avoided": stats.avoided,
        "ambiguous": stats.ambiguous,
        "dead": stats.dead,
        "contacts": stats.contacts,
        "bytes": stats.bytes,
        "doors": doors(state),
        "last_events": last.collect::<Vec<_>>(),
        "channels": channels.collect::<Vec<_>>(),
        "pipeline": health::figures(&stats, &vanish, now, |at| state.real_age(now, at)),
        "now": now.to_string(),
    }))
}

/// `GET /metrics`: the same counts for Prometheus. No label holds anything but words of the configuration and codes.
pub(crate) async fn metrics<S: Store>(State(state): State<AppState<S>>) -> Response {
    let status = match current(&state).await {
        Ok(status) => status,
        Err(problem) => return problem.into_response(),
    };
    let mut text = String::new();
    let by_word = |text: &mut String, name: &str, label: &str, key: &str| {
        text.push_str(&format!("# TYPE {name} gauge\n"));
        for (word, count) in status[key].as_object().into_iter().flatten() {
            text.push_str(&format!("{name}{{{label}=\"{word}\"}} {count}\n"));
        }
    };
    by_word(&mut text, "retoma_events", "status", "events");
    by_word(&mut text, "retoma_tasks", "status", "tasks");
    by_word(&mut text, "retoma_avoided", "reason", "avoided");
    for (name, key) in [
        ("retoma_duplicates_total", "duplicates"),
        ("retoma_ambiguous_total", "ambiguous"),
        ("retoma_dead", "dead"),
        ("retoma_uptime_seconds", "uptime_s"),
        ("retoma_storage_bytes", "bytes"),
    ] {
        text.push_str(&format!("# TYPE {name} gauge\n{name} {}\n", status[key]));
    }
    text.push_str("# TYPE retoma_intake_total counter\n");
    for ((source, word), count) in state.counters.all() {
        text.push_str(&format!("retoma_intake_total{{source=\"{source}\",outcome=\"{word}\"}} {count}\n"));
    }
    match gate::all_scopes(&state).await {
        Ok(scopes) => text.push_str(&gate_metrics(scopes)),
        Err(problem) => return problem.into_response(),
    }
    ([(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"))], text).into_response()
}

/// What happened at the gate (B7). Scopes come from callers: those that look like keys, and those beyond so many, are told
/// together, since a label must not grow without end and must not name anybody.
fn gate_metrics(scopes: Vec<GateScope>) -> String {
    let (mut told, others): (Vec<GateScope>, Vec<GateScope>) =
        scopes.into_iter().partition(|scope| !gate::looks_like_a_key(&scope.scope));
    let others = told.split_off(told.len().min(GATE_SCOPES_MAX)).into_iter().chain(others);
    let mut other = GateScope { scope: "(other)".to_owned(), ..GateScope::default() };
    for (outcome, count) in others.flat_map(|scope| scope.counts) {
        *other.counts.entry(outcome).or_default() += count;
    }
    if !other.counts.is_empty() {
        told.push(other);
    }
    let mut text = "# TYPE retoma_gate_total counter\n".to_owned();
    for scope in &told {
        for (outcome, count) in &scope.counts {
            text.push_str(&format!("retoma_gate_total{{scope=\"{}\",outcome=\"{outcome}\"}} {count}\n", scope.scope));
        }
    }
    text.push_str("# TYPE retoma_gate_duplicates_total counter\n");
    for scope in &told {
        let count = scope.duplicates();
        text.push_str(&format!("retoma_gate_duplicates_total{{scope=\"{}\"}} {count}\n", scope.scope));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_speaks_the_first_language_it_knows() {
        for (accepted, expected) in [
            ("pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"),
            ("en-US,en;q=0.9", "en"),
            ("de-DE,en;q=0.5", "en"),
            ("de", "pt-BR"),
            ("", "pt-BR"),
            ("PT", "pt-BR"),
        ] {
            assert_eq!(language(accepted, "pt-BR"), expected, "{accepted}");
        }
        assert_eq!(language("de", "en"), "en");
        assert_eq!(PAGE.matches("data-lang=\"\"").count(), 1);
    }

    #[test]
    fn the_page_fetches_nothing_from_elsewhere() {
        assert!(!PAGE.contains("http://") && !PAGE.contains("https://") && !PAGE.contains("src="));
    }

    #[test]
    fn scopes_that_look_like_keys_are_told_together() {
        let scope =
            |name: &str, done: u64| GateScope { scope: name.to_owned(), counts: [("done".to_owned(), done)].into() };
        let text = gate_metrics(vec![scope("cobranca", 1), scope("aviso-5541999990001", 2), scope("41999990002", 3)]);
        assert!(!text.contains("99999"), "{text}");
        for line in ["scope=\"cobranca\"} 1", "scope=\"(other)\"} 5"] {
            assert!(text.contains(&format!("retoma_gate_duplicates_total{{{line}\n")), "{text}");
        }
        let many = (0..300).map(|n| scope(&format!("s{n:03}"), 1)).collect();
        assert!(gate_metrics(many).contains("retoma_gate_duplicates_total{scope=\"(other)\"} 100\n"));
    }
}
