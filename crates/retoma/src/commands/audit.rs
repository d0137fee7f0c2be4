//! `retoma audit`: who did what.

use crate::cli::Audit;
use crate::client::query;
use crate::fail::DONE;
use crate::output::{self, cell, local};

use super::{Session, shown};

pub(crate) async fn run(session: &Session, command: Audit) -> anyhow::Result<u8> {
    let Audit::List(page) = command;
    let query = query(&[("limit", Some(page.limit.to_string())), ("cursor", page.cursor)]);
    let answer = session.client.get(&format!("/v1/audit{query}")).await?;
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    let rows = shown::items(&answer).iter().map(|row| {
        vec![
            local(row, "at", &session.client.zone),
            cell(row, "actor"),
            cell(row, "action"),
            cell(row, "target"),
            cell(row, "detail"),
        ]
    });
    output::table(&["when", "who", "what", "on", "detail"], &rows.collect::<Vec<_>>(), "nobody did anything yet");
    shown::more(&answer);
    Ok(DONE)
}
