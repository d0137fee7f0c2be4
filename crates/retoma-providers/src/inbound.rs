//! From a request to parts: authenticate the raw bytes ([`Source::authenticate`]), then read them ([`Source::read`]).
//!
//! Run by intake, once per request, before anything is stored. Never panics, whatever the bytes; never waits.

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use retoma_core::event::{EventData, EventKind};
use retoma_core::identity::Identity;
use retoma_core::ids::{ChannelName, FlowName, SourceName, Tenant};
use retoma_core::keys::Key16;

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod content;
#[cfg(test)]
mod fuzz;
mod headers;
pub(crate) mod hmac;
pub(crate) mod json;
pub(crate) mod money;
pub(crate) mod part;
pub(crate) mod read;
mod respell;
#[cfg(test)]
pub(crate) mod shown;
mod standard_webhooks;

pub use headers::kept_headers;
pub use hmac::unknown_places;

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anything with JSON or a form: mapped by configuration (A9).
    Generic,
    /// Evolution API v2 (WhatsApp).
    Evolution,
    /// Hotmart webhook 2.0.
    Hotmart,
    /// WhatsApp Cloud API (Meta Graph).
    WhatsappCloud,
}

/// A configured source, ready to use: secrets loaded, paths compiled.
#[derive(Debug)]
pub struct Source {
    /// Its name (`[sources.NAME]`).
    pub name: SourceName,
    /// Whose.
    pub tenant: Tenant,
    /// What it speaks.
    pub provider: Provider,
    /// The seller's account on the platform; the source's name unless configured.
    pub account: String,
    /// The flow of its events.
    pub flow: Option<FlowName>,
    /// Where answers go.
    pub channel: Option<ChannelName>,
    /// How callers prove themselves.
    pub auth: Auth,
    /// Evolution: the instance that bodies must name.
    pub instance: Option<String>,
    /// Cloud API: the numbers that bodies must name, and the handshake.
    pub cloud: Option<CloudDoor>,
    /// Generic: where things are in the body.
    pub mapping: Option<Mapping>,
    /// What a body must say of where it comes from: path and text (A1). Of each item, where it is a list.
    pub origin: Vec<(Path, String)>,
    /// Largest body, in bytes.
    pub body_bytes_max: usize,
}

/// What a door of the Cloud API knows beside its app secret.
#[derive(Debug)]
pub struct CloudDoor {
    /// The business numbers that it stands for, by Meta's ids. One app has one address for all of its numbers.
    pub phone_number_ids: Vec<String>,
    /// Accepted verify tokens of the GET handshake.
    pub verify_tokens: Vec<Secret>,
}

/// How callers prove themselves (A3). Several secrets rotate: any of them is accepted.
#[derive(Debug)]
pub enum Auth {
    /// No proof; marked unsigned everywhere.
    None,
    /// A static token in a header.
    Header {
        /// The header's name, in any case.
        name: String,
        /// Accepted tokens.
        secrets: Vec<Secret>,
        /// Hotmart: a body field that is accepted where the header is missing (JSON pointer).
        or_body: Option<String>,
    },
    /// A token in the query string.
    Query {
        /// The parameter.
        name: String,
        /// Accepted tokens.
        secrets: Vec<Secret>,
    },
    /// A token in a field of the body.
    Body {
        /// Where.
        path: Path,
        /// Accepted tokens.
        secrets: Vec<Secret>,
    },
    /// A token as the last part of the address: `/in/{source}/{token}`.
    SecretPath {
        /// Accepted tokens.
        secrets: Vec<Secret>,
    },
    /// HTTP Basic.
    Basic {
        /// The user.
        user: String,
        /// Accepted passwords.
        secrets: Vec<Secret>,
    },
    /// HMAC over the raw bytes.
    Hmac(Hmac),
    /// Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`; also under their `svix-` names).
    StandardWebhooks {
        /// Accepted secrets, `whsec_` with base64 behind it.
        secrets: Vec<Secret>,
        /// How old, or how far ahead, a signature may be.
        tolerance: std::time::Duration,
    },
}

/// A secret. Never printed.
#[derive(Clone)]
pub struct Secret(pub Vec<u8>);

