//! The writer thread: takes everything queued, commits once, then answers all (natural group commit).
//!
//! While one commit syncs, the next batch accumulates, so its size adapts to the disk; there is no timer. A verb that
//! fails for a reason of its own is found by running the batch's verbs one by one. A failed sync poisons the store.

use std::sync::{Arc, OnceLock};

use retoma_store::{Error, Result};
use tokio::sync::{mpsc, oneshot};

use crate::checkpoint::Keeper;
use crate::database::Database;
use crate::error::again;

/// One verb that waits for a commit. Its input stays with it, so that it can run again after a rollback.
pub(crate) trait Job: Send {
    /// Runs inside the open transaction.
    fn run(&mut self, database: &Database) -> Result<()>;
    /// How many items it brings.
    fn items(&self) -> usize;
    /// How many bytes of bodies it brings.
    fn bytes(&self) -> usize;
    /// Answers the caller: its output, or why there is none.
    fn answer(self: Box<Self>, failed: Option<Error>);
}

/// A verb as a job.
pub(crate) struct Call<F, O> {
    pub(crate) verb: F,
    pub(crate) items: usize,
    pub(crate) bytes: usize,
    pub(crate) output: Option<O>,
    pub(crate) caller: oneshot::Sender<Result<O>>,
}

impl<F, O> Job for Call<F, O>
where
    F: FnMut(&Database) -> Result<O> + Send,
    O: Send,
{
    fn run(&mut self, database: &Database) -> Result<()> {
        self.output = Some((self.verb)(database)?);
        Ok(())
    }

    fn items(&self) -> usize {
        self.items
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn answer(self: Box<Self>, failed: Option<Error>) {
        let answer = match (failed, self.output) {
            (Some(error), _) => Err(error),
            (None, Some(output)) => Ok(output),
            (None, None) => Err(Error::Other("a verb was committed without running".to_owned())),
        };
        // The caller may have gone; the work stands.
        let _ = self.caller.send(answer);
    }
}

/// What the writer is told.
pub(crate) enum Message {
    /// Run this.
    Run(Box<dyn Job>),
    /// Commit what came before, then end.
    Stop,
}

/// The writer's state, owned by its thread.
pub(crate) struct Writer {
    pub(crate) database: Database,
    pub(crate) poison: Arc<OnceLock<String>>,
    pub(crate) keeper: Keeper,
}

impl Writer {
    /// Runs until told to stop, or until every handle is gone. What is still queued then is answered `Closed`.
    pub(crate) fn run(self, mut messages: mpsc::Receiver<Message>) {
        let mut stopping = false;
        while !stopping {
            let Some(message) = messages.blocking_recv() else { break };
            let Message::Run(first) = message else { break };
            let (items_max, bytes_max) =
                (self.database.options.commit_items_max, self.database.options.commit_bytes_max);
            let (mut items, mut bytes) = (first.items(), first.bytes());
            let mut batch = vec![first];
            while items < items_max && bytes < bytes_max {
                match messages.try_recv() {
                    Ok(Message::Run(job)) => {
                        items += job.items();
                        bytes += job.bytes();
                        batch.push(job);
                    }
                    Ok(Message::Stop) => {
                        stopping = true;
                        break;
                    }
                    Err(_) => break,
                }
            }
            self.commit(batch);
            self.keeper.after_commit(&self.database.connection, &self.database.options);
        }
        messages.close();
        while let Ok(message) = messages.try_recv() {
            if let Message::Run(job) = message {
                job.answer(Some(Error::Closed));
            }
        }
    }

    fn commit(&self, mut batch: Vec<Box<dyn Job>>) {
        let failed = match self.poison.get() {
            Some(why) => Err(Error::Poisoned(why.clone())),
            None => self.database.transact(|database| batch.iter_mut().try_for_each(|job| job.run(database))),
        };
        match failed {
            Ok(()) => batch.into_iter().for_each(|job| job.answer(None)),
            Err(error) if error.is_fatal() => {
                if let Error::Poisoned(why) = &error {
                    self.poison(why);
                }
                refuse(batch, error);
            }
            // A condition of the whole file: every one of them may come again.
            Err(error) if error.is_retryable() => refuse(batch, error),
            Err(error) if batch.len() == 1 => refuse(batch, error),
            Err(_) => batch.into_iter().for_each(|job| self.commit(vec![job])),
        }
    }

    fn poison(&self, why: &str) {
        if self.poison.set(why.to_owned()).is_ok() {
            tracing::error!(why, "the storage failed; nothing is acknowledged any more, the process must end");
        }
    }
}

fn refuse(batch: Vec<Box<dyn Job>>, error: Error) {
    let mut jobs = batch.into_iter();
    let first = jobs.next();
    for job in jobs {
        job.answer(Some(again(&error)));
    }
    if let Some(job) = first {
        job.answer(Some(error));
    }
}
