//! The bucket owner: the one writer of decisions (DESIGN.md, "One writer per contact").
//!
//! One task. A round is: look at the inbox, decide what is ready, commit. It wakes because events were committed, because
//! a burst or a deadline is due, or because a second passed (the store is the truth; wake-ups are hints).

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::decide::{Setup, decide};
use retoma_core::decision::{Decision, EventOutcome};
use retoma_core::event::{Event, EventKind};
use retoma_core::flow::Debounce;
use retoma_core::ids::{ChannelName, ContactId, EventId, FlowName};
use retoma_core::state::ContactView;
use retoma_store::{Committed, DecisionCommit, Error, LeaseRequest, Owner, PendingQuery, Store};
use uuid::Uuid;

use crate::exit::Exit;
use crate::heartbeat;
use crate::shared::Shared;

mod deadlines;
pub(crate) mod inbox;

use deadlines::Deadlines;
use inbox::{Group, Inbox};

/// Rows in one look at the inbox.
const LOAD_MAX: usize = 2048;
/// Undecided events held in memory; beyond that the rest waits in the store until half of them are decided (never 7).
const KNOWN_MAX: usize = 50_000;
/// Decisions in one commit.
const DECIDE_MAX: usize = 1024;
/// The longest the owner sleeps.
const POLL: Duration = Duration::from_secs(1);
/// The shortest, so that a deadline that waits for its decision does not make the loop spin.
const NAP: Duration = Duration::from_millis(5);
/// How often the whole inbox is read again, so that rows which committed late cannot hide.
const RESCAN_EVERY: Duration = Duration::from_secs(2);
/// Pause after a passing storage error.
const BACK_OFF: Duration = Duration::from_millis(200);
/// A lease's length and its renewal (DESIGN.md, "Leases"). SQLite grants everything without I/O.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

struct OwnerLoop<S> {
    store: S,
    shared: Arc<Shared>,
    owner: Owner,
    inbox: Inbox,
    deadlines: Deadlines,
    seen: Option<EventId>,
    rescanned: Option<Duration>,
    /// Whether the store holds more than the memory may.
    behind: bool,
}

/// Runs until the engine stops.
pub(crate) async fn run<S: Store>(store: S, shared: Arc<Shared>) -> Exit {
    let owner = match acquire(&store, &shared.node).await {
        Ok(owner) => owner,
        Err(error) => return Exit::Fatal(error.to_string()),
    };
    let (inbox, deadlines) = (Inbox::default(), Deadlines::default());
    let mut owner = OwnerLoop { store, shared, owner, inbox, deadlines, seen: None, rescanned: None, behind: false };
    let mut stopping = owner.shared.signals.stopping();
    loop {
        if *stopping.borrow_and_update() {
            return Exit::Stopped;
        }
        let sleep = match owner.round().await {
            Ok(sleep) => sleep,
            Err(error) if error.is_fatal() => return Exit::Fatal(error.to_string()),
            Err(error) => {
                tracing::warn!(event = "owner_round_failed", error = %error, "the owner tries again");
                BACK_OFF
            }
        };
        heartbeat::beat(&owner.store, &owner.shared, heartbeat::OWNER).await;
        tokio::select! {
            // Events were committed.
            () = owner.shared.signals.inbox.notified() => {}
            // A burst or a deadline is due, or it is time to look anyway.
            () = tokio::time::sleep(sleep) => {}
            // The process ends.
            _ = stopping.changed() => {}
        }
    }
}

/// What this node owns.
pub(crate) async fn acquire<S: Store>(store: &S, node: &str) -> Result<Owner, Error> {
    let request = LeaseRequest { node: node.to_owned(), lease: LEASE, max_buckets: usize::MAX, explicit: false };
    Ok(store.acquire_leases(request).await?.owner)
}

