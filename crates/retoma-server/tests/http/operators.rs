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

#[tokio::test]
async fn what_a_later_version_brings_says_so() {
    let house = House::new().await;
    let contact = house.with_pix(PHONE, "HP5").await;
    for verb in ["link", "erase"] {
        let answer = house.post(&format!("/v1/contacts/{contact}/{verb}"), &json!({})).await;
        assert_eq!((answer.status.as_u16(), &answer.body["type"]), (501, &json!("/problems/not_available")));
    }
}
