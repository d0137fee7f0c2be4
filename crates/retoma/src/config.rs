//! The configuration: `retoma.toml` with `flows/*.yaml` beside it becomes a checked [`Setup`], or findings that name file,
//! line and fix. Nothing is used before all of it was read (H4), and no key is silently ignored: one that nobody knows is
//! an error, one that this version cannot serve says so.
//!
//! Opens no socket and no database; reads secrets where the configuration points to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use retoma_core::finding::{Finding, Level, suggest};
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, FlowName};
use retoma_core::retry::RetryPolicy;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::transport::Authority;
use retoma_providers::outbound::Channel;
use retoma_server::Proxies;
use retoma_server::flows::FlowFiles;
use retoma_server::gate::GateScopes;
use toml::de::DeTable;

mod auth;
mod channels;
mod document;
pub(crate) mod flows;
mod gate;
mod reconcile;
mod retry;
mod secrets;
mod sources;
mod tools;
mod values;

pub(crate) use secrets::Secrets;
pub(crate) use sources::SourceSetup;

use document::{Document, Section};

/// A checked configuration.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Where the server listens.
    pub(crate) listen: SocketAddr,
    /// The address that others reach it under, where it is another one.
    pub(crate) public_url: Option<String>,
    /// Proxies whose word on a sender's address counts.
    pub(crate) proxies: Proxies,
    /// The database file.
    pub(crate) database: PathBuf,
    /// The zone of people without one of their own, and of times shown to operators.
    pub(crate) timezone: TimeZone,
    /// `pt-BR` or `en`.
    pub(crate) locale: String,
    /// Flows by name.
    pub(crate) flows: BTreeMap<FlowName, Arc<Flow>>,
    /// The file of each flow.
    pub(crate) flow_files: BTreeMap<FlowName, String>,
    /// The text of each flow.
    pub(crate) flow_texts: BTreeMap<FlowName, String>,
    /// Doors.
    pub(crate) sources: Vec<SourceSetup>,
    /// Ways out.
    pub(crate) channels: Vec<Channel>,
    /// The channel of whoever names none.
    pub(crate) default_channel: Option<ChannelName>,
    /// Destinations that the address guard lets through.
    pub(crate) outbound_allow: Vec<String>,
    /// Scopes of the gate.
    pub(crate) gate: GateScopes,
    /// Certificate authorities of the seller's own.
    pub(crate) outbound_ca: Vec<Authority>,
    /// Retries of messages.
    pub(crate) retry: RetryPolicy,
    /// How long an unknown outcome is looked into before its policy decides (E4).
    pub(crate) reconcile_for: Duration,
}

impl Setup {
    /// The flows with their files and texts.
    pub(crate) fn flow_files(&self) -> FlowFiles {
        let (files, texts) = (self.flow_files.clone(), self.flow_texts.clone());
        FlowFiles { flows: self.flows.clone(), texts, files }
    }
}

/// What reading gave: a setup if no finding is an error.
pub(crate) struct Loaded {
    /// The setup.
    pub(crate) setup: Option<Setup>,
    /// Errors and warnings, in the order of files and lines.
    pub(crate) findings: Vec<Finding>,
}

/// What other sections may refer to.
struct Names {
    flows: Vec<FlowName>,
    broken_flows: Vec<FlowName>,
    channels: Vec<String>,
    default_channel: Option<ChannelName>,
}

/// The part of the configuration that commands need to find a running server or its database, read even where the rest is
/// wrong.
pub(crate) struct Whereabouts {
    /// The database file.
    pub(crate) database: PathBuf,
    /// The zone that times are shown in.
    pub(crate) timezone: TimeZone,
}

/// Reads the configuration at `path`. `env` reads an environment variable.
pub(crate) fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, std::io::Error> {
    let text = std::fs::read_to_string(path)?;
    Ok(check(&text, path, env))
}

/// Only where the database is. Wrong values fall back to the defaults: `retoma check` is there to tell.
pub(crate) fn whereabouts(path: &Path) -> Result<Whereabouts, std::io::Error> {
    let text = std::fs::read_to_string(path)?;
    let shown = path.display().to_string();
    let document = Document::new(&shown, &text);
    let (table, _) = DeTable::parse_recoverable(&text);
    let root = document.root(&table);
    let defaults = root.section("defaults");
    Ok(Whereabouts {
        database: storage(&root, folder_of(path)).unwrap_or_else(|| folder_of(path).join("retoma.db")),
        timezone: defaults.and_then(|section| timezone(&section)).unwrap_or(TimeZone::UTC),
    })
}

