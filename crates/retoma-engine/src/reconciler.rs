//! The reconciler: finds out what became of sends whose outcome nobody knows (E4, D7).
//!
//! One task, plus one per search under way. A round is: load what is unsure, ask the store what echoes and receipts told since
//! each start, settle what was found, search at the provider where it is time, and leave to the policy what nobody could tell
//! within `reconcile_for`. It sends nothing and proves nothing by absence: only evidence *for* a message settles it early.
//! Every look is kept as a row of evidence.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::evidence::{Sighting, Wanted, Witness, find, likely};
use retoma_core::identity::Identity;
use retoma_core::ids::TaskId;
use retoma_core::outcome::{AttemptEnd, NextStep, Outcome};
use retoma_core::task::Task;
use retoma_providers::outbound::{Channel, Lookup, Outbound};
use retoma_store::{Error, Evidence, Finish, SightingQuery, Sightings, Store, Unsure};
use tokio::task::JoinSet;

use crate::deliverer::flights::Flights;
use crate::exit::Exit;
use crate::heartbeat;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::unsure::by_policy;

/// Unsure sends in one round.
const LOAD_MAX: usize = 1000;
/// How often echoes are looked for while somebody waits for one, and while many do.
const POLL: Duration = Duration::from_millis(500);
const POLL_MANY: Duration = Duration::from_secs(2);
const MANY: usize = 50;
/// Nothing is unsure; a new one wakes us.
const POLL_IDLE: Duration = Duration::from_secs(1);
/// Pause after a passing storage error.
const BACK_OFF: Duration = Duration::from_millis(200);
/// When the provider is asked, counted from the end of the attempt; and once more when the time is over. The first look waits
/// for what an echo would tell for nothing.
const LOOK_AFTER: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(30), Duration::from_secs(150)];
/// Searches under way at once.
const LOOKS_MAX: usize = 4;
/// The longest one request of a search may take.
const LOOK_FOR: Duration = Duration::from_secs(10);
/// Pages of one search: filters that are ignored make it walk through everybody's messages.
const PAGES_MAX: u32 = 10;

struct Reconciler<S, T> {
    store: S,
    transport: Arc<T>,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
    progress: HashMap<TaskId, Progress>,
    looks: JoinSet<Look>,
}

/// How far the searches for one attempt are.
#[derive(Debug)]
struct Progress {
    attempt: u32,
    done: usize,
    under_way: bool,
    last_done: bool,
}

/// A finished search.
struct Look {
    unsure: Unsure,
    last: bool,
    found: Result<Found, String>,
}

struct Found {
    sightings: Vec<Sighting>,
    records: usize,
}

/// Runs until the engine stops.
pub(crate) async fn run<S: Store, T: Transport>(
    store: S,
    transport: Arc<T>,
    shared: Arc<Shared>,
    flights: Arc<Flights>,
) -> Exit {
    let (progress, looks) = (HashMap::new(), JoinSet::new());
    let mut reconciler = Reconciler { store, transport, shared, flights, progress, looks };
    let mut stopping = reconciler.shared.signals.stopping();
    loop {
        if *stopping.borrow_and_update() {
            reconciler.looks.shutdown().await;
            return Exit::Stopped;
        }
        let sleep = match reconciler.round().await {
            Ok(sleep) => sleep,
            Err(error) if error.is_fatal() => return Exit::Fatal(error.to_string()),
            Err(error) => {
                tracing::warn!(event = "reconciler_round_failed", error = %error, "the reconciler tries again");
                BACK_OFF
            }
        };
        heartbeat::beat(&reconciler.store, &reconciler.shared, heartbeat::RECONCILER).await;
        let signals = Arc::clone(&reconciler.shared.signals);
        // Every arm is cancel-safe: a finished search that is not taken here stays in the set.
        tokio::select! {
            // A send became unsure.
            () = signals.unsure.notified() => {}
            // A search ended.
            Some(look) = reconciler.looks.join_next() => {
                if let Err(error) = reconciler.ended(look).await && error.is_fatal() {
                    return Exit::Fatal(error.to_string());
                }
            }
            // Time to look anyway.
            () = tokio::time::sleep(sleep) => {}
            // The process ends.
            _ = stopping.changed() => {}
        }
    }
}

