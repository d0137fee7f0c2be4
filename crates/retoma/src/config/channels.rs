//! `[channels.NAME]`: where messages are delivered to.

use std::net::IpAddr;
use std::time::Duration;

use retoma_core::finding::Level;
use retoma_core::ids::{ChannelName, Tenant};
use retoma_core::pace::Rate;
use retoma_core::task::OnAmbiguous;
use retoma_engine::address_guard::AddressGuard;
use retoma_providers::outbound::{Channel, ChannelKind};

use super::document::{Section, Value};
use super::secrets::Secrets;
use super::sources::good_name;
use super::{port_of, values};

/// Longer than Evolution's own limits on busy hours (FC-32: answers after 33 s were seen).
const DEADLINE: Duration = Duration::from_secs(45);
const CONCURRENCY: u32 = 8;

/// Reads one `[channels.NAME]`.
pub(super) fn read(name: &str, value: &Value<'_>, secrets: &Secrets<'_>, guard: &AddressGuard) -> Option<Channel> {
    let section = value.section()?;
    if !good_name(name) {
        value.error(
            "bad_name",
            format!("{name:?} cannot be the name of a channel"),
            "use lower-case letters, digits, '-' and '_'",
        );
        return None;
    }
    let kind = kind_of(&section, secrets, guard);
    let on_ambiguous = section.value("on_ambiguous").and_then(|value| {
        let words: Vec<_> = OnAmbiguous::ALL.iter().map(|policy| (policy.as_str(), *policy)).collect();
        value.word(&words)
    });
    let rate = section.value("rate").and_then(|value| value.parse("bad_rate", "rate = \"20/s\"", values::rate));
    let pair_rate =
        section.value("pair_rate").and_then(|value| value.parse("bad_rate", "pair_rate = \"10/m\"", values::rate));
    let deadline = section
        .value("timeout")
        .and_then(|value| value.parse("bad_duration", "timeout = \"45s\"", values::duration))
        .unwrap_or(DEADLINE);
    let concurrency = section.value("concurrency").and_then(|value| value.count(1)).unwrap_or(CONCURRENCY);
    section.not_available(Level::Error, "tenant", "remove it: everything belongs to the tenant \"default\"");
    section.finish();
    Some(Channel {
        name: ChannelName::new(name),
        tenant: Tenant::default(),
        kind: kind?,
        on_ambiguous,
        deadline,
        concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX),
        rate: rate.map(|(count, per)| Rate { count, per }),
        // As a gap between two: to one person, an average is no help.
        pair_every: pair_rate.map(|(count, per)| per / count),
    })
}

fn kind_of(section: &Section<'_>, secrets: &Secrets<'_>, guard: &AddressGuard) -> Option<ChannelKind> {
    #[derive(Clone, Copy)]
    enum Word {
        Evolution,
        Http,
        Later,
    }
    let Some(provider) = section.value("provider") else {
        section.missing("provider", "\"evolution\"");
        return None;
    };
    let word = provider.word(&[
        ("evolution", Word::Evolution),
        ("http", Word::Http),
        ("whatsapp_cloud", Word::Later),
        ("zapi", Word::Later),
        ("telegram", Word::Later),
        ("smtp", Word::Later),
    ])?;
    match word {
        Word::Evolution => {
            let base_url = address(section, "base_url", "\"http://127.0.0.1:8081\"", guard);
            let instance = section.required_text("instance", "\"the instance's name at Evolution\"");
            let api_key = match section.value("api_key") {
                Some(value) => secrets.read(&value),
                None => {
                    section.missing("api_key", "{ file = \"secrets/evolution-key\" }");
                    None
                }
            };
            Some(ChannelKind::Evolution { base_url: base_url?, instance: instance?, api_key: api_key? })
        }
        Word::Http => {
            let url = address(section, "url", "\"https://n8n.example.com/webhook/retoma\"", guard);
            let secret = section.value("secret").map(|value| secrets.read(&value));
            if secret.is_none() {
                section.warning(
                    "unsigned",
                    format!("{} has no secret: the receiver cannot tell who sent a request", section.name),
                    "add secret = { file = \"secrets/NAME\" }",
                );
            }
            Some(ChannelKind::Http { url: url?, secret: secret.flatten() })
        }
        Word::Later => {
            provider.error(
                "not_available",
                format!("{} {:?} is not available in this version", provider.name, provider.text().unwrap_or_default()),
                "use provider = \"evolution\" or \"http\"",
            );
            for key in ["phone_number_id", "token", "base_url", "instance", "api_key", "chat", "client_token"] {
                section.value(key); // known to that provider, so not unknown keys
            }
            None
        }
    }
}

/// A destination: `http` or `https`, without credentials in it, and past the address guard where that can be told already.
fn address(section: &Section<'_>, key: &'static str, example: &str, guard: &AddressGuard) -> Option<String> {
    let Some(value) = section.value(key) else {
        section.missing(key, example);
        return None;
    };
    let uri: http::Uri = value.parse("bad_url", example, |text| {
        let uri: http::Uri = text.parse().map_err(|_| "not an address".to_owned())?;
        let web = matches!(uri.scheme_str(), Some("http" | "https"));
        match uri.authority() {
            Some(authority) if web && !authority.as_str().contains('@') => Ok(uri),
            Some(_) if web => Err("credentials do not belong into an address".to_owned()),
            _ => Err("an address starts with http:// or https://".to_owned()),
        }
    })?;
    let host = uri.host().unwrap_or_default();
    let port = port_of(&uri);
    let literal = match host.trim_start_matches('[').trim_end_matches(']') {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        bare => bare.parse().ok(),
    };
    if let Some(why) = literal.and_then(|address| guard.judge(host, port, address).err()) {
        value.warning(
            "outbound_refused",
            format!("{} leads to {host}:{port}: {why}", value.name),
            format!("add \"{host}:{port}\" to [outbound] allow"),
        );
    }
    Some(value.text()?.trim_end_matches('/').to_owned())
}
