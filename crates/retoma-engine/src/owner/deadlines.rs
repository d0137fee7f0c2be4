//! The sweeper: turns a deadline that passed into a `clock.timeout` event (C5).
//!
//! It only emits. The event's key derives from the conversation and the deadline, so that sweeping twice adds nothing;
//! what the timeout means is decided like any event, and one that a newer transition overtook is stale.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::event::{Deadline, EventData, EventKind};
use retoma_core::ids::{ConversationId, EventId};
use retoma_core::keys::digest16;
use retoma_store::{DueDeadline, Entry, Error, Intake, NewEvent, Store, Subject};

use crate::shared::Shared;

/// Deadlines in one sweep.
const SWEEP_MAX: usize = 512;
/// How long an emitted timeout may stay undecided before it is emitted again (the same key: harmless).
const EMIT_AGAIN: Duration = Duration::from_secs(30);

/// What was emitted and not seen decided yet.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    emitted: HashMap<(ConversationId, Timestamp), Duration>,
    next: Option<Timestamp>,
}

impl Deadlines {
    /// When the next deadline falls due, as far as the last sweep saw.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.next
    }

    /// Emits the timeouts of deadlines that passed. Answers whether any was new.
    pub(crate) async fn emit<S: Store>(&mut self, store: &S, shared: &Shared) -> Result<bool, Error> {
        let (now, clock) = (shared.clock.now(), shared.clock.monotonic());
        self.emitted.retain(|_, at| clock.saturating_sub(*at) < EMIT_AGAIN);
        let due = store.load_deadlines(now, SWEEP_MAX + self.emitted.len()).await?;
        let fresh: Vec<DueDeadline> =
            due.into_iter().filter(|due| !self.emitted.contains_key(&(due.conversation, due.at))).collect();
        if fresh.is_empty() {
            self.next = store.next_wake().await?.deadline_at;
            return Ok(false);
        }
        let events: Vec<NewEvent> = fresh.iter().map(|due| timeout(due, EventId(shared.ids.next(now)), now)).collect();
        let lowest = events.iter().map(|event| event.id).min();
        store.append_events(vec![Intake { request: None, events }]).await?;
        self.emitted.extend(fresh.iter().map(|due| ((due.conversation, due.at), clock)));
        if let Some(lowest) = lowest {
            shared.signals.committed(lowest);
        }
        Ok(true)
    }
}

fn timeout(due: &DueDeadline, id: EventId, now: Timestamp) -> NewEvent {
    let at = due.at.as_millisecond().to_string();
    let parts: [&[u8]; 4] =
        [due.tenant.as_str().as_bytes(), b"clock", due.conversation.as_bytes().as_slice(), at.as_bytes()];
    let key = digest16("delivery", &parts);
    NewEvent {
        id,
        tenant: due.tenant.clone(),
        source: "clock".into(),
        kind: EventKind::ClockTimeout,
        key: format!("clock/{}/{at}", due.conversation),
        delivery_key: key,
        business_key: None,
        digest: key,
        entry: Entry::Received,
        subject: Subject::Contact(due.contact),
        occurred_at: due.at,
        received_at: now,
        urgent: false,
        data: EventData {
            deadline: Some(Deadline { conversation: due.conversation, at: due.at }),
            ..EventData::default()
        },
        receipt: None,
    }
}
