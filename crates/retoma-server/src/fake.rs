//! A fake provider over HTTP, for `retoma demo`, `retoma fake` and tests. The pure fake of `retoma-providers` says what
//! happens; this module makes it happen on a socket: waits before answering, hangs, resets connections, posts the webhooks
//! that a send causes, and keeps the delivery log against which "once" is checked.
//!
//! **Execution model.** [`FakeServer::serve`] owns everything: a task per connection, one that posts webhooks. Nothing
//! outlives it. A delivery is in the log before the request that caused it is answered.
//!
//! Beside the provider's own routes it has some for whoever tries things out: `GET /log`, the deliveries as JSON; `GET /stats`,
//! counts; `GET` and `PUT /faults`, what goes wrong from now on; `POST /say` and `POST /type {number, text}`, the customer
//! writes, or somebody does on the connected phone; `POST /connection {state}`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use retoma_engine::Clock;
use retoma_providers::evolution::fake::{Drop, Effect, Fake, FakeAnswer, Faults};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

mod log;
mod webhooks;

pub use log::{Delivery, DeliveryLog};
pub use webhooks::Webhook;

use webhooks::Post;

/// The largest request that a fake reads.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The longest a fake hangs on a client that does not give up.
const HANG_MAX: Duration = Duration::from_secs(600);
/// Connections at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 1024;

/// What a fake is run with.
pub struct FakeSetup {
    /// The pure fake.
    pub fake: Fake,
    /// The clock of its messages.
    pub clock: Arc<dyn Clock>,
    /// Where its webhooks go; without one they are dropped.
    pub webhook: Option<Webhook>,
    /// A file that every delivery is appended to, as a line of JSON.
    pub log: Option<PathBuf>,
    /// Called for every delivery, as the phone's own screen would light up.
    pub tell: fn(&Delivery),
}

/// A fake that listens and does not serve yet.
pub struct FakeServer {
    listener: TcpListener,
    state: Arc<State>,
    posts: Option<(Webhook, mpsc::Receiver<Post>)>,
}

struct State {
    fake: Mutex<Fake>,
    clock: Arc<dyn Clock>,
    log: DeliveryLog,
    tell: fn(&Delivery),
    posts: Option<mpsc::Sender<Post>>,
    /// Requests to the provider's routes.
    requests: AtomicU64,
    /// Webhooks that found the queue full.
    unposted: AtomicU64,
}

impl FakeServer {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address is taken, or the log cannot be written.
    pub async fn bind(address: SocketAddr, setup: FakeSetup) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let log = DeliveryLog::new(setup.log.as_deref())?;
        let (sender, receiver) = mpsc::channel(webhooks::QUEUE_MAX);
        let posts = setup.webhook.map(|webhook| (webhook, receiver));
        let state = State {
            fake: Mutex::new(setup.fake),
            clock: setup.clock,
            log,
            tell: setup.tell,
            posts: posts.is_some().then_some(sender),
            requests: AtomicU64::new(0),
            unposted: AtomicU64::new(0),
        };
        Ok(Self { listener, state: Arc::new(state), posts })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The delivery log.
    pub fn log(&self) -> DeliveryLog {
        self.state.log.clone()
    }

    /// Serves until `stop` resolves; then connections are cut off and webhooks given up, as when a provider goes down.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        if let Some((webhook, posts)) = self.posts {
            tasks.spawn(webhooks::run(webhook, Arc::clone(&self.state.clock), posts));
        }
        let mut stop = std::pin::pin!(stop);
        loop {
            // Every arm is cancel-safe: accept leaves a connection in the queue, join_next loses no task.
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = tasks.join_next() => {}
                accepted = self.listener.accept(), if tasks.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => { tasks.spawn(connection(stream, Arc::clone(&self.state))); }
                    // Out of file descriptors, mostly: let some connections end instead of spinning.
                    Err(_) => sleep(Duration::from_millis(50)).await,
                },
            }
        }
        tasks.shutdown().await;
    }
}

/// Ends a connection without an answer: hyper drops it when a service fails.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut off on purpose")]
struct CutOff;

