//! What was heard of messages after they were accepted (E6, FC-28, FC-78).

use retoma_core::ids::{ChannelName, ContactId, Tenant};
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::receipt::{Arrivals, Status};

use super::world::*;
use crate::*;

const HOUR: i64 = 3600;

fn receipt(message: &str, status: ReceiptStatus, seconds: i64) -> Receipt {
    Receipt {
        tenant: tenant(),
        channel: "zap".into(),
        provider_message_id: message.to_owned(),
        status,
        at: at(seconds),
    }
}

/// So many messages of one contact, a second apart, each accepted under its own id `M1`, `M2`, ..
async fn accepted<S: Store>(store: &S, n: u64, count: i64) -> ContactId {
    let contact = contact_with(store, n, (1..=count).map(|m| reminder(&format!("t{m}"), 0)).collect()).await;
    for m in 1..=count {
        let id = format!("t{m}");
        let attempt = start(store, &id, contact, at(m)).await;
        let mut ended = end(Outcome::Accepted);
        ended.provider_message_id = Some(format!("M{m}"));
        assert!(finish(store, finish_of(&id, attempt, ended, NextStep::Sent, at(m))).await);
    }
    contact
}

async fn arrivals<S: Store>(store: &S, now: i64) -> Arrivals {
    let channels: Vec<ChannelName> = vec!["zap".into(), "cloud".into()];
    let seen = store.arrivals(tenant(), channels, at(now)).await.unwrap();
    assert_eq!(seen[1], Arrivals::default(), "each channel by itself");
    seen[0]
}

/// FC-78: ninety of a hundred are heard of, ten never; one of them late.
pub async fn messages_without_a_receipt_are_counted_apart<S: Store>(store: &S) {
    let contact = accepted(store, 1, 100).await;
    assert_eq!(arrivals(store, 60).await, Arrivals::default(), "what is young tells nothing yet");
    let heard = (11..=100).map(|m| receipt(&format!("M{m}"), ReceiptStatus::Sent, m + 5)).collect();
    store.merge_receipts(heard).await.unwrap();
    let day = 25 * HOUR;
    assert_eq!(arrivals(store, day).await, Arrivals { accepted: 100, silent: 10, told: true });
    let silent = TaskFilter {
        tenant: tenant(),
        silent: Some(Silent { channels: vec!["zap".into()], before: at(HOUR) }),
        ..TaskFilter::default()
    };
    let listed = |filter: TaskFilter| async move {
        let page = Page { cursor: None, limit: 50 };
        let rows = store.list_tasks(tenant(), filter, page).await.unwrap().items;
        let mut ids: Vec<String> = rows.iter().map(|row| row.task.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(silent.clone()).await, ["t1", "t10", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]);
    // Late, and a failure is a word, too.
    store.merge_receipts(vec![receipt("M1", ReceiptStatus::Delivered, 26 * HOUR)]).await.unwrap();
    store.merge_receipts(vec![receipt("M2", ReceiptStatus::Failed, 26 * HOUR)]).await.unwrap();
    assert_eq!(arrivals(store, 27 * HOUR).await, Arrivals { accepted: 100, silent: 8, told: true });
    assert_eq!(listed(silent).await.len(), 8);
    assert_eq!(task(store, "t1").await.receipt, Some(ReceiptStatus::Delivered));
    // The check before sending sees what was heard of each.
    let sends = view(store, contact, at(27 * HOUR)).await.sends;
    let receipts: Vec<Option<Status>> = sends.iter().map(|send| send.receipt).collect();
    assert_eq!(receipts[..3], [Some(Status::Delivered), Some(Status::Failed), Some(Status::Accepted)]);
    assert_eq!(arrivals(store, days(9)).await, Arrivals::default(), "what is old tells nothing any more");
}

/// FC-78: where receipts never come, a message without one tells nothing; where they stopped coming, it does.
pub async fn a_channel_that_never_tells_is_known<S: Store>(store: &S) {
    accepted(store, 1, 250).await;
    assert_eq!(arrivals(store, 25 * HOUR).await, Arrivals { accepted: 200, silent: 200, told: false });
    store.merge_receipts(vec![receipt("M3", ReceiptStatus::Read, 9)]).await.unwrap();
    assert_eq!(arrivals(store, 25 * HOUR).await, Arrivals { accepted: 200, silent: 200, told: true });
}

/// FC-28: receipts of messages that nobody sent are listed, and go with the events.
pub async fn receipts_that_nobody_claims_are_listed<S: Store>(store: &S) {
    let early = ["M1", "TYPED", "LOST"].map(|id| receipt(id, ReceiptStatus::Delivered, 1)).to_vec();
    store.merge_receipts(early).await.unwrap();
    store.merge_receipts(vec![receipt("TYPED", ReceiptStatus::Read, 5)]).await.unwrap();
    store.merge_receipts(vec![receipt("GONE", ReceiptStatus::Failed, 9)]).await.unwrap();
    // The receipt came before our own result: nobody's until then.
    accepted(store, 1, 1).await;
    assert_eq!(task(store, "t1").await.receipt, Some(ReceiptStatus::Delivered));
    let orphans = store.list_orphan_receipts(tenant(), at(HOUR), 50).await.unwrap();
    let shown: Vec<_> = orphans.iter().map(|one| (one.provider_message_id.as_str(), one.receipt, one.at)).collect();
    assert_eq!(
        shown,
        [
            ("GONE", ReceiptStatus::Failed, at(9)),
            ("TYPED", ReceiptStatus::Read, at(5)),
            ("LOST", ReceiptStatus::Delivered, at(1))
        ]
    );
    let older = store.list_orphan_receipts(tenant(), at(4), 50).await.unwrap();
    assert_eq!(older.iter().map(|one| one.provider_message_id.as_str()).collect::<Vec<_>>(), ["LOST"]);
    assert_eq!(store.list_orphan_receipts(tenant(), at(HOUR), 1).await.unwrap().len(), 1);
    let other = Tenant::new("outra");
    assert!(store.list_orphan_receipts(other, at(HOUR), 50).await.unwrap().is_empty());
    let keep = Retention { events: seconds(86_400), tasks: seconds(90 * 86_400), gate_held: seconds(30 * 86_400) };
    while store.sweep_history(keep, at(days(2))).await.unwrap() {}
    assert!(store.list_orphan_receipts(tenant(), at(days(3)), 50).await.unwrap().is_empty());
    assert_eq!(task(store, "t1").await.receipt, Some(ReceiptStatus::Delivered), "what is claimed stays");
}
