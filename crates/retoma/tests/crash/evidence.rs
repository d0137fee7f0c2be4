//! What is left after the kills: the store as it stands on disk, and the fake's delivery log, which no kill could touch. And
//! what must be true of both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{ContactId, Tenant};
use retoma_core::outcome::Outcome;
use retoma_core::state::ContactView;
use retoma_core::task::{MessageClass, OnAmbiguous, TaskStatus};
use retoma_store::{AttemptRow, EventFilter, EventRow, EventStatus, Page, Store, TaskFilter, TaskRow};

use crate::harness::shop;
use crate::load::{Deed, Done};

pub(crate) struct Evidence {
    events: Vec<EventRow>,
    tasks: Vec<Promise>,
    /// Deliveries by person and text, which in this shop name one promise. The person is a phone's match key: WhatsApp
    /// spells Brazilian numbers its own way.
    delivered: BTreeMap<(String, String), usize>,
}

/// A task with its attempts and whom it is for.
struct Promise {
    row: TaskRow,
    attempts: Vec<AttemptRow>,
    person: String,
}

/// Reads both. The server must have ended: its store is its own.
pub(crate) fn read(folder: &Path) -> Evidence {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (events, tasks) = runtime.block_on(async {
        let store =
            retoma_sqlite::SqliteStore::open(folder.join(shop::DATABASE), retoma_sqlite::Options::default()).unwrap();
        (all_events(&store).await, all_promises(&store).await)
    });
    let log = std::fs::read_to_string(folder.join("deliveries.jsonl")).unwrap();
    let mut delivered = BTreeMap::new();
    for line in log.lines() {
        let delivery: retoma_server::fake::Delivery = serde_json::from_str(line).unwrap();
        *delivered.entry((person(&delivery.number), delivery.text)).or_default() += 1;
    }
    Evidence { events, tasks, delivered }
}

/// Who has that number, however it is spelt.
fn person(number: &str) -> String {
    Identity::from_jid(&format!("{number}@s.whatsapp.net")).expect("deliveries go to phones").match_key
}

async fn all_events(store: &impl Store) -> Vec<EventRow> {
    let mut events = Vec::new();
    let mut page = Page { cursor: None, limit: 500 };
    loop {
        let rows = store.list_events(Tenant::default(), EventFilter::default(), page).await.unwrap();
        events.extend(rows.items);
        let Some(cursor) = rows.next_cursor else { return events };
        page = Page { cursor: Some(cursor), limit: 500 };
    }
}

async fn all_promises(store: &impl Store) -> Vec<Promise> {
    let mut promises = Vec::new();
    let mut page = Page { cursor: None, limit: 500 };
    loop {
        let rows = store.list_tasks(Tenant::default(), TaskFilter::default(), page).await.unwrap();
        let contacts = rows.items.iter().map(|row| (row.task.tenant.clone(), row.task.contact)).collect();
        let views = store.load_contacts(contacts, Timestamp::UNIX_EPOCH).await.unwrap();
        let views: BTreeMap<ContactId, &ContactView> = views.iter().map(|view| (view.contact.id, view)).collect();
        for row in rows.items {
            let view = views.get(&row.task.contact).expect("a task has a contact");
            let phone = view.identities.iter().find(|identity| identity.kind == IdentityKind::Phone);
            let person = phone.expect("every buyer has a phone").match_key.clone();
            let (_, attempts) = store.get_task(row.task.tenant.clone(), row.task.id.clone()).await.unwrap().unwrap();
            promises.push(Promise { row, attempts, person });
        }
        let Some(cursor) = rows.next_cursor else { return promises };
        page = Page { cursor: Some(cursor), limit: 500 };
    }
}

/// Everything that is wrong, one line each.
pub(crate) fn violations(evidence: &Evidence, done: &Done) -> Vec<String> {
    let mut wrong = Vec::new();
    acknowledged_events_are_there_once_and_ended(evidence, done, &mut wrong);
    promises_were_made(evidence, done, &mut wrong);
    let ends = ends_by_person(done);
    for promise in &evidence.tasks {
        has_an_end(promise, &mut wrong);
        was_delivered_as_recorded(promise, evidence, &mut wrong);
        left_for_a_reason_that_held(promise, &ends, &mut wrong);
    }
    deliveries_belong_to_promises(evidence, &mut wrong);
    wrong
}

