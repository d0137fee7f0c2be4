//! Checkpoints: the log is copied back into the database off the commit path.
//!
//! The *checkpointer* has a thread and a connection of its own. Woken by the writer, which learns the log's length from
//! SQLite after each commit, it copies what is there and waits for nobody. It is woken only when there is much to copy: a
//! page that changed in ten commits is then copied once, and its sync meets one commit in many. Under steady load it is
//! never quite done, so the log would never start over: when it is long, and little of it is left to copy, the *writer*
//! copies that little between two commits; its next commit then begins the log anew. (The checkpointer cannot do that part: it would wait for a write
//! lock that the writer takes again at once.)

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use rusqlite::{Connection, OpenFlags};

use crate::OpenError;
use crate::database::{Role, settings};
use crate::options::Options;

/// When the log is so many times longer than it should be, the writer waits for readers, too. They end within their time.
const FAR_TOO_LONG: u32 = 4;

/// What both threads know of the log, in pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Its length, as SQLite said after the last commit.
    pub(crate) pages: Arc<AtomicU32>,
    /// How much of it the checkpointer has copied.
    copied: Arc<AtomicU32>,
}

/// The write-ahead log beside a database.
pub(crate) fn log_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

pub(crate) fn open(path: &Path, options: &Options) -> Result<Connection, OpenError> {
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settings(&mut connection, options, Role::Checkpointer)?;
    Ok(connection)
}

/// The checkpointer's loop; runs until the writer is gone.
pub(crate) fn run(connection: &Connection, wakes: &Receiver<()>, log: &Log) {
    while wakes.recv().is_ok() {
        if let Some(copied) = checkpoint(connection, "PASSIVE") {
            log.copied.store(copied, Ordering::Relaxed);
        }
    }
}

/// The writer's part.
#[derive(Debug)]
pub(crate) struct Keeper {
    log: Log,
    wake: SyncSender<()>,
    /// Length at which to look again.
    next_look: Cell<u32>,
}

impl Keeper {
    pub(crate) fn new(log: Log, wake: SyncSender<()>) -> Self {
        Self { log, wake, next_look: Cell::new(0) }
    }

    /// Between two commits.
    pub(crate) fn after_commit(&self, connection: &Connection, options: &Options) {
        let pages = self.log.pages.load(Ordering::Relaxed);
        let copied = self.log.copied.load(Ordering::Relaxed);
        // The log has started over: what was copied of the old one says nothing of this one.
        if pages < copied {
            self.log.copied.store(0, Ordering::Relaxed);
            self.next_look.set(0);
            return;
        }
        let left = pages - copied;
        if left >= options.checkpoint_pages {
            // Full: it is at work, and is woken again by a later commit.
            let _ = self.wake.try_send(());
        }
        let far_too_long = pages >= options.restart_pages.saturating_mul(FAR_TOO_LONG);
        let too_much_left = left >= options.checkpoint_pages && !far_too_long;
        if pages < options.restart_pages.max(self.next_look.get()) || too_much_left {
            return;
        }
        if let Some(copied) = checkpoint(connection, if far_too_long { "RESTART" } else { "PASSIVE" }) {
            self.log.copied.store(copied, Ordering::Relaxed);
        }
        // A reader may keep the log from starting over; then try again a little later, not after every commit.
        self.next_look.set(pages.saturating_add(options.checkpoint_pages / 4 + 1));
    }
}

/// Answers how many pages of the log are in the database now.
fn checkpoint(connection: &Connection, mode: &str) -> Option<u32> {
    let done: rusqlite::Result<(i64, i64, i64)> = connection
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))
        .and_then(|mut statement| statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))));
    match done {
        Ok((busy, log, copied)) => {
            tracing::debug!(mode, busy, log, copied, "checkpoint");
            u32::try_from(copied).ok()
        }
        // The log stays; the next wake tries again. A disk that fails shows up at the writer's next sync.
        Err(error) => {
            tracing::warn!(mode, code = ?error.sqlite_error_code(), "checkpoint failed; the log grows on");
            None
        }
    }
}
