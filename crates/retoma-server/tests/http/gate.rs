//! The gate over HTTP (B1-B7, FC-59, FC-61): every row of its answer table, with and without `always_ok`.

use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::Tenant;
use retoma_store::{GateCall, GateClaim, GateVerb, Store};
use serde_json::{Value, json};

use crate::house::{Answer, House};

const CLAIM: &str = "/v1/gate/cobranca/claim";

fn ago(house: &House, minutes: i64) -> Timestamp {
    house.engine.clock().now() - SignedDuration::from_mins(minutes)
}

/// A claim that somebody made that long ago, for two minutes.
async fn claimed_ago(house: &House, scope: &str, key: &str, minutes: i64) {
    let claim = GateClaim {
        token: "old".to_owned(),
        fingerprint: None,
        lease: std::time::Duration::from_secs(120),
        keep: std::time::Duration::from_secs(30 * 86_400),
        correlation_id: Some("exec-old".to_owned()),
        metadata: json!({}),
        proceed_when_expired: false,
    };
    let call = GateCall {
        tenant: Tenant::default(),
        scope: scope.to_owned(),
        key: key.to_owned(),
        actor: "key:n8n".to_owned(),
        verb: GateVerb::Claim(claim),
    };
    house.engine.store().gate(vec![call], ago(house, minutes)).await.unwrap();
}

/// Claims and answers the token.
async fn token(house: &House, scope: &str, key: &str) -> String {
    let answer = house.post(&format!("/v1/gate/{scope}/claim"), &json!({ "key": key })).await;
    assert_eq!((answer.status.as_u16(), &answer.body["outcome"]), (201, &json!("proceed")), "{}", answer.body);
    answer.body["token"].as_str().unwrap().to_owned()
}

async fn done(house: &House, key: &str, result: Value) -> String {
    let token = token(house, "cobranca", key).await;
    let body = json!({ "key": key, "token": token, "result": result });
    assert_eq!(house.post("/v1/gate/cobranca/complete", &body).await.status.as_u16(), 200);
    token
}

/// What leads to each row, and the call that is answered by it.
async fn ask(house: &House, row: &str, key: &str, query: &str) -> Answer {
    let post = async |scope: &str, verb: &str, body: Value| {
        house.post(&format!("/v1/gate/{scope}/{verb}{query}"), &body).await
    };
    let claim = json!({ "key": key });
    let fail = |token: String, retryable: bool| json!({ "key": key, "token": token, "error": "card refused", "retryable": retryable });
    match row {
        "first" => post("cobranca", "claim", claim).await,
        "done" => {
            done(house, key, json!({ "charge": "cob-1" })).await;
            post("cobranca", "claim", claim).await
        }
        "in progress" => {
            token(house, "cobranca", key).await;
            post("cobranca", "claim", claim).await
        }
        "lease ran out, hold" => {
            claimed_ago(house, "cobranca", key, 5).await;
            post("cobranca", "claim", claim).await
        }
        "lease ran out, proceed" => {
            claimed_ago(house, "planilha", key, 5).await;
            post("planilha", "claim", claim).await
        }
        "failed for good" | "failed, retryable" => {
            let fail = fail(token(house, "cobranca", key).await, row == "failed, retryable");
            assert_eq!(house.post("/v1/gate/cobranca/fail", &fail).await.status.as_u16(), 200);
            post("cobranca", "claim", claim).await
        }
        "another fingerprint" => {
            house.post(CLAIM, &json!({ "key": key, "fingerprint": "lembrete 1" })).await;
            post("cobranca", "claim", json!({ "key": key, "fingerprint": "lembrete 2" })).await
        }
        "no key" => post("cobranca", "claim", json!({ "correlation_id": "exec-9" })).await,
        "empty key" => post("cobranca", "claim", json!({ "key": "  " })).await,
        "placeholder" => post("cobranca", "claim", json!({ "key": "undefined" })).await,
        "renew" => post("cobranca", "renew", json!({ "key": key, "token": token(house, "cobranca", key).await })).await,
        "complete" => {
            post("cobranca", "complete", json!({ "key": key, "token": token(house, "cobranca", key).await })).await
        }
        "fail" => post("cobranca", "fail", fail(token(house, "cobranca", key).await, false)).await,
        "late owner" => {
            claimed_ago(house, "planilha", key, 5).await;
            token(house, "planilha", key).await;
            post("planilha", "complete", json!({ "key": key, "token": "old", "result": 1 })).await
        }
        "renew unknown" => post("cobranca", "renew", json!({ "key": key, "token": "x" })).await,
        "complete unknown" => post("cobranca", "complete", json!({ "key": key, "token": "x" })).await,
        "fail unknown" => post("cobranca", "fail", json!({ "key": key, "token": "x" })).await,
        "complete without a key" => post("cobranca", "complete", json!({ "token": "x" })).await,
        other => panic!("no such row: {other}"),
    }
}

