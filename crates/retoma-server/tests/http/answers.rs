//! The answer table of INTERFACE.md, both columns: generic sources and provider presets (A2, FC-41, FC-47, FC-50, FC-52).

use std::io::Write;

use axum::body::Body;
use axum::http::Request;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::house::{Answer, House, SECRET, cloud_message, message, pix, proof};
use crate::wire::Wire;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn order(id: &str) -> Value {
    json!({ "id": id, "event": "order.pix", "phone": "5541999990001", "order": format!("P-{id}") })
}

/// A body that each column understands, with an id of its own.
fn understood(door: &str, id: &str) -> Vec<u8> {
    let phone = "5541999990001";
    let body = match door {
        "zap" => message(id, phone, "oi"),
        "nuvem" => cloud_message(id, "2000", phone, "oi"),
        door if door.contains("hotmart") => pix(id, phone, id),
        _ => order(id),
    };
    body.to_string().into_bytes()
}

fn deep(levels: usize) -> Vec<u8> {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels)).into_bytes()
}

/// One more field in an understood body.
fn with(door: &str, id: &str, field: &str) -> Vec<u8> {
    String::from_utf8(understood(door, id)).unwrap().replacen('{', &format!("{{{field},"), 1).into_bytes()
}

fn unknown_type(door: &str) -> Vec<u8> {
    let body = match door {
        "zap" => json!({ "event": "labels.edit", "instance": "loja-a", "data": {} }),
        "nuvem" => json!({ "entry": [{ "changes": [{ "field": "flows_of_tomorrow", "value": {} }] }] }),
        "loja-hotmart" => json!({ "id": "n12", "event": "PURCHASE_MOVED", "version": "2.0.0", "data": {} }),
        _ => json!({ "id": "n12", "event": "order.moved", "phone": "5541999990001" }),
    };
    body.to_string().into_bytes()
}

fn foreign(door: &str) -> Vec<u8> {
    let mut evolution = message("f1", "5541999990001", "oi");
    evolution["instance"] = json!("loja-b");
    let body = match door {
        "zap" => evolution,
        "nuvem" => cloud_message("f1", "9999", "5541999990001", "oi"),
        _ => json!({ "id": "f1", "event": "order.pix", "phone": "5541999990001", "store": "78" }),
    };
    body.to_string().into_bytes()
}

/// How a sender proves himself.
#[derive(Clone, Copy)]
enum Proof {
    Right,
    Wrong,
    None,
}

