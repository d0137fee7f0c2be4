//! Ends of attempts, as every provider's table makes them.

use http::HeaderMap;
use http::header::LOCATION;
use jiff::Timestamp;
use retoma_core::outcome::{AttemptEnd, Outcome};

use super::mask;
use super::retry_after::retry_after;

/// An answer, with what of ours may be echoed in it.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) secrets: &'a [&'a str],
    /// Our clock at the answer.
    pub(crate) now: Timestamp,
}

impl Answer<'_> {
    /// The end of this answer.
    pub(crate) fn end(&self, outcome: Outcome, error: impl Into<String>) -> AttemptEnd {
        let accepted = outcome == Outcome::Accepted;
        AttemptEnd {
            outcome,
            http_status: Some(self.status),
            error: Some(error.into()).filter(|_| !accepted),
            response: mask::masked(self.body, self.secrets),
            provider_message_id: None,
            retry_after: if accepted { None } else { retry_after(self.headers, self.now) },
        }
    }

    /// Where a redirect leads, by host only: path and query may be credentials (FC-66, FC-80).
    pub(crate) fn redirect(&self) -> String {
        let location = self.headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let authority = location.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next();
        let host = authority.and_then(|authority| authority.rsplit('@').next()).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if host.is_empty() || !host.chars().all(plain) {
            return "redirect to the same host, set the final URL".to_owned();
        }
        format!("redirect to {host}, set the final URL")
    }
}

/// No byte left: surely not sent.
pub(crate) fn not_written(what: &str) -> AttemptEnd {
    without_answer(Outcome::Transient, format!("not sent: {what}"))
}

/// Some byte may have left: nobody knows.
pub(crate) fn no_answer(what: &str) -> AttemptEnd {
    without_answer(Outcome::Ambiguous, format!("written, and no full answer came: {what}"))
}

fn without_answer(outcome: Outcome, error: String) -> AttemptEnd {
    AttemptEnd {
        outcome,
        http_status: None,
        error: Some(error),
        response: None,
        provider_message_id: None,
        retry_after: None,
    }
}
