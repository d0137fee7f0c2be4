//! HMAC signatures over the raw bytes, and what a wrong one tells.
//!
//! The digest is computed over exactly what came: a body that was parsed and written again does not verify, whatever its
//! meaning (FC-43). Only after a failure, and only for small bodies, a few likely mistakes are tried to name the one made.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{KeyInit, Mac};
use subtle::{Choice, ConstantTimeEq};

use super::auth::{count, header_values};
use super::{Hmac, HmacAlgorithm, HmacEncoding, Request, Secret, SignaturePlace, body, json, respell};

/// Signatures of one request that are tried: senders put several side by side while they rotate.
const SIGNATURES_MAX: usize = 8;
/// Bodies beyond this are not diagnosed: a stranger must not buy a dozen digests of 4 MiB with one request.
const DIAGNOSED_BYTES_MAX: usize = 64 << 10;

/// Checks a signature, then the age of its timestamp. The error is for the operator.
pub(super) fn verify(scheme: &Hmac, request: &Request) -> Result<(), String> {
    let values = scheme.place.values(request);
    let place = &scheme.place;
    if values.is_empty() {
        return Err(missing(scheme, request));
    }
    let texts = signatures(&values, &scheme.prefix);
    if texts.is_empty() && values.iter().any(|value| value.trim() == scheme.prefix) {
        return Err(format!("{place} holds no signature"));
    }
    if texts.is_empty() {
        return Err(format!("{place} does not start with {:?}{}", scheme.prefix, looks_like(&values[0])));
    }
    let stamp = timestamp(scheme, request)?;
    let presented: Vec<Vec<u8>> = texts.iter().filter_map(|text| decode(scheme.encoding, text)).collect();
    let expected_len = scheme.algorithm.digest_len();
    if !presented.iter().any(|bytes| bytes.len() == expected_len) {
        return Err(format!(
            "{place} holds no {} in {}{}",
            scheme.algorithm.name(),
            scheme.encoding.name(),
            looks_like(&texts[0])
        ));
    }
    let filled = fill(&scheme.content, stamp.as_deref(), request);
    let pieces = around_body(&filled, &request.body);
    if !matches(scheme.algorithm, &scheme.secrets, &pieces, &presented) {
        return Err(diagnose(scheme, request, stamp.as_deref(), &texts));
    }
    fresh(scheme, stamp.as_deref(), request.received_at.as_second())
}

impl SignaturePlace {
    fn values(&self, request: &Request) -> Vec<String> {
        match self {
            SignaturePlace::Header(name) => header_values(&request.headers, name)
                .into_iter()
                .map(|value| String::from_utf8_lossy(&value).into_owned())
                .collect(),
            SignaturePlace::Query(name) => {
                let found = body::pairs(&request.query).filter(|(found, _)| found == name);
                found.map(|(_, value)| value).take(SIGNATURES_MAX).collect()
            }
        }
    }

    fn is_header(&self, name: &str) -> bool {
        matches!(self, SignaturePlace::Header(own) if own.eq_ignore_ascii_case(name))
    }
}

impl std::fmt::Display for SignaturePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SignaturePlace::Header(name) => write!(f, "header {name}"),
            SignaturePlace::Query(name) => write!(f, "query parameter {name}"),
        }
    }
}

impl HmacAlgorithm {
    fn digest_len(self) -> usize {
        match self {
            HmacAlgorithm::Sha1 => 20,
            HmacAlgorithm::Sha256 => 32,
            HmacAlgorithm::Sha512 => 64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            HmacAlgorithm::Sha1 => "sha1",
            HmacAlgorithm::Sha256 => "sha256",
            HmacAlgorithm::Sha512 => "sha512",
        }
    }