/// The folder that a file stands in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// The port that an address leads to.
pub(crate) fn port_of(uri: &http::Uri) -> u16 {
    let default = || if uri.scheme_str() == Some("https") { 443 } else { 80 };
    uri.port_u16().unwrap_or_else(default)
}

/// Checks a configuration's text as if it stood at `path`.
pub(crate) fn check(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Loaded {
    let shown = path.display().to_string();
    let document = Document::new(&shown, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    errors.iter().for_each(|error| document.syntax(error));
    let setup = if errors.is_empty() { read(document.root(&table), folder_of(path), env) } else { None };
    let findings = document.into_findings();
    let broken = findings.iter().any(|finding| finding.level == Level::Error);
    Loaded { setup: setup.filter(|_| !broken), findings }
}

fn read(root: Section<'_>, folder: &Path, env: &dyn Fn(&str) -> Option<String>) -> Option<Setup> {
    let secrets = Secrets { env, folder: folder.to_owned() };
    let server = server(&root);
    let database = storage(&root, folder);
    let flows = flows::read(&folder.join("flows"), &folder.join("flows").display().to_string());
    root.adopt(flows.findings);
    let Outbound { allow: outbound_allow, ca: outbound_ca } = outbound(&root, folder);
    let guard = AddressGuard::new(&outbound_allow);
    let channel_table = root.section("channels").map(|section| section.entries()).unwrap_or_default();
    let channel_names: Vec<String> = channel_table.iter().map(|(name, _)| name.clone()).collect();
    let defaults = defaults(&root, &channel_names);
    let channels: Vec<_> =
        channel_table.iter().filter_map(|(name, value)| channels::read(name, value, &secrets, &guard)).collect();
    root.adopt(tools::check(&flows.good, &flows.files, channels.iter(), &channel_names));
    let names = Names {
        flows: flows.good.keys().cloned().collect(),
        broken_flows: flows.broken,
        channels: channel_names,
        default_channel: defaults.channel.clone(),
    };
    let source_table = root.section("sources").map(|section| section.entries()).unwrap_or_default();
    let sources: Vec<_> =
        source_table.iter().filter_map(|(name, value)| sources::read(name, value, &names, &secrets)).collect();
    let gate = gate::read(&root);
    let retry = retry::read(&root);
    later(&root);
    root.finish();
    Some(Setup {
        listen: server.listen?,
        public_url: server.public_url,
        proxies: server.proxies,
        database: database?,
        timezone: defaults.timezone,
        locale: defaults.locale,
        flows: flows.good,
        flow_files: flows.files,
        flow_texts: flows.texts,
        sources,
        channels,
        default_channel: defaults.channel,
        outbound_allow,
        gate,
        outbound_ca,
        reconcile_for: retry.as_ref()?.reconcile_for,
        retry: retry?.recovery,
    })
}

struct Server {
    listen: Option<SocketAddr>,
    proxies: Proxies,
    public_url: Option<String>,
}

fn server(root: &Section<'_>) -> Server {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    let Some(section) = root.section("server") else {
        return Server { listen: Some(default), public_url: None, proxies: Proxies::default() };
    };
    let listen = match section.value("listen") {
        None => Some(default),
        Some(value) => {
            let read = |text: &str| text.parse().map_err(|_| format!("{text:?} is no address and port"));
            value.parse::<SocketAddr>("bad_value", "listen = \"127.0.0.1:8080\"", read)
        }
    };
    section.not_available(
        Level::Error,
        "tls",
        "let a proxy (Caddy, nginx, Traefik) speak TLS in front and set behind_proxy = true",
    );
    let behind_proxy = section.value("behind_proxy").and_then(|value| value.boolean()).unwrap_or(false);
    if let (Some(address), Some(value)) = (listen, section.value("listen"))
        && !address.ip().is_loopback()
        && !behind_proxy
    {
        value.error(
            "public_bind",
            format!("{address} can be reached from outside, and requests would travel unencrypted"),
            "listen on 127.0.0.1, or set behind_proxy = true if a proxy with TLS stands in front",
        );
    }
    let proxies = match section.value("trusted_proxies") {
        Some(value) => sources::networks(&value).map(Proxies::new).unwrap_or_default(),
        None if behind_proxy => Proxies::nearby(),
        None => Proxies::default(),
    };
    let public_url = section.text("public_url").filter(|url| !url.is_empty());
    section.finish();
    Server { listen, public_url, proxies }
}

fn storage(root: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    let default = folder.join("retoma.db");
    let Some(section) = root.section("storage") else { return Some(default) };
    let path = match section.value("url") {
        None => Some(default),
        Some(value) => match value.text() {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                value.error(
                    "not_available",
                    format!("{}: PostgreSQL is not available in this version", value.name),
                    "url = \"sqlite://retoma.db\"",
                );
                None
            }
            Some(url) => match url.strip_prefix("sqlite://").filter(|path| !path.is_empty()) {
                Some(path) => Some(folder.join(path)),
                None => {
                    value.error(
                        "bad_url",
                        format!("{}: {url:?} is no storage", value.name),
                        "url = \"sqlite://retoma.db\"",
                    );
                    None
                }
            },
            None => None,
        },
    };
    section.finish();
    path
}

