//! Canaries: phones, texts, tokens and keys that come in must not come out in logs, errors, or public pages (never 8, FC-80).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;

#[allow(dead_code, reason = "shared with the other tests, which use more of it")]
#[path = "http/house.rs"]
mod house;

use house::{House, LOCAL, message, paid, pix};

/// What must not come out.
const CANARIES: [&str; 8] = [
    "5541987650001",
    "987650001",
    "canario-texto",
    "canario-token",
    "canario-chave",
    "canario@example.com",
    "CANARIOCODE",
    "canario-nome",
];

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn canary_in(text: &str) -> Option<&'static str> {
    CANARIES.into_iter().find(|canary| text.contains(canary))
}

#[tokio::test]
async fn nothing_personal_and_no_secret_comes_out_of_logs_errors_and_public_pages() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let house = House::new().await;
    let phone = "5541987650001";

    // A busy day, with everything that goes wrong.
    let mut bodies = vec![
        ("loja-hotmart", pix("c1", phone, "CP1").to_string()),
        ("loja-hotmart", paid("c2", phone, "CP1").to_string()),
        ("zap", message("c3", phone, "canario-texto quanto custa?").to_string()),
        ("zap", message("c4", phone, "sair").to_string()),
        ("pedidos", json!({ "event": "order.pix", "phone": phone, "email": "canario@example.com" }).to_string()),
        ("pedidos", json!({ "id": "c5", "event": "canario-texto", "phone": phone }).to_string()),
        ("pedidos", json!({ "id": "c6", "event": "order.pix", "phone": "5541987650001x5541987650001" }).to_string()),
        (
            "zap",
            json!({ "event": "messages.upsert", "instance": "canario-nome", "apikey": "canario-token" }).to_string(),
        ),
    ];
    for broken in [
        "{\"phone\": \"5541987650001\", \"text\": canario-texto",
        "\"canario-texto\"",
        "canario=canario-texto&phone=987650001",
    ] {
        bodies.extend(["pedidos", "loja-hotmart", "zap"].map(|source| (source, broken.to_owned())));
    }
    let mut refused = Vec::new();
    for (source, body) in bodies {
        let answer = house.hook(source, &[("content-type", "application/json")], body).await;
        if !answer.status.is_success() {
            refused.push(String::from_utf8_lossy(&answer.bytes).into_owned());
        } else if answer.body["status"] == "received" {
            house.decided(&answer).await;
        }
    }
    let wrong = Request::post("/in/pedidos?token=canario-token").header("X-Token", "canario-token");
    refused.push(text(house.send(wrong.body(Body::from("canario-texto")).unwrap()).await));
    let wrong = Request::post("/in/canario-nome").header("X-Token", "canario-token");
    refused.push(text(house.send(wrong.body(Body::from("canario-texto")).unwrap()).await));
    for (path, body) in [
        (
            "/v1/tasks",
            json!({ "key": "k", "contact": { "phone": phone }, "text": "canario-texto", "at": "canario-texto" }),
        ),
        ("/v1/tasks", json!({ "key": "k", "contact": { "phone": "canario-nome" }, "text": "canario-texto" })),
        ("/v1/tasks", json!({ "key": "k", "contact": { "phone": phone }, "message": "canario-texto" })),
        ("/v1/tasks/cancel", json!({ "contact": { "email": "canario-nome" } })),
        (
            "/v1/events",
            json!({ "id": "x", "type": "pix.created", "contact": { "phone": "987650001987650001987650001" } }),
        ),
        ("/v1/contacts/5541987650001/pause", json!({ "until": "canario-texto" })),
        ("/v1/db/sql", json!({ "sql": "select 'canario-texto' from nothing" })),
    ] {
        refused.push(text(house.post(path, &body).await));
    }
    refused.push(text(house.call("canario-chave", Method::GET, "/v1/events", None).await));
    refused.push(text(house.call(LOCAL, Method::GET, "/v1/contacts?phone=canario-nome", None).await));
    refused.push(text(house.call(LOCAL, Method::GET, "/v1/events?canario-texto=987650001", None).await));
    assert!(refused.len() > 12, "{refused:?}");
    for body in &refused {
        assert_eq!(canary_in(body), None, "in an error: {body}");
    }
    for path in ["/", "/status.json", "/metrics", "/healthz/pipeline"] {
        let shown = text(house.send(Request::get(path).body(Body::empty()).unwrap()).await);
        assert_eq!(canary_in(&shown), None, "in {path}: {shown}");
    }
    let found = house.get("/v1/contacts?phone=5541987650001").await;
    let id = found.body["items"][0]["id"].as_str().unwrap().to_owned();
    for path in ["plan", "timeline"] {
        let shown = text(house.get(&format!("/v1/contacts/{id}/{path}")).await);
        assert!(!shown.contains("canario-texto"), "texts are in no {path}");
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("webhook_refused") && logged.contains("/in/{source}"), "the log says something");
    let line = logged.lines().find(|line| canary_in(line).is_some());
    assert_eq!(line, None, "in the log");
}

fn text(answer: house::Answer) -> String {
    String::from_utf8_lossy(&answer.bytes).into_owned()
}
