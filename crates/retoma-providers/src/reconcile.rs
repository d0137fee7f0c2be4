//! "The event may never arrive" (A11): asking a platform what it has, and reading its list. Pure: a time in, a request out;
//! an answer in, parts out. Whoever runs it asks the store which parts are known and brings in the others through the door
//! they would have come through.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use jiff::{SignedDuration, Timestamp};

use crate::generic;
use crate::inbound::part::{Maker, PARTS_MAX};
use crate::inbound::{Mapping, Part, Path, Provider, Refusal, Secret, Source, json};
use crate::outbound::WireEnd;

/// Pages of one round. A list that goes on beyond them is read further by the next round's window.
pub const PAGES_MAX: usize = 100;
/// The largest page.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// The generic HTTP form: a list behind an address.
#[derive(Debug)]
pub struct Reconcile {
    /// Where the list is. `{since}` and `{until}` become RFC 3339, `{since_s}` and `{until_s}` seconds since 1970.
    pub url: String,
    /// The header that proves us, with what stands before the secret.
    pub credential: Option<(HeaderName, String, Secret)>,
    /// Between two rounds.
    pub every: Duration,
    /// How far back a round looks.
    pub lookback: Duration,
    /// Where the items are.
    pub items: Path,
    /// Where the address of the next page is; `null` or nothing at the end.
    pub next: Option<Path>,
    /// How items are read, where that differs from the webhook's bodies.
    pub mapping: Option<Mapping>,
}

/// One request of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Absolute address. GET.
    pub url: String,
    /// Headers.
    pub headers: HeaderMap,
}

/// One page, read.
#[derive(Debug)]
pub struct Listed {
    /// What its items say, as if each had come by itself.
    pub parts: Vec<Part>,
    /// The page behind it.
    pub next: Option<Ask>,
}

/// Why a page gives nothing. Holds no content and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotListed {
    /// No answer came.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// An answer that is no success.
    #[error("the platform answered {0}")]
    Status(u16),
    /// An answer that is no list.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    /// A next page on another host: our credential does not go there.
    #[error("the next page is at another address than the first")]
    ForeignPage,
    /// The items belong to another account.
    #[error("{0}")]
    Origin(String),
}

impl Reconcile {
    /// The first request of a round.
    ///
    /// # Errors
    /// The secret cannot stand in a header.
    pub fn first(&self, now: Timestamp) -> Result<Ask, NotListed> {
        let lookback = SignedDuration::try_from(self.lookback).unwrap_or(SignedDuration::MAX);
        let since = now.saturating_sub(lookback).unwrap_or(Timestamp::MIN);
        let mut url = self.url.clone();
        for (place, at) in [("since", since), ("until", now)] {
            let seconds = at.as_second();
            let whole = Timestamp::from_second(seconds).unwrap_or(at);
            // A colon may stand in a query as it is.
            url = url.replace(&format!("{{{place}}}"), &whole.to_string());
            url = url.replace(&format!("{{{place}_s}}"), &seconds.to_string());
        }
        self.ask(url)
    }

