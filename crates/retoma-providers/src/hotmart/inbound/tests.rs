use expect_test::expect_file;
use serde_json::Value;

use crate::inbound::shown::{request, source, table};
use crate::inbound::{Part, Provider};

fn events() -> Vec<Value> {
    serde_json::from_str(include_str!("../fixtures/events.json")).unwrap()
}

fn read(body: &Value) -> Part {
    source(Provider::Hotmart).read(&request(body.to_string())).unwrap().remove(0)
}

fn named(case: &str) -> Value {
    events().into_iter().find(|found| found["case"] == case).unwrap()["body"].clone()
}

#[test]
fn every_event_is_read_with_buyer_order_and_values() {
    let shown = table(&source(Provider::Hotmart), include_str!("../fixtures/events.json"));
    expect_file!["../fixtures/events.txt"].assert_eq(&shown);
}

#[test]
fn odd_bodies_are_never_refused() {
    // FC-08, FC-19, FC-41, FC-49.
    let shown = table(&source(Provider::Hotmart), include_str!("../fixtures/odd.json"));
    expect_file!["../fixtures/odd.txt"].assert_eq(&shown);
    assert!(!shown.contains("SECRET-80"));
}

#[test]
fn one_fact_under_two_event_ids_has_one_business_key_and_the_guarantees_end_another() {
    // FC-08.
    let (first, again, complete) =
        (read(&named("approved")), read(&named("approved once more under another id")), read(&named("complete")));
    assert_ne!(first.delivery_key, again.delivery_key);
    assert_eq!(first.business_key, again.business_key);
    assert_ne!(first.business_key, complete.business_key);
    assert!(read(&named("refunded in part")).business_key.is_none());
    assert_ne!(read(&named("renewed")).business_key, first.business_key);
}

#[test]
fn one_cart_is_one_fact_with_or_without_its_phone_until_the_next_day() {
    let cart = named("cart left");
    let mut tomorrow = cart.clone();
    tomorrow["creation_date"] = (1_790_000_060_000u64 + 86_400_000).into();
    let key = |body: &Value| read(body).business_key.unwrap();
    assert_eq!(key(&cart), key(&named("cart left, without a phone")));
    assert_ne!(key(&cart), key(&tomorrow));
}

#[test]
fn neighbouring_ids_beyond_2_to_the_53_are_two_events() {
    // FC-49.
    let with_id = |id: &str| {
        let body = named("approved").to_string().replace("\"h-3\"", id);
        source(Provider::Hotmart).read(&request(body)).unwrap().remove(0).delivery_key
    };
    assert_ne!(with_id("9007199254740993"), with_id("9007199254740992"));
    assert_eq!(with_id("9007199254740993"), with_id("9007199254740993"));
}

#[test]
fn a_changed_token_in_the_body_changes_no_digest() {
    let (mut one, mut other) = (named("approved"), named("approved"));
    one["hottok"] = "a".into();
    other["hottok"] = "b".into();
    assert_eq!(read(&one).digest, read(&other).digest);
}

#[test]
fn what_another_producer_sold_is_refused_and_among_others_set_aside() {
    // A1: one address, several accounts of one owner.
    let mut source = source(Provider::Hotmart);
    let path = crate::inbound::Path::parse("$.data.producer.document").unwrap();
    source.origin = vec![(path, "00000000000191".to_owned())];
    let mut ours = named("approved");
    ours["data"]["producer"] = serde_json::json!({ "document": "00000000000191" });
    let mut theirs = ours.clone();
    theirs["data"]["producer"]["document"] = "00000000000272".into();
    theirs["id"] = "h-other".into();
    let read = |body: &Value| source.read(&request(body.to_string()));
    assert_eq!(read(&ours).unwrap().len(), 1);
    let refused = read(&theirs).unwrap_err().to_string();
    assert_eq!(refused, "origin: $.data.producer.document is not what the source's origin says");
    let parts = read(&Value::Array(vec![theirs, ours])).unwrap();
    let quarantined = |part: &Part| matches!(part.entry, crate::inbound::PartEntry::Quarantined(_));
    assert_eq!(parts.iter().map(quarantined).collect::<Vec<_>>(), [true, false]);
}
