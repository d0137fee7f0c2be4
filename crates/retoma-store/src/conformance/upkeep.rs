//! Heartbeats, channels, keys, the audit log, counts, SQL and retention.

use retoma_core::event::EventKind;
use retoma_core::outcome::{NextStep, Outcome};
use retoma_core::send_check::Reason;
use serde_json::json;

use super::world::*;
use crate::*;

/// F1, E3, H1.
pub async fn channels_keys_and_heartbeats_are_kept<S: Store>(store: &S) {
    let beat = |flow: &str, now| Heartbeat { flow: flow.to_owned(), seen_at: at(now) };
    store.beat(vec![beat("owner", 1), beat("deliverer", 2)]).await.unwrap();
    store.beat(vec![beat("owner", 5)]).await.unwrap();
    let beats = store.stats(at(9)).await.unwrap().heartbeats;
    let shape: Vec<_> = beats.iter().map(|beat| (beat.flow.as_str(), beat.seen_at)).collect();
    assert_eq!(shape, [("deliverer", at(2)), ("owner", at(5))]);

    let state = |stopped: Option<&str>, since| ChannelState {
        tenant: tenant(),
        channel: "zap".into(),
        stopped: stopped.map(str::to_owned),
        since: at(since),
        by_person: stopped == Some("maintenance"),
    };
    assert!(store.channel_states(tenant()).await.unwrap().is_empty());
    for (stopped, since) in [(Some("credentials"), 1), (None, 2), (Some("maintenance"), 3)] {
        store.set_channel_state(state(stopped, since), "deliverer".to_owned()).await.unwrap();
        let stored = store.channel_states(tenant()).await.unwrap();
        assert_eq!((stored.len(), stored[0].stopped.as_deref(), stored[0].since), (1, stopped, at(since)));
        assert_eq!(stored[0].by_person, since == 3);
    }
    assert!(store.channel_states(Tenant::new("outra")).await.unwrap().is_empty());
    assert_eq!(audit_actions(store).await, ["channel.stop", "channel.resume", "channel.stop"]);

    let key = ApiKey {
        id: "k1".to_owned(),
        tenant: tenant(),
        name: "painel".to_owned(),
        scope: "write".to_owned(),
        hash: [7; 32],
        created_at: at(1),
        revoked_at: None,
    };
    store.put_api_key(key).await.unwrap();
    let keys = store.list_api_keys(tenant()).await.unwrap();
    assert_eq!((keys.len(), keys[0].hash, keys[0].scope.as_str()), (1, [7; 32], "write"));
    assert!(!store.revoke_api_key(Tenant::new("outra"), "k1".to_owned(), at(2)).await.unwrap());
    assert!(store.revoke_api_key(tenant(), "k1".to_owned(), at(2)).await.unwrap());
    assert!(!store.revoke_api_key(tenant(), "k1".to_owned(), at(3)).await.unwrap());
    assert!(store.list_api_keys(tenant()).await.unwrap().is_empty());
}

/// G3.
pub async fn what_people_do_is_audited_newest_first<S: Store>(store: &S) {
    let row = |n: i64| AuditRow {
        tenant: tenant(),
        at: at(n),
        actor: "ana".to_owned(),
        action: "contact.pause".to_owned(),
        target: format!("contact {n}"),
        detail: json!({"n": n}),
    };
    store.append_audit((1..=3).map(row).collect()).await.unwrap();
    let theirs = AuditRow { tenant: Tenant::new("outra"), ..row(9) };
    store.append_audit(vec![theirs]).await.unwrap();
    let page = store.list_audit(tenant(), Page { cursor: None, limit: 2 }).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.target.as_str()).collect::<Vec<_>>(), ["contact 3", "contact 2"]);
    assert_eq!((page.items[0].detail.clone(), page.items[0].at), (json!({"n": 3}), at(3)));
    let rest = store.list_audit(tenant(), Page { cursor: page.next_cursor, limit: 2 }).await.unwrap();
    assert_eq!((rest.items.len(), rest.next_cursor), (1, None));
}