    fn ask(&self, url: String) -> Result<Ask, NotListed> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((name, prefix, secret)) = &self.credential {
            let value = [prefix.as_bytes(), secret.0.as_slice()].concat();
            let mut value = HeaderValue::from_bytes(&value)
                .map_err(|_| NotListed::Unreadable("the secret cannot stand in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Ask { url, headers })
    }

    /// Reads the answer to `ask`.
    ///
    /// # Errors
    /// [`NotListed`]: nothing was learned from this page.
    pub fn read(&self, source: &Source, ask: &Ask, end: &WireEnd, now: Timestamp) -> Result<Listed, NotListed> {
        let body = match end {
            WireEnd::Answer { status: 200..=299, body, .. } => body,
            WireEnd::Answer { status, .. } => return Err(NotListed::Status(*status)),
            WireEnd::NotWritten { what } | WireEnd::NoAnswer { what } => return Err(NotListed::NoAnswer(what.clone())),
        };
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let value = json::parse(text).map_err(NotListed::Unreadable)?;
        let maker = Maker { source, received_at: now, envelope_id: None };
        let mut parts = Vec::new();
        for item in self.items.path.query(&value).iter() {
            parts.extend(read_item(&maker, self.mapping.as_ref(), item)?);
            if parts.len() > PARTS_MAX {
                return Err(NotListed::Unreadable(format!("more than {PARTS_MAX} items on one page")));
            }
        }
        for part in &mut parts {
            part.flag(Some("reconciled"));
        }
        let next = self.next.as_ref().and_then(|path| path.path.query(&value).first());
        let next = match next.and_then(|next| next.as_str()).filter(|next| !next.trim().is_empty()) {
            Some(next) => Some(self.ask(page_url(&ask.url, next.trim())?)?),
            None => None,
        };
        Ok(Listed { parts, next: next.filter(|next| next != ask) })
    }
}

fn read_item(maker: &Maker<'_>, mapping: Option<&Mapping>, item: &serde_json::Value) -> Result<Vec<Part>, NotListed> {
    let read = match (maker.source.provider, mapping) {
        (Provider::Generic, Some(mapping)) => generic::inbound::read_by(maker, mapping, item),
        _ => maker.source.read_item(maker, item),
    };
    match read {
        Ok(parts) => Ok(parts),
        Err(Refusal::Origin(what)) => Err(NotListed::Origin(what)),
        // One bad item is set aside; its neighbours are read.
        Err(other) => Ok(vec![maker.quarantined(item.to_string().as_bytes(), other.to_string())]),
    }
}

/// The address of the next page: on the same host as the one before, since our credential goes along.
fn page_url(before: &str, next: &str) -> Result<String, NotListed> {
    let foreign = |_| NotListed::ForeignPage;
    let before: Uri = before.parse().map_err(foreign)?;
    let (Some(scheme), Some(authority)) = (before.scheme_str(), before.authority()) else {
        return Err(NotListed::ForeignPage);
    };
    if next.starts_with('/') && !next.starts_with("//") {
        return Ok(format!("{scheme}://{authority}{next}"));
    }
    let uri: Uri = next.parse().map_err(foreign)?;
    let same = uri.scheme_str() == Some(scheme) && uri.authority() == Some(authority);
    if same { Ok(next.to_owned()) } else { Err(NotListed::ForeignPage) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::inbound::shown::source;
    use crate::inbound::{OnMissingId, PartEntry};

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    fn list() -> Reconcile {
        Reconcile {
            url: "https://api.loja.test/orders?from={since}&to={until_s}".to_owned(),
            credential: Some((http::header::AUTHORIZATION, "Bearer ".to_owned(), Secret(b"SECRET-80".to_vec()))),
            every: Duration::from_secs(900),
            lookback: Duration::from_secs(86_400),
            items: path("$.orders[*]"),
            next: Some(path("$.next")),
            mapping: None,
        }
    }

    fn shop() -> Source {
        let mut source = source(Provider::Generic);
        source.mapping = Some(Mapping {
            id: vec![path("$.id")],
            kind: Some(path("$.event")),
            order: Some(path("$.order")),
            contact: Some(path("$.phone")),
            on_missing_id: OnMissingId::Hold,
            ..Mapping::default()
        });
        source
    }

    fn answer(status: u16, body: &str) -> WireEnd {
        WireEnd::Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn now() -> Timestamp {
        "2026-12-01T12:00:00Z".parse().unwrap()
    }

    // A11
    #[test]
    fn a_round_asks_for_its_window_and_reads_items_as_if_each_had_come_by_itself() {
        let ask = list().first(now()).unwrap();
        assert_eq!(ask.url, "https://api.loja.test/orders?from=2026-11-30T12:00:00Z&to=1796126400");
        assert_eq!(ask.headers["authorization"], "Bearer SECRET-80");
        assert!(!format!("{ask:?} {:?}", list()).contains("SECRET-80"));
        let item = json!({ "id": "e1", "event": "payment.approved", "order": "P-1", "phone": "5541999990001" });
        let page = json!({ "orders": [item, 7, { "event": "pix.created" }], "next": "/orders?page=2" });
        let listed = list().read(&shop(), &ask, &answer(200, &page.to_string()), now()).unwrap();
        assert_eq!(listed.next.unwrap().url, "https://api.loja.test/orders?page=2");
        let came = shop().read(&crate::inbound::shown::request(item.to_string())).unwrap().remove(0);
        let first = &listed.parts[0];
        assert_eq!((first.delivery_key, first.business_key), (came.delivery_key, came.business_key), "the same dedupe");
        assert_eq!(first.data.flags, ["occurred_at_missing", "reconciled"]);
        assert!(matches!(listed.parts[1].entry, PartEntry::Quarantined(_)));
        assert_eq!(listed.parts[2].entry, PartEntry::Held("missing_id"));
    }

    #[test]
    fn items_may_be_read_by_a_mapping_of_their_own() {
        let mut list = list();
        list.mapping = Some(Mapping {
            id: vec![path("$.number")],
            kind: Some(path("$.status")),
            order: Some(path("$.number")),
            types: [("paid".to_owned(), retoma_core::event::EventKind::PaymentApproved)].into(),
            ..Mapping::default()
        });
        let ask = list.first(now()).unwrap();
        let page = answer(200, r#"{"orders":[{"number":"P-1","status":"paid"}],"next":null}"#);
        let listed = list.read(&shop(), &ask, &page, now()).unwrap();
        assert_eq!((listed.parts[0].kind.as_str(), listed.parts[0].key.as_str()), ("payment.approved", "P-1"));
        assert_eq!(listed.next, None);
        let came = shop().read(&crate::inbound::shown::request(
            json!({ "id": "other", "event": "payment.approved", "order": "P-1" }).to_string(),
        ));
        assert_eq!(listed.parts[0].business_key, came.unwrap()[0].business_key, "one fact under two ids");
    }

    #[test]
    fn what_is_no_list_teaches_nothing_and_our_credential_stays_at_home() {
        let ask = list().first(now()).unwrap();
        let read = |end: WireEnd| list().read(&shop(), &ask, &end, now()).map(|listed| listed.parts.len());
        assert_eq!(read(answer(500, "{}")), Err(NotListed::Status(500)));
        assert_eq!(read(WireEnd::NoAnswer { what: "timeout".into() }), Err(NotListed::NoAnswer("timeout".into())));
        assert!(matches!(read(answer(200, "<html>")), Err(NotListed::Unreadable(_))));
        assert_eq!(read(answer(200, "{}")), Ok(0));
        for next in
            ["https://evil.test/orders", "http://api.loja.test/x", "//evil.test/x", "https://u@api.loja.test/", "page2"]
        {
            let page = json!({ "orders": [], "next": next }).to_string();
            assert_eq!(read(answer(200, &page)), Err(NotListed::ForeignPage), "{next}");
        }
        let page = json!({ "orders": [], "next": ask.url }).to_string();
        assert_eq!(list().read(&shop(), &ask, &answer(200, &page), now()).unwrap().next, None, "no page twice");
    }
}
