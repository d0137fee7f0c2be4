//! Measures what the store costs per event and per decision, without HTTP or domain code around it.
//!
//!     cargo run --release -p retoma-sqlite --example throughput -- [batches of 200] [keys to preload] [directory]
//!
//! `cpu` is processor time of this thread, verb and commit together; `wall` adds what the disk and the neighbours take.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a measuring tool")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use retoma_core::decision::{Decision, EventOutcome, Transition};
use retoma_core::event::{EventData, EventKind, OrderRef};
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{BucketNo, ContactId, ConversationId, EventId, RequestId, TaskId, Tenant};
use retoma_core::keys::digest16;
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::state::{Contact, ContactView, Conversation};
use retoma_core::task::{MessageClass, Reference, Task, TaskKind, TaskStatus};
use retoma_sqlite::{Database, Options};
use retoma_store::{
    Appended, Buckets, DecisionCommit, Entry, Finish, Intake, NewEvent, Owner, RawRequest, Start, Started, Subject,
};
use uuid::Uuid;

const BATCH: usize = 200;

/// Ids that sort by time, as the engine makes them.
struct Ids {
    ms: u64,
    counter: u64,
}

impl Ids {
    fn next(&mut self) -> Uuid {
        self.counter += 1;
        let tail = digest16("id", &[&self.counter.to_be_bytes()]).0;
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&(self.ms + self.counter / 100).to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&tail[..10]);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid::from_bytes(bytes)
    }
}

#[derive(Default)]
struct Cost {
    verb: Duration,
    commit: Duration,
    wall: Duration,
    items: u32,
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

impl Cost {
    fn run<T>(&mut self, database: &Database, items: usize, verb: impl FnOnce(&Database) -> T) -> T {
        let wall = Instant::now();
        let start = cpu();
        database.begin().unwrap();
        let answer = verb(database);
        let ran = cpu();
        database.commit().unwrap();
        self.verb += ran - start;
        self.commit += cpu() - ran;
        self.wall += wall.elapsed();
        self.items += u32::try_from(items).unwrap();
        answer
    }

    fn print(&self, name: &str) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(self.items.max(1));
        println!(
            "{name:<18} {:>8} items  cpu {:>6.1} us ({:>5.1} in the verb)  wall {:>6.1} us",
            self.items,
            micros(self.verb + self.commit),
            micros(self.verb),
            micros(self.wall),
        );
    }
}