struct Defaults {
    timezone: TimeZone,
    locale: String,
    channel: Option<ChannelName>,
}

fn defaults(root: &Section<'_>, channels: &[String]) -> Defaults {
    let only = match channels {
        [only] => Some(ChannelName::new(only)),
        _ => None,
    };
    let section = root.section("defaults");
    let zone = section.as_ref().and_then(timezone);
    let locale = section.as_ref().and_then(|section| section.value("locale"));
    let locale = locale.and_then(|value| value.word(&[("pt-BR", "pt-BR"), ("en", "en")])).unwrap_or("pt-BR");
    let channel = section.as_ref().and_then(|section| known_channel(section, channels)).or(only);
    if let Some(section) = section {
        section.finish();
    }
    let timezone =
        zone.unwrap_or_else(|| TimeZone::get("America/Sao_Paulo").expect("the bundled zones have São Paulo"));
    Defaults { timezone, locale: locale.to_owned(), channel }
}

fn timezone(section: &Section<'_>) -> Option<TimeZone> {
    section.value("timezone")?.parse("bad_timezone", "timezone = \"America/Sao_Paulo\"", |name| {
        TimeZone::get(name).map_err(|_| format!("there is no time zone {name:?}"))
    })
}

/// The channel that a table names under `channel`, if it is one of those configured.
fn known_channel(section: &Section<'_>, channels: &[String]) -> Option<ChannelName> {
    let value = section.value("channel")?;
    let written = value.text()?;
    if channels.contains(&written) {
        return Some(ChannelName::from(written));
    }
    let fix = match channels {
        [] => format!("add a table [channels.{written}]"),
        channels => suggest(&written, channels.iter().map(String::as_str)),
    };
    value.error("unknown_channel", format!("{}: there is no channel {written:?}", value.name), fix);
    None
}

impl Names {
    /// The channel of a source: the one it names, else the default.
    fn channel(&self, section: &Section<'_>) -> Option<ChannelName> {
        if section.has("channel") {
            return known_channel(section, &self.channels);
        }
        self.default_channel.clone()
    }
}

/// `[outbound]`: what may be reached, and whom we believe there.
#[derive(Default)]
struct Outbound {
    allow: Vec<String>,
    ca: Vec<Authority>,
}

fn outbound(root: &Section<'_>, folder: &Path) -> Outbound {
    let Some(section) = root.section("outbound") else { return Outbound::default() };
    let read = |value: &document::Value<'_>| {
        value.parse("bad_value", "allow = [\"10.0.0.5:8080\"]", |text| {
            let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
            let fine = !host.is_empty() && !text.contains('/') && !text.contains(char::is_whitespace);
            if fine { Ok(text.to_owned()) } else { Err(format!("{text:?} is no host:port")) }
        })
    };
    let allow = section.value("allow").and_then(|value| value.list());
    let allow = allow.map(|list| list.iter().filter_map(read).collect()).unwrap_or_default();
    let ca =
        section.value("ca").map(|value| if value.is_text() { vec![value] } else { value.list().unwrap_or_default() });
    let read = |value: &document::Value<'_>| {
        value.parse("bad_certificate", "ca = \"/etc/ssl/minha-ca.pem\"  # certificates in PEM form", |path| {
            let pem = std::fs::read(folder.join(path)).map_err(|error| format!("{path:?} cannot be read: {error}"))?;
            Authority::read(&pem).map_err(|why| format!("{path:?}: {why}"))
        })
    };
    let ca = ca.unwrap_or_default().iter().filter_map(read).flatten().collect();
    section.finish();
    Outbound { allow, ca }
}

/// Parts of the contract that come with later versions. A warning where leaving them out changes no promise that the rest
/// makes, an error where it would.
fn later(root: &Section<'_>) {
    root.not_available(Level::Warning, "alerts", "watch /healthz/pipeline from outside meanwhile; no alert is sent");
    root.not_available(Level::Error, "tenants", "run one installation per seller meanwhile");
}

#[cfg(test)]
mod tests;
