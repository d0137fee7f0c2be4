//! Plays a schedule: posts each webhook at its time, several at once, each until it is acknowledged. Writes down when that
//! was, on both sides of the request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use retoma_core::ids::EventId;
use retoma_engine::{Clock, HttpTransport, Transport};
use retoma_providers::generate::{Hook, Schedule};
use retoma_providers::outbound::{WireEnd, WireRequest};
use tokio::task::JoinSet;

/// Requests under way.
const AT_ONCE_MAX: usize = 64;
/// Tries of one webhook; a platform would try for days.
const TRIES: u32 = 50;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);
const TRY_FOR: Duration = Duration::from_secs(20);

/// Where webhooks are posted to, and what proves them.
pub(super) struct Doorstep {
    pub(super) base: String,
    pub(super) hottok: HeaderValue,
    pub(super) hook_secret: HeaderValue,
    pub(super) transport: HttpTransport,
}

/// A webhook whose answer was read.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    /// Its place in the schedule.
    pub(super) hook: usize,
    /// The event that the answer named.
    pub(super) event: EventId,
    /// Before the first byte was written.
    pub(super) posted_at: Timestamp,
    /// After the answer was read: whatever it acknowledges was committed before.
    pub(super) at: Timestamp,
}

/// What came of a schedule.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) acknowledged: Vec<Acknowledged>,
    /// Places in the schedule that were never acknowledged, with what was heard instead.
    pub(super) refused: Vec<(usize, String)>,
}

/// Posts everything. `starts_at` of the schedule's plan is the clock's time of offset zero.
pub(super) async fn play(
    schedule: &Schedule,
    starts_at: Timestamp,
    doorstep: Doorstep,
    clock: Arc<dyn Clock>,
) -> Played {
    let doorstep = Arc::new(doorstep);
    let mut under_way = JoinSet::new();
    let mut played = Played::default();
    for (number, hook) in schedule.hooks.iter().enumerate() {
        let after = SignedDuration::try_from(hook.after).unwrap_or(SignedDuration::MAX);
        let at = starts_at.saturating_add(after).unwrap_or(Timestamp::MAX);
        tokio::time::sleep(clock.real_until(at)).await;
        while under_way.len() >= AT_ONCE_MAX {
            played.note(under_way.join_next().await);
        }
        let request = doorstep.request(hook);
        let (doorstep, clock) = (Arc::clone(&doorstep), Arc::clone(&clock));
        under_way.spawn(async move { (number, doorstep.post(number, request, clock.as_ref()).await) });
        while let Some(done) = under_way.try_join_next() {
            played.note(Some(done));
        }
    }
    while let Some(done) = under_way.join_next().await {
        played.note(Some(done));
    }
    played
}

type Done = Result<(usize, Result<Acknowledged, String>), tokio::task::JoinError>;

impl Played {
    fn note(&mut self, done: Option<Done>) {
        match done {
            Some(Ok((_, Ok(acknowledged)))) => self.acknowledged.push(acknowledged),
            Some(Ok((number, Err(what)))) => self.refused.push((number, what)),
            Some(Err(error)) => self.refused.push((usize::MAX, error.to_string())),
            None => {}
        }
    }
}

impl Doorstep {
    fn request(&self, hook: &Hook) -> WireRequest {
        let (path, name, secret) = match hook.source {
            "hotmart" => ("hotmart", "x-hotmart-hottok", &self.hottok),
            _ => ("zap", "x-hook-secret", &self.hook_secret),
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(name, secret.clone());
        WireRequest { url: format!("{}/in/{path}", self.base), headers, body: Bytes::from(hook.body.to_string()) }
    }

    async fn post(&self, hook: usize, request: WireRequest, clock: &dyn Clock) -> Result<Acknowledged, String> {
        let posted_at = clock.now();
        let mut heard = String::new();
        for _ in 0..TRIES {
            let start_by = clock.monotonic() + TRY_FOR;
            heard = match self.transport.send(request.clone(), TRY_FOR, start_by).await {
                WireEnd::Answer { status: 200, body, .. } => {
                    let at = clock.now();
                    return match event_of(&body) {
                        Some(event) => Ok(Acknowledged { hook, event, posted_at, at }),
                        None => Err("the answer names no event".to_owned()),
                    };
                }
                WireEnd::Answer { status, .. } if status != 503 => return Err(format!("answered {status}")),
                WireEnd::Answer { status, .. } => format!("answered {status}"),
                WireEnd::NotWritten { what } | WireEnd::NoAnswer { what } => what,
            };
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
        Err(heard)
    }
}

fn event_of(body: &[u8]) -> Option<EventId> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    answer["event_id"].as_str()?.parse().ok()
}
