use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::ids::TaskId;

use super::*;
use crate::outbound::{Channel, ChannelKind, Outbound, WireEnd};

fn channel() -> Channel {
    Channel {
        name: "zap".into(),
        tenant: "default".into(),
        kind: ChannelKind::Evolution {
            base_url: "http://127.0.0.1:8081".into(),
            instance: "loja a".into(),
            api_key: Secret(b"SECRET-80-A".to_vec()),
        },
        on_ambiguous: None,
        deadline: Duration::from_secs(30),
        concurrency: 4,
        rate: None,
        pair_every: None,
    }
}

fn answer(status: u16, body: &str) -> WireEnd {
    WireEnd::Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn send(identities: &[Identity]) -> Result<WireRequest, CannotWrite> {
    channel().request(&Outgoing {
        other_spelling: false,
        task: &TaskId::new("pix:HP0000000001:t15"),
        attempt: 1,
        identities,
        text: "Olá \"Ana\" 😀\nseu PIX",
        message: "lembrete_pix",
        vars: &Default::default(),
        unix_seconds: 1_790_000_000,
    })
}

fn jid(text: &str) -> Identity {
    Identity::from_jid(text).unwrap()
}

fn typed(jid_text: &str) -> Identity {
    Identity { confirmed: false, ..jid(jid_text) }
}

#[test]
fn a_send_is_one_post_with_the_key_in_a_header_and_no_delay() {
    let request = send(&[jid("554199990001@s.whatsapp.net")]).unwrap();
    assert_eq!(request.url, "http://127.0.0.1:8081/message/sendText/loja%20a");
    assert_eq!(request.headers["apikey"], "SECRET-80-A");
    assert_eq!(request.headers["content-type"], "application/json");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"number": "554199990001", "text": "Olá \"Ana\" 😀\nseu PIX", "delay": 0}));
    assert!(!format!("{request:?}").contains("SECRET-80"));
}

#[test]
fn the_address_is_what_whatsapp_reported_then_the_phone_then_the_lid() {
    // FC-14, FC-16.
    let (short, long) = ("553188160016@s.whatsapp.net", "5531988160016@s.whatsapp.net");
    let lid = "200000000000014@lid";
    let email = || Identity::email("ana@example.com").unwrap();
    let cases = [
        (vec![typed(long), jid(short)], Some("553188160016")),
        (vec![jid(lid), typed(long)], Some("5531988160016")),
        (vec![email(), jid(lid)], Some("200000000000014@lid")),
        (vec![email()], None),
        (vec![], None),
    ];
    for (identities, expected) in cases {
        assert_eq!(address(&identities), expected);
        assert_eq!(send(&identities).is_ok(), expected.is_some());
    }
}

