//! The figures of the demo: one line each second, and the summary.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use retoma_engine::Clock;
use retoma_server::AppState;
use retoma_sqlite::SqliteStore;
use retoma_store::Store;
use serde_json::json;
use tokio::sync::oneshot;

use crate::output;

/// Looks at the running demo.
pub(super) struct Watch {
    pub(super) store: SqliteStore,
    pub(super) state: AppState<SqliteStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) zone: TimeZone,
}

/// Figures at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// The shop's clock.
    pub(super) at: String,
    /// Webhooks that were acknowledged, repetitions included.
    pub(super) received: u64,
    /// Repetitions stopped: of a delivery, or of a fact under another id.
    pub(super) duplicates: u64,
    /// Events decided, deadlines included.
    pub(super) decided: u64,
    /// Messages that wait for their time.
    pub(super) scheduled: u64,
    pub(super) sent: u64,
    /// Closed by the check before sending.
    pub(super) avoided: u64,
    /// Sends whose outcome nobody could know at first.
    pub(super) ambiguous: u64,
    pub(super) dead: u64,
    /// A person must decide.
    pub(super) held: u64,
    pub(super) violations: usize,
}

impl Watch {
    /// The figures now.
    pub(super) async fn now(&self) -> Result<Counts, retoma_store::Error> {
        let now = self.clock.now();
        let stats = self.store.stats(now).await?;
        let event = |word: &str| stats.events.get(word).copied().unwrap_or(0);
        let task = |word: &str| stats.tasks.get(word).copied().unwrap_or(0);
        let door = |word: &str| self.state.counters().total(word);
        let repeated = door("duplicate") + door("repeated_fact");
        Ok(Counts {
            at: self.zone.to_datetime(now).strftime("%a %H:%M").to_string(),
            received: ["received", "ignored", "held", "quarantined"].into_iter().map(door).sum::<u64>() + repeated,
            duplicates: repeated,
            decided: event("decided"),
            scheduled: task("scheduled") + task("failed"),
            sent: task("sent"),
            avoided: stats.avoided.values().sum(),
            ambiguous: stats.ambiguous,
            dead: stats.dead,
            held: task("held") + event("held") + event("quarantined"),
            violations: 0,
        })
    }
}

/// Prints a line each second until told to stop.
pub(super) async fn print_each_second(watch: Watch, mut stopped: oneshot::Receiver<()>) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    seconds.tick().await;
    loop {
        tokio::select! {
            // The end of the run.
            _ = &mut stopped => return,
            // Another second.
            _ = seconds.tick() => {}
        }
        // A line that cannot be had is no reason to stop the shop.
        if let Ok(counts) = watch.now().await {
            output::line(&counts.as_line());
        }
    }
}

impl Counts {
    fn as_line(&self) -> String {
        let Self { at, received, duplicates, decided, scheduled, sent, avoided, ambiguous, dead, .. } = self;
        format!(
            "{at}  received {received:>5}  duplicates stopped {duplicates:>4}  decided {decided:>5}  scheduled {scheduled:>4}  \
             sent {sent:>5}  avoided {avoided:>4}  ambiguous {ambiguous:>3}  dead {dead:>2}"
        )
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        format!(
            "{} webhooks acknowledged, {} repetitions stopped, {} events decided; messages: {} sent, {} avoided, {} still \
             scheduled, {} held for a person, {} dead; {} sends were ambiguous",
            self.received,
            self.duplicates,
            self.decided,
            self.sent,
            self.avoided,
            self.scheduled,
            self.held,
            self.dead,
            self.ambiguous,
        )
    }

    /// The object that INTERFACE.md names.
    pub(super) fn as_json(&self) -> serde_json::Value {
        json!({
            "received": self.received,
            "duplicates": self.duplicates,
            "decided": self.decided,
            "scheduled": self.scheduled,
            "sent": self.sent,
            "avoided": self.avoided,
            "ambiguous": self.ambiguous,
            "dead": self.dead,
            "held": self.held,
            "violations": self.violations,
        })
    }
}
