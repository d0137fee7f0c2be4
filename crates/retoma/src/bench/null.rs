//! The null server: what any program pays that stores and sends the same through the same parts. The same HTTP stack,
//! committer, store verbs and client; the same rows in the same batches; but no parsing, no credential, no identity read
//! from a body, no decision, no check. The real server is judged by how close it comes (DESIGN.md, "Speed").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use retoma_core::ids::{ContactId, TaskId};
use retoma_engine::{Engine, HttpTransport, NewId, Transport};
use retoma_providers::outbound::WireEnd;
use retoma_sqlite::SqliteStore;
use retoma_store::{Appended, Committed, Finish, Started, Store};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::Kind;
use super::effects::{Effects, Message};
use super::rows::{BODY_BYTES_MAX, Rows};
use super::sale::Sale;
use super::stored::owner;

/// As many as the owner decides, the deliverer starts and the completer ends in one commit.
const DECIDE_MAX: usize = 1024;
const START_MAX: usize = 512;
const FINISH_MAX: usize = 512;
/// Rows of a backlog read at once.
const FEED_PAGE: usize = 10_000;
/// Room between the loops: more than the generator has connections.
const WAITING_MAX: usize = 8192;
/// The longest a request may take, and the longest its first byte.
const SEND_FOR: Duration = Duration::from_secs(45);
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(2);

struct Null {
    engine: Engine<SqliteStore>,
    ids: NewId,
    rows: Rows,
    /// Where stored sales go on; `None` where intake is all there is.
    decide: Option<mpsc::Sender<(Sale, Appended)>>,
}

/// The loops behind the router. They end when the router is gone and everything was sent; those of a backlog when they are
/// told to.
#[derive(Default)]
pub(super) struct Behind {
    loops: JoinSet<anyhow::Result<()>>,
    stop: Arc<AtomicBool>,
}

impl Behind {
    /// Waits until everything was sent.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.loops.join_next().await {
            ended.context("a loop of the null server broke")??;
        }
        Ok(())
    }
}

/// The null server's router, and its loops.
pub(super) fn router(
    kind: Kind,
    engine: &Engine<SqliteStore>,
    sink: &str,
    transport: Arc<HttpTransport>,
) -> anyhow::Result<(Router, Behind)> {
    let (ids, now) = (NewId::new(), engine.clock().now());
    let rows = Rows::new(kind.happening(), now)?;
    let mut loops = JoinSet::new();
    let decide = match kind {
        Kind::Pipeline => {
            let effects = Effects::new(&rows, sink, &ids, now)?;
            let rows = Rows::new(kind.happening(), now)?;
            let work = Work { engine: engine.clone(), rows, effects, transport, free: None };
            Some(start(Arc::new(work), &mut loops))
        }
        _ => None,
    };
    let null = Arc::new(Null { engine: engine.clone(), ids, rows, decide });
    let behind = Behind { loops, stop: Arc::default() };
    Ok((Router::new().route("/in/{source}", post(take)).with_state(null), behind))
}

/// Sends a backlog: what waits is read once, then started, sent and ended in the same batches and with as many requests under
/// way as the real deliverer; but nothing is composed, looked up or checked.
pub(super) fn deliver(
    engine: &Engine<SqliteStore>,
    sink: &str,
    transport: Arc<HttpTransport>,
    seats: usize,
) -> anyhow::Result<Behind> {
    let (ids, now) = (NewId::new(), engine.clock().now());
    let rows = Rows::new(Kind::Deliver.happening(), now)?;
    let effects = Effects::new(&rows, sink, &ids, now)?;
    let free = Arc::new(Semaphore::new(seats));
    let work = Arc::new(Work { engine: engine.clone(), rows, effects, transport, free: Some(Arc::clone(&free)) });
    let (start, starts) = mpsc::channel(WAITING_MAX);
    let (land, lands) = mpsc::channel(WAITING_MAX);
    let (starting, finishing) = (Arc::clone(&work), Arc::clone(&work));
    let mut behind = Behind::default();
    let stop = Arc::clone(&behind.stop);
    behind.loops.spawn(async move { work.feed(&free, &stop, start).await });
    behind.loops.spawn(async move { starting.start(starts, land).await });
    behind.loops.spawn(async move { finishing.finish(lands).await });
    Ok(behind)
}

