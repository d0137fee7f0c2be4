//! Who is calling (A3): tokens and signatures, over the bytes as they came, in constant time.
//!
//! Run by intake before anything reads the body. A refusal is diagnosed for the operator: what was missing, how stale it
//! was, which other scheme it looks like. Neither a secret nor what was presented in its place ever stands in the text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::{Auth, Refusal, Request, Secret, Source, body};

/// How many values of one header or parameter are tried.
const PRESENTED_MAX: usize = 8;

impl Source {
    /// Checks the caller's proof. The text of the refusal is for the operator; the sender is told "401" and no more.
    pub fn authenticate(&self, request: &Request) -> Result<(), Refusal> {
        let checked = match &self.auth {
            Auth::None => Ok(()),
            Auth::Header { name, secrets, or_body } => {
                let presented = header_values(&request.headers, name);
                match or_body.as_deref().filter(|_| presented.is_empty()) {
                    None => token(&format!("header {name}"), secrets, &presented),
                    Some(pointer) => {
                        let found = self.in_body(request, pointer);
                        let what = format!("header {name} (and body field {pointer})");
                        token(&what, secrets, &found.map(String::into_bytes).into_iter().collect::<Vec<_>>())
                    }
                }
            }
            Auth::Query { name, secrets } => {
                let presented: Vec<Vec<u8>> = body::pairs(&request.query)
                    .filter(|(found, _)| found == name)
                    .map(|(_, value)| value.into_bytes())
                    .take(PRESENTED_MAX)
                    .collect();
                token(&format!("query parameter {name}"), secrets, &presented)
            }
            Auth::Body { path, secrets } => {
                let found = body::read(request, self.body_bytes_max).ok();
                let found = found.as_ref().and_then(|body| path.path.query(body).first()?.as_str().map(str::to_owned));
                let presented: Vec<Vec<u8>> = found.map(String::into_bytes).into_iter().collect();
                token(&format!("body field {}", path.text), secrets, &presented)
            }
            Auth::SecretPath { secrets } => {
                let presented: Vec<Vec<u8>> = request.path_token.iter().map(|text| text.clone().into_bytes()).collect();
                token("the token in the address", secrets, &presented)
            }
            Auth::Basic { user, secrets } => basic(user, secrets, request),
            Auth::Hmac(scheme) => super::hmac::verify(scheme, request),
            Auth::StandardWebhooks { secrets, tolerance } => {
                super::standard_webhooks::verify(secrets, *tolerance, request)
            }
        };
        checked.map_err(Refusal::Credential)
    }

    fn in_body(&self, request: &Request, pointer: &str) -> Option<String> {
        let value = body::read(request, self.body_bytes_max).ok()?;
        value.pointer(pointer).and_then(|found| found.as_str()).map(str::to_owned)
    }
}

impl Auth {
    /// Whether there is something to check against. Without it the answer is 503, never 401: senders give an event up for
    /// good over a 401.
    pub fn is_ready(&self) -> bool {
        let secrets = match self {
            Auth::None => return true,
            Auth::Header { secrets, .. }
            | Auth::Query { secrets, .. }
            | Auth::Body { secrets, .. }
            | Auth::SecretPath { secrets }
            | Auth::Basic { secrets, .. }
            | Auth::StandardWebhooks { secrets, .. } => secrets,
            Auth::Hmac(scheme) => &scheme.secrets,
        };
        secrets.iter().any(|secret| !secret.0.is_empty())
    }
}

/// The values of a header, in any case of its name.
pub(super) fn header_values(headers: &HeaderMap, name: &str) -> Vec<Vec<u8>> {
    // A name that no header can have is a configuration that `check` refuses; here it simply matches none.
    headers.get_all(name.to_ascii_lowercase()).iter().take(PRESENTED_MAX).map(|v| v.as_bytes().to_vec()).collect()
}

