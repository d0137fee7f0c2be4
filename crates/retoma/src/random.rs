//! Random bytes from the system, for keys and secrets.

use std::fs::File;
use std::io::Read;

/// 32 fresh random bytes.
pub(crate) fn bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.expect("the system has a random source; a key without one would be worth nothing");
    bytes
}

/// 32 fresh random bytes as 64 hex digits.
pub(crate) fn text() -> String {
    bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}
