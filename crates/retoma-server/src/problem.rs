//! Errors as callers see them: RFC 9457 `application/problem+json`, one stable code each, and a page per code that says
//! what happened, what it means, and what to do.
//!
//! A problem never carries a phone, a text, a key, or a storage's own words: those are for the operator's log.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

macro_rules! codes {
    ($($variant:ident = $word:literal, $status:ident, $title:literal, $help:literal;)*) => {
        /// What went wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable word, last part of `type`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $word,)* }
            }

            /// The status it is answered with.
            pub fn status(self) -> StatusCode {
                match self { $(Code::$variant => StatusCode::$status,)* }
            }

            /// The same sentence for every occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }

            /// What it means and what to do.
            pub fn help(self) -> &'static str {
                match self { $(Code::$variant => $help,)* }
            }
        }
    };
}

codes! {
    BadCredential = "bad_credential", UNAUTHORIZED, "The source's credential is missing or wrong",
        "Nothing was stored. The sender must prove itself as the source is configured: a token in a header or in the query, \
         or a signature over the exact bytes. The operator's log says which part did not fit; the sender is not told.";
    WrongOrigin = "wrong_origin", FORBIDDEN, "The request is not from where this source expects it",
        "Nothing was stored. The instance, account or number named in the body is not the one configured for this source, or \
         the sender's address is not in the source's list. Point the webhook at its own source, or add the address.";
    HandshakeRefused = "handshake_refused", FORBIDDEN, "The handshake's token was not accepted",
        "The provider asked whether this address is yours, with a verify token that is not the source's verify_token. Give \
         both the same value and ask again; the operator's log says which part did not fit.";
    UnknownSource = "unknown_source", NOT_FOUND, "There is no such source",
        "The last part of the address names a source of the configuration ([sources.NAME]). Check its spelling.";
    Malformed = "malformed", BAD_REQUEST, "The body cannot be understood",
        "Nothing was stored. The body must be what the source expects: complete JSON in UTF-8, nested at most 127 deep, with \
         the required fields. Correct it and send it again.";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, "The body is larger than the source allows",
        "Nothing was stored. The limit is 4 MiB unless the source sets max_body; it holds for the unpacked size, too.";
    UnsupportedEncoding = "unsupported_encoding", UNSUPPORTED_MEDIA_TYPE, "The content encoding is not supported",
        "Nothing was stored. Send the body as it is, or with Content-Encoding: gzip.";
    TooSlow = "too_slow", REQUEST_TIMEOUT, "The body did not arrive in time",
        "Nothing was stored. A body must arrive within seconds of its headers. Send it again.";
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "Too many requests for this source",
        "Nothing was stored. Wait for the time that Retry-After names and send again, or raise the source's rate.";
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Too much is waiting to be stored",
        "Nothing was stored. Queues are bounded; wait for the time that Retry-After names and send the same again.";
    StorageUnavailable = "storage_unavailable", SERVICE_UNAVAILABLE, "The storage cannot keep the promise now",
        "Nothing is acknowledged that is not on disk. The disk may be full or failing: the operator's log says more. Send the \
         same again after the time that Retry-After names; repetitions are recognised.";
    Unauthorized = "unauthorized", UNAUTHORIZED, "An API key is needed",
        "Send Authorization: Bearer KEY. Keys are made with: retoma key create NAME --scope read|write|admin.";
    Forbidden = "forbidden", FORBIDDEN, "The key's scope does not reach this far",
        "Reading needs scope read, changing needs write; keys, raw bodies and the database need admin.";
    NotFound = "not_found", NOT_FOUND, "There is nothing here",
        "The id is unknown, or the address is misspelt. History is removed after its retention.";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The address does not take this method",
        "Webhooks are sent by POST. The Allow header names what is taken here.";
    InvalidRequest = "invalid_request", BAD_REQUEST, "The request is not as it must be",
        "A field is missing, unknown, or of another kind than expected. The detail names it; nothing was changed.";
    Conflict = "conflict", CONFLICT, "The present state does not allow this",
        "Somebody or something was faster, or the thing is in a state that this cannot be done in. Look at it again.";
    GateInProgress = "gate_in_progress", CONFLICT, "Another execution has the turn",
        "Somebody claimed this key and has not concluded yet. Do nothing; ask again after the time that Retry-After names: by \
         then it is done, or its lease ran out.";
    GateUncertain = "gate_uncertain", CONFLICT, "Nobody knows whether it was done",
        "An execution claimed this key and fell silent before it told how it went, and the scope says that a person decides. \
         Do nothing. Look whether the effect happened, then: retoma gate release SCOPE KEY, with --done if it did.";
    GateFailed = "gate_failed", CONFLICT, "It was tried and failed for good",
        "The execution that tried said that trying again is of no use; its error is in reason. Do nothing. A person may allow \
         another try: retoma gate release SCOPE KEY.";
    GateMismatch = "gate_mismatch", UNPROCESSABLE_ENTITY, "The key stands for something else",
        "It was first claimed with another fingerprint: two different effects share one key, and the second would be skipped \
         in silence. Build the key from what makes the effect one of its kind, such as order, kind and version.";
    GateHeld = "gate_held", UNPROCESSABLE_ENTITY, "There is no usable key",
        "The key is missing, empty, or what a tool writes where it found no value. Nothing was claimed, and none is invented: \
         do nothing, and send the provider's own id. What came is listed by: retoma gate list SCOPE --status held.";
    GateStaleToken = "gate_stale_token", CONFLICT, "The token has no turn any more",
        "The lease ran out and another claim took over, a person decided, or the key was concluded otherwise. Nothing was \
         changed. The trail of the key tells what happened.";
    FlowRefused = "flow_refused", UNPROCESSABLE_ENTITY, "The flow files cannot take effect",
        "Nothing changed: the flows that ran run on. The detail names file, line and fix of each mistake; `retoma check \
         --against-running` shows the same before a reload.";
    NotAvailable = "not_available", NOT_IMPLEMENTED, "This version cannot do that yet",
        "It is part of the plan and comes with a later version.";
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong on our side",
        "The operator's log holds the details under the id in instance.";
}

