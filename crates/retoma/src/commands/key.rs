//! `retoma key`: keys of the API.

use serde_json::{Value, json};

use crate::cli::Key;
use crate::client::encoded;
use crate::fail::DONE;
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Key) -> anyhow::Result<u8> {
    match command {
        Key::Create { name, scope } => {
            let answer = session.client.post("/v1/keys", &json!({ "name": name, "scope": scope })).await?;
            if session.json {
                output::json(&answer);
            } else {
                output::line(&cell(&answer, "key"));
                output::line(&format!("key {} ({name}, scope {scope}); it is not shown again", cell(&answer, "id")));
            }
        }
        Key::List => {
            let answer = session.client.get("/v1/keys").await?;
            if session.json { output::json(&answer) } else { list(session, &answer) }
        }
        Key::Revoke { id } => {
            let answer = session.client.delete(&format!("/v1/keys/{}", encoded(&id))).await?;
            if session.json { output::json(&answer) } else { output::line(&format!("key {id} is revoked")) }
        }
    }
    Ok(DONE)
}

fn list(session: &Session, answer: &Value) {
    let rows = shown::items(answer).iter().map(|key| {
        vec![cell(key, "id"), cell(key, "name"), cell(key, "scope"), local(key, "created_at", &session.client.zone)]
    });
    output::table(&["id", "name", "scope", "made"], &rows.collect::<Vec<_>>(), "no keys");
}
