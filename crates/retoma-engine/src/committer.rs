//! The committer: takes every intake that is queued, commits once, then answers all (DESIGN.md, "Storage").
//!
//! Natural group commit: while one batch syncs, the next accumulates, so that its size adapts to the disk. No timer. The
//! queue is bounded by count and by bytes; what does not fit is refused at once with a time to come back (never 7).

use std::sync::Arc;
use std::time::Duration;

use retoma_core::ids::EventId;
use retoma_store::{Appended, Entry, Error, Intake, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::signal::Signals;

/// Requests that may wait.
const QUEUE_MAX: usize = 4096;
/// Bytes that may wait.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Requests in one commit.
const BATCH_MAX: usize = 1024;
/// Bytes in one commit.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Batches under way: one that syncs, one that follows it.
const UNDER_WAY_MAX: usize = 2;
/// What an intake costs beyond its body.
const OVERHEAD_BYTES: usize = 1024;

/// Why an intake was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refused {
    /// The queue is full.
    #[error("too much is waiting to be stored")]
    Overloaded {
        /// When to come back.
        retry_after: Duration,
    },
    /// The storage cannot keep the promise.
    #[error("storage: {0}")]
    Storage(Arc<Error>),
    /// The process is ending.
    #[error("shutting down")]
    Closing,
}

pub(crate) struct Job {
    intake: Intake,
    bytes: usize,
    answer: oneshot::Sender<Result<Vec<Appended>, Refused>>,
    /// Gives the bytes back when the job ends.
    _room: OwnedSemaphorePermit,
}

/// The queue's near end.
#[derive(Clone)]
pub(crate) struct Queue {
    jobs: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
}

pub(crate) fn queue() -> (Queue, mpsc::Receiver<Job>) {
    let (jobs, receiver) = mpsc::channel(QUEUE_MAX);
    (Queue { jobs, room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)) }, receiver)
}

impl Queue {
    /// Queues an intake and waits until it is on disk.
    pub(crate) async fn submit(&self, intake: Intake) -> Result<Vec<Appended>, Refused> {
        const BUSY: Refused = Refused::Overloaded { retry_after: Duration::from_secs(1) };
        let bytes = intake.request.as_ref().map_or(0, |request| request.body.len()) + OVERHEAD_BYTES;
        let permits = u32::try_from(bytes.min(QUEUE_BYTES_MAX)).map_err(|_| BUSY)?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(permits).map_err(|_| BUSY)?;
        let (answer, wait) = oneshot::channel();
        self.jobs.try_send(Job { intake, bytes, answer, _room: room }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => BUSY,
            mpsc::error::TrySendError::Closed(_) => Refused::Closing,
        })?;
        wait.await.unwrap_or(Err(Refused::Closing))
    }
}

/// Runs until the engine stops, then drains: what was queued is stored and answered.
pub(crate) async fn run<S: Store>(store: S, mut jobs: mpsc::Receiver<Job>, signals: Arc<Signals>) -> Exit {
    let mut under_way: JoinSet<Result<(), String>> = JoinSet::new();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut stopping = signals.stopping();
    loop {
        tokio::select! {
            // Both branches are cancel-safe: a job is either received or still queued.
            more = fill(&mut jobs, &mut batch) => {
                if !more {
                    break;
                }
            }
            _ = stopping.wait_for(|stop| *stop), if !jobs.is_closed() => {
                jobs.close();
                continue;
            }
        }
        while under_way.len() >= UNDER_WAY_MAX {
            if let Some(Ok(Err(fatal))) = under_way.join_next().await {
                return Exit::Fatal(fatal);
            }
        }
        // Another batch may have grown while we waited for room.
        drain(&mut jobs, &mut batch);
        let (store, signals, batch) = (store.clone(), Arc::clone(&signals), std::mem::take(&mut batch));
        under_way.spawn(async move { commit(store, batch, &signals).await });
    }
    while let Some(done) = under_way.join_next().await {
        if let Ok(Err(fatal)) = done {
            return Exit::Fatal(fatal);
        }
    }
    Exit::Stopped
}

/// Waits for a first job, then takes what is queued. `false` when all senders are gone.
async fn fill(jobs: &mut mpsc::Receiver<Job>, batch: &mut Vec<Job>) -> bool {
    let Some(first) = jobs.recv().await else { return false };
    batch.push(first);
    drain(jobs, batch);
    true
}

fn drain(jobs: &mut mpsc::Receiver<Job>, batch: &mut Vec<Job>) {
    let mut bytes: usize = batch.iter().map(|job| job.bytes).sum();
    while batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
        let Ok(job) = jobs.try_recv() else { return };
        bytes += job.bytes;
        batch.push(job);
    }
}

async fn commit<S: Store>(store: S, batch: Vec<Job>, signals: &Signals) -> Result<(), String> {
    let mut lowest: Option<EventId> = None;
    let (mut intakes, mut answers, mut rooms) = (Vec::new(), Vec::new(), Vec::new());
    for job in batch {
        let inbox = job.intake.events.iter().filter(|event| event.entry == Entry::Received).map(|event| event.id);
        lowest = inbox.chain(lowest).min();
        intakes.push(job.intake);
        answers.push(job.answer);
        rooms.push(job._room);
    }
    match store.append_events(intakes).await {
        Ok(all) => {
            if let Some(lowest) = lowest {
                signals.committed(lowest);
            }
            for (answer, appended) in answers.into_iter().zip(all) {
                // A caller that went away keeps its event all the same.
                let _ = answer.send(Ok(appended));
            }
            Ok(())
        }
        Err(error) => {
            let fatal = error.is_fatal().then(|| error.to_string());
            tracing::error!(event = "commit_failed", error = %error, waiting = answers.len(), "events were not stored");
            let shared = Arc::new(error);
            for answer in answers {
                let _ = answer.send(Err(Refused::Storage(Arc::clone(&shared))));
            }
            fatal.map_or(Ok(()), Err)
        }
    }
}
