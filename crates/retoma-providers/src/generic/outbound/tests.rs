use std::collections::BTreeMap;
use std::time::Duration;

use retoma_core::ids::TaskId;
use serde_json::Value;

use super::*;
use crate::outbound::{Channel, ChannelKind, Outbound, WireEnd};

const SECRET: &str = "whsec_Y2hhdmUtZGUtdGVzdGUtc3RhbmRhcmQtd2ViaG9va3M=";

fn channel(url: &str, secret: Option<&str>) -> Channel {
    Channel {
        name: "n8n".into(),
        tenant: "default".into(),
        kind: ChannelKind::Http { url: url.to_owned(), secret: secret.map(|text| Secret(text.as_bytes().to_vec())) },
        on_ambiguous: None,
        deadline: Duration::from_secs(30),
        concurrency: 4,
        rate: None,
        pair_every: None,
    }
}

fn send(secret: Option<&str>, task: &str, identities: &[Identity], unix_seconds: i64) -> WireRequest {
    let vars = BTreeMap::from([("pix.code".to_owned(), "00020101".to_owned())]);
    channel("https://n8n.exemplo.test/webhook/abc", secret)
        .request(&Outgoing {
            other_spelling: false,
            task: &TaskId::new(task),
            attempt: 1,
            identities,
            text: "Olá",
            message: "lembrete_pix",
            vars: &vars,
            unix_seconds,
        })
        .unwrap()
}

#[test]
fn the_published_vector_is_signed_alike() {
    // payment-webhooks 9.
    let body = br#"{"type":"payment.approved","timestamp":"2026-01-10T12:00:00Z","data":{"id":"tx_0001"}}"#;
    assert_eq!(
        signature(&Secret(SECRET.as_bytes().to_vec()), "msg_teste0001", 1_767_960_000, body),
        "v1,jkIGD80m1/NBxJvuxGQ7vL/JhL8O4OoEeEgfKYOohCU="
    );
}

#[test]
fn a_message_is_a_standard_webhook() {
    let phone = Identity::from_jid("554199990001@s.whatsapp.net").unwrap();
    let request = send(Some(SECRET), "pix:HP0000000001:t15", &[phone], 1_790_000_000);
    assert_eq!(request.url, "https://n8n.exemplo.test/webhook/abc");
    assert_eq!(request.headers["webhook-id"], "pix:HP0000000001:t15");
    assert_eq!(request.headers["webhook-timestamp"], "1790000000");
    let expected = signature(&Secret(SECRET.as_bytes().to_vec()), "pix:HP0000000001:t15", 1_790_000_000, &request.body);
    assert_eq!(request.headers["webhook-signature"], expected);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(
        body,
        json!({
            "id": "pix:HP0000000001:t15", "type": "lembrete_pix", "timestamp": "2026-09-21T14:13:20Z",
            "data": {"text": "Olá", "to": "554199990001", "vars": {"pix.code": "00020101"}}
        })
    );
}

#[test]
fn each_attempt_has_a_fresh_signature_under_the_same_id() {
    // FC-45.
    let (first, second) = (send(Some(SECRET), "t", &[], 1_790_000_000), send(Some(SECRET), "t", &[], 1_790_000_060));
    assert_eq!(first.headers["webhook-id"], second.headers["webhook-id"]);
    assert_ne!(first.headers["webhook-signature"], second.headers["webhook-signature"]);
}

#[test]
fn other_secrets_ids_and_contacts_have_a_defined_form() {
    assert!(!send(None, "t", &[], 0).headers.contains_key("webhook-signature"));
    let plain = send(Some("segredo-simples"), "t", &[], 0);
    let expected = signature(&Secret(b"segredo-simples".to_vec()), "t", 0, &plain.body);
    assert_eq!(plain.headers["webhook-signature"], expected);
    assert_ne!(expected, signature(&Secret(b"outro".to_vec()), "t", 0, &plain.body));
    let odd = send(Some(SECRET), "pix:ação 1:t15", &[Identity::email("ana@example.com").unwrap()], 0);
    assert_eq!(odd.headers["webhook-id"], "pix:a%C3%A7%C3%A3o%201:t15");
    let body: Value = serde_json::from_slice(&odd.body).unwrap();
    assert_eq!((&body["id"], &body["data"]["to"]), (&json!("pix:a%C3%A7%C3%A3o%201:t15"), &json!("ana@example.com")));
}

#[test]
fn every_status_has_its_outcome() {
    // FC-64, FC-66, FC-70, FC-72.
    let cases = [
        (200, Outcome::Accepted, None),
        (201, Outcome::Accepted, None),
        (204, Outcome::Accepted, None),
        (301, Outcome::Content, Some("redirect to login.exemplo.test, set the final URL")),
        (308, Outcome::Content, Some("redirect to login.exemplo.test, set the final URL")),
        (400, Outcome::Content, Some("the receiver refuses the request with 400")),
        (401, Outcome::Credentials, Some("the receiver refuses our signature or address")),
        (403, Outcome::Credentials, Some("the receiver refuses our signature or address")),
        (404, Outcome::Transient, Some("the receiver has nothing at this address now")),
        (408, Outcome::Transient, Some("the receiver asks to try again")),
        (410, Outcome::Content, Some("the address is gone")),
        (422, Outcome::Content, Some("the receiver refuses the request with 422")),
        (429, Outcome::RateAccount, Some("too many requests")),
        (500, Outcome::Transient, Some("the receiver failed with 500")),
        (503, Outcome::Transient, Some("the receiver failed with 503")),
        (504, Outcome::Transient, Some("the receiver failed with 504")),
    ];
    for (status, outcome, error) in cases {
        let mut headers = HeaderMap::new();
        headers.insert("location", "https://login.exemplo.test/a?token=SECRET-80".parse().unwrap());
        headers.insert("retry-after", "120".parse().unwrap());
        let body = Bytes::from_static(b"at /webhook/SECRET-80-C?token=SECRET-80-D");
        let end = channel("https://n8n.exemplo.test/webhook/SECRET-80-C?token=SECRET-80-D", None)
            .judge(&WireEnd::Answer { status, headers, body }, Timestamp::UNIX_EPOCH);
        assert_eq!((end.outcome, end.error.as_deref()), (outcome, error), "{status}");
        let waits = (outcome != Outcome::Accepted).then(|| Duration::from_secs(120));
        assert_eq!(end.retry_after, waits, "{status}");
        assert!(!format!("{end:?}").contains("SECRET-80"), "{end:?}");
    }
    let lost =
        channel("https://a.test/", None).judge(&WireEnd::NoAnswer { what: "reset".into() }, Timestamp::UNIX_EPOCH);
    assert_eq!(lost.outcome, Outcome::Ambiguous);
    let refused =
        channel("https://a.test/", None).judge(&WireEnd::NotWritten { what: "dns".into() }, Timestamp::UNIX_EPOCH);
    assert_eq!(refused.outcome, Outcome::Transient);
}

#[test]
fn a_redirect_without_a_host_reveals_nothing() {
    for location in ["/login?token=SECRET-80", "//x", "https://", "https://a b/c", ""] {
        let mut headers = HeaderMap::new();
        headers.insert("location", location.parse().unwrap());
        let end = channel("https://a.test/x", None)
            .judge(&WireEnd::Answer { status: 302, headers, body: Bytes::new() }, Timestamp::UNIX_EPOCH);
        assert_eq!(end.error.as_deref(), Some("redirect to the same host, set the final URL"), "{location}");
    }
}
