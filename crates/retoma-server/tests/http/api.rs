//! The API's shapes: the fields that others rely on, lists, and orders about tasks and events.

use axum::http::Method;
use retoma_store::Store;
use serde_json::{Value, json};

use crate::house::{House, LOCAL, paid, pix};

const PHONE: &str = "5541999990001";

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "{field} is missing in {value}");
    }
}

fn items(value: &Value) -> &Vec<Value> {
    value["items"].as_array().unwrap()
}

#[tokio::test]
async fn what_others_rely_on_has_the_promised_fields() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP1").await;

    let events = house.get("/v1/events?source=loja-hotmart&type=pix.created&status=decided").await.body;
    assert_eq!(items(&events).len(), 1);
    let event = [
        "id",
        "source",
        "type",
        "key",
        "status",
        "reason",
        "duplicates",
        "contact_id",
        "occurred_at",
        "received_at",
        "completed_at",
        "result",
    ];
    has(&items(&events)[0], &event);
    has(&events, &["next_cursor"]);
    let id = items(&events)[0]["id"].as_str().unwrap();
    has(&house.get(&format!("/v1/events/{id}")).await.body, &event);

    let shown = house.get(&format!("/v1/contacts/{contact}")).await.body;
    has(&shown, &["id", "identities", "opted_out", "paused_until", "conversations"]);
    has(&shown["identities"][0], &["kind", "value"]);
    has(&shown["conversations"][0], &["id", "flow", "offer", "state", "version", "deadline_at"]);
    assert_eq!(shown["conversations"][0]["state"], "AGUARDANDO_PIX");

    let tasks = house.get(&format!("/v1/tasks?contact={contact}")).await.body;
    assert_eq!(items(&tasks).len(), 3, "one unpaid PIX is three touches");
    let task = [
        "id",
        "contact_id",
        "conversation_id",
        "kind",
        "cadence",
        "touch",
        "message",
        "channel",
        "status",
        "reason",
        "avoided",
        "scheduled_for",
        "next_attempt_at",
        "attempts",
        "outcome",
        "last_error",
        "provider_message_id",
        "receipt",
        "reference",
        "created_at",
        "updated_at",
    ];
    items(&tasks).iter().for_each(|row| has(row, &task));

    let plan = house.get(&format!("/v1/contacts/{contact}/plan")).await.body;
    assert_eq!(items(&plan).len(), 3);
    items(&plan).iter().for_each(|row| has(row, &["at", "local", "task_id", "message", "would_avoid"]));
    assert_eq!(items(&plan)[0]["message"], "lembrete_pix");

    let timeline = house.get(&format!("/v1/contacts/{contact}/timeline")).await.body;
    let line = ["at", "kind", "summary", "reason", "rule", "event_id", "task_id"];
    items(&timeline).iter().for_each(|row| has(row, &line));
    let times: Vec<&str> = items(&timeline).iter().map(|row| row["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let kinds: Vec<&str> = items(&timeline).iter().map(|row| row["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["event", "transition", "task", "task", "task"]);
}

#[tokio::test]
async fn a_paid_plan_is_empty_of_reminders_and_says_why_each_was_closed() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP2").await;
    let answer = house.json("loja-hotmart", &paid("paid-2", PHONE, "HP2")).await;
    house.decided(&answer).await;
    let plan = house.get(&format!("/v1/contacts/{contact}/plan")).await.body;
    assert!(items(&plan).iter().all(|row| row["message"] == "entregar_acesso"), "{plan}");
    let closed: Vec<_> = plan["closed"].as_array().unwrap().iter().filter(|row| row["reason"] == "paid").collect();
    assert_eq!(closed.len(), 3);
    closed.iter().for_each(|row| has(row, &["task_id", "local", "message", "status"]));
}

