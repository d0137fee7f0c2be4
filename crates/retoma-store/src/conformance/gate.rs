//! The gate for effects that run elsewhere (B1-B7).

use retoma_core::keys::body_digest;
use serde_json::json;

use super::world::*;
use crate::*;

fn call(key: &str, verb: GateVerb) -> GateCall {
    GateCall { tenant: tenant(), scope: "cobranca".to_owned(), key: key.to_owned(), actor: "key:n8n".to_owned(), verb }
}

fn plain(token: &str) -> GateClaim {
    GateClaim {
        token: token.to_owned(),
        fingerprint: None,
        lease: seconds(120),
        keep: seconds(30 * 86_400),
        correlation_id: None,
        metadata: json!({"source": "n8n"}),
        proceed_when_expired: false,
    }
}

fn claim(token: &str) -> GateVerb {
    GateVerb::Claim(plain(token))
}

/// Of a scope whose policy is to go on.
fn claim_anyway(token: &str) -> GateVerb {
    GateVerb::Claim(GateClaim { proceed_when_expired: true, ..plain(token) })
}

fn claim_by(token: &str, execution: &str) -> GateVerb {
    GateVerb::Claim(GateClaim { correlation_id: Some(execution.to_owned()), ..plain(token) })
}

fn claim_for(token: &str, content: &[u8]) -> GateVerb {
    GateVerb::Claim(GateClaim { fingerprint: Some(body_digest(content)), ..plain(token) })
}

fn complete(token: &str) -> GateVerb {
    GateVerb::Complete { token: token.to_owned(), result: GateResult::Kept(json!({"charge": 42})) }
}

fn release(done: bool) -> GateVerb {
    GateVerb::Release { done, reason: Some("looked".to_owned()) }
}

fn fail(token: &str, retryable: bool) -> GateVerb {
    GateVerb::Fail { token: token.to_owned(), error: "card refused".to_owned(), retryable }
}

async fn ask<S: Store>(store: &S, key: &str, verb: GateVerb, now: Timestamp) -> GateAnswer {
    store.gate(vec![call(key, verb)], now).await.unwrap().remove(0)
}

async fn trail<S: Store>(store: &S, key: &str) -> Option<GateRecord> {
    store.get_gate_key(tenant(), "cobranca".to_owned(), key.to_owned()).await.unwrap()
}

async fn outcome_of<S: Store>(store: &S, key: &str, verb: GateVerb, now: Timestamp) -> GateOutcome {
    ask(store, key, verb, now).await.outcome
}

/// FC-59: two executions ask within a millisecond.
pub async fn a_hundred_claims_at_once_proceed_once<S: Store>(store: &S) {
    let calls = (0..100).map(|n| store.gate(vec![call("k", claim(&format!("t{n}")))], at(1))).collect();
    let answers: Vec<GateAnswer> = all(calls).await.into_iter().map(|answer| answer.unwrap().remove(0)).collect();
    let proceed = answers.iter().filter(|answer| answer.outcome == GateOutcome::Proceed).count();
    let told = answers.iter().filter(|answer| answer.outcome == GateOutcome::InProgress).count();
    assert_eq!((proceed, told), (1, 99));
    let record = trail(store, "k").await.unwrap();
    assert_eq!((record.status.as_str(), record.duplicates, record.attempt), ("LOCKED", 99, 1));
    assert_eq!((record.first_seen_at, record.last_duplicate_at), (at(1), Some(at(1))));
    assert_eq!((record.correlation_id.as_str(), record.metadata), ("k", json!({"source": "n8n"})));
}

