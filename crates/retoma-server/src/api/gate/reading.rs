//! What callers of the gate send. A key that no two events could share by right is not taken for one.

use std::time::Duration;

use retoma_core::duration;
use retoma_core::keys::{Key16, digest16};
use retoma_store::GateResult;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::fields::Fields;
use crate::gate::GatePolicy;
use crate::problem::Problem;

/// Longer keys are to be hashed by whoever makes them.
const KEY_BYTES_MAX: usize = 512;
const CORRELATION_BYTES_MAX: usize = 200;
const METADATA_BYTES_MAX: usize = 8 * 1024;
/// Results are answered to every repetition.
const RESULT_BYTES_MAX: usize = 64 * 1024;
const ERROR_CHARS_MAX: usize = 2000;

/// A key, or what is wrong with it, in a word.
pub(super) type KeyOr = Result<String, &'static str>;

/// A claim, read.
pub(super) struct Asked {
    pub(super) key: KeyOr,
    pub(super) fingerprint: Option<Key16>,
    pub(super) lease: Option<Duration>,
    pub(super) correlation_id: Option<String>,
    pub(super) metadata: Value,
}

impl Asked {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Problem> {
        let metadata = fields.value("metadata").cloned().unwrap_or_else(|| json!({}));
        if metadata.to_string().len() > METADATA_BYTES_MAX {
            return Err(fields.wrong("metadata", "at most 8 KiB"));
        }
        Ok(Self {
            key: key(fields)?,
            fingerprint: fields.value("fingerprint").and_then(fingerprint),
            lease: lease(fields)?,
            correlation_id: correlation(fields)?,
            metadata,
        })
    }
}

/// The key. Numbers are taken for their digits, since tools send ids as they come.
pub(super) fn key(fields: &Fields<'_>) -> Result<KeyOr, Problem> {
    let written = match fields.value("key") {
        None => return Ok(Err("missing")),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
        Some(_) => return Ok(Err("no_text")),
    };
    if written.len() > KEY_BYTES_MAX || written.contains(char::is_control) {
        return Err(fields.wrong("key", "at most 512 bytes without control characters; hash what is longer"));
    }
    Ok(match unusable(&written) {
        Some(what) => Err(what),
        None => Ok(written),
    })
}

/// Why a text identifies nothing: tools write these where an expression found no value.
fn unusable(key: &str) -> Option<&'static str> {
    const NOTHING: [&str; 6] = ["undefined", "null", "none", "nan", "[object object]", "nil"];
    if key.is_empty() {
        return Some("empty");
    }
    let is_nothing = |part: &str| NOTHING.contains(&part.trim().to_ascii_lowercase().as_str());
    if is_nothing(key) || key.contains("{{") || key.contains("[object ") {
        return Some("placeholder");
    }
    // `shop:ID:charge` with an id that is not there.
    let mut parts = key.split(':');
    if parts.clone().count() > 1 && parts.any(|part| matches!(part.trim(), "" | "undefined" | "null" | "NaN")) {
        return Some("incomplete");
    }
    None
}

pub(super) fn lease(fields: &Fields<'_>) -> Result<Option<Duration>, Problem> {
    let Some(text) = fields.text("lease")? else { return Ok(None) };
    let lease = duration::parse(text).ok();
    let lease = lease.filter(|lease| (GatePolicy::LEASE_MIN..=GatePolicy::LEASE_MAX).contains(lease));
    lease.map(Some).ok_or_else(|| fields.wrong("lease", "a duration from 1s to 24h, such as 2m"))
}

/// The execution that asks. Numbers are taken for their digits.
fn correlation(fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    let text = match fields.value("correlation_id") {
        Some(Value::Number(number)) => number.to_string(),
        _ => fields.text("correlation_id")?.unwrap_or_default().trim().to_owned(),
    };
    if text.len() > CORRELATION_BYTES_MAX || text.contains(char::is_control) {
        return Err(fields.wrong("correlation_id", "a text of at most 200 bytes without control characters"));
    }
    Ok(if text.is_empty() { None } else { Some(text) })
}

/// Whether the id of an execution surely names no person: a short word with no room for a phone or an address.
pub(super) fn is_impersonal(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    let mut digits = 0;
    let long_number = id.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits > 7
    });
    id.len() <= 64 && id.bytes().all(plain) && !long_number
}

pub(super) fn error(fields: &Fields<'_>) -> Result<String, Problem> {
    let text = match fields.value("error") {
        None => "failed".to_owned(),
        Some(Value::String(text)) => text.clone(),
        // Tools have objects for errors.
        Some(other) => other.to_string(),
    };
    Ok(text.chars().take(ERROR_CHARS_MAX).collect())
}

