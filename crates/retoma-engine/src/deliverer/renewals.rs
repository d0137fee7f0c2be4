//! Perishable values (D10): before a message that would carry a dead code leaves, a tool of the seller's is asked for a new one.
//!
//! Like the guard, it is asked beside the loop while the task is put off. What it answers becomes an event of the contact
//! (`values.renewed`), so that the new code is on record, later messages carry it, and touches that count back from its expiry
//! move; only when that event is decided does the message leave. A tool that cannot help leaves the message to the check:
//! without the code if it can do without, else avoided as `perished`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use retoma_core::compose::Renew;
use retoma_core::event::{EventData, EventKind, Renewed};
use retoma_core::ids::{ChannelName, EventId, TaskId};
use retoma_core::keys::digest16;
use retoma_core::state::ContactView;
use retoma_core::task::Task;
use retoma_providers::outbound::WireEnd;
use retoma_store::{Entry, Intake, NewEvent, Store, Subject};
use tokio::task::JoinSet;

use crate::deliverer::guard;
use crate::shared::Shared;
use crate::transport::Transport;

/// What the question is called in its body.
const QUESTION: &str = "values.renew";
/// The longest a tool may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How soon a task that waits for an answer is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Between two questions about one task, where the tool could not answer.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Questions about one task.
const TRIES: u32 = 3;
/// An answer is decided within this time, or something is wrong with it.
const DECIDED_WITHIN: Duration = Duration::from_secs(60);
/// Tasks remembered; beyond that all are asked for anew.
const KNOWN_MAX: usize = 20_000;
/// The longest new value.
const VALUE_BYTES_MAX: usize = 4096;

type Known = Arc<Mutex<HashMap<TaskId, (State, Timestamp)>>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Asked { tries: u32 },
    Renewed,
    Failed { tries: u32 },
}

/// Questions under way, and what came of them.
#[derive(Default)]
pub(crate) struct Renewals {
    known: Known,
    asking: JoinSet<()>,
}

impl Renewals {
    /// Until when the task waits for its value; `None` where nobody can renew it.
    pub(crate) fn ask<S: Store, T: Transport>(
        &mut self,
        shared: &Arc<Shared>,
        (store, transport): (&S, &Arc<T>),
        (view, task, renew): (&ContactView, &Task, &Renew),
        now: Timestamp,
    ) -> Option<Timestamp> {
        while self.asking.try_join_next().is_some() {}
        let tries = {
            let mut known = self.known.lock().expect("no code panics while it holds the answers");
            let tries = match known.get(&task.id) {
                Some((State::Asked { .. }, at)) if *at + TIMEOUT * 2 > now => return Some(now + LOOK_EVERY),
                Some((State::Renewed, at)) if *at + DECIDED_WITHIN > now => return Some(now + LOOK_EVERY),
                Some((State::Failed { tries }, at)) if *tries < TRIES && *at + AGAIN_AFTER > now => {
                    return Some(*at + AGAIN_AFTER);
                }
                Some((State::Failed { tries }, _)) if *tries >= TRIES => return None,
                Some((State::Asked { tries } | State::Failed { tries }, _)) => *tries,
                // A new value that is dead again, long after.
                Some((State::Renewed, _)) | None => 0,
            };
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(task.id.clone(), (State::Asked { tries: tries + 1 }, now));
            tries + 1
        };
        let channel = shared.setup.channels.get(&ChannelName::new(&renew.ask));
        let conversation = task.conversation?;
        let Some(request) =
            channel.and_then(|channel| guard::question(channel, QUESTION, Some(renew), view, task, now))
        else {
            tracing::error!(
                event = "renewal_missing",
                channel = renew.ask,
                "no http channel of that name; nothing is renewed"
            );
            return None;
        };
        let (shared, transport, known) = (Arc::clone(shared), Arc::clone(transport), Arc::clone(&self.known));
        let (store, task, renew) = (store.clone(), task.clone(), renew.clone());
        self.asking.spawn(async move {
            let start_by = shared.clock.monotonic() + TIMEOUT;
            let end = transport.send(request, TIMEOUT, start_by).await;
            let now = shared.clock.now();
            let state = match read(&end, &renew, now) {
                Some(values) => {
                    let event = renewed(&task, EventId(shared.ids.next(now)), Renewed { conversation, values }, now);
                    let id = event.id;
                    match store.append_events(vec![Intake { request: None, events: vec![event] }]).await {
                        Ok(_) => {
                            shared.signals.committed(id);
                            State::Renewed
                        }
                        Err(_) => State::Failed { tries },
                    }
                }
                None => State::Failed { tries },
            };
            known.lock().expect("no code panics while it holds the answers").insert(task.id.clone(), (state, now));
            shared.signals.due.notify_one();
        });
        Some(now + LOOK_EVERY)
    }
}

