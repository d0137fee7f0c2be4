//! The answer table of INTERFACE.md, both columns: generic sources and provider presets (A2, FC-41, FC-47, FC-50, FC-52).

use std::io::Write;

use axum::body::Body;
use axum::http::Request;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::house::{Answer, House, message, pix};

const JSON: (&str, &str) = ("content-type", "application/json");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn order(id: &str) -> Value {
    json!({ "id": id, "event": "order.pix", "phone": "5541999990001", "order": format!("P-{id}") })
}

/// A body that each column understands, with an id of its own.
fn understood(column: &str, id: &str) -> Vec<u8> {
    let body = if column == "pedidos" { order(id) } else { pix(id, "5541999990001", id) };
    body.to_string().into_bytes()
}

fn deep(levels: usize) -> Vec<u8> {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels)).into_bytes()
}

/// A row: its name, its headers, its body by column, and the status that a generic source and a preset answer.
type Row<'a> = (&'a str, Vec<(&'a str, &'a str)>, fn(&str) -> Vec<u8>, u16, u16);

fn rows() -> Vec<Row<'static>> {
    vec![
        ("new", vec![JSON], |c| understood(c, "n1"), 202, 200),
        ("broken JSON", vec![JSON], |_| b"{\"id\": ".to_vec(), 400, 200),
        ("too deep", vec![JSON], |_| deep(5_000), 400, 200),
        ("much too deep", vec![JSON], |_| b"[".repeat(50_000), 400, 200),
        ("wrong shape", vec![JSON], |_| b"\"a text\"".to_vec(), 400, 200),
        ("no usable id", vec![JSON], |c| understood(c, ""), 202, 200),
        ("text/plain", vec![("content-type", "text/plain")], |c| understood(c, "n2"), 202, 200),
        ("no content type", vec![], |c| understood(c, "n3"), 202, 200),
        ("odd content type", vec![("content-type", "application/x-odd; a=b")], |c| understood(c, "n4"), 202, 200),
        ("gzip", vec![JSON, ("content-encoding", "gzip")], |c| gzip(&understood(c, "n5")), 202, 200),
        ("declared gzip, sent plain", vec![JSON, ("content-encoding", "gzip")], |c| understood(c, "n6"), 202, 200),
        ("gzip beyond the limit", vec![JSON, ("content-encoding", "gzip")], |_| gzip(&vec![b' '; 1 << 20]), 413, 413),
        ("unknown encoding", vec![JSON, ("content-encoding", "br")], |c| understood(c, "n7"), 415, 200),
        ("UTF-8 BOM", vec![JSON], |c| [b"\xef\xbb\xbf".to_vec(), understood(c, "n8")].concat(), 202, 200),
        ("UTF-16", vec![JSON], |_| "{\"id\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect(), 400, 200),
        ("invalid UTF-8", vec![JSON], |_| b"{\"id\":\"\xe7\"}".to_vec(), 400, 200),
        ("NUL escaped", vec![JSON], |c| nul(c, "\\u0000"), 202, 200),
        ("NUL raw inside JSON", vec![JSON], |c| nul(c, "\0"), 400, 200),
        ("bytes after JSON", vec![JSON], |c| [understood(c, "n9"), b" {}".to_vec()].concat(), 400, 200),
        ("empty body", vec![JSON], |_| Vec::new(), 400, 200),
        ("unknown event type", vec![JSON], unknown_type, 202, 200),
        ("over the size", vec![JSON], |_| vec![b' '; 64 * 1024 + 1], 413, 413),
    ]
}

fn nul(column: &str, nul: &str) -> Vec<u8> {
    let id = if nul.len() == 1 { "n10" } else { "n11" };
    let text = String::from_utf8(understood(column, id)).unwrap();
    text.replacen('{', &format!("{{\"note\":\"a{nul}b\","), 1).into_bytes()
}