impl<S: Store, T: Transport> Reconciler<S, T> {
    /// One round. Answers how long to sleep.
    async fn round(&mut self) -> Result<Duration, Error> {
        while let Some(look) = self.looks.try_join_next() {
            self.ended(look).await?;
        }
        let now = self.shared.clock.now();
        let unsure = self.store.load_unsure(LOAD_MAX).await?;
        let known: HashSet<&TaskId> = unsure.iter().map(|unsure| &unsure.task.id).collect();
        self.progress.retain(|task, _| known.contains(task));
        if unsure.is_empty() {
            return Ok(POLL_IDLE);
        }
        let count = unsure.len();
        let questions = unsure.iter().map(|unsure| self.question(unsure)).collect();
        let told = self.store.load_sightings(questions).await?;
        // Two sends with one text to one person: each sighting is evidence for one of them.
        let mut used: HashSet<String> = HashSet::new();
        for (unsure, told) in unsure.into_iter().zip(told) {
            self.look_at(unsure, told, &mut used, now).await?;
        }
        Ok(if count > MANY { POLL_MANY } else { POLL })
    }

    fn channel(&self, task: &Task) -> Option<&Arc<Channel>> {
        self.shared.setup.channels.get(&task.channel)
    }

    fn wanted(&self, unsure: &Unsure) -> Wanted {
        let deadline = self.channel(&unsure.task).map_or(Duration::ZERO, |channel| channel.deadline);
        Wanted { said: unsure.said, started_at: unsure.attempt.started_at, deadline }
    }

    fn question(&self, unsure: &Unsure) -> SightingQuery {
        SightingQuery {
            tenant: unsure.task.tenant.clone(),
            contact: unsure.task.contact,
            channel: unsure.task.channel.clone(),
            since: self.wanted(unsure).window().0,
        }
    }

    async fn look_at(
        &mut self,
        unsure: Unsure,
        told: Sightings,
        used: &mut HashSet<String>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let task = &unsure.task;
        // An echo may belong to what is under way now; its own answer claims it first.
        if self.flights.is_busy(&task.channel, task.contact) {
            return Ok(());
        }
        let wanted = self.wanted(&unsure);
        let Sightings { mut messages, receipts } = told;
        messages.iter_mut().for_each(|seen| seen.claimed |= used.contains(&seen.message_id));
        if let Some(seen) = find(&wanted, &messages) {
            used.insert(seen.message_id.clone());
            let said = format!("an echo of this very text to this contact came at {}", seen.heard_at);
            return self.was_sent(&unsure, seen, Witness::Echo, said, now).await;
        }
        let over = task.reconcile_until.is_none_or(|until| until <= now);
        if self.search(&unsure, over, now).await? || !over {
            return Ok(());
        }
        // Weak evidence last: by now, a message that a person typed has made itself known.
        let receipts: Vec<Sighting> = receipts.into_iter().filter(|seen| !used.contains(&seen.message_id)).collect();
        if let Some(seen) = likely(&wanted, &receipts) {
            used.insert(seen.message_id.clone());
            let said = "a receipt came of a message to this contact that nobody else sent".to_owned();
            return self.was_sent(&unsure, seen, Witness::Receipt, said, now).await;
        }
        self.leave_to_policy(task, now).await
    }

    /// Starts a search where it is time for one. Answers whether one is under way, or has to come first.
    async fn search(&mut self, unsure: &Unsure, over: bool, now: Timestamp) -> Result<bool, Error> {
        let ended_at = unsure.attempt.ended_at.unwrap_or(unsure.attempt.started_at);
        let first = LOOK_AFTER[0].min(self.shared.setup.reconcile_for / 4);
        let progress = self.progress.entry(unsure.task.id.clone()).or_insert_with(|| Progress {
            attempt: unsure.attempt.n,
            done: 0,
            under_way: false,
            last_done: false,
        });
        if progress.attempt != unsure.attempt.n {
            *progress = Progress { attempt: unsure.attempt.n, done: 0, under_way: false, last_done: false };
        }
        if progress.under_way {
            return Ok(true);
        }
        let waited: Duration = now.duration_since(ended_at).try_into().unwrap_or(Duration::ZERO);
        let next = LOOK_AFTER.get(progress.done).map(|after| if progress.done == 0 { first } else { *after });
        let due = if over { !progress.last_done } else { next.is_some_and(|after| waited >= after) };
        if !due {
            return Ok(false);
        }
        if self.looks.len() >= LOOKS_MAX {
            return Ok(true);
        }
        let Some(channel) = self.channel(&unsure.task).cloned() else { return Ok(false) };
        let wanted = vec![(unsure.task.tenant.clone(), unsure.task.contact)];
        let Some(view) = self.store.load_contacts(wanted, now).await?.pop() else { return Ok(false) };
        let (from, to) = self.wanted(unsure).window();
        if channel.lookup(&lookup(&view.identities, from, to, 0, 1)).is_none() {
            // This provider cannot be asked.
            return Ok(false);
        }
        if let Some(progress) = self.progress.get_mut(&unsure.task.id) {
            progress.under_way = true;
        }
        let (transport, shared, unsure) = (Arc::clone(&self.transport), Arc::clone(&self.shared), unsure.clone());
        self.looks.spawn(async move {
            let found = ask(&*transport, &shared, &channel, &view.identities, (from, to)).await;
            Look { unsure, last: over, found }
        });
        Ok(true)
    }

