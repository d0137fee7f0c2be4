//! Which keys were claimed already, for whoever lists what a platform has and brings in only what is missing (A11). Asked of
//! the writer: it alone sees the keys that the table does not hold yet.

use retoma_core::keys::Key16;

use crate::database::Database;
use crate::error::Result;

impl Database {
    /// See [`Store::known_keys`](retoma_store::Store::known_keys).
    pub fn known_keys(&self, keys: &[Key16]) -> retoma_store::Result<Vec<bool>> {
        Ok(self.known(keys)?)
    }

    fn known(&self, keys: &[Key16]) -> Result<Vec<bool>> {
        keys.iter().map(|key| self.is_claimed(&key.0)).collect()
    }
}
