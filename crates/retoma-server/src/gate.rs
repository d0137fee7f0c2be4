//! How the scopes of the gate are set. A scope that nobody configured exists from its first use, with the defaults.

use std::collections::BTreeMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// How a scope treats its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatePolicy {
    /// How long an execution has the turn that was given to it.
    pub lease: Duration,
    /// How long a key is remembered.
    pub keep: Duration,
    /// Whether the next caller may proceed when a lease ran out; otherwise a person decides.
    pub proceed_when_expired: bool,
}

impl GatePolicy {
    /// The shortest lease. A shorter one would end while the answer travels.
    pub const LEASE_MIN: Duration = Duration::from_secs(1);
    /// The longest lease: an execution that died must not block its key for ever.
    pub const LEASE_MAX: Duration = DAY;
    /// Providers repeat for up to three days; whoever wants less says so in so many words (A5).
    pub const KEEP_MIN: Duration = Duration::from_secs(3 * 86_400);
}

impl Default for GatePolicy {
    fn default() -> Self {
        Self { lease: Duration::from_secs(120), keep: 30 * DAY, proceed_when_expired: false }
    }
}

/// The scopes that are configured.
pub type GateScopes = BTreeMap<String, GatePolicy>;

/// Whether a scope may be called that. It stands in addresses, in metrics and in the configuration.
pub fn is_scope_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.bytes().all(plain)
}
