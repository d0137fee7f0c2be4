//! Which headers are worth keeping beside the raw body. Credentials are not.

use http::HeaderMap;

/// Headers kept of one request.
const KEPT_MAX: usize = 32;
/// Bytes kept of one value.
const VALUE_BYTES_MAX: usize = 512;
/// A header whose name holds one of these carries a credential or is one.
const SECRET_WORDS: [&str; 12] = [
    "auth",
    "token",
    "secret",
    "signature",
    "cookie",
    "hottok",
    "key",
    "hmac",
    "password",
    "credential",
    "hub-sig",
    "jwt",
];

/// The headers to store with a request, names in lower case: content type and encoding, user agent, and `x-` headers, except
/// whatever may be a credential. `credential` is the header that the source itself is authenticated by.
pub fn kept_headers(headers: &HeaderMap, credential: Option<&str>) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            let plain = matches!(name, "content-type" | "content-encoding" | "user-agent") || name.starts_with("x-");
            let secret = SECRET_WORDS.iter().any(|word| name.contains(word))
                || credential.is_some_and(|credential| credential.eq_ignore_ascii_case(name));
            plain && !secret
        })
        .take(KEPT_MAX)
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), text[..text.floor_char_boundary(VALUE_BYTES_MAX)].to_owned())
        })
        .collect()
}

impl super::Source {
    /// The headers of a request that may be stored with it.
    pub fn kept_headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let credential = match &self.auth {
            super::Auth::Header { name, .. } => Some(name.as_str()),
            super::Auth::Hmac(super::Hmac { place: super::SignaturePlace::Header(name), .. }) => Some(name.as_str()),
            _ => None,
        };
        kept_headers(headers, credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_kept() {
        let mut headers = HeaderMap::new();
        for name in [
            "content-type",
            "user-agent",
            "x-request-id",
            "x-webhook-version",
            "authorization",
            "cookie",
            "x-hotmart-hottok",
            "x-hub-signature-256",
            "x-api-key",
            "x-auth",
            "x-my-token",
            "x-loja",
            "accept",
        ] {
            headers.insert(name, "SECRET-80".parse().unwrap());
        }
        let kept = kept_headers(&headers, Some("X-Loja"));
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "user-agent", "x-request-id", "x-webhook-version"]);
    }

    #[test]
    fn long_values_are_cut() {
        let mut headers = HeaderMap::new();
        headers.insert("x-long", "a".repeat(5000).parse().unwrap());
        assert_eq!(kept_headers(&headers, None)[0].1.len(), 512);
    }
}
