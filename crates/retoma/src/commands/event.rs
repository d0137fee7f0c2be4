//! `retoma event`: what came in and what became of it.

use serde_json::json;

use crate::cli::{Event, Move};
use crate::client::{contact_id, encoded, query};
use crate::fail::DONE;
use crate::output;

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Event) -> anyhow::Result<u8> {
    match command {
        Event::List { status, source, kind, contact, page } => {
            let contact = match contact {
                Some(who) => Some(contact_id(&session.client, &who).await?),
                None => None,
            };
            let query = query(&[
                ("status", status),
                ("source", source),
                ("type", kind),
                ("contact", contact),
                ("limit", Some(page.limit.to_string())),
                ("cursor", page.cursor),
            ]);
            let answer = session.client.get(&format!("/v1/events{query}")).await?;
            if session.json { output::json(&answer) } else { shown::events(&answer, &session.client.zone) }
        }
        Event::Show { id, raw: true } => {
            output::bytes(&session.client.get_bytes(&format!("/v1/events/{}/raw", encoded(&id))).await?);
        }
        Event::Show { id, raw: false } => {
            let answer = session.client.get(&format!("/v1/events/{}", encoded(&id))).await?;
            if session.json { output::json(&answer) } else { shown::object(&answer, &session.client.zone) }
        }
        Event::Replay(moves) => move_all(session, moves, "replay").await?,
        Event::Release(moves) => move_all(session, moves, "release").await?,
        Event::Discard(moves) => move_all(session, moves, "discard").await?,
    }
    Ok(DONE)
}

async fn move_all(session: &Session, moves: Move, verb: &str) -> anyhow::Result<()> {
    let body = json!({ "reason": moves.reason });
    let mut moved = Vec::new();
    for id in &moves.ids {
        moved.push(session.client.post(&format!("/v1/events/{}/{verb}", encoded(id)), &body).await?);
    }
    match (session.json, moved.as_slice()) {
        (true, [one]) => output::json(one),
        (true, _) => output::json(&json!({ "items": moved })),
        (false, _) => shown::events(&json!({ "items": moved }), &session.client.zone),
    }
    Ok(())
}