/// B2: seen and concluded never blur.
pub async fn a_done_key_answers_its_result<S: Store>(store: &S) {
    assert_eq!(outcome_of(store, "k", claim("t1"), at(1)).await, GateOutcome::Proceed);
    assert_eq!(outcome_of(store, "k", complete("t1"), at(2)).await, GateOutcome::Ok);
    let again = ask(store, "k", claim("t2"), at(3)).await;
    assert_eq!(again.outcome, GateOutcome::Done);
    let record = again.record.unwrap();
    assert_eq!((record.status.as_str(), record.result), ("DONE", Some(json!({"charge": 42}))));
    assert_eq!((record.duplicates, record.last_duplicate_at), (1, Some(at(3))));
    assert_eq!(trail(store, "nowhere").await, None);
    assert_eq!(outcome_of(store, "nowhere", complete("t1"), at(3)).await, GateOutcome::NotFound);
}

/// B2.
pub async fn a_failed_key_is_taken_again_only_if_retryable<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", fail("t1", true), at(2)).await, GateOutcome::Ok);
    let again = ask(store, "k", claim("t2"), at(3)).await;
    assert_eq!((again.outcome, again.previous), (GateOutcome::Proceed, Some(GatePrevious::Failed)));
    assert_eq!(again.record.unwrap().attempt, 2);
    assert_eq!(outcome_of(store, "k", fail("t2", false), at(4)).await, GateOutcome::Ok);
    let last = ask(store, "k", claim("t3"), at(5)).await;
    assert_eq!(last.outcome, GateOutcome::Failed);
    let record = last.record.unwrap();
    assert_eq!((record.status.as_str(), record.error.as_deref(), record.attempt), ("FAILED", Some("card refused"), 2));
}

/// B4, FC-61: checked before "in progress".
pub async fn another_fingerprint_is_refused_before_anything_else<S: Store>(store: &S) {
    ask(store, "pedido-61", claim_for("t1", b"lembrete 1"), at(1)).await;
    assert_eq!(outcome_of(store, "pedido-61", claim_for("t2", b"lembrete 2"), at(2)).await, GateOutcome::Mismatch);
    assert_eq!(outcome_of(store, "pedido-61", claim_for("t3", b"lembrete 1"), at(2)).await, GateOutcome::InProgress);
    ask(store, "pedido-61", complete("t1"), at(3)).await;
    let other = ask(store, "pedido-61", claim_for("t4", b"lembrete 2"), at(4)).await;
    assert_eq!((other.outcome, other.record.unwrap().duplicates), (GateOutcome::Mismatch, 1));
}

/// B3, S13: fenced.
pub async fn a_stale_token_writes_nothing<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    let over = ask(store, "k", claim_anyway("t2"), at(200)).await;
    assert_eq!((over.outcome, over.previous), (GateOutcome::Proceed, Some(GatePrevious::Unknown)));
    let before = trail(store, "k").await;
    let renew = GateVerb::Renew { token: "t1".to_owned(), lease: seconds(999) };
    for late in [complete("t1"), fail("t1", false), renew] {
        let answer = ask(store, "k", late, at(201)).await;
        assert_eq!(answer.outcome, GateOutcome::StaleToken);
        assert_eq!(trail(store, "k").await, before);
    }
    assert_eq!(outcome_of(store, "k", complete("t2"), at(202)).await, GateOutcome::Ok);
}

/// B3: the scope's policy says who goes on after a caller that died.
pub async fn a_lapsed_lease_waits_for_a_person_or_proceeds<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", claim("t2"), at(120)).await, GateOutcome::InProgress);
    let renew = GateVerb::Renew { token: "t1".to_owned(), lease: seconds(120) };
    let renewed = ask(store, "k", renew, at(120)).await;
    assert_eq!((renewed.outcome, renewed.record.unwrap().lease_until), (GateOutcome::Ok, Some(at(240))));
    assert_eq!(outcome_of(store, "k", claim("t2"), at(239)).await, GateOutcome::InProgress);
    assert_eq!(outcome_of(store, "k", claim("t2"), at(240)).await, GateOutcome::Uncertain);
    // The owner was only slow, and nobody took over.
    assert_eq!(outcome_of(store, "k", complete("t1"), at(300)).await, GateOutcome::Ok);
}