    /// The signature of some pieces, one after the other.
    pub(crate) fn sign(self, key: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
        fn run<M: Mac + KeyInit>(key: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
            pieces.iter().for_each(|piece| mac.update(piece));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            HmacAlgorithm::Sha1 => run::<hmac::Hmac<sha1::Sha1>>(key, pieces),
            HmacAlgorithm::Sha256 => run::<hmac::Hmac<sha2::Sha256>>(key, pieces),
            HmacAlgorithm::Sha512 => run::<hmac::Hmac<sha2::Sha512>>(key, pieces),
        }
    }
}

impl HmacEncoding {
    fn name(self) -> &'static str {
        match self {
            HmacEncoding::Hex => "hex",
            HmacEncoding::Base64 => "base64",
        }
    }
}

/// The signatures in the header's values, without their prefix. A value may be a list (`t=..,v1=..,v1=..`); items of another
/// prefix are other schemes and are passed over.
fn signatures(values: &[String], prefix: &str) -> Vec<String> {
    let whole = values.iter().filter(|value| !value.contains([',', ' '])).map(String::as_str);
    let items = values.iter().filter(|value| value.contains([',', ' '])).flat_map(|value| value.split([',', ' ']));
    whole
        .chain(items)
        .filter_map(|item| item.trim().strip_prefix(prefix))
        .filter(|item| !item.is_empty())
        .take(SIGNATURES_MAX)
        .map(str::to_owned)
        .collect()
}

fn decode(encoding: HmacEncoding, text: &str) -> Option<Vec<u8>> {
    match encoding {
        HmacEncoding::Hex => hex::decode(text).ok(),
        HmacEncoding::Base64 => {
            let bare = text.trim_end_matches('=');
            STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare)).ok()
        }
    }
}

/// The timestamp's text, where the scheme signs one.
fn timestamp(scheme: &Hmac, request: &Request) -> Result<Option<String>, String> {
    let Some(name) = &scheme.timestamp_header else {
        return match scheme.content.contains("{timestamp}") {
            true => Err("the scheme signs {timestamp}, and no timestamp header is configured".to_owned()),
            false => Ok(None),
        };
    };
    let values = header_values(&request.headers, name);
    let value = values.first().map(|value| String::from_utf8_lossy(value).into_owned());
    // `t=1790000000,v1=..`: both in one header.
    let value = match value {
        Some(value) if scheme.place.is_header(name) => stamp_in_list(&value),
        other => other,
    };
    // The signature covers the timestamp, so that it may be taken from wherever it stands.
    match value.or_else(|| stamp_elsewhere(scheme, request)) {
        Some(value) => Ok(Some(value)),
        None => Err(format!("header {name} carries no timestamp")),
    }
}

/// The timestamp in the places where senders put it.
fn stamp_elsewhere(scheme: &Hmac, request: &Request) -> Option<String> {
    let beside = scheme.place.values(request).into_iter().find_map(|value| stamp_in_list(&value));
    let names =
        ["x-timestamp", "x-signature-timestamp", "x-request-timestamp", "x-webhook-timestamp", "webhook-timestamp"];
    let own = || names.iter().flat_map(|name| header_values(&request.headers, name)).next();
    beside.or_else(|| own().map(|value| String::from_utf8_lossy(&value).into_owned()))
}

/// `t=1790000000,v1=..`: the timestamp beside the signature.
fn stamp_in_list(value: &str) -> Option<String> {
    value
        .split([',', ' '])
        .map(str::trim)
        .find_map(|item| item.strip_prefix("t=").or_else(|| item.strip_prefix("ts=")).map(str::to_owned))
}

/// A piece of what is signed.
enum Piece {
    Text(Vec<u8>),
    Body,
}