impl Path {
    /// Compiles a path.
    pub fn parse(text: &str) -> Result<Self, serde_json_path::ParseError> {
        Ok(Self { text: text.to_owned(), path: serde_json_path::JsonPath::parse(text)? })
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An HMAC scheme.
#[derive(Debug)]
pub struct Hmac {
    /// What carries the signature.
    pub place: SignaturePlace,
    /// Digest.
    pub algorithm: HmacAlgorithm,
    /// Encoding of the signature.
    pub encoding: HmacEncoding,
    /// What stands before the signature (`sha256=`).
    pub prefix: String,
    /// What is signed: `{body}`, `{timestamp}`, `{method}`, `{path}`, `{header:NAME}` and `{query:NAME}` are replaced.
    pub content: String,
    /// The header of the timestamp, where `content` names one.
    pub timestamp_header: Option<String>,
    /// How old, or how far ahead, a timestamp may be.
    pub tolerance: Option<std::time::Duration>,
    /// Accepted keys.
    pub secrets: Vec<Secret>,
}

/// Where a signature stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignaturePlace {
    /// In a header.
    Header(String),
    /// In a parameter of the query string.
    Query(String),
}

/// HMAC digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// Encodings of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacEncoding {
    /// Lower- or upper-case hex.
    Hex,
    /// Standard base64.
    Base64,
}

/// Where a generic body keeps things (A9), compiled.
#[derive(Debug, Default)]
pub struct Mapping {
    /// Event id: one path, or several whose values together are one. None is known if one of them is missing.
    pub id: Vec<Path>,
    /// Event type.
    pub kind: Option<Path>,
    /// Phone, e-mail or `{ddd, number}` of the contact.
    pub contact: Option<Path>,
    /// Transaction.
    pub order: Option<Path>,
    /// What is sold.
    pub offer: Option<Path>,
    /// When it happened.
    pub occurred_at: Option<Path>,
    /// A message's text.
    pub text: Option<Path>,
    /// Template values: dotted name to path.
    pub vars: Vec<(String, Path)>,
    /// Source types to canonical types. A type that is canonical already needs no entry.
    pub types: std::collections::BTreeMap<String, EventKind>,
    /// Paths that must be there.
    pub required: Vec<Path>,
    /// What to do without an id.
    pub on_missing_id: OnMissingId,
    /// What changes with every attempt and is left out of a fingerprint.
    pub fingerprint_without: Vec<Path>,
}

/// A compiled RFC 9535 path with its text.
#[derive(Debug)]
pub struct Path {
    /// As configured.
    pub text: String,
    /// Compiled.
    pub path: serde_json_path::JsonPath,
}

/// What to do with an event without an id (A4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissingId {
    /// Hold it for a person.
    #[default]
    Hold,
    /// Refuse it.
    Reject,
    /// Key it by a digest of its normalised content.
    Fingerprint,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Headers.
    pub headers: HeaderMap,
    /// The path of the address, as it came.
    pub path: String,
    /// What stands behind the source's name in the path.
    pub path_token: Option<String>,
    /// The query string, without `?`.
    pub query: String,
    /// The body, byte for byte.
    pub body: Bytes,
    /// When it came.
    pub received_at: Timestamp,
}

/// Why a request is not taken. Said to the sender in general words only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401. The text is for the operator: missing, wrong, stale by so many seconds, other scheme.
    #[error("credential: {0}")]
    Credential(String),
    /// 403: the body names another instance or account than the source's.
    #[error("origin: {0}")]
    Origin(String),
    /// 400, generic sources only: presets quarantine instead.
    #[error("body: {0}")]
    Malformed(String),
    /// 413: unpacks to more than the source allows.
    #[error("body too large")]
    TooLarge,
    /// 415, generic sources only.
    #[error("content encoding {0:?}")]
    Encoding(String),
}

/// One thing that a request says.
#[derive(Clone, Debug)]
pub struct Part {
    /// Canonical type.
    pub kind: EventKind,
    /// The delivery key in words; `delivery_key` is its digest with tenant and source.
    pub key: String,
    /// The delivery key.
    pub delivery_key: Key16,
    /// The business key, for facts that platforms repeat under several ids.
    pub business_key: Option<Key16>,
    /// Digest of the part without the envelope fields that change per attempt.
    pub digest: Key16,
    /// How it enters.
    pub entry: PartEntry,
    /// Identities, strongest first. Empty: nobody.
    pub identities: Vec<Identity>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// What it carries.
    pub data: EventData,
    /// What it says of a message of ours.
    pub receipt: Option<PartReceipt>,
}

/// How a part enters the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartEntry {
    /// To be decided.
    Received,
    /// Recorded, with a reason (`group`, `status_broadcast`, `own_echo`, `unknown_type`, `receipt`, `ping`, `test_event`).
    Ignored(&'static str),
    /// A person must decide (`missing_id`).
    Held(&'static str),
    /// Stored, not understood, with a sentence that holds no content.
    Quarantined(String),
}

/// A receipt as the provider says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReceipt {
    /// Which message.
    pub provider_message_id: String,
    /// `failed accepted sent delivered read played`.
    pub status: String,
    /// When.
    pub at: Timestamp,
}