/// Its own repetition is no duplicate.
pub async fn a_caller_whose_answer_was_lost_may_ask_again<S: Store>(store: &S) {
    for now in [1, 2] {
        let answer = ask(store, "k", claim("t1"), at(now)).await;
        assert_eq!((answer.outcome, answer.record.unwrap().duplicates), (GateOutcome::Proceed, 0));
    }
    for now in [3, 4] {
        assert_eq!(outcome_of(store, "k", complete("t1"), at(now)).await, GateOutcome::Ok);
    }
}

/// B3: on record.
pub async fn an_operator_frees_what_is_uncertain<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", release(false), at(2)).await, GateOutcome::InProgress, "somebody is at it");
    assert_eq!(outcome_of(store, "k", release(false), at(500)).await, GateOutcome::Ok);
    assert_eq!(outcome_of(store, "k", complete("t1"), at(501)).await, GateOutcome::StaleToken);
    let next = ask(store, "k", claim("t2"), at(502)).await;
    assert_eq!((next.outcome, next.previous), (GateOutcome::Proceed, Some(GatePrevious::Released)));
    assert_eq!(next.record.unwrap().attempt, 2);
    ask(store, "k", complete("t2"), at(503)).await;
    assert_eq!(outcome_of(store, "k", release(false), at(504)).await, GateOutcome::Done);
    assert_eq!(audit_actions(store).await, ["gate.release"]);
}

/// B3: what a person found out counts, and the result is nobody's.
pub async fn a_person_may_say_that_it_was_done<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", release(true), at(500)).await, GateOutcome::Ok);
    let again = ask(store, "k", claim("t2"), at(501)).await;
    assert_eq!((again.outcome, again.record.unwrap().result), (GateOutcome::Done, None));
    assert_eq!(outcome_of(store, "k", complete("t1"), at(502)).await, GateOutcome::StaleToken);
    let attempts = trail(store, "k").await.unwrap().attempts;
    assert_eq!(attempts[0].outcome.as_deref(), Some("confirmed"));
}

/// B6: one call, no log archaeology.
pub async fn the_trail_tells_every_attempt<S: Store>(store: &S) {
    ask(store, "k", claim_by("t1", "exec-1"), at(1)).await;
    ask(store, "k", fail("t1", true), at(2)).await;
    ask(store, "k", claim_by("t2", "exec-2"), at(3)).await;
    ask(store, "k", claim_anyway("t3"), at(200)).await;
    ask(store, "k", complete("t3"), at(201)).await;
    let record = trail(store, "k").await.unwrap();
    let shape: Vec<_> = record
        .attempts
        .iter()
        .map(|attempt| {
            let (outcome, error) = (attempt.outcome.as_deref(), attempt.error.as_deref());
            (attempt.n, attempt.correlation_id.as_deref(), attempt.claimed_at, attempt.ended_at, outcome, error)
        })
        .collect();
    assert_eq!(
        shape,
        [
            (1, Some("exec-1"), at(1), Some(at(2)), Some("failed"), Some("card refused")),
            (2, Some("exec-2"), at(3), Some(at(200)), Some("lapsed"), None),
            (3, None, at(200), Some(at(201)), Some("done"), None)
        ]
    );
    assert!(record.attempts.iter().all(|attempt| attempt.actor.as_deref() == Some("key:n8n")));
}

