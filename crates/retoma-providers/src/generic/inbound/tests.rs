use std::collections::BTreeMap;

use expect_test::expect_file;

use super::*;
use crate::inbound::shown::{outcome, request, source, table};
use crate::inbound::{Provider, Source};

fn path(text: &str) -> Option<Path> {
    Some(Path::parse(text).unwrap())
}

fn mapped(on_missing_id: OnMissingId) -> Source {
    let mut source = source(Provider::Generic);
    source.mapping = Some(Mapping {
        id: path("$.id").into_iter().collect(),
        kind: path("$.event"),
        contact: path("$.phone"),
        order: path("$.order_id"),
        offer: path("$.product"),
        occurred_at: path("$.ts"),
        text: path("$.text"),
        vars: vec![("order.total".into(), path("$.total").unwrap()), ("x.y".into(), path("$.missing").unwrap())],
        types: BTreeMap::from([
            ("order.paid".to_owned(), EventKind::PaymentApproved),
            ("truque".to_owned(), EventKind::ClockTimeout),
        ]),
        on_missing_id,
        ..Mapping::default()
    });
    source
}

#[test]
fn bodies_are_read_by_their_paths() {
    // FC-19, FC-47, FC-49, FC-52; A4, A6, A9.
    let mut source = mapped(OnMissingId::Hold);
    if let Some(mapping) = &mut source.mapping {
        mapping.required = vec![path("$.event").unwrap()];
    }
    expect_file!["../fixtures/mapped.txt"].assert_eq(&table(&source, include_str!("../fixtures/mapped.json")));
}

