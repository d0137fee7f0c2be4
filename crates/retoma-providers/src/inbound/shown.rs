//! Parts as text, for fixture tables: every field that says something, one line each.

use std::fmt::Write;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use super::{Auth, CloudDoor, Part, PartEntry, Provider, Refusal, Request, Source};

/// When every fixture is received: 100 s after 1790000000.
pub(crate) fn received_at() -> Timestamp {
    Timestamp::from_second(1_790_000_100).unwrap()
}

/// A source without proof.
pub(crate) fn source(provider: Provider) -> Source {
    Source {
        name: "porta".into(),
        tenant: "default".into(),
        provider,
        account: "conta".to_owned(),
        flow: None,
        channel: None,
        auth: Auth::None,
        instance: (provider == Provider::Evolution).then(|| "loja-a".to_owned()),
        cloud: (provider == Provider::WhatsappCloud).then(|| CloudDoor {
            phone_number_ids: vec!["2000".to_owned(), "3000".to_owned()],
            verify_tokens: Vec::new(),
        }),
        mapping: None,
        origin: Vec::new(),
        body_bytes_max: 4 << 20,
    }
}

/// A request with that body.
pub(crate) fn request(body: impl Into<Bytes>) -> Request {
    Request {
        headers: HeaderMap::new(),
        path: "/in/porta".into(),
        path_token: None,
        query: String::new(),
        body: body.into(),
        received_at: received_at(),
    }
}

/// Reads every case of a fixture file (`[{"case": .., "body": ..}]`) and shows what became of it.
pub(crate) fn table(source: &Source, fixtures: &str) -> String {
    let cases: Vec<Value> = serde_json::from_str(fixtures).unwrap();
    let mut out = String::new();
    for case in cases {
        let result = source.read(&request(case["body"].to_string()));
        writeln!(out, "## {}", case["case"].as_str().unwrap()).unwrap();
        out.push_str(&outcome(&result));
    }
    out
}

/// Parts or a refusal, as text.
pub(crate) fn outcome(result: &Result<Vec<Part>, Refusal>) -> String {
    match result {
        Ok(parts) => parts.iter().map(part).collect(),
        Err(refusal) => format!("refused: {refusal}\n"),
    }
}

fn part(part: &Part) -> String {
    let mut out = String::new();
    let entry = match &part.entry {
        PartEntry::Received => "received".to_owned(),
        PartEntry::Ignored(reason) => format!("ignored: {reason}"),
        PartEntry::Held(reason) => format!("held: {reason}"),
        PartEntry::Quarantined(reason) => format!("quarantined: {reason}"),
    };
    writeln!(out, "{} ({entry}) at {}", part.kind, part.occurred_at).unwrap();
    writeln!(out, "  key {}", part.key).unwrap();
    for who in &part.identities {
        let confirmed = if who.confirmed { ", confirmed" } else { "" };
        writeln!(out, "  {} {} [{}]{confirmed}", who.kind, who.value, who.match_key).unwrap();
    }
    let data = &part.data;
    let lines = [
        ("text", data.text.as_deref()),
        ("message", data.message_id.as_deref()),
        ("order", data.order.as_ref().map(|order| order.transaction.as_str())),
        ("offer", data.offer.as_deref()),
        ("source type", data.source_type.as_deref()),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            writeln!(out, "  {name} {value}").unwrap();
        }
    }
    for (name, value) in &data.vars {
        writeln!(out, "  {name} = {value}").unwrap();
    }
    if !data.flags.is_empty() {
        writeln!(out, "  flags {}", data.flags.join(" ")).unwrap();
    }
    if let Some(receipt) = &part.receipt {
        writeln!(out, "  receipt {} {} at {}", receipt.provider_message_id, receipt.status, receipt.at).unwrap();
    }
    if part.business_key.is_some() {
        writeln!(out, "  one fact").unwrap();
    }
    out
}