/// What is kept for later callers. That it was done counts more than what came of it: a result that is too large is left out.
pub(super) fn result(fields: &Fields<'_>) -> GateResult {
    let result = fields.value("result").cloned().unwrap_or(Value::Null);
    let bytes = result.to_string().len();
    if bytes > RESULT_BYTES_MAX { GateResult::TooLarge(bytes as u64) } else { GateResult::Kept(result) }
}

/// A digest of what is to be done, the same for the same JSON however it is written (FC-61). An empty one says nothing.
fn fingerprint(value: &Value) -> Option<Key16> {
    let written = match value {
        Value::String(text) if text.trim().is_empty() => return None,
        // JSON in a text is still JSON.
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => canonical(&inner).to_string(),
            _ => text.clone(),
        },
        other => canonical(other).to_string(),
    };
    Some(digest16("gate fingerprint", &[written.as_bytes()]))
}

/// Keys in order, and one spelling for each number.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            Value::Object(fields.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(canonical).collect()),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(0.0);
            // Exact below 2^53; beyond it no two spellings of one number are promised.
            if float.fract() == 0.0 && float.abs() < 9e15 {
                json!(format!("{float:.0}").parse::<i64>().ok())
            } else {
                value.clone()
            }
        }
        other => other.clone(),
    }
}

/// An owner's token: never the same twice, and not to be guessed.
pub(super) fn new_token(id: Uuid, random: [u8; 32]) -> String {
    format!("gt_{}{}", id.simple(), hex::encode(&random[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_identifies_nothing_is_no_key() {
        let table = [
            (json!({}), Err("missing")),
            (json!({ "key": null }), Err("missing")),
            (json!({ "key": "" }), Err("empty")),
            (json!({ "key": "  \n" }), Err("empty")),
            (json!({ "key": "undefined" }), Err("placeholder")),
            (json!({ "key": "NULL" }), Err("placeholder")),
            (json!({ "key": "[object Object]" }), Err("placeholder")),
            (json!({ "key": "{{ $json.id }}" }), Err("placeholder")),
            (json!({ "key": "loja-a:" }), Err("incomplete")),
            (json!({ "key": "loja-a::cobrar" }), Err("incomplete")),
            (json!({ "key": "pedido:undefined:v1" }), Err("incomplete")),
            (json!({ "key": { "id": 1 } }), Err("no_text")),
            (json!({ "key": true }), Err("no_text")),
            (json!({ "key": 1.5 }), Err("no_text")),
            (json!({ "key": 4711 }), Ok("4711")),
            (json!({ "key": " pedido-10:cobrar:v1 " }), Ok("pedido-10:cobrar:v1")),
            (json!({ "key": "nullable" }), Ok("nullable")),
            (json!({ "key": "loja-a:wamid.HBgN" }), Ok("loja-a:wamid.HBgN")),
        ];
        for (body, expected) in table {
            let read = key(&Fields::of(&body).unwrap()).unwrap();
            assert_eq!(read.as_deref().map_err(|what| *what), expected, "{body}");
        }
        for body in [json!({ "key": "x".repeat(513) }), json!({ "key": "a\nb" })] {
            assert!(key(&Fields::of(&body).unwrap()).is_err(), "{body}");
        }
    }

    #[test]
    fn the_same_json_has_one_fingerprint_however_it_is_written() {
        let same = [
            json!({ "b": [1, 2.0], "a": "x" }),
            serde_json::from_str(r#"{"a":"x","b":[1.0,2]}"#).unwrap(),
            json!(r#"{ "a": "x", "b": [1, 2] }"#),
        ];
        let first = fingerprint(&same[0]);
        assert!(same.iter().all(|value| fingerprint(value) == first));
        let others = [json!({ "b": [2, 1], "a": "x" }), json!("lembrete 1"), json!("lembrete 2"), json!(1), json!(1.5)];
        let mut all: Vec<_> = others.iter().map(fingerprint).chain([first]).collect();
        all.dedup();
        assert_eq!(all.len(), 6);
        assert_eq!((fingerprint(&json!("")), fingerprint(&json!("1")) == fingerprint(&json!(1))), (None, true));
    }

    #[test]
    fn evidence_keeps_no_id_that_may_name_a_person() {
        for (id, kept) in [
            ("exec-231", true),
            ("0190a1b2-0000-7000-8000-00000000000a", false),
            ("wf_12/exec.9", true),
            ("5541999990001", false),
            ("ana@example.com", false),
            ("Ana Teste", false),
        ] {
            assert_eq!(is_impersonal(id), kept, "{id}");
        }
    }
}