#[tokio::test]
async fn every_row_of_the_answer_table_says_the_same_with_and_without_always_ok() {
    let house = House::new().await;
    let table = [
        ("first", 201, "proceed", true),
        ("done", 200, "done", false),
        ("in progress", 409, "in_progress", false),
        ("lease ran out, hold", 409, "uncertain", false),
        ("lease ran out, proceed", 201, "proceed", true),
        ("failed for good", 409, "failed", false),
        ("failed, retryable", 201, "proceed", true),
        ("another fingerprint", 422, "mismatch", false),
        ("no key", 422, "held", false),
        ("empty key", 422, "held", false),
        ("placeholder", 422, "held", false),
        ("renew", 200, "ok", true),
        ("complete", 200, "ok", false),
        ("fail", 200, "ok", false),
        ("late owner", 409, "stale_token", false),
        ("renew unknown", 404, "not_found", false),
        ("complete unknown", 404, "not_found", false),
        ("fail unknown", 404, "not_found", false),
        ("complete without a key", 422, "held", false),
    ];
    for (n, (row, status, outcome, proceed)) in table.into_iter().enumerate() {
        for (query, status) in [("", status), ("?always_ok=true", 200)] {
            let key = format!("row-{n}{query}");
            let answer = ask(&house, row, &key, query).await;
            let (body, at) = (&answer.body, format!("{row}{query}: {}", answer.body));
            assert_eq!(answer.status.as_u16(), status, "{at}");
            assert_eq!((&body["outcome"], &body["proceed"]), (&json!(outcome), &json!(proceed)), "{at}");
            let is_claim = !matches!(row, "renew" | "complete" | "fail") && outcome != "not_found" && outcome != "held";
            if is_claim {
                assert!(body["first_seen_at"].is_string() && body["attempt"].as_u64() >= Some(1), "{at}");
                assert!(body["duplicates"].is_u64(), "{at}");
            }
            assert_eq!(body["token"].is_string(), outcome == "proceed", "{at}");
            let media = answer.headers["content-type"].to_str().unwrap();
            assert_eq!(media == "application/problem+json", status >= 400, "{at}");
            // A problem names itself; its page explains it.
            if let Some(page) = body["type"].as_str() {
                assert_eq!(house.get(page).await.status.as_u16(), 200, "{at}");
                assert!(body["instance"].is_string() && body["title"].is_string(), "{at}");
            }
            assert_eq!(answer.headers.contains_key("retry-after"), outcome == "in_progress" && status == 409, "{at}");
        }
    }
}

#[tokio::test]
async fn each_answer_carries_what_the_caller_needs() {
    let house = House::new().await;
    let done = ask(&house, "done", "k1", "").await;
    assert_eq!((&done.body["result"], &done.body["duplicates"]), (&json!({ "charge": "cob-1" }), &json!(1)));
    let busy = ask(&house, "in progress", "k2", "").await;
    let wait: u64 = busy.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((100..=120).contains(&wait), "{wait}");
    assert_eq!(busy.body["retry_after_s"], wait);
    assert_eq!(ask(&house, "lease ran out, hold", "k3", "").await.body["reason"], "lease_expired");
    let over = ask(&house, "lease ran out, proceed", "k4", "").await.body;
    assert_eq!((&over["previous_attempt"], &over["attempt"]), (&json!("unknown"), &json!(2)));
    assert_eq!(ask(&house, "failed for good", "k5", "").await.body["reason"], "card refused");
    assert_eq!(ask(&house, "failed, retryable", "k6", "").await.body["previous_attempt"], "failed");
    assert_eq!(ask(&house, "no key", "k7", "").await.body["reason"], "missing_provider_event_id");
    let first = ask(&house, "first", "k8", "").await.body;
    assert!(first.get("previous_attempt").is_none() && first["lease_until"].is_string(), "{first}");
}