/// B6: who was stopped, when, and what they were told; bounded.
pub async fn the_trail_tells_who_was_stopped<S: Store>(store: &S) {
    ask(store, "k", claim_for("t1", b"one"), at(1)).await;
    ask(store, "k", claim_by("t2", "exec-2"), at(2)).await;
    ask(store, "k", claim_for("t3", b"two"), at(3)).await;
    ask(store, "k", complete("t1"), at(4)).await;
    ask(store, "k", claim("t4"), at(5)).await;
    let record = trail(store, "k").await.unwrap();
    let shape: Vec<_> = record
        .repeats
        .iter()
        .map(|repeat| (repeat.n, repeat.at, repeat.outcome.as_str(), repeat.correlation_id.as_deref()))
        .collect();
    assert_eq!(
        shape,
        [(1, at(2), "in_progress", Some("exec-2")), (2, at(3), "mismatch", None), (3, at(5), "done", None)]
    );
    assert_eq!((record.duplicates, record.mismatches, record.last_duplicate_at), (2, 1, Some(at(5))));
    for n in 0..200 {
        ask(store, "k", claim("t5"), at(10 + n)).await;
    }
    let record = trail(store, "k").await.unwrap();
    let kept: Vec<u64> = record.repeats.iter().map(|repeat| repeat.n).collect();
    assert_eq!(kept, (1..=10).chain(164..=203).collect::<Vec<u64>>());
    assert_eq!(record.duplicates, 202);
}

/// B2: bounded; that it was done is kept whatever its size.
pub async fn a_result_that_is_too_large_is_left_out<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    let done = GateVerb::Complete { token: "t1".to_owned(), result: GateResult::TooLarge(70_000) };
    assert_eq!(outcome_of(store, "k", done, at(2)).await, GateOutcome::Ok);
    // Said once, a result stays what it was.
    assert_eq!(outcome_of(store, "k", complete("t1"), at(3)).await, GateOutcome::Ok);
    let again = ask(store, "k", claim("t2"), at(4)).await;
    let record = again.record.unwrap();
    assert_eq!((again.outcome, record.result, record.result_omitted), (GateOutcome::Done, None, Some(70_000)));
}

/// B5: evidence, and nothing that later callers could meet.
pub async fn a_claim_without_a_key_leaves_evidence_only<S: Store>(store: &S) {
    let hold = |what: &str, execution: Option<&str>| GateVerb::Hold {
        what: what.to_owned(),
        correlation_id: execution.map(str::to_owned),
    };
    for (now, verb) in [(1, hold("missing", Some("exec-9"))), (2, hold("empty", None))] {
        let answer = ask(store, "", verb, at(now)).await;
        assert_eq!(answer, GateAnswer { outcome: GateOutcome::Held, record: None, previous: None });
    }
    assert_eq!(trail(store, "").await, None);
    let page = Page { cursor: None, limit: 1 };
    let held = store.list_gate_held(tenant(), Some("cobranca".to_owned()), page.clone()).await.unwrap();
    assert_eq!((held.items[0].what.as_str(), held.items[0].at), ("empty", at(2)));
    let next = Page { cursor: held.next_cursor, limit: 5 };
    let held = store.list_gate_held(tenant(), None, next).await.unwrap();
    assert_eq!(held.items.len(), 1);
    assert_eq!((held.items[0].correlation_id.as_deref(), held.items[0].actor.as_str()), (Some("exec-9"), "key:n8n"));
    assert!(store.list_gate_held(tenant(), Some("email".to_owned()), page).await.unwrap().items.is_empty());
    let scopes = store.gate_scopes(tenant()).await.unwrap();
    assert_eq!(scopes[0].counts, [("held".to_owned(), 2)].into());
}

/// B7: per scope and tenant.
pub async fn what_happened_is_counted_by_scope<S: Store>(store: &S) {
    for (now, verb) in [(1, claim("t1")), (2, claim("t2")), (3, complete("t1")), (4, claim("t3")), (5, complete("x"))] {
        ask(store, "k", verb, at(now)).await;
    }
    let email = GateCall { scope: "email".to_owned(), ..call("k", claim("t4")) };
    let stranger = GateCall { tenant: Tenant::new("outra"), ..call("k", claim("t5")) };
    store.gate(vec![email, stranger], at(6)).await.unwrap();
    let scopes = store.gate_scopes(tenant()).await.unwrap();
    let counts = |scope: &GateScope| {
        scope.counts.iter().map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>().join(", ")
    };
    let told: Vec<_> = scopes.iter().map(|scope| (scope.scope.as_str(), scope.duplicates(), counts(scope))).collect();
    let first = "completed 1, done 1, in_progress 1, proceed 1, stale_token 1".to_owned();
    assert_eq!(told, [("cobranca", 2, first), ("email", 0, "proceed 1".to_owned())]);
}

