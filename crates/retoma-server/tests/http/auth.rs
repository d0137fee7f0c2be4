//! Keys and scopes: who may look, who may change, who may see raw bodies and the database.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;

use crate::house::{House, LOCAL};

/// Makes a key of that scope. The house's random source is fixed, so each is made in a house of its own.
async fn house_with_key(scope: &str) -> (House, String) {
    let house = House::new().await;
    let answer = house.post("/v1/keys", &json!({ "name": "n8n", "scope": scope })).await;
    assert_eq!(answer.status.as_u16(), 201);
    assert_eq!((&answer.body["name"], &answer.body["scope"]), (&json!("n8n"), &json!(scope)));
    assert!(answer.body["id"].is_string());
    let key = answer.body["key"].as_str().unwrap().to_owned();
    (house, key)
}

#[tokio::test]
async fn each_scope_reaches_as_far_as_it_should() {
    let nobody = "/v1/contacts/01a22e9d-5912-7000-8000-000138273c3f";
    let table = [
        (Method::GET, "/v1/events".to_owned(), 0),
        (Method::GET, "/v1/tasks".to_owned(), 0),
        (Method::GET, "/v1/tasks/stuck".to_owned(), 0),
        (Method::GET, "/v1/dead".to_owned(), 0),
        (Method::GET, "/v1/channels".to_owned(), 0),
        (Method::GET, "/v1/stats".to_owned(), 0),
        (Method::GET, "/v1/heartbeats".to_owned(), 0),
        (Method::GET, "/v1/audit".to_owned(), 0),
        (Method::GET, "/v1/contacts?phone=5541999990001".to_owned(), 0),
        (Method::GET, format!("{nobody}/plan"), 0),
        (Method::GET, "/v1/gate".to_owned(), 0),
        (Method::GET, "/v1/gate/email".to_owned(), 0),
        (Method::GET, "/v1/gate/email/k".to_owned(), 0),
        (Method::GET, "/v1/gate/email/claim".to_owned(), 0),
        (Method::POST, "/v1/gate/email/claim".to_owned(), 1),
        (Method::POST, "/v1/gate/email/renew".to_owned(), 1),
        (Method::POST, "/v1/gate/email/complete".to_owned(), 1),
        (Method::POST, "/v1/gate/email/fail".to_owned(), 1),
        (Method::POST, "/v1/gate/email/k/release".to_owned(), 1),
        (Method::POST, "/v1/events".to_owned(), 1),
        (Method::POST, "/v1/tasks".to_owned(), 1),
        (Method::POST, "/v1/tasks/cancel".to_owned(), 1),
        (Method::POST, "/v1/tasks/x/retry".to_owned(), 1),
        (Method::POST, "/v1/dead/retry".to_owned(), 1),
        (Method::POST, "/v1/channels/zap/pause".to_owned(), 1),
        (Method::POST, "/v1/channels/zap/resume".to_owned(), 1),
        (Method::POST, format!("{nobody}/pause"), 1),
        (Method::POST, "/v1/events/01a22e9d-5912-7000-8000-000138273c3f/replay".to_owned(), 1),
        (Method::GET, "/v1/events/01a22e9d-5912-7000-8000-000138273c3f/raw".to_owned(), 2),
        (Method::GET, "/v1/keys".to_owned(), 2),
        (Method::POST, "/v1/keys".to_owned(), 2),
        (Method::DELETE, "/v1/keys/x".to_owned(), 2),
        (Method::POST, "/v1/db/sql".to_owned(), 2),
        (Method::POST, "/v1/db/backup".to_owned(), 2),
    ];
    for (has, scope) in ["read", "write", "admin"].into_iter().enumerate() {
        let (house, key) = house_with_key(scope).await;
        for (method, path, needs) in &table {
            let answer = house.call(&key, method.clone(), path, Some(&json!({}))).await;
            let refused = answer.status.as_u16() == 403;
            assert_eq!(refused, has < *needs, "{method} {path} with {scope}: {}", answer.status);
            assert_ne!(answer.status.as_u16(), 401, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn without_a_key_nothing_under_v1_answers_and_the_public_pages_do() {
    let house = House::new().await;
    for credential in [None, Some("Bearer nope"), Some("Bearer "), Some("Basic YTpi"), Some(LOCAL)] {
        for path in ["/v1/events", "/v1/stats", "/v1/contacts?phone=1", "/v1/keys"] {
            let mut request = Request::get(path);
            if let Some(credential) = credential {
                request = request.header("authorization", credential);
            }
            let answer = house.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status.as_u16(), 401, "{path} with {credential:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            assert_eq!(answer.body["type"], "/problems/unauthorized");
        }
    }
    for path in ["/", "/status.json", "/metrics", "/healthz/live", "/healthz/ready", "/problems/overloaded"] {
        let answer = house.send(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
    }
    let answer = house.send(Request::get("/problems/nothing").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status.as_u16(), 404);
}

#[tokio::test]
async fn a_revoked_key_ends_at_once_and_is_never_shown_again() {
    let (house, key) = house_with_key("read").await;
    assert_eq!(house.call(&key, Method::GET, "/v1/events", None).await.status.as_u16(), 200);
    let keys = house.get("/v1/keys").await;
    assert!(!String::from_utf8_lossy(&keys.bytes).contains(&key[8..]));
    let id = keys.body["items"][0]["id"].as_str().unwrap().to_owned();
    let gone = house.call(LOCAL, Method::DELETE, &format!("/v1/keys/{id}"), None).await;
    assert_eq!(gone.status.as_u16(), 200);
    assert_eq!(house.call(&key, Method::GET, "/v1/events", None).await.status.as_u16(), 401);
    assert_eq!(house.call(LOCAL, Method::DELETE, &format!("/v1/keys/{id}"), None).await.status.as_u16(), 404);
    let actions: Vec<String> = house.get("/v1/audit").await.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].as_str().unwrap().to_owned())
        .collect();
    assert!(actions.contains(&"key.create".to_owned()) && actions.contains(&"key.revoke".to_owned()), "{actions:?}");
}