/// Never 1: an acknowledged event is never lost, and never there twice.
fn acknowledged_events_are_there_once_and_ended(evidence: &Evidence, done: &Done, wrong: &mut Vec<String>) {
    let mut rows: BTreeMap<&str, Vec<&EventRow>> = BTreeMap::new();
    for event in &evidence.events {
        // Evolution's key is instance/event/message id, Hotmart's the event id alone.
        rows.entry(event.key.rsplit('/').next().unwrap_or_default()).or_default().push(event);
    }
    for (id, acknowledged) in done {
        if acknowledged.events.len() > 1 {
            wrong.push(format!("{id} was answered with several events: {:?}", acknowledged.events));
        }
        match rows.get(id.as_str()).map(Vec::as_slice) {
            None => wrong.push(format!("{id} was acknowledged at {} and is not in the store", acknowledged.at)),
            Some([event]) if !acknowledged.events.contains(&event.id.to_string()) => {
                wrong.push(format!("{id} is event {}, but was answered with {:?}", event.id, acknowledged.events));
            }
            Some([event]) if matches!(event.status, EventStatus::Decided | EventStatus::Ignored) => {
                // A kill may have swallowed answers to copies that were counted; never the other way round.
                if event.duplicates + 1 < acknowledged.answers {
                    wrong.push(format!(
                        "{id} was answered {} times, but {} copies were counted",
                        acknowledged.answers, event.duplicates
                    ));
                }
            }
            Some([event]) => wrong.push(format!("{id} is {} ({:?})", event.status.as_str(), event.error)),
            Some(many) => wrong.push(format!("{id} is in the store {} times", many.len())),
        }
    }
    for event in evidence.events.iter().filter(|event| event.status == EventStatus::Received) {
        wrong.push(format!("event {} ({}) was never decided", event.id, event.kind));
    }
}

/// What an acknowledged event promises is there: three touches for a PIX, one access for a payment. A PIX that was decided
/// when its payment was stored already promises nothing (FC-37), and says so.
fn promises_were_made(evidence: &Evidence, done: &Done, wrong: &mut Vec<String>) {
    let ids: BTreeSet<&str> = evidence.tasks.iter().map(|promise| promise.row.task.id.as_str()).collect();
    let reasons: BTreeMap<String, Option<&str>> =
        evidence.events.iter().map(|event| (event.id.to_string(), event.reason.as_deref())).collect();
    let payers: BTreeSet<u64> = done.values().filter(|one| one.deed == Deed::Paid).map(|one| one.buyer).collect();
    for acknowledged in done.values() {
        let transaction = shop::transaction(acknowledged.buyer);
        let reason = acknowledged.events.iter().find_map(|event| reasons.get(event).copied().flatten());
        let expected = match (acknowledged.deed, reason) {
            (Deed::Pix, Some("late_fact")) if payers.contains(&acknowledged.buyer) => Vec::new(),
            (Deed::Pix, _) => ["t1", "t2", "t3"].map(|touch| format!("hotmart:pix:{transaction}:{touch}")).to_vec(),
            (Deed::Paid, _) => vec![format!("hotmart:acesso:{transaction}")],
            (Deed::Wrote | Deed::AskedForTheCode | Deed::OptedOut, _) => Vec::new(),
        };
        for id in expected.iter().filter(|id| !ids.contains(id.as_str())) {
            wrong.push(format!("{} ended with {reason:?}, and the task {id} was never promised", acknowledged.id));
        }
    }
}

/// Never 6: every task has an end with a reason, or waits for a person with evidence.
fn has_an_end(promise: &Promise, wrong: &mut Vec<String>) {
    let (task, row) = (&promise.row.task, &promise.row);
    let explained = match task.status {
        TaskStatus::Sent => true,
        TaskStatus::Cancelled => task.reason.is_some(),
        TaskStatus::Dead => row.last_error.is_some(),
        TaskStatus::Held => task.reason.is_some() && (row.detail.is_some() || row.last_error.is_some()),
        TaskStatus::Scheduled | TaskStatus::Failed | TaskStatus::Sending | TaskStatus::Unsure => {
            return wrong.push(format!("task {} is still {}", task.id, task.status));
        }
    };
    if !explained {
        wrong.push(format!("task {} is {} and nothing says why", task.id, task.status));
    }
    if let Some(open) = promise.attempts.iter().find(|attempt| attempt.ended_at.is_none()) {
        wrong.push(format!("attempt {} of task {} never ended", open.n, task.id));
    }
}

/// Never 2: at most once, but for a resend that was declared and is on record; and what the record says is what happened.
fn was_delivered_as_recorded(promise: &Promise, evidence: &Evidence, wrong: &mut Vec<String>) {
    let Promise { row: TaskRow { task, .. }, attempts, .. } = promise;
    let delivered = evidence.delivered_for(promise);
    let allowed = 1 + usize::from(task.resent);
    if delivered > allowed {
        wrong.push(format!("task {} was delivered {delivered} times, {allowed} allowed", task.id));
    }
    if task.resent && task.on_ambiguous != Some(OnAmbiguous::ResendOnce) {
        wrong.push(format!("task {} was sent again, and its policy does not say so", task.id));
    }
    let count = |outcome| attempts.iter().filter(|attempt| attempt.outcome == Some(outcome)).count();
    if delivered < count(Outcome::Accepted) {
        wrong.push(format!("task {} is recorded as accepted, but was delivered {delivered} times", task.id));
    }
    if delivered > count(Outcome::Accepted) + count(Outcome::Ambiguous) {
        wrong.push(format!("task {} was delivered {delivered} times, and no attempt admits it", task.id));
    }
    if task.status == TaskStatus::Sent && count(Outcome::Accepted) + count(Outcome::Ambiguous) == 0 {
        wrong.push(format!("task {} is sent without an attempt", task.id));
    }
}