fn unknown_type(column: &str) -> Vec<u8> {
    let body = if column == "pedidos" {
        json!({ "id": "n12", "event": "order.moved", "phone": "5541999990001" })
    } else {
        json!({ "id": "n12", "event": "PURCHASE_MOVED", "version": "2.0.0", "data": {} })
    };
    body.to_string().into_bytes()
}

#[tokio::test]
async fn every_row_of_the_answer_table_holds_in_both_columns() {
    let house = House::new().await;
    for (name, headers, body, generic, preset) in rows() {
        for (column, expected) in [("pedidos", generic), ("loja-hotmart", preset)] {
            let answer = house.hook(column, &headers, body(column)).await;
            let told = String::from_utf8_lossy(&answer.bytes).into_owned();
            assert_eq!(answer.status.as_u16(), expected, "{name}, {column}: {told}");
            if answer.status.is_success() {
                assert!(answer.body["status"].is_string() && answer.body["event_id"].is_string(), "{name}: {told}");
            } else {
                is_problem(&answer, name);
            }
        }
    }
}

fn is_problem(answer: &Answer, name: &str) {
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{name}");
    assert!(answer.body["type"].as_str().unwrap().starts_with("/problems/"), "{name}");
    assert_eq!(answer.body["status"], answer.status.as_u16(), "{name}");
    for field in ["title", "detail", "instance"] {
        assert!(answer.body[field].as_str().is_some_and(|text| !text.is_empty()), "{name}: {field}");
    }
    assert_eq!(answer.headers["x-request-id"], answer.body["instance"].as_str().unwrap(), "{name}");
}

#[tokio::test]
async fn a_duplicate_names_the_state_of_its_first_copy_and_is_counted() {
    for (decide, generic, word) in [(false, 202, "received"), (true, 200, "decided")] {
        let house = House::with(decide).await;
        for (column, expected) in [("pedidos", generic), ("loja-hotmart", 200)] {
            let body = understood(column, "d1");
            let first = house.hook(column, &[JSON], body.clone()).await;
            if decide {
                house.decided(&first).await;
            }
            for copies in 1..=3 {
                let answer = house.hook(column, &[JSON], body.clone()).await;
                assert_eq!(answer.status.as_u16(), expected, "{column}, decided: {decide}");
                assert_eq!(answer.body["status"], word);
                assert_eq!(answer.body["event_id"], first.body["event_id"]);
                assert_eq!((&answer.body["duplicate"], &answer.body["duplicates"]), (&json!(true), &json!(copies)));
                assert_eq!(answer.body["result"].is_string(), decide, "the recorded outcome is reported");
            }
        }
    }
}

#[tokio::test]
async fn whoever_does_not_prove_himself_is_refused_by_every_column() {
    let house = House::new().await;
    for source in ["pedidos", "loja-hotmart", "zap"] {
        for credential in [None, Some("wrong"), Some("")] {
            for header in ["X-Token", "X-HOTMART-HOTTOK", "x-hook-secret"] {
                let mut request = Request::post(format!("/in/{source}"));
                if let Some(value) = credential {
                    request = request.header(header, value);
                }
                let answer = house.send(request.body(Body::from("{}")).unwrap()).await;
                assert_eq!(answer.status.as_u16(), 401, "{source} with {credential:?}");
                is_problem(&answer, source);
            }
        }
    }
}

#[tokio::test]
async fn doors_that_are_not_there_and_methods_they_do_not_take_are_told_apart() {
    let house = House::new().await;
    let ask = |method: &str, path: &str| Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    for (method, path, expected) in [
        ("POST", "/in/nobody", 404),
        ("POST", "/in/", 404),
        ("GET", "/in/pedidos", 405),
        ("PUT", "/in/pedidos", 405),
        ("GET", "/nothing", 404),
        ("GET", "/v1/nothing", 404),
    ] {
        let answer = house.send(ask(method, path)).await;
        assert_eq!(answer.status.as_u16(), expected, "{method} {path}");
        is_problem(&answer, path);
    }
    // FC-41: with and without the slash, and never a redirect.
    let answer = house.send(ask("POST", "/in/pedidos/")).await;
    assert_eq!(answer.status.as_u16(), 401);
}

