//! The reader threads: each with a connection of its own that sees the last commit and cannot write.
//!
//! One serves what the loops load, the other what people list, so that a slow page holds up no delivery. A read that
//! takes too long is ended, since it keeps the log from starting over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use retoma_store::Result;
use tokio::sync::{mpsc, oneshot};

use crate::OpenError;
use crate::database::Database;

/// A read, boxed with its caller.
pub(crate) type Read = Box<dyn FnOnce(&Database) + Send>;

/// What a reader is told.
pub(crate) enum Message {
    /// Run this.
    Run(Read),
    /// End.
    Stop,
}

/// SQLite asks this often whether to go on, in virtual machine steps: about every 100 us.
const STEPS: std::ffi::c_int = 10_000;

#[allow(clippy::disallowed_methods, reason = "measures its own work; decides nothing")]
fn stopwatch() -> Instant {
    Instant::now()
}

/// A reader's state, owned by its thread.
pub(crate) struct Reader {
    database: Database,
    /// Time since the thread began at which the present read must end, in milliseconds.
    ends_at: Arc<AtomicU64>,
    began: Instant,
    max: Duration,
}

impl Reader {
    pub(crate) fn new(mut database: Database) -> std::result::Result<Self, OpenError> {
        let (began, max) = (stopwatch(), database.options.read_max);
        let ends_at = Arc::new(AtomicU64::new(u64::MAX));
        let limit = Arc::clone(&ends_at);
        database.connection.progress_handler(STEPS, Some(move || since(began) > limit.load(Ordering::Relaxed)))?;
        Ok(Self { database, ends_at, began, max })
    }

    pub(crate) fn run(self, mut messages: mpsc::Receiver<Message>) {
        while let Some(Message::Run(read)) = messages.blocking_recv() {
            let max = u64::try_from(self.max.as_millis()).unwrap_or(u64::MAX);
            self.ends_at.store(since(self.began).saturating_add(max), Ordering::Relaxed);
            read(&self.database);
        }
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A reading verb on one snapshot, with its caller.
pub(crate) fn read<O: Send + 'static>(
    verb: impl FnOnce(&Database) -> Result<O> + Send + 'static,
) -> (Read, oneshot::Receiver<Result<O>>) {
    let (caller, answer) = oneshot::channel();
    let read: Read = Box::new(move |database| {
        // The caller may have gone.
        let _ = caller.send(database.read(verb));
    });
    (read, answer)
}
