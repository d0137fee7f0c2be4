//! `/healthz/live`, `/healthz/ready`, `/healthz/pipeline` (F4): for orchestrators, load balancers and watchdogs. Counts and
//! ages only, so that no key is needed.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use retoma_core::local_time::zone_data_version;
use retoma_store::{Stats, Store};
use serde_json::{Value, json};

use crate::problem::{Code, Problem};
use crate::state::AppState;
use crate::status_page;

/// A loop that has been silent for longer than this is not well; healthy ones beat every second.
const BEAT_WITHIN: Duration = Duration::from_secs(30);
/// A task or event that waits for longer than this is late (F2).
const LATE_AFTER: Duration = Duration::from_secs(900);

/// From here on somebody should make room: a full disk refuses every event (FC-76).
const DISK_ALMOST_FULL: u8 = 90;

/// `GET /healthz/live`: the process answers.
pub(crate) async fn live() -> Response {
    Json(json!({ "live": true })).into_response()
}

/// `GET /healthz/ready`: the storage answers, so that events can be taken.
pub(crate) async fn ready<S: Store>(State(state): State<AppState<S>>) -> Response {
    match state.engine.store().channel_states(state.tenant.clone()).await {
        Ok(_) => Json(json!({ "ready": true })).into_response(),
        Err(_) => Problem::new(Code::StorageUnavailable, "the storage does not answer")
            .retry_after(Duration::from_secs(5))
            .into_response(),
    }
}

/// `GET /healthz/pipeline`: the watchdog's figures, at most a second old. 503 while something stands still.
pub(crate) async fn pipeline<S: Store>(State(state): State<AppState<S>>) -> Response {
    match status_page::current(&state).await {
        Ok(mut status) => {
            let figures = status["pipeline"].take();
            let status = if figures["ok"] == true { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            (status, Json(figures)).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Ages and counts of what waits, with a verdict; `vanish` names channels whose accepted messages are not heard of (FC-78). `age` is in real time, whatever the clock of a demo shows.
pub(crate) fn figures(stats: &Stats, vanish: &[&str], now: Timestamp, age: impl Fn(Timestamp) -> Duration) -> Value {
    let (inbox, due) = (stats.oldest_pending_at.map(&age), stats.oldest_due_at.map(&age));
    let beats = stats.heartbeats.iter().map(|beat| {
        let age = age(beat.seen_at);
        let ok = age <= BEAT_WITHIN;
        json!({ "flow": beat.flow, "seen_at": beat.seen_at.to_string(), "age_s": age.as_secs(), "ok": ok })
    });
    let beats: Vec<Value> = beats.collect();
    let mut wrong = Vec::new();
    if beats.iter().any(|beat| beat["ok"] == false) {
        wrong.push("silent_loop");
    }
    if inbox.is_some_and(|age| age > LATE_AFTER) {
        wrong.push("inbox_late");
    }
    if due.is_some_and(|age| age > LATE_AFTER) {
        wrong.push("tasks_late");
    }
    if stats.disk_used_percent.is_some_and(|used| used >= DISK_ALMOST_FULL) {
        wrong.push("disk_almost_full");
    }
    if stats.without_content > 0 {
        wrong.push("content_missing");
    }
    if !vanish.is_empty() {
        wrong.push("messages_vanish");
    }
    let tasks = |word: &str| stats.tasks.get(word).copied().unwrap_or(0);
    json!({
        "ok": wrong.is_empty(),
        "wrong": wrong,
        "now": now.to_string(),
        "zone_data": zone_data_version(),
        "inbox": { "waiting": stats.events.get("received").copied().unwrap_or(0), "oldest_age_s": inbox.map(|age| age.as_secs()) },
        "tasks": {
            "oldest_due_age_s": due.map(|age| age.as_secs()),
            "scheduled": tasks("scheduled"),
            "sending": tasks("sending"),
            "failed": tasks("failed"),
            "held": tasks("held"),
            "unsure": tasks("unsure"),
            "dead": tasks("dead"),
        },
        "held_events": stats.events.get("held").copied().unwrap_or(0),
        "quarantined_events": stats.events.get("quarantined").copied().unwrap_or(0),
        "disk_used_percent": stats.disk_used_percent,
        "messages_without_content": stats.without_content,
        "channels_that_swallow_messages": vanish,
        "heartbeats": beats,
    })
}

#[cfg(test)]
mod tests {
    use retoma_store::Heartbeat;

    use super::*;

    #[test]
    fn silence_and_lateness_are_told_apart_and_an_idle_system_is_well() {
        let now: Timestamp = "2026-12-02T13:00:00Z".parse().unwrap();
        let ago = |seconds: i64| Timestamp::from_second(now.as_second() - seconds).unwrap();
        let beat = |seconds| vec![Heartbeat { flow: "owner".into(), seen_at: ago(seconds) }];
        let well = Stats { heartbeats: beat(1), ..Stats::default() };
        let table = [
            (well.clone(), json!([])),
            (Stats { heartbeats: beat(31), ..Stats::default() }, json!(["silent_loop"])),
            (Stats { oldest_pending_at: Some(ago(901)), ..well.clone() }, json!(["inbox_late"])),
            (Stats { oldest_due_at: Some(ago(901)), ..well.clone() }, json!(["tasks_late"])),
            (Stats { disk_used_percent: Some(89), ..well.clone() }, json!([])),
            (Stats { disk_used_percent: Some(90), ..well.clone() }, json!(["disk_almost_full"])),
            (Stats { without_content: 1, ..well.clone() }, json!(["content_missing"])),
            (Stats { oldest_due_at: Some(ago(600)), oldest_pending_at: Some(ago(5)), ..well }, json!([])),
        ];
        for (stats, wrong) in table {
            let figures = figures(&stats, &[], now, |at| now.duration_since(at).try_into().unwrap());
            assert_eq!(figures["wrong"], wrong);
            assert_eq!(figures["ok"], wrong.as_array().unwrap().is_empty());
        }
    }
}
