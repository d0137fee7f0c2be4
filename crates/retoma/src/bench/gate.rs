//! `bench gate`: keys are claimed and completed, each over two requests, each request one synced commit; every twentieth turn
//! of a connection asks once more for a key that is done. The null server commits the same rows through the same store verb,
//! but reads no body, knows no caller and words no answer.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use retoma_core::ids::Tenant;
use retoma_core::keys::digest16;
use retoma_engine::{Clock, Engine};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::{GateCall, GateClaim, GateOutcome, GateResult, GateVerb, Store};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::child::Server;
use super::figures::{Figures, Round, Rounds, Setting, percentile};
use super::rows::BODY_BYTES_MAX;
use super::sale::mixed;
use super::wire::Wire;
use super::{Bench, BenchArgs, Mode};

/// What callers prove themselves with. No secret: the server lives for seconds, on loopback.
pub(super) const KEY: &str = "bench-key";
const SCOPE: &str = "cobranca";
/// Not measured: connections, caches and batches find their size.
const WARM_UP: Duration = Duration::from_secs(1);
/// Every how many-th turn of a connection asks for its last key once more.
const REPEAT_EVERY: u64 = 20;
/// Before the next try after a refusal.
const REST: Duration = Duration::from_millis(20);
/// Keys in one commit of the preparation, and of the bare database.
const PRELOAD_BATCH: u64 = 10_000;
const BARE_BATCH: u64 = 256;
/// The preparation's page cache: it is not what is measured.
const PRELOAD_CACHE_KIB: u32 = 512 * 1024;

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// An invented order that is charged once. Its key is scattered: keys that come in order would flatter a B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order(u64);

impl Order {
    fn key(self) -> String {
        format!("loja-a:pedido-{:016x}:cobrar:v1", mixed(self.0))
    }

    fn claim_body(self) -> String {
        let (key, n) = (self.key(), self.0);
        format!(
            r#"{{"key":"{key}","fingerprint":{{"pedido":{n},"valor":19700,"moeda":"BRL"}},"correlation_id":"execucao-{n}","metadata":{{"source":"hotmart","fluxo":"cobranca"}}}}"#
        )
    }