/// What a person must look at is found by where it stands.
pub async fn keys_are_listed_by_scope_and_status<S: Store>(store: &S) {
    for (now, key) in [(1, "old"), (2, "done"), (3, "failed"), (200, "live")] {
        ask(store, key, claim(key), at(now)).await;
    }
    let email = GateCall { scope: "email".to_owned(), ..call("mail", claim("mail")) };
    store.gate(vec![email], at(200)).await.unwrap();
    ask(store, "done", complete("done"), at(4)).await;
    ask(store, "failed", fail("failed", false), at(4)).await;
    let list = async |scope: Option<&str>, status| {
        let filter = GateFilter { scope: scope.map(str::to_owned), status };
        let page = store.list_gate_keys(tenant(), filter, Page { cursor: None, limit: 50 }).await.unwrap();
        page.items.into_iter().map(|record| record.key).collect::<Vec<_>>()
    };
    let uncertain = Some(GateStatus::Uncertain { now: at(200) });
    assert_eq!(list(None, None).await, ["mail", "live", "failed", "done", "old"]);
    assert_eq!(list(Some("cobranca"), None).await, ["live", "failed", "done", "old"]);
    assert_eq!(list(Some("email"), Some(GateStatus::Locked)).await, ["mail"]);
    assert_eq!(list(None, Some(GateStatus::Locked)).await, ["mail", "live", "old"]);
    assert_eq!(list(None, uncertain).await, ["old"]);
    assert_eq!(list(None, Some(GateStatus::Done)).await, ["done"]);
    assert_eq!(list(Some("cobranca"), Some(GateStatus::Failed)).await, ["failed"]);
}

/// FC-62: by the time that its scope gave it, and never while somebody is at it.
pub async fn a_key_is_forgotten_after_its_time<S: Store>(store: &S) {
    let days = |days: i64| at(days * 86_400);
    let short = GateVerb::Claim(GateClaim { keep: seconds(1), lease: seconds(50 * 86_400), ..plain("t2") });
    ask(store, "thirty", claim("t1"), at(0)).await;
    ask(store, "under way", short, at(0)).await;
    ask(store, "", GateVerb::Hold { what: "empty".to_owned(), correlation_id: None }, at(0)).await;
    let keep = Retention { events: seconds(1), tasks: seconds(1), gate_held: seconds(30 * 86_400) };
    let held = async || {
        let page = Page { cursor: None, limit: 50 };
        store.list_gate_held(tenant(), None, page).await.unwrap().items.len()
    };
    while store.sweep_history(keep, days(29)).await.unwrap() {}
    assert_eq!(outcome_of(store, "thirty", claim("t3"), days(29)).await, GateOutcome::Uncertain);
    assert_eq!(held().await, 1);
    while store.sweep_history(keep, days(31)).await.unwrap() {}
    assert_eq!((trail(store, "thirty").await, held().await), (None, 0));
    assert_eq!(outcome_of(store, "under way", claim("t4"), days(31)).await, GateOutcome::InProgress);
    let anew = ask(store, "thirty", claim("t5"), days(31)).await;
    assert_eq!((anew.outcome, anew.record.unwrap().duplicates), (GateOutcome::Proceed, 0));
    assert_eq!(trail(store, "thirty").await.unwrap().repeats, []);
}

/// B1.
pub async fn scopes_and_tenants_are_apart<S: Store>(store: &S) {
    let other_scope = GateCall { scope: "email".to_owned(), ..call("k", claim("t2")) };
    let other_tenant = GateCall { tenant: Tenant::new("outra"), ..call("k", claim("t3")) };
    let answers = store.gate(vec![call("k", claim("t1")), other_scope, other_tenant], at(1)).await.unwrap();
    assert!(answers.iter().all(|answer| answer.outcome == GateOutcome::Proceed));
}
