//! The store as a synchronous struct over one connection: a method per verb, each run inside a transaction that the
//! caller opens and commits, so that several verbs can share one commit.
//!
//! The writer thread and the readers wrap it ([`SqliteStore`](crate::SqliteStore)); the simulator calls it directly.
//! A verb that fails may have written a part of its rows: the caller rolls back.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use retoma_store::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use crate::error::{self, Failure, Result};
use crate::events::recognised::{self, RecentKeys};
use crate::lock::Lock;
use crate::options::Options;
use crate::{OpenError, migrate};

/// The oldest SQLite whose write-ahead log is safe with a checkpointer of its own (fixed in 3.51.3).
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// The store over one connection.
pub struct Database {
    pub(crate) connection: Connection,
    pub(crate) options: Options,
    pub(crate) path: PathBuf,
    /// What this transaction adds to the counters; written just before its commit.
    tally: RefCell<BTreeMap<(&'static str, Cow<'static, str>), i64>>,
    /// Keys that the dedupe table does not hold yet.
    pub(crate) recent: RecentKeys,
    /// Released with the writing connection.
    _lock: Option<Lock>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens for writing: takes the lock, creates and migrates, applies settings and reads them back.
    pub fn open(path: &Path, options: Options) -> std::result::Result<Self, OpenError> {
        let version = rusqlite::version_number();
        if version < SQLITE_VERSION_MIN {
            return Err(OpenError::OldLibrary { found: rusqlite::version().to_owned() });
        }
        let lock = Lock::take(path)?;
        let created = !path.exists();
        let mut connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        settings(&mut connection, &options, Role::Writer)?;
        migrate::run(&connection)?;
        recognised::catch_up(&connection)?;
        if created {
            sync_directory(path)?;
        }
        if let Some(pages) = options.max_page_count {
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(Self::over(connection, path, options, Some(lock)))
    }

    /// Opens for reading beside a writer: sees the last commit, refuses to write.
    pub fn open_reader(path: &Path, options: Options) -> std::result::Result<Self, OpenError> {
        let mut connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        settings(&mut connection, &options, Role::Reader)?;
        Ok(Self::over(connection, path, options, None))
    }

    fn over(connection: Connection, path: &Path, options: Options, lock: Option<Lock>) -> Self {
        connection.set_prepared_statement_cache_capacity(512);
        Self {
            connection,
            options,
            path: path.to_owned(),
            tally: RefCell::default(),
            recent: RecentKeys::default(),
            _lock: lock,
        }
    }

    /// Opens a writing transaction.
    pub fn begin(&self) -> retoma_store::Result<()> {
        self.apply_page_limit().and_then(|()| self.run("BEGIN IMMEDIATE")).map_err(Error::from)
    }

    /// Opens a reading transaction: one snapshot for all that follows.
    pub fn begin_read(&self) -> retoma_store::Result<()> {
        self.run("BEGIN DEFERRED").map_err(Error::from)
    }

    /// Commits, synced. Where that fails the transaction is gone; a failed sync leaves the file in doubt, so whoever sees
    /// [`Error::Poisoned`] must stop using the store.
    pub fn commit(&self) -> retoma_store::Result<()> {
        let committed = self.write_tally().and_then(|()| {
            if self.options.faults.take_failed_sync() {
                return Err(error::failed_sync());
            }
            self.run("COMMIT")
        });
        match committed {
            Ok(()) => {
                self.recent.borrow_mut().committed();
                Ok(())
            }
            Err(failure) => {
                self.rollback();
                Err(Error::from(failure))
            }
        }
    }

    /// Undoes the transaction, if one is open.
    pub fn rollback(&self) {
        self.tally.borrow_mut().clear();
        self.recent.borrow_mut().rolled_back();
        if !self.connection.is_autocommit() {
            // Fails only where SQLite has rolled back by itself.
            let _ = self.run("ROLLBACK");
        }
    }

    /// Runs verbs in one transaction of their own.
    pub fn transact<T>(&self, verbs: impl FnOnce(&Self) -> retoma_store::Result<T>) -> retoma_store::Result<T> {
        self.begin()?;
        match verbs(self) {
            Ok(answer) => self.commit().map(|()| answer),
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    /// Runs reading verbs on one snapshot.
    pub fn read<T>(&self, verbs: impl FnOnce(&Self) -> retoma_store::Result<T>) -> retoma_store::Result<T> {
        self.begin_read()?;
        let answer = verbs(self);
        self.rollback();
        answer
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn apply_page_limit(&self) -> Result<()> {
        if let Some(pages) = self.options.faults.take_page_limit() {
            self.connection.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(())
    }

    /// Adds to a counter, with the transaction.
    pub(crate) fn count(&self, name: &'static str, word: &'static str, by: i64) {
        *self.tally.borrow_mut().entry((name, Cow::Borrowed(word))).or_default() += by;
    }

    /// The same, for words that come from outside; whoever calls bounds them.
    pub(crate) fn count_own(&self, name: &'static str, word: String, by: i64) {
        *self.tally.borrow_mut().entry((name, Cow::Owned(word))).or_default() += by;
    }

    fn write_tally(&self) -> Result<()> {
        let mut tally = self.tally.borrow_mut();
        if tally.is_empty() {
            return Ok(());
        }
        let mut add = self.connection.prepare_cached(
            "INSERT INTO counter (name, word, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (name, word) DO UPDATE SET value = value + excluded.value",
        )?;
        for ((name, word), by) in std::mem::take(&mut *tally) {
            if by != 0 {
                add.execute(params![name, word, by])?;
            }
        }
        Ok(())
    }

    /// The store's own time.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        (self.options.clock)()
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Writer,
    Reader,
    Checkpointer,
}

/// Applies the settings that the promises rest on, and reads every one back: a setting that SQLite ignored would be
/// found out after a power cut.
pub(crate) fn settings(
    connection: &mut Connection,
    options: &Options,
    role: Role,
) -> std::result::Result<(), OpenError> {
    let wal = options.journal_bytes_max.to_string();
    let cache = match role {
        Role::Writer => options.writer_cache_kib,
        Role::Reader => options.reader_cache_kib,
        Role::Checkpointer => 256,
    };
    let cache = format!("-{cache}");
    #[cfg(test)]
    crate::plans::watch(connection);
    connection.busy_timeout(options.busy_timeout)?;
    // One plan per statement, whatever is bound to it: without this SQLite prepares some of ours anew on every run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let wanted: &[(&str, &str, &str)] = &[
        ("journal_mode", "WAL", "wal"),
        // Every commit is on disk when it returns; NORMAL would lose acknowledged events on power loss.
        ("synchronous", "FULL", "2"),
        // Checkpoints are the checkpointer's, never an unlucky commit's.
        ("wal_autocheckpoint", "0", "0"),
        ("journal_size_limit", &wal, &wal),
        ("foreign_keys", "OFF", "0"),
        ("temp_store", "MEMORY", "2"),
        ("cache_size", &cache, &cache),
        ("query_only", if role == Role::Reader { "ON" } else { "OFF" }, if role == Role::Reader { "1" } else { "0" }),
    ];
    for (name, value, expected) in wanted {
        // Some pragmas answer their new value, some nothing.
        connection.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(()),
            error => Err(error),
        })?;
        let found: String = connection.pragma_query_value(None, name, |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => String::from_utf8_lossy(other.as_bytes()?).into_owned(),
            })
        })?;
        if found != *expected {
            return Err(OpenError::Setting { name: (*name).to_owned(), wanted: (*expected).to_owned(), found });
        }
    }
    Ok(())
}

/// A new file survives power loss only when its directory entry does.
fn sync_directory(database: &Path) -> std::result::Result<(), OpenError> {
    let directory = match database.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| OpenError::Io { path: directory.to_owned(), source })
}

impl Failure {
    /// The contract's answer for a request that cannot be served.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Failure::Store(Error::Invalid(why.into()))
    }
}
