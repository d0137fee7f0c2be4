//! Serving a router on a listener: HTTP/1.1 with limits on headers, connections and idle time, and a graceful end.
//!
//! Every connection is a task of one `JoinSet`; nothing outlives [`serve`]. When told to stop it takes no new connection,
//! lets requests under way finish, and cuts off what takes too long.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::address::Peer;

/// What a server allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; more wait in the listener's queue.
    pub connections: usize,
    /// The longest a client may take for a request's head, idle time between requests included.
    pub head_for: Duration,
    /// How long requests under way may go on after the stop.
    pub drain_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, head_for: Duration::from_secs(30), drain_for: Duration::from_secs(10) }
    }
}

/// Serves until `stop` resolves and what was under way is answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // Every arm is cancel-safe: accept leaves a connection in the queue, join_next loses no task.
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, Peer(peer.ip()), router.clone(), limits, graceful.watcher()));
                }
                Err(error) => {
                    // Out of file descriptors, mostly: let some connections end instead of spinning.
                    tracing::warn!(event = "accept_failed", error = %error, "a connection could not be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    if timeout(limits.drain_for, graceful.shutdown()).await.is_err() {
        tracing::warn!(event = "drain_timeout", open = connections.len(), "connections were cut off at the end");
    }
    connections.shutdown().await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    limits: Limits,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Answers are small and written at once; waiting for more bytes would only add delay.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_for)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    // Errors here are clients that went away or spoke no HTTP: nothing to do, and nothing to tell.
    let _ = watcher.watch(connection).await;
}
