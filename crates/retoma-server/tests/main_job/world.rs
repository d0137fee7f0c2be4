//! A whole Retoma in one process: real store, real loops, real router; virtual time and a recording wire.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use jiff::Timestamp;
use retoma_core::flow::{self, Flow};
use retoma_core::ids::Tenant;
use retoma_core::retry::RetryPolicy;
use retoma_engine::{Clock, Engine, EngineSetup, Supervisor, Transport};
use retoma_providers::inbound::{Auth, Provider, Secret, Source};
use retoma_providers::outbound::{Channel, ChannelKind, WireEnd, WireRequest};
use retoma_server::{AppState, Door, LocalKey, ServerSetup};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::{Retention, Store};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::gated::GatedStore;

/// A clock that only moves when told.
pub(crate) struct ManualClock {
    now_ms: AtomicI64,
    real: retoma_engine::SystemClock,
}

impl ManualClock {
    fn at(start: Timestamp) -> Self {
        Self { now_ms: AtomicI64::new(start.as_millisecond()), real: retoma_engine::SystemClock::new() }
    }

    /// Moves on without waiting for anything.
    pub(crate) fn advance(&self, by: Duration) {
        self.set(self.now().checked_add(by).unwrap());
    }

    fn set(&self, to: Timestamp) {
        self.now_ms.fetch_max(to.as_millisecond(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.now_ms.load(Ordering::SeqCst)).unwrap()
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic()
    }

    fn real_until(&self, at: Timestamp) -> Duration {
        // Virtual time stands still until the test moves it, and then wakes the loops.
        if at <= self.now() { Duration::ZERO } else { Duration::from_secs(3600) }
    }
}

/// What left: number, virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) to: String,
    pub(crate) at: Timestamp,
}

/// A provider that takes everything and remembers it, unless told otherwise.
pub(crate) struct Wire {
    clock: Arc<ManualClock>,
    pub(crate) log: Mutex<Vec<Left>>,
    /// What the shop's own tool was asked, and what it says; without words it does not answer.
    pub(crate) asked: Mutex<Vec<Value>>,
    pub(crate) says: Mutex<Option<WireEnd>>,
    /// Ends for the next requests, first in first out; then everything is accepted.
    pub(crate) ends: Mutex<Vec<WireEnd>>,
    /// What the provider shows to whoever searches, whatever the filter says.
    pub(crate) records: Mutex<Vec<Value>>,
    /// Requests to the destination `crm`.
    pub(crate) crm: AtomicUsize,
    /// Searches so far.
    pub(crate) searches: AtomicUsize,
    /// Text of the last message.
    pub(crate) last_text: Mutex<String>,
}

impl Transport for Wire {
    async fn send(&self, request: WireRequest, _deadline: Duration, _start_by: Duration) -> WireEnd {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        if request.url.contains("loja.exemplo") {
            let words =
                self.asked.lock().map(|mut asked| asked.push(body.clone())).map(|()| self.says.lock().unwrap().clone());
            return words.unwrap().unwrap_or(WireEnd::NoAnswer { what: "timeout".into() });
        }
        if request.url.contains("/chat/findMessages/") {
            self.searches.fetch_add(1, Ordering::SeqCst);
            let records = self.records.lock().unwrap().clone();
            let found = json!({"messages": {"total": records.len(), "pages": 1, "currentPage": 1, "records": records}});
            return WireEnd::Answer { status: 200, headers: HeaderMap::new(), body: Bytes::from(found.to_string()) };
        }
        if request.url.contains("tarpit") {
            // It takes the request and never answers.
            return std::future::pending().await;
        }
        if request.url.contains("crm") {
            self.crm.fetch_add(1, Ordering::SeqCst);
            return WireEnd::Answer { status: 200, headers: HeaderMap::new(), body: Bytes::new() };
        }
        assert!(body["text"].as_str().is_some_and(|text| !text.is_empty()), "nothing empty leaves");
        let to = body["number"].as_str().unwrap_or_default().to_owned();
        *self.last_text.lock().unwrap() = body["text"].as_str().unwrap_or_default().to_owned();
        let n = {
            let mut log = self.log.lock().unwrap();
            log.push(Left { to, at: self.clock.now() });
            log.len()
        };
        let planned = {
            let mut ends = self.ends.lock().unwrap();
            if ends.is_empty() { None } else { Some(ends.remove(0)) }
        };
        planned.unwrap_or_else(|| accepted(n))
    }
}

pub(crate) fn accepted(n: usize) -> WireEnd {
    let body = json!({"key": {"remoteJid": "x", "fromMe": true, "id": format!("WIRE{n}")}, "status": "PENDING"});
    WireEnd::Answer { status: 201, headers: HeaderMap::new(), body: Bytes::from(body.to_string()) }
}

