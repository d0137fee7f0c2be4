//! How a source's callers prove themselves (A3), as the configuration says it.

use std::time::Duration;

use retoma_core::finding::Level;
use retoma_providers::inbound::{
    Auth, Hmac, HmacAlgorithm, HmacEncoding, Path, Secret, SignaturePlace, unknown_places,
};

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

/// Meta signs every webhook with the app secret.
pub(super) fn whatsapp_cloud(section: &Section<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    if let Some(value) = section.value("auth") {
        value.error(
            "bad_value",
            format!("{} is not needed", value.name),
            "Meta proves itself by secret = {..} (the app secret); secrets = [..] while you change it",
        );
    }
    Some(Auth::Hmac(Hmac {
        place: SignaturePlace::Header("X-Hub-Signature-256".to_owned()),
        algorithm: HmacAlgorithm::Sha256,
        encoding: HmacEncoding::Hex,
        prefix: "sha256=".to_owned(),
        content: "{body}".to_owned(),
        timestamp_header: None,
        tolerance: None,
        secrets: secrets.of(section)?,
    }))
}

/// The forms, of which a source has exactly one.
const FORMS: [&str; 8] = ["header", "query", "body", "path", "basic", "hmac", "standard_webhooks", "none"];

fn read(value: &Value<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    if value.is_text() {
        return value.word(&[("none", ())]).map(|()| unsigned(value));
    }
    let section = value.section()?;
    section.not_available(Level::Error, "jwt", "use header, basic, hmac or standard_webhooks");
    let mut forms = FORMS.into_iter().filter_map(|form| Some((form, section.value(form)?)));
    let auth = match (forms.next(), forms.next()) {
        (Some((form, of)), None) => form_of(form, &of, value, &section, secrets),
        (None, _) if section.has("jwt") => None, // already reported
        _ => {
            value.error("bad_value", format!("{} needs exactly one of {}", value.name, FORMS.join(", ")), EXAMPLE);
            None
        }
    };
    // Whatever became of it, the secret beside it is no unknown key.
    section.value("secret");
    section.value("secrets");
    section.finish();
    auth
}

fn form_of(form: &str, of: &Value<'_>, auth: &Value<'_>, beside: &Section<'_>, secrets: &Secrets<'_>) -> Option<Auth> {
    match form {
        "none" => return of.boolean().filter(|none| *none).map(|_| unsigned(auth)),
        "hmac" => return hmac_of(of, beside, secrets),
        _ => {}
    }
    // Both are read, so that both are reported.
    let known = secrets.of(beside);
    match form {
        "header" => header_name(of).and_then(|name| Some(Auth::Header { name, secrets: known?, or_body: None })),
        "query" => of.text().and_then(|name| Some(Auth::Query { name, secrets: known? })),
        "body" => {
            let path = of.parse("bad_jsonpath", "body = \"$.token\"", |text| {
                Path::parse(text).map_err(|error| format!("{text:?} is no JSONPath (RFC 9535): {error}"))
            });
            path.and_then(|path| Some(Auth::Body { path, secrets: known? }))
        }
        "path" => of.boolean().filter(|path| *path).and_then(|_| secret_path(auth, known?)),
        "basic" => {
            let section = of.section()?;
            let user = section.required_text("user", "\"the user's name\"");
            section.finish();
            Some(Auth::Basic { user: user?, secrets: known? })
        }
        _ => {
            let section = of.section()?;
            let tolerance = section.value("tolerance");
            let tolerance = tolerance
                .map_or(Some(FIVE_MINUTES), |v| v.parse("bad_duration", "tolerance = \"5m\"", values::duration));
            section.finish();
            Some(Auth::StandardWebhooks { tolerance: tolerance?, secrets: known? })
        }
    }
}

/// What every library of Standard Webhooks allows.
const FIVE_MINUTES: Duration = Duration::from_secs(300);
/// Shorter ones can be guessed.
const PATH_TOKEN_BYTES_MIN: usize = 16;

/// `/in/NAME/TOKEN`. The token must survive an address as it stands.
fn secret_path(value: &Value<'_>, secrets: Vec<Secret>) -> Option<Auth> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    if secrets.iter().any(|secret| secret.0.len() < PATH_TOKEN_BYTES_MIN || !secret.0.iter().all(plain)) {
        value.error(
            "bad_secret",
            format!(
                "{}: a secret that is part of an address needs {PATH_TOKEN_BYTES_MIN} or more plain characters",
                value.name
            ),
            "use letters, digits, '-' and '_', for example the output of: openssl rand -hex 24",
        );
        return None;
    }
    Some(Auth::SecretPath { secrets })
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
    let place = match (section.value("header"), section.value("query")) {
        (Some(name), None) => header_name(&name).map(SignaturePlace::Header),
        (None, Some(name)) => name.text().map(SignaturePlace::Query),
        (None, None) => {
            section.missing("header", "\"X-Signature\"  # or query = \"signature\"");
            None
        }
        (Some(_), Some(query)) => {
            query.error(
                "bad_value",
                format!("{} has both header and query", section.name),
                "keep the one that it is in",
            );
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
    for name in unknown_places(&content) {
        section.error(
            "bad_value",
            format!("{}.content: nothing is known under {{{name}}}", section.name),
            "use {body}, {timestamp}, {method}, {path}, {header:NAME} or {query:NAME}",
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
        place: place?,
        algorithm: algorithm?,
        encoding: encoding?,
        prefix,
        content,
        timestamp_header,
        tolerance,
        secrets: secrets.of(beside)?,
    }))
}
