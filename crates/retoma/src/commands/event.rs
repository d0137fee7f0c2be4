//! `retoma event`: what came in and what became of it.

use anyhow::anyhow;
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

/// Moves each, whatever becomes of its neighbours.
async fn move_all(session: &Session, moves: Move, verb: &str) -> anyhow::Result<()> {
    let body = json!({ "reason": moves.reason });
    let is_one = moves.ids.len() == 1;
    let ids = match moves.status {
        Some(status) => ids_of(session, status, moves.source).await?,
        None => moves.ids,
    };
    let (mut moved, mut refused) = (Vec::new(), Vec::new());
    for id in &ids {
        match session.client.post(&format!("/v1/events/{}/{verb}", encoded(id)), &body).await {
            Ok(event) => moved.push(event),
            Err(why) => refused.push(format!("{id}: {why:#}")),
        }
    }
    match (session.json, moved.as_slice()) {
        (true, [one]) if is_one => output::json(one),
        (true, []) if is_one => {}
        (true, _) => output::json(&json!({ "items": moved })),
        (false, _) => shown::events(&json!({ "items": moved }), &session.client.zone),
    }
    match refused.as_slice() {
        [] => Ok(()),
        [only] if ids.len() == 1 => Err(anyhow!("{only}")),
        some => Err(anyhow!("{} of {} stayed where they are:\n  {}", some.len(), ids.len(), some.join("\n  "))),
    }
}

/// Every event of a status, as of now: moving them changes the pages, so all are known before the first moves.
async fn ids_of(session: &Session, status: String, source: Option<String>) -> anyhow::Result<Vec<String>> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let query = query(&[
            ("status", Some(status.clone())),
            ("source", source.clone()),
            ("limit", Some("500".to_owned())),
            ("cursor", cursor),
        ]);
        let page = session.client.get(&format!("/v1/events{query}")).await?;
        ids.extend(shown::items(&page).iter().filter_map(|event| event["id"].as_str().map(str::to_owned)));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(ids);
        }
    }
}
