//! The deliverer: takes due tasks, checks each again, commits the start, sends.
//!
//! One task, plus one per request under way. A round is: load what is due, compose, check, settle what does not leave,
//! commit the starts of what does, and only then write the first byte (DESIGN.md, "The point of no return"). One request per
//! contact is under way at a time, so that caps and gaps see what was just started. Results go to the completer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::compose::{Composed, compose};
use retoma_core::identity::Identity;
use retoma_core::ids::{ChannelName, ContactId};
use retoma_core::outcome::{AttemptEnd, Outcome};
use retoma_core::send_check::{CheckInput, Reason, Verdict, check};
use retoma_core::state::ContactView;
use retoma_core::task::{MessageClass, Task, TaskStatus};
use retoma_providers::outbound::{Channel, ChannelKind, Outbound, Outgoing, WireEnd, WireRequest};
use retoma_store::{Error, Owner, Settle, SettleTo, Start, Started, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::heartbeat;
use crate::owner;
use crate::shared::Shared;
use crate::transport::{START_TOO_OLD, Transport};

pub(crate) mod flights;
pub(crate) mod guard;
pub(crate) mod stopped;

use flights::Flights;
use stopped::StoppedChannels;

/// Due tasks in one look, beyond those whose lane is busy.
const LOAD_MAX: usize = 512;
/// The longest the deliverer sleeps.
const POLL: Duration = Duration::from_secs(1);
/// The shortest sleep while something due cannot start.
const NAP: Duration = Duration::from_millis(10);
/// Pause after a passing storage error.
const BACK_OFF: Duration = Duration::from_millis(200);
/// The first byte leaves within this time of issuing the start's commit, or not at all.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(2);
/// How long requests under way may go on when the process ends; what is left is ambiguous at the next start.
const DRAIN_FOR: Duration = Duration::from_secs(10);

/// A request that came to its end.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) task: Task,
    pub(crate) attempt: u32,
    pub(crate) end: AttemptEnd,
}

struct Deliverer<S, T> {
    store: S,
    transport: Arc<T>,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
    stopped: StoppedChannels,
    guards: guard::Guards,
    owner: Owner,
    landed: mpsc::Sender<Landed>,
    sends: JoinSet<()>,
}

/// A task that passed the check, with its request made.
struct Ready {
    task: Task,
    channel: Arc<Channel>,
    request: WireRequest,
    contact_version: u64,
}

/// What one look at a due task leads to.
enum Look {
    Start(Box<Ready>),
    Settle(Settle),
}

/// Runs until the engine stops and what is under way has landed.
pub(crate) async fn run<S: Store, T: Transport>(
    store: S,
    transport: Arc<T>,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
    landed: mpsc::Sender<Landed>,
) -> Exit {
    let owner = match owner::acquire(&store, &shared.node).await {
        Ok(owner) => owner,
        Err(error) => return Exit::Fatal(error.to_string()),
    };
    let (stopped, sends) = (StoppedChannels::default(), JoinSet::new());
    let guards = guard::Guards::default();
    let mut deliverer = Deliverer { store, transport, shared, flights, stopped, guards, owner, landed, sends };
    let mut stopping = deliverer.shared.signals.stopping();
    loop {
        if *stopping.borrow_and_update() {
            deliverer.drain().await;
            return Exit::Stopped;
        }
        let sleep = match deliverer.round().await {
            Ok(sleep) => sleep,
            Err(error) if error.is_fatal() => return Exit::Fatal(error.to_string()),
            Err(error) => {
                tracing::warn!(event = "deliverer_round_failed", error = %error, "the deliverer tries again");
                BACK_OFF
            }
        };
        heartbeat::beat(&deliverer.store, &deliverer.shared, heartbeat::DELIVERER).await;
        tokio::select! {
            // A decision added tasks, or a lane is free.
            () = deliverer.shared.signals.due.notified() => {}
            // Something falls due, or it is time to look anyway.
            () = tokio::time::sleep(sleep) => {}
            // The process ends.
            _ = stopping.changed() => {}
        }
    }
}