#[tokio::test]
async fn lists_go_on_where_they_ended_and_refuse_what_they_do_not_know() {
    let house = House::new().await;
    for n in 0..5 {
        let answer = house.json("loja-hotmart", &pix(&format!("p{n}"), PHONE, &format!("T{n}"))).await;
        house.decided(&answer).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/events?limit=2".to_owned();
    loop {
        let page = house.get(&path).await.body;
        seen.extend(items(&page).iter().map(|event| event["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/events?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().rev().is_sorted(), "newest first");
    for query in ["stauts=held", "limit=0", "limit=501", "status=nope", "type=nope", "contact=nope"] {
        let answer = house.get(&format!("/v1/events?{query}")).await;
        assert_eq!(answer.status.as_u16(), 400, "{query}");
        assert_eq!(answer.body["type"], "/problems/invalid_request");
    }
}

#[tokio::test]
async fn events_come_in_our_own_words_too_once_and_all_or_none() {
    let house = House::new().await;
    let event = |id: &str| json!({ "id": id, "type": "pix.created", "contact": { "phone": PHONE }, "order": id });
    let one = house.post("/v1/events", &event("a")).await;
    assert_eq!((one.status.as_u16(), &one.body["status"]), (202, &json!("received")));
    house.decided(&one).await;
    assert_eq!(house.post("/v1/events", &event("a")).await.status.as_u16(), 200);
    let many = house.post("/v1/events", &json!([event("b"), event("c")])).await;
    assert_eq!(many.body["events"].as_array().unwrap().len(), 2);
    for body in
        [json!([event("d"), { "type": "pix.created" }]), json!([]), json!("x"), json!({ "id": "e", "type": "nope" })]
    {
        let answer = house.post("/v1/events", &body).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}");
    }
    assert_eq!(items(&house.get("/v1/events").await.body).len(), 3, "nothing of a refused list is stored");
    let contact = house.get(&format!("/v1/contacts?phone={PHONE}")).await.body["items"][0]["id"].clone();
    let by_id = json!({ "id": "f", "type": "checkout.abandoned", "contact": { "id": contact } });
    let answer = house.post("/v1/events", &by_id).await;
    house.decided(&answer).await;
    let id = answer.body["event_id"].as_str().unwrap();
    assert_eq!(house.get(&format!("/v1/events/{id}")).await.body["contact_id"], contact);
    let raw = house.get(&format!("/v1/events/{id}/raw")).await;
    assert_eq!(raw.bytes, by_id.to_string().as_bytes(), "byte for byte");
}

#[tokio::test]
async fn held_events_are_released_or_discarded_and_ended_ones_replayed() {
    let house = House::new().await;
    let body = json!({ "event": "order.pix", "phone": PHONE, "order": "P-1" });
    let held = house.json("pedidos", &body).await.body["event_id"].as_str().unwrap().to_owned();
    let order = |verb: &str, id: &str| format!("/v1/events/{id}/{verb}");
    let answer = house.post(&order("replay", &held), &json!({})).await;
    assert_eq!(answer.status.as_u16(), 409, "a held event has not ended");
    let released = house.post(&order("release", &held), &json!({ "reason": "checked" })).await;
    assert_eq!(released.status.as_u16(), 200);
    assert_eq!(released.body["status"], "decided", "{}", released.body);
    assert_eq!(house.post(&order("release", &held), &json!({})).await.status.as_u16(), 409);
    let replayed = house.post(&order("replay", &held), &json!({})).await;
    assert_eq!((replayed.status.as_u16(), &replayed.body["status"]), (200, &json!("decided")));
    let second = json!({ "event": "order.pix", "phone": PHONE, "order": "P-2" });
    let held = house.json("pedidos", &second).await.body["event_id"].as_str().unwrap().to_owned();
    let discarded = house.post(&order("discard", &held), &json!({ "reason": "test" })).await;
    assert_eq!(discarded.body["status"], "discarded");
    assert_eq!(
        house.post(&order("release", "01a22e9d-5912-7000-8000-000138273c3f"), &json!({})).await.status.as_u16(),
        404
    );
    let tasks = items(&house.get("/v1/tasks").await.body).len();
    assert_eq!(tasks, 3, "released and replayed: the touches of one PIX, once");
}

// D9, FC-63
#[tokio::test]
async fn a_message_asked_for_twice_under_one_key_is_one_task() {
    let house = House::new().await;
    let wish = json!({
        "key": "order-9482:shipped:v1", "contact": { "phone": PHONE }, "text": "Seu pedido saiu.",
        "at": "2099-01-01T12:00:00Z", "cancel_on": ["payment.refunded"]
    });
    let first = house.post("/v1/tasks", &wish).await;
    assert_eq!((first.status.as_u16(), &first.body["created"]), (201, &json!(true)), "{}", first.body);
    assert_eq!(first.body["status"], "scheduled");
    assert!(!String::from_utf8_lossy(&first.bytes).contains("Seu pedido"), "texts are not shown");
    let again = house.post("/v1/tasks", &wish).await;
    assert_eq!((again.status.as_u16(), &again.body["created"]), (200, &json!(false)));
    assert_eq!(again.body["id"], first.body["id"]);
    let id = first.body["id"].as_str().unwrap();

    let retry = house.post(&format!("/v1/tasks/{id}/retry"), &json!({})).await;
    assert_eq!(retry.status.as_u16(), 409, "a waiting task needs no retry");
    let cancelled = house.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).await;
    assert_eq!((&cancelled.body["status"], &cancelled.body["reason"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(house.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).await.status.as_u16(), 409);
    assert_eq!(house.post("/v1/tasks", &wish).await.body["status"], "cancelled", "the key stays taken");

    for (change, why) in [
        (json!({ "message": "boas_vindas" }), "message and text"),
        (json!({ "text": null, "message": "nope" }), "no such message"),
        (json!({ "channel": "nope" }), "no such channel"),
        (json!({ "contact": {} }), "nobody"),
        (json!({ "contact": { "id": "01a22e9d-5912-7000-8000-000138273c3f" } }), "unknown id"),
        (json!({ "cancel_on": ["nope"] }), "no such type"),
        (json!({ "class": "nope" }), "no such class"),
        (json!({ "at": "tomorrow" }), "no time"),
        (json!({ "cancle_on": [] }), "misspelt"),
        (json!({ "key": "" }), "no key"),
    ] {
        let mut body = wish.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let status = house.post("/v1/tasks", &body).await.status.as_u16();
        assert!(matches!(status, 400 | 404), "{why}: {status}");
    }
}

#[tokio::test]
async fn a_message_for_now_is_sent_and_shows_its_attempt() {
    let house = House::new().await;
    let wish = json!({ "key": "agora", "contact": { "phone": PHONE }, "text": "Oi!", "class": "reply" });
    let task = house.post("/v1/tasks", &wish).await;
    let id = task.body["id"].as_str().unwrap().to_owned();
    let sent = loop {
        let shown = house.get(&format!("/v1/tasks/{id}")).await.body;
        if shown["status"] != "scheduled" && shown["status"] != "sending" {
            break shown;
        }
        // A condition is waited for: the loops run beside us.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    assert_eq!((&sent["status"], &sent["outcome"]), (&json!("sent"), &json!("accepted")));
    assert_eq!(sent["provider_message_id"], "WIRE1");
    has(&sent["attempt_log"][0], &["n", "started_at", "ended_at", "outcome", "http_status", "error", "response"]);
    let resolve = house.post(&format!("/v1/tasks/{id}/resolve"), &json!({ "as": "sent" })).await;
    assert_eq!(resolve.status.as_u16(), 409, "it is settled already");
}

#[tokio::test]
async fn tasks_are_cancelled_by_contact_by_transaction_and_never_all_at_once_by_accident() {
    let house = House::new().await;
    let first = house.with_pix(PHONE, "HP8").await;
    house.with_pix("5541999990002", "HP9").await;
    assert_eq!(house.post("/v1/tasks/cancel", &json!({})).await.status.as_u16(), 400);
    assert_eq!(house.post("/v1/tasks/cancel", &json!({ "contact": {} })).await.status.as_u16(), 400);
    let answer = house.post("/v1/tasks/cancel", &json!({ "contact": { "id": first } })).await;
    assert_eq!(answer.body["cancelled"], 3);
    let answer = house.post("/v1/tasks/cancel", &json!({ "reference": "HP9" })).await;
    assert_eq!(answer.body["cancelled"], 3);
    let waiting = house.get("/v1/tasks?status=scheduled").await.body;
    assert_eq!(items(&waiting).len(), 0);
}

#[tokio::test]
async fn the_database_answers_reading_statements_only() {
    let house = House::new().await;
    house.with_pix(PHONE, "HP10").await;
    let rows =
        house.post("/v1/db/sql", &json!({ "sql": "select status, count(*) as n from tarefas group by 1" })).await;
    assert_eq!(rows.body, json!({ "columns": ["status", "n"], "rows": [["agendada", 3]] }));
    for sql in ["delete from tarefas", "drop table task", "select 1; delete from task", "pragma user_version = 1"] {
        let answer = house.post("/v1/db/sql", &json!({ "sql": sql })).await;
        assert_eq!(answer.status.as_u16(), 400, "{sql}");
    }
    assert_eq!(house.call(LOCAL, Method::GET, "/v1/db/sql", None).await.status.as_u16(), 405);
}

#[tokio::test]
async fn dead_letters_are_listed_and_discarding_needs_a_reason() {
    let house = House::new().await;
    let empty = house.get("/v1/dead").await.body;
    assert_eq!(empty, json!({ "items": [], "next_cursor": null }));
    for body in [json!({}), json!({ "ids": ["x"], "filter": { "all": true } }), json!({ "filter": {} })] {
        assert_eq!(house.post("/v1/dead/retry", &body).await.status.as_u16(), 400, "{body}");
    }
    assert_eq!(house.post("/v1/dead/discard", &json!({ "ids": ["x"] })).await.status.as_u16(), 400);
    let nothing = house.post("/v1/dead/retry", &json!({ "filter": { "all": true } })).await;
    assert_eq!(nothing.body["retried"], 0);
    assert_eq!(house.get("/v1/dead/x").await.status.as_u16(), 404);
}

#[tokio::test]
async fn dead_letters_move_by_filter_and_a_dry_run_moves_nothing() {
    // E7.
    let house = House::with(false).await;
    for n in 0..3 {
        let body = pix(&format!("evt-{n}"), PHONE, &format!("HP{n}"));
        assert_eq!(house.json("loja-hotmart", &body).await.status.as_u16(), 200);
    }
    let events = house.get("/v1/events").await.body;
    for event in items(&events) {
        let id = retoma_core::ids::EventId(event["id"].as_str().unwrap().parse().unwrap());
        let now = house.engine.clock().now();
        house.engine.store().park_event(id, "cannot be decided".to_owned(), now).await.unwrap();
    }
    let all = house.get("/v1/dead").await.body["items"].as_array().unwrap().len();
    assert_eq!(all, 3);
    assert_eq!(house.get("/v1/dead?kind=task").await.body["items"], json!([]));
    assert_eq!(house.get("/v1/dead?kind=event&limit=1").await.body["items"].as_array().unwrap().len(), 1);
    let dry = house.post("/v1/dead/discard", &json!({ "filter": { "kind": "event" }, "dry_run": true })).await;
    assert_eq!(dry.body["count"], all, "{}", dry.body);
    assert_eq!(house.get("/v1/dead").await.body["items"].as_array().unwrap().len(), all, "nothing was moved");
    let order = json!({ "filter": { "kind": "event" }, "reason": "teste" });
    let done = house.post("/v1/dead/discard", &order).await;
    assert_eq!(done.body["discarded"], all, "{}", done.body);
    assert_eq!(house.get("/v1/dead").await.body["items"], json!([]));
}

#[tokio::test]
async fn a_channel_is_paused_and_resumed_by_a_person_on_record() {
    // E3, G1, G3.
    let house = House::new().await;
    let open = house.get("/v1/channels").await.body;
    assert_eq!((&open["items"][0]["name"], &open["items"][0]["status"]), (&json!("zap"), &json!("open")));
    let paused = house.post("/v1/channels/zap/pause", &json!({ "reason": "troca de aparelho" })).await.body;
    assert_eq!((&paused["status"], &paused["reason"]), (&json!("paused"), &json!("troca de aparelho")));
    assert_eq!(house.post("/v1/channels/zap/resume", &json!({})).await.body["status"], "open");
    assert_eq!(house.post("/v1/channels/nada/pause", &json!({})).await.status.as_u16(), 404);
    let audit = house.get("/v1/audit").await.body;
    let actions: Vec<_> = audit["items"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(actions[..2], [json!("channel.resume"), json!("channel.stop")]);
}
