//! From a message to a request, and from its answer to an outcome.
//!
//! Run by the deliverer around each send. The rule behind every table: what was surely not sent is tried again, what may have
//! been sent is not (E4).

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use retoma_core::evidence::Sighting;
use retoma_core::identity::Identity;
use retoma_core::ids::{ChannelName, TaskId, Tenant};
use retoma_core::outcome::AttemptEnd;
use retoma_core::pace::Rate;
use retoma_core::task::OnAmbiguous;

use crate::inbound::Secret;
use crate::{evolution, generic};

pub(crate) mod end;
mod mask;
mod retry_after;

use end::Answer;

/// A configured channel, ready to use.
#[derive(Debug)]
pub struct Channel {
    /// Its name (`[channels.NAME]`).
    pub name: ChannelName,
    /// Whose.
    pub tenant: Tenant,
    /// What it speaks.
    pub kind: ChannelKind,
    /// Overrides the class's policy, if set.
    pub on_ambiguous: Option<OnAmbiguous>,
    /// Longest time from first byte to answer.
    pub deadline: Duration,
    /// Most requests under way at once.
    pub concurrency: usize,
    /// Most messages in a time, if limited.
    pub rate: Option<Rate>,
    /// The least time between two messages to one recipient, if limited.
    pub pair_every: Option<Duration>,
}

/// What a channel speaks.
#[derive(Debug)]
pub enum ChannelKind {
    /// Evolution API v2.
    Evolution {
        /// `http://host:port`, without a slash at the end.
        base_url: String,
        /// The instance.
        instance: String,
        /// The `apikey` header.
        api_key: Secret,
    },
    /// A signed POST to any URL (Standard Webhooks).
    Http {
        /// Where.
        url: String,
        /// The signing key.
        secret: Option<Secret>,
    },
}

/// A message to be sent.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The task; the stable id of the request.
    pub task: &'a TaskId,
    /// The attempt's number.
    pub attempt: u32,
    /// Addresses of the contact.
    pub identities: &'a [Identity],
    /// Whether to write to the other spelling of the number.
    pub other_spelling: bool,
    /// The rendered text.
    pub text: &'a str,
    /// The message's name in the flow.
    pub message: &'a str,
    /// Template values, for `http` channels.
    pub vars: &'a std::collections::BTreeMap<String, String>,
    /// Seconds since 1970 of this attempt, for signatures.
    pub unix_seconds: i64,
}

/// A request, ready to be written.
#[derive(Clone, Debug)]
pub struct WireRequest {
    /// Absolute `http` or `https` URL. Always POST.
    pub url: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// What became of a request, with the phase of a failure known.
#[derive(Clone, Debug)]
pub enum WireEnd {
    /// No byte of the request was written.
    NotWritten {
        /// `refused`, `dns`, `tls`, `timeout`, `address refused`, ...
        what: String,
    },
    /// Some byte may have been written, and no full answer came.
    NoAnswer {
        /// `timeout`, `reset`, ...
        what: String,
    },
    /// An answer.
    Answer {
        /// Status.
        status: u16,
        /// Headers.
        headers: HeaderMap,
        /// At most 64 KiB of the body.
        body: Bytes,
    },
}

/// Why no request could be made of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWrite {
    /// The contact has no address that this channel can write to.
    #[error("no phone or WhatsApp id to write to")]
    NoAddress,
}

/// A question to the provider: which messages did we send to this person?
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// Whose addresses.
    pub identities: &'a [Identity],
    /// Sent at or after.
    pub from: Timestamp,
    /// Sent at or before.
    pub to: Timestamp,
    /// Which spelling of the address, from 0.
    pub spelling: usize,
    /// Which page of the answer, from 1.
    pub page: u32,
}

/// What a provider showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Messages of ours to that person, whatever else the answer held.
    pub sightings: Vec<Sighting>,
    /// How many messages the answer held at all.
    pub records: usize,
    /// Whether a further page may hold more.
    pub more: bool,
}