#[test]
fn every_row_of_the_table_is_read_as_the_reference_says() {
    let error = |message: &str| format!(r#"{{"status":0,"error":"x","response":{{"message":{message}}}}}"#);
    let prisma = r#"["PrismaClientKnownRequestError: Invalid `this.prismaRepository.message.create()` invocation"]"#;
    let exists = r#"[{"jid":"554199990001@s.whatsapp.net","exists":false,"number":"5541999990001"}]"#;
    let cases = [
        ("the request is not valid", 400, error(r#"[["instance requires property \"text\""]]"#), Outcome::Content),
        (
            "the request is not valid, says another version",
            400,
            error(r#"["instance requires property \"text\""]"#),
            Outcome::Content,
        ),
        ("the text is empty", 400, error(r#"["Text is required"]"#), Outcome::Content),
        ("the number is not on WhatsApp", 400, error(exists), Outcome::Recipient),
        ("the group is unknown", 400, error(r#"["[object Object]"]"#), Outcome::Recipient),
        (
            "the instance is not started, found while sending",
            400,
            error(r#"["TypeError: Cannot read properties of undefined (reading 'sendMessage')"]"#),
            Outcome::Transient,
        ),
        (
            "the instance is not started, found while sending",
            400,
            error(r#"["TypeError: Cannot read properties of undefined (reading 'presenceSubscribe')"]"#),
            Outcome::Transient,
        ),
        (
            "the connection to WhatsApp closed while sending",
            400,
            error(r#"["Error: Connection Closed"]"#),
            Outcome::Ambiguous,
        ),
        ("WhatsApp did not confirm the send in time", 400, error(r#"["Error: Timed Out"]"#), Outcome::Ambiguous),
        ("the provider could not store the message: it almost surely went out", 400, error(prisma), Outcome::Ambiguous),
        ("a 400 that may have come after the send", 400, error(r#"["Error: S3 upload failed"]"#), Outcome::Ambiguous),
        ("a 400 that may have come after the send", 400, error(r#""Connection Closed""#), Outcome::Ambiguous),
        ("a 400 that may have come after the send", 400, error(r#"[{"exists":true}]"#), Outcome::Ambiguous),
        ("a 400 that may have come after the send", 400, String::new(), Outcome::Ambiguous),
        ("the apikey is refused", 401, error(r#""Unauthorized""#), Outcome::Credentials),
        ("the apikey is refused", 403, "<html>Forbidden</html>".into(), Outcome::Credentials),
        ("the instance does not exist", 404, error(r#"["The \"x\" instance does not exist"]"#), Outcome::Credentials),
        ("base_url is no Evolution API", 404, error(r#"["Cannot POST /message/sendTexto/x"]"#), Outcome::Credentials),
        ("404 from something in between", 404, "<html>404</html>".into(), Outcome::Transient),
        ("the message is too large", 413, String::new(), Outcome::Content),
        ("too many requests", 429, String::new(), Outcome::RateNumber),
        ("the instance has no connection to WhatsApp", 500, error(r#""Connection Closed""#), Outcome::Transient),
        (
            "the instance is not started",
            500,
            error(r#""Cannot read properties of undefined (reading 'onWhatsApp')""#),
            Outcome::Transient,
        ),
        (
            "the instance is not started",
            500,
            error(r#""Cannot read properties of undefined (reading 'textMessage')""#),
            Outcome::Transient,
        ),
        (
            "the provider's database failed before the send",
            500,
            error(r#""Invalid `prisma.contact.findMany()` invocation""#),
            Outcome::Transient,
        ),
        (
            "the provider's database failed before the send",
            500,
            error(r#""relation isOnWhatsapp""#),
            Outcome::Transient,
        ),
        ("WhatsApp did not confirm in time", 500, error(r#""Timed Out""#), Outcome::Ambiguous),
        ("WhatsApp did not confirm in time", 500, r#"{"message":"Timed Out"}"#.into(), Outcome::Ambiguous),
        // 2.3.0 answered a dead socket so (#1772): text and shape together decide, and this pair is unknown.
        ("a 500 that may have come after the send", 500, error(r#"["Error: Connection Closed"]"#), Outcome::Ambiguous),
        ("a 500 that may have come after the send", 500, "Internal Server Error".into(), Outcome::Ambiguous),
        ("a proxy lost the answer", 502, "<html>Bad Gateway</html>".into(), Outcome::Ambiguous),
        ("a proxy lost the answer", 504, String::new(), Outcome::Ambiguous),
        ("an answer that nobody knows: it may have been sent", 418, String::new(), Outcome::Ambiguous),
        ("an answer that nobody knows: it may have been sent", 507, String::new(), Outcome::Ambiguous),
    ];
    let mut seen = BTreeSet::new();
    for (error, status, body, outcome) in cases {
        let end = channel().judge(&answer(status, &body), Timestamp::UNIX_EPOCH);
        assert_eq!((end.outcome, end.error.as_deref()), (outcome, Some(error)), "{status} {body}");
        assert_eq!((end.http_status, end.provider_message_id), (Some(status), None));
        seen.insert(error);
    }
    let rows: BTreeSet<&str> = table::ROWS.iter().map(|row| row.error).collect();
    assert_eq!(rows.len(), table::ROWS.len(), "two rows share a sentence");
    let unseen: Vec<_> = rows.difference(&seen).collect();
    assert!(unseen.is_empty(), "rows without a case: {unseen:?}");
}

#[test]
fn only_an_answer_with_a_message_id_is_accepted() {
    // FC-70.
    let created = r#"{"key":{"remoteJid":"554199990001@s.whatsapp.net","fromMe":true,"id":"3EB0000000000TESTE01"},"status":"PENDING"}"#;
    let cases = [
        (201, created, Outcome::Accepted, Some("3EB0000000000TESTE01")),
        (200, created, Outcome::Accepted, Some("3EB0000000000TESTE01")),
        (201, r#"{"status":"PENDING"}"#, Outcome::Ambiguous, None),
        (200, r#"{"key":{}}"#, Outcome::Ambiguous, None),
        (200, r#"{"key":{"id":""}}"#, Outcome::Ambiguous, None),
        (200, r#"{"messages":[]}"#, Outcome::Ambiguous, None),
        (200, r#"{"error":{"code":190}}"#, Outcome::Ambiguous, None),
        (200, "{quebrado", Outcome::Ambiguous, None),
        (204, "", Outcome::Ambiguous, None),
    ];
    for (status, body, outcome, id) in cases {
        let end = channel().judge(&answer(status, body), Timestamp::UNIX_EPOCH);
        assert_eq!((end.outcome, end.provider_message_id.as_deref()), (outcome, id), "{body}");
    }
}

#[test]
fn the_phase_of_a_failure_decides_without_an_answer() {
    // FC-32.
    let end = channel().judge(&WireEnd::NotWritten { what: "refused".into() }, Timestamp::UNIX_EPOCH);
    assert_eq!((end.outcome, end.error.as_deref()), (Outcome::Transient, Some("not sent: refused")));
    let end = channel().judge(&WireEnd::NoAnswer { what: "timeout".into() }, Timestamp::UNIX_EPOCH);
    assert_eq!(
        (end.outcome, end.error.as_deref()),
        (Outcome::Ambiguous, Some("written, and no full answer came: timeout"))
    );
}

#[test]
fn a_redirect_stops_the_channel_and_names_only_the_host() {
    let mut headers = HeaderMap::new();
    headers.insert("location", "https://u:SECRET-80-B@evo.exemplo.test:8443/t/SECRET-80-C?x=1".parse().unwrap());
    let end = channel().judge(&WireEnd::Answer { status: 301, headers, body: Bytes::new() }, Timestamp::UNIX_EPOCH);
    assert_eq!(
        (end.outcome, end.error.as_deref()),
        (Outcome::Credentials, Some("redirect to evo.exemplo.test:8443, set the final URL"))
    );
}

#[test]
fn an_echoed_key_a_phone_and_a_text_never_reach_the_record() {
    // FC-80.
    let body = r#"{"status":500,"response":{"message":"SECRET-80-A 5541999990001"},"headers":{"apikey":"SECRET-80-A"},
        "message":{"conversation":"texto secreto"}}"#;
    let end = channel().judge(&answer(500, body), Timestamp::UNIX_EPOCH);
    let shown = format!("{end:?}");
    for hidden in ["SECRET-80", "5541999990001", "texto secreto"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    assert!(end.response.unwrap().contains("\"status\":500"));
}

#[test]
fn a_wish_to_wait_is_kept() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "7".parse().unwrap());
    let end = channel().judge(&WireEnd::Answer { status: 429, headers, body: Bytes::new() }, Timestamp::UNIX_EPOCH);
    assert_eq!((end.outcome, end.retry_after), (Outcome::RateNumber, Some(Duration::from_secs(7))));
}

// FC-64; reliability C.3: a 503 that says when to come back took nothing, one that says nothing may have.
#[test]
fn a_503_that_asks_to_come_back_was_not_sent() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "1.5".parse().unwrap());
    let end = channel().judge(&WireEnd::Answer { status: 503, headers, body: Bytes::new() }, Timestamp::UNIX_EPOCH);
    assert_eq!((end.outcome, end.retry_after), (Outcome::RateNumber, Some(Duration::from_millis(1500))));
    assert_eq!(channel().judge(&answer(503, ""), Timestamp::UNIX_EPOCH).outcome, Outcome::Ambiguous);
}
