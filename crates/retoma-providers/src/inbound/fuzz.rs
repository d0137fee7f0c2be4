//! Whatever the bytes, a request is read or refused: every fixture, bent at random places, through every provider.

use http::HeaderMap;

use super::shown::{request, source};
use super::{Auth, Hmac, HmacAlgorithm, HmacEncoding, Mapping, Path, Provider, Refusal, Secret, SignaturePlace};
use crate::rng::Rng;

const FIXTURES: [&str; 12] = [
    include_str!("../evolution/fixtures/messages.json"),
    include_str!("../evolution/fixtures/ignored.json"),
    include_str!("../evolution/fixtures/receipts.json"),
    include_str!("../evolution/fixtures/connection.json"),
    include_str!("../evolution/fixtures/odd.json"),
    include_str!("../hotmart/fixtures/events.json"),
    include_str!("../hotmart/fixtures/odd.json"),
    include_str!("../generic/fixtures/mapped.json"),
    include_str!("../whatsapp_cloud/fixtures/messages.json"),
    include_str!("../whatsapp_cloud/fixtures/ignored.json"),
    include_str!("../whatsapp_cloud/fixtures/receipts.json"),
    include_str!("../whatsapp_cloud/fixtures/odd.json"),
];

/// Pieces that parsers trip over.
const PIECES: [&[u8]; 16] = [
    b"null",
    b"-0",
    b"1e999",
    b"[]",
    b"{}",
    b"\"\"",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\x00",
    b"\xef\xbb\xbf",
    b"true",
    b"99999999999999999999",
    b"[[[[",
    b"\"@lid\"",
    b"&a=%",
];

fn bent(body: &str, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = body.as_bytes().to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(u32::try_from(bytes.len()).unwrap() + 1) as usize;
        match rng.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, rng.one_of(&PIECES).iter().copied())),
            2 => {
                // A whole value replaced, where one can be found: the shape changes, the JSON stays valid more often.
                let from = bytes[at..].iter().position(|byte| *byte == b':').map(|found| at + found + 1);
                let to = from.and_then(|from| Some(from + bytes[from..].iter().position(|b| b",}]".contains(b))?));
                if let (Some(from), Some(to)) = (from, to) {
                    drop(bytes.splice(from..to, rng.one_of(&PIECES).iter().copied()));
                }
            }
            _ => {
                let end = (at + rng.below(40) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

#[test]
fn bent_bodies_are_read_or_refused_and_presets_never_refuse_what_they_cannot_understand() {
    // FC-41, FC-47, FC-52.
    let mut rng = Rng::new(52);
    let mut sources = [Provider::Generic, Provider::Evolution, Provider::Hotmart, Provider::WhatsappCloud].map(source);
    let path = |text| Some(Path::parse(text).unwrap());
    sources[0].mapping = Some(Mapping {
        id: vec![Path::parse("$..id").unwrap()],
        kind: path("$.event"),
        contact: path("$..phone"),
        order: path("$..transaction"),
        ..Mapping::default()
    });
    sources[0].auth = Auth::Hmac(Hmac {
        place: SignaturePlace::Header("x-signature".into()),
        algorithm: HmacAlgorithm::Sha256,
        encoding: HmacEncoding::Hex,
        prefix: String::new(),
        content: "{timestamp}.{body}".into(),
        timestamp_header: Some("x-time".into()),
        tolerance: None,
        secrets: vec![Secret(b"x".to_vec())],
    });
    sources[1].instance = None;
    for fixture in FIXTURES {
        let cases: Vec<serde_json::Value> = serde_json::from_str(fixture).unwrap();
        for case in cases {
            let body = case["body"].to_string();
            for _ in 0..8 {
                let bytes = bent(&body, &mut rng);
                for source in &sources {
                    let mut request = request(bytes.clone());
                    request.headers = headers(&mut rng);
                    let _ = source.authenticate(&request);
                    let result = source.read(&request);
                    let is_preset = source.provider != Provider::Generic;
                    let is_foreign = matches!(result, Err(Refusal::Origin(_)));
                    assert!(!is_preset || is_foreign || result.is_ok(), "{result:?}");
                    assert!(result.is_err() || result.is_ok_and(|parts| !parts.is_empty()));
                }
            }
        }
    }
}

fn headers(rng: &mut Rng) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let values = ["gzip", "application/x-www-form-urlencoded", "application/json", "br", "", "t=1,v1=00", "1790000000"];
    for name in ["content-type", "content-encoding", "x-signature", "x-time"] {
        if rng.chance(0.3) {
            headers.insert(name, rng.one_of(&values).parse().unwrap());
        }
    }
    headers
}