// FC-59
#[tokio::test]
async fn of_a_hundred_claims_at_once_one_proceeds() {
    let house = House::new().await;
    for (query, told, stopped) in [("", 201, 409), ("?always_ok=true", 200, 200)] {
        let (path, key) = (format!("{CLAIM}{query}"), format!("loja-a:wamid.G59{query}"));
        let bodies: Vec<Value> =
            (0..100).map(|n| json!({ "key": key, "correlation_id": format!("exec-{n}") })).collect();
        let mut asked: Vec<_> = bodies.iter().map(|body| Box::pin(house.post(&path, body))).collect();
        let answers = all(&mut asked).await;
        let proceeding: Vec<_> = answers.iter().filter(|answer| answer.body["proceed"] == true).collect();
        assert_eq!(proceeding.len(), 1);
        assert_eq!(proceeding[0].status.as_u16(), told);
        let others = answers.iter().filter(|answer| answer.body["proceed"] == false);
        assert!(others.clone().all(|answer| answer.status.as_u16() == stopped));
        assert!(others.clone().all(|answer| answer.body["first_seen_at"].is_string()));
        assert_eq!(others.count(), 99);
        let trail = house.get(&format!("/v1/gate/cobranca/{}", key.replace('?', "%3F"))).await.body;
        assert_eq!((&trail["duplicates"], trail["repeats"].as_array().unwrap().len()), (&json!(99), 50), "{trail}");
    }
}

