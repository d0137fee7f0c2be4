use expect_test::expect_file;
use jiff::Timestamp;

use crate::inbound::shown::{outcome, request, source, table};
use crate::inbound::{Part, PartEntry, Provider};

fn read(body: &str) -> Vec<Part> {
    source(Provider::Evolution).read(&request(body.to_owned())).unwrap()
}

#[test]
fn messages_are_read_with_everybody_they_name() {
    // FC-14, FC-16, FC-47.
    let shown = table(&source(Provider::Evolution), include_str!("../fixtures/messages.json"));
    expect_file!["../fixtures/messages.txt"].assert_eq(&shown);
}

#[test]
fn what_is_no_customers_message_is_recorded_with_its_reason() {
    // FC-06, FC-10, FC-13, FC-21, FC-22, FC-24.
    let shown = table(&source(Provider::Evolution), include_str!("../fixtures/ignored.json"));
    expect_file!["../fixtures/ignored.txt"].assert_eq(&shown);
}

#[test]
fn receipts_are_read_by_message_id() {
    let shown = table(&source(Provider::Evolution), include_str!("../fixtures/receipts.json"));
    expect_file!["../fixtures/receipts.txt"].assert_eq(&shown);
}

#[test]
fn a_channel_that_comes_up_or_goes_down_is_an_event() {
    let shown = table(&source(Provider::Evolution), include_str!("../fixtures/connection.json"));
    expect_file!["../fixtures/connection.txt"].assert_eq(&shown);
}

#[test]
fn odd_bodies_are_quarantined_and_other_instances_refused() {
    let shown = table(&source(Provider::Evolution), include_str!("../fixtures/odd.json"));
    expect_file!["../fixtures/odd.txt"].assert_eq(&shown);
}

#[test]
fn the_instances_token_reaches_no_part() {
    // FC-80.
    let files = [
        include_str!("../fixtures/messages.json"),
        include_str!("../fixtures/ignored.json"),
        include_str!("../fixtures/receipts.json"),
        include_str!("../fixtures/connection.json"),
        include_str!("../fixtures/odd.json"),
    ];
    for file in files {
        assert!(file.contains("SECRET-80"));
        for case in serde_json::from_str::<Vec<serde_json::Value>>(file).unwrap() {
            let result = source(Provider::Evolution).read(&request(case["body"].to_string()));
            assert!(!format!("{result:?}").contains("SECRET-80"), "{}", case["case"]);
        }
    }
}

#[test]
fn a_repetition_with_another_date_time_is_the_same_delivery_with_the_same_digest() {
    // FC-01.
    let body = |date_time: &str, token: &str| {
        format!(
            r#"{{"event":"messages.upsert","instance":"loja-a","date_time":"{date_time}","apikey":{token},"data":{{"key":{{
            "remoteJid":"5511900010001@s.whatsapp.net","fromMe":false,"id":"3EB0AAAA0001"}},"message":{{"conversation":
            "quero comprar"}},"messageTimestamp":1790000000}}}}"#
        )
    };
    let first = read(&body("2026-09-21T11:13:20.000Z", "\"a\""));
    for copy in [body("2026-09-21T11:13:50.000Z", "\"a\""), body("2026-09-21T11:14:20.000Z", "null")] {
        let copy = read(&copy);
        assert_eq!((copy[0].delivery_key, copy[0].digest), (first[0].delivery_key, first[0].digest));
    }
    let altered = read(&body("x", "null").replace("quero comprar", "outro texto"));
    assert_eq!(altered[0].delivery_key, first[0].delivery_key);
    assert_ne!(altered[0].digest, first[0].digest);
}

#[test]
fn one_message_id_with_a_lid_and_with_a_phone_is_one_delivery() {
    let body = |jid: &str| {
        format!(
            r#"{{"event":"messages.upsert","instance":"loja-a","data":{{"key":{{"remoteJid":"{jid}","id":"3EB0AAAA0001"}},
            "message":{{"conversation":"oi"}}}}}}"#
        )
    };
    let (lid, phone) = (read(&body("200000000000014@lid")), read(&body("554199990001@s.whatsapp.net")));
    assert_eq!(lid[0].delivery_key, phone[0].delivery_key);
}

#[test]
fn a_time_comes_in_many_shapes_and_is_one_instant() {
    // FC-25.
    let expected: Timestamp = "2026-09-21T14:13:45Z".parse().unwrap();
    for stamp in [
        "1790000025",
        "\"1790000025\"",
        "{\"low\":1790000025,\"high\":0,\"unsigned\":true}",
        "\"2026-09-21T11:13:45-03:00\"",
        "1790000025000",
    ] {
        let parts = read(&format!(
            r#"{{"event":"messages.upsert","instance":"loja-a","data":{{"key":{{"remoteJid":"554199990001@s.whatsapp.net",
            "id":"T"}},"message":{{"conversation":"oi"}},"messageTimestamp":{stamp}}}}}"#
        ));
        assert_eq!(parts[0].occurred_at, expected, "{stamp}");
        assert!(parts[0].data.flags.is_empty(), "{stamp}");
    }
}

#[test]
fn a_disconnection_tomorrow_is_another_one() {
    let body = |date_time: &str| {
        format!(
            r#"{{"event":"connection.update","instance":"loja-a","date_time":"{date_time}","data":{{"state":"close"}}}}"#
        )
    };
    let key = |date_time| read(&body(date_time))[0].delivery_key;
    assert_eq!(key("2026-09-21T11:13:20.000Z"), key("2026-09-21T11:13:20.000Z"));
    assert_ne!(key("2026-09-21T11:13:20.000Z"), key("2026-09-22T09:00:00.000Z"));
}

#[test]
fn unreadable_bytes_are_quarantined_and_an_empty_body_is_a_ping() {
    // FC-50, FC-52.
    let cases: &[(&[u8], &str)] = &[
        (b"", "unknown (ignored: ping)"),
        (b"{\"event\":", "unknown (quarantined: not JSON: EOF while parsing a value at line 1 column 9)"),
        (
            b"{} lixo",
            "unknown (quarantined: more follows after the JSON value: trailing characters at line 1 column 4)",
        ),
        (b"\xff\xfe{\x00", "unknown (quarantined: UTF-16 text; UTF-8 is expected)"),
        (b"{\"a\":\"\xe7\"}", "unknown (quarantined: not UTF-8: a wrong byte at 6)"),
        (b"webhook_id=50", "unknown (quarantined: no event name)"),
    ];
    for (body, expected) in cases {
        let shown = outcome(&source(Provider::Evolution).read(&request(body.to_vec())));
        assert!(shown.starts_with(expected), "{shown}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(read(&deep)[0].entry, PartEntry::Quarantined(_)));
    let mut packed = request(b"{}".to_vec());
    packed.headers.insert("content-encoding", "br".parse().unwrap());
    let parts = source(Provider::Evolution).read(&packed).unwrap();
    assert_eq!(parts[0].entry, PartEntry::Quarantined("unknown content encoding \"br\"".into()));
}

#[test]
fn a_body_of_too_many_messages_is_quarantined_as_a_whole() {
    let items = vec!["{}"; 1001].join(",");
    let parts = read(&format!(r#"{{"event":"messages.upsert","instance":"loja-a","data":[{items}]}}"#));
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].entry, PartEntry::Quarantined("more than 1000 events in one body".into()));
}
