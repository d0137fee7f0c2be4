//! What a flow says of the world around its table: the values that messages use, the provider's templates, and the limits of
//! the channels that carry them.

use std::time::Duration;

/// A value that messages may use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Variable {
    /// What stands for it where nobody gave it.
    pub fallback: Option<String>,
    /// A message that needs it waits for a person where nobody gave it.
    pub is_required: bool,
    /// Who gives it, where its place alone does not say so.
    pub source: Option<String>,
    /// Hosts that its links may lead to; empty allows all.
    pub allow_hosts: Vec<String>,
    /// The value that says when it perishes (D10).
    pub perishable: Option<String>,
    /// How long it lives, where that is known beforehand.
    pub life: Option<Duration>,
    /// The `http` channel that renews it.
    pub refresh: Option<String>,
}

impl Variable {
    /// Whether a link leads to a host that is allowed.
    pub fn allows(&self, link: &str) -> bool {
        let lower = link.trim().to_lowercase();
        let Some(rest) = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://")) else { return false };
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        self.allow_hosts.iter().any(|allowed| is_host(authority, allowed))
    }
}

/// Whether the host of an authority is the allowed one; `*.exemplo.com.br` allows what is below it.
pub(super) fn is_host(authority: &str, allowed: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host).to_lowercase();
    match allowed.to_lowercase().strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
        None => host == allowed.to_lowercase(),
    }
}

/// A provider's template (D6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its name at the provider.
    pub name: String,
    /// `utility`, `marketing` or `authentication`.
    pub category: Option<&'static str>,
    /// Its language at the provider (`pt_BR`); the flow's own where the file says nothing.
    pub language: Option<String>,
    /// The values it takes, in order.
    pub params: Vec<String>,
    /// Its line in the file.
    pub line: u32,
}

impl Template {
    /// What a template may be, to the provider.
    pub const CATEGORIES: [&'static str; 3] = ["utility", "marketing", "authentication"];
}

/// What a channel allows, as far as a flow must know.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ChannelRules {
    /// Free text only within so long after the contact's last message; `None`: always.
    pub window: Option<Window>,
    /// A message outside the window is left out on purpose.
    pub skips_when_closed: bool,
    /// How long a request may take.
    pub send_timeout: Option<Duration>,
    /// How long the provider shows "typing" before it sends.
    pub typing_delay: Duration,
}

/// A channel's window for free text (D6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long it stays open after a message of the contact's.
    pub lasts: Duration,
    /// How long before its end nothing is risked any more.
    pub margin: Duration,
}
