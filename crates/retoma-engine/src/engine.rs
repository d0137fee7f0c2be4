//! The handle that intake, API and commands hold, and the supervisor that owns the loops.

use std::sync::Arc;
use std::time::Duration;

use retoma_core::ids::{ChannelName, EventId, Tenant};
use retoma_core::receipt::Arrivals;
use retoma_store::{Appended, EventRow, EventStatus, Intake, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::clock::Clock;
use crate::committer::{self, Queue, Refused};
use crate::completer;
use crate::deliverer::traffic::ChannelTraffic;
use crate::deliverer::{self, flights::Flights};
use crate::exit::Exit;
use crate::heartbeat::Beats;
use crate::keeper;
use crate::local_times;
use crate::new_id::NewId;
use crate::owner;
use crate::reconciler;
use crate::shared::{EngineSetup, Flows, Shared};
use crate::signal::Signals;
use crate::transport::Transport;
use crate::unsure;

/// Results that may wait for the completer.
const LANDED_MAX: usize = 1024;
/// How long the loops may take to end.
const STOP_FOR: Duration = Duration::from_secs(20);

/// A handle on the running engine. Cheap to clone.
pub struct Engine<S: Store> {
    store: S,
    shared: Arc<Shared>,
    queue: Queue,
}

impl<S: Store> Clone for Engine<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), shared: Arc::clone(&self.shared), queue: self.queue.clone() }
    }
}

/// Owns the loops. Dropping it ends them at once; `shutdown` ends them in order.
pub struct Supervisor {
    loops: JoinSet<(&'static str, Exit)>,
    signals: Arc<Signals>,
}

impl<S: Store> Engine<S> {
    /// Starts the loops. What a process before this one left open is reconciled first, before anything is sent.
    ///
    /// # Errors
    /// The store's, if it cannot even be read.
    pub async fn start<T: Transport>(
        store: S,
        setup: EngineSetup,
        clock: Arc<dyn Clock>,
        transport: Arc<T>,
    ) -> Result<(Self, Supervisor), retoma_store::Error> {
        let ids = NewId::new();
        let node = ids.next(clock.now()).to_string();
        let signals = Arc::new(Signals::default());
        let (decide, deliver) = (setup.decide, setup.deliver);
        let beats = Beats::default();
        let shared = Arc::new(Shared::new(setup, clock, Arc::clone(&signals), ids, node, beats));
        let (queue, jobs) = committer::queue();
        let mut loops = JoinSet::new();
        let named = |name: &'static str| move |exit: Exit| (name, exit);
        loops.spawn(after(committer::run(store.clone(), jobs, Arc::clone(&signals)), named("committer")));
        local_times::plan_again(&store, &shared).await?;
        if deliver {
            let open = unsure::recover(&store, &shared).await?;
            if open > 0 {
                tracing::warn!(event = "sends_were_open", count = open, "a process ended during send; reconciling");
            }
            let flights = Arc::new(Flights::default());
            let (landed, results) = mpsc::channel(LANDED_MAX);
            let reconciler_transport = Arc::clone(&transport);
            let deliverer = deliverer::run(store.clone(), transport, Arc::clone(&shared), Arc::clone(&flights), landed);
            let completer = completer::run(store.clone(), Arc::clone(&shared), Arc::clone(&flights), results);
            let reconciler =
                reconciler::run(store.clone(), reconciler_transport, Arc::clone(&shared), Arc::clone(&flights));
            let keeper = keeper::run(store.clone(), Arc::clone(&shared), flights);
            loops.spawn(after(deliverer, named("deliverer")));
            loops.spawn(after(completer, named("completer")));
            loops.spawn(after(reconciler, named("reconciler")));
            loops.spawn(after(keeper, named("keeper")));
        }
        if decide {
            loops.spawn(after(owner::run(store.clone(), Arc::clone(&shared)), named("owner")));
        }
        Ok((Self { store, shared, queue }, Supervisor { loops, signals }))
    }