fn intake(ids: &mut Ids, n: u64, now: Timestamp) -> Intake {
    let phone = format!("55419{:08}", n * 7919 % 100_000_000);
    let transaction = format!("HP{n:012}");
    let key = format!("loja-hotmart/evt-{n}");
    let body = Bytes::from(format!("{{\"id\":\"evt-{n}\",\"pad\":\"{}\"}}", "x".repeat(700)));
    let identity =
        |kind, value: &str| Identity { kind, value: value.to_owned(), match_key: value.to_owned(), confirmed: false };
    Intake {
        request: Some(RawRequest {
            id: RequestId(ids.next()),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.clone(),
        }),
        events: vec![NewEvent {
            id: EventId(ids.next()),
            tenant: Tenant::default(),
            source: "loja-hotmart".into(),
            kind: EventKind::PixCreated,
            delivery_key: digest16("delivery", &[key.as_bytes()]),
            key,
            business_key: Some(digest16("business", &[transaction.as_bytes()])),
            digest: digest16("body", &[&body]),
            entry: Entry::Received,
            subject: Subject::Person {
                candidate: ContactId(ids.next()),
                identities: vec![
                    identity(IdentityKind::Phone, &phone),
                    identity(IdentityKind::Email, &format!("pessoa{n}@example.com")),
                ],
            },
            occurred_at: now,
            received_at: now,
            urgent: true,
            data: EventData {
                order: Some(OrderRef { platform: "hotmart".into(), account: "loja".into(), transaction }),
                offer: Some("curso".to_owned()),
                vars: [("contact.first_name", "Ana"), ("order.total", "R$ 97,00"), ("offer.name", "Curso")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                flow: Some("vendas".into()),
                channel: Some("zap".into()),
                ..EventData::default()
            },
            receipt: None,
        }],
    }
}

/// A decision of the usual size: one conversation, one transition, three touches.
fn decide(view: &ContactView, now: Timestamp) -> DecisionCommit {
    let event = &view.undecided[0];
    let contact = Contact { version: view.contact.version + 1, cycles: 1, ..view.contact.clone() };
    let id = ConversationId::derive(contact.id, 1);
    let order = event.data.order.clone();
    let transaction = order.as_ref().map(|order| order.transaction.clone()).unwrap_or_default();
    let new_tasks = (1..=3_i64)
        .map(|touch| Task {
            id: TaskId::new(format!("pix:hotmart:loja:{transaction}:t{touch}")),
            tenant: contact.tenant.clone(),
            bucket: contact.bucket,
            contact: contact.id,
            conversation: Some(id),
            flow: "vendas".into(),
            kind: TaskKind::Touch,
            cadence: Some("pix_pendente".to_owned()),
            touch: Some(format!("t{touch}")),
            touch_no: u32::try_from(touch).ok(),
            message: "lembrete_pix".to_owned(),
            text: None,
            class: MessageClass::Reminder,
            channel: "zap".into(),
            reference: Reference { order: order.clone(), amount: Some("R$ 97,00".to_owned()), link: None },
            scheduled_for: now + SignedDuration::from_mins(15 * touch),
            next_attempt_at: now + SignedDuration::from_mins(15 * touch),
            handed: touch == 1,
            max_late: Some(Duration::from_secs(2400)),
            on_ambiguous: None,
            cancel_on: Vec::new(),
            status: TaskStatus::Scheduled,
            reason: None,
            avoided: false,
            attempts: 0,
            cancel_reason: None,
            reconcile_until: None,
            resent: false,
            respelled: false,
            local_time: None,
            created_at: now,
            updated_at: now,
        })
        .collect();
    let conversation = Conversation {
        id,
        ordinal: 1,
        flow: "vendas".into(),
        flow_version: 1,
        offer: Some("curso".to_owned()),
        state: "AGUARDANDO_PIX".to_owned(),
        version: 1,
        closed: false,
        deadline_at: Some(now + SignedDuration::from_mins(15)),
        cadence: None,
        order,
        paid_orders: Vec::new(),
        previous: Default::default(),
        vars: event.data.vars.clone(),
        opened_at: now,
        updated_at: now,
    };
    let transition = Transition {
        contact: contact.id,
        conversation: id,
        from: "NOVO".to_owned(),
        event: "pix_gerado".to_owned(),
        taken_as: None,
        to: "AGUARDANDO_PIX".to_owned(),
        reason: None,
        actions: vec!["pix_pendente".to_owned()],
        rule: None,
        event_id: event.id,
        at: now,
    };
    DecisionCommit {
        tenant: contact.tenant.clone(),
        bucket: BucketNo::of_contact(&contact.tenant, contact.id),
        expected_version: view.contact.version,
        decision: Decision {
            events: vec![EventOutcome {
                event: event.id,
                decided: true,
                result: "NOVO -> AGUARDANDO_PIX".to_owned(),
                reason: None,
            }],
            contact: Some(contact),
            conversations: vec![conversation],
            transitions: vec![transition],
            close: Vec::new(),
            new_tasks,
            ..Decision::default()
        },
        now,
    }
}

fn starts(contacts: &[(Tenant, ContactId)], tasks: &[Task]) -> Vec<Start> {
    assert_eq!(contacts.len(), tasks.len());
    tasks
        .iter()
        .map(|task| Start {
            tenant: task.tenant.clone(),
            task: task.id.clone(),
            bucket: task.bucket,
            contact: task.contact,
            attempts: task.attempts,
            contact_version: 1,
            block_on_chat: true,
            block_on_paid: true,
            said: Some(retoma_core::evidence::text_key(&task.message)),
        })
        .collect()
}

fn finish(task: &Task, now: Timestamp) -> Finish {
    Finish {
        tenant: task.tenant.clone(),
        task: task.id.clone(),
        attempt: 1,
        ended_at: now,
        end: AttemptEnd {
            outcome: Outcome::Accepted,
            http_status: Some(201),
            error: None,
            response: Some("{}".to_owned()),
            provider_message_id: Some(format!("3EB0{}", task.id)),
            retry_after: None,
        },
        next: NextStep::Sent,
        resend: false,
        evidence: None,
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let batches: u64 = arguments.next().map_or(100, |text| text.parse().unwrap());
    let preload: u64 = arguments.next().map_or(0, |text| text.parse().unwrap());
    let directory = match arguments.next() {
        Some(parent) => tempfile::tempdir_in(parent).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let path = directory.path().join("bench.db");
    let database = Database::open(&path, Options::default()).unwrap();
    // The checkpointer's part, between batches and outside the figures.
    let other = rusqlite::Connection::open(&path).unwrap();
    let checkpoint =
        || other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map(|_| ()).unwrap();
    let now = Timestamp::now();
    let mut ids = Ids { ms: u64::try_from(now.as_millisecond()).unwrap(), counter: 0 };
    let mut filled = Cost::default();
    for batch in 0..preload.div_ceil(1000) {
        let intakes: Vec<_> = (0..1000).map(|n| intake(&mut ids, batch * 1000 + n, now)).collect();
        filled.run(&database, 1000, |database| database.append_events(&intakes)).unwrap();
        checkpoint();
    }
    if preload > 0 {
        filled.print("preload");
    }
    let owner = Owner { node: "bench".to_owned(), buckets: Buckets::All };
    let (mut append, mut load, mut commit, mut start, mut end, mut again) = Default::default();
    for batch in 0..batches {
        if batch % 10 == 0 {
            checkpoint();
        }
        let first = preload + batch * BATCH as u64;
        let intakes: Vec<_> = (0..BATCH as u64).map(|n| intake(&mut ids, first + n, now)).collect();
        let appended = Cost::run(&mut append, &database, BATCH, |database| database.append_events(&intakes)).unwrap();
        let contacts: Vec<(Tenant, ContactId)> = appended
            .iter()
            .flatten()
            .filter_map(|appended| match appended {
                Appended::New { contact, .. } => Some((Tenant::default(), contact.unwrap())),
                _ => None,
            })
            .collect();
        let views =
            Cost::run(&mut load, &database, contacts.len(), |database| database.load_contacts(&contacts, now)).unwrap();
        let commits: Vec<_> = views.iter().map(|view| decide(view, now)).collect();
        let tasks: Vec<Task> = commits.iter().map(|commit| commit.decision.new_tasks[0].clone()).collect();
        Cost::run(&mut commit, &database, commits.len(), |database| database.commit_decisions(&owner, &commits))
            .unwrap();
        let wishes = starts(&contacts, &tasks);
        let started =
            Cost::run(&mut start, &database, wishes.len(), |database| database.start_attempts(&owner, &wishes, now))
                .unwrap();
        assert!(started.iter().all(|started| *started == Started::Started { attempt: 1 }));
        let ends: Vec<_> = tasks.iter().map(|task| finish(task, now)).collect();
        Cost::run(&mut end, &database, ends.len(), |database| database.finish_attempts(&ends)).unwrap();
        Cost::run(&mut again, &database, BATCH, |database| database.append_events(&intakes)).unwrap();
    }
    append.print("append_events");
    load.print("load_contacts");
    commit.print("commit_decisions");
    start.print("start_attempts");
    end.print("finish_attempts");
    again.print("duplicates");
}