impl<S: Store, T: Transport> Deliverer<S, T> {
    /// One round. Answers how long to sleep.
    async fn round(&mut self) -> Result<Duration, Error> {
        while self.sends.try_join_next().is_some() {}
        let now = self.shared.clock.now();
        let due = self.store.load_due(now, LOAD_MAX + self.flights.len()).await?;
        let (unsure, waiting): (Vec<Task>, Vec<Task>) =
            due.into_iter().partition(|task| task.status == TaskStatus::Unsure);
        let settled = crate::unsure::settle(&self.store, &self.shared, unsure, now).await?;
        let chosen = self.choose(waiting);
        if chosen.is_empty() {
            return self.sleep_for(now, settled).await;
        }
        let looks = self.look_at(chosen, now).await?;
        let (mut settles, mut starts) = (Vec::new(), Vec::new());
        for look in looks {
            match look {
                Look::Start(ready) => starts.push(*ready),
                Look::Settle(settle) => settles.push(settle),
            }
        }
        if !settles.is_empty() {
            self.store.settle_tasks(settles, now).await?;
        }
        let started = self.start(starts, now).await?;
        // Tasks that could not start now become possible when something lands or is decided; both wake us.
        Ok(if started { Duration::ZERO } else { NAP })
    }

    async fn sleep_for(&self, now: Timestamp, settled: bool) -> Result<Duration, Error> {
        if settled {
            return Ok(Duration::ZERO);
        }
        let next = self.store.next_wake().await?.task_at.filter(|at| *at > now);
        Ok(next.map_or(POLL, |at| self.shared.clock.real_until(at).clamp(NAP / 10, POLL)))
    }

    /// At most one task per contact, none whose contact or channel is busy, earliest promise first.
    fn choose(&self, mut waiting: Vec<Task>) -> Vec<Task> {
        waiting.sort_by_key(|task| task.scheduled_for);
        let mut seats: HashMap<ChannelName, usize> = HashMap::new();
        let mut chosen: BTreeMap<ContactId, Task> = BTreeMap::new();
        for task in waiting {
            if chosen.contains_key(&task.contact) || self.flights.is_busy(task.contact) {
                continue;
            }
            let room = self.shared.setup.channels.get(&task.channel).map_or(usize::MAX, |channel| channel.concurrency);
            let taken = seats.entry(task.channel.clone()).or_insert_with(|| self.flights.on_channel(&task.channel));
            if *taken < room {
                *taken += 1;
                chosen.insert(task.contact, task);
            }
        }
        chosen.into_values().collect()
    }

    /// Composes and checks each task against everything known of its contact, undecided events included.
    async fn look_at(&mut self, tasks: Vec<Task>, now: Timestamp) -> Result<Vec<Look>, Error> {
        self.stopped.refresh(&self.store, &self.shared).await?;
        let wanted = tasks.iter().map(|task| (task.tenant.clone(), task.contact)).collect();
        let views = self.store.load_contacts(wanted, now).await?;
        let views: HashMap<ContactId, ContactView> = views.into_iter().map(|view| (view.contact.id, view)).collect();
        let mut looks = Vec::with_capacity(tasks.len());
        for task in tasks {
            // A contact that vanished was erased, and its tasks with it.
            let Some(view) = views.get(&task.contact) else { continue };
            looks.push(self.look_at_one(task, view, now));
        }
        Ok(looks)
    }