#[tokio::test]
async fn another_instance_is_refused_and_nothing_of_it_is_stored() {
    let house = House::new().await;
    let mut body = message("M1", "5541999990001", "oi");
    body["instance"] = json!("loja-b");
    let answer = house.json("zap", &body).await;
    assert_eq!(answer.status.as_u16(), 403);
    is_problem(&answer, "origin");
    assert_eq!(house.get("/v1/events").await.body["items"], json!([]));
}

#[tokio::test]
async fn an_event_without_an_id_is_held_rejected_or_keyed_by_its_content() {
    let house = House::new().await;
    let body = json!({ "event": "order.pix", "phone": "5541999990001", "order": "P-77" });
    for (source, expected, word) in
        [("pedidos", 202, Some("held")), ("rejeita", 400, None), ("impressao", 202, Some("received"))]
    {
        let answer = house.json(source, &body).await;
        assert_eq!(answer.status.as_u16(), expected, "{source}");
        assert_eq!(answer.body["status"].as_str(), word, "{source}");
    }
}

#[tokio::test]
async fn a_source_over_its_rate_is_told_when_to_come_back() {
    let house = House::new().await;
    assert_eq!(house.json("devagar", &order("r1")).await.status.as_u16(), 202);
    let answer = house.json("devagar", &order("r2")).await;
    assert_eq!(answer.status.as_u16(), 429);
    let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3500..=3600).contains(&wait), "{wait}");
    assert_eq!(house.json("pedidos", &order("r2")).await.status.as_u16(), 202, "other doors stay open");
}

// FC-76
#[tokio::test]
async fn a_full_disk_answers_503_and_the_same_body_is_taken_once_there_is_room() {
    let house = House::new().await;
    assert_eq!(house.json("pedidos", &order("f0")).await.status.as_u16(), 202);
    house.faults.limit_pages(1);
    let big = json!({ "id": "f1", "event": "order.pix", "phone": "5541999990001", "pad": "x".repeat(60_000) });
    let mut refused = 0;
    for (source, body) in [("pedidos", big.clone()), ("loja-hotmart", pix(&"y".repeat(40_000), "5541999990001", "F2"))]
    {
        let answer = house.json(source, &body).await;
        if answer.status.as_u16() == 503 {
            refused += 1;
            is_problem(&answer, "full");
            assert!(answer.headers.contains_key("retry-after"));
        }
    }
    assert!(refused > 0, "the disk was full");
    house.faults.limit_pages(1 << 20);
    let answer = house.json("pedidos", &big).await;
    assert!(answer.status.is_success(), "{answer:?}");
}

#[tokio::test]
async fn parts_of_one_body_are_told_one_by_one() {
    let house = House::new().await;
    let mut body = message("B1", "5541999990001", "oi");
    let other = message("B2", "5541999990002", "oi")["data"].clone();
    body["data"] = json!([body["data"], other]);
    let answer = house.json("zap", &body).await;
    assert_eq!(answer.status.as_u16(), 200);
    let events = answer.body["events"].as_array().unwrap();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event["status"] == "received" && event["event_id"].is_string()));
}

// A5, FC-02
#[tokio::test]
async fn a_hundred_identical_requests_at_once_are_one_event() {
    let house = House::with(false).await;
    let body = order("same").to_string();
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let request = Request::post("/in/pedidos").header("X-Token", crate::house::SECRET);
        let request = request.body(Body::from(body.clone())).unwrap();
        let router = house.router.clone();
        all.spawn(async move { tower::ServiceExt::oneshot(router, request).await.unwrap().status().as_u16() });
    }
    while let Some(status) = all.join_next().await {
        assert_eq!(status.unwrap(), 202);
    }
    let events = house.get("/v1/events").await;
    assert_eq!(events.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(events.body["items"][0]["duplicates"], 99);
}
