//! `retoma gate`: what flows that run elsewhere asked for.

use serde_json::{Value, json};

use crate::cli::Gate;
use crate::client::{encoded, query};
use crate::fail::DONE;
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Gate) -> anyhow::Result<u8> {
    match command {
        Gate::List { scope: None, status: None, .. } => {
            let answer = session.client.get("/v1/gate").await?;
            if session.json { output::json(&answer) } else { scopes(&answer) }
        }
        Gate::List { scope, status, page } => {
            let is_held = status.as_deref() == Some("held");
            let query = query(&[("status", status), ("limit", Some(page.limit.to_string())), ("cursor", page.cursor)]);
            let scope = scope.map(|scope| format!("/{}", encoded(&scope))).unwrap_or_default();
            let answer = session.client.get(&format!("/v1/gate{scope}{query}")).await?;
            match (session.json, is_held) {
                (true, _) => output::json(&answer),
                (false, true) => held(session, &answer),
                (false, false) => keys(session, &answer),
            }
        }
        Gate::Show { scope, key } => {
            let answer = session.client.get(&one(&scope, &key, "")).await?;
            if session.json { output::json(&answer) } else { trail(session, &answer) }
        }
        Gate::Release { scope, key, done, reason } => {
            let body = json!({ "as": if done { "done" } else { "not_done" }, "reason": reason });
            let answer = session.client.post(&one(&scope, &key, "/release"), &body).await?;
            if session.json { output::json(&answer) } else { trail(session, &answer) }
        }
    }
    Ok(DONE)
}

fn one(scope: &str, key: &str, rest: &str) -> String {
    format!("/v1/gate/{}/{}{rest}", encoded(scope), encoded(key))
}

fn scopes(answer: &Value) {
    let rows = shown::items(answer).iter().map(|scope| {
        let count = |word: &str| scope["counts"][word].as_u64().unwrap_or(0).to_string();
        vec![
            cell(scope, "scope"),
            count("proceed"),
            count("completed"),
            count("failures"),
            cell(scope, "duplicates"),
            count("mismatch"),
            count("held"),
            cell(scope, "on_expired_lease"),
        ]
    });
    let headings = ["scope", "proceeded", "done", "failed", "stopped", "mismatched", "no key", "lease over"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "nobody asked yet, and no scope is configured");
}

fn keys(session: &Session, answer: &Value) {
    let zone = &session.client.zone;
    let rows = shown::items(answer).iter().map(|key| {
        vec![
            local(key, "first_seen_at", zone),
            cell(key, "scope"),
            cell(key, "key"),
            cell(key, "status"),
            cell(key, "attempt"),
            cell(key, "duplicates"),
            cell(key, "next_claim"),
            cell(key, "reason"),
        ]
    });
    let headings = ["first seen", "scope", "key", "status", "tries", "stopped", "next claim", "reason"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no keys");
    shown::more(answer);
}

fn held(session: &Session, answer: &Value) {
    let rows = shown::items(answer).iter().map(|held| {
        vec![
            local(held, "at", &session.client.zone),
            cell(held, "scope"),
            cell(held, "key_is"),
            cell(held, "correlation_id"),
            cell(held, "caller"),
        ]
    });
    output::table(&["at", "scope", "key", "execution", "caller"], &rows.collect::<Vec<_>>(), "every claim had a key");
    shown::more(answer);
}

fn trail(session: &Session, trail: &Value) {
    let zone = &session.client.zone;
    let mut fields = trail.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("attempts");
        fields.remove("repeats");
    }
    shown::object(&fields, zone);
    let rows = trail["attempts"].as_array().into_iter().flatten().map(|attempt| {
        vec![
            cell(attempt, "n"),
            local(attempt, "claimed_at", zone),
            local(attempt, "ended_at", zone),
            cell(attempt, "outcome"),
            cell(attempt, "correlation_id"),
            cell(attempt, "caller"),
            cell(attempt, "error"),
        ]
    });
    output::line("");
    let headings = ["n", "claimed", "ended", "outcome", "execution", "caller", "error"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "nobody claimed it");
    let repeats = trail["repeats"].as_array().into_iter().flatten().map(|repeat| {
        vec![
            cell(repeat, "n"),
            local(repeat, "at", zone),
            cell(repeat, "told"),
            cell(repeat, "correlation_id"),
            cell(repeat, "caller"),
        ]
    });
    output::line("");
    let headings = ["n", "stopped", "told", "execution", "caller"];
    output::table(&headings, &repeats.collect::<Vec<_>>(), "no repetition was stopped");
}
