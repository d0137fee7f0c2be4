//! One writing process per file. An OS advisory lock, so that a killed process leaves none behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// Held as long as the store is open for writing.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The lock file beside a database.
fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl Lock {
    pub(crate) fn take(database: &Path) -> Result<Self, OpenError> {
        let path = path_of(database);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| OpenError::Io { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::AlreadyOpen { path: database.to_owned() }),
            Err(TryLockError::Error(source)) => Err(OpenError::Io { path, source }),
        }
    }
}