/// `{"values": {"pix.code": "..", "pix.expires_at": "2026-12-02T13:00:00Z"}}` with a 2xx: the value itself, alive, and whatever
/// stands beside it (`pix.*`). Anything else is no answer.
fn read(end: &WireEnd, renew: &Renew, now: Timestamp) -> Option<BTreeMap<String, String>> {
    let WireEnd::Answer { status: 200..=299, body, .. } = end else { return None };
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let place = renew.value.split_once('.').map_or(renew.value.as_str(), |(place, _)| place);
    let beside = |name: &str| name == renew.value || name == renew.expiry || name.split('.').next() == Some(place);
    let values: BTreeMap<String, String> = body
        .get("values")?
        .as_object()?
        .iter()
        .filter(|(name, _)| beside(name))
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .filter(|(_, value)| !value.is_empty() && value.len() <= VALUE_BYTES_MAX)
        .collect();
    let lives_until: Timestamp = values.get(&renew.expiry)?.parse().ok()?;
    (values.contains_key(&renew.value) && lives_until > now).then_some(values)
}

fn renewed(task: &Task, id: EventId, renewed: Renewed, now: Timestamp) -> NewEvent {
    let values: Vec<&[u8]> =
        renewed.values.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]).collect();
    let parts: Vec<&[u8]> =
        [task.tenant.as_str().as_bytes(), b"renewed", task.id.as_str().as_bytes()].into_iter().chain(values).collect();
    let key = digest16("delivery", &parts);
    NewEvent {
        id,
        tenant: task.tenant.clone(),
        source: "renewal".into(),
        kind: EventKind::ValuesRenewed,
        key: format!("renewed/{}", task.id),
        delivery_key: key,
        business_key: None,
        digest: key,
        entry: Entry::Received,
        subject: Subject::Contact(task.contact),
        occurred_at: now,
        received_at: now,
        urgent: true,
        data: EventData { renewed: Some(renewed), flow: Some(task.flow.clone()), ..EventData::default() },
        receipt: None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;

    // D10
    #[test]
    fn only_a_value_that_lives_is_taken() {
        let now: Timestamp = "2026-12-02T13:00:00Z".parse().unwrap();
        let renew = Renew { value: "pix.code".into(), expiry: "pix.expires_at".into(), ask: "loja".into() };
        let good = r#"{"values":{"pix.code":"NOVO","pix.expires_at":"2026-12-02T13:30:00Z","pix.qrcode":"Q","offer.name":"x"}}"#;
        let table = [
            (200, good, Some(3)),
            (201, good, Some(3)),
            (302, good, None),
            (500, good, None),
            (200, r#"{"values":{"pix.code":"NOVO"}}"#, None),
            (200, r#"{"values":{"pix.code":"NOVO","pix.expires_at":"2026-12-02T13:00:00Z"}}"#, None),
            (200, r#"{"values":{"pix.code":"","pix.expires_at":"2026-12-02T14:00:00Z"}}"#, None),
            (200, r#"{"values":{"pix.code":7,"pix.expires_at":"2026-12-02T14:00:00Z"}}"#, None),
            (200, r#"{"pix.code":"NOVO"}"#, None),
            (200, "", None),
        ];
        for (status, body, expected) in table {
            let end =
                WireEnd::Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) };
            assert_eq!(read(&end, &renew, now).map(|values| values.len()), expected, "{status} {body}");
        }
    }
}
