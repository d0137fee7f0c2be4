//! The load generator: keep-alive connections, each with one request at a time, in a closed loop. For the pipeline the loop
//! closes where the message arrives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use http::{HeaderMap, StatusCode, header};
use retoma_engine::Clock;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::child::Server;
use super::rows::{SOURCE, headers};
use super::sale::{Happening, Sale};
use super::sink::Arrivals;
use super::wire::Wire;

/// Not measured: connections, caches and batches find their size.
const WARM_UP: Duration = Duration::from_secs(1);
/// Every how many-th request of a connection is its last one once more, byte for byte.
const REPEAT_EVERY: u64 = 20;
/// How long a message may take before it counts as lost.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// Before the next try after a refusal.
const REST: Duration = Duration::from_millis(20);

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// What is asked of the generator.
pub(super) struct Load {
    pub(super) what: Happening,
    /// The first sale; the others follow.
    pub(super) first: u64,
    pub(super) connections: usize,
    pub(super) measured: Duration,
    /// Where the messages arrive, if the loop closes there. Without it some requests are repetitions.
    pub(super) arrivals: Option<Arc<Arrivals>>,
}

/// What the generator saw.
#[derive(Default)]
pub(super) struct Seen {
    /// Sales that were answered 200, repetitions not counted, warm-up and the last seconds included.
    pub(super) acknowledged: Vec<Sale>,
    /// Loops that closed while it was measured.
    pub(super) closed: u64,
    /// Their times, in microseconds.
    pub(super) times_us: Vec<u32>,
    /// Requests that were answered anything else.
    pub(super) refused: u64,
    /// The first such answer.
    pub(super) refusal: Option<String>,
    /// How long it was measured.
    pub(super) window: Duration,
    /// The server's CPU time meanwhile.
    pub(super) cpu: Duration,
}

struct Generator {
    load: Load,
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    headers: HeaderMap,
    next: AtomicU64,
    phase: AtomicU8,
}

/// Loads a server: a second to warm up, then what is measured, then what is still on its way.
pub(super) async fn run(load: Load, server: &Server, clock: Arc<dyn Clock>) -> anyhow::Result<Seen> {
    let mut headers = headers();
    headers.insert(header::HOST, server.address().to_string().parse()?);
    let (next, phase) = (AtomicU64::new(load.first), AtomicU8::new(WARMING));
    let generator = Arc::new(Generator { address: server.address(), clock, headers, next, phase, load });
    let mut connections = JoinSet::new();
    for _ in 0..generator.load.connections {
        let generator = Arc::clone(&generator);
        connections.spawn(async move { generator.talk().await });
    }
    let mut seen = Seen::default();
    undisturbed(&mut connections, WARM_UP).await?;
    let (begun, cpu) = (generator.clock.monotonic(), server.cpu_time()?);
    generator.phase.store(MEASURING, Ordering::Relaxed);
    undisturbed(&mut connections, generator.load.measured).await?;
    generator.phase.store(OVER, Ordering::Relaxed);
    seen.window = generator.clock.monotonic() - begun;
    seen.cpu = server.cpu_time()? - cpu;
    while let Some(ended) = connections.join_next().await {
        seen.add(ended.context("a connection broke")??);
    }
    seen.times_us.sort_unstable();
    if seen.closed == 0 {
        let refusal = seen.refusal.as_deref().unwrap_or("no answer");
        bail!("the server did nothing in {:?}; the first refusal: {refusal}", seen.window);
    }
    Ok(seen)
}

/// Lets time pass in which no connection may end.
pub(super) async fn undisturbed<T: Send + 'static>(
    connections: &mut JoinSet<anyhow::Result<T>>,
    time: Duration,
) -> anyhow::Result<()> {
    tokio::select! {
        () = sleep(time) => Ok(()),
        ended = connections.join_next() => match ended {
            Some(Ok(Err(error))) => Err(error),
            _ => bail!("a connection ended before the round was over"),
        },
    }
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.acknowledged.extend(other.acknowledged);
        self.closed += other.closed;
        self.times_us.extend(other.times_us);
        self.refused += other.refused;
        self.refusal = self.refusal.take().or(other.refusal);
    }
}

impl Generator {
    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Relaxed)
    }

    async fn talk(&self) -> anyhow::Result<Seen> {
        let mut wire = Wire::connect(self.address, &self.headers).await?;
        let mut seen = Seen::default();
        let mut before = None;
        for turn in 1_u64.. {
            if self.phase() == OVER {
                break;
            }
            let repeats = self.load.arrivals.is_none() && turn.is_multiple_of(REPEAT_EVERY);
            let repeated = before.filter(|_| repeats);
            let sale = repeated.unwrap_or_else(|| Sale(self.next.fetch_add(1, Ordering::Relaxed)));
            let arrives = self.load.arrivals.as_ref().map(|arrivals| arrivals.expect(sale));
            let begun = self.clock.monotonic();
            // The number is for the null server, which reads no body; the real one ignores it.
            let path = format!("/in/{SOURCE}?n={}", sale.0);
            let status = wire.post(&path, &sale.body(self.load.what)).await?;
            if status != StatusCode::OK {
                seen.refused += 1;
                seen.refusal.get_or_insert_with(|| format!("{status}"));
                before = None;
                sleep(REST).await;
                continue;
            }
            before = Some(sale);
            if repeated.is_none() {
                seen.acknowledged.push(sale);
            }
            if let Some(arrives) = arrives
                && timeout(ARRIVES_WITHIN, arrives).await.is_err()
            {
                // Lost, or nearly: the judge counts what arrived by the end.
                continue;
            }
            if self.phase() == MEASURING {
                seen.closed += 1;
                let took = self.clock.monotonic().saturating_sub(begun);
                seen.times_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        }
        Ok(seen)
    }
}