impl<S: Store> OwnerLoop<S> {
    /// One round. Answers how long to sleep.
    async fn round(&mut self) -> Result<Duration, Error> {
        self.look().await?;
        let emitted = self.deadlines.emit(&self.store, &self.shared).await?;
        let now = self.shared.clock.now();
        let debounce = |event: &Event| self.debounce_of(event);
        let (groups, next_burst) = self.inbox.ready(now, debounce, DECIDE_MAX);
        let decided = self.decide_all(groups, now).await?;
        if emitted || decided {
            return Ok(Duration::ZERO);
        }
        let next = [next_burst, self.deadlines.next()].into_iter().flatten().min();
        Ok(next.map_or(POLL, |at| self.shared.clock.real_until(at).clamp(NAP, POLL)))
    }

    /// Takes note of what is in the store's inbox.
    async fn look(&mut self) -> Result<(), Error> {
        if self.behind {
            return if self.inbox.len() < KNOWN_MAX / 2 { self.load_after(self.seen, None).await } else { Ok(()) };
        }
        let lowest = self.shared.signals.take_lowest();
        let now = self.shared.clock.monotonic();
        if self.rescanned.is_none_or(|at| now.saturating_sub(at) >= RESCAN_EVERY) {
            self.rescanned = Some(now);
            return self.rescan().await;
        }
        let after = lowest.map(before).into_iter().chain(self.seen).min();
        if lowest.is_some() {
            self.load_after(after, None).await?;
        }
        Ok(())
    }

    async fn rescan(&mut self) -> Result<(), Error> {
        let mut alive = HashSet::new();
        self.load_after(None, Some(&mut alive)).await?;
        if !self.behind {
            self.inbox.keep_only(&alive);
        }
        Ok(())
    }

    async fn load_after(
        &mut self,
        mut after: Option<EventId>,
        mut alive: Option<&mut HashSet<EventId>>,
    ) -> Result<(), Error> {
        loop {
            let query = PendingQuery { owner: self.owner.clone(), after, rescan_from: None, limit: LOAD_MAX };
            let events = self.store.load_pending(query).await?;
            let full = events.len() >= LOAD_MAX;
            after = events.last().map(|event| event.id).or(after);
            self.seen = self.seen.max(after);
            if let Some(alive) = alive.as_deref_mut() {
                alive.extend(events.iter().map(|event| event.id));
            }
            self.inbox.offer(events);
            self.behind = full && self.inbox.len() >= KNOWN_MAX;
            if !full || self.behind {
                return Ok(());
            }
        }
    }

    fn debounce_of(&self, event: &Event) -> Debounce {
        const NONE: Debounce = Debounce { quiet: Duration::ZERO, max_wait: Duration::ZERO };
        self.shared.flow(event.data.flow.as_ref()).map_or(NONE, |flow| flow.debounce)
    }

    /// Decides the groups and commits them together. Answers whether anything was decided.
    async fn decide_all(&mut self, groups: Vec<Group>, now: Timestamp) -> Result<bool, Error> {
        if groups.is_empty() {
            return Ok(false);
        }
        let wanted = groups.iter().filter_map(|group| Some((group.tenant.clone(), group.contact?))).collect();
        let views = self.store.load_contacts(wanted, now).await?;
        let views: HashMap<ContactId, ContactView> = views.into_iter().map(|view| (view.contact.id, view)).collect();
        let mut commits = Vec::with_capacity(groups.len());
        for group in groups {
            let view = group.contact.and_then(|contact| views.get(&contact));
            // The contact turned out to be another one since we looked (C11); its events went there under their own ids.
            if group.contact.is_some() && view.is_none() {
                let ids: Vec<EventId> = group.events.iter().map(|event| event.id).collect();
                self.inbox.forget(&ids);
                self.rescanned = None;
                continue;
            }
            match std::panic::catch_unwind(AssertUnwindSafe(|| self.decide_group(&group, view, now))) {
                Ok(commit) => commits.push(commit),
                // A poison event is parked, so that it blocks nobody, not even its own contact (never 5).
                Err(_) => self.park(&group, now).await?,
            }
        }
        let batch: Vec<Vec<EventId>> =
            commits.iter().map(|commit| commit.decision.events.iter().map(|outcome| outcome.event).collect()).collect();
        let answers = self.store.commit_decisions(self.owner.clone(), commits).await?;
        let mut progress = false;
        for (events, answer) in batch.into_iter().zip(answers) {
            match answer {
                Committed::Done { .. } => {
                    progress = true;
                    self.inbox.forget(&events);
                }
                // Something moved between look and commit; what the memory holds is only a hint.
                Committed::Stale => self.rescanned = None,
                Committed::NotOwner => self.inbox.forget(&events),
            }
        }
        if progress {
            self.shared.signals.decided();
        }
        Ok(progress)
    }

