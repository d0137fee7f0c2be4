//! Posting a fake provider's webhooks: each in its own task of one `JoinSet`, tried again a bounded number of times, given up
//! at once where the receiver's answer says that trying again is useless. No order between them, as with the real one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use retoma_engine::Clock;
use retoma_engine::HttpTransport;
use retoma_engine::Transport;
use retoma_engine::address_guard::AddressGuard;
use retoma_providers::outbound::{WireEnd, WireRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Where webhooks go.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// The whole URL.
    pub url: String,
    /// Headers of every post, the secret among them.
    pub headers: HeaderMap,
}

/// A webhook to post, after a while.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) after: Duration,
    pub(crate) body: Bytes,
}

/// Posts that may wait.
pub(crate) const QUEUE_MAX: usize = 4096;
/// Posts under way, waiting for their next try included.
const UNDER_WAY_MAX: usize = 1024;
/// Tries of one webhook.
const TRIES: u32 = 10;
/// The pause after the first failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// The longest one try may take.
const TRY_FOR: Duration = Duration::from_secs(10);
/// Answers that the real sender takes as final, too.
const FINAL: [u16; 5] = [400, 401, 403, 404, 422];

/// Posts until every sender of `posts` is gone. Cancel it to give up what is under way.
pub(crate) async fn run(webhook: Webhook, clock: Arc<dyn Clock>, mut posts: mpsc::Receiver<Post>) {
    // The receiver is the program under test, on this machine more often than not.
    let guard = AddressGuard::new(&[authority(&webhook.url)]);
    let poster = Arc::new(Poster { transport: HttpTransport::new(guard, Arc::clone(&clock)), clock, webhook });
    let mut under_way = JoinSet::new();
    loop {
        // Both arms are cancel-safe: a post is either received or still queued, join_next loses no task.
        tokio::select! {
            Some(_) = under_way.join_next() => {}
            post = posts.recv(), if under_way.len() < UNDER_WAY_MAX => match post {
                Some(post) => {
                    let poster = Arc::clone(&poster);
                    under_way.spawn(async move { poster.deliver(post).await });
                }
                None => break,
            },
        }
    }
    while under_way.join_next().await.is_some() {}
}

struct Poster {
    transport: HttpTransport,
    clock: Arc<dyn Clock>,
    webhook: Webhook,
}

impl Poster {
    async fn deliver(&self, post: Post) {
        sleep(post.after).await;
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            if self.try_once(post.body.clone()).await {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        if !self.try_once(post.body).await {
            tracing::warn!(event = "fake_webhook_given_up", tries = TRIES, "nobody took a webhook");
        }
    }

    /// Whether that was the last word: taken, or refused for good.
    async fn try_once(&self, body: Bytes) -> bool {
        let request = WireRequest { url: self.webhook.url.clone(), headers: self.webhook.headers.clone(), body };
        let start_by = self.clock.monotonic() + TRY_FOR;
        match self.transport.send(request, TRY_FOR, start_by).await {
            WireEnd::Answer { status, .. } if (200..300).contains(&status) => true,
            WireEnd::Answer { status, .. } if FINAL.contains(&status) => {
                tracing::warn!(event = "fake_webhook_refused", status, "a webhook was refused for good");
                true
            }
            WireEnd::Answer { .. } | WireEnd::NotWritten { .. } | WireEnd::NoAnswer { .. } => false,
        }
    }
}

/// `host:port` of a URL, as the address guard wants it.
fn authority(url: &str) -> String {
    let uri: http::Uri = url.parse().unwrap_or_default();
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let port = uri.port_u16().unwrap_or(usual);
    format!("{}:{port}", uri.host().unwrap_or_default())
}
