//! Dedupe keys: sixteen bytes of SHA-256 over length-prefixed parts.
//!
//! The prefixes make the encoding injective (`["a", "bc"]` and `["ab", "c"]` differ), and the scope keeps delivery,
//! business and task keys apart in one table.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Sixteen bytes under a unique index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key16(pub [u8; 16]);

impl fmt::Debug for Key16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes `parts` under `scope`.
pub fn digest16(scope: &str, parts: &[&[u8]]) -> Key16 {
    let mut hash = Sha256::new();
    for part in std::iter::once(scope.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let full = hash.finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&full[..16]);
    Key16(key)
}

/// The digest of a body, to tell "the same key, another body".
pub fn body_digest(body: &[u8]) -> Key16 {
    digest16("body", &[body])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_length_prefixed_so_that_no_two_lists_collide() {
        let key = |parts: &[&str]| digest16("delivery", &parts.iter().map(|p| p.as_bytes()).collect::<Vec<_>>());
        assert_ne!(key(&["a", "bc"]), key(&["ab", "c"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        assert_eq!(key(&["a", "bc"]), key(&["a", "bc"]));
    }

    #[test]
    fn scopes_are_apart() {
        assert_ne!(digest16("delivery", &[b"x"]), digest16("business", &[b"x"]));
    }
}
