//! Bytes to [`Value`], with the two doors of `serde_json` shut that its extra features open.
//!
//! With `raw_value` on, `serde_json` reads an object whose first key is its private raw-value token by parsing the string
//! inside it *again*, with a fresh recursion limit: a few megabytes of nested strings overflow the stack. Reading
//! through a visitor of our own never does that. The limit of 127 levels (A10) is the deserialiser's.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What `serde_json` calls a number while it hands it over.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// Reads one JSON value and nothing after it. The message says what and where, and holds no content.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Plain.deserialize(&mut deserializer).map_err(|error| format!("not JSON: {error}"))?;
    deserializer.end().map_err(|error| format!("more follows after the JSON value: {error}"))?;
    Ok(value)
}

struct Plain;

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Plain)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Plain)?;
            if key == NUMBER_TOKEN
                && let Value::String(text) = &value
                && let Ok(number) = text.parse::<Number>()
            {
                return Ok(Value::Number(number));
            }
            // A key that comes twice is tolerated: the last one counts, as in every reader these senders test with.
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// The text of an id: a string as it stands, a number by its token. A string that looks like a number is quoted, so that
/// `1`, `1.0` and `"1"` are three different ids (FC-49). Empty strings, `null` and containers are no ids.
pub(crate) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if text.starts_with('"') || text.parse::<Number>().is_ok() => Some(format!("{text:?}")),
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of an id of a platform that has one type of ids: `7` and `"7"` are the same there.
pub(crate) fn plain_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a scalar as people read it: strings and numbers as they stand. `None` for the rest and for blank strings.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(clean(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A copy for columns and templates: a NUL, which not every store can hold as text, becomes U+FFFD (FC-47). The raw bytes
/// are kept elsewhere.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_text() {
        // FC-49: ids beyond 2^53, trailing zeros, signs and exponents.
        for token in ["9007199254740993", "9007199254740992", "12345678901234567890123", "1.0", "10.00", "-0", "1e3"] {
            let value = parse(format!("[{token}]").as_bytes()).unwrap();
            let shown = value[0].to_string();
            assert!(shown == token || shown == token.replace("e3", "e+3"), "{token} became {shown}");
        }
    }

    #[test]
    fn ids_of_different_types_differ() {
        let cases = [
            (json!(1), "1"),
            (parse(b"1.0").unwrap(), "1.0"),
            (json!("1"), r#""1""#),
            (json!("\"1\""), r#""\"1\"""#),
            (json!("1e3"), r#""1e3""#),
            (json!("00123"), "00123"),
            (json!("HP0000000001"), "HP0000000001"),
        ];
        for (value, expected) in cases {
            assert_eq!(id_text(&value).unwrap(), expected, "{value}");
        }
        for nothing in [json!(null), json!(""), json!({}), json!([1]), json!(true)] {
            assert_eq!(id_text(&nothing), None, "{nothing}");
        }
    }

    #[test]
    fn one_hundred_and_twenty_seven_levels_are_read_and_no_more() {
        // FC-52.
        for (depth, readable) in [(127, true), (128, false), (129, false), (5_000, false), (100_000, false)] {
            let body = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(parse(body.as_bytes()).is_ok(), readable, "{depth}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn private_tokens_of_the_parser_open_no_second_parse() {
        let mut body = "1".to_owned();
        for _ in 0..9 {
            body = json!({ "$serde_json::private::RawValue": format!("{}{body}{}", "[".repeat(100), "]".repeat(100)) })
                .to_string();
        }
        let value = parse(body.as_bytes()).unwrap();
        assert!(value["$serde_json::private::RawValue"].is_string());
        assert_eq!(parse(br#"{"$serde_json::private::Number":"x"}"#).unwrap()["$serde_json::private::Number"], "x");
    }

    #[test]
    fn broken_bodies_are_named_without_their_content() {
        let cases: &[(&[u8], &str)] = &[
            (b"{\"a\":", "not JSON: EOF while parsing a value at line 1 column 5"),
            (b"{\"a\":1} segredo", "more follows after the JSON value: trailing characters at line 1 column 9"),
            (b"{}{}", "more follows after the JSON value: trailing characters at line 1 column 3"),
            (
                b"{\"a\":\"\x00\"}",
                "not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 7",
            ),
            (b"segredo", "not JSON: expected value at line 1 column 1"),
        ];
        for (body, expected) in cases {
            assert_eq!(parse(body).unwrap_err(), *expected);
        }
    }

    #[test]
    fn falsy_values_and_repeated_keys_are_valid() {
        for (body, expected) in [
            ("{}", json!({})),
            ("[]", json!([])),
            ("0", json!(0)),
            ("false", json!(false)),
            ("null", json!(null)),
            (r#"{"a":1,"a":2}"#, json!({"a": 2})),
            (r#"{"a":"\u0000"}"#, json!({"a": "\0"})),
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }
}