pub(crate) struct World {
    pub(crate) engine: Engine<GatedStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) wire: Arc<Wire>,
    router: axum::Router,
    _supervisor: Supervisor,
    dir: tempfile::TempDir,
}

/// The key of the command line.
const LOCAL: &str = "chave-local";
const HOTTOK: &str = "segredo-de-teste";

fn header_auth(name: &str) -> Auth {
    Auth::Header { name: name.into(), secrets: vec![Secret(HOTTOK.as_bytes().to_vec())], or_body: None }
}

fn door(name: &str, provider: Provider, auth: Auth, instance: Option<&str>) -> Door {
    let source = Source {
        name: name.into(),
        tenant: Tenant::default(),
        provider,
        account: name.into(),
        flow: Some("vendas".into()),
        channel: Some("zap".into()),
        auth,
        instance: instance.map(str::to_owned),
        cloud: None,
        mapping: None,
        origin: Vec::new(),
        body_bytes_max: 4 << 20,
    };
    Door::new(source)
}

fn zap() -> Channel {
    Channel {
        name: "zap".into(),
        tenant: Tenant::default(),
        kind: ChannelKind::Evolution {
            base_url: "http://127.0.0.1:1".into(),
            instance: "loja-a".into(),
            api_key: Secret(b"chave".to_vec()),
        },
        on_ambiguous: None,
        deadline: Duration::from_secs(5),
        concurrency: 64,
        rate: None,
        pair_every: None,
    }
}

/// The shop's own tool, reached by signed requests.
fn shop() -> Channel {
    let kind = ChannelKind::Http { url: "https://loja.exemplo/retoma".into(), secret: Some(Secret(b"chave".to_vec())) };
    Channel { name: "loja".into(), kind, ..zap() }
}

/// The shipped flow with something replaced in its file.
pub(crate) fn vendas_with(replace: &[(&str, &str)]) -> Flow {
    let text = replace.iter().fold(flow::VENDAS.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old} stands in the flow");
        text.replacen(old, new, 1)
    });
    let (flow, findings) = flow::load(&text, "vendas.yaml");
    flow.unwrap_or_else(|| panic!("{findings:?}"))
}

/// A further destination, with few seats.
fn other(name: &str) -> Channel {
    let url = format!("http://{name}.test/hook");
    Channel { name: name.into(), kind: ChannelKind::Http { url, secret: None }, concurrency: 2, ..zap() }
}