/// What both directions of a channel's provider offer the deliverer. Implemented in each provider's `outbound.rs`.
pub trait Outbound {
    /// Makes the request.
    fn request(&self, message: &Outgoing<'_>) -> Result<WireRequest, CannotWrite>;
    /// Whether the number that it would write to has another spelling: only the provider knows which one is the account.
    fn has_other_spelling(&self, identities: &[Identity]) -> bool;
    /// Reads what became of it. `now` is our clock at the answer, for waits told as dates by senders that tell no `Date`.
    fn judge(&self, end: &WireEnd, now: Timestamp) -> AttemptEnd;
    /// The request that asks for messages sent; `None` where the provider cannot be asked, or not for that spelling.
    fn lookup(&self, lookup: &Lookup<'_>) -> Option<WireRequest>;
    /// Reads its answer, filtered again by us: providers ignore filters. `Err` says why nothing was learned.
    fn seen(&self, lookup: &Lookup<'_>, end: &WireEnd, now: Timestamp) -> Result<Seen, String>;
}

impl Outbound for Channel {
    fn request(&self, message: &Outgoing<'_>) -> Result<WireRequest, CannotWrite> {
        match &self.kind {
            ChannelKind::Evolution { base_url, instance, api_key } => {
                evolution::outbound::request(base_url, instance, api_key, message)
            }
            ChannelKind::Http { url, secret } => Ok(generic::outbound::request(url, secret.as_ref(), message)),
        }
    }

    fn has_other_spelling(&self, identities: &[Identity]) -> bool {
        match &self.kind {
            ChannelKind::Evolution { .. } => evolution::outbound::other_spelling(identities).is_some(),
            ChannelKind::Http { .. } => false,
        }
    }

    fn judge(&self, end: &WireEnd, now: Timestamp) -> AttemptEnd {
        let (status, headers, body) = match end {
            WireEnd::NotWritten { what } => return end::not_written(what),
            WireEnd::NoAnswer { what } => return end::no_answer(what),
            WireEnd::Answer { status, headers, body } => (status, headers, body),
        };
        // Whatever of ours a server may write into its answer: the key, and the parts of the URL that may be one.
        let secrets = self.kind.secret_texts();
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let answer = Answer { status: *status, headers, body, secrets: &secrets, now };
        match &self.kind {
            ChannelKind::Evolution { .. } => evolution::outbound::judge(&answer),
            ChannelKind::Http { .. } => generic::outbound::judge(&answer),
        }
    }

    fn lookup(&self, lookup: &Lookup<'_>) -> Option<WireRequest> {
        match &self.kind {
            ChannelKind::Evolution { base_url, instance, api_key } => {
                evolution::search::request(base_url, instance, api_key, lookup)
            }
            ChannelKind::Http { .. } => None,
        }
    }

    fn seen(&self, lookup: &Lookup<'_>, end: &WireEnd, now: Timestamp) -> Result<Seen, String> {
        match (&self.kind, end) {
            (ChannelKind::Evolution { .. }, WireEnd::Answer { status: 200..=299, body, .. }) => {
                evolution::search::read(lookup, body, now)
            }
            (_, WireEnd::Answer { status, .. }) => Err(format!("the provider answered the search with {status}")),
            (_, WireEnd::NotWritten { what } | WireEnd::NoAnswer { what }) => Err(format!("no answer: {what}")),
        }
    }
}

impl ChannelKind {
    fn secret_texts(&self) -> Vec<String> {
        let text = |secret: &Secret| String::from_utf8_lossy(&secret.0).into_owned();
        match self {
            ChannelKind::Evolution { api_key, .. } => vec![text(api_key)],
            ChannelKind::Http { url, secret } => {
                let uri: http::Uri = url.parse().unwrap_or_default();
                let user =
                    uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')).map(|(user, _)| user);
                let path = uri.path_and_query().map(|path| path.as_str());
                let parts = [user, path, Some(uri.path()), uri.query()].into_iter().flatten().map(str::to_owned);
                secret.iter().map(text).chain(parts).collect()
            }
        }
    }
}
