//! Orders of people about a contact: events like any other, decided in their turn, on record (C8, C12, G3).

use jiff::Timestamp;
use serde_json::json;

use crate::house::House;

const PHONE: &str = "5541999990001";

#[tokio::test]
async fn a_pause_holds_until_its_end_and_a_resume_ends_it() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP1").await;
    let order = |verb: &str| format!("/v1/contacts/{contact}/{verb}");
    let until: Timestamp = "2099-01-01T12:00:00Z".parse().unwrap();
    let paused = house.post(&order("pause"), &json!({ "until": until.to_string(), "reason": "vou atender" })).await;
    assert_eq!(paused.status.as_u16(), 200, "{}", paused.body);
    assert_eq!(paused.body["paused_until"], until.to_string());
    assert_eq!(
        (&paused.body["event"]["type"], &paused.body["event"]["status"]),
        (&json!("operator.pause"), &json!("decided"))
    );
    let plan = house.get(&order("plan")).await.body;
    assert!(plan["items"].as_array().unwrap().iter().all(|item| item["would_avoid"] == "human_active"), "{plan}");
    let resumed = house.post(&order("resume"), &json!({})).await;
    assert_eq!(resumed.body["paused_until"], json!(null));
    for body in [json!({}), json!({ "until": "2001-01-01T00:00:00Z" }), json!({ "until": "18h" }), json!({ "util": 1 })]
    {
        assert_eq!(house.post(&order("pause"), &body).await.status.as_u16(), 400, "{body}");
    }
    let unknown = "/v1/contacts/01a22e9d-5912-7000-8000-000138273c3f/resume";
    assert_eq!(house.post(unknown, &json!({})).await.status.as_u16(), 404);
}

#[tokio::test]
async fn an_opt_out_by_an_operator_closes_what_waits() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP2").await;
    let answer =
        house.post(&format!("/v1/contacts/{contact}/optout"), &json!({ "reason": "pediu por telefone" })).await;
    assert_eq!(answer.body["opted_out"], true, "{}", answer.body);
    let waiting = house.get(&format!("/v1/tasks?contact={contact}&status=scheduled&reason=pix_pendente")).await.body;
    assert_eq!(waiting["items"], json!([]));
}

#[tokio::test]
async fn a_conversation_moves_only_to_a_state_of_its_flow_and_with_a_reason() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP3").await;
    let shown = house.get(&format!("/v1/contacts/{contact}")).await.body;
    let conversation = shown["conversations"][0]["id"].clone();
    let order = format!("/v1/contacts/{contact}/move");
    let body = |to: &str| json!({ "conversation": conversation, "to": to, "reason": "comprou na loja" });
    assert_eq!(house.post(&order, &body("INVENTADO")).await.status.as_u16(), 400);
    assert_eq!(
        house.post(&order, &json!({ "conversation": conversation, "to": "PERDIDO" })).await.status.as_u16(),
        400
    );
    let other = json!({ "conversation": "01a22e9d-5912-7000-8000-000138273c3f", "to": "PERDIDO", "reason": "x" });
    assert_eq!(house.post(&order, &other).await.status.as_u16(), 404);
    let moved = house.post(&order, &body("PERDIDO")).await;
    assert_eq!(moved.body["conversations"][0]["state"], "PERDIDO", "{}", moved.body);
}

#[tokio::test]
async fn every_order_leaves_a_row_that_names_who_gave_it() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP4").await;
    house.post(&format!("/v1/contacts/{contact}/resume"), &json!({})).await;
    house.post("/v1/tasks/cancel", &json!({ "reference": "HP4" })).await;
    let rows = house.get("/v1/audit").await.body;
    let rows: Vec<_> =
        rows["items"].as_array().unwrap().iter().map(|row| (&row["actor"], row["action"].as_str().unwrap())).collect();
    assert!(rows.iter().all(|(actor, _)| **actor == "cli"), "{rows:?}");
    assert!(rows.iter().any(|(_, action)| *action == "operator.resume"), "{rows:?}");
    assert!(rows.iter().any(|(_, action)| action.starts_with("task.cancel")), "{rows:?}");
}

/// C11, H2: linking and forgetting are orders like any other; what cannot be done says why.
#[tokio::test]
async fn contacts_are_linked_and_forgotten_on_order() {
    let house = House::new().await;
    let one = house.with_pix(PHONE, "HP5").await;
    let other = house.with_pix("5541999990077", "HP6").await;
    let link = format!("/v1/contacts/{one}/link");
    let wrong = [
        (json!({}), 400),
        (json!({ "with": {} }), 400),
        (json!({ "with": { "id": one } }), 400),
        (json!({ "with": { "phone": "5541999990099" } }), 404),
        (json!({ "with": { "id": other }, "until": "x" }), 400),
    ];
    for (body, status) in wrong {
        assert_eq!(house.post(&link, &body).await.status.as_u16(), status, "{body}");
    }
    let answer = house.post(&link, &json!({ "with": { "phone": "5541999990077" }, "reason": "same buyer" })).await;
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.body);
    assert_eq!(answer.body["id"], json!(one.clone().min(other.clone())));
    let phones = answer.body["identities"].as_array().unwrap().iter().filter(|held| held["kind"] == "phone").count();
    assert_eq!((phones, answer.body["conversations"].as_array().unwrap().len()), (2, 1), "{}", answer.body);
    // Either id leads to the one that stayed.
    assert_eq!(house.get(&format!("/v1/contacts/{}", one.max(other))).await.body["id"], answer.body["id"]);
    let gone = house.post(&format!("/v1/contacts/{}/erase", answer.body["id"].as_str().unwrap()), &json!({})).await;
    assert_eq!((gone.status.as_u16(), &gone.body["identities"]), (200, &json!([])), "{}", gone.body);
    assert_eq!(house.get(&format!("/v1/contacts?phone={PHONE}")).await.body["items"], json!([]));
    let rows = house.get("/v1/audit").await.body.to_string();
    assert!(rows.contains("operator.link") && rows.contains("operator.erase"), "{rows}");
}