async fn take(State(null): State<Arc<Null>>, request: Request) -> Response {
    let number = request.uri().query().and_then(|query| query.strip_prefix("n=")?.parse().ok());
    let Some(sale) = number.map(Sale) else { return StatusCode::BAD_REQUEST.into_response() };
    let Ok(body) = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let intake = null.rows.intake(sale, Some(body), &null.ids, null.engine.clock().now());
    let event = intake.events[0].id;
    let Ok(mut appended) = null.engine.submit(intake).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    if let (Some(decide), Some(appended)) = (&null.decide, appended.pop())
        && decide.send((sale, appended)).await.is_err()
    {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let answer = format!(r#"{{"status":"received","event_id":"{event}"}}"#);
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

struct Work {
    engine: Engine<SqliteStore>,
    rows: Rows,
    effects: Effects,
    transport: Arc<HttpTransport>,
    /// Seats of a backlog; the closed loop of the pipeline needs none.
    free: Option<Arc<Semaphore>>,
}

type Landed = (Message, u32, WireEnd);

/// Starts the three loops of a pipeline; answers where stored sales go in.
fn start(work: Arc<Work>, loops: &mut JoinSet<anyhow::Result<()>>) -> mpsc::Sender<(Sale, Appended)> {
    let (decide, decides) = mpsc::channel(WAITING_MAX);
    let (start, starts) = mpsc::channel(WAITING_MAX);
    let (land, lands) = mpsc::channel(WAITING_MAX);
    let (deciding, starting) = (Arc::clone(&work), Arc::clone(&work));
    loops.spawn(async move { deciding.decide(decides, start).await });
    loops.spawn(async move { starting.start(starts, land).await });
    loops.spawn(async move { work.finish(lands).await });
    decide
}

impl Work {
    /// Hands out what waits, one message for each seat that is free.
    async fn feed(&self, free: &Semaphore, stop: &AtomicBool, start: mpsc::Sender<Message>) -> anyhow::Result<()> {
        let mut after = 0;
        loop {
            let page = format!(
                "SELECT seq, id, lower(hex(contact)) FROM task WHERE seq > {after} AND status = 'scheduled' AND done = 0 ORDER BY seq LIMIT {FEED_PAGE}"
            );
            let rows = self.engine.store().query_sql(page).await?.rows;
            let Some(last) = rows.last().and_then(|row| row.first()?.as_i64()) else { return Ok(()) };
            after = last;
            for row in &rows {
                let text = |at: usize| row.get(at).and_then(|value| value.as_str());
                let (Some(task), Some(contact)) = (text(1), text(2)) else { bail!("a task has an id and a contact") };
                let message = Message { contact: ContactId(contact.parse()?), task: TaskId::new(task) };
                free.acquire().await?.forget();
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                start.send(message).await.context("the next loop is gone")?;
            }
        }
    }

    async fn decide(
        &self,
        mut stored: mpsc::Receiver<(Sale, Appended)>,
        start: mpsc::Sender<Message>,
    ) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(DECIDE_MAX);
        while stored.recv_many(&mut batch, DECIDE_MAX).await > 0 {
            let now = self.engine.clock().now();
            let mut decisions = Vec::with_capacity(batch.len());
            let mut messages = Vec::with_capacity(batch.len());
            for (sale, appended) in batch.drain(..) {
                let Appended::New { event, contact: Some(contact) } = appended else { continue };
                let (decision, message) = self.effects.decision(&self.rows, sale, event, contact, now);
                decisions.push(decision);
                messages.push(message);
            }
            let committed = self.engine.store().commit_decisions(owner(), decisions).await?;
            ensure!(committed.iter().all(|one| matches!(one, Committed::Done { .. })), "a decision was not taken");
            for message in messages {
                start.send(message).await.context("the next loop is gone")?;
            }
        }
        Ok(())
    }

    async fn start(
        self: &Arc<Self>,
        mut decided: mpsc::Receiver<Message>,
        land: mpsc::Sender<Landed>,
    ) -> anyhow::Result<()> {
        let mut sends = JoinSet::new();
        let mut batch = Vec::with_capacity(START_MAX);
        while decided.recv_many(&mut batch, START_MAX).await > 0 {
            while sends.try_join_next().is_some() {}
            let clock = self.engine.clock();
            let starts = batch.iter().map(|message| self.effects.start(message)).collect();
            let start_by = clock.monotonic() + FIRST_BYTE_WITHIN;
            let started = self.engine.store().start_attempts(owner(), starts, clock.now()).await?;
            for (message, started) in batch.drain(..).zip(started) {
                let Started::Started { attempt } = started else { bail!("a start was not taken: {started:?}") };
                let (work, land) = (Arc::clone(self), land.clone());
                sends.spawn(async move {
                    let end = work.transport.send(work.effects.request(&message), SEND_FOR, start_by).await;
                    // A seat is free as soon as the answer is there, as at the real one.
                    if let Some(free) = &work.free {
                        free.add_permits(1);
                    }
                    let _ = land.send((message, attempt, end)).await;
                });
            }
        }
        while sends.join_next().await.is_some() {}
        Ok(())
    }

    async fn finish(&self, mut landed: mpsc::Receiver<Landed>) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(FINISH_MAX);
        while landed.recv_many(&mut batch, FINISH_MAX).await > 0 {
            let now = self.engine.clock().now();
            let finishes: anyhow::Result<Vec<Finish>> = batch.drain(..).map(|one| self.end_of(one, now)).collect();
            self.engine.store().finish_attempts(finishes?).await?;
        }
        Ok(())
    }

    fn end_of(&self, (message, attempt, end): Landed, now: jiff::Timestamp) -> anyhow::Result<Finish> {
        match end {
            WireEnd::Answer { status: 200, .. } => Ok(self.effects.finish(message, attempt, now)),
            other => bail!("the sink did not take a message: {other:?}"),
        }
    }
}
