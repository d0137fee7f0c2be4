//! How loops wake each other within the process. Hints only: every loop also looks at the store by itself.

use std::sync::Mutex;

use retoma_core::ids::EventId;
use tokio::sync::{Notify, watch};

/// The engine's wake-ups.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Events were committed: the owner looks.
    pub(crate) inbox: Notify,
    /// Tasks may be due, or a lane is free: the deliverer looks.
    pub(crate) due: Notify,
    /// A send became unsure, or time moved: the reconciler looks.
    pub(crate) unsure: Notify,
    /// The lowest id committed since the owner last looked, since a batch may commit ids below those already seen.
    lowest: Mutex<Option<EventId>>,
    /// Counts rounds in which decisions were committed, for those who wait for one.
    decided: watch::Sender<u64>,
    /// Set when the process ends.
    stopping: watch::Sender<bool>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            inbox: Notify::new(),
            due: Notify::new(),
            unsure: Notify::new(),
            lowest: Mutex::new(None),
            decided: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
        }
    }
}

impl Signals {
    pub(crate) fn committed(&self, lowest: EventId) {
        {
            let mut known = self.lowest.lock().expect("no code panics while it holds the mark");
            *known = Some(known.map_or(lowest, |before| before.min(lowest)));
        }
        self.inbox.notify_one();
    }

    pub(crate) fn take_lowest(&self) -> Option<EventId> {
        self.lowest.lock().expect("no code panics while it holds the mark").take()
    }

    pub(crate) fn decided(&self) {
        self.decided.send_modify(|count| *count += 1);
        self.due.notify_one();
    }

    pub(crate) fn watch_decided(&self) -> watch::Receiver<u64> {
        self.decided.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
        self.inbox.notify_one();
        self.due.notify_one();
        self.unsure.notify_one();
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}
