//! Where the pipeline's messages arrive: an HTTP endpoint that answers 200, counts by transaction, and wakes the connection
//! that waits for that transaction.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use retoma_server::{Limits, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::sale::Sale;

/// An endpoint under way. Dropping it closes the door.
pub(super) struct Sink {
    address: SocketAddr,
    arrivals: Arc<Arrivals>,
    _server: JoinSet<()>,
}

/// What arrived, and who waits.
#[derive(Default)]
pub(super) struct Arrivals {
    by_transaction: Mutex<HashMap<u64, Arrival>>,
    total: AtomicU64,
}

#[derive(Default)]
struct Arrival {
    copies: u64,
    waits: Option<oneshot::Sender<()>>,
}

impl Sink {
    /// Opens a door on a free port. With a tarpit, what comes to `/0` is taken and never answered.
    pub(super) async fn open(tarpit: bool) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the receiving end")?;
        let address = listener.local_addr()?;
        let arrivals = Arc::new(Arrivals::default());
        let mut router = Router::new().fallback(receive);
        if tarpit {
            router = router.route("/0", axum::routing::post(swallow));
        }
        let router = router.with_state(Arc::clone(&arrivals));
        let mut server = JoinSet::new();
        server.spawn(async move {
            // Ends with the `JoinSet`; what goes wrong before shows as messages that never arrive.
            let _ = serve(listener, router, Limits::default(), std::future::pending()).await;
        });
        Ok(Self { address, arrivals, _server: server })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn arrivals(&self) -> &Arc<Arrivals> {
        &self.arrivals
    }
}

/// Takes the request and says nothing, for as long as the sender waits.
async fn swallow(request: Request) -> StatusCode {
    let _ = request.into_body().collect().await;
    std::future::pending().await
}

async fn receive(State(arrivals): State<Arc<Arrivals>>, request: Request) -> StatusCode {
    let (head, body) = request.into_parts();
    let Ok(_) = body.collect().await else { return StatusCode::BAD_REQUEST };
    let id = head.headers.get("webhook-id").and_then(|id| id.to_str().ok());
    match id.and_then(transaction_in) {
        Some(transaction) => {
            arrivals.arrived(transaction);
            StatusCode::OK
        }
        // A message that belongs to no sale would be a bug worth a dead letter.
        None => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// The number of the transaction (`HP` and ten digits) that an id names.
fn transaction_in(id: &str) -> Option<u64> {
    let at = id.find("HP")? + 2;
    id.get(at..at + 10)?.parse().ok()
}

impl Arrivals {
    fn with<R>(&self, look: impl FnOnce(&mut HashMap<u64, Arrival>) -> R) -> R {
        look(&mut self.by_transaction.lock().expect("no code panics while it holds the arrivals"))
    }

    /// Resolves when the sale's message arrives. To be asked for before the sale is posted.
    pub(super) fn expect(&self, sale: Sale) -> oneshot::Receiver<()> {
        let (waits, arrives) = oneshot::channel();
        self.with(|arrivals| arrivals.entry(sale.transaction_number()).or_default().waits = Some(waits));
        arrives
    }

    /// How many messages arrived.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    fn arrived(&self, transaction: u64) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let waits = self.with(|arrivals| {
            let arrival = arrivals.entry(transaction).or_default();
            arrival.copies += 1;
            arrival.waits.take()
        });
        if let Some(waits) = waits {
            // Nobody waits any more where the round is over.
            let _ = waits.send(());
        }
    }

    /// How many copies of the sale's message arrived.
    pub(super) fn copies(&self, sale: Sale) -> u64 {
        self.copies_of(sale.transaction_number())
    }

    /// How many copies of the message about a transaction arrived.
    pub(super) fn copies_of(&self, transaction: u64) -> u64 {
        self.with(|arrivals| arrivals.get(&transaction).map_or(0, |arrival| arrival.copies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_counted_under_the_transaction_in_its_id() {
        let cases = [
            ("hotmart:entregar_acesso:HP0000000042", Some(42)),
            ("HP9999999999.1", Some(9_999_999_999)),
            ("hotmart:entregar_acesso:HP42", None),
            ("hotmart", None),
        ];
        for (id, expected) in cases {
            assert_eq!(transaction_in(id), expected, "{id}");
        }
    }

    #[test]
    fn the_first_copy_wakes_who_waits_and_every_copy_is_counted() {
        let arrivals = Arrivals::default();
        let mut waits = arrivals.expect(Sale(7));
        assert!(waits.try_recv().is_err());
        arrivals.arrived(Sale(7).transaction_number());
        arrivals.arrived(Sale(7).transaction_number());
        assert_eq!(waits.try_recv(), Ok(()));
        assert_eq!((arrivals.copies(Sale(7)), arrivals.copies(Sale(8))), (2, 0));
    }
}