/// A row of the table: what is sent, and what each column answers.
struct Row {
    name: &'static str,
    generic: &'static [&'static str],
    presets: &'static [&'static str],
    proof: Proof,
    headers: &'static [(&'static str, &'static str)],
    body: fn(&str) -> Vec<u8>,
    /// Status, and the word in the body where something was stored.
    expected: [(u16, &'static str); 2],
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const GZIP: &[(&str, &str)] = &[("content-type", "application/json"), ("content-encoding", "gzip")];
const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded; charset=UTF-8")];
const STORED: [(u16, &str); 2] = [(202, "received"), (200, "received")];
const BROKEN: [(u16, &str); 2] = [(400, ""), (200, "quarantined")];

fn both(status: u16) -> [(u16, &'static str); 2] {
    [(status, ""), (status, "")]
}

/// Every line of INTERFACE.md, "Answers", that one request can show; and hostile bodies of every kind.
fn rows() -> Vec<Row> {
    let row = |name, headers, body, expected| Row {
        name,
        generic: &["pedidos"],
        presets: &["loja-hotmart", "zap", "nuvem"],
        proof: Proof::Right,
        headers,
        body,
        expected,
    };
    let doors = |name, generic, presets, expected| Row {
        generic,
        presets,
        ..row(name, JSON, (|door| understood(door, "door")) as fn(&str) -> Vec<u8>, expected)
    };
    vec![
        row("new", JSON, |d| understood(d, "n1"), STORED),
        row("broken JSON", JSON, |_| b"{\"id\": ".to_vec(), BROKEN),
        row("truncated", JSON, |d| understood(d, "t1")[..40].to_vec(), BROKEN),
        row("too deep", JSON, |_| deep(5_000), BROKEN),
        row("much too deep", JSON, |_| b"[".repeat(50_000), BROKEN),
        row("objects much too deep", JSON, |_| b"{\"a\":".repeat(10_000), BROKEN),
        row("wrong shape", JSON, |_| b"\"a text\"".to_vec(), BROKEN),
        row("a number", JSON, |_| b"0".to_vec(), BROKEN),
        row("null", JSON, |_| b"null".to_vec(), BROKEN),
        row("text/plain", &[("content-type", "text/plain")], |d| understood(d, "n2"), STORED),
        row("no content type", &[], |d| understood(d, "n3"), STORED),
        row("odd content type", &[("content-type", "application/x-odd; a=b")], |d| understood(d, "n4"), STORED),
        row("JSON declared as a form", FORM, |d| understood(d, "n13"), STORED),
        row("JSON inside a form", FORM, |d| packed_in_a_form(&understood(d, "n14")), STORED),
        row("gzip", GZIP, |d| gzip(&understood(d, "n5")), STORED),
        row("gzip twice", &[("content-encoding", "gzip, gzip")], |d| gzip(&gzip(&understood(d, "n15"))), STORED),
        row("declared gzip, sent plain", GZIP, |d| understood(d, "n6"), STORED),
        row("half a gzip", GZIP, |d| gzip(&understood(d, "n16"))[..30].to_vec(), BROKEN),
        row("gzip beyond the limit", GZIP, |_| gzip(&vec![b' '; 1 << 20]), both(413)),
        row("a gzip bomb", GZIP, |_| gzip(&vec![b' '; 40 << 20]), both(413)),
        row("a bomb in a bomb", &[("content-encoding", "gzip, gzip")], |_| gzip(&gzip(&vec![0; 40 << 20])), both(413)),
        row(
            "unknown encoding",
            &[("content-encoding", "br")],
            |d| understood(d, "n7"),
            [(415, ""), (200, "quarantined")],
        ),
        row("UTF-8 BOM", JSON, |d| [b"\xef\xbb\xbf".to_vec(), understood(d, "n8")].concat(), STORED),
        row("UTF-16", JSON, |_| "{\"id\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect(), BROKEN),
        row("invalid UTF-8", JSON, |_| b"{\"id\":\"\xe7\"}".to_vec(), BROKEN),
        row("NUL escaped", JSON, |d| with(d, "n10", "\"note\":\"a\\u0000b\""), STORED),
        row("NUL raw inside JSON", JSON, |d| with(d, "n11", "\"note\":\"a\0b\""), BROKEN),
        row("bytes after JSON", JSON, |d| [understood(d, "n9"), b" {}".to_vec()].concat(), BROKEN),
        row("a key twice", JSON, |d| with(d, "n17", "\"note\":1,\"note\":2"), STORED),
        row("an integer beyond 2^53", JSON, |d| with(d, "n18", "\"n\":123456789012345678901234567890"), STORED),
        row("a number beyond every double", JSON, |d| with(d, "n19", "\"n\":1e999"), STORED),
        row("a number of many digits", JSON, |d| with(d, "n20", &format!("\"n\":{}", "9".repeat(20_000))), STORED),
        row("half of a surrogate pair", JSON, |d| with(d, "n21", "\"n\":\"\\ud800\""), BROKEN),
        row("empty body", JSON, |_| Vec::new(), [(400, ""), (200, "ignored")]),
        row("only white space", JSON, |_| b" \r\n".to_vec(), [(400, ""), (200, "ignored")]),
        row("unknown event type", JSON, unknown_type, [(202, "ignored"), (200, "ignored")]),
        row("over the size", JSON, |_| vec![b' '; 64 * 1024 + 1], both(413)),
        Row {
            presets: &["loja-hotmart"],
            ..row("no usable id", JSON, |d| understood(d, ""), [(202, "held"), (200, "held")])
        },
        Row {
            presets: &[],
            ..row("form body", FORM, |_| b"id=form1&event=order.pix&phone=5541999990001".to_vec(), STORED)
        },
        Row {
            generic: &[],
            ..row("a form where none is used", FORM, |_| b"webhook_id=50".to_vec(), [(0, ""), (200, "quarantined")])
        },
        Row { proof: Proof::Wrong, ..row("wrong credential", JSON, |d| understood(d, "w1"), both(401)) },
        Row { proof: Proof::None, ..row("no credential", JSON, |d| understood(d, "w2"), both(401)) },
        Row { proof: Proof::Wrong, ..row("wrong credential, hostile body", JSON, |_| b"[".repeat(50_000), both(401)) },
        Row {
            generic: &["filial"],
            presets: &["zap", "nuvem"],
            ..row("another instance, number or store", JSON, foreign, both(403))
        },
        Row {
            generic: &["filial"],
            presets: &[],
            ..row("a required field is missing", JSON, |_| b"{\"id\":\"r\",\"store\":77}".to_vec(), both(400))
        },
        doors("address not listed", &["vizinhos"], &["vizinhos-hotmart"], both(403)),
        doors("secret not loaded", &["sem-segredo"], &["sem-segredo-hotmart"], both(503)),
        doors("unknown source", &["ninguem"], &["ninguem-hotmart"], both(404)),
        doors("the last that the rate allows", &["devagar"], &["devagar-hotmart"], STORED),
        doors("over the rate", &["devagar"], &["devagar-hotmart"], both(429)),
        doors("the last that the address may send", &["apressado"], &["apressado-hotmart"], STORED),
        Row {
            proof: Proof::Wrong,
            ..doors("over the rate of the address", &["apressado"], &["apressado-hotmart"], both(429))
        },
        row("after all that, new", JSON, |d| understood(d, "last"), STORED),
    ]
}

fn packed_in_a_form(body: &[u8]) -> Vec<u8> {
    let encoded: String = body.iter().map(|byte| format!("%{byte:02x}")).collect();
    format!("payload={encoded}").into_bytes()
}

// A2, A10; FC-41, FC-47, FC-50, FC-52
#[tokio::test]
async fn every_row_of_the_answer_table_holds_in_both_columns_on_a_real_socket() {
    let house = House::with(false).await;
    let wire = Wire::to(&house).await;
    for row in rows() {
        for (doors, (status, word)) in [(row.generic, row.expected[0]), (row.presets, row.expected[1])] {
            for door in doors {
                let body = (row.body)(door);
                let mut headers: Vec<(&str, String)> = row.headers.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
                match row.proof {
                    Proof::Right => headers.push(proof(door, &body, true)),
                    Proof::Wrong => headers.push(proof(door, &body, false)),
                    Proof::None => {}
                }
                let answer = wire.post(&format!("/in/{door}"), &headers, &body).await;
                let told = String::from_utf8_lossy(&answer.bytes).into_owned();
                let name = format!("{}, {door}: {told}", row.name);
                assert_eq!(answer.status.as_u16(), status, "{name}");
                if answer.status.is_success() {
                    assert_eq!(answer.body["status"], word, "{name}");
                    assert!(answer.body["event_id"].is_string(), "{name}");
                } else {
                    is_problem(&answer, &name);
                    let waits = matches!(status, 429 | 503);
                    assert_eq!(answer.headers.contains_key("retry-after"), waits, "{name}");
                }
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
            let first = house.hook(column, JSON, body.clone()).await;
            if decide {
                house.decided(&first).await;
            }
            for copies in 1..=3 {
                let answer = house.hook(column, JSON, body.clone()).await;
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
        let request = Request::post("/in/pedidos").header("X-Token", SECRET);
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

// A3
#[tokio::test]
async fn a_handshake_is_answered_with_its_challenge_and_nothing_else() {
    let house = House::new().await;
    let ask = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let right = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=confirma";
    for path in ["/in/nuvem", "/in/nuvem/"] {
        let answer = house.send(ask(&format!("{path}?{right}"))).await;
        assert_eq!(answer.status.as_u16(), 200);
        assert_eq!(&answer.bytes[..], b"1158201444");
        assert_eq!(answer.headers["content-type"], "text/plain");
    }
    for query in [right.replace("confirma", "errado"), "hub.mode=subscribe".to_owned(), String::new()] {
        let answer = house.send(ask(&format!("/in/nuvem?{query}"))).await;
        assert_eq!(answer.status.as_u16(), 403, "{query}");
        is_problem(&answer, &query);
    }
    let answer = house.send(ask(&format!("/in/zap?{right}"))).await;
    assert_eq!((answer.status.as_u16(), answer.headers["allow"].to_str().unwrap()), (405, "POST"));
}

#[tokio::test]
async fn a_secret_address_opens_its_own_door_only() {
    let house = House::new().await;
    for (path, expected) in [
        (format!("/in/secreto/{SECRET}"), 202),
        ("/in/secreto/errado".to_owned(), 401),
        ("/in/secreto".to_owned(), 401),
        (format!("/in/pedidos/{SECRET}"), 404),
    ] {
        let request = Request::post(&path).header("X-Token", SECRET).body(Body::from(order("s1").to_string()));
        assert_eq!(house.send(request.unwrap()).await.status.as_u16(), expected, "{path}");
    }
}

#[tokio::test]
async fn behind_a_proxy_the_listed_sender_is_the_one_that_the_proxy_names() {
    let house = House::new().await;
    let wire = Wire::to(&house).await;
    for (forwarded, expected) in [
        ("203.0.113.7", 202),
        ("198.51.100.1, 203.0.113.7", 202),
        ("203.0.113.7, 198.51.100.1", 403),
        ("198.51.100.1", 403),
        ("nobody", 403),
    ] {
        let headers = [("X-Token", SECRET.to_owned()), ("x-forwarded-for", forwarded.to_owned())];
        let answer = wire.post("/in/vizinhos", &headers, order(forwarded).to_string().as_bytes()).await;
        assert_eq!(answer.status.as_u16(), expected, "{forwarded}");
    }
}

// FC-29
#[tokio::test]
async fn a_batch_of_the_cloud_api_is_stored_part_by_part_and_its_repetition_adds_nothing() {
    let house = House::new().await;
    let mut body = cloud_message("wamid.1", "2000", "5541999990001", "oi");
    let second = cloud_message("wamid.2", "2000", "5541999990002", "oi")["entry"][0].clone();
    let other = cloud_message("wamid.3", "9999", "5541999990003", "oi")["entry"][0].clone();
    body["entry"].as_array_mut().unwrap().extend([second, other]);
    let answer = house.json("nuvem", &body).await;
    assert_eq!(answer.status.as_u16(), 200);
    let words: Vec<&str> =
        answer.body["events"].as_array().unwrap().iter().map(|event| event["status"].as_str().unwrap()).collect();
    assert_eq!(words, ["received", "received", "quarantined"]);
    let again = house.json("nuvem", &body).await;
    assert!(again.body["events"].as_array().unwrap().iter().all(|event| event["duplicate"] == true), "{again:?}");
}

// A10, FC-52
#[tokio::test]
async fn a_slow_body_is_cut_off_on_a_real_socket_and_nothing_of_it_is_stored() {
    let house = House::with(false).await;
    let wire = Wire::to(&house).await;
    let (name, value) = proof("pedidos", b"", true);
    let head =
        format!("POST /in/pedidos HTTP/1.1\r\nhost: x\r\n{name}: {value}\r\ncontent-length: 100\r\n\r\n{{\"id\"");
    // From here on time passes whenever nobody has anything to do.
    tokio::time::pause();
    let answer = wire.exchange(head.as_bytes()).await;
    tokio::time::resume();
    assert_eq!(answer.status.as_u16(), 408);
    is_problem(&answer, "slow");
    assert_eq!(house.get("/v1/events").await.body["items"], json!([]));
}

// FC-06
#[tokio::test]
async fn a_message_that_comes_empty_first_is_answered_once_when_its_text_comes() {
    let house = House::new().await;
    let full = message("3AC8C6TEST06", "5531900030003", "manda o pix");
    let mut empty = full.clone();
    empty["data"].as_object_mut().unwrap().remove("message");
    empty["data"]["messageStubType"] = json!(2);
    let first = house.json("zap", &empty).await;
    assert_eq!((first.status.as_u16(), &first.body["status"]), (200, &json!("ignored")));
    assert_eq!(house.json("zap", &empty).await.body["duplicate"], true);
    let filled = house.json("zap", &full).await;
    assert_eq!((&filled.body["status"], &filled.body["event_id"]), (&json!("received"), &first.body["event_id"]));
    house.decided(&filled).await;
    for copy in [&empty, &full, &empty] {
        let again = house.json("zap", copy).await;
        assert_eq!((&again.body["status"], &again.body["altered"]), (&json!("decided"), &Value::Null), "{again:?}");
    }
    let found = house.get("/v1/contacts?phone=5531900030003").await;
    let tasks = house.get(&format!("/v1/tasks?contact={}", found.body["items"][0]["id"].as_str().unwrap())).await;
    assert_eq!(tasks.body["items"].as_array().unwrap().len(), 1, "one answer: {}", tasks.body);
}
