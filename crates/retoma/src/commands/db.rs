//! `retoma db`: the database as a whole.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::Db;
use crate::config;
use crate::fail::{DONE, usage};
use crate::output::{self, cell};
use crate::wiring;

use super::{Session, load, shown, with_session};

pub(crate) async fn run(config: &Path, json: bool, command: Db) -> anyhow::Result<u8> {
    match command {
        Db::Migrate => migrate(config, json).await,
        Db::Restore { file } => restore(config, json, &file).await,
        Db::Backup { path } => with_session(config, json, async |session| backup(session, &path).await).await,
        Db::Stats => with_session(config, json, async |session| stats(session).await).await,
        Db::Sql { statement } => with_session(config, json, async |session| sql(session, &statement).await).await,
    }
}

fn database(config: &Path) -> anyhow::Result<PathBuf> {
    Ok(config::whereabouts(config).map_err(|error| load::unreadable(config, &error))?.database)
}

/// Opening brings the schema up to date; the server does the same at its start.
async fn migrate(config: &Path, json: bool) -> anyhow::Result<u8> {
    let database = database(config)?;
    let store = wiring::open(&database)?;
    store.close().await;
    if json {
        output::json(&json!({ "database": database.display().to_string(), "migrated": true }));
    } else {
        output::line(&format!("{} has the schema of Retoma {}", database.display(), wiring::VERSION));
    }
    Ok(DONE)
}

async fn backup(session: &Session, path: &Path) -> anyhow::Result<u8> {
    let absolute = std::path::absolute(path)?;
    let answer = session.client.post("/v1/db/backup", &json!({ "path": absolute.display().to_string() })).await?;
    if session.json {
        output::json(&answer);
    } else {
        output::line(&format!("{}: {} bytes", cell(&answer, "path"), cell(&answer, "bytes")));
    }
    Ok(DONE)
}

/// Puts a copy in the database's place: checked first by opening it, the present one kept beside.
async fn restore(config: &Path, json: bool, file: &Path) -> anyhow::Result<u8> {
    let database = database(config)?;
    if !file.is_file() {
        return Err(usage(format!("{} is not there", file.display())));
    }
    // Held while the copy is looked at, so that no server is there and none can start.
    let present = wiring::open(&database)?;
    let arrived = with_end(&database, ".restoring");
    let checked = check_copy(file, &arrived).await;
    present.close().await;
    let kept = with_end(&database, ".before-restore");
    let swapped = checked.and_then(|()| swap(&database, &arrived, &kept));
    for end in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(with_end(&arrived, end));
    }
    swapped?;
    let answer = json!({ "database": database.display().to_string(), "kept": kept.display().to_string() });
    if json {
        output::json(&answer);
    } else {
        output::line(&format!("restored; the one before is kept as {}", kept.display()));
    }
    Ok(DONE)
}

/// Copies the file beside the database and opens it there: what does not open is no copy, and changes nothing.
async fn check_copy(file: &Path, arrived: &Path) -> anyhow::Result<()> {
    std::fs::copy(file, arrived).with_context(|| format!("{} cannot be copied", file.display()))?;
    let store = wiring::open(arrived).context("this file is no usable copy")?;
    store.close().await;
    Ok(())
}

fn swap(database: &Path, arrived: &Path, kept: &Path) -> anyhow::Result<()> {
    for end in ["", "-wal", "-shm"] {
        move_if_there(&with_end(database, end), &with_end(kept, end))?;
    }
    for end in ["", "-wal", "-shm"] {
        move_if_there(&with_end(arrived, end), &with_end(database, end))?;
    }
    sync_folder(database)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn move_if_there(from: &Path, to: &Path) -> anyhow::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be moved to {}", from.display(), to.display()))
        }
        _ => Ok(()),
    }
}

fn sync_folder(file: &Path) -> anyhow::Result<()> {
    Ok(std::fs::File::open(config::folder_of(file))?.sync_all()?)
}

async fn stats(session: &Session) -> anyhow::Result<u8> {
    let answer = session.client.get("/v1/stats").await?;
    if session.json {
        output::json(&answer)
    } else {
        shown::object(&answer, &session.client.zone)
    }
    Ok(DONE)
}

async fn sql(session: &Session, statement: &str) -> anyhow::Result<u8> {
    let answer = session.client.post("/v1/db/sql", &json!({ "sql": statement })).await?;
    if session.json {
        output::json(&answer);
        return Ok(DONE);
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let columns: Vec<String> = answer["columns"].as_array().into_iter().flatten().map(text).collect();
    let rows = answer["rows"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = rows.map(|row| row.as_array().into_iter().flatten().map(text).collect()).collect();
    let headings: Vec<&str> = columns.iter().map(String::as_str).collect();
    output::table(&headings, &rows, "no rows");
    Ok(DONE)
}
