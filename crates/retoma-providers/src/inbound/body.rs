//! A request's bytes to one JSON value: content encoding, byte order mark, character set, form or JSON.
//!
//! Runs after the signature check, which covers the bytes as they came. Unpacking stops at the source's size limit, so
//! that a small bomb costs no more memory than a large body (FC-50).

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::{Map, Value};

use super::{Request, json};

/// How often a body may be packed. Twice happens in the field; more is an attack.
const PACKED_MAX: usize = 2;

/// Why a body gives no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Longer than the limit, packed or unpacked.
    TooLarge,
    /// An encoding that is not unpacked here.
    Encoding(String),
    /// Nothing, or white space.
    Empty,
    /// A sentence of what is wrong and where.
    Broken(String),
}

/// Reads the body of a request.
pub(crate) fn read(request: &Request, bytes_max: usize) -> Result<Value, Unreadable> {
    if request.body.len() > bytes_max {
        return Err(Unreadable::TooLarge);
    }
    let unpacked = unpack(&request.headers, &request.body, bytes_max)?;
    let text = text_of(&unpacked)?;
    if is_form(&request.headers, text) {
        return Ok(form(text));
    }
    json::parse(text.as_bytes()).map_err(Unreadable::Broken)
}

fn unpack<'a>(headers: &HeaderMap, body: &'a [u8], bytes_max: usize) -> Result<Cow<'a, [u8]>, Unreadable> {
    let names: Vec<String> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|value| String::from_utf8_lossy(value.as_bytes()).split(',').map(str::to_owned).collect::<Vec<_>>())
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect();
    if let Some(unknown) = names.iter().find(|name| !matches!(name.as_str(), "gzip" | "x-gzip")) {
        // The name comes from the sender and goes into a sentence: a few plain letters of it are enough.
        let shown = unknown.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(20).collect();
        return Err(Unreadable::Encoding(shown));
    }
    if names.len() > PACKED_MAX {
        return Err(Unreadable::Encoding(format!("gzip, {} times", names.len())));
    }
    let mut bytes = Cow::Borrowed(body);
    for _ in names {
        // Some senders declare gzip and send plain text: judged by its bytes.
        if bytes.starts_with(&[0x1f, 0x8b]) {
            bytes = Cow::Owned(gunzip(&bytes, bytes_max)?);
        }
    }
    Ok(bytes)
}

fn gunzip(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Unreadable> {
    let mut plain = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(packed)
        .take(limit)
        .read_to_end(&mut plain)
        .map_err(|error| Unreadable::Broken(format!("not gzip: {error}")))?;
    if plain.len() > bytes_max { Err(Unreadable::TooLarge) } else { Ok(plain) }
}

fn text_of(bytes: &[u8]) -> Result<&str, Unreadable> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unreadable::Empty);
    }
    // UTF-16 comes with a byte order mark, or shows by a NUL beside its first character.
    let nul_beside = matches!(bytes, [first, second, ..] if (*first == 0) != (*second == 0));
    if nul_beside || matches!(bytes, [0xfe, 0xff, ..] | [0xff, 0xfe, ..]) {
        return Err(Unreadable::Broken("UTF-16 text; UTF-8 is expected".to_owned()));
    }
    std::str::from_utf8(bytes)
        .map_err(|error| Unreadable::Broken(format!("not UTF-8: a wrong byte at {}", error.valid_up_to())))
}

/// Whether the body is a form. The content type counts only where the bytes allow it: senders declare forms and send JSON,
/// declare JSON and send forms, or declare nothing.
fn is_form(headers: &HeaderMap, text: &str) -> bool {
    let starts_json = text.trim_start().starts_with(['{', '[', '"']);
    let declared = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim().to_ascii_lowercase().starts_with("application/x-www-form-urlencoded"));
    let looks_like_one = || text.contains('=') && text.bytes().all(|byte| byte.is_ascii_graphic());
    !starts_json && (declared && text.contains('=') || looks_like_one())
}

/// A form as an object of strings; of a field that comes twice the last counts. A `payload` field that holds JSON *is* the
/// body (FC-50).
fn form(text: &str) -> Value {
    let mut fields = Map::new();
    for (name, value) in pairs(text.trim_ascii()) {
        fields.insert(name, Value::String(value));
    }
    if let Some(Value::String(payload)) = fields.get("payload")
        && let Ok(value @ (Value::Object(_) | Value::Array(_))) = json::parse(payload.as_bytes())
    {
        return value;
    }
    Value::Object(fields)
}