    /// A search ended: the message is there, or one more row says that it was not seen.
    async fn ended(&mut self, look: Result<Look, tokio::task::JoinError>) -> Result<(), Error> {
        // A search that broke is made again when its time comes.
        let Ok(Look { unsure, last, found }) = look else {
            self.progress.values_mut().for_each(|progress| progress.under_way = false);
            return Ok(());
        };
        if let Some(progress) = self.progress.get_mut(&unsure.task.id) {
            progress.under_way = false;
            progress.done += 1;
            progress.last_done |= last;
        }
        self.shared.signals.unsure.notify_one();
        let now = self.shared.clock.now();
        let said = match found {
            Ok(Found { mut sightings, records }) => {
                let task = &unsure.task;
                let ids = sightings.iter().map(|seen| seen.message_id.clone()).collect();
                let claimed = self.store.claimed_messages(task.tenant.clone(), task.channel.clone(), ids).await?;
                sightings.iter_mut().for_each(|seen| seen.claimed = claimed.contains(&seen.message_id));
                if let Some(seen) = find(&self.wanted(&unsure), &sightings) {
                    let said =
                        format!("the provider has a message of this very text to this contact, sent at {}", seen.at);
                    return self.was_sent(&unsure, seen, Witness::Search, said, now).await;
                }
                format!("searched at the provider: {records} messages looked at, this one is not among them")
            }
            Err(why) => format!("searched at the provider in vain: {why}"),
        };
        self.store.add_evidence(vec![evidence(&unsure.task, Witness::Search, said, now)]).await
    }

    async fn was_sent(
        &self,
        unsure: &Unsure,
        seen: &Sighting,
        witness: Witness,
        said: String,
        now: Timestamp,
    ) -> Result<(), Error> {
        let task = &unsure.task;
        let finish = Finish {
            tenant: task.tenant.clone(),
            task: task.id.clone(),
            attempt: unsure.attempt.n,
            ended_at: now,
            end: AttemptEnd {
                outcome: Outcome::Accepted,
                http_status: None,
                error: None,
                response: None,
                provider_message_id: Some(seen.message_id.clone()),
                retry_after: None,
            },
            next: NextStep::Sent,
            resend: false,
            evidence: Some(said.clone()),
        };
        self.store.add_evidence(vec![evidence(task, witness, said, now)]).await?;
        self.store.finish_attempts(vec![finish]).await?;
        Ok(())
    }

    async fn leave_to_policy(&self, task: &Task, now: Timestamp) -> Result<(), Error> {
        let finish = by_policy(&self.shared, task, now);
        let said = finish.evidence.clone().unwrap_or_default();
        self.store.add_evidence(vec![evidence(task, Witness::Policy, said, now)]).await?;
        self.store.finish_attempts(vec![finish]).await?;
        self.shared.signals.due.notify_one();
        Ok(())
    }
}

fn evidence(task: &Task, witness: Witness, said: String, at: Timestamp) -> Evidence {
    Evidence { tenant: task.tenant.clone(), task: task.id.clone(), at, witness, said }
}

fn lookup(identities: &[Identity], from: Timestamp, to: Timestamp, spelling: usize, page: u32) -> Lookup<'_> {
    Lookup { identities, from, to, spelling, page }
}

/// Asks the provider page by page, under every spelling of the address.
async fn ask<T: Transport>(
    transport: &T,
    shared: &Shared,
    channel: &Channel,
    identities: &[Identity],
    (from, to): (Timestamp, Timestamp),
) -> Result<Found, String> {
    let mut found = Found { sightings: Vec::new(), records: 0 };
    for spelling in 0.. {
        for page in 1..=PAGES_MAX {
            let asked = lookup(identities, from, to, spelling, page);
            let Some(request) = channel.lookup(&asked) else { return Ok(found) };
            let start_by = shared.clock.monotonic() + LOOK_FOR;
            let end = transport.send(request, LOOK_FOR, start_by).await;
            let seen = channel.seen(&asked, &end, shared.clock.now())?;
            found.records += seen.records;
            found.sightings.extend(seen.sightings);
            if !seen.more {
                break;
            }
        }
    }
    Ok(found)
}