async fn connection(stream: TcpStream, state: Arc<State>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        // Boxed, so that the connection may be taken apart after its end.
        Box::pin(async move { state.answer(request).await })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if (&mut connection).await.is_err_and(|error| error.is_user()) {
        // A reset, and not a polite end: that is what a provider's crashed process looks like.
        let _ = connection.into_parts().io.into_inner().set_zero_linger();
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, CutOff> {
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else { return Err(CutOff) };
        match head.uri.path() {
            "/log" => return Ok(with_json(&json!(self.log.all()))),
            "/stats" => return Ok(with_json(&self.stats())),
            "/faults" | "/say" | "/type" | "/connection" => {
                return Ok(self.control(head.method.as_str(), head.uri.path(), &body.to_bytes()));
            }
            _ => {}
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let answer = self.fake.lock().expect("the fake never panics").handle(
            now,
            head.method.as_str(),
            path,
            &head.headers,
            &body.to_bytes(),
        );
        self.carry_out(answer).await
    }

    async fn carry_out(&self, answer: FakeAnswer) -> Result<Response<Full<Bytes>>, CutOff> {
        for effect in answer.effects {
            match effect {
                Effect::Delivered(delivered) => {
                    let delivery = Delivery::from(delivered);
                    (self.tell)(&delivery);
                    if let Err(error) = self.log.add(delivery) {
                        // A log with a gap proves nothing: better no answer than one that looks like a clean run.
                        tracing::error!(event = "fake_log_failed", error = %error, "the delivery log cannot be written");
                        return Err(CutOff);
                    }
                }
                Effect::Webhook { after, body } => self.post(Post { after, body }),
            }
        }
        sleep(answer.after).await;
        match answer.drop {
            None => {}
            Some(Drop::Reset) => return Err(CutOff),
            Some(Drop::Hang) => {
                // The client gives up first, mostly, and this future is dropped with its connection.
                sleep(HANG_MAX).await;
                return Err(CutOff);
            }
        }
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = with_body(status, answer.content_type, answer.body);
        if let Some(seconds) = answer.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Ok(response)
    }

    /// What somebody who tries things out asks for.
    fn control(&self, method: &str, path: &str, body: &[u8]) -> Response<Full<Bytes>> {
        let mut fake = self.fake.lock().expect("the fake never panics");
        if (method, path) == ("GET", "/faults") {
            return with_json(&json!(fake.faults()));
        }
        let wrong = |what: &str| {
            let body = json!({ "error": what }).to_string();
            with_body(StatusCode::BAD_REQUEST, "application/json", Bytes::from(body))
        };
        if (method, path) == ("PUT", "/faults") {
            return match serde_json::from_slice::<Faults>(body).map_err(|error| error.to_string()) {
                Err(why) => wrong(&why),
                Ok(faults) => match faults.check() {
                    Err(why) => wrong(&why),
                    Ok(()) => {
                        fake.set_faults(faults);
                        with_json(&json!(fake.faults()))
                    }
                },
            };
        }
        let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let now = self.clock.now();
        let said = (body["number"].as_str(), body["text"].as_str());
        let body = match (method, path, said) {
            ("POST", "/say", (Some(number), Some(text))) => fake.customer_says(now, number, text),
            ("POST", "/type", (Some(number), Some(text))) => fake.owner_types(now, number, text),
            ("POST", "/connection", _) if body["state"].is_string() => {
                fake.connection(now, body["state"].as_str().unwrap_or_default())
            }
            ("POST", "/connection", _) => return wrong("say {\"state\": \"open\"}, connecting or close"),
            ("POST", ..) => return wrong("say {\"number\": \"5541999990001\", \"text\": \"oi\"}"),
            _ => return wrong("use POST, or GET and PUT for /faults"),
        };
        drop(fake);
        if self.posts.is_none() {
            return wrong("the fake was started without --webhook: nobody would hear of it");
        }
        self.post(Post { after: Duration::ZERO, body });
        with_json(&json!({ "posted": true }))
    }

    fn post(&self, post: Post) {
        let Some(posts) = &self.posts else { return };
        if posts.try_send(post).is_err() {
            // Bounded like everything else. The real one loses webhooks, too.
            self.unposted.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stats(&self) -> serde_json::Value {
        json!({
            "requests": self.requests.load(Ordering::Relaxed),
            "delivered": self.log.len(),
            "webhooks_dropped": self.unposted.load(Ordering::Relaxed),
        })
    }
}

fn with_body(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with_json(body: &serde_json::Value) -> Response<Full<Bytes>> {
    with_body(StatusCode::OK, "application/json", Bytes::from(body.to_string()))
}

#[cfg(test)]
mod tests;
