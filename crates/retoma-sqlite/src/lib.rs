//! The Store on SQLite: one file, no service beside it.
//!
//! **Execution model.** [`Database`] is a synchronous struct over one connection, a method per verb. [`SqliteStore`] wraps it
//! in OS threads reached by bounded channels: one *writer* that takes everything queued, commits once with
//! `synchronous=FULL` and then answers all; two *readers* that see the last commit (one for the loops, one for people);
//! a *checkpointer* that copies the log back off the commit path. An acknowledged write is on disk.
//!
//! **When it fails.** A full disk rolls the batch back, answers [`Error::Full`](retoma_store::Error::Full) to its callers and
//! goes on when space returns. A failed sync poisons the store: it answers nothing any more, the process must end.
//!
//! **Not here:** rules of the domain (a decision's meaning is `Decision::apply`; which tasks a close concerns is asked of the
//! core), async beyond waiting for a thread, and any clock but the one for leases.
//!
//! **Start reading** at [`Database::append_events`] and [`Database::commit_decisions`]; the tables and their reasons are in
//! `migrations/0001_tables.sql`.

use std::path::PathBuf;

mod arrivals;
mod backup;
mod checkpoint;
mod codec;
mod contacts;
mod database;
mod dead;
mod decisions;
mod erase;
mod error;
mod events;
mod flows;
mod gate;
mod inbox;
mod leases;
mod list;
mod lock;
mod merge;
mod migrate;
mod ops;
mod options;
#[cfg(test)]
mod plans;
mod readers;
mod receipts;
mod store;
mod sweep;
mod tasks;
mod writer;

pub use database::Database;
pub use options::{Clock, FaultPlan, Options};
pub use store::SqliteStore;

/// Why a store does not open. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else writes to this file.
    #[error("{} is open for writing already, by another process or another store of this one", path.display())]
    AlreadyOpen {
        /// The database.
        path: PathBuf,
    },
    /// A file beside the database, or its directory, cannot be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database was written by a newer program.
    #[error(
        "the database has schema {found}, this program knows {known}: it was written by a newer version; install that one"
    )]
    NewerSchema {
        /// Of the database.
        found: u32,
        /// Of this program.
        known: u32,
    },
    /// A migration was edited after it was applied here.
    #[error("migration {name} is not the one that was applied to this database")]
    ChangedMigration {
        /// Which.
        name: String,
    },
    /// SQLite is too old for a checkpointer of its own.
    #[error("SQLite {found} is too old; 3.51.3 or newer is needed")]
    OldLibrary {
        /// The version found.
        found: String,
    },
    /// SQLite did not take a setting that the promises rest on.
    #[error("SQLite setting {name} is {found}, not {wanted}")]
    Setting {
        /// Which.
        name: String,
        /// What it must be.
        wanted: String,
        /// What it is.
        found: String,
    },
    /// SQLite said no.
    #[error("SQLite refuses the file")]
    Sqlite(#[from] rusqlite::Error),
}
