//! The rows that a sale's webhook becomes, made from its number without reading a body: what the null server, the bare
//! database and the preload store.
//!
//! The first sale's body goes through the real adapter once; the rows of every other sale differ from it in what identifies
//! a sale. A test holds both ways of making rows together.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use retoma_core::event::OrderRef;
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{ContactId, EventId, FlowName, RequestId, Tenant};
use retoma_core::keys::Key16;
use retoma_engine::NewId;
use retoma_providers::inbound::{Auth, Part, PartEntry, Provider, Request, Secret, Source};
use retoma_store::{Entry, Intake, NewEvent, RawRequest, Subject};

use super::sale::{Happening, Sale, mixed};

/// The source's name, and the path that webhooks come in at.
pub(super) const SOURCE: &str = "loja";
/// The header that Hotmart proves itself with, and what is sent in it. No secret: the server lives for seconds, on
/// loopback.
pub(super) const TOKEN_HEADER: &str = "x-hotmart-hottok";
pub(super) const TOKEN: &str = "bench-hottok";
/// The largest body that both servers take.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;

/// The source that webhooks come in through.
pub(super) fn source() -> Source {
    Source {
        name: SOURCE.into(),
        tenant: Tenant::default(),
        provider: Provider::Hotmart,
        account: SOURCE.to_owned(),
        flow: Some(FlowName::new("vendas")),
        channel: None,
        auth: Auth::Header {
            name: TOKEN_HEADER.to_owned(),
            secrets: vec![Secret(TOKEN.as_bytes().to_vec())],
            or_body: Some("/hottok".to_owned()),
        },
        instance: None,
        cloud: None,
        mapping: None,
        origin: Vec::new(),
        body_bytes_max: BODY_BYTES_MAX,
    }
}

/// The headers of every request.
pub(super) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("Hotmart-Webhook/2.0"));
    headers.insert(TOKEN_HEADER, HeaderValue::from_static(TOKEN));
    headers
}

/// Reads a sale's body as intake does.
fn read(what: Happening, sale: Sale, now: Timestamp) -> anyhow::Result<Part> {
    let body = sale.body(what);
    let request = Request {
        headers: headers(),
        path: String::new(),
        path_token: None,
        query: String::new(),
        body,
        received_at: now,
    };
    let source = source();
    source.authenticate(&request)?;
    let mut parts = source.read(&request)?;
    ensure!(parts.len() == 1, "a sale's body is one event, not {}", parts.len());
    let part = parts.remove(0);
    ensure!(part.entry == PartEntry::Received, "a sale's body is not taken: {:?}", part.entry);
    Ok(part)
}

/// Makes rows.
pub(super) struct Rows {
    pattern: Part,
    headers: Vec<(String, String)>,
}

impl Rows {
    /// Rows of sales to which that happens.
    pub(super) fn new(what: Happening, now: Timestamp) -> anyhow::Result<Self> {
        let pattern = read(what, Sale(0), now).context("the adapter does not take the bench's body")?;
        Ok(Self { pattern, headers: source().kept_headers(&headers()) })
    }

    /// The rows of one request, its bytes among them if there are any.
    pub(super) fn intake(&self, sale: Sale, body: Option<Bytes>, ids: &NewId, now: Timestamp) -> Intake {
        let request = body.map(|body| RawRequest { id: RequestId(ids.next(now)), headers: self.headers.clone(), body });
        Intake { request, events: vec![self.event(sale, ids, now)] }
    }

    fn event(&self, sale: Sale, ids: &NewId, now: Timestamp) -> NewEvent {
        let part = self.part(sale);
        NewEvent {
            id: EventId(ids.next(now)),
            tenant: Tenant::default(),
            source: SOURCE.into(),
            kind: part.kind,
            key: part.key,
            delivery_key: part.delivery_key,
            business_key: part.business_key,
            digest: part.digest,
            entry: Entry::Received,
            subject: Subject::Person { candidate: ContactId(ids.next(now)), identities: part.identities },
            occurred_at: part.occurred_at,
            received_at: now,
            urgent: part.kind.bypasses_debounce(),
            data: part.data,
            receipt: None,
        }
    }

    /// The part that the adapter would read, but for the keys: those are as random as digests and cost less.
    fn part(&self, sale: Sale) -> Part {
        let mut part = self.pattern.clone();
        part.key = sale.event_id();
        part.delivery_key = key(sale, 1);
        part.business_key = part.business_key.map(|_| key(sale, 2));
        part.digest = key(sale, 3);
        part.data.order = part.data.order.map(|order| OrderRef { transaction: sale.transaction(), ..order });
        let order = part.data.order.as_ref();
        for identity in &mut part.identities {
            *identity = identity_of(sale, identity, order);
        }
        if let Some(code) = part.data.vars.get_mut("subscription.code") {
            sale.event_id()[..8].clone_into(code);
        }
        part
    }

    /// The order of a sale.
    pub(super) fn order(&self, sale: Sale) -> Option<OrderRef> {
        self.pattern.data.order.as_ref().map(|order| OrderRef { transaction: sale.transaction(), ..order.clone() })
    }
}

fn identity_of(sale: Sale, pattern: &Identity, order: Option<&OrderRef>) -> Identity {
    match (pattern.kind, order) {
        (IdentityKind::Phone, _) => {
            let phone = sale.phone();
            let (area, number) = phone.split_at(2);
            // Compared without the ninth digit, like every Brazilian mobile.
            let match_key = format!("55{area}{}", &number[1..]);
            Identity { value: format!("55{phone}"), match_key, ..pattern.clone() }
        }
        (IdentityKind::Email, _) => Identity { value: sale.email(), match_key: sale.email(), ..pattern.clone() },
        (IdentityKind::Order, Some(order)) => Identity::order(order),
        _ => pattern.clone(),
    }
}

fn key(sale: Sale, of: u64) -> Key16 {
    let high = mixed(sale.0 ^ (of << 56));
    let mut key = [0; 16];
    key[..8].copy_from_slice(&high.to_be_bytes());
    key[8..].copy_from_slice(&mixed(high).to_be_bytes());
    Key16(key)
}

#[cfg(test)]
mod tests {
    use super::super::sale::PHONES;
    use super::*;

    #[test]
    fn rows_made_from_a_number_are_those_that_the_adapter_reads() {
        let now = Timestamp::from_second(1_790_000_000).unwrap();
        for what in [Happening::PixPrinted, Happening::Approved] {
            let rows = Rows::new(what, now).unwrap();
            for sale in [0, 1, 999_999, 9 * PHONES + 17].map(Sale) {
                let (read, made) = (read(what, sale, now).unwrap(), rows.part(sale));
                assert_eq!(made.identities, read.identities, "{sale:?}");
                assert_eq!(made.data, read.data, "{sale:?}");
                assert_eq!((made.kind, made.key, made.entry), (read.kind, read.key, read.entry), "{sale:?}");
                assert_eq!(made.business_key.is_some(), read.business_key.is_some(), "{sale:?}");
                assert_eq!(made.identities.len(), 3, "phone, e-mail, order");
            }
        }
    }
}