    fn complete_body(self, token: &str) -> String {
        let (key, n) = (self.key(), self.0);
        format!(r#"{{"key":"{key}","token":"{token}","result":{{"cobranca":"cob-{n}","status":"criada"}}}}"#)
    }

    /// Of the null server, which gives no other.
    fn token(self) -> String {
        format!("gt_{:032x}{:024x}", self.0, self.0)
    }

    fn call(self, verb: GateVerb) -> GateCall {
        let (tenant, scope) = (Tenant::default(), SCOPE.to_owned());
        GateCall { tenant, scope, key: self.key(), actor: "cli".to_owned(), verb }
    }

    /// The rows that the real server makes of [`Order::claim_body`].
    fn claim(self) -> GateCall {
        self.call(GateVerb::Claim(GateClaim {
            token: self.token(),
            fingerprint: Some(digest16("bench", &[&self.0.to_be_bytes()])),
            lease: Duration::from_secs(120),
            keep: Duration::from_secs(30 * 86_400),
            correlation_id: Some(format!("execucao-{}", self.0)),
            metadata: json!({ "source": "hotmart", "fluxo": "cobranca" }),
            proceed_when_expired: false,
        }))
    }

    fn complete(self) -> GateCall {
        let result = json!({ "cobranca": format!("cob-{}", self.0), "status": "criada" });
        self.call(GateVerb::Complete { token: self.token(), result: GateResult::Kept(result) })
    }
}

/// Rounds against both servers, alternating.
pub(super) async fn measure(bench: &Bench, args: &BenchArgs) -> anyhow::Result<Figures> {
    let setting = Setting {
        bench: "gate",
        seconds: args.seconds,
        connections: bench.connections,
        preloaded: args.preload,
        payload_bytes: Order(bench.first).claim_body().len(),
        sync_time: bench.workdir.sync_time(&*bench.clock)?,
        in_memory: bench.workdir.is_in_memory(),
    };
    tracing::info!(event = "bench_preload", keys = args.preload, "storing keys before the rounds");
    preload(&bench.workdir.base(), args.preload, &*bench.clock).await?;
    let (mut real, mut null) = (Rounds::default(), Rounds::default());
    for number in 1..=args.rounds {
        for (mode, rounds) in [(Mode::Null, &mut null), (Mode::Real, &mut real)] {
            let round = round(bench, mode).await?;
            tracing::info!(event = "bench_round", number, mode = mode.as_str(), per_s = round.per_s, "a round is over");
            rounds.0.push(round);
        }
    }
    let bare_per_s = bare(bench).await?;
    Ok(Figures { setting, real, null, bare_per_s, start: None })
}

/// Fills a new database with keys that are done.
async fn preload(path: &Path, keys: u64, clock: &dyn Clock) -> anyhow::Result<()> {
    let options = Options {
        writer_cache_kib: PRELOAD_CACHE_KIB,
        commit_items_max: usize::MAX,
        commit_bytes_max: usize::MAX,
        ..Options::default()
    };
    let store = SqliteStore::open(path, options).context("the database of the run cannot be made")?;
    let mut first = 0;
    while first < keys {
        let until = keys.min(first + PRELOAD_BATCH);
        conclude(&store, first..until, clock).await?;
        first = until;
    }
    // Whole in its one file, to be copied.
    store.close().await;
    Ok(())
}

/// Claims and completes, each in one commit.
async fn conclude(store: &SqliteStore, orders: std::ops::Range<u64>, clock: &dyn Clock) -> anyhow::Result<()> {
    let claims = store.gate(orders.clone().map(|n| Order(n).claim()).collect(), clock.now()).await?;
    ensure!(claims.iter().all(|answer| answer.outcome == GateOutcome::Proceed), "an invented order is new");
    let ends = store.gate(orders.map(|n| Order(n).complete()).collect(), clock.now()).await?;
    ensure!(ends.iter().all(|answer| answer.outcome == GateOutcome::Ok), "a claim is completed by its owner");
    Ok(())
}

/// How many keys per second the store claims and completes for one caller, without HTTP, 256 at a time.
async fn bare(bench: &Bench) -> anyhow::Result<f64> {
    let database = bench.workdir.copy("bare")?;
    let store = SqliteStore::open(&database, Options::default()).context("the copy does not open")?;
    let (begun, mut next) = (bench.clock.monotonic(), bench.first);
    while bench.clock.monotonic() - begun < bench.measured {
        conclude(&store, next..next + BARE_BATCH, &*bench.clock).await?;
        next += BARE_BATCH;
    }
    let per_s = (next - bench.first) as f64 / (bench.clock.monotonic() - begun).as_secs_f64();
    store.close().await;
    bench.workdir.discard(&database);
    Ok(per_s)
}

/// One round against one server on a fresh copy.
async fn round(bench: &Bench, mode: Mode) -> anyhow::Result<Round> {
    let database = bench.workdir.copy(mode.as_str())?;
    let server = Server::start(bench.kind, mode, &database, bench.connections, None, None).await?;
    let mut seen = load(bench, mode, &server).await?;
    let rss_mb = server.peak_memory_mb()?;
    server.stop().await?;
    let (lost, doubled) = judge(&database, &seen.concluded).await?;
    bench.workdir.discard(&database);
    if let Some(refusal) = &seen.refusal {
        tracing::warn!(event = "bench_refused", count = seen.refused, first = refusal, "requests were not taken");
    }
    seen.times_us.sort_unstable();
    ensure!(seen.closed > 0, "the server did nothing; the first refusal: {:?}", seen.refusal);
    Ok(Round {
        per_s: seen.closed as f64 / seen.window.as_secs_f64(),
        p50: percentile(&seen.times_us, 50),
        p99: percentile(&seen.times_us, 99),
        cpu_us_per_event: seen.cpu.as_secs_f64() * 1e6 / seen.closed as f64,
        rss_mb,
        lost,
        doubled: doubled + seen.twice,
        refused: seen.refused,
    })
}

/// Every concluded key must be there, done, by one attempt: what is not is lost or doubled.
async fn judge(database: &Path, concluded: &[Order]) -> anyhow::Result<(u64, u64)> {
    let store = SqliteStore::open(database, Options::default()).context("the round's database does not open")?;
    let mut attempts: HashMap<String, (bool, u64)> = HashMap::new();
    let mut after = 0;
    loop {
        let page = format!(
            "SELECT seq, key, status, attempt FROM gate_key WHERE seq > {after} AND scope = '{SCOPE}' ORDER BY seq LIMIT 5000"
        );
        let rows = store.query_sql(page).await?.rows;
        let Some(last) = rows.last().and_then(|row| row.first()?.as_i64()) else { break };
        after = last;
        for row in rows {
            let (Some(key), Some(status), Some(attempt)) = (row[1].as_str(), row[2].as_str(), row[3].as_u64()) else {
                bail!("a key, a word and a number were asked for")
            };
            attempts.insert(key.to_owned(), (status == "DONE", attempt));
        }
    }
    store.close().await;
    Ok(verdict(concluded, &attempts))
}

fn verdict(concluded: &[Order], found: &HashMap<String, (bool, u64)>) -> (u64, u64) {
    let (mut lost, mut doubled) = (0, 0);
    for order in concluded {
        let (done, attempts) = found.get(&order.key()).copied().unwrap_or((false, 0));
        lost += u64::from(!done);
        doubled += attempts.saturating_sub(1);
    }
    (lost, doubled)
}

/// What the generator saw.
#[derive(Default)]
struct Seen {
    /// Keys whose completion was acknowledged.
    concluded: Vec<Order>,
    /// Turns that closed while it was measured: a claim and its completion, or a repetition.
    closed: u64,
    times_us: Vec<u32>,
    /// Repetitions that were told to go on.
    twice: u64,
    refused: u64,
    refusal: Option<String>,
    window: Duration,
    cpu: Duration,
}

struct Generator {
    server: std::net::SocketAddr,
    /// The number is for the null server, which reads no body; the real one would refuse it.
    numbered: bool,
    clock: Arc<dyn Clock>,
    headers: HeaderMap,
    next: AtomicU64,
    phase: AtomicU8,
}

async fn load(bench: &Bench, mode: Mode, server: &Server) -> anyhow::Result<Seen> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::AUTHORIZATION, format!("Bearer {KEY}").parse()?);
    headers.insert(header::HOST, server.address().to_string().parse()?);
    let generator = Arc::new(Generator {
        server: server.address(),
        numbered: mode == Mode::Null,
        clock: Arc::clone(&bench.clock),
        headers,
        next: AtomicU64::new(bench.first),
        phase: AtomicU8::new(WARMING),
    });
    let mut connections = JoinSet::new();
    for _ in 0..bench.connections {
        let generator = Arc::clone(&generator);
        connections.spawn(async move { generator.talk().await });
    }
    let mut seen = Seen::default();
    super::load::undisturbed(&mut connections, WARM_UP).await?;
    let (begun, cpu) = (bench.clock.monotonic(), server.cpu_time()?);
    generator.phase.store(MEASURING, Ordering::Relaxed);
    super::load::undisturbed(&mut connections, bench.measured).await?;
    generator.phase.store(OVER, Ordering::Relaxed);
    seen.window = bench.clock.monotonic() - begun;
    seen.cpu = server.cpu_time()? - cpu;
    while let Some(ended) = connections.join_next().await {
        let other = ended.context("a connection broke")??;
        seen.concluded.extend(other.concluded);
        seen.times_us.extend(other.times_us);
        seen.closed += other.closed;
        seen.twice += other.twice;
        seen.refused += other.refused;
        seen.refusal = seen.refusal.take().or(other.refusal);
    }
    Ok(seen)
}

