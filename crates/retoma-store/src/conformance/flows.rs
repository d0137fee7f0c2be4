//! Flows as they were published, and where conversations stand.

use retoma_core::decision::Decision;
use retoma_core::flow::Standing;
use retoma_core::ids::{FlowName, Tenant};
use retoma_core::state::Conversation;

use super::world::*;
use crate::*;

/// C15.
pub async fn what_takes_effect_is_kept_in_order_and_once<S: Store>(store: &S) {
    let published = |flow: &str, version, text: &str, second| PublishedFlow {
        tenant: tenant(),
        flow: flow.into(),
        version,
        text: text.to_owned(),
        published_at: at(second),
        published_by: "start".to_owned(),
    };
    let theirs = PublishedFlow { tenant: Tenant::new("outra"), ..published("vendas", 1, "one", 1) };
    let batch = vec![published("vendas", 1, "one", 1), published("outro", 4, "four", 1), theirs];
    assert_eq!(store.publish_flows(batch).await.unwrap(), [true, true, true]);
    // A restart, a change, a restart, and back to what was before: that is a change, too.
    for (version, text, second, recorded) in [
        (1, "one", 2, false),
        (2, "two", 3, true),
        (2, "two", 4, false),
        (1, "one", 5, true),
        (1, "one, mended", 6, true),
    ] {
        let answer = store.publish_flows(vec![published("vendas", version, text, second)]).await.unwrap();
        assert_eq!(answer, [recorded], "{text} at {second}");
    }
    let list = async |flow: Option<&str>, limit| -> Vec<(String, u32, String)> {
        let found = store.list_flows(tenant(), flow.map(FlowName::new), limit).await.unwrap();
        found.into_iter().map(|one| (one.flow.to_string(), one.version, one.text)).collect()
    };
    let vendas = [(1, "one, mended"), (1, "one"), (2, "two"), (1, "one")];
    let vendas = vendas.map(|(version, text)| ("vendas".to_owned(), version, text.to_owned()));
    assert_eq!(list(Some("vendas"), 10).await, vendas);
    assert_eq!(list(Some("vendas"), 2).await, vendas[..2]);
    assert_eq!(list(Some("outro"), 10).await, [("outro".to_owned(), 4, "four".to_owned())]);
    assert_eq!(list(None, 10).await.len(), 5);
    let newest = store.list_flows(tenant(), Some("vendas".into()), 1).await.unwrap();
    assert_eq!((newest[0].published_at, newest[0].published_by.as_str()), (at(6), "start"));
}

/// M1: what is closed, and what is another tenant's, counts nowhere.
pub async fn conversations_are_counted_where_they_stand<S: Store>(store: &S) {
    assert!(store.count_standing(tenant()).await.unwrap().is_empty());
    let contact = append_new(store, message(1, "5541999990001")).await;
    let cycles = [("AGUARDANDO_PIX", false), ("AGUARDANDO_PIX", false), ("PAGO", false), ("AGUARDANDO_PIX", true)];
    let cycles = (1..).zip(cycles);
    let cycles =
        cycles.map(|(n, (state, closed))| Conversation { closed, ..conversation(contact, n, state) }).collect();
    let seen = view(store, contact, at(1)).await;
    commit(store, &seen, Decision { conversations: cycles, ..decide(&seen) }, at(1)).await;
    let mut found = store.count_standing(tenant()).await.unwrap();
    found.sort_by(|one, other| one.state.cmp(&other.state));
    let standing = |state: &str, live| Standing { flow: "vendas".into(), state: state.to_owned(), live };
    assert_eq!(found, [standing("AGUARDANDO_PIX", 2), standing("PAGO", 1)]);
    assert!(store.count_standing(Tenant::new("outra")).await.unwrap().is_empty());
}
