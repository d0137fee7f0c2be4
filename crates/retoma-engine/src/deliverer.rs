//! The deliverer: takes due tasks, checks each again, commits the start, sends.
//!
//! One task, plus one per request under way. A round is: load what is due, compose, check, settle what does not leave,
//! commit the starts of what does, and only then write the first byte (DESIGN.md, "The point of no return"). One request per
//! channel and contact is under way at a time. Each channel has its own seats, rate and breaker, and its due tasks are loaded apart,
//! so that one that is slow, dead or full costs the others nothing (E5). Results go to the completer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::compose::{Composed, compose};
use retoma_core::evidence::text_key;
use retoma_core::identity::Identity;
use retoma_core::ids::{ChannelName, ContactId};
use retoma_core::keys::Key16;
use retoma_core::outcome::{AttemptEnd, Outcome};
use retoma_core::send_check::{CheckInput, Reason, Verdict, check};
use retoma_core::state::ContactView;
use retoma_core::task::{MessageClass, Task};
use retoma_providers::outbound::{Channel, ChannelKind, Outbound, Outgoing, WireEnd, WireRequest};
use retoma_store::{Error, Owner, Settle, SettleTo, Start, Started, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::heartbeat;
use crate::owner;
use crate::shared::Shared;
use crate::transport::{START_TOO_OLD, Transport};

pub(crate) mod arrivals;
pub(crate) mod flights;
pub(crate) mod guard;
pub(crate) mod renewals;
pub(crate) mod rooms;
pub(crate) mod stopped;
pub(crate) mod traffic;

use arrivals::ArrivalLooks;
use flights::Flights;
use renewals::Renewals;
use rooms::{LOOK_EVERY, Looks, Rooms, Seats};
use stopped::StoppedChannels;

/// The widest look at what is due, in usual ones.
const WIDE_MAX: usize = 256;
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
    /// Whether the number that was written to has another spelling.
    pub(crate) other_spelling: bool,
}