    fn decide_group(&self, group: &Group, view: Option<&ContactView>, now: Timestamp) -> DecisionCommit {
        let first = &group.events[0];
        let bucket = view.map_or(first.bucket, |view| view.contact.bucket);
        // What people order, and what follows from it, needs no flow of its own: any will do where none is named.
        let any = || self.shared.flows.load().values().next().filter(|_| first.kind.is_internal()).cloned();
        let flow = self.shared.flow(flow_name(first, view).as_ref()).or_else(any);
        let decision = match (view, flow) {
            (Some(view), Some(flow)) => decide(&flow, view, &group.events, &self.setup_of(), now),
            (None, _) => recorded(&group.events, "no_contact"),
            (_, None) => recorded(&group.events, "no_flow"),
        };
        if decision.events.iter().any(|outcome| outcome.reason.as_deref() == Some("bot_loop")) {
            // The log row says it of the conversation; this line says it to whoever watches the installation (C10).
            tracing::warn!(event = "bot_loop", id = %first.id, "two robots seem to answer each other; ours falls silent");
        }
        let expected_version = view.map_or(0, |view| view.contact.version);
        DecisionCommit { tenant: group.tenant.clone(), bucket, expected_version, decision, now }
    }

    fn setup_of(&self) -> Setup {
        // A flow without any channel still decides; its tasks wait for the channel that the configuration lacks.
        let default_channel = self.shared.setup.default_channel.clone();
        Setup { default_channel: default_channel.unwrap_or_else(|| ChannelName::new("none")) }
    }

    async fn park(&mut self, group: &Group, now: Timestamp) -> Result<(), Error> {
        for event in &group.events {
            tracing::error!(event = "event_parked", id = %event.id, kind = %event.kind, "an event could not be decided");
            self.store.park_event(event.id, "deciding it failed; see the log".to_owned(), now).await?;
        }
        let ids: Vec<EventId> = group.events.iter().map(|event| event.id).collect();
        self.inbox.forget(&ids);
        Ok(())
    }
}

/// The id just before, since the inbox is read from after an id.
fn before(id: EventId) -> EventId {
    EventId(Uuid::from_u128(id.0.as_u128().saturating_sub(1)))
}

/// Which flow decides: the conversation's for clocks and operators, else the source's, else the contact's latest.
fn flow_name(event: &Event, view: Option<&ContactView>) -> Option<FlowName> {
    let named = match event.kind {
        EventKind::ClockTimeout => event.data.deadline.as_ref().map(|deadline| deadline.conversation),
        _ => event.data.operator.as_ref().and_then(|operator| operator.conversation),
    };
    let latest = || {
        let conversations = &view?.conversations;
        conversations.iter().max_by_key(|conversation| conversation.updated_at).map(|found| found.flow.clone())
    };
    let of_named = named.and_then(|id| Some(view?.conversation(id)?.flow.clone()));
    of_named.or_else(|| event.data.flow.clone()).or_else(latest)
}

/// A decision that only records: nothing to decide with, or nobody to decide for.
fn recorded(events: &[Event], reason: &str) -> Decision {
    let outcome = |event: &Event| EventOutcome {
        event: event.id,
        decided: false,
        result: "recorded".to_owned(),
        reason: Some(reason.to_owned()),
    };
    Decision { events: events.iter().map(outcome).collect(), ..Decision::default() }
}