/// What is signed: the template with its places filled in. The body stays where it is.
fn fill(template: &str, stamp: Option<&str>, request: &Request) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, name, after)) = next_place(rest) {
        pieces.push(Piece::Text(before.as_bytes().to_vec()));
        rest = after;
        pieces.push(match name.split_once(':').unwrap_or((name, "")) {
            ("body", _) => Piece::Body,
            ("timestamp", _) => Piece::Text(stamp.unwrap_or_default().into()),
            ("method", _) => Piece::Text(b"POST".to_vec()),
            ("path", _) => Piece::Text(request.path.clone().into_bytes()),
            ("header", name) => {
                Piece::Text(header_values(&request.headers, name).into_iter().next().unwrap_or_default())
            }
            ("query", name) => {
                let value = body::pairs(&request.query).find(|(found, _)| found == name).map(|(_, value)| value);
                Piece::Text(value.unwrap_or_default().into_bytes())
            }
            // No place of ours: text like any other.
            _ => Piece::Text(format!("{{{name}}}").into_bytes()),
        });
    }
    pieces.push(Piece::Text(rest.as_bytes().to_vec()));
    pieces
}

/// The next `{..}` of a template: what stands before it, its name, what follows.
fn next_place(template: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = template.split_once('{')?;
    let (name, after) = from.split_once('}')?;
    Some((before, name, after))
}

/// The places of a template that nothing can fill, for whoever checks a configuration.
pub fn unknown_places(template: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut rest = template;
    while let Some((_, name, after)) = next_place(rest) {
        rest = after;
        let known = match name.split_once(':') {
            None => matches!(name, "body" | "timestamp" | "method" | "path"),
            Some((kind, of)) => matches!(kind, "header" | "query") && !of.is_empty(),
        };
        if !known {
            unknown.push(name.to_owned());
        }
    }
    unknown
}

fn around_body<'a>(pieces: &'a [Piece], body: &'a [u8]) -> Vec<&'a [u8]> {
    let bytes = |piece: &'a Piece| match piece {
        Piece::Text(text) => text.as_slice(),
        Piece::Body => body,
    };
    pieces.iter().map(bytes).collect()
}

fn matches(algorithm: HmacAlgorithm, secrets: &[Secret], pieces: &[&[u8]], presented: &[Vec<u8>]) -> bool {
    let mut found = Choice::from(0);
    for secret in secrets.iter().filter(|secret| !secret.0.is_empty()) {
        let right = algorithm.sign(&secret.0, pieces);
        for bytes in presented {
            found |= right.as_slice().ct_eq(bytes.as_slice());
        }
    }
    found.into()
}

fn fresh(scheme: &Hmac, stamp: Option<&str>, now: i64) -> Result<(), String> {
    let (Some(tolerance), Some(stamp)) = (scheme.tolerance, stamp) else { return Ok(()) };
    let seconds = match (stamp.trim().parse::<i64>(), stamp.trim().parse::<jiff::Timestamp>()) {
        // Some senders count milliseconds; as seconds such a number is far beyond the year 5000.
        (Ok(number), _) if number.unsigned_abs() >= 100_000_000_000 => number.div_euclid(1000),
        (Ok(number), _) => number,
        (_, Ok(instant)) => instant.as_second(),
        _ => return Err("the timestamp is neither a number of seconds since 1970 nor RFC 3339".to_owned()),
    };
    aged(seconds, tolerance, now)
}

/// Whether something signed at `seconds` is neither older nor further ahead than `tolerance`.
pub(super) fn aged(seconds: i64, tolerance: std::time::Duration, now: i64) -> Result<(), String> {
    let tolerance = i64::try_from(tolerance.as_secs()).unwrap_or(i64::MAX);
    match now.saturating_sub(seconds) {
        age if age > tolerance => {
            Err(format!("stale by {} s: signed {age} s ago, {tolerance} s are allowed", age - tolerance))
        }
        age if age < -tolerance => {
            Err(format!("signed {} s in the future, {tolerance} s are allowed: is a clock wrong?", age.unsigned_abs()))
        }
        _ => Ok(()),
    }
}

fn missing(scheme: &Hmac, request: &Request) -> String {
    let other = request
        .headers
        .keys()
        .map(http::HeaderName::as_str)
        .find(|name| ["signature", "hmac", "hub-sig"].iter().any(|word| name.contains(word)));
    match other {
        Some(other) => format!("{} is missing; the request has {other}", scheme.place),
        None => format!("{} is missing; the request is not signed", scheme.place),
    }
}

