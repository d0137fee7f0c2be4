//! A consistent copy while running.

use std::path::Path;

use retoma_store::Error;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Failure, Result};

/// Copies the last commit into a new file, compacted, on a connection of its own: one read transaction, so commits go on.
/// The copy appears under its name only when it is whole and synced.
pub(crate) fn run(database: &Path, target: &Path) -> retoma_store::Result<()> {
    if target.exists() {
        return Err(Error::Invalid("the target of a backup must not exist".to_owned()));
    }
    let mut partial = target.as_os_str().to_owned();
    partial.push(".partial");
    let partial = std::path::PathBuf::from(partial);
    let copied = copy(database, &partial).map_err(Error::from).and_then(|()| publish(&partial, target));
    if copied.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

fn copy(database: &Path, partial: &Path) -> Result<()> {
    let _ = std::fs::remove_file(partial);
    let name = partial.to_str().ok_or_else(|| Failure::invalid("the target's name is not UTF-8"))?;
    let source = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    source.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

fn publish(partial: &Path, target: &Path) -> retoma_store::Result<()> {
    let io = |error: std::io::Error| Error::Other(format!("backup: {error}"));
    std::fs::File::open(partial).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(partial, target).map_err(io)?;
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
}
