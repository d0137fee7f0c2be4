use std::collections::BTreeSet;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::inbound::shown::{outcome, request, source, table};
use crate::inbound::{Part, PartEntry, Provider};

fn read(body: &Value) -> Vec<Part> {
    source(Provider::WhatsappCloud).read(&request(body.to_string())).unwrap()
}

#[test]
fn messages_are_read_with_everybody_they_name() {
    // FC-18, FC-47.
    let shown = table(&source(Provider::WhatsappCloud), include_str!("../fixtures/messages.json"));
    expect_file!["../fixtures/messages.txt"].assert_eq(&shown);
}

#[test]
fn what_is_no_customers_message_is_recorded_with_its_reason() {
    // FC-13, FC-21, FC-22.
    let shown = table(&source(Provider::WhatsappCloud), include_str!("../fixtures/ignored.json"));
    expect_file!["../fixtures/ignored.txt"].assert_eq(&shown);
}

#[test]
fn receipts_are_read_by_message_id_with_our_reference_and_their_error() {
    // FC-31.
    let shown = table(&source(Provider::WhatsappCloud), include_str!("../fixtures/receipts.json"));
    expect_file!["../fixtures/receipts.txt"].assert_eq(&shown);
}

#[test]
fn odd_bodies_are_quarantined_and_other_numbers_refused_or_set_aside() {
    let shown = table(&source(Provider::WhatsappCloud), include_str!("../fixtures/odd.json"));
    expect_file!["../fixtures/odd.txt"].assert_eq(&shown);
}

/// Two entries of two changes with three messages and four statuses each, two numbers, and a field from the future.
fn batch(from: u32) -> Value {
    let mut n = from;
    let mut next = || {
        n += 1;
        n
    };
    let mut change = |number: &str| {
        let messages: Vec<Value> = (0..3)
            .map(|_| {
                let n = next();
                json!({ "from": format!("55419999{n:05}"), "id": format!("wamid.M{n}"), "timestamp": "1790000000",
                        "type": "text", "text": { "body": "oi" } })
            })
            .collect();
        let statuses: Vec<Value> = (0..4)
            .map(|_| json!({ "id": format!("wamid.S{}", next()), "status": "sent", "timestamp": "1790000000" }))
            .collect();
        json!({ "field": "messages", "value": { "metadata": { "phone_number_id": number },
                "messages": messages, "statuses": statuses } })
    };
    let entries = [
        json!({ "id": "1", "changes": [change("2000"), change("3000")] }),
        json!({ "id": "2", "changes": [change("2000"), change("3000"), { "field": "new_field", "value": {} }] }),
    ];
    json!({ "object": "whatsapp_business_account", "entry": entries })
}

#[test]
fn every_item_of_a_batch_is_a_part_with_a_key_of_its_own() {
    // FC-29.
    let parts = read(&batch(0));
    let of = |entry: fn(&PartEntry) -> bool| parts.iter().filter(|part| entry(&part.entry)).count();
    assert_eq!(of(|entry| *entry == PartEntry::Received), 12);
    assert_eq!(of(|entry| *entry == PartEntry::Ignored("receipt")), 16);
    assert_eq!(of(|entry| *entry == PartEntry::Ignored("unknown_type")), 1);
    assert_eq!(parts.iter().filter(|part| part.receipt.is_some()).count(), 16);
    let keys = |parts: &[Part]| parts.iter().map(|part| part.delivery_key).collect::<BTreeSet<_>>();
    assert_eq!(keys(&parts).len(), 29);
    assert_eq!(keys(&read(&batch(0))), keys(&parts), "the same body again says nothing new");
    // Two of four changes again, and two new ones.
    let overlap = read(&batch(14));
    assert_eq!(keys(&overlap).difference(&keys(&parts)).count(), 14);
}

#[test]
fn a_body_of_too_many_items_is_quarantined_whole() {
    let many: Vec<Value> = (0..1500).map(|n| json!({ "id": format!("wamid.{n}") })).collect();
    let body = json!({ "entry": [{ "changes": [{ "field": "messages", "value":
        { "metadata": { "phone_number_id": "2000" }, "messages": many } }] }] });
    let shown = outcome(&source(Provider::WhatsappCloud).read(&request(body.to_string())));
    assert!(shown.starts_with("unknown (quarantined: more than 1000 events in one body)"), "{shown}");
}
