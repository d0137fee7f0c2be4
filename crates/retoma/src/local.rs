//! How the command line finds a running server: a file beside the database with the server's address and a key made for
//! this run. Only the user who runs the server can read it (mode 0600), and it is gone when the server ended in order.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What the file holds.
#[derive(Serialize, Deserialize)]
pub(crate) struct LocalServer {
    /// `http://127.0.0.1:8080`.
    pub(crate) url: String,
    /// A key with admin scope.
    pub(crate) key: String,
    /// The server's process.
    pub(crate) pid: u32,
}

/// The file of a database.
pub(crate) fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".local.json");
    name.into()
}

impl LocalServer {
    /// What stands beside the database, if anything readable does.
    pub(crate) fn read(database: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path_of(database)).ok()?).ok()
    }

    /// Writes the file. It appears whole or not at all, and never with another mode.
    pub(crate) fn write(&self, database: &Path) -> std::io::Result<Published> {
        let path = path_of(database);
        let partial = path.with_extension("json.new");
        let _ = std::fs::remove_file(&partial);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(&serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(&partial, &path)?;
        Ok(Published { path })
    }
}

/// The file, removed when the server ends.
pub(crate) struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_for_its_owner_only_and_goes_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("retoma.db");
        let server = LocalServer { url: "http://127.0.0.1:1".into(), key: "k".into(), pid: 1 };
        let published = server.write(&database).unwrap();
        let mode = std::fs::metadata(path_of(&database)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(LocalServer::read(&database).unwrap().key, "k");
        drop(published);
        assert!(LocalServer::read(&database).is_none());
    }
}