/// The status page's figures.
pub async fn counts_follow_what_happens<S: Store>(store: &S) {
    let empty = store.stats(at(0)).await.unwrap();
    assert_eq!((empty.contacts, empty.dead, empty.oldest_pending_at, empty.oldest_due_at), (0, 0, None, None));
    let tasks = ["sent", "avoided", "dead", "waiting"].map(|id| reminder(id, 100)).to_vec();
    let contact = contact_with(store, 1, tasks).await;
    start(store, "sent", contact, at(1)).await;
    let until = NextStep::Unsure { until: at(9) };
    finish(store, finish_of("sent", 1, end(Outcome::Ambiguous), until, at(2))).await;
    finish(store, finish_of("sent", 1, end(Outcome::Accepted), NextStep::Sent, at(3))).await;
    start(store, "dead", contact, at(1)).await;
    finish(store, finish_of("dead", 1, end(Outcome::Content), NextStep::Dead, at(2))).await;
    let avoid = SettleTo::Avoided(Reason::Paid);
    store
        .settle_tasks(vec![Settle { tenant: tenant(), task: "avoided".into(), attempts: 0, to: avoid }], at(2))
        .await
        .unwrap();
    append(store, message(7, "5541999990007")).await;
    append(store, message(8, "5541999990008")).await;
    for _ in 0..3 {
        append(store, message(8, "5541999990008")).await;
    }
    let stats = store.stats(at(150)).await.unwrap();
    let shape = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(word, count)| format!("{word}={count}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shape(&stats.events), "decided=1 received=2");
    assert_eq!(shape(&stats.tasks), "cancelled=1 dead=1 scheduled=1 sent=1");
    assert_eq!(shape(&stats.avoided), "paid=1");
    assert_eq!((stats.duplicates, stats.contacts, stats.dead, stats.ambiguous), (3, 3, 1, 1));
    assert_eq!((stats.oldest_pending_at, stats.oldest_due_at), (Some(at(7)), Some(at(100))));
    assert_eq!(store.stats(at(99)).await.unwrap().oldest_due_at, None);
    assert!(stats.bytes > 0);
    assert!(stats.disk_used_percent.is_none_or(|used| used <= 100));
}

/// `db sql` is a window, not a door.
pub async fn sql_reads_and_refuses_to_write<S: Store>(store: &S) {
    contact_with(store, 1, vec![reminder("touch", 0)]).await;
    let rows = store.query_sql("SELECT tarefa_id, status, toque FROM tarefas".to_owned()).await.unwrap();
    assert_eq!(rows.columns, ["tarefa_id", "status", "toque"]);
    assert_eq!(rows.rows, [[json!("touch"), json!("agendada"), json!(1)]]);
    let writes = [
        "DELETE FROM task",
        "UPDATE task SET status = 'sent'",
        "DROP TABLE task",
        "WITH x AS (SELECT 1) DELETE FROM task",
        "",
        "SELECT nonsense FROM nowhere",
    ];
    for sql in writes {
        let refused = store.query_sql(sql.to_owned()).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{sql}: {refused:?}");
    }
    assert_eq!(store.query_sql("SELECT 1 FROM tarefas".to_owned()).await.unwrap().rows.len(), 1);
}

/// A5, I: delivery keys for a time, business keys and task ids for ever; what waits stays.
pub async fn retention_removes_what_ended_and_keeps_what_is_claimed<S: Store>(store: &S) {
    let buyer = || vec![phone("5541999990001")];
    store
        .append_events(vec![request(1, b"paid", vec![payment(1, EventKind::PaymentApproved, "HP1", buyer())])])
        .await
        .unwrap();
    append(store, NewEvent { entry: Entry::Held("missing_id".to_owned()), ..message(2, "5541999990002") }).await;
    let contact = pending(store).await[0].contact.unwrap();
    let seen = view(store, contact, at(3)).await;
    let promised =
        ["ended", "waits"].map(|id| of(contact, Task { reference: Default::default(), ..reminder(id, 0) })).to_vec();
    commit(store, &seen, Decision { new_tasks: promised, ..decide(&seen) }, at(3)).await;
    start(store, "ended", contact, at(4)).await;
    finish(store, finish_of("ended", 1, end(Outcome::Accepted), NextStep::Sent, at(5))).await;
    let keep = Retention { events: seconds(90 * 86_400), tasks: seconds(90 * 86_400), gate_held: seconds(30 * 86_400) };
    assert!(!store.sweep_history(keep, at(days(80))).await.unwrap());
    assert_eq!(event(store, 1).await.status, EventStatus::Decided);
    while store.sweep_history(keep, at(days(91))).await.unwrap() {}
    assert!(store.get_event(tenant(), event_id(1)).await.unwrap().is_none());
    assert!(store.get_raw(tenant(), event_id(1)).await.unwrap().is_none());
    assert_eq!(event(store, 2).await.status, EventStatus::Held);
    assert!(store.get_task(tenant(), "ended".into()).await.unwrap().is_none());
    assert_eq!(due_ids(store, at(days(91))).await, ["waits"]);
    // The fact is still known, whatever the delivery key; the id is still taken.
    let told = payment(9, EventKind::PaymentApproved, "HP1", buyer());
    assert!(matches!(append(store, told).await, Appended::RepeatedFact { first, .. } if first == event_id(1)));
    let again = of(contact, reminder("ended", 0));
    assert!(!store.schedule_tasks(vec![again], "ana".to_owned()).await.unwrap()[0].1);
}
