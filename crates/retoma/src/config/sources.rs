//! `[sources.NAME]`: doors for webhooks, checked and with their secrets loaded.

use std::collections::BTreeMap;
use std::time::Duration;

use retoma_core::event::EventKind;
use retoma_core::finding::{Level, suggest};
use retoma_core::ids::{FlowName, SourceName, Tenant};
use retoma_providers::inbound::{Mapping, OnMissingId, Path, Provider, Source};

use super::auth;
use super::document::{Section, Value};
use super::secrets::Secrets;
use super::{Names, values};

/// A source with what the server enforces before it asks the provider.
#[derive(Debug)]
pub(crate) struct SourceSetup {
    /// What the provider needs.
    pub(crate) source: Source,
    /// At most so many requests in so long (429 over it).
    pub(crate) rate: Option<(u32, Duration)>,
}

/// The largest body where a source says nothing (A10).
pub(super) const BODY_BYTES_MAX: usize = 4 << 20;

/// Reads one `[sources.NAME]`.
pub(super) fn read(name: &str, value: &Value<'_>, names: &Names, secrets: &Secrets<'_>) -> Option<SourceSetup> {
    let section = value.section()?;
    if !good_name(name) {
        value.error(
            "bad_name",
            format!("{name:?} cannot be the name of a source"),
            "use lower-case letters, digits, '-' and '_': the name is part of the address /in/NAME",
        );
        return None;
    }
    let provider = provider_of(&section)?;
    let flow = flow_of(&section, names);
    let channel = names.channel(&section);
    section.not_available(Level::Error, "tenant", "remove it: everything belongs to the tenant \"default\"");
    let rate = section.value("rate").and_then(|value| value.parse("bad_rate", "rate = \"50/s\"", values::rate));
    let body_bytes_max = section
        .value("max_body")
        .and_then(|value| value.parse("bad_size", "max_body = \"4MiB\"", values::size))
        .unwrap_or(BODY_BYTES_MAX);
    let account = section.text("account").unwrap_or_else(|| name.to_owned());

    let (auth, instance, mapping) = match provider {
        Provider::Generic => (auth::required(&section, secrets), None, mapping_of(&section)),
        Provider::Evolution => {
            let instance = section.required_text("instance", "\"the instance's name at Evolution\"");
            (auth::required(&section, secrets), instance, None)
        }
        Provider::Hotmart => (auth::hotmart(&section, secrets), None, None),
    };
    section.finish();
    let source = Source {
        name: SourceName::new(name),
        tenant: Tenant::default(),
        provider,
        account,
        flow,
        channel,
        auth: auth?,
        instance,
        mapping,
        body_bytes_max,
    };
    Some(SourceSetup { source, rate })
}

/// Names become parts of addresses and keys.
pub(super) fn good_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_')
}

fn provider_of(section: &Section<'_>) -> Option<Provider> {
    let Some(value) = section.value("provider") else {
        section.missing("provider", "\"generic\"");
        return None;
    };
    const KNOWN_LATER: &[&str] = &["whatsapp_cloud", "zapi", "kiwify", "asaas", "stripe", "mercadopago", "shopify"];
    if value.text().is_some_and(|text| KNOWN_LATER.contains(&text.as_str())) {
        value.error(
            "not_available",
            format!("{} {:?} is not available in this version", value.name, value.text().unwrap_or_default()),
            "use provider = \"generic\" with a mapping, or wait for a later version",
        );
        return None;
    }
    value.word(&[("generic", Provider::Generic), ("evolution", Provider::Evolution), ("hotmart", Provider::Hotmart)])
}

/// The flow that a source feeds: the one it names, else the only one there is.
fn flow_of(section: &Section<'_>, names: &Names) -> Option<FlowName> {
    let Some(value) = section.value("flow") else {
        if let [only] = names.flows.as_slice() {
            return Some(only.clone());
        }
        section.warning(
            "no_flow",
            format!("{} names no flow: its events are only recorded", section.name),
            "add flow = \"NAME\"",
        );
        return None;
    };
    let written = value.text()?;
    if let Some(flow) = names.flows.iter().find(|flow| flow.as_str() == written) {
        return Some(flow.clone());
    }
    if names.broken_flows.iter().any(|flow| flow.as_str() == written) {
        return None; // its own findings say what is wrong with it
    }
    let fix = match names.flows.as_slice() {
        [] => "put a flow file into flows/ beside the configuration".to_owned(),
        flows => suggest(&written, flows.iter().map(FlowName::as_str)),
    };
    value.error("unknown_flow", format!("{}: there is no flow {written:?}", value.name), fix);
    None
}

/// Where a generic body keeps things (A9).
fn mapping_of(section: &Section<'_>) -> Option<Mapping> {
    let path = |key| section.value(key).and_then(|value| path_of(&value));
    let on_missing_id = section
        .value("on_missing_id")
        .and_then(|value| {
            value.word(&[
                ("hold", OnMissingId::Hold),
                ("reject", OnMissingId::Reject),
                ("fingerprint", OnMissingId::Fingerprint),
            ])
        })
        .unwrap_or(OnMissingId::Hold);
    let mapping = Mapping {
        id: path("id"),
        kind: path("type"),
        contact: path("contact"),
        order: path("order"),
        offer: path("offer"),
        occurred_at: path("occurred_at"),
        text: path("text"),
        vars: vars_of(section),
        types: types_of(section),
        required: section
            .value("required")
            .and_then(|value| value.list())
            .map(|list| list.iter().filter_map(path_of).collect())
            .unwrap_or_default(),
        on_missing_id,
    };
    if !section.has("type") {
        section.warning(
            "no_type",
            format!("{} has no type path: every event is stored, and none is decided", section.name),
            "add type = \"$.event\"  # where the body says what happened",
        );
    }
    if !section.has("id") && on_missing_id == OnMissingId::Hold {
        section.warning(
            "no_id",
            format!("{} has no id path: every event is held for a person", section.name),
            "add id = \"$.id\", or on_missing_id = \"fingerprint\"",
        );
    }
    Some(mapping)
}

fn path_of(value: &Value<'_>) -> Option<Path> {
    value.parse("bad_jsonpath", "\"$.order.id\"", |text| {
        Path::parse(text).map_err(|error| format!("{text:?} is no JSONPath (RFC 9535): {error}"))
    })
}

fn vars_of(section: &Section<'_>) -> Vec<(String, Path)> {
    let Some(table) = section.section("vars") else { return Vec::new() };
    table.entries().into_iter().filter_map(|(name, value)| Some((name, path_of(&value)?))).collect()
}

fn types_of(section: &Section<'_>) -> BTreeMap<String, EventKind> {
    let Some(table) = section.section("types") else { return BTreeMap::new() };
    let read = |(word, value): (String, Value<'_>)| {
        let words: Vec<_> = EventKind::ALL.iter().map(|kind| (kind.as_str(), *kind)).collect();
        Some((word, value.word(&words)?))
    };
    table.entries().into_iter().filter_map(read).collect()
}
