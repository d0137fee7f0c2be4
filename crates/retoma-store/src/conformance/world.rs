//! Invented people, orders and messages, and the few steps that many cases begin with.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use retoma_core::decision::{Decision, EventOutcome};
use retoma_core::event::{Event, EventData, EventKind, OrderRef};
use retoma_core::evidence::text_key;
use retoma_core::identity::{Identity, IdentityKind};
use retoma_core::ids::{BucketNo, ContactId, ConversationId, EventId, RequestId, TaskId, Tenant};
use retoma_core::keys::{body_digest, digest16};
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::state::{Contact, ContactView, Conversation, Previous};
use retoma_core::task::{MessageClass, Reference, Task, TaskKind, TaskStatus};

use crate::*;

/// Noon of an ordinary day, and so many seconds.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

pub(super) fn minutes(count: i64) -> i64 {
    count * 60
}

pub(super) fn days(count: i64) -> i64 {
    count * 86_400
}

pub(super) fn tenant() -> Tenant {
    Tenant::default()
}

/// Ids sort by their number.
pub(super) fn event_id(n: u64) -> EventId {
    format!("00000000-0000-7000-8000-{n:012}").parse().unwrap()
}

pub(super) fn contact_id(n: u64) -> ContactId {
    format!("00000000-0000-7000-9000-{n:012}").parse().unwrap()
}

pub(super) fn request_id(n: u64) -> RequestId {
    format!("00000000-0000-7000-a000-{n:012}").parse().unwrap()
}

/// The process that owns everything, or as much as the store gives it.
pub(super) async fn owner<S: Store>(store: &S) -> Owner {
    let request = LeaseRequest {
        node: "node-a".to_owned(),
        lease: Duration::from_secs(3600),
        max_buckets: 1024,
        explicit: false,
    };
    store.acquire_leases(request).await.unwrap().owner
}

pub(super) fn order(transaction: &str) -> OrderRef {
    OrderRef { platform: "hotmart".to_owned(), account: "loja".to_owned(), transaction: transaction.to_owned() }
}

fn identity(kind: IdentityKind, value: &str) -> Identity {
    Identity { kind, value: value.to_owned(), match_key: value.to_owned(), confirmed: false }
}

/// A phone; mobiles of both spellings share one match key.
pub(super) fn phone(digits: &str) -> Identity {
    let match_key = match digits.strip_prefix("55") {
        Some(rest) if rest.len() == 11 => format!("55{}{}", &rest[..2], &rest[3..]),
        _ => digits.to_owned(),
    };
    Identity { match_key, ..identity(IdentityKind::Phone, digits) }
}

pub(super) fn email(address: &str) -> Identity {
    identity(IdentityKind::Email, address)
}

pub(super) fn order_identity(transaction: &str) -> Identity {
    identity(IdentityKind::Order, &format!("hotmart/loja/{transaction}"))
}

pub(super) fn person(n: u64, identities: Vec<Identity>) -> Subject {
    Subject::Person { candidate: contact_id(n), identities }
}

/// The n-th message of a chat, from this phone.
pub(super) fn message(n: u64, digits: &str) -> NewEvent {
    let key = format!("loja-a/{n}");
    NewEvent {
        id: event_id(n),
        tenant: tenant(),
        source: "zap".into(),
        kind: EventKind::MessageReceived,
        delivery_key: digest16("delivery", &[b"zap", key.as_bytes()]),
        key,
        business_key: None,
        digest: body_digest(&n.to_be_bytes()),
        entry: Entry::Received,
        subject: person(n, vec![phone(digits)]),
        occurred_at: at(i64::try_from(n).unwrap()),
        received_at: at(i64::try_from(n).unwrap()),
        urgent: false,
        data: EventData {
            text: Some("quanto custa?".to_owned()),
            channel: Some("zap".into()),
            flow: Some("vendas".into()),
            ..EventData::default()
        },
        receipt: None,
    }
}

/// The n-th platform event, about this order of the offer `curso`.
pub(super) fn payment(n: u64, kind: EventKind, transaction: &str, identities: Vec<Identity>) -> NewEvent {
    let business = digest16("business", &[b"hotmart", b"loja", transaction.as_bytes(), kind.as_str().as_bytes()]);
    NewEvent {
        kind,
        source: "loja-hotmart".into(),
        business_key: Some(business),
        subject: person(n, identities),
        urgent: true,
        data: EventData {
            order: Some(order(transaction)),
            offer: Some("curso".to_owned()),
            flow: Some("vendas".into()),
            ..EventData::default()
        },
        ..message(n, "")
    }
}

/// A request with these bytes and parts.
pub(super) fn request(n: u64, body: &[u8], events: Vec<NewEvent>) -> Intake {
    let request = RawRequest {
        id: request_id(n),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::copy_from_slice(body),
    };
    Intake { request: Some(request), events }
}

