//! The gate for effects that run elsewhere (B1-B5).

use retoma_core::keys::{Key16, body_digest};
use serde_json::json;

use super::world::*;
use crate::*;

fn call(key: &str, verb: GateVerb) -> GateCall {
    GateCall { tenant: tenant(), scope: "cobranca".to_owned(), key: key.to_owned(), verb }
}

fn claim(token: &str) -> GateVerb {
    GateVerb::Claim {
        token: token.to_owned(),
        fingerprint: None,
        lease: seconds(120),
        keep: seconds(30 * 86_400),
        correlation_id: None,
        metadata: json!({"source": "n8n"}),
        proceed_when_expired: false,
    }
}

fn claim_for(token: &str, content: &[u8]) -> GateVerb {
    let mut claim = claim(token);
    if let GateVerb::Claim { fingerprint, .. } = &mut claim {
        *fingerprint = Some::<Key16>(body_digest(content));
    }
    claim
}

fn complete(token: &str) -> GateVerb {
    GateVerb::Complete { token: token.to_owned(), result: json!({"charge": 42}) }
}

fn fail(token: &str, retryable: bool) -> GateVerb {
    GateVerb::Fail { token: token.to_owned(), error: "card refused".to_owned(), retryable }
}

async fn ask<S: Store>(store: &S, key: &str, verb: GateVerb, now: Timestamp) -> GateAnswer {
    store.gate(vec![call(key, verb)], now).await.unwrap().remove(0)
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
    let record = ask(store, "k", GateVerb::Show, at(9)).await.record.unwrap();
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
    let nobody = ask(store, "nowhere", GateVerb::Show, at(3)).await;
    assert_eq!(nobody, GateAnswer { outcome: GateOutcome::NotFound, record: None });
    assert_eq!(outcome_of(store, "nowhere", complete("t1"), at(3)).await, GateOutcome::NotFound);
}

/// B2.
pub async fn a_failed_key_is_taken_again_only_if_retryable<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", fail("t1", true), at(2)).await, GateOutcome::Ok);
    let again = ask(store, "k", claim("t2"), at(3)).await;
    assert_eq!((again.outcome, again.record.unwrap().attempt), (GateOutcome::Proceed, 2));
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
    let mut proceeding = claim("t2");
    if let GateVerb::Claim { proceed_when_expired, .. } = &mut proceeding {
        *proceed_when_expired = true;
    }
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", proceeding, at(200)).await, GateOutcome::Proceed);
    let show = || ask(store, "k", GateVerb::Show, at(200));
    let before = show().await.record;
    let renew = GateVerb::Renew { token: "t1".to_owned(), lease: seconds(999) };
    for late in [complete("t1"), fail("t1", false), renew] {
        let answer = ask(store, "k", late, at(201)).await;
        assert_eq!(answer.outcome, GateOutcome::StaleToken);
        assert_eq!(show().await.record, before);
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
    let release = || GateVerb::Release { actor: "ana".to_owned() };
    ask(store, "k", claim("t1"), at(1)).await;
    assert_eq!(outcome_of(store, "k", release(), at(2)).await, GateOutcome::InProgress, "somebody is at it");
    assert_eq!(outcome_of(store, "k", release(), at(500)).await, GateOutcome::Ok);
    assert_eq!(outcome_of(store, "k", complete("t1"), at(501)).await, GateOutcome::StaleToken);
    let next = ask(store, "k", claim("t2"), at(502)).await;
    assert_eq!((next.outcome, next.record.unwrap().attempt), (GateOutcome::Proceed, 2));
    ask(store, "k", complete("t2"), at(503)).await;
    assert_eq!(outcome_of(store, "k", release(), at(504)).await, GateOutcome::Done);
    assert_eq!(audit_actions(store).await, ["gate.release"]);
}

/// B6: one call, no log archaeology.
pub async fn the_trail_tells_every_attempt<S: Store>(store: &S) {
    ask(store, "k", claim("t1"), at(1)).await;
    ask(store, "k", fail("t1", true), at(2)).await;
    ask(store, "k", claim("t2"), at(3)).await;
    let mut proceeding = claim("t3");
    if let GateVerb::Claim { proceed_when_expired, .. } = &mut proceeding {
        *proceed_when_expired = true;
    }
    ask(store, "k", proceeding, at(200)).await;
    ask(store, "k", complete("t3"), at(201)).await;
    let trail = ask(store, "k", GateVerb::Show, at(300)).await;
    assert_eq!(trail.outcome, GateOutcome::Ok);
    let attempts = trail.record.unwrap().attempts;
    let shape: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            (attempt.n, attempt.claimed_at, attempt.ended_at, attempt.outcome.as_deref(), attempt.error.as_deref())
        })
        .collect();
    assert_eq!(
        shape,
        [
            (1, at(1), Some(at(2)), Some("failed"), Some("card refused")),
            (2, at(3), Some(at(200)), Some("lapsed"), None),
            (3, at(200), Some(at(201)), Some("done"), None)
        ]
    );
}

/// B1.
pub async fn scopes_and_tenants_are_apart<S: Store>(store: &S) {
    let other_scope = GateCall { scope: "email".to_owned(), ..call("k", claim("t2")) };
    let other_tenant = GateCall { tenant: Tenant::new("outra"), ..call("k", claim("t3")) };
    let answers = store.gate(vec![call("k", claim("t1")), other_scope, other_tenant], at(1)).await.unwrap();
    assert!(answers.iter().all(|answer| answer.outcome == GateOutcome::Proceed));
}