impl Generator {
    fn path(&self, verb: &str, order: Order) -> String {
        let number = if self.numbered { format!("?n={}", order.0) } else { String::new() };
        format!("/v1/gate/{SCOPE}/{verb}{number}")
    }

    async fn talk(&self) -> anyhow::Result<Seen> {
        let mut wire = Wire::connect(self.server, &self.headers).await?;
        let mut seen = Seen::default();
        for turn in 1_u64.. {
            if self.phase.load(Ordering::Relaxed) == OVER {
                break;
            }
            let repeated = seen.concluded.last().copied().filter(|_| turn.is_multiple_of(REPEAT_EVERY));
            let order = repeated.unwrap_or_else(|| Order(self.next.fetch_add(1, Ordering::Relaxed)));
            let begun = self.clock.monotonic();
            let status = wire.post(&self.path("claim", order), order.claim_body().as_bytes()).await?;
            let told = match (status, repeated) {
                (StatusCode::CREATED, None) => {
                    let token = token_in(wire.body()).context("a claim that proceeds has a token")?;
                    let body = order.complete_body(token);
                    wire.post(&self.path("complete", order), body.as_bytes()).await?
                }
                (StatusCode::CREATED, Some(_)) => {
                    seen.twice += 1;
                    continue;
                }
                (StatusCode::OK, None) => StatusCode::CONFLICT,
                (other, _) => other,
            };
            if told != StatusCode::OK {
                seen.refused += 1;
                seen.refusal.get_or_insert_with(|| told.to_string());
                sleep(REST).await;
                continue;
            }
            if repeated.is_none() {
                seen.concluded.push(order);
            }
            if self.phase.load(Ordering::Relaxed) == MEASURING {
                seen.closed += 1;
                let took = self.clock.monotonic().saturating_sub(begun);
                seen.times_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
        }
        Ok(seen)
    }
}

/// The token that an answer gives, found without reading JSON: the generator shares the cores with what it measures.
fn token_in(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    text.split_once("\"token\":\"")?.1.split_once('"').map(|(token, _)| token)
}

/// The null server.
pub(super) fn null(engine: &Engine<SqliteStore>) -> Router {
    Router::new()
        .route("/v1/gate/{scope}/claim", post(take_claim))
        .route("/v1/gate/{scope}/complete", post(take_complete))
        .with_state(engine.clone())
}

async fn take_claim(State(engine): State<Engine<SqliteStore>>, request: Request) -> Response {
    take(&engine, request, Order::claim).await
}

async fn take_complete(State(engine): State<Engine<SqliteStore>>, request: Request) -> Response {
    take(&engine, request, Order::complete).await
}

async fn take(engine: &Engine<SqliteStore>, request: Request, call: fn(Order) -> GateCall) -> Response {
    let number = request.uri().query().and_then(|query| query.strip_prefix("n=")?.parse().ok());
    let Some(order) = number.map(Order) else { return StatusCode::BAD_REQUEST.into_response() };
    if axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await.is_err() {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let Ok(answers) = engine.store().gate(vec![call(order)], engine.clock().now()).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let proceeds = answers.first().is_some_and(|answer| answer.outcome == GateOutcome::Proceed);
    let status = if proceeds { StatusCode::CREATED } else { StatusCode::OK };
    let answer = format!(r#"{{"token":"{}"}}"#, order.token());
    (status, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_done_is_lost_and_a_second_attempt_is_doubled() {
        let found = [(1, (true, 1)), (2, (false, 1)), (3, (true, 3))].map(|(n, row)| (Order(n).key(), row));
        assert_eq!(verdict(&[1, 2, 3, 4].map(Order), &HashMap::from(found)), (2, 2));
    }

    #[test]
    fn bodies_are_json_and_a_token_is_found_in_an_answer() {
        for body in [Order(7).claim_body(), Order(7).complete_body("gt_1")] {
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["key"], Order(7).key());
        }
        assert_eq!(token_in(br#"{"attempt":1,"token":"gt_1","x":2}"#), Some("gt_1"));
        assert_eq!(token_in(br#"{"attempt":1}"#), None);
    }
}