/// An intake without bytes.
pub(super) fn bare(event: NewEvent) -> Intake {
    Intake { request: None, events: vec![event] }
}

/// Appends one event and answers what became of it.
pub(super) async fn append<S: Store>(store: &S, event: NewEvent) -> Appended {
    store.append_events(vec![bare(event)]).await.unwrap().remove(0).remove(0)
}

/// Appends one new event and answers its contact.
pub(super) async fn append_new<S: Store>(store: &S, event: NewEvent) -> ContactId {
    match append(store, event).await {
        Appended::New { contact: Some(contact), .. } => contact,
        other => panic!("a new event of a person: {other:?}"),
    }
}

/// Everything that waits to be decided.
pub(super) async fn pending<S: Store>(store: &S) -> Vec<Event> {
    let query = PendingQuery { owner: owner(store).await, after: None, rescan_from: None, limit: 1000 };
    store.load_pending(query).await.unwrap()
}

pub(super) async fn pending_ids<S: Store>(store: &S) -> Vec<EventId> {
    pending(store).await.into_iter().map(|event| event.id).collect()
}

pub(super) async fn view<S: Store>(store: &S, contact: ContactId, now: Timestamp) -> ContactView {
    let mut views = store.load_contacts(vec![(tenant(), contact)], now).await.unwrap();
    assert_eq!(views.len(), 1, "the contact is known");
    views.remove(0)
}

/// A decision over everything undecided of a view that moves nothing but the version.
pub(super) fn decide(view: &ContactView) -> Decision {
    Decision {
        events: view.undecided.iter().map(|event| outcome(event.id)).collect(),
        contact: Some(Contact { version: view.contact.version + 1, ..view.contact.clone() }),
        ..Decision::default()
    }
}

pub(super) fn outcome(event: EventId) -> EventOutcome {
    EventOutcome { event, decided: true, result: "NOVO -> ENGAJADO".to_owned(), reason: None }
}

pub(super) fn commit_of(view: &ContactView, decision: Decision, now: Timestamp) -> DecisionCommit {
    DecisionCommit {
        tenant: view.contact.tenant.clone(),
        bucket: view.contact.bucket,
        expected_version: view.contact.version,
        decision,
        now,
    }
}

/// Commits one decision, which must stand.
pub(super) async fn commit<S: Store>(store: &S, view: &ContactView, decision: Decision, now: Timestamp) {
    let owner = owner(store).await;
    let answers = store.commit_decisions(owner, vec![commit_of(view, decision, now)]).await.unwrap();
    assert_eq!(answers, [Committed::Done { already_claimed: Vec::new() }]);
}

/// A contact, decided once, with these tasks.
pub(super) async fn contact_with<S: Store>(store: &S, n: u64, tasks: Vec<Task>) -> ContactId {
    let contact = append_new(store, message(n, &format!("554199999{n:04}"))).await;
    let view = view(store, contact, at(0)).await;
    let new_tasks = tasks.into_iter().map(|task| of(contact, task)).collect();
    commit(store, &view, Decision { new_tasks, ..decide(&view) }, at(0)).await;
    contact
}

/// Gives a contact an open cycle of an offer.
pub(super) async fn open_cycle<S: Store>(store: &S, contact: ContactId, offer: &str, about: Option<OrderRef>) {
    let view = view(store, contact, at(0)).await;
    let conversation = Conversation {
        offer: Some(offer.to_owned()),
        order: about,
        ..conversation(contact, view.contact.cycles + 1, "AGUARDANDO_PIX")
    };
    let mut decision = Decision { conversations: vec![conversation], ..decide(&view) };
    decision.contact.iter_mut().for_each(|contact| contact.cycles += 1);
    commit(store, &view, decision, at(0)).await;
}

pub(super) fn conversation(contact: ContactId, ordinal: u32, state: &str) -> Conversation {
    Conversation {
        id: ConversationId::derive(contact, ordinal),
        ordinal,
        flow: "vendas".into(),
        flow_version: 1,
        offer: None,
        state: state.to_owned(),
        version: 1,
        closed: false,
        deadline_at: None,
        cadence: None,
        order: None,
        paid_orders: Vec::new(),
        previous: Previous::default(),
        vars: [("offer.name".to_owned(), "Curso".to_owned())].into(),
        opened_at: at(0),
        updated_at: at(0),
    }
}

