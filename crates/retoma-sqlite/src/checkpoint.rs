//! The checkpointer: copies the log back into the database from a thread and a connection of its own, so that no commit
//! pays for it. Woken by the writer, which learns the log's length from SQLite after each commit.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use rusqlite::{Connection, OpenFlags};

use crate::OpenError;
use crate::database::{Role, settings};
use crate::options::Options;

/// The write-ahead log beside a database.
pub(crate) fn log_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

pub(crate) fn open(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settings(&connection, options, Role::Checkpointer)?;
    Ok(connection)
}

/// Runs until the writer is gone. Each message is the log's length in pages.
pub(crate) fn run(connection: &Connection, wakes: &Receiver<u32>, restart_pages: u32) {
    while let Ok(pages) = wakes.recv() {
        // Passive waits for nobody and stops nobody.
        checkpoint(connection, "PASSIVE");
        if pages >= restart_pages {
            // Far too long: now only the last few frames are left to copy, so the writer waits for a moment, and the
            // log starts over. Readers end within their time.
            checkpoint(connection, "RESTART");
        }
    }
}

fn checkpoint(connection: &Connection, mode: &str) {
    let done: rusqlite::Result<(i64, i64, i64)> = connection
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))
        .and_then(|mut statement| statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))));
    match done {
        Ok((busy, log, copied)) => tracing::debug!(mode, busy, log, copied, "checkpoint"),
        // The log stays; the next wake tries again. A disk that fails shows up at the writer's next sync.
        Err(error) => tracing::warn!(mode, code = ?error.sqlite_error_code(), "checkpoint failed; the log grows on"),
    }
}