    fn look_at_one(&mut self, task: Task, view: &ContactView, now: Timestamp) -> Look {
        let settle = |task: Task, to: SettleTo| {
            Look::Settle(Settle { tenant: task.tenant, task: task.id, attempts: task.attempts, to })
        };
        let Some(flow) = self.shared.flow(Some(&task.flow)) else {
            let missing = format!("the flow {} is not configured", task.flow);
            return settle(task, SettleTo::Held(Reason::MissingVariable, missing));
        };
        let channel = self.shared.setup.channels.get(&task.channel).cloned();
        let Composed { vars, text, perished } = compose(flow, view, &task, now);
        let request = channel.as_deref().zip(text.as_ref().ok()).map(|(channel, text)| {
            channel.request(&Outgoing {
                task: &task.id,
                attempt: task.attempts + 1,
                identities: addressees(&task, channel, view),
                text,
                message: &task.message,
                vars: &vars,
                unix_seconds: now.as_second(),
            })
        });
        let no_address = request.as_ref().and_then(|made| made.as_ref().err()).map(ToString::to_string);
        let mut input = CheckInput {
            guard: None,
            task: &task,
            view,
            flow,
            channel_stopped: channel.is_none() || self.stopped.holds_back(&task.channel, now),
            missing: text.err().or(no_address),
            perished,
        };
        let mut verdict = check(&input, now);
        // Only a task that passed all that is known for nothing is worth a question (D4).
        if matches!(verdict, Verdict::Defer(Reason::GuardUnknown, _)) {
            input.guard = self.guards.ask(&self.shared, &self.transport, (flow, view, &task), now);
            verdict = check(&input, now);
        }
        match (verdict, channel, request) {
            (Verdict::Send, Some(channel), Some(Ok(request))) => {
                let contact_version = view.contact.version;
                Look::Start(Box::new(Ready { task, channel, request, contact_version }))
            }
            (Verdict::Avoid(reason), ..) => settle(task, SettleTo::Avoided(reason)),
            (Verdict::Defer(reason, until), ..) => settle(task, SettleTo::Deferred(reason, until)),
            (Verdict::Hold(reason, missing), ..) => settle(task, SettleTo::Held(reason, missing)),
            // Without a channel or a request the check never says Send.
            (Verdict::Send, ..) => settle(task, SettleTo::Held(Reason::ChannelStopped, "no channel".to_owned())),
        }
    }

    /// Commits start rows, then sends. Nothing leaves before its row is on disk.
    async fn start(&mut self, ready: Vec<Ready>, now: Timestamp) -> Result<bool, Error> {
        if ready.is_empty() {
            return Ok(false);
        }
        let starts = ready.iter().map(start_of).collect();
        let start_by = self.shared.clock.monotonic() + FIRST_BYTE_WITHIN;
        let answers = self.store.start_attempts(self.owner.clone(), starts, now).await?;
        let mut any = false;
        for (ready, answer) in ready.into_iter().zip(answers) {
            match answer {
                Started::Started { attempt } => {
                    any = true;
                    self.fly(ready, attempt, start_by);
                }
                // The owner decides what came in, and wakes us.
                Started::LookAgain => self.shared.signals.inbox.notify_one(),
                Started::Moved | Started::NotOwner => {}
            }
        }
        Ok(any)
    }

    fn fly(&mut self, ready: Ready, attempt: u32, start_by: Duration) {
        let Ready { task, channel, request, .. } = ready;
        self.flights.take_off(task.contact, &task.channel);
        let (transport, landed) = (Arc::clone(&self.transport), self.landed.clone());
        self.sends.spawn(async move {
            let end = transport.send(request, channel.deadline, start_by).await;
            let end = match &end {
                WireEnd::NotWritten { what } if what == START_TOO_OLD => not_sent(what),
                end => channel.judge(end),
            };
            // The completer outlives every send; if it is gone, the process is ending and the start row tells.
            let _ = landed.send(Landed { task, attempt, end }).await;
        });
    }

    async fn drain(&mut self) {
        let all = async { while self.sends.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_FOR, all).await.is_err() {
            tracing::warn!(
                event = "sends_left_open",
                count = self.sends.len(),
                "they are reconciled at the next start"
            );
        }
    }
}

/// Whom a channel may write to. A call and a word to the seller's own people never go to the contact: only a channel that
/// needs no address takes them.
fn addressees<'v>(task: &Task, channel: &Channel, view: &'v ContactView) -> &'v [Identity] {
    let needs_address = !matches!(channel.kind, ChannelKind::Http { .. });
    if task.class == MessageClass::Internal && needs_address { &[] } else { &view.identities }
}

/// What the start transaction must still find true.
fn start_of(ready: &Ready) -> Start {
    let task = &ready.task;
    let is_reminder = task.class == MessageClass::Reminder;
    Start {
        tenant: task.tenant.clone(),
        task: task.id.clone(),
        bucket: task.bucket,
        contact: task.contact,
        attempts: task.attempts,
        contact_version: ready.contact_version,
        block_on_chat: is_reminder,
        block_on_paid: is_reminder,
    }
}

fn not_sent(what: &str) -> AttemptEnd {
    AttemptEnd {
        outcome: Outcome::NotSent,
        http_status: None,
        error: Some(what.to_owned()),
        response: None,
        provider_message_id: None,
        retry_after: None,
    }
}