/// A reminder of nobody yet (see [`of`]), due at that second.
pub(super) fn reminder(id: &str, due: i64) -> Task {
    Task {
        id: TaskId::new(id),
        tenant: tenant(),
        bucket: BucketNo(0),
        contact: contact_id(0),
        conversation: None,
        flow: "vendas".into(),
        kind: TaskKind::Touch,
        cadence: Some("pix_pendente".to_owned()),
        touch: Some("t15".to_owned()),
        touch_no: Some(1),
        message: "lembrete_pix".to_owned(),
        text: None,
        class: MessageClass::Reminder,
        channel: "zap".into(),
        reference: Reference { order: Some(order("HP1")), amount: Some("R$ 97,00".to_owned()), link: None },
        scheduled_for: at(due),
        next_attempt_at: at(due),
        handed: true,
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
        created_at: at(0),
        updated_at: at(0),
    }
}

/// The same task for that contact.
pub(super) fn of(contact: ContactId, task: Task) -> Task {
    Task { contact, bucket: BucketNo::of_contact(&task.tenant, contact), ..task }
}

/// The wish to start a task of a contact, as the check would ask after looking at it now.
pub(super) async fn start_of<S: Store>(store: &S, id: &str, contact: ContactId, now: Timestamp) -> Start {
    let view = view(store, contact, now).await;
    let task = task(store, id).await.task;
    Start {
        tenant: tenant(),
        task: task.id,
        bucket: view.contact.bucket,
        contact,
        attempts: task.attempts,
        contact_version: view.contact.version,
        block_on_chat: true,
        block_on_paid: true,
        said: Some(text_key("Oi")),
    }
}

/// Asks for one start.
pub(super) async fn try_start<S: Store>(store: &S, start: Start, now: Timestamp) -> Started {
    let owner = owner(store).await;
    store.start_attempts(owner, vec![start], now).await.unwrap().remove(0)
}

/// Starts a task, which must start; answers the attempt.
pub(super) async fn start<S: Store>(store: &S, id: &str, contact: ContactId, now: Timestamp) -> u32 {
    let wish = start_of(store, id, contact, now).await;
    match try_start(store, wish, now).await {
        Started::Started { attempt } => attempt,
        other => panic!("{id} starts: {other:?}"),
    }
}

/// An end of that class.
pub(super) fn end(outcome: Outcome) -> AttemptEnd {
    AttemptEnd {
        outcome,
        http_status: Some(if outcome == Outcome::Accepted { 201 } else { 502 }),
        error: (outcome != Outcome::Accepted).then(|| format!("it was {outcome}")),
        response: Some("{}".to_owned()),
        provider_message_id: (outcome == Outcome::Accepted).then(|| "3EB0AAAA0001".to_owned()),
        retry_after: None,
    }
}

pub(super) fn finish_of(id: &str, attempt: u32, end: AttemptEnd, next: NextStep, now: Timestamp) -> Finish {
    Finish { tenant: tenant(), task: TaskId::new(id), attempt, ended_at: now, end, next, resend: false, evidence: None }
}

/// Records one end; answers whether it was taken.
pub(super) async fn finish<S: Store>(store: &S, finish: Finish) -> bool {
    store.finish_attempts(vec![finish]).await.unwrap().remove(0)
}

/// A task as stored.
pub(super) async fn task<S: Store>(store: &S, id: &str) -> TaskRow {
    task_and_attempts(store, id).await.0
}

pub(super) async fn task_and_attempts<S: Store>(store: &S, id: &str) -> (TaskRow, Vec<AttemptRow>) {
    store.get_task(tenant(), TaskId::new(id)).await.unwrap().expect("the task is stored")
}

pub(super) async fn status<S: Store>(store: &S, id: &str) -> TaskStatus {
    task(store, id).await.task.status
}

/// What is due, on whatever channel.
pub(super) async fn due<S: Store>(store: &S, now: Timestamp, limit: usize) -> Vec<Task> {
    store.load_due(DueQuery { now, limit, skip: Vec::new() }).await.unwrap().tasks
}

pub(super) async fn due_ids<S: Store>(store: &S, now: Timestamp) -> Vec<String> {
    due(store, now, 1000).await.into_iter().map(|task| task.id.as_str().to_owned()).collect()
}

pub(super) async fn event<S: Store>(store: &S, n: u64) -> EventRow {
    store.get_event(tenant(), event_id(n)).await.unwrap().expect("the event is stored")
}

pub(super) fn first_page() -> Page {
    Page { cursor: None, limit: 100 }
}

pub(super) async fn audit_actions<S: Store>(store: &S) -> Vec<String> {
    let page = store.list_audit(tenant(), first_page()).await.unwrap();
    page.items.into_iter().map(|row| row.action).collect()
}

pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Polls all at once, on whatever runtime the caller has.
pub(super) async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(answer) = future.as_mut().poll(context) {
                *output = Some(answer);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().map(|output| output.expect("all are ready")).collect()
}
