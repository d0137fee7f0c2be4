//! How a source's callers prove themselves (A3), as the configuration says it.

use retoma_core::finding::Level;
use retoma_providers::inbound::{Auth, Hmac, HmacAlgorithm, HmacEncoding};

use super::document::{Section, Value};
use super::secrets::Secrets;
use super::values;

const EXAMPLE: &str = "{ header = \"X-Token\", secret = { file = \"secrets/token\" } }";

/// `auth = {..}` of a source that has no scheme of its own.
pub(super) fn required(section: &Section<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    match section.value("auth") {
        Some(value) => read(&value, secrets),
        None => {
            section.missing("auth", &format!("{EXAMPLE}  # or auth = \"none\" to let anybody in"));
            None
        }
    }
}

/// Hotmart sends its token in a header, older webhooks in the body.
pub(super) fn hotmart(section: &Section<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    if let Some(value) = section.value("auth") {
        value.error(
            "bad_value",
            format!("{} is not needed", value.name),
            "Hotmart proves itself by secret = {..} (the HOTTOK)",
        );
    }
    let name = "x-hotmart-hottok".to_owned();
    Some(Auth::Header { name, secrets: secrets.of(section)?, or_body: Some("/hottok".into()) })
}

fn read(value: &Value<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    if value.is_text() {
        return value.word(&[("none", ())]).map(|()| unsigned(value));
    }
    let section = value.section()?;
    for later in ["jwt", "standard_webhooks", "basic", "body"] {
        section.not_available(Level::Error, later, "use header, query or hmac");
    }
    let forms = (section.value("header"), section.value("query"), section.value("hmac"), section.value("none"));
    let auth = match forms {
        (Some(name), None, None, None) => {
            let name = header_name(&name);
            secrets.of(&section).and_then(|secrets| Some(Auth::Header { name: name?, secrets, or_body: None }))
        }
        (None, Some(name), None, None) => {
            let name = name.text();
            secrets.of(&section).and_then(|secrets| Some(Auth::Query { name: name?, secrets }))
        }
        (None, None, Some(hmac), None) => hmac_of(&hmac, &section, secrets),
        (None, None, None, Some(none)) => match none.boolean() {
            Some(true) => Some(unsigned(value)),
            _ => None,
        },
        (None, None, None, None) if section.has_any(&["jwt", "standard_webhooks", "basic", "body"]) => {
            // Already reported; the secret beside it is no unknown key.
            section.value("secret");
            section.value("secrets");
            None
        }
        _ => {
            value.error("bad_value", format!("{} needs exactly one of header, query, hmac, none", value.name), EXAMPLE);
            section.value("secret");
            section.value("secrets");
            None
        }
    };
    section.finish();
    auth
}

fn unsigned(value: &Value<'_>) -> Auth {
    value.warning(
        "unsigned",
        format!("{}: anybody who knows the address can send events", value.name),
        format!("write {EXAMPLE} if the sender can add a header"),
    );
    Auth::None
}

fn header_name(value: &Value<'_>) -> Option<String> {
    value.parse("bad_value", "header = \"X-Token\"", |text| {
        let valid = text.parse::<http::HeaderName>().is_ok();
        if valid { Ok(text.to_owned()) } else { Err(format!("{text:?} is no header name")) }
    })
}

fn hmac_of(value: &Value<'_>, beside: &Section<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    let section = value.section()?;
    let header = match section.value("header") {
        Some(name) => header_name(&name),
        None => {
            section.missing("header", "\"X-Signature\"");
            None
        }
    };
    let algorithm = section.value("algorithm").map_or(Some(HmacAlgorithm::Sha256), |value| {
        value.word(&[
            ("sha1", HmacAlgorithm::Sha1),
            ("sha256", HmacAlgorithm::Sha256),
            ("sha512", HmacAlgorithm::Sha512),
        ])
    });
    let encoding = section.value("encoding").map_or(Some(HmacEncoding::Hex), |value| {
        value.word(&[("hex", HmacEncoding::Hex), ("base64", HmacEncoding::Base64)])
    });
    let content = section.text("content").unwrap_or_else(|| "{body}".to_owned());
    if !content.contains("{body}") {
        section.error(
            "bad_value",
            format!("{}.content leaves the body unsigned", section.name),
            "write content = \"{timestamp}.{body}\" or \"{body}\"",
        );
    }
    let timestamp_header = match section.value("timestamp_header") {
        Some(value) => header_name(&value),
        None if content.contains("{timestamp}") => {
            section.warning(
                "timestamp_header",
                format!("{} does not say where {{timestamp}} is: X-Timestamp is read", section.name),
                "add timestamp_header = \"X-Timestamp\" (the signature's own header where it holds t=..)",
            );
            Some("X-Timestamp".to_owned())
        }
        None => None,
    };
    let tolerance = section
        .value("tolerance")
        .and_then(|value| value.parse("bad_duration", "tolerance = \"5m\"", values::duration));
    let prefix = section.text("prefix").unwrap_or_default();
    section.finish();
    Some(Auth::Hmac(Hmac {
        header: header?,
        algorithm: algorithm?,
        encoding: encoding?,
        prefix,
        content,
        timestamp_header,
        tolerance,
        secrets: secrets.of(beside)?,
    }))
}
