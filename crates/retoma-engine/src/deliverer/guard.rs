//! The HTTP guard of D4: before a reminder leaves, somebody outside is asked whether it was paid.
//!
//! The deliverer never waits for it: a task that needs an answer is put off by the time that one may take, the question goes
//! out beside the loop, and the next look finds the answer here. Answers hold for as long as the flow says; no answer is
//! remembered, too, so that a guard that is down is not asked for every message. Nothing here decides: the check before
//! sending does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::compose::{Renew, vars_of};
use retoma_core::flow::{Flow, Revalidate};
use retoma_core::ids::{ChannelName, TaskId};
use retoma_core::send_check::Guard;
use retoma_core::state::ContactView;
use retoma_core::task::{MessageClass, Task};
use retoma_providers::outbound::{Channel, ChannelKind, Outbound, Outgoing, WireEnd, WireRequest};
use tokio::task::JoinSet;

use crate::shared::Shared;
use crate::transport::Transport;

/// What the question is called in its body.
const QUESTION: &str = "guard.paid";
/// The first byte leaves within this time, or the question is not asked.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(2);
/// Answers remembered; beyond that the oldest are asked for again.
const KNOWN_MAX: usize = 20_000;

type Known = Arc<Mutex<HashMap<TaskId, (Answer, Timestamp)>>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// Asked, and not answered yet.
    Asked,
    Said(Guard),
}

/// Questions under way, and what was answered.
#[derive(Default)]
pub(crate) struct Guards {
    known: Known,
    asking: JoinSet<()>,
}

impl Guards {
    /// What the guard says of a task; asks it where nothing is known any more. `None`: no guard, or no answer yet.
    pub(crate) fn ask<T: Transport>(
        &mut self,
        shared: &Arc<Shared>,
        transport: &Arc<T>,
        (flow, view, task): (&Flow, &ContactView, &Task),
        now: Timestamp,
    ) -> Option<Guard> {
        while self.asking.try_join_next().is_some() {}
        let revalidate = task.cadence.as_ref().and_then(|name| flow.cadences.get(name)?.revalidate.as_ref());
        let revalidate = revalidate.filter(|_| task.class == MessageClass::Reminder)?;
        {
            let mut known = self.known.lock().expect("no code panics while it holds the answers");
            match known.get(&task.id) {
                Some((Answer::Said(guard), at)) if *at + holds(*guard, revalidate) > now => return Some(*guard),
                // One question at a time; a lost one is asked again.
                Some((Answer::Asked, at)) if *at + revalidate.timeout * 2 > now => return None,
                _ => {}
            }
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(task.id.clone(), (Answer::Asked, now));
        }
        let channel = shared.setup.channels.get(&ChannelName::new(&revalidate.ask));
        match channel.and_then(|channel| question(channel, QUESTION, None, view, task, now)) {
            Some(request) => self.send(shared, transport, task, request, revalidate.timeout),
            None => {
                tracing::error!(
                    event = "guard_missing",
                    channel = revalidate.ask,
                    "no http channel of that name; reminders wait"
                );
                note(&self.known, &task.id, Guard::Unknown, now);
                return Some(Guard::Unknown);
            }
        }
        None
    }

    fn send<T: Transport>(
        &mut self,
        shared: &Arc<Shared>,
        transport: &Arc<T>,
        task: &Task,
        request: WireRequest,
        timeout: Duration,
    ) {
        let (shared, transport, known, id) =
            (Arc::clone(shared), Arc::clone(transport), Arc::clone(&self.known), task.id.clone());
        self.asking.spawn(async move {
            let start_by = shared.clock.monotonic() + FIRST_BYTE_WITHIN.min(timeout);
            let end = transport.send(request, timeout, start_by).await;
            note(&known, &id, read(&end), shared.clock.now());
            shared.signals.due.notify_one();
        });
    }
}

/// How long an answer is used. What is paid stays paid for long enough to close the task.
fn holds(guard: Guard, revalidate: &Revalidate) -> Duration {
    match guard {
        Guard::Unpaid | Guard::Paid => revalidate.max_age,
        // Put off for that long; then it is asked anew.
        Guard::Unknown => revalidate.retry_in,
    }
}

fn note(known: &Known, task: &TaskId, guard: Guard, now: Timestamp) {
    let mut known = known.lock().expect("no code panics while it holds the answers");
    known.insert(task.clone(), (Answer::Said(guard), now));
}

/// The same signed envelope as every message to an `http` channel.
pub(super) fn question(
    channel: &Channel,
    name: &str,
    renew: Option<&Renew>,
    view: &ContactView,
    task: &Task,
    now: Timestamp,
) -> Option<WireRequest> {
    if !matches!(channel.kind, ChannelKind::Http { .. }) {
        return None;
    }
    let (mut vars, _) = vars_of(view, task, now);
    if let Some(order) = &task.reference.order {
        vars.insert("order.platform".to_owned(), order.platform.clone());
        vars.insert("order.account".to_owned(), order.account.clone());
        vars.insert("order.transaction".to_owned(), order.transaction.clone());
    }
    if let Some(renew) = renew {
        vars.insert("renew".to_owned(), renew.value.clone());
    }
    let outgoing = Outgoing {
        other_spelling: false,
        task: &task.id,
        attempt: task.attempts + 1,
        identities: &view.identities,
        text: "",
        message: name,
        vars: &vars,
        unix_seconds: now.as_second(),
    };
    channel.request(&outgoing).ok()
}

/// `{"paid": true}` or `{"paid": false}` with a 2xx. Anything else is no answer.
fn read(end: &WireEnd) -> Guard {
    let WireEnd::Answer { status: 200..=299, body, .. } = end else { return Guard::Unknown };
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    match body.as_ref().and_then(|body| body.get("paid")).and_then(serde_json::Value::as_bool) {
        Some(true) => Guard::Paid,
        Some(false) => Guard::Unpaid,
        None => Guard::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;

    fn answer(status: u16, body: &str) -> WireEnd {
        WireEnd::Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    // D4: "A guard that cannot answer never means send".
    #[test]
    fn only_a_plain_no_means_unpaid() {
        let table = [
            (answer(200, r#"{"paid":true}"#), Guard::Paid),
            (answer(200, r#"{"paid":false}"#), Guard::Unpaid),
            (answer(204, ""), Guard::Unknown),
            (answer(200, r#"{"paid":"false"}"#), Guard::Unknown),
            (answer(200, "not json"), Guard::Unknown),
            (answer(200, "{}"), Guard::Unknown),
            (answer(404, r#"{"paid":false}"#), Guard::Unknown),
            (answer(500, r#"{"paid":false}"#), Guard::Unknown),
            (answer(302, r#"{"paid":false}"#), Guard::Unknown),
            (WireEnd::NoAnswer { what: "timeout".to_owned() }, Guard::Unknown),
            (WireEnd::NotWritten { what: "refused".to_owned() }, Guard::Unknown),
        ];
        for (end, expected) in table {
            assert_eq!(read(&end), expected, "{end:?}");
        }
    }
}