pub(crate) fn token(what: &str, secrets: &[Secret], presented: &[Vec<u8>]) -> Result<(), String> {
    if presented.is_empty() {
        return Err(format!("{what} is missing"));
    }
    // No early exit: neither the number of the secret nor its length shows in the time.
    let found = presented.iter().fold(Choice::from(0), |found, token| found | is_one_of(secrets, token));
    if found.into() {
        return Ok(());
    }
    Err(format!("{what} matches none of {}{}", count(secrets), hint(secrets, &presented[0])))
}

/// HTTP Basic. User and password are compared both, whichever is wrong.
fn basic(user: &str, secrets: &[Secret], request: &Request) -> Result<(), String> {
    let values = header_values(&request.headers, "authorization");
    let Some(value) = values.first() else { return Err("header Authorization is missing".to_owned()) };
    let text = String::from_utf8_lossy(value);
    let (scheme, encoded) = text.trim().split_once(' ').unwrap_or((&text, ""));
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err("header Authorization is of another scheme than Basic".to_owned());
    }
    let decoded = STANDARD_NO_PAD.decode(encoded.trim().trim_end_matches('='));
    let Some((name, password)) = decoded.ok().as_deref().and_then(split_pair) else {
        return Err("header Authorization holds no user:password in base64".to_owned());
    };
    let right_user = is_one_of(&[Secret(user.as_bytes().to_vec())], &name);
    let right_password = is_one_of(secrets, &password);
    match (right_user.into(), right_password.into()) {
        (true, true) => Ok(()),
        (false, true) => Err("Basic: another user than the configured one".to_owned()),
        (_, false) => {
            Err(format!("Basic: the password matches none of {}{}", count(secrets), hint(secrets, &password)))
        }
    }
}

/// At the first colon: passwords may hold more of them.
fn split_pair(decoded: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..at].to_vec(), decoded[at + 1..].to_vec()))
}

/// Compares digests, so that lengths do not show.
fn is_one_of(secrets: &[Secret], token: &[u8]) -> Choice {
    let shown = Sha256::digest(token);
    secrets.iter().fold(Choice::from(0), |found, secret| {
        let equal = Sha256::digest(&secret.0).as_slice().ct_eq(shown.as_slice());
        found | (equal & Choice::from(u8::from(!secret.0.is_empty())))
    })
}

pub(super) fn count(secrets: &[Secret]) -> String {
    match secrets.len() {
        1 => "1 secret".to_owned(),
        n => format!("{n} secrets"),
    }
}

/// What people get wrong when they paste a token.
fn hint(secrets: &[Secret], token: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(token);
    let matches = |text: &str| bool::from(is_one_of(secrets, text.as_bytes()));
    let bare = text.trim();
    if bare.is_empty() {
        ": it is empty"
    } else if bare.contains("{{") || bare.contains("${") || bare.starts_with('<') {
        ": it looks like a placeholder that nobody filled in"
    } else if bare.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer ")) && matches(bare[7..].trim()) {
        ": it would match without the word Bearer in front"
    } else if matches(bare) || matches(bare.trim_matches(['"', '\''])) {
        ": it would match without the quotes or spaces around it"
    } else if secrets.iter().any(|secret| is_trimmed(&secret.0, token)) {
        ": it would match if the configured secret had no spaces or line break around it"
    } else {
        ""
    }
}

