//! `retoma dead`: what was given up.

use serde_json::{Value, json};

use crate::cli::{Dead, MoveDead};
use crate::client::{encoded, query};
use crate::fail::{DONE, usage};
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Dead) -> anyhow::Result<u8> {
    match command {
        Dead::List { kind, source, flow, cause, page } => {
            let query = query(&[
                ("kind", kind),
                ("source", source),
                ("flow", flow),
                ("reason", cause),
                ("limit", Some(page.limit.to_string())),
                ("cursor", page.cursor),
            ]);
            let answer = session.client.get(&format!("/v1/dead{query}")).await?;
            if session.json { output::json(&answer) } else { list(session, &answer) }
        }
        Dead::Show { id } => {
            let answer = session.client.get(&format!("/v1/dead/{}", encoded(&id))).await?;
            if session.json { output::json(&answer) } else { shown::object(&answer, &session.client.zone) }
        }
        Dead::Retry(moves) => move_letters(session, moves, "retry").await?,
        Dead::Discard(moves) => {
            if !moves.dry_run && moves.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
                return Err(usage("discarding needs --reason \"..\": it is the last word on them"));
            }
            move_letters(session, moves, "discard").await?;
        }
    }
    Ok(DONE)
}

fn list(session: &Session, answer: &Value) {
    let rows = shown::items(answer).iter().map(|letter| {
        vec![
            local(letter, "died_at", &session.client.zone),
            cell(letter, "kind"),
            cell(letter, "id"),
            cell(letter, "attempts"),
            cell(letter, "reason"),
            cell(letter, "last_error"),
        ]
    });
    let headings = ["died", "kind", "id", "tries", "reason", "last error"];
    output::table(&headings, &rows.collect::<Vec<_>>(), "no dead letters");
    shown::more(answer);
}

async fn move_letters(session: &Session, moves: MoveDead, verb: &str) -> anyhow::Result<()> {
    let body = if moves.ids.is_empty() {
        let filter = if moves.all {
            json!({ "all": true })
        } else {
            json!({ "kind": moves.kind, "source": moves.source, "flow": moves.flow, "reason": moves.cause })
        };
        json!({ "filter": filter, "reason": moves.reason, "dry_run": moves.dry_run })
    } else {
        json!({ "ids": moves.ids, "reason": moves.reason, "dry_run": moves.dry_run })
    };
    let answer = session.client.post(&format!("/v1/dead/{verb}"), &body).await?;
    if session.json {
        output::json(&answer);
    } else if moves.dry_run {
        output::line(&format!("{} would be taken; nothing was moved", cell(&answer, "count")));
        for id in answer["ids"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            output::line(id);
        }
    } else {
        let word = if verb == "retry" { "retried" } else { "discarded" };
        output::line(&format!("{} {word}", cell(&answer, word)));
    }
    Ok(())
}
