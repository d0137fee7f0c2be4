//! Standard Webhooks 1.0: three headers, `{id}.{timestamp}.{body}`, HMAC-SHA256 in base64, several signatures side by side.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use subtle::{Choice, ConstantTimeEq};

use super::auth::{count, header_values};
use super::{HmacAlgorithm, Request, Secret, hmac};

/// Names of the same three headers.
const FAMILIES: [&str; 2] = ["webhook", "svix"];
/// Signatures of one request that are tried.
const SIGNATURES_MAX: usize = 8;

/// The id of a delivery, the same for every attempt of it.
pub(super) fn id_of(request: &Request) -> Option<String> {
    let values = FAMILIES.into_iter().flat_map(|family| header_values(&request.headers, &format!("{family}-id")));
    let found = values.map(|value| String::from_utf8_lossy(&value).into_owned());
    found.map(|id| id.trim().to_owned()).find(|id| !id.is_empty())
}

/// Checks a signature, then its age. The error is for the operator.
pub(super) fn verify(secrets: &[Secret], tolerance: Duration, request: &Request) -> Result<(), String> {
    let of = |family: &str, what: &str| {
        let values = header_values(&request.headers, &format!("{family}-{what}"));
        values.first().map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let family = FAMILIES.into_iter().find(|family| of(family, "signature").is_some());
    let Some(family) = family else {
        return Err("header webhook-signature is missing; the request is not signed".to_owned());
    };
    let read = |what: &str| of(family, what).ok_or_else(|| format!("header {family}-{what} is missing"));
    let (id, stamp, signatures) = (read("id")?, read("timestamp")?, read("signature")?);
    let presented: Vec<Vec<u8>> = signatures
        .split(' ')
        // Other versions are other schemes (`v1a` is a public key's) and are passed over.
        .filter_map(|item| item.trim().strip_prefix("v1,"))
        .filter_map(|text| STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok())
        .take(SIGNATURES_MAX)
        .collect();
    if presented.is_empty() {
        return Err(format!("header {family}-signature holds no v1 signature in base64"));
    }
    let pieces = [id.as_bytes(), b".", stamp.as_bytes(), b".", &request.body];
    if !signed(secrets.iter().map(key_of), &pieces, &presented) {
        let wrong = format!("the signature matches none of {}", count(secrets));
        let as_text = signed(secrets.iter().map(|secret| secret.0.clone()), &pieces, &presented);
        return Err(match as_text {
            true => {
                format!("{wrong}; the sender uses the secret's text instead of the bytes that its base64 stands for")
            }
            false => format!("{wrong}: wrong secret, or the body was altered on its way"),
        });
    }
    let Ok(seconds) = stamp.trim().parse::<i64>() else {
        return Err("the timestamp is no number of seconds since 1970".to_owned());
    };
    hmac::aged(seconds, tolerance, request.received_at.as_second())
}

/// The key that a secret stands for: base64 behind `whsec_`. A secret of another form is taken as it stands.
fn key_of(secret: &Secret) -> Vec<u8> {
    let text = String::from_utf8_lossy(&secret.0);
    let text = text.trim();
    let bare = text.strip_prefix("whsec_").unwrap_or(text);
    STANDARD.decode(bare).unwrap_or_else(|_| secret.0.clone())
}

fn signed(keys: impl Iterator<Item = Vec<u8>>, pieces: &[&[u8]], presented: &[Vec<u8>]) -> bool {
    let mut found = Choice::from(0);
    for key in keys.filter(|key| !key.is_empty()) {
        let right = HmacAlgorithm::Sha256.sign(&key, pieces);
        for bytes in presented {
            found |= right.as_slice().ct_eq(bytes.as_slice());
        }
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::shown::request;

    const BODY: &str = r#"{"type":"payment.approved","timestamp":"2026-01-10T12:00:00Z","data":{"id":"tx_0001"}}"#;
    const RIGHT: &str = "v1,jkIGD80m1/NBxJvuxGQ7vL/JhL8O4OoEeEgfKYOohCU=";
    const SECRET: &str = "whsec_Y2hhdmUtZGUtdGVzdGUtc3RhbmRhcmQtd2ViaG9va3M=";

    // A3: the specification's form, with an invented vector.
    #[test]
    fn signatures_are_checked_over_the_raw_bytes_within_their_tolerance() {
        let none = "the signature matches none of 2 secrets: wrong secret, or the body was altered on its way";
        let twice = format!("v1a,AAAA v1,AAAA {RIGHT}");
        /// Family of headers, signature, body, age in seconds, and what is said.
        type Case<'a> = (&'a str, &'a str, &'a str, i64, Result<(), &'a str>);
        let cases: &[Case<'_>] = &[
            ("webhook", RIGHT, BODY, 0, Ok(())),
            ("svix", RIGHT, BODY, 0, Ok(())),
            ("webhook", &twice, BODY, 299, Ok(())),
            ("webhook", RIGHT, BODY, -299, Ok(())),
            ("webhook", RIGHT, BODY, 310, Err("stale by 10 s: signed 310 s ago, 300 s are allowed")),
            ("webhook", RIGHT, BODY, -310, Err("signed 310 s in the future, 300 s are allowed: is a clock wrong?")),
            ("webhook", RIGHT, "{}", 0, Err(none)),
            ("webhook", "v1,AAAA", BODY, 0, Err(none)),
            ("webhook", "v2,AAAA", BODY, 0, Err("header webhook-signature holds no v1 signature in base64")),
            ("webhook", "v1,*", BODY, 0, Err("header webhook-signature holds no v1 signature in base64")),
            ("x", RIGHT, BODY, 0, Err("header webhook-signature is missing; the request is not signed")),
        ];
        let secrets = ["whsec_b3V0cmE=", SECRET].map(|text| Secret(text.into()));
        for (family, signature, body, age, expected) in cases {
            let mut request = request(body.to_string());
            request.received_at = jiff::Timestamp::from_second(1_767_960_000 + age).unwrap();
            for (what, value) in [("id", "msg_teste0001"), ("timestamp", "1767960000"), ("signature", *signature)] {
                let name: http::HeaderName = format!("{family}-{what}").parse().unwrap();
                request.headers.insert(name, value.parse().unwrap());
            }
            let got = verify(&secrets, Duration::from_secs(300), &request);
            assert_eq!(got, expected.map_err(str::to_owned), "{family} {signature} {age}");
        }
    }
}