struct Deliverer<S, T> {
    store: S,
    transport: Arc<T>,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
    stopped: StoppedChannels,
    guards: guard::Guards,
    renewals: Renewals,
    looks: Looks,
    arrivals: ArrivalLooks,
    /// How many times more than usual is loaded in one look.
    wide: usize,
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
    said: Option<Key16>,
    other_spelling: bool,
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
    let (stopped, looks, sends) = (StoppedChannels::default(), Looks::default(), JoinSet::new());
    let (guards, renewals, arrivals) = (guard::Guards::default(), Renewals::default(), ArrivalLooks::default());
    let mut deliverer = Deliverer {
        store,
        transport,
        shared,
        flights,
        stopped,
        guards,
        renewals,
        looks,
        arrivals,
        wide: 1,
        owner,
        landed,
        sends,
    };
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
        self.stopped.refresh(&self.store, &self.shared).await?;
        self.arrivals.refresh(&self.store, &self.shared, now).await?;
        let rooms = self.rooms(now);
        let query = rooms.query(now, self.wide);
        let limit = query.limit;
        let due = self.store.load_due(query).await?;
        let loaded = due.tasks.len();
        let (chosen, again_at) = self.choose(due.tasks, &rooms);
        if chosen.is_empty() && loaded >= limit && self.wide < WIDE_MAX {
            // Much is due and none of it can leave: one contact's pile may stand in front of everybody else.
            self.wide *= 4;
            return Ok(Duration::ZERO);
        }
        if !chosen.is_empty() {
            self.wide = 1;
        }
        if chosen.is_empty() {
            return Ok(self.sleep_for(now, due.next_at, again_at));
        }
        for task in chosen.iter().filter(|task| rooms.is_resting(&task.channel)) {
            self.looks.take(&task.channel, 1);
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

    /// Until the next task falls due, or a channel has room again.
    fn sleep_for(&self, now: Timestamp, next: Option<Timestamp>, again_at: Option<Duration>) -> Duration {
        let due = next.filter(|at| *at > now).map(|at| self.shared.clock.real_until(at));
        let room = again_at.map(|at| at.saturating_sub(self.shared.clock.monotonic()));
        due.into_iter().chain(room).min().map_or(POLL, |sleep| sleep.clamp(NAP / 10, POLL))
    }

    /// What each configured channel has room for. A stopped one is looked at, too: its tasks get their reason, and what is
    /// too late by now is told; but so slowly that a backlog behind it costs nobody else anything.
    fn rooms(&mut self, now: Timestamp) -> Rooms {
        let mono = self.shared.clock.monotonic();
        let mut rooms = Rooms::default();
        for (name, channel) in &self.shared.setup.channels {
            let seats = channel.concurrency.saturating_sub(self.flights.on_channel(name));
            let room = self.shared.traffic.room(name, seats, mono);
            let resting = room.breaker_rests || self.stopped.is_stopped(name, now);
            let seats = if resting { self.looks.room(name, mono) } else { room.count };
            let again_at = if resting && seats == 0 { Some(mono + LOOK_EVERY) } else { room.again_at };
            rooms.add(name.clone(), Seats { count: seats, resting, concurrency: channel.concurrency }, again_at);
        }
        rooms
    }

    /// At most one task per contact, none whose lane or channel is busy; answers to people before reminders, then the
    /// earliest promise first.
    fn choose(&self, mut waiting: Vec<Task>, rooms: &Rooms) -> (Vec<Task>, Option<Duration>) {
        let is_reminder = |task: &Task| task.class == MessageClass::Reminder;
        waiting.sort_by_key(|task| (is_reminder(task), task.scheduled_for));
        let mono = self.shared.clock.monotonic();
        let mut again_at = rooms.again_at;
        let mut taken: HashMap<ChannelName, usize> = HashMap::new();
        let mut seen: HashSet<ContactId> = HashSet::new();
        let mut chosen = Vec::new();
        for task in waiting {
            if seen.contains(&task.contact) || self.flights.is_busy(&task.channel, task.contact) {
                continue;
            }
            let taken = taken.entry(task.channel.clone()).or_default();
            if *taken >= rooms.seats_for(&task, self.flights.on_channel(&task.channel)) {
                continue;
            }
            if let Some(at) = self.shared.traffic.pair_waits(&task.channel, &task.contact, mono) {
                again_at = again_at.into_iter().chain([at]).min();
                continue;
            }
            *taken += 1;
            seen.insert(task.contact);
            chosen.push(task);
        }
        (chosen, again_at)
    }

    /// Composes and checks each task against everything known of its contact, undecided events included.
    async fn look_at(&mut self, tasks: Vec<Task>, now: Timestamp) -> Result<Vec<Look>, Error> {
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

    /// Whether the channel rests: by its row, or because nothing gets through.
    fn holds_back(&mut self, channel: &ChannelName, now: Timestamp) -> bool {
        let mono = self.shared.clock.monotonic();
        self.shared.traffic.room(channel, 1, mono).breaker_rests || self.stopped.holds_back(channel, now)
    }

    fn look_at_one(&mut self, task: Task, view: &ContactView, now: Timestamp) -> Look {
        let settle = |task: Task, to: SettleTo| {
            Look::Settle(Settle { tenant: task.tenant, task: task.id, attempts: task.attempts, to })
        };
        let channel = self.shared.setup.channels.get(&task.channel).cloned();
        let channel_stopped = channel.is_none() || self.holds_back(&task.channel, now);
        let Some(flow) = self.shared.flow(Some(&task.flow)) else {
            let missing = format!("the flow {} is not configured", task.flow);
            return settle(task, SettleTo::Held(Reason::MissingVariable, missing));
        };
        let view = &*flow.settle(view);
        let Composed { vars, text, perished, renew } = compose(&flow, view, &task, now);
        let request = channel.as_deref().zip(text.as_ref().ok()).map(|(channel, text)| {
            channel.request(&Outgoing {
                task: &task.id,
                attempt: task.attempts + 1,
                identities: addressees(&task, channel, view),
                other_spelling: task.respelled,
                text,
                message: &task.message,
                vars: &vars,
                unix_seconds: now.as_second(),
            })
        });
        let said = text.as_deref().ok().map(text_key);
        let no_address = request.as_ref().and_then(|made| made.as_ref().err()).map(ToString::to_string);
        let mut input = CheckInput {
            guard: None,
            task: &task,
            view,
            flow: &flow,
            channel_stopped,
            receipts_told: self.shared.arrivals_of(&task.channel).told,
            missing: text.err().or(no_address),
            perished,
        };
        let mut verdict = check(&input, now);
        // Only a task that passed all that is known for nothing is worth a question (D4).
        if matches!(verdict, Verdict::Defer(Reason::GuardUnknown, _)) {
            input.guard = self.guards.ask(&self.shared, &self.transport, (&flow, view, &task), now);
            verdict = check(&input, now);
        }
        // What would carry a dead value waits for a new one, once nothing else stands in its way (D10).
        if let (Verdict::Send | Verdict::Avoid(Reason::Perished), Some(renew)) = (&verdict, &renew) {
            let until = self.renewals.ask(&self.shared, (&self.store, &self.transport), (view, &task, renew), now);
            if let Some(until) = until {
                return settle(task, SettleTo::Deferred(Reason::Perished, until));
            }
        }
        match (verdict, channel, request) {
            (Verdict::Send, Some(channel), Some(Ok(request))) => {
                let contact_version = view.contact.version;
                let other_spelling = channel.has_other_spelling(&view.identities);
                Look::Start(Box::new(Ready { task, channel, request, contact_version, said, other_spelling }))
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
        let Ready { task, channel, request, other_spelling, .. } = ready;
        self.flights.take_off(task.contact, &task.channel);
        self.shared.traffic.leaves(&task, self.shared.clock.monotonic());
        let (transport, landed) = (Arc::clone(&self.transport), self.landed.clone());
        let clock = Arc::clone(&self.shared.clock);
        let (flights, signals) = (Arc::clone(&self.flights), Arc::clone(&self.shared.signals));
        self.sends.spawn(async move {
            let end = transport.send(request, channel.deadline, start_by).await;
            flights.answered(&task.channel);
            signals.due.notify_one();
            let end = match &end {
                WireEnd::NotWritten { what } if what == START_TOO_OLD => not_sent(what),
                end => channel.judge(end, clock.now()),
            };
            // The completer outlives every send; if it is gone, the process is ending and the start row tells.
            let _ = landed.send(Landed { task, attempt, end, other_spelling }).await;
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
        said: ready.said,
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
