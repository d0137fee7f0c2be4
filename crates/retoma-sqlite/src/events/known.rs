//! Which keys were claimed already, for whoever lists what a platform has and brings in only what is missing (A11).

use retoma_core::keys::Key16;

use crate::database::Database;
use crate::error::Result;

impl Database {
    /// See [`Store::known_keys`](retoma_store::Store::known_keys).
    pub fn known_keys(&self, keys: &[Key16]) -> retoma_store::Result<Vec<bool>> {
        Ok(self.known(keys)?)
    }

    fn known(&self, keys: &[Key16]) -> Result<Vec<bool>> {
        let mut find = self.connection.prepare_cached("SELECT 1 FROM dedupe WHERE key = ?1")?;
        keys.iter().map(|key| Ok(find.exists([&key.0[..]])?)).collect()
    }
}