/// What another scheme's signature looks like, by its prefix, alphabet and length.
fn looks_like(text: &str) -> String {
    let bare = text.rsplit_once('=').filter(|(_, after)| !after.is_empty()).map_or(text, |(_, after)| after);
    for name in ["sha1", "sha256", "sha512"] {
        if text.starts_with(&format!("{name}=")) {
            return format!("; it looks like {name}");
        }
    }
    let algorithm = |len: usize| match len {
        20 => Some("sha1"),
        32 => Some("sha256"),
        64 => Some("sha512"),
        _ => None,
    };
    if let Some(name) = hex::decode(bare).ok().and_then(|bytes| algorithm(bytes.len())) {
        return format!("; it looks like {name} in hex");
    }
    if let Some(name) = STANDARD.decode(text).ok().and_then(|bytes| algorithm(bytes.len())) {
        return format!("; it looks like {name} in base64");
    }
    String::new()
}

/// Names the likely mistake behind a signature of the right form that does not verify.
fn diagnose(scheme: &Hmac, request: &Request, stamp: Option<&str>, texts: &[String]) -> String {
    let wrong = format!("the signature matches none of {}", count(&scheme.secrets));
    if request.body.len() > DIAGNOSED_BYTES_MAX {
        return format!("{wrong}: wrong secret, or the body was altered on its way");
    }
    let presented: Vec<Vec<u8>> = texts.iter().filter_map(|text| decode(scheme.encoding, text)).collect();
    let tries = |template: &str, body: &[u8], secrets: &[Secret]| {
        matches(scheme.algorithm, secrets, &around_body(&fill(template, stamp, request), body), &presented)
    };
    let trimmed: Vec<Secret> = scheme.secrets.iter().map(|secret| Secret(secret.0.trim_ascii().to_vec())).collect();
    if tries(&scheme.content, &request.body, &trimmed) {
        return format!("{wrong}; it would match if the secret had no spaces or line break around it");
    }
    let decoded: Vec<Secret> = scheme.secrets.iter().flat_map(decoded_forms).collect();
    if tries(&scheme.content, &request.body, &decoded) {
        return format!("{wrong}; it would match if the secret were decoded from base64 or hex first");
    }
    let altered = alterations(&request.body);
    if let Some((how, _)) = altered.iter().find(|(_, body)| tries(&scheme.content, body, &scheme.secrets)) {
        return format!("the body was altered on its way: {how}");
    }
    for template in ["{body}", "{timestamp}.{body}", "{timestamp}{body}", "{timestamp}:{body}"] {
        let possible = stamp.is_some() || !template.contains("{timestamp}");
        if template != scheme.content && possible && tries(template, &request.body, &scheme.secrets) {
            return format!("another scheme: the signature matches content = {template:?}");
        }
    }
    format!("{wrong}: wrong secret, or the body was altered on its way")
}

/// What a secret may stand for where its owner took the spelling for the bytes.
fn decoded_forms(secret: &Secret) -> Vec<Secret> {
    let text = String::from_utf8_lossy(&secret.0);
    let bare = text.strip_prefix("whsec_").unwrap_or(&text);
    [STANDARD.decode(bare).ok(), hex::decode(bare).ok()].into_iter().flatten().map(Secret).collect()
}

/// Bodies that this one may have been before something on the way touched it.
fn alterations(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut bodies = vec![
        ("something added a line break at its end", body.trim_ascii_end().to_vec()),
        ("something cut the line break at its end", [body, b"\n"].concat()),
        ("something cut its byte order mark", [b"\xef\xbb\xbf", body].concat()),
    ];
    if json::parse(body).is_ok()
        && let Ok(text) = std::str::from_utf8(body)
    {
        let respelled = respell::STYLES.iter().map(|style| respell::respell(text, *style).into_bytes());
        bodies.extend(respelled.map(|body| ("something parsed the JSON and wrote it again", body)));
    }
    bodies
}

#[cfg(test)]
mod tests;