/// The pairs of a form or a query string, decoded.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| hex::decode(pair).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                plain.extend(byte);
                at += 2;
            }
            (b'+', _) => plain.push(b' '),
            (byte, _) => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bytes::Bytes;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn check(headers: &[(&'static str, &'static str)], body: &[u8], expected: Result<Value, Unreadable>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>();
        let request = Request {
            headers,
            path: String::new(),
            path_token: None,
            query: String::new(),
            body: Bytes::copy_from_slice(body),
            received_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(read(&request, 4096), expected, "{:?}", String::from_utf8_lossy(body));
    }

    fn broken(text: &str) -> Result<Value, Unreadable> {
        Err(Unreadable::Broken(text.to_owned()))
    }

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=UTF-8");
    const GZIP: (&str, &str) = ("content-encoding", "gzip");

    #[test]
    fn content_types_are_judged_by_the_bytes() {
        // FC-50, FC-52.
        check(&[("content-type", "application/json")], br#"{"a":1}"#, Ok(json!({"a": 1})));
        check(&[("content-type", "text/plain")], br#"{"a":1}"#, Ok(json!({"a": 1})));
        check(&[], br#" {"a":1} "#, Ok(json!({"a": 1})));
        check(&[FORM], br#"{"a":"b=c"}"#, Ok(json!({"a": "b=c"})));
        check(&[FORM], b"webhook_id=50", Ok(json!({"webhook_id": "50"})));
        check(&[], b"webhook_id=50", Ok(json!({"webhook_id": "50"})));
        check(
            &[FORM],
            b"nome=Ana+Jo%C3%A3o&x=%zz&x=2&vazio=&data[id]=9",
            Ok(json!({"nome": "Ana João", "x": "2", "vazio": "", "data[id]": "9"})),
        );
        check(&[FORM], b"payload=%7B%22id%22%3A50%7D", Ok(json!({"id": 50})));
        check(&[FORM], b"payload=texto", Ok(json!({"payload": "texto"})));
        check(&[], b"0", Ok(json!(0)));
        check(&[], b"ola mundo", broken("not JSON: expected value at line 1 column 1"));
    }

    #[test]
    fn character_sets_have_defined_answers() {
        check(&[], b"\xef\xbb\xbf{\"a\":\"\xc3\xa7\"}", Ok(json!({"a": "ç"})));
        check(&[], b"{\"a\":\"\xe7\"}", broken("not UTF-8: a wrong byte at 6"));
        check(&[], b"\xff\xfe{\x00}\x00", broken("UTF-16 text; UTF-8 is expected"));
        check(&[], b"\xfe\xff\x00{\x00}", broken("UTF-16 text; UTF-8 is expected"));
        check(&[], b"{\x00}\x00", broken("UTF-16 text; UTF-8 is expected"));
        check(
            &[],
            b"{\"a\":\"\x00\"}",
            broken("not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 7"),
        );
        for empty in [&b""[..], b" \r\n", b"\xef\xbb\xbf"] {
            check(&[], empty, Err(Unreadable::Empty));
        }
    }

    #[test]
    fn gzip_is_unpacked_within_the_limit() {
        let once = gzip(br#"{"a":1}"#);
        check(&[GZIP], &once, Ok(json!({"a": 1})));
        check(&[("content-encoding", "x-gzip, identity")], &once, Ok(json!({"a": 1})));
        check(&[("content-encoding", "gzip, gzip")], &gzip(&once), Ok(json!({"a": 1})));
        check(&[GZIP], br#"{"a":1}"#, Ok(json!({"a": 1})));
        check(&[GZIP], &once[..once.len() - 4], broken("not gzip: unexpected end of file"));
        check(&[GZIP], &gzip(&[]), Err(Unreadable::Empty));
        check(&[("content-encoding", "gzip, gzip, gzip")], &once, Err(Unreadable::Encoding("gzip, 3 times".into())));
        check(&[("content-encoding", "br")], b"{}", Err(Unreadable::Encoding("br".into())));
    }

    #[test]
    fn a_bomb_stops_at_the_limit_and_a_long_body_at_once() {
        let bomb = gzip(&vec![b' '; 3_000_000]);
        assert!(bomb.len() < 4096);
        check(&[GZIP], &bomb, Err(Unreadable::TooLarge));
        check(&[("content-encoding", "gzip, gzip")], &gzip(&bomb), Err(Unreadable::TooLarge));
        check(&[], &[b'1'; 4097], Err(Unreadable::TooLarge));
        check(&[], format!("\"{}\"", "x".repeat(4094)).as_bytes(), Ok(json!("x".repeat(4094))));
    }
}
