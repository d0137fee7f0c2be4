//! What never arrived is brought in once, through the door it would have come through (A11).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use retoma_engine::transport::Fetch;
use retoma_providers::inbound::Path;
use retoma_providers::outbound::WireEnd;
use retoma_providers::reconcile::Reconcile;
use retoma_server::reconcile::{Round, round};
use serde_json::{Value, json};

use crate::house::House;

/// A platform: pages by address, and what it was asked.
struct Platform {
    pages: BTreeMap<String, Value>,
    asked: Mutex<Vec<String>>,
}

impl Fetch for Platform {
    async fn fetch(&self, url: String, _: HeaderMap, _: usize, _: Duration) -> WireEnd {
        self.asked.lock().unwrap().push(url.clone());
        match self.pages.get(&url) {
            Some(page) => {
                WireEnd::Answer { status: 200, headers: HeaderMap::new(), body: Bytes::from(page.to_string()) }
            }
            None => WireEnd::Answer { status: 500, headers: HeaderMap::new(), body: Bytes::new() },
        }
    }
}

fn order(n: u32) -> Value {
    json!({ "id": format!("e{n}"), "event": "payment.approved", "phone": format!("55419999900{n:02}"), "order": format!("P-{n}") })
}

#[tokio::test]
async fn what_never_arrived_is_brought_in_once_and_what_did_is_left_alone() {
    let house = House::new().await;
    let arrived = house.json("pedidos", &order(1)).await;
    // The same fact under another id than the list gives it.
    let mut renamed = order(2);
    renamed["id"] = json!("other");
    house.decided(&house.json("pedidos", &renamed).await).await;

    let first = "https://api.loja.test/orders".to_owned();
    let pages = [
        (first.clone(), json!({ "orders": [order(1), order(2), order(3)], "next": "/orders?page=2" })),
        (format!("{first}?page=2"), json!({ "orders": [order(4), 7], "next": "/orders?page=3" })),
    ];
    let mut platform = Platform { pages: pages.into(), asked: Mutex::default() };
    let reconcile = Reconcile {
        url: first,
        credential: None,
        every: Duration::from_secs(900),
        lookback: Duration::from_secs(86_400),
        items: Path::parse("$.orders[*]").unwrap(),
        next: Some(Path::parse("$.next").unwrap()),
        mapping: None,
    };
    // The third page fails: what came before it is kept.
    let failed = round(&house.state, &platform, "pedidos", &reconcile).await;
    assert_eq!(failed.unwrap_err().to_string(), "the platform answered 500");
    assert_eq!(platform.asked.lock().unwrap().len(), 3);
    let listed = house.get("/v1/events?source=pedidos").await;
    let items = listed.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 5, "two came, two were brought in, one item is set aside: {}", listed.body);
    assert!(items.iter().all(|item| item["duplicates"] == 0), "{}", listed.body);
    assert_eq!(
        house.get(&format!("/v1/events/{}", arrived.body["event_id"].as_str().unwrap())).await.body["duplicates"],
        0
    );

    let last = "https://api.loja.test/orders?page=3".to_owned();
    platform.pages.insert(last, json!({ "orders": [order(5)] }));
    let again = round(&house.state, &platform, "pedidos", &reconcile).await.unwrap();
    assert_eq!(again, Round { listed: 6, missing: 1 });
    assert_eq!(round(&house.state, &platform, "pedidos", &reconcile).await.unwrap(), Round { listed: 6, missing: 0 });

    // Brought in late, it is decided like any other.
    let late = house.json("pedidos", &order(3)).await;
    assert_eq!(late.body["duplicate"], true);
    house.decided(&late).await;
    assert_eq!(house.get("/v1/contacts?phone=5541999990003").await.body["items"].as_array().unwrap().len(), 1);
}
