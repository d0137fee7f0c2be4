//! `reconcile = {..}` of a source: where a platform lists what it has (A11).

use std::time::Duration;

use retoma_providers::inbound::{Mapping, Path, Provider, Secret};
use retoma_providers::reconcile::Reconcile;

use super::document::{Section, Value};
use super::secrets::Secrets;
use super::{sources, values};

/// Between two rounds where nothing is said; and how far each looks back.
const EVERY: Duration = Duration::from_secs(15 * 60);
const LOOKBACK: Duration = Duration::from_secs(24 * 3600);
/// Platforms count requests.
const EVERY_MIN: Duration = Duration::from_secs(10);

/// Reads the table, if there is one.
pub(super) fn read(beside: &Section<'_>, provider: Provider, secrets: &Secrets<'_>) -> Option<Reconcile> {
    let section = beside.section("reconcile")?;
    let url = match section.value("url") {
        Some(value) => url_of(&value),
        None => {
            section.missing("url", "\"https://api.example.com/orders?since={since}\"");
            None
        }
    };
    let duration = |key, default| {
        let value = section.value(key);
        value.map_or(Some(default), |value| value.parse("bad_duration", "\"15m\"", values::duration))
    };
    let (every, lookback) = (duration("every", EVERY), duration("lookback", LOOKBACK));
    if every.is_some_and(|every| every < EVERY_MIN) {
        section.error("bad_value", format!("{}.every is shorter than 10s", section.name), "every = \"15m\"");
    }
    let items = match section.value("items") {
        Some(value) => sources::path_of(&value),
        None => Path::parse("$[*]").ok(),
    };
    let next = section.value("next").and_then(|value| sources::path_of(&value));
    let credential = credential(&section, secrets);
    let mapping = mapping(&section, provider);
    section.finish();
    Some(Reconcile {
        url: url?,
        credential: credential?,
        every: every?,
        lookback: lookback?,
        items: items?,
        next,
        mapping,
    })
}

/// The places of the window are no characters of an address; what is left must be one.
fn url_of(value: &Value<'_>) -> Option<String> {
    value.parse("bad_url", "url = \"https://api.example.com/orders?since={since}\"", |text| {
        let filled =
            ["{since}", "{until}", "{since_s}", "{until_s}"].iter().fold(text.to_owned(), |t, p| t.replace(p, "0"));
        let uri: http::Uri = filled.parse().map_err(|_| "it is no address".to_owned())?;
        let web = matches!(uri.scheme_str(), Some("http" | "https"));
        match uri.authority() {
            _ if filled.contains(['{', '}']) => {
                Err("only {since}, {until}, {since_s} and {until_s} are filled in".to_owned())
            }
            Some(authority) if web && !authority.as_str().contains('@') => Ok(text.to_owned()),
            Some(_) if web => Err("credentials do not belong into an address".to_owned()),
            _ => Err("an address starts with http:// or https://".to_owned()),
        }
    })
}

/// The header that proves us. `Some(None)`: the list is open.
fn credential(section: &Section<'_>, secrets: &Secrets<'_>) -> Option<Option<(http::HeaderName, String, Secret)>> {
    let Some(header) = section.value("header") else {
        for key in ["secret", "prefix"] {
            if let Some(value) = section.value(key) {
                value.error(
                    "bad_value",
                    format!("{} stands without a header", value.name),
                    "header = \"Authorization\"",
                );
            }
        }
        return Some(None);
    };
    let name = header.parse("bad_value", "header = \"Authorization\"", |text| {
        text.parse::<http::HeaderName>().map_err(|_| format!("{text:?} is no header name"))
    });
    let prefix = section.text("prefix").unwrap_or_default();
    let secret = match section.value("secret") {
        Some(value) => secrets.read(&value),
        None => {
            section.missing("secret", "{ env = \"API_KEY\" }");
            None
        }
    };
    Some(Some((name?, prefix, secret?)))
}

/// Keys that say where an item keeps things, where that is not as in the webhook's bodies.
fn mapping(section: &Section<'_>, provider: Provider) -> Option<Mapping> {
    const KEYS: [&str; 7] = ["id", "type", "types", "contact", "order", "offer", "occurred_at"];
    let given = KEYS.iter().find(|key| section.has(key))?;
    if provider != Provider::Generic {
        section.error(
            "bad_value",
            format!("{}.{given}: this provider's items are read as its webhooks are", section.name),
            "remove it",
        );
        KEYS.into_iter().for_each(|key| drop(section.value(key)));
        return None;
    }
    sources::mapping_of(section)
}
