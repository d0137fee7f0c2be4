//! The gate under random interleavings of claims, renewals, ends, crashes, lost answers, late owners and releases, on a real
//! file (B2, B3). Two judges: a history that knows only what callers were told, and a model of what they should have been told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::sample::Index;
use retoma_core::ids::Tenant;
use retoma_core::keys::body_digest;
use retoma_sqlite::{Database, Options};
use retoma_store::{GateAnswer, GateCall, GateClaim, GateOutcome, GatePrevious, GateRecord, GateResult, GateVerb};
use serde_json::json;

const LEASE_S: i64 = 120;
const SCOPE: &str = "cobranca";

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Committed and answered.
    Answered,
    /// Committed; the answer never arrives.
    AnswerLost,
    /// The process dies before the commit.
    Crashed,
}

#[derive(Clone, Debug)]
enum Verb {
    Claim { content: Option<u8>, proceed: bool },
    Renew(Index),
    Complete(Index, u8),
    Fail(Index, bool),
    Release(bool),
}

#[derive(Clone, Debug)]
enum Step {
    Call { key: u8, verb: Verb, fate: Fate },
    Wait(i64),
    Reopen,
}

fn verb() -> impl Strategy<Value = Verb> {
    let token = any::<Index>;
    prop_oneof![
        5 => (proptest::option::of(0..2_u8), any::<bool>())
            .prop_map(|(content, proceed)| Verb::Claim { content, proceed }),
        2 => token().prop_map(Verb::Renew),
        3 => (token(), any::<u8>()).prop_map(|(token, result)| Verb::Complete(token, result)),
        2 => (token(), any::<bool>()).prop_map(|(token, retryable)| Verb::Fail(token, retryable)),
        1 => any::<bool>().prop_map(Verb::Release),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![6 => Just(Fate::Answered), 2 => Just(Fate::AnswerLost), 1 => Just(Fate::Crashed)];
    prop_oneof![
        12 => (0..2_u8, verb(), fate).prop_map(|(key, verb, fate)| Step::Call { key, verb, fate }),
        4 => (1..LEASE_S + 10).prop_map(Step::Wait),
        1 => Just(Step::Reopen),
    ]
}

/// What a key should be.
#[derive(Clone, Debug, Default)]
struct Model {
    attempt: u32,
    duplicates: u64,
    content: Option<u8>,
    /// The token that may write, while it is under way or as its last word.
    owner: Option<String>,
    at: Place,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Nowhere,
    /// Until.
    Locked(i64),
    Done(Option<u8>),
    Failed(bool),
}

impl Model {
    /// What the call should be told; what it leaves.
    fn step(&mut self, verb: &Verb, token: &str, now: i64) -> (GateOutcome, Option<GatePrevious>) {
        let is_owner = self.owner.as_deref() == Some(token);
        match verb {
            Verb::Claim { content, proceed } => self.claim(*content, *proceed, token, now),
            _ if self.at == Place::Nowhere => (GateOutcome::NotFound, None),
            Verb::Release(done) => match self.at {
                Place::Done(_) => (GateOutcome::Done, None),
                Place::Locked(until) if until > now => (GateOutcome::InProgress, None),
                _ => {
                    self.owner = None;
                    self.at = if *done { Place::Done(None) } else { Place::Failed(true) };
                    (GateOutcome::Ok, None)
                }
            },
            Verb::Renew(_) if is_owner && matches!(self.at, Place::Locked(_)) => {
                self.at = Place::Locked(now + LEASE_S);
                (GateOutcome::Ok, None)
            }
            Verb::Complete(_, result) if is_owner => match self.at {
                Place::Locked(_) => {
                    self.at = Place::Done(Some(*result));
                    (GateOutcome::Ok, None)
                }
                Place::Done(_) => (GateOutcome::Ok, None),
                _ => (GateOutcome::StaleToken, None),
            },
            Verb::Fail(_, retryable) if is_owner => match self.at {
                Place::Locked(_) => {
                    self.at = Place::Failed(*retryable);
                    (GateOutcome::Ok, None)
                }
                Place::Failed(_) => (GateOutcome::Ok, None),
                _ => (GateOutcome::StaleToken, None),
            },
            _ => (GateOutcome::StaleToken, None),
        }
    }

    fn claim(
        &mut self,
        content: Option<u8>,
        proceed: bool,
        token: &str,
        now: i64,
    ) -> (GateOutcome, Option<GatePrevious>) {
        if let (Some(was), Some(is)) = (self.content, content)
            && was != is
        {
            return (GateOutcome::Mismatch, None);
        }
        let previous = match self.at {
            Place::Nowhere => None,
            Place::Locked(until) if until <= now && proceed => Some(GatePrevious::Unknown),
            Place::Failed(true) if self.owner.is_none() => Some(GatePrevious::Released),
            Place::Failed(true) => Some(GatePrevious::Failed),
            ref other => {
                self.duplicates += 1;
                let told = match other {
                    Place::Locked(until) if *until <= now => GateOutcome::Uncertain,
                    Place::Locked(_) => GateOutcome::InProgress,
                    Place::Done(_) => GateOutcome::Done,
                    Place::Failed(_) | Place::Nowhere => GateOutcome::Failed,
                };
                return (told, None);
            }
        };
        self.attempt += 1;
        self.content = self.content.or(content);
        self.owner = Some(token.to_owned());
        self.at = Place::Locked(now + LEASE_S);
        (GateOutcome::Proceed, previous)
    }
}

/// What one caller after the other was told about a key, and what can never be told together.
#[derive(Default)]
struct History {
    /// Who was told to go on last, and until when nobody else may be. Told or not: it was committed.
    live: Option<(String, i64)>,
    /// The key's first record as `DONE`.
    done: Option<GateRecord>,
}

impl History {
    fn saw(&mut self, verb: &Verb, token: &str, answer: &GateAnswer, now: i64) {
        let record = answer.record.as_ref();
        match (verb, answer.outcome) {
            (Verb::Claim { .. }, GateOutcome::Proceed) => {
                if let Some((other, until)) = &self.live {
                    assert!(*until <= now, "{token} may go on while {other} has the turn until {until}, at {now}");
                }
                assert!(self.done.is_none(), "what is done is done again by {token}");
                self.live = Some((token.to_owned(), now + LEASE_S));
            }
            (Verb::Renew(_), GateOutcome::Ok) => {
                assert_eq!(self.live.as_ref().map(|(owner, _)| owner.as_str()), Some(token), "a stale token renews");
                self.live = Some((token.to_owned(), now + LEASE_S));
            }
            (Verb::Complete(..) | Verb::Fail(..), GateOutcome::Ok) if self.done.is_none() => {
                if let Some((owner, _)) = self.live.take() {
                    assert_eq!(owner, token, "a stale token writes");
                }
            }
            (Verb::Release(_), GateOutcome::Ok) => {
                assert!(self.live.as_ref().is_none_or(|(_, until)| *until <= now), "a live claim is released");
                self.live = None;
            }
            _ => {}
        }
        let Some(record) = record.filter(|record| record.status == "DONE") else {
            assert!(self.done.is_none(), "what was done is not any more: {record:?}");
            return;
        };
        let first = self.done.get_or_insert_with(|| record.clone());
        assert_eq!((&record.result, record.attempt), (&first.result, first.attempt), "a stored result changed");
    }
}

struct World {
    database: Option<Database>,
    now: i64,
    issued: u32,
    models: BTreeMap<u8, Model>,
    histories: BTreeMap<u8, History>,
    /// Tokens that callers know, live and stale.
    known: BTreeMap<u8, Vec<String>>,
}

fn open(path: &Path) -> Database {
    Database::open(path, Options::default()).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}

impl World {
    fn token(&mut self, key: u8, verb: &Verb) -> String {
        match verb {
            Verb::Claim { .. } => {
                self.issued += 1;
                format!("t{}", self.issued)
            }
            Verb::Renew(which) | Verb::Complete(which, _) | Verb::Fail(which, _) => {
                let known = self.known.entry(key).or_default();
                if known.is_empty() { "never given".to_owned() } else { which.get(known).clone() }
            }
            Verb::Release(_) => String::new(),
        }
    }

    fn gate(&self, key: u8, verb: &Verb, token: &str) -> GateAnswer {
        let token = token.to_owned();
        let verb = match verb {
            Verb::Claim { content, proceed } => GateVerb::Claim(GateClaim {
                token,
                fingerprint: content.map(|content| body_digest(&[content])),
                lease: Duration::from_secs(LEASE_S.unsigned_abs()),
                keep: Duration::from_secs(30 * 86_400),
                correlation_id: None,
                metadata: json!({}),
                proceed_when_expired: *proceed,
            }),
            Verb::Renew(_) => GateVerb::Renew { token, lease: Duration::from_secs(LEASE_S.unsigned_abs()) },
            Verb::Complete(_, result) => GateVerb::Complete { token, result: GateResult::Kept(json!(result)) },
            Verb::Fail(_, retryable) => GateVerb::Fail { token, error: "no".to_owned(), retryable: *retryable },
            Verb::Release(done) => GateVerb::Release { done: *done, reason: None },
        };
        let call = GateCall {
            tenant: Tenant::default(),
            scope: SCOPE.to_owned(),
            key: key.to_string(),
            actor: "key:n8n".to_owned(),
            verb,
        };
        self.database().gate(&[call], at(self.now)).unwrap().remove(0)
    }

    fn trail(&self, key: u8) -> Option<GateRecord> {
        self.database().get_gate_key(&Tenant::default(), SCOPE, &key.to_string()).unwrap()
    }

    fn call(&mut self, key: u8, verb: &Verb, fate: Fate, path: &Path) {
        let token = self.token(key, verb);
        let before = self.trail(key);
        self.database().begin().unwrap();
        let answer = self.gate(key, verb, &token);
        let mut model = self.models.get(&key).cloned().unwrap_or_default();
        let expected = model.step(verb, &token, self.now);
        assert_eq!((answer.outcome, answer.previous), expected, "{verb:?} with {token:?}");
        if matches!(fate, Fate::Crashed) {
            // Without a commit: what was told to nobody never happened.
            self.reopen(path);
            assert_eq!(self.trail(key), before);
            return;
        }
        self.database().commit().unwrap();
        self.models.insert(key, model);
        self.histories.entry(key).or_default().saw(verb, &token, &answer, self.now);
        if matches!(answer.outcome, GateOutcome::StaleToken | GateOutcome::NotFound) {
            assert_eq!(self.trail(key), before, "a stale token wrote");
        }
        if matches!((verb, fate), (Verb::Claim { .. }, Fate::Answered)) && answer.outcome == GateOutcome::Proceed {
            self.known.entry(key).or_default().push(token);
        }
        self.compare(key);
    }

    /// The trail tells the same as the model, attempt by attempt.
    fn compare(&self, key: u8) {
        let model = &self.models[&key];
        let Some(record) = self.trail(key) else {
            assert_eq!(model.at, Place::Nowhere);
            return;
        };
        let (status, result) = match &model.at {
            Place::Nowhere => panic!("a record out of nothing: {record:?}"),
            Place::Locked(_) => ("LOCKED", None),
            Place::Done(result) => ("DONE", result.map(|result| json!(result))),
            Place::Failed(_) => ("FAILED", None),
        };
        assert_eq!((record.status.as_str(), &record.result), (status, &result));
        assert_eq!((record.attempt, record.duplicates), (model.attempt, model.duplicates));
        assert_eq!(record.attempts.len(), usize::try_from(model.attempt).unwrap());
        let open = record.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).count();
        assert_eq!(open, usize::from(status == "LOCKED"), "{record:?}");
        let done = record.attempts.iter().filter(|attempt| attempt.outcome.as_deref() == Some("done")).count();
        assert!(done <= 1, "{record:?}");
    }

    fn reopen(&mut self, path: &Path) {
        // The file is given back before it is opened again.
        drop(self.database.take());
        self.database = Some(open(path));
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect("open but within a reopening")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn one_live_claim_one_result_and_no_word_from_the_dead(steps in proptest::collection::vec(step(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("retoma.db");
        let mut world = World {
            database: Some(open(&path)),
            now: 1,
            issued: 0,
            models: BTreeMap::new(),
            histories: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        for step in steps {
            match step {
                Step::Call { key, verb, fate } => world.call(key, &verb, fate, &path),
                Step::Wait(seconds) => world.now += seconds,
                Step::Reopen => world.reopen(&path),
            }
        }
    }
}
