//! Recognition against a model: whatever is in memory, in the table, or between the two when the process ends, a key is
//! claimed once (A4, A5).

#![allow(clippy::unwrap_used, reason = "every line of it is a test")]

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use retoma_core::event::{EventData, EventKind};
use retoma_core::ids::{EventId, Tenant};
use retoma_core::keys::digest16;
use retoma_sqlite::{Database, Options};
use retoma_store::{Appended, Entry, Intake, NewEvent, Retention, Subject};

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + day * 86_400).unwrap()
}

/// A delivery of a fact; many deliveries may state one fact.
#[derive(Clone, Debug)]
struct Told {
    delivery: u8,
    fact: Option<u8>,
}

#[derive(Clone, Debug)]
enum Step {
    /// One transaction, several verbs.
    Append(Vec<Vec<Told>>),
    /// The same, rolled back.
    Forget(Vec<Vec<Told>>),
    /// The process ends and another one opens the file.
    Reopen,
    /// Two months later, all that ended is removed. (What waits to be decided stays.)
    Sweep,
}

fn told() -> impl Strategy<Value = Vec<Vec<Told>>> {
    let one = (0_u8..60, proptest::option::of(0_u8..30)).prop_map(|(delivery, fact)| Told { delivery, fact });
    prop::collection::vec(prop::collection::vec(one, 1..12), 1..3)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => told().prop_map(Step::Append),
        1 => told().prop_map(Step::Forget),
        1 => Just(Step::Reopen),
        1 => Just(Step::Sweep),
    ]
}

fn event(number: u128, told: &Told, now: Timestamp) -> NewEvent {
    NewEvent {
        id: EventId(uuid::Uuid::from_u128(number)),
        tenant: Tenant::default(),
        source: "loja".into(),
        kind: EventKind::PixCreated,
        key: told.delivery.to_string(),
        delivery_key: digest16("delivery", &[&[told.delivery]]),
        business_key: told.fact.map(|fact| digest16("business", &[&[fact]])),
        digest: digest16("body", &[&[told.delivery]]),
        entry: Entry::Received,
        subject: Subject::Nobody,
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData::default(),
        receipt: None,
    }
}

/// What a store of keys must know, in two maps.
#[derive(Clone, Default)]
struct Model {
    deliveries: HashMap<u8, EventId>,
    facts: HashMap<u8, EventId>,
    /// Events that ended as they came.
    ended: Vec<EventId>,
}

impl Model {
    /// What `append_events` must answer. A batch claims all its delivery keys before its facts, each in key order.
    fn append(&mut self, batch: &[(EventId, Told)]) -> Vec<Expected> {
        let mut new = Vec::new();
        for (index, (id, told)) in batch.iter().enumerate() {
            if *self.deliveries.entry(told.delivery).or_insert(*id) == *id {
                new.push(index);
            }
        }
        batch
            .iter()
            .enumerate()
            .map(|(index, (id, told))| match (new.contains(&index), told.fact) {
                (false, _) => Expected::Duplicate(self.deliveries[&told.delivery]),
                (true, None) => Expected::New,
                (true, Some(fact)) => match *self.facts.entry(fact).or_insert(*id) {
                    first if first == *id => Expected::New,
                    first => {
                        self.ended.push(*id);
                        Expected::Repeats(first)
                    }
                },
            })
            .collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    New,
    Duplicate(EventId),
    Repeats(EventId),
}

fn seen(appended: &Appended) -> Expected {
    match appended {
        Appended::New { .. } => Expected::New,
        Appended::Duplicate { event, altered, .. } => {
            assert!(!altered, "the same bytes");
            Expected::Duplicate(*event)
        }
        Appended::RepeatedFact { first, .. } => Expected::Repeats(*first),
    }
}

fn open(path: &std::path::Path) -> Database {
    // So few that merges begin, go on over several commits and end within a case.
    Database::open(path, Options { recent_keys_max: 20, ..Options::default() }).unwrap()
}

fn run(steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("retoma.db");
    let mut database = open(&path);
    let (mut model, mut number, mut day) = (Model::default(), 0, 0);
    for step in steps {
        match step {
            Step::Append(verbs) | Step::Forget(verbs) => {
                let before = model.clone();
                database.begin().unwrap();
                for parts in verbs {
                    let batch: Vec<(EventId, Told)> = parts
                        .iter()
                        .map(|told| {
                            number += 1;
                            (EventId(uuid::Uuid::from_u128(number)), told.clone())
                        })
                        .collect();
                    let intakes: Vec<Intake> = batch
                        .iter()
                        .map(|(id, told)| Intake { request: None, events: vec![event(id.0.as_u128(), told, at(day))] })
                        .collect();
                    let answers = database.append_events(&intakes).unwrap();
                    let answers: Vec<Expected> = answers.iter().flatten().map(seen).collect();
                    assert_eq!(answers, model.append(&batch), "{parts:?}");
                }
                if matches!(step, Step::Append(_)) {
                    database.commit().unwrap();
                } else {
                    database.rollback();
                    model = before;
                }
            }
            Step::Reopen => {
                drop(database);
                database = open(&path);
            }
            Step::Sweep => {
                day += 60;
                let keep = Retention {
                    events: DAY.unsigned_abs() * 30,
                    tasks: DAY.unsigned_abs() * 30,
                    gate_held: DAY.unsigned_abs() * 30,
                };
                while database.transact(|database| database.sweep_history(&keep, at(day))).unwrap() {}
                // Repetitions of facts ended as they came: their delivery keys are gone, the facts stay.
                let ended = std::mem::take(&mut model.ended);
                model.deliveries.retain(|_, event| !ended.contains(event));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_key_is_claimed_once_whatever_is_merged_rolled_back_or_reopened(steps in prop::collection::vec(step(), 1..40)) {
        run(&steps);
    }
}