/// Polls them together.
async fn all(asked: &mut [std::pin::Pin<Box<impl Future<Output = Answer>>>]) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = asked.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, answer) in asked.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let std::task::Poll::Ready(ready) = future.as_mut().poll(cx) {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

// FC-61
#[tokio::test]
async fn another_content_is_told_before_in_progress_and_the_order_of_its_fields_is_nothing() {
    let house = House::new().await;
    let body = |fingerprint: Value| json!({ "key": "pedido-61", "fingerprint": fingerprint });
    let first = house.post(CLAIM, &body(json!({ "text": "lembrete 1", "to": "x" }))).await;
    assert_eq!(first.status.as_u16(), 201);
    let same = house.post(CLAIM, &body(json!(r#"{ "to": "x", "text": "lembrete 1" }"#))).await;
    assert_eq!((same.status.as_u16(), &same.body["outcome"]), (409, &json!("in_progress")));
    let other = house.post(CLAIM, &body(json!({ "text": "lembrete 2", "to": "x" }))).await;
    assert_eq!((other.status.as_u16(), &other.body["outcome"]), (422, &json!("mismatch")));
    assert!(other.body.get("result").is_none(), "what another effect left is nobody's");
    let trail = house.get("/v1/gate/cobranca/pedido-61").await.body;
    assert_eq!((&trail["duplicates"], &trail["mismatches"]), (&json!(1), &json!(1)));
}

// B6
#[tokio::test]
async fn one_call_tells_the_whole_trail() {
    let house = House::new().await;
    let key = "pedido/7 ção";
    let path = "/v1/gate/cobranca/pedido%2F7%20%C3%A7%C3%A3o";
    let by = |execution: &str| json!({ "key": key, "correlation_id": execution, "metadata": { "source": "hotmart" } });
    let first = house.post(CLAIM, &by("exec-1")).await.body;
    let busy = house.get(path).await.body;
    assert_eq!((&busy["next_claim"], &busy["reason"]), (&json!("in_progress"), &json!("in_progress")));
    house.post(CLAIM, &by("exec-2")).await;
    let end = json!({ "key": key, "token": first["token"], "result": { "charge": "cob-1" } });
    house.post("/v1/gate/cobranca/complete", &end).await;
    house.post(CLAIM, &by("exec-3")).await;
    let trail = house.get(path).await.body;
    for field in [
        "key",
        "status",
        "first_seen_at",
        "correlation_id",
        "attempts",
        "duplicates",
        "last_duplicate_at",
        "result",
        "reason",
    ] {
        assert!(trail.get(field).is_some(), "{field} is missing in {trail}");
    }
    assert_eq!(
        (&trail["key"], &trail["status"], &trail["reason"]),
        (&json!(key), &json!("DONE"), &json!("already_done"))
    );
    assert_eq!((&trail["executed_by"], trail["executed_at"].is_string()), (&json!("exec-1"), true));
    assert_eq!((&trail["correlation_id"], &trail["metadata"]), (&json!("exec-1"), &json!({ "source": "hotmart" })));
    assert_eq!((&trail["duplicates"], &trail["result"]), (&json!(2), &json!({ "charge": "cob-1" })));
    let attempt = &trail["attempts"][0];
    assert_eq!((&attempt["outcome"], &attempt["caller"]), (&json!("done"), &json!("cli")));
    let told: Vec<_> =
        trail["repeats"].as_array().unwrap().iter().map(|row| (&row["correlation_id"], &row["told"])).collect();
    assert_eq!(told, [(&json!("exec-2"), &json!("in_progress")), (&json!("exec-3"), &json!("done"))]);
    assert!(!trail.to_string().contains("gt_"), "no token is told");

    assert_eq!(house.get("/v1/gate/cobranca/nada").await.status.as_u16(), 404);
    let missing = house.get("/v1/gate/cobranca/nada?always_ok=true").await;
    assert_eq!((missing.status.as_u16(), &missing.body["outcome"]), (200, &json!("not_found")));
    // A key may be called like a call.
    token(&house, "cobranca", "claim").await;
    assert_eq!(house.get("/v1/gate/cobranca/claim").await.body["key"], "claim");
}

// B3, G3
#[tokio::test]
async fn a_person_settles_what_is_uncertain_on_record() {
    let house = House::new().await;
    let release = async |key: &str, body: Value| house.post(&format!("/v1/gate/cobranca/{key}/release"), &body).await;
    claimed_ago(&house, "cobranca", "k1", 5).await;
    assert_eq!(house.get("/v1/gate/cobranca/k1").await.body["next_claim"], "uncertain");
    let freed = release("k1", json!({ "reason": "nada no extrato" })).await;
    assert_eq!((freed.status.as_u16(), &freed.body["next_claim"]), (200, &json!("proceed")), "{}", freed.body);
    let again = house.post(CLAIM, &json!({ "key": "k1" })).await;
    assert_eq!((again.status.as_u16(), &again.body["previous_attempt"]), (201, &json!("released")));
    let late = house.post("/v1/gate/cobranca/complete", &json!({ "key": "k1", "token": "old", "result": 1 })).await;
    assert_eq!((late.status.as_u16(), &late.body["outcome"]), (409, &json!("stale_token")));
    assert_eq!(release("k1", json!({})).await.body["outcome"], "in_progress", "somebody is at it");

    claimed_ago(&house, "cobranca", "k2", 5).await;
    let settled = release("k2", json!({ "as": "done" })).await.body;
    assert_eq!((&settled["status"], &settled["next_claim"]), (&json!("DONE"), &json!("done")));
    assert_eq!(release("k2", json!({})).await.status.as_u16(), 409);
    assert_eq!(release("nada", json!({})).await.status.as_u16(), 404);
    assert_eq!(release("k2", json!({ "as": "sent" })).await.status.as_u16(), 400);
    let audit = house.get("/v1/audit").await.body;
    let rows: Vec<_> = audit["items"].as_array().unwrap().iter().map(|row| (&row["action"], &row["target"])).collect();
    let released = json!("gate.release");
    assert_eq!(rows, [(&released, &json!("cobranca/k2")), (&released, &json!("cobranca/k1"))]);
}

// B5
#[tokio::test]
async fn evidence_of_a_missing_key_names_no_person() {
    let house = House::new().await;
    for body in [
        json!({ "correlation_id": "exec-9", "metadata": { "phone": "5541999990001" } }),
        json!({ "key": "", "correlation_id": "5541999990001", "fingerprint": "5541999990001" }),
    ] {
        assert_eq!(house.post(CLAIM, &body).await.status.as_u16(), 422);
    }
    let held = house.get("/v1/gate/cobranca?status=held").await.body;
    let rows: Vec<_> = held["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["key_is"], &row["correlation_id"], &row["reason"]))
        .collect();
    let why = json!("missing_provider_event_id");
    assert_eq!(rows, [(&json!("empty"), &Value::Null, &why), (&json!("missing"), &json!("exec-9"), &why)]);
    let everything = house.get("/v1/db/sql").await.status.as_u16();
    assert_eq!(everything, 405);
    let sql = json!({ "sql": "select * from gate_held union all select seq, tenant, scope, first_seen_at, key, token, '' from gate_key" });
    let rows = house.post("/v1/db/sql", &sql).await;
    assert!(rows.status.is_success() && !rows.body.to_string().contains("5541999990001"), "{}", rows.body);
    assert_eq!(rows.body["rows"].as_array().unwrap().len(), 2, "nothing was claimed");
}

// B7
#[tokio::test]
async fn repetitions_are_a_metric_of_their_scope() {
    let house = House::new().await;
    done(&house, "k1", json!({ "secret": "cob-1" })).await;
    for _ in 0..3 {
        house.post(CLAIM, &json!({ "key": "k1" })).await;
    }
    house.post(CLAIM, &json!({})).await;
    token(&house, "email", "k1").await;
    let scopes = house.get("/v1/gate").await.body;
    let told: Vec<_> = scopes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scope| (scope["scope"].as_str().unwrap(), scope["duplicates"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("cobranca", 3), ("email", 0), ("planilha", 0)]);
    assert_eq!(scopes["items"][0]["counts"]["held"], 1);
    assert_eq!((&scopes["items"][2]["lease_s"], &scopes["items"][2]["configured"]), (&json!(60), &json!(true)));
    let metrics = String::from_utf8(house.get("/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        "retoma_gate_total{scope=\"cobranca\",outcome=\"done\"} 3",
        "retoma_gate_duplicates_total{scope=\"cobranca\"} 3",
        "retoma_gate_duplicates_total{scope=\"email\"} 0",
    ] {
        assert!(metrics.lines().any(|told| told == line), "{line} is not in {metrics}");
    }
    let keys = house.get("/v1/gate/cobranca?status=done").await.body;
    assert_eq!((&keys["items"][0]["key"], &keys["items"][0]["result"]), (&json!("k1"), &json!("(masked)")));
    assert_eq!(house.get("/v1/gate/cobranca?status=nada").await.status.as_u16(), 400);
    let everywhere = house.get("/v1/gate?status=locked").await.body;
    assert_eq!(everywhere["items"][0]["scope"], "email", "{everywhere}");
    assert_eq!(house.get("/v1/gate?status=held").await.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_too_large_or_misspelt_is_refused_but_the_fact_that_it_was_done() {
    let house = House::new().await;
    let long = "x".repeat(70_000);
    let token = done(&house, "k1", json!({ "text": long })).await;
    let again = house.post(CLAIM, &json!({ "key": "k1" })).await;
    assert_eq!((again.status.as_u16(), &again.body["outcome"]), (200, &json!("done")));
    assert_eq!(again.body["result"], Value::Null);
    assert!(again.body["result_omitted_bytes"].as_u64() > Some(70_000), "{}", again.body);
    // Said once, it stays.
    let other = json!({ "key": "k1", "token": token, "result": 2 });
    assert_eq!(house.post("/v1/gate/cobranca/complete", &other).await.status.as_u16(), 200);
    assert_eq!(house.get("/v1/gate/cobranca/k1").await.body["result"], Value::Null);
    for body in [
        json!({ "key": "x".repeat(513) }),
        json!({ "key": "k", "lease": "2 weeks" }),
        json!({ "key": "k", "lease": "25h" }),
        json!({ "key": "k", "lease": "1ms" }),
        json!({ "key": "k", "correlation_id": "x".repeat(201) }),
        json!({ "key": "k", "metadata": { "text": long } }),
        json!({ "key": "k", "fingerprnt": "x" }),
        json!(["k"]),
    ] {
        let answer = house.post(&format!("{CLAIM}?always_ok=true"), &body).await;
        assert_eq!(answer.status.as_u16(), 400, "{}", answer.body);
    }
    for path in ["/v1/gate/a%20b/claim", "/v1/gate/-x/claim", "/v1/gate/cobranca/claim?always=true"] {
        assert_eq!(house.post(path, &json!({ "key": "k" })).await.status.as_u16(), 400, "{path}");
    }
    assert_eq!(house.get("/v1/gate/cobranca/k").await.status.as_u16(), 404, "none of them claimed anything");
}

// A1 holds for the gate, too: nothing is answered that is not on disk.
#[tokio::test]
async fn a_full_disk_gives_nobody_the_turn() {
    let house = House::new().await;
    token(&house, "cobranca", "k0").await;
    house.faults.limit_pages(1);
    let claims: Vec<Value> =
        (0..40).map(|n| json!({ "key": format!("k{n}"), "metadata": { "pad": "x".repeat(7_000) } })).collect();
    let mut refused = Vec::new();
    for claim in &claims[1..] {
        let answer = house.post(CLAIM, claim).await;
        if answer.status.as_u16() == 503 {
            assert!(answer.headers.contains_key("retry-after") && answer.body.get("token").is_none());
            refused.push(claim);
        }
    }
    assert!(!refused.is_empty(), "the disk was full");
    house.faults.limit_pages(1 << 20);
    for claim in refused {
        let answer = house.post(CLAIM, claim).await;
        assert_eq!((answer.status.as_u16(), &answer.body["attempt"]), (201, &json!(1)), "{}", answer.body);
    }
}
