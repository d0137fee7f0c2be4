//! Answers as evidence: what an attempt keeps of them, without phones, texts and secrets (FC-80).

use serde_json::Value;

use crate::inbound::json;

/// Bytes kept of an answer.
const KEPT_BYTES_MAX: usize = 2 << 10;
/// From so many digits on, a run of them may be a phone, a document or a card.
const DIGITS_MIN: usize = 8;
/// Shorter secrets than this would blank out half of every answer; `check` refuses them anyway.
const SECRET_CHARS_MIN: usize = 4;
/// After one of these words stands a credential.
const SECRET_WORDS: [&str; 6] = ["apikey", "api_key", "token", "authorization", "secret", "password"];
/// Fields that hold what somebody wrote, or who somebody is.
const PRIVATE_FIELDS: [&str; 8] = ["conversation", "text", "caption", "pushname", "name", "body", "email", "document"];

/// The body of an answer, masked and cut. `secrets` are texts of ours that may be echoed.
pub(crate) fn masked(body: &[u8], secrets: &[&str]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let text = match json::parse(text.as_bytes()) {
        Ok(value) => without_private(value).to_string(),
        Err(_) => text.to_owned(),
    };
    let text = secrets
        .iter()
        .filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN)
        .fold(text, |text, secret| text.replace(secret, "***"));
    let text = without_digits(&without_credentials(&text));
    Some(json::clean(&text[..text.floor_char_boundary(KEPT_BYTES_MAX)]))
}

fn without_private(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let lower = name.to_ascii_lowercase();
                    let hidden = SECRET_WORDS.iter().any(|word| lower.contains(word))
                        || PRIVATE_FIELDS.contains(&lower.as_str()) && !value.is_object() && !value.is_array();
                    let value = if hidden && !value.is_null() { Value::from("***") } else { without_private(value) };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_private).collect()),
        other => other,
    }
}

/// Cuts each line after a word that announces a credential.
fn without_credentials(text: &str) -> String {
    let cut = |line: &str| -> String {
        let lower = line.to_ascii_lowercase();
        // What `without_private` has hidden already stays readable.
        let lower = lower.replace(":\"***\"", "________");
        let found = SECRET_WORDS.iter().filter_map(|word| Some(find_announced(&lower, word)? + word.len())).min();
        match found {
            Some(at) if line.is_char_boundary(at) => format!("{}***", &line[..at]),
            _ => line.to_owned(),
        }
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// Where a word stands with `:`, `=`, a quote or a space and something behind it; `Unauthorized` announces nothing.
fn find_announced(line: &str, word: &str) -> Option<usize> {
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let rest = line[at + word.len()..].trim_start_matches(['"', '\'', '\\', ' ']);
        rest.starts_with([':', '='])
    })
}

fn without_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    let flush = |run: &mut String, out: &mut String| {
        if run.len() >= DIGITS_MIN {
            out.push('#');
        } else {
            out.push_str(run);
        }
        run.clear();
    };
    for c in text.chars() {
        if c.is_ascii_digit() {
            run.push(c);
        } else {
            flush(&mut run, &mut out);
            out.push(c);
        }
    }
    flush(&mut run, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_their_meaning_and_lose_phones_texts_and_secrets() {
        let cases = [
            (
                r#"{"status":400,"response":{"message":[{"jid":"554199990001@s.whatsapp.net","exists":false,"number":"5541999990001"}]}}"#,
                r##"{"response":{"message":[{"exists":false,"jid":"#@s.whatsapp.net","number":"#"}]},"status":400}"##,
            ),
            (
                r#"{"key":{"id":"3EB0TESTE01"},"pushName":"Ana","message":{"conversation":"Olá Ana, seu PIX"},"apikey":"SECRET-80-A"}"#,
                r#"{"apikey":"***","key":{"id":"3EB0TESTE01"},"message":{"conversation":"***"},"pushName":"***"}"#,
            ),
            (r#"{"status":401,"error":"Unauthorized"}"#, r#"{"error":"Unauthorized","status":401}"#),
            ("Bad gateway\nApiKey: SECRET-80-A, mais", "Bad gateway\nApiKey***"),
            ("you sent token=SECRET-80-A&x=1", "you sent token***"),
            ("echo: SECRET-80-Z", "echo: ***"),
            ("Cannot POST /t/SECRET-80-C?x=1", "Cannot POST ***"),
            ("call 41999990001 or 12345", "call # or 12345"),
        ];
        for (body, expected) in cases {
            let shown = masked(body.as_bytes(), &["SECRET-80-Z", "/t/SECRET-80-C?x=1", "/"]).unwrap();
            assert_eq!(shown, expected);
        }
        assert_eq!(masked(b"  ", &[]), None);
    }

    #[test]
    fn long_answers_are_cut_at_a_character() {
        let shown = masked("ç".repeat(5000).as_bytes(), &[]).unwrap();
        assert_eq!((shown.len(), shown.chars().count()), (2048, 1024));
    }
}