#[test]
fn a_missing_id_is_held_refused_or_fingerprinted_as_configured() {
    let body = |text: &str| request(format!(r#"{{"event":"pix.created","phone":"5541999990001","text":"{text}"}}"#));
    assert_eq!(
        outcome(&mapped(OnMissingId::Reject).read(&body("a"))),
        "refused: body: $.id is missing, and events without an id are refused here\n"
    );
    let entry = |on_missing_id, text: &str| mapped(on_missing_id).read(&body(text)).unwrap().remove(0);
    assert_eq!(entry(OnMissingId::Hold, "a").entry, PartEntry::Held("missing_id"));
    let (first, again, other) = (
        entry(OnMissingId::Fingerprint, "a"),
        entry(OnMissingId::Fingerprint, "a"),
        entry(OnMissingId::Fingerprint, "b"),
    );
    assert_eq!(first.entry, PartEntry::Received);
    assert_eq!(first.delivery_key, again.delivery_key);
    assert_ne!(first.delivery_key, other.delivery_key);
    // Held and fingerprinted parts never share a key: what was held stays held after the configuration changed.
    assert_ne!(entry(OnMissingId::Hold, "a").delivery_key, first.delivery_key);
}

#[test]
fn a_fingerprint_covers_the_meaning_and_not_the_spelling() {
    let read =
        |body: &str| mapped(OnMissingId::Fingerprint).read(&request(body.to_owned())).unwrap().remove(0).delivery_key;
    let plain = read(r#"{"event":"pix.created","text":"ação"}"#);
    assert_eq!(plain, read(r#" { "text" : "a\u00e7\u00e3o", "event": "pix.created" } "#));
    assert_ne!(plain, read(r#"{"event":"boleto.created","text":"ação"}"#));
}

#[test]
fn ids_keep_their_type_and_their_text() {
    // FC-49.
    let key = |id: &str| {
        let body = format!(r#"{{"id":{id},"event":"pix.created"}}"#);
        mapped(OnMissingId::Reject).read(&request(body)).unwrap().remove(0).delivery_key
    };
    let ids = [
        "9007199254740993",
        "9007199254740992",
        "1",
        "1.0",
        "\"1\"",
        "1e3",
        "12345678901234567890123",
        "\"00123\"",
        "-0",
    ];
    let keys: std::collections::BTreeSet<_> = ids.iter().map(|id| key(id)).collect();
    assert_eq!(keys.len(), ids.len());
    assert_eq!(key("1"), key("1"));
}

#[test]
fn the_same_id_at_another_source_or_tenant_is_another_delivery() {
    let body = || request(r#"{"id":"1","event":"pix.created"}"#.to_owned());
    let key = |source: &Source| source.read(&body()).unwrap().remove(0).delivery_key;
    let (first, mut other_name, mut other_tenant) =
        (mapped(OnMissingId::Hold), mapped(OnMissingId::Hold), mapped(OnMissingId::Hold));
    other_name.name = "outra".into();
    other_tenant.tenant = "outro".into();
    assert_ne!(key(&first), key(&other_name));
    assert_ne!(key(&first), key(&other_tenant));
    // The business key is the platform's and the account's, whichever door the fact came through.
    let fact = |source: &Source| {
        let body = request(r#"{"id":"1","event":"pix.created","order_id":"P"}"#.to_owned());
        source.read(&body).unwrap().remove(0).business_key.unwrap()
    };
    assert_eq!(fact(&first), fact(&other_name));
    assert_ne!(fact(&first), fact(&other_tenant));
}

#[test]
fn a_generic_sender_is_told_what_is_wrong() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "refused: body: the body is empty\n"),
        (b"{\"id\":", "refused: body: not JSON: EOF while parsing a value at line 1 column 6\n"),
        (b"{}{}", "refused: body: more follows after the JSON value: trailing characters at line 1 column 3\n"),
        (b"\xff\xfe{\x00", "refused: body: UTF-16 text; UTF-8 is expected\n"),
        (b"{\"a\":\"\xe7\"}", "refused: body: not UTF-8: a wrong byte at 6\n"),
    ];
    for (body, expected) in cases {
        assert_eq!(outcome(&mapped(OnMissingId::Hold).read(&request(body.to_vec()))), *expected);
    }
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(
        outcome(&mapped(OnMissingId::Hold).read(&request(deep))),
        "refused: body: not JSON: recursion limit exceeded at line 1 column 128\n"
    );
    let many = format!("[{}]", vec!["{}"; 1001].join(","));
    assert_eq!(
        outcome(&mapped(OnMissingId::Hold).read(&request(many))),
        "refused: body: more than 1000 events in one body\n"
    );
    let mut packed = request(b"{}".to_vec());
    packed.headers.insert("content-encoding", "br".parse().unwrap());
    assert_eq!(mapped(OnMissingId::Hold).read(&packed).unwrap_err(), Refusal::Encoding("br".into()));
}

#[test]
fn form_fields_are_mapped_like_any_body() {
    // FC-50.
    let mut form = request("id=50&event=order.paid&phone=%2B5541999990001&order_id=P-9".to_owned());
    form.headers.insert("content-type", "application/x-www-form-urlencoded; charset=UTF-8".parse().unwrap());
    let part = mapped(OnMissingId::Hold).read(&form).unwrap().remove(0);
    assert_eq!((part.kind, part.key.as_str(), part.identities.len()), (EventKind::PaymentApproved, "\"50\"", 2));
}

#[test]
fn renewals_of_one_order_on_two_days_are_two_facts() {
    let fact = |kind: &str, ts: &str| {
        let body = format!(r#"{{"id":"x","event":"{kind}","order_id":"P","ts":"{ts}"}}"#);
        mapped(OnMissingId::Hold).read(&request(body)).unwrap().remove(0).business_key
    };
    let (august, september) = ("2026-08-20T12:00:00Z", "2026-09-20T12:00:00Z");
    assert_ne!(fact("subscription.renewed", august), fact("subscription.renewed", september));
    assert_eq!(fact("payment.approved", august), fact("payment.approved", september));
    assert_eq!(fact("payment.partially_refunded", august), None);
    assert_eq!(fact("message.received", august), None);
}

#[test]
fn an_id_of_several_pieces_is_known_when_all_of_them_are() {
    // A4: order id + event type + version.
    let mut source = mapped(OnMissingId::Hold);
    source.mapping.as_mut().unwrap().id = ["$.order_id", "$.event", "$.v"].map(|text| path(text).unwrap()).into();
    let read = |body: &str| source.read(&request(body.to_owned())).unwrap().remove(0);
    let first = read(r#"{"order_id":"P1","event":"pix.created","v":2}"#);
    assert_eq!(first.key, "P1/pix.created/2");
    assert_eq!(first.delivery_key, read(r#"{"v":2,"order_id":"P1","event":"pix.created","x":1}"#).delivery_key);
    assert_ne!(first.delivery_key, read(r#"{"order_id":"P1","event":"pix.created","v":"2"}"#).delivery_key);
    assert_eq!(read(r#"{"order_id":"P1","event":"pix.created"}"#).entry, PartEntry::Held("missing_id"));
}

#[test]
fn a_fingerprint_leaves_out_what_changes_with_every_attempt() {
    let mut source = mapped(OnMissingId::Fingerprint);
    source.mapping.as_mut().unwrap().fingerprint_without =
        ["$.sent_at", "$.items[*].seen"].map(|t| path(t).unwrap()).into();
    let key = |body: &str| source.read(&request(body.to_owned())).unwrap().remove(0).delivery_key;
    let first = key(r#"{"event":"pix.created","sent_at":1,"items":[{"n":1,"seen":1},{"n":2,"seen":2}]}"#);
    assert_eq!(first, key(r#"{"event":"pix.created","sent_at":9,"items":[{"n":1,"seen":8},{"n":2,"seen":7}]}"#));
    assert_ne!(first, key(r#"{"event":"pix.created","sent_at":1,"items":[{"n":1,"seen":1},{"n":3,"seen":2}]}"#));
    assert_ne!(first, key(r#"{"event":"pix.expired","sent_at":1,"items":[{"n":1,"seen":1},{"n":2,"seen":2}]}"#));
}

#[test]
fn what_comes_from_another_shop_is_refused_and_among_others_set_aside() {
    // A1, A6.
    let mut source = mapped(OnMissingId::Hold);
    source.origin = vec![(path("$.store.id").unwrap(), "77".to_owned())];
    let read = |body: &str| outcome(&source.read(&request(body.to_owned())));
    let foreign = "refused: origin: $.store.id is not what the source's origin says\n";
    let ours = r#"{"id":"a","event":"pix.created","store":{"id":77}}"#;
    let theirs = r#"{"id":"b","event":"pix.created","store":{"id":78}}"#;
    assert!(read(ours).starts_with("pix.created (received)"));
    assert_eq!(read(theirs), foreign);
    assert_eq!(read("{}"), foreign);
    assert_eq!(read(&format!("[{theirs},{theirs}]")), foreign);
    let mixed = read(&format!("[{theirs},{ours}]"));
    assert!(
        mixed.starts_with("unknown (quarantined: $.store.id is not") && mixed.contains("pix.created (received)"),
        "{mixed}"
    );
    assert!(read("[]").starts_with("unknown (ignored: empty_list)"));
}

#[test]
fn standard_webhooks_key_what_has_no_id_of_its_own() {
    let mut source = mapped(OnMissingId::Hold);
    source.mapping.as_mut().unwrap().id.clear();
    source.auth = crate::inbound::Auth::StandardWebhooks { secrets: vec![], tolerance: std::time::Duration::ZERO };
    let read = |id: Option<&str>, body: &str| {
        let mut request = request(body.to_owned());
        id.map(|id| request.headers.insert("webhook-id", id.parse().unwrap()));
        source.read(&request).unwrap()
    };
    let event = r#"{"event":"pix.created"}"#;
    assert_eq!(read(Some("msg_1"), event)[0].key, "envelope/msg_1");
    let list = read(Some("msg_1"), &format!("[{event},{event}]"));
    assert_eq!(list.iter().map(|part| part.key.as_str()).collect::<Vec<_>>(), ["envelope/msg_1/0", "envelope/msg_1/1"]);
    assert_eq!(read(None, event)[0].entry, PartEntry::Held("missing_id"));
}