/// When each person's payment and wish for silence were acknowledged.
fn ends_by_person(done: &Done) -> BTreeMap<(String, Deed), Timestamp> {
    let ends = done.values().filter(|one| matches!(one.deed, Deed::Paid | Deed::OptedOut));
    ends.map(|one| ((person(&shop::phone(one.buyer)), one.deed), one.at)).collect()
}

/// Never 3: no start after what took its reason away was committed. The answer comes after the commit, so a start that is
/// younger than the answer is younger than the commit.
fn left_for_a_reason_that_held(promise: &Promise, ends: &BTreeMap<(String, Deed), Timestamp>, wrong: &mut Vec<String>) {
    let task = &promise.row.task;
    let deeds: &[Deed] = match task.class {
        MessageClass::Reminder => &[Deed::Paid, Deed::OptedOut],
        MessageClass::Reply => &[Deed::OptedOut],
        MessageClass::Receipt | MessageClass::OptOutAck | MessageClass::Internal => &[],
    };
    let ends = deeds.iter().filter_map(|deed| ends.get(&(promise.person.clone(), *deed)).copied());
    for ended in ends {
        // An attempt that was closed before a byte left is how the rule is kept.
        let mut left = promise.attempts.iter().filter(|attempt| attempt.outcome != Some(Outcome::NotSent));
        if let Some(late) = left.find(|attempt| attempt.started_at > ended) {
            wrong.push(format!("task {} started at {}, its reason was gone at {ended}", task.id, late.started_at));
        }
    }
}

fn deliveries_belong_to_promises(evidence: &Evidence, wrong: &mut Vec<String>) {
    let promised: BTreeSet<(&str, &str)> =
        evidence.tasks.iter().map(|promise| (promise.person.as_str(), promise.row.task.message.as_str())).collect();
    for (number, text) in evidence.delivered.keys() {
        if !promised.contains(&(number.as_str(), text.as_str())) {
            wrong.push(format!("{text:?} was delivered to {number}, and no task promised it"));
        }
    }
}

impl Evidence {
    fn delivered_for(&self, promise: &Promise) -> usize {
        let key = (promise.person.clone(), promise.row.task.message.clone());
        self.delivered.get(&key).copied().unwrap_or(0)
    }

    fn count(&self, status: TaskStatus) -> usize {
        self.tasks.iter().filter(|promise| promise.row.task.status == status).count()
    }

    fn attempts(&self, outcome: Outcome) -> usize {
        let attempts = self.tasks.iter().flat_map(|promise| &promise.attempts);
        attempts.filter(|attempt| attempt.outcome == Some(outcome)).count()
    }

    fn killed_during_send(&self) -> usize {
        let attempts = self.tasks.iter().flat_map(|promise| &promise.attempts);
        attempts.filter(|attempt| attempt.error.as_deref().is_some_and(|error| error.contains("process ended"))).count()
    }

    fn resent(&self) -> usize {
        self.tasks.iter().filter(|promise| promise.row.task.resent).count()
    }

    /// One line.
    pub(crate) fn summary(&self, done: &Done) -> String {
        let answers: u64 = done.values().map(|one| one.answers).sum();
        format!(
            "{} events acknowledged by {answers} answers, {} in the store; {} tasks: {} sent, {} cancelled, {} held, {} dead; \
             {} deliveries; {} attempts ambiguous ({} killed during send), {} sent again by policy",
            done.len(),
            self.events.len(),
            self.tasks.len(),
            self.count(TaskStatus::Sent),
            self.count(TaskStatus::Cancelled),
            self.count(TaskStatus::Held),
            self.count(TaskStatus::Dead),
            self.delivered.values().sum::<usize>(),
            self.attempts(Outcome::Ambiguous),
            self.killed_during_send(),
            self.resent(),
        )
    }

    /// Whether the run had in it what it is about.
    pub(crate) fn proves_something(&self) -> bool {
        self.killed_during_send() > 0
            && self.attempts(Outcome::Ambiguous) > self.killed_during_send()
            && self.attempts(Outcome::Transient) > 0
            && self.count(TaskStatus::Sent) > 50
    }
}
