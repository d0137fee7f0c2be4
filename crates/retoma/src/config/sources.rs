//! `[sources.NAME]`: doors for webhooks, checked and with their secrets loaded.

use std::collections::BTreeMap;
use std::time::Duration;

use retoma_core::event::EventKind;
use retoma_core::finding::{Level, suggest};
use retoma_core::ids::{FlowName, SourceName, Tenant};
use retoma_providers::inbound::{Auth, CloudDoor, Mapping, OnMissingId, Path, Provider, Source};
use retoma_providers::reconcile::Reconcile;
use retoma_server::Network;

use super::auth;
use super::document::{Section, Value};
use super::secrets::Secrets;
use super::{Names, reconcile, values};

/// A source with what the server enforces before it asks the provider.
#[derive(Debug)]
pub(crate) struct SourceSetup {
    /// What the provider needs.
    pub(crate) source: Source,
    /// At most so many requests in so long (429 over it).
    pub(crate) rate: Option<(u32, Duration)>,
    /// The same for each address.
    pub(crate) rate_per_address: Option<(u32, Duration)>,
    /// Who may send at all.
    pub(crate) addresses: Option<Vec<Network>>,
    /// Where the platform lists what it has.
    pub(crate) reconcile: Option<Reconcile>,
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
    let rate_of = |key| section.value(key).and_then(|value| value.parse("bad_rate", "\"50/s\"", values::rate));
    let (rate, rate_per_address) = (rate_of("rate"), rate_of("rate_per_address"));
    let addresses = section.value("addresses").and_then(|value| networks(&value));
    let body_bytes_max = section
        .value("max_body")
        .and_then(|value| value.parse("bad_size", "max_body = \"4MiB\"", values::size))
        .unwrap_or(BODY_BYTES_MAX);
    let account = section.text("account").unwrap_or_else(|| name.to_owned());

    let mut source = Source {
        name: SourceName::new(name),
        tenant: Tenant::default(),
        provider,
        account,
        flow,
        channel,
        auth: Auth::None,
        instance: None,
        cloud: None,
        mapping: None,
        origin: origin_of(&section),
        body_bytes_max,
    };
    let auth = match provider {
        Provider::Generic => {
            source.mapping = mapping_of(&section);
            auth::required(&section, secrets)
        }
        Provider::Evolution => {
            source.instance = section.required_text("instance", "\"the instance's name at Evolution\"");
            auth::required(&section, secrets)
        }
        Provider::Hotmart => auth::hotmart(&section, secrets),
        Provider::WhatsappCloud => {
            source.cloud = cloud_of(&section, secrets);
            auth::whatsapp_cloud(&section, secrets)
        }
    };
    let reconcile = reconcile::read(&section, provider, secrets);
    section.finish();
    source.auth = auth?;
    Some(SourceSetup { source, rate, rate_per_address, addresses, reconcile })
}

/// A list of addresses and networks. An empty one would let nobody in, and is a mistake.
pub(super) fn networks(value: &Value<'_>) -> Option<Vec<Network>> {
    let list = value.list()?;
    if list.is_empty() {
        value.error(
            "bad_value",
            format!("{} is empty: nobody could send", value.name),
            "write addresses, or remove it",
        );
    }
    let read = |value: &Value<'_>| {
        value.parse("bad_address", "\"203.0.113.7\" or \"203.0.113.0/24\"", |text| {
            text.parse::<Network>().map_err(|error| error.to_string())
        })
    };
    list.iter().map(read).collect()
}