pub(crate) fn vendas() -> Flow {
    let (flow, findings) = flow::load(flow::VENDAS, "vendas.yaml");
    flow.unwrap_or_else(|| panic!("the shipped flow has findings: {findings:?}"))
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl World {
    /// A world in which it is that time.
    pub(crate) async fn new(start: &str) -> Self {
        Self::with_flow(start, vendas()).await
    }

    /// The same with another flow of the name `vendas`.
    pub(crate) async fn with_flow(start: &str, flow: Flow) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), Arc::new(ManualClock::at(at(start))), flow).await
    }

    /// The process ends and another one begins on the same database.
    pub(crate) async fn restarted(self) -> Self {
        let Self { engine, clock, dir, _supervisor, router, .. } = self;
        drop((_supervisor, router));
        engine.store().clone().close().await;
        drop(engine);
        Self::in_folder(dir, clock, vendas()).await
    }

    async fn in_folder(dir: tempfile::TempDir, clock: Arc<ManualClock>, flow: Flow) -> Self {
        let store = GatedStore::new(SqliteStore::open(dir.path().join("retoma.db"), Options::default()).unwrap());
        let wire = Arc::new(Wire {
            clock: Arc::clone(&clock),
            log: Mutex::default(),
            asked: Mutex::default(),
            says: Mutex::default(),
            ends: Mutex::default(),
            records: Mutex::default(),
            crm: AtomicUsize::new(0),
            searches: AtomicUsize::new(0),
            last_text: Mutex::default(),
        });
        let setup = EngineSetup {
            flows: [("vendas".into(), Arc::new(flow))].into(),
            channels: [zap(), shop(), other("tarpit"), other("crm")]
                .map(|channel| (channel.name.clone(), Arc::new(channel)))
                .into(),
            default_channel: Some("zap".into()),
            retry: RetryPolicy::recovery(),
            reconcile_for: Duration::from_secs(600),
            decide: true,
            deliver: true,
            tenant: Tenant::default(),
            keep: Retention {
                events: Duration::from_secs(90 * 86_400),
                tasks: Duration::from_secs(90 * 86_400),
                gate_held: Duration::from_secs(30 * 86_400),
            },
        };
        let (engine, supervisor) =
            Engine::start(store, setup, Arc::clone(&clock) as Arc<dyn Clock>, Arc::clone(&wire)).await.unwrap();
        let doors = vec![
            door("loja-hotmart", Provider::Hotmart, header_auth("X-HOTMART-HOTTOK"), None),
            door("zap", Provider::Evolution, header_auth("x-hook-secret"), Some("loja-a")),
        ];
        let state = AppState::new(
            engine.clone(),
            ServerSetup {
                proxies: retoma_server::Proxies::default(),
                doors,
                channels: vec!["zap".into()],
                default_channel: Some("zap".into()),
                timezone: jiff::tz::TimeZone::get("America/Sao_Paulo").unwrap(),
                locale: "pt-BR".to_owned(),
                local_key: Some(LocalKey(LOCAL.to_owned())),
                random: || [7; 32],
                version: "test",
                flow_source: None,
                gate: Default::default(),
            },
        );
        let router = retoma_server::router(state);
        Self { engine, clock, wire, router, _supervisor: supervisor, dir }
    }

    /// The database's path, for looking at it from outside.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("retoma.db")
    }

    pub(crate) async fn post(&self, source: &str, body: &Value) -> StatusCode {
        let header = if source == "zap" { "x-hook-secret" } else { "X-HOTMART-HOTTOK" };
        let request = Request::post(format!("/in/{source}"))
            .header("content-type", "application/json")
            .header(header, HOTTOK)
            .body(Body::from(body.to_string()))
            .unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&text));
        status
    }

    /// An order of a person's, through the API.
    pub(crate) async fn v1_post(&self, path: &str, body: &Value) -> Value {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {LOCAL}"))
            .body(Body::from(body.to_string()))
            .unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// What the API answers to a question.
    pub(crate) async fn v1_get(&self, path: &str) -> Value {
        let request =
            Request::get(path).header("authorization", format!("Bearer {LOCAL}")).body(Body::empty()).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// What anybody may ask.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let bytes = self.router.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The id of the contact that holds a phone.
    pub(crate) async fn contact_of(&self, phone: &str) -> String {
        let sql = format!("SELECT lower(hex(contact)) FROM identity WHERE value = '{phone}'");
        let hex = self.one(&sql).await.as_str().unwrap().to_owned();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Tables and columns that hold a text anywhere, bytes included.
    pub(crate) async fn places_of(&self, canary: &str) -> Vec<String> {
        let tables = self.column("SELECT name FROM sqlite_schema WHERE type = 'table'").await;
        let mut places = Vec::new();
        for table in tables {
            for column in self.column(&format!("SELECT name FROM pragma_table_info('{table}')")).await {
                let sql = format!("SELECT count(*) FROM {table} WHERE instr(CAST({column} AS TEXT), '{canary}') > 0");
                if self.one(&sql).await != json!(0) {
                    places.push(format!("{table}.{column}"));
                }
            }
        }
        places
    }

    /// The contact writes.
    pub(crate) async fn says(&self, phone: &str, id: &str, text: &str) {
        self.post("zap", &message(phone, id, text, self.clock.now())).await;
    }

    /// Hotmart says something of a transaction.
    pub(crate) async fn hotmart(&self, event: &str, phone: &str, transaction: &str) {
        let id = format!("{event}-{transaction}-{phone}");
        self.post("loja-hotmart", &purchase(event, &id, phone, transaction, self.clock.now())).await;
    }

    /// Waits until nothing is left to be done at this instant.
    pub(crate) async fn settle(&self) {
        for round in 0.. {
            assert!(round < 20_000, "the world does not come to rest");
            self.engine.wake();
            if self.is_at_rest().await {
                return;
            }
            // A condition is waited for, not a time: the loops run on real threads.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn is_at_rest(&self) -> bool {
        let now = self.clock.now().as_millisecond();
        let busy = self
            .one(&format!(
                "SELECT (SELECT count(*) FROM inbox JOIN event USING (id) WHERE event.kind <> 'message.received' OR event.urgent = 1)
                      + (SELECT count(*) FROM inbox JOIN event USING (id) WHERE event.kind = 'message.received'
                           AND event.received_at <= {now} - 4000)
                      + (SELECT count(*) FROM task WHERE status = 'sending')
                      + (SELECT count(*) FROM task WHERE handed = 1 AND status IN ('scheduled', 'failed') AND next_attempt_at <= {now})
                      + (SELECT count(*) FROM task WHERE status = 'unsure' AND reconcile_until <= {now})
                      + (SELECT count(*) FROM conversation WHERE closed = 0 AND deadline_at <= {now})"
            ))
            .await;
        busy == json!(0)
    }

    /// Moves the clock, stopping wherever something falls due on the way.
    pub(crate) async fn pass(&self, span: Duration) {
        let end = self.clock.now().checked_add(span).unwrap();
        self.settle().await;
        while self.clock.now() < end {
            let wake = self.engine.store().next_wake().await.unwrap();
            let burst = self.one("SELECT min(received_at) FROM inbox").await;
            let burst = burst.as_i64().map(|_| self.clock.now().checked_add(Duration::from_secs(1)).unwrap());
            let next =
                [wake.deadline_at, wake.task_at, burst].into_iter().flatten().filter(|at| *at > self.clock.now()).min();
            self.clock.set(next.unwrap_or(end).min(end));
            self.settle().await;
        }
    }

    /// The clock jumps; nothing happens on the way.
    pub(crate) async fn jump(&self, span: Duration) {
        self.clock.set(self.clock.now().checked_add(span).unwrap());
        self.settle().await;
    }

    /// The first value of a query.
    pub(crate) async fn one(&self, sql: &str) -> Value {
        let rows = self.engine.store().query_sql(sql.to_owned()).await.unwrap();
        rows.rows.first().and_then(|row| row.first()).cloned().unwrap_or(Value::Null)
    }

    /// The first column of a query.
    pub(crate) async fn column(&self, sql: &str) -> Vec<String> {
        let rows = self.engine.store().query_sql(sql.to_owned()).await.unwrap();
        rows.rows.iter().map(|row| row[0].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The state of the contact's latest cycle.
    pub(crate) async fn state_of(&self, phone: &str) -> String {
        let sql = format!(
            "SELECT conversation.state FROM conversation JOIN identity USING (contact)
             WHERE identity.value = '{phone}' AND conversation.closed = 0 ORDER BY conversation.ordinal DESC LIMIT 1"
        );
        self.one(&sql).await.as_str().unwrap_or_default().to_owned()
    }

    /// Names of the messages that left for a contact, in order.
    pub(crate) async fn sent_to(&self, phone: &str) -> Vec<String> {
        self.column(&format!(
            "SELECT task.message FROM task JOIN attempt ON attempt.task = task.seq JOIN identity ON identity.contact = task.contact
             WHERE identity.value = '{phone}' AND task.status = 'sent' ORDER BY attempt.started_at, task.seq"
        ))
        .await
    }

    /// Why the contact's closed tasks were closed.
    pub(crate) async fn closed_of(&self, phone: &str) -> Vec<String> {
        self.column(&format!(
            "SELECT coalesce(task.touch, task.message) || ' ' || task.reason FROM task JOIN identity ON identity.contact = task.contact
             WHERE identity.value = '{phone}' AND task.status = 'cancelled' ORDER BY task.scheduled_for"
        ))
        .await
    }
}

pub(crate) fn message(phone: &str, id: &str, text: &str, at: Timestamp) -> Value {
    json!({
        "event": "messages.upsert", "instance": "loja-a",
        "data": {
            "key": {"remoteJid": format!("{phone}@s.whatsapp.net"), "fromMe": false, "id": id},
            "pushName": "Ana Teste", "message": {"conversation": text}, "messageType": "conversation",
            "messageTimestamp": at.as_second()
        },
        "date_time": "2026-11-30T15:40:00.000Z", "sender": "554133330000@s.whatsapp.net", "apikey": "TOKEN-DA-INSTANCIA"
    })
}

pub(crate) fn purchase(event: &str, id: &str, phone: &str, transaction: &str, at: Timestamp) -> Value {
    let ms = at.as_millisecond();
    let (event, payment) = match event {
        "PIX" => (
            "PURCHASE_BILLET_PRINTED",
            json!({"type": "PIX", "pix_code": "00020101021226EXEMPLO6304ABCD", "pix_expiration_date": ms + 172_800_000}),
        ),
        "REFUSED" => ("PURCHASE_CANCELED", json!({"type": "CREDIT_CARD", "refusal_reason": "Saldo insuficiente"})),
        "CART" => ("PURCHASE_OUT_OF_SHOPPING_CART", Value::Null),
        other => (other, json!({"type": "PIX"})),
    };
    let buyer = json!({"email": format!("{phone}@example.com"), "name": "Ana Teste", "first_name": "Ana",
        "checkout_phone_code": "55", "checkout_phone": &phone[2..], "phone": phone});
    let product = json!({"id": 9_000_001, "name": "Curso Exemplo"});
    if payment.is_null() {
        return json!({"id": id, "creation_date": ms, "event": event, "version": "2.0.0",
            "data": {"product": product, "offer": {"code": "abc1def2"}, "buyer": buyer}});
    }
    json!({
        "id": id, "creation_date": ms, "event": event, "version": "2.0.0",
        "data": {"product": product, "buyer": buyer, "purchase": {
            "transaction": transaction, "order_date": ms, "recurrence_number": 1,
            "full_price": {"value": 197, "currency_value": "BRL"}, "offer": {"code": "abc1def2"}, "payment": payment}}
    })
}