impl Code {
    /// The code of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == word)
    }
}

/// An error on its way to a caller. The access layer adds the correlation id when it leaves.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What.
    pub code: Code,
    /// This occurrence, in words without personal data.
    pub detail: String,
    /// When to come back.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// A problem with a sentence of its own.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after: None }
    }

    /// A request that says something wrong.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// An unknown id.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("no such {what}"))
    }

    /// With a time to come back.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// What every problem says of itself.
    pub(crate) fn members(&self, correlation: &str) -> [(&'static str, Value); 5] {
        [
            ("type", json!(format!("/problems/{}", self.code.as_str()))),
            ("title", json!(self.code.title())),
            ("status", json!(self.code.status().as_u16())),
            ("detail", json!(self.detail)),
            ("instance", json!(correlation)),
        ]
    }

    /// The answer, with the correlation id.
    pub fn answer(&self, correlation: &str) -> Response {
        let body: Map<_, _> =
            self.members(correlation).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let body = Value::Object(body);
        let mut answer = (
            self.code.status(),
            [(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))],
            body.to_string(),
        )
            .into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if self.code == Code::Unauthorized {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

impl IntoResponse for Problem {
    /// An answer that carries the problem along; the access layer writes the body, since it knows the correlation id.
    fn into_response(self) -> Response {
        let mut answer = self.code.status().into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

impl From<retoma_store::Error> for Problem {
    fn from(error: retoma_store::Error) -> Self {
        if let retoma_store::Error::Invalid(why) = error {
            return Self::invalid(why);
        }
        tracing::error!(event = "storage_error", error = %error, "a request could not be served by the storage");
        let code = if error.is_retryable() || error.is_fatal() { Code::StorageUnavailable } else { Code::Internal };
        let problem = Self::new(code, "the storage did not answer this request");
        if code == Code::Internal { problem } else { problem.retry_after(Duration::from_secs(5)) }
    }
}

impl From<retoma_engine::Refused> for Problem {
    fn from(refused: retoma_engine::Refused) -> Self {
        use retoma_engine::Refused;
        match refused {
            Refused::Overloaded { retry_after } => {
                Self::new(Code::Overloaded, "the intake queue is full").retry_after(retry_after)
            }
            Refused::Storage(_) => {
                Self::new(Code::StorageUnavailable, "the event was not stored").retry_after(Duration::from_secs(5))
            }
            Refused::Closing => {
                Self::new(Code::StorageUnavailable, "the server is ending").retry_after(Duration::from_secs(5))
            }
        }
    }
}

/// `GET /problems/{code}`: the page of a code, for people.
pub(crate) async fn page(axum::extract::Path(word): axum::extract::Path<String>) -> Response {
    let Some(code) = Code::parse(&word) else {
        return Problem::not_found("problem").into_response();
    };
    let (word, status, title, help) = (code.as_str(), code.status().as_u16(), code.title(), code.help());
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}}</style>\
         <h1>{title}</h1><p><code>{word}</code>, status {status}</p><p>{help}</p></html>"
    );
    axum::response::Html(page).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_word_an_error_status_and_a_page_text() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!(code.help().len() > 40 && !code.help().contains("  "), "{code:?}");
        }
    }

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        for (millis, seconds) in [(1, "1"), (1000, "1"), (1001, "2"), (0, "1")] {
            let problem = Problem::new(Code::Overloaded, "full").retry_after(Duration::from_millis(millis));
            assert_eq!(problem.answer("x").headers()[header::RETRY_AFTER], seconds);
        }
    }
}