/// The numbers of a door of the Cloud API, and the token of its handshake.
fn cloud_of(section: &Section<'_>, secrets: &Secrets<'_>) -> Option<CloudDoor> {
    let example = "\"the number's id at Meta\"  # a list if one app serves several";
    let phone_number_ids = match section.value("phone_number_id") {
        Some(value) if value.is_text() => value.text().map(|id| vec![id]),
        Some(value) => value.list().and_then(|list| list.iter().map(Value::text).collect()),
        None => {
            section.missing("phone_number_id", example);
            None
        }
    };
    let verify_token = match section.value("verify_token") {
        Some(value) => secrets.read(&value),
        None => {
            section.missing(
                "verify_token",
                "{ env = \"VERIFY_TOKEN\" }  # the text that you give to Meta beside the address",
            );
            None
        }
    };
    let phone_number_ids = phone_number_ids.filter(|ids| {
        let wrong =
            ids.is_empty() || ids.iter().any(|id| id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()));
        if wrong {
            section.error(
                "bad_value",
                format!("{}.phone_number_id must be the digits of Meta's id", section.name),
                "copy the phone number ID, not the number, from the app's API setup page",
            );
        }
        !wrong
    });
    Some(CloudDoor { phone_number_ids: phone_number_ids?, verify_tokens: vec![verify_token?] })
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
    const KNOWN_LATER: &[&str] = &["zapi", "kiwify", "asaas", "stripe", "mercadopago", "shopify"];
    if value.text().is_some_and(|text| KNOWN_LATER.contains(&text.as_str())) {
        value.error(
            "not_available",
            format!("{} {:?} is not available in this version", value.name, value.text().unwrap_or_default()),
            "use provider = \"generic\" with a mapping, or wait for a later version",
        );
        return None;
    }
    value.word(&[
        ("generic", Provider::Generic),
        ("evolution", Provider::Evolution),
        ("hotmart", Provider::Hotmart),
        ("whatsapp_cloud", Provider::WhatsappCloud),
    ])
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
pub(super) fn mapping_of(section: &Section<'_>) -> Option<Mapping> {
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
        id: paths_of(section.value("id")),
        kind: path("type"),
        contact: path("contact"),
        order: path("order"),
        offer: path("offer"),
        occurred_at: path("occurred_at"),
        text: path("text"),
        vars: vars_of(section),
        types: types_of(section),
        required: paths_of(section.value("required")),
        on_missing_id,
        fingerprint_without: paths_of(section.value("fingerprint_without")),
    };
    if let Some(value) = section.value("fingerprint_without").filter(|_| on_missing_id != OnMissingId::Fingerprint) {
        value.warning(
            "no_effect",
            format!("{} has no effect: events without an id are not keyed by their content", value.name),
            "add on_missing_id = \"fingerprint\", or remove it",
        );
    }
    if !section.has("type") {
        section.warning(
            "no_type",
            format!("{} has no type path: every event is stored, and none is decided", section.name),
            "add type = \"$.event\"  # where the body says what happened",
        );
    }
    let in_envelope = signs_by_standard_webhooks(section);
    if !section.has("id") && !in_envelope && on_missing_id == OnMissingId::Hold {
        section.warning(
            "no_id",
            format!("{} has no id path: every event is held for a person", section.name),
            "add id = \"$.id\", or on_missing_id = \"fingerprint\"",
        );
    }
    Some(mapping)
}

/// Standard Webhooks name every delivery in a header.
fn signs_by_standard_webhooks(section: &Section<'_>) -> bool {
    section
        .value("auth")
        .filter(|auth| !auth.is_text())
        .and_then(|auth| auth.section())
        .is_some_and(|auth| auth.has("standard_webhooks"))
}

/// One path, or a list of them.
fn paths_of(value: Option<Value<'_>>) -> Vec<Path> {
    match value {
        None => Vec::new(),
        Some(value) if value.is_text() => path_of(&value).into_iter().collect(),
        Some(value) => value.list().unwrap_or_default().iter().filter_map(path_of).collect(),
    }
}

/// `origin = { "$.store.id" = "77" }`: what bodies must say of where they come from.
fn origin_of(section: &Section<'_>) -> Vec<(Path, String)> {
    let Some(table) = section.section("origin") else { return Vec::new() };
    let read = |(text, value): (String, Value<'_>)| match Path::parse(&text) {
        Ok(path) => Some((path, value.text()?)),
        Err(error) => {
            let message = format!("{text:?} is no JSONPath (RFC 9535): {error}");
            value.error("bad_jsonpath", message, "origin = { \"$.store.id\" = \"77\" }");
            None
        }
    };
    table.entries().into_iter().filter_map(read).collect()
}

pub(super) fn path_of(value: &Value<'_>) -> Option<Path> {
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