/// Whether the secret is the token with white space around it: files end in a line break.
fn is_trimmed(secret: &[u8], token: &[u8]) -> bool {
    let bare = Secret(secret.trim_ascii().to_vec());
    bare.0.len() != secret.len() && bool::from(is_one_of(std::slice::from_ref(&bare), token))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jiff::Timestamp;

    use super::super::Provider;
    use super::*;

    pub(in super::super) fn source(auth: Auth) -> Source {
        Source {
            name: "pedidos".into(),
            tenant: "default".into(),
            provider: Provider::Generic,
            account: "pedidos".into(),
            flow: None,
            channel: None,
            auth,
            instance: None,
            cloud: None,
            mapping: None,
            origin: Vec::new(),
            body_bytes_max: 4 << 20,
        }
    }

    fn request(headers: &[(&str, &str)], query: &str, body: &str) -> Request {
        Request {
            headers: headers
                .iter()
                .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
                .collect(),
            path: String::new(),
            path_token: None,
            query: query.to_owned(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            received_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn secrets(texts: &[&str]) -> Vec<Secret> {
        texts.iter().map(|text| Secret(text.as_bytes().to_vec())).collect()
    }

    fn check(source: &Source, request: &Request, expected: Result<(), &str>) {
        let got = source.authenticate(request);
        assert_eq!(got, expected.map_err(|text| Refusal::Credential(text.to_owned())));
        if let Err(refusal) = got {
            let text = refusal.to_string();
            assert!(!text.contains("SECRET-80"), "the refusal quotes a secret: {text}");
        }
    }

    #[test]
    fn a_header_token_is_accepted_in_any_case_of_its_name_and_refused_with_a_diagnosis() {
        let source = source(Auth::Header {
            name: "X-Hook-Secret".into(),
            secrets: secrets(&["SECRET-80-A", "SECRET-80-B"]),
            or_body: None,
        });
        let wrong = "header X-Hook-Secret matches none of 2 secrets";
        for (headers, expected) in [
            (&[("x-hook-secret", "SECRET-80-A")][..], Ok(())),
            (&[("X-HOOK-SECRET", "SECRET-80-B")], Ok(())),
            (&[("x-hook-secret", "errado"), ("x-hook-secret", "SECRET-80-B")], Ok(())),
            (&[], Err("header X-Hook-Secret is missing".to_owned())),
            (&[("authorization", "SECRET-80-A")], Err("header X-Hook-Secret is missing".to_owned())),
            (&[("x-hook-secret", "SECRET-80")], Err(wrong.to_owned())),
            (&[("x-hook-secret", "SECRET-80-AA")], Err(wrong.to_owned())),
            (&[("x-hook-secret", "secret-80-a")], Err(wrong.to_owned())),
            (&[("x-hook-secret", "")], Err(format!("{wrong}: it is empty"))),
            (
                &[("x-hook-secret", "Bearer SECRET-80-A")],
                Err(format!("{wrong}: it would match without the word Bearer in front")),
            ),
            (
                &[("x-hook-secret", "\"SECRET-80-B\"")],
                Err(format!("{wrong}: it would match without the quotes or spaces around it")),
            ),
            (
                &[("x-hook-secret", "{{ $env.SEGREDO }}")],
                Err(format!("{wrong}: it looks like a placeholder that nobody filled in")),
            ),
        ] {
            check(&source, &request(headers, "", "{}"), expected.as_ref().map(|_| ()).map_err(|text| text.as_str()));
        }
    }

    #[test]
    fn a_secret_with_a_line_break_from_its_file_is_named_as_such() {
        let source =
            source(Auth::Header { name: "x-token".into(), secrets: secrets(&["SECRET-80-A\n"]), or_body: None });
        check(
            &source,
            &request(&[("x-token", "SECRET-80-A")], "", ""),
            Err(
                "header x-token matches none of 1 secret: it would match if the configured secret had no spaces or line \
                 break around it",
            ),
        );
    }

    #[test]
    fn hotmart_sends_its_token_in_the_body_where_the_header_is_missing() {
        let source = source(Auth::Header {
            name: "x-hotmart-hottok".into(),
            secrets: secrets(&["SECRET-80-A"]),
            or_body: Some("/hottok".into()),
        });
        let missing = "header x-hotmart-hottok (and body field /hottok) is missing";
        let wrong = "header x-hotmart-hottok (and body field /hottok) matches none of 1 secret";
        check(&source, &request(&[("x-hotmart-hottok", "SECRET-80-A")], "", "{}"), Ok(()));
        check(&source, &request(&[], "", r#"{"hottok":"SECRET-80-A"}"#), Ok(()));
        check(&source, &request(&[], "", r#"{"hottok":"SECRET-80-B"}"#), Err(wrong));
        check(&source, &request(&[], "", r#"{"hottok":1}"#), Err(missing));
        check(&source, &request(&[], "", "{broken"), Err(missing));
        // A wrong header is not saved by a right body: somebody is guessing.
        check(
            &source,
            &request(&[("x-hotmart-hottok", "x")], "", r#"{"hottok":"SECRET-80-A"}"#),
            Err("header x-hotmart-hottok matches none of 1 secret"),
        );
    }

    #[test]
    fn a_query_token_is_decoded_before_it_is_compared() {
        let source = source(Auth::Query { name: "token".into(), secrets: secrets(&["SECRET-80 +A"]) });
        check(&source, &request(&[], "a=1&token=SECRET-80+%2BA", ""), Ok(()));
        check(&source, &request(&[], "token=x", ""), Err("query parameter token matches none of 1 secret"));
        check(&source, &request(&[], "TOKEN=SECRET-80+%2BA", ""), Err("query parameter token is missing"));
        check(&source, &request(&[], "", ""), Err("query parameter token is missing"));
    }

    #[test]
    fn a_token_in_the_body_is_found_by_its_path() {
        let path = crate::inbound::Path::parse("$.auth.token").unwrap();
        let source = source(Auth::Body { path, secrets: secrets(&["SECRET-80-A", "SECRET-80-B"]) });
        let missing = Err("body field $.auth.token is missing");
        check(&source, &request(&[], "", r#"{"auth":{"token":"SECRET-80-B"}}"#), Ok(()));
        check(
            &source,
            &request(&[], "", r#"{"auth":{"token":"SECRET-80-C"}}"#),
            Err("body field $.auth.token matches none of 2 secrets"),
        );
        for body in ["{broken", "", "[]", r#"{"auth":{"token":7}}"#, r#"{"token":"SECRET-80-A"}"#] {
            check(&source, &request(&[], "", body), missing);
        }
    }

    #[test]
    fn a_secret_address_is_compared_whole() {
        let source = source(Auth::SecretPath { secrets: secrets(&["SECRET-80-A"]) });
        for (shown, expected) in [
            (Some("SECRET-80-A"), Ok(())),
            (Some("SECRET-80-"), Err("the token in the address matches none of 1 secret")),
            (None, Err("the token in the address is missing")),
        ] {
            let request = Request { path_token: shown.map(str::to_owned), ..request(&[], "", "{}") };
            check(&source, &request, expected);
        }
    }

    #[test]
    fn basic_compares_user_and_password() {
        let source = source(Auth::Basic { user: "ana".into(), secrets: secrets(&["SECRET-80:A"]) });
        let pair = |text: &str| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text));
        let wrong = "Basic: the password matches none of 1 secret";
        for (value, expected) in [
            (Some(pair("ana:SECRET-80:A")), Ok(())),
            (Some(pair("ana:SECRET-80:A").replace("Basic", "bASIC").replace('=', "")), Ok(())),
            (Some(pair("bia:SECRET-80:A")), Err("Basic: another user than the configured one")),
            (Some(pair("ana:SECRET-80")), Err(wrong)),
            (Some(pair("bia:x")), Err(wrong)),
            (Some(pair("ana")), Err("header Authorization holds no user:password in base64")),
            (Some("Basic *".to_owned()), Err("header Authorization holds no user:password in base64")),
            (Some("Bearer SECRET-80".to_owned()), Err("header Authorization is of another scheme than Basic")),
            (None, Err("header Authorization is missing")),
        ] {
            let headers: Vec<(&str, &str)> = value.iter().map(|value| ("authorization", value.as_str())).collect();
            check(&source, &request(&headers, "", "{}"), expected);
        }
    }

    #[test]
    fn an_empty_secret_opens_nothing_and_is_not_ready() {
        let auth = Auth::Header { name: "x-token".into(), secrets: secrets(&[""]), or_body: None };
        assert!(!auth.is_ready());
        check(
            &source(auth),
            &request(&[("x-token", "")], "", ""),
            Err("header x-token matches none of 1 secret: it is empty"),
        );
        assert!(Auth::None.is_ready());
        check(&source(Auth::None), &request(&[], "", ""), Ok(()));
    }

    #[test]
    fn secrets_never_show_in_debug() {
        let source = source(Auth::Query { name: "token".into(), secrets: secrets(&["SECRET-80-A"]) });
        assert!(!format!("{source:?}").contains("SECRET-80"));
    }
}