    /// Stores what a request said, and answers when it is on disk (A1). Refuses at once what cannot be queued.
    ///
    /// # Errors
    /// [`Refused`]: nothing of it was stored, except where the storage says that it does not know.
    pub async fn submit(&self, intake: Intake) -> Result<Vec<Appended>, Refused> {
        self.queue.submit(intake).await
    }

    /// Waits until an event came to its end, at most `wait` of real time; answers it as it stands then.
    ///
    /// # Errors
    /// The store's.
    pub async fn decided(
        &self,
        tenant: &Tenant,
        event: EventId,
        wait: Duration,
    ) -> Result<Option<EventRow>, retoma_store::Error> {
        let mut rounds = self.shared.signals.watch_decided();
        let until = self.shared.clock.monotonic() + wait;
        loop {
            rounds.borrow_and_update();
            let row = self.store.get_event(tenant.clone(), event).await?;
            let left = until.saturating_sub(self.shared.clock.monotonic());
            let waits = row.as_ref().is_some_and(|row| row.status == EventStatus::Received);
            if !waits || left.is_zero() {
                return Ok(row);
            }
            let _ = tokio::time::timeout(left, rounds.changed()).await;
        }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// A fresh id.
    pub fn new_id(&self) -> Uuid {
        self.shared.ids.next(self.shared.clock.now())
    }

    /// Flows by name, as they are now.
    pub fn flows(&self) -> Arc<Flows> {
        self.shared.flows.load_full()
    }

    /// Puts new versions of flows in the place of those that run: whatever is decided or sent from now on follows them. The
    /// caller has made sure that nobody is stranded (C15, M1).
    pub fn switch_flows(&self, flows: Flows) {
        self.shared.flows.store(Arc::new(flows));
        self.wake();
    }

    /// What the engine runs with.
    pub fn setup(&self) -> &EngineSetup {
        &self.shared.setup
    }

    /// Tells the loops that something changed behind their back (a command wrote to the store).
    pub fn wake(&self) {
        // From the lowest id on: a released event may be an old one.
        self.shared.signals.committed(EventId(Uuid::nil()));
        self.shared.signals.due.notify_one();
        self.shared.signals.unsure.notify_one();
    }

    /// What became of a channel's messages after they were accepted (FC-78).
    pub fn arrivals_of(&self, channel: &ChannelName) -> Arrivals {
        self.shared.arrivals_of(channel)
    }

    /// How a channel's traffic stands in this process.
    pub fn channel_traffic(&self, channel: &ChannelName) -> ChannelTraffic {
        self.shared.traffic.shown(channel, self.shared.clock.monotonic())
    }
}

async fn after(
    work: impl Future<Output = Exit>,
    name: impl FnOnce(Exit) -> (&'static str, Exit),
) -> (&'static str, Exit) {
    name(work.await)
}

impl Supervisor {
    /// Waits until a loop ends, which a healthy engine's loops never do. Cancel-safe.
    pub async fn failed(&mut self) -> String {
        loop {
            match self.loops.join_next().await {
                Some(Ok((_, Exit::Stopped))) => {}
                Some(Ok((name, Exit::Fatal(why)))) => return format!("{name}: {why}"),
                Some(Err(error)) => return format!("a loop broke: {error}"),
                None => return "every loop ended".to_owned(),
            }
        }
    }

    /// Ends the loops in order: no new starts, what is under way lands and is stored (I3).
    ///
    /// # Errors
    /// What went wrong on the way.
    pub async fn shutdown(mut self) -> Result<(), String> {
        self.signals.stop();
        let all = async {
            let mut result = Ok(());
            while let Some(done) = self.loops.join_next().await {
                match done {
                    Ok((_, Exit::Stopped)) => {}
                    Ok((name, Exit::Fatal(why))) => result = Err(format!("{name}: {why}")),
                    Err(error) => result = Err(format!("a loop broke: {error}")),
                }
            }
            result
        };
        match tokio::time::timeout(STOP_FOR, all).await {
            Ok(result) => result,
            Err(_) => {
                Err("the loops did not end in time; what was under way is reconciled at the next start".to_owned())
            }
        }
    }
}
