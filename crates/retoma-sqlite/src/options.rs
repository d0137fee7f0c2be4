//! What may be set, and what tests may break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// The store's own clock: lease ends are judged by it, and nothing else. The simulator passes its virtual one.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How to open a store. The defaults are for serving; tests change what they need.
#[derive(Clone)]
pub struct Options {
    /// Page cache of the writer, in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each reader, in KiB.
    pub reader_cache_kib: u32,
    /// How long SQLite waits for a lock that another process holds.
    pub busy_timeout: Duration,
    /// Verbs that may wait for the writer.
    pub queue_max: usize,
    /// Items (events, decisions, results, ..) in one commit.
    pub commit_items_max: usize,
    /// Bytes of bodies in one commit.
    pub commit_bytes_max: usize,
    /// Keys of recent events held in memory before they are brought into the dedupe table together: so many are about
    /// 8 MiB, and several for each page of a table of millions.
    pub recent_keys_max: usize,
    /// Pages that the log has and the database has not from which the checkpointer copies them, without waiting for anybody.
    pub checkpoint_pages: u32,
    /// Pages in the log from which it shall start over. Four times as many, and the writer waits for readers to end.
    pub restart_pages: u32,
    /// The log is cut back to this size when it starts over, in bytes.
    pub journal_bytes_max: u64,
    /// The longest that one reading verb may hold the log back.
    pub read_max: Duration,
    /// The store's clock.
    pub clock: Clock,
    /// Test hook: the database may not grow beyond so many pages (a genuine `SQLITE_FULL`).
    pub max_page_count: Option<u32>,
    /// Test hook: faults to inject.
    pub faults: FaultPlan,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            writer_cache_kib: 12 * 1024,
            reader_cache_kib: 4 * 1024,
            busy_timeout: Duration::from_secs(5),
            queue_max: 4096,
            commit_items_max: 1024,
            commit_bytes_max: 4 * 1024 * 1024,
            recent_keys_max: 64_000,
            checkpoint_pages: 8000,
            restart_pages: 16_000,
            journal_bytes_max: 128 * 1024 * 1024,
            read_max: Duration::from_secs(2),
            clock: system_clock(),
            max_page_count: None,
            faults: FaultPlan::default(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("queue_max", &self.queue_max).finish_non_exhaustive()
    }
}

#[allow(clippy::disallowed_methods, reason = "the database's own clock; whoever simulates passes another one")]
fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// Faults that a test arms on a running store. Clones share the plan.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    syncs: Arc<AtomicU32>,
    /// Pages + 1; 0 means unchanged.
    page_limit: Arc<AtomicU32>,
}

impl FaultPlan {
    /// The next commit reports what a failing fsync reports (`SQLITE_IOERR_FSYNC`).
    pub fn fail_next_sync(&self) {
        self.syncs.fetch_add(1, Ordering::SeqCst);
    }

    /// Moves the limit of `max_page_count` from the next commit on: a disk that fills up, or gets room again.
    pub fn limit_pages(&self, pages: u32) {
        self.page_limit.store(pages.saturating_add(1), Ordering::SeqCst);
    }

    pub(crate) fn take_failed_sync(&self) -> bool {
        // One atomic load on the commit path; the rest is for tests.
        self.syncs.load(Ordering::Relaxed) > 0 && self.syncs.fetch_sub(1, Ordering::SeqCst) > 0
    }

    pub(crate) fn take_page_limit(&self) -> Option<u32> {
        if self.page_limit.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.page_limit.swap(0, Ordering::SeqCst).checked_sub(1)
    }
}
