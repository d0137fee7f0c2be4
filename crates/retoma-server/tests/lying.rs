//! A provider that lies, over real sockets (E4, FC-32, FC-70): its own log shows at most one delivery for each promise, whatever
//! it answered; two only where the policy says so; and whatever was ambiguous is visible, with its evidence.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use retoma_core::event::{EventData, EventKind};
use retoma_core::flow;
use retoma_core::identity::{Identity, Phone};
use retoma_core::ids::{BucketNo, ContactId, EventId, Tenant};
use retoma_core::keys::digest16;
use retoma_core::retry::RetryPolicy;
use retoma_core::task::{MessageClass, OnAmbiguous, Reference, Task, TaskKind, TaskStatus};
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{Clock, Engine, EngineSetup, HttpTransport, Supervisor, SystemClock};
use retoma_providers::evolution::fake::{Fake, Fault, Faults};
use retoma_providers::inbound::{Auth, Provider, Secret, Source};
use retoma_providers::outbound::{Channel, ChannelKind};
use retoma_server::fake::{DeliveryLog, FakeServer, FakeSetup, Webhook};
use retoma_server::{AppState, Door, Limits, ServerSetup};
use retoma_sqlite::{Options, SqliteStore};
use retoma_store::{Entry, Intake, NewEvent, Retention, Store, Subject};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const KEY: &str = "chave-de-teste";
const SECRET: &str = "segredo-de-teste";

struct Shop {
    engine: Engine<SqliteStore>,
    log: DeliveryLog,
    _supervisor: Supervisor,
    _tasks: JoinSet<()>,
    _dir: tempfile::TempDir,
}

fn zap(address: SocketAddr) -> Channel {
    Channel {
        name: "zap".into(),
        tenant: Tenant::default(),
        kind: ChannelKind::Evolution {
            base_url: format!("http://{address}"),
            instance: "loja-a".into(),
            api_key: Secret(KEY.as_bytes().to_vec()),
        },
        on_ambiguous: None,
        deadline: Duration::from_secs(1),
        concurrency: 16,
        rate: None,
        pair_every: None,
    }
}

fn door() -> Door {
    let auth =
        Auth::Header { name: "x-hook-secret".into(), secrets: vec![Secret(SECRET.as_bytes().to_vec())], or_body: None };
    let source = Source {
        name: "zap".into(),
        tenant: Tenant::default(),
        provider: Provider::Evolution,
        account: "zap".into(),
        flow: Some("vendas".into()),
        channel: Some("zap".into()),
        auth,
        instance: Some("loja-a".to_owned()),
        mapping: None,
        cloud: None,
        origin: Vec::new(),
        body_bytes_max: 4 << 20,
    };
    Door::new(source)
}

impl Shop {
    /// A whole Retoma and a provider that lies to it.
    async fn open(faults: Faults, reconcile_for: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path().join("retoma.db"), Options::default()).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-hook-secret", HeaderValue::from_static(SECRET));
        let setup = FakeSetup {
            fake: Fake::new("loja-a", KEY, faults, 7),
            clock: Arc::clone(&clock),
            webhook: Some(Webhook { url: format!("http://{own}/in/zap"), headers }),
            log: None,
            tell: |_| {},
        };
        let fake = FakeServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), setup).await.unwrap();
        let (address, log) = (fake.address().unwrap(), fake.log());
        let (flow, _) = flow::load(flow::VENDAS, "vendas.yaml");
        let setup = EngineSetup {
            flows: [("vendas".into(), Arc::new(flow.unwrap()))].into(),
            channels: [("zap".into(), Arc::new(zap(address)))].into(),
            default_channel: Some("zap".into()),
            retry: RetryPolicy { base: Duration::from_millis(200), attempts: 3, ..RetryPolicy::recovery() },
            reconcile_for,
            decide: true,
            deliver: true,
            tenant: Tenant::default(),
            keep: Retention {
                events: Duration::from_secs(90 * 86_400),
                tasks: Duration::from_secs(90 * 86_400),
                gate_held: Duration::from_secs(30 * 86_400),
            },
        };
        let transport = Arc::new(HttpTransport::new(AddressGuard::new(&[address.to_string()]), Arc::clone(&clock)));
        let (engine, supervisor) = Engine::start(store, setup, clock, transport).await.unwrap();
        let state = AppState::new(
            engine.clone(),
            ServerSetup {
                doors: vec![door()],
                proxies: retoma_server::Proxies::default(),
                channels: vec!["zap".into()],
                default_channel: Some("zap".into()),
                timezone: jiff::tz::TimeZone::UTC,
                locale: "pt-BR".to_owned(),
                local_key: None,
                random: || [7; 32],
                version: "test",
                flow_source: None,
                gate: Default::default(),
            },
        );
        let router = retoma_server::router(state);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = retoma_server::serve(listener, router, Limits::default(), std::future::pending()).await;
        });
        tasks.spawn(fake.serve(std::future::pending()));
        Self { engine, log, _supervisor: supervisor, _tasks: tasks, _dir: dir }
    }

    /// Promises a message with a text of its own to a new contact, whose number ends as wanted.
    async fn promise(&self, n: usize, ending: &str, policy: OnAmbiguous) {
        let (id, contact) = (EventId(self.engine.new_id()), ContactId(self.engine.new_id()));
        let now = self.engine.clock().now();
        let phone = Identity::phone(&Phone::reported(&format!("55419{:04}{ending}", 7000 + n)).unwrap(), true);
        let event = NewEvent {
            id,
            tenant: Tenant::default(),
            source: "api".into(),
            kind: EventKind::Unknown,
            key: format!("contact/{n}"),
            delivery_key: digest16("delivery", &[id.as_bytes()]),
            business_key: None,
            digest: digest16("body", &[id.as_bytes()]),
            entry: Entry::Received,
            subject: Subject::Person { candidate: contact, identities: vec![phone] },
            occurred_at: now,
            received_at: now,
            urgent: true,
            data: EventData::default(),
            receipt: None,
        };
        self.engine.submit(Intake { request: None, events: vec![event] }).await.unwrap();
        let task = Task {
            id: format!("api:{n}").into(),
            tenant: Tenant::default(),
            bucket: BucketNo::of_contact(&Tenant::default(), contact),
            contact,
            conversation: None,
            flow: "vendas".into(),
            kind: TaskKind::Scheduled,
            cadence: None,
            touch: None,
            touch_no: None,
            message: "api".into(),
            text: Some(format!("mensagem {n}")),
            class: MessageClass::Reply,
            channel: "zap".into(),
            reference: Reference::default(),
            scheduled_for: now,
            next_attempt_at: now,
            handed: true,
            max_late: None,
            on_ambiguous: Some(policy),
            cancel_on: Vec::new(),
            status: TaskStatus::Scheduled,
            reason: None,
            avoided: false,
            attempts: 0,
            cancel_reason: None,
            reconcile_until: None,
            resent: false,
            respelled: false,
            local_time: None,
            created_at: now,
            updated_at: now,
        };
        self.engine.store().schedule_tasks(vec![task], "teste".into()).await.unwrap();
        self.engine.wake();
    }

    async fn count(&self, condition: &str) -> u64 {
        let sql = format!("SELECT count(*) FROM task WHERE {condition}");
        self.engine.store().query_sql(sql).await.unwrap().rows[0][0].as_u64().unwrap()
    }

    async fn column(&self, sql: &str) -> Vec<String> {
        let rows = self.engine.store().query_sql(sql.to_owned()).await.unwrap().rows;
        rows.iter().map(|row| row[0].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until every promise came to rest: sent, held for a person, or dead.
    async fn rest(&self) {
        for _ in 0..6_000 {
            if self.count("status NOT IN ('sent', 'held', 'dead', 'cancelled')").await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.column("SELECT id || ' ' || status || ' ' || coalesce(reason, '') || ' ' || coalesce(last_error, '') FROM task WHERE status NOT IN ('sent', 'held', 'dead', 'cancelled')").await);
    }

    fn deliveries(&self) -> BTreeMap<String, usize> {
        let mut copies = BTreeMap::new();
        for delivery in self.log.all() {
            *copies.entry(delivery.text).or_default() += 1;
        }
        copies
    }
}

/// Every way of lying but those that stop the channel or limit it.
fn lies() -> Vec<(String, Fault)> {
    let numbers = Faults::by_number().numbers;
    numbers
        .into_iter()
        .filter(|(_, fault)| !matches!(fault, Fault::Unauthorized | Fault::TooMany | Fault::Slow))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_provider_answers_nothing_is_delivered_twice_and_the_evidence_is_kept() {
    let knobs: [fn(&mut Faults); 4] = [
        |_| {},
        |faults| faults.echoes = false,
        |faults| (faults.echo_first, faults.receipts_backwards) = (true, true),
        |faults| (faults.find_nothing, faults.echoes, faults.receipts) = (true, false, false),
    ];
    for knob in knobs {
        let mut faults = Faults { webhook_pace_ms: 20, ..Faults::by_number() };
        knob(&mut faults);
        let shop = Shop::open(faults, Duration::from_secs(3)).await;
        let lies = lies();
        let mut n = 0;
        for (ending, _) in &lies {
            shop.promise(n, ending, OnAmbiguous::Hold).await;
            // Somebody to whom nothing goes wrong, in between.
            shop.promise(n + 1, "0001", OnAmbiguous::Hold).await;
            n += 2;
        }
        shop.rest().await;
        let copies = shop.deliveries();
        assert!(copies.values().all(|copies| *copies == 1), "{copies:?}");
        let honest = shop.count("status = 'sent' AND CAST(substr(id, 5) AS INTEGER) % 2 = 1").await;
        assert_eq!(honest, lies.len() as u64, "who was told the truth was sent at once");
        // Sent means delivered, but for the one that nobody can see through; what arrived is sent, or held with its evidence.
        for (at, (_, fault)) in lies.iter().enumerate() {
            let (id, text) = (format!("api:{}", at * 2), format!("mensagem {}", at * 2));
            let (row, attempts) =
                shop.engine.store().get_task(Tenant::default(), id.as_str().into()).await.unwrap().unwrap();
            let delivered = copies.contains_key(&text);
            assert_eq!(delivered, fault.delivers() || *fault == Fault::None, "{fault:?}");
            if row.task.status == TaskStatus::Sent && *fault != Fault::NeverArrives {
                assert!(delivered, "{fault:?} is recorded as sent and did not arrive");
            }
            if fault.is_ambiguous() {
                let evidence = shop.engine.store().list_evidence(Tenant::default(), id.as_str().into()).await.unwrap();
                assert!(!evidence.is_empty(), "{fault:?} leaves its evidence");
                assert_eq!(attempts.len(), 1, "{fault:?} was tried once");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_echo_and_search_what_arrived_is_known_as_sent_within_seconds() {
    let shop = Shop::open(Faults { webhook_pace_ms: 20, ..Faults::by_number() }, Duration::from_secs(60)).await;
    let seen: Vec<(String, Fault)> = lies()
        .into_iter()
        .filter(|(_, fault)| {
            matches!(fault, Fault::HangSent | Fault::ResetSent | Fault::NoId | Fault::Proxy502 | Fault::Stored400)
        })
        .collect();
    for (n, (ending, _)) in seen.iter().enumerate() {
        shop.promise(n, ending, OnAmbiguous::Hold).await;
    }
    shop.rest().await;
    assert_eq!(shop.count("status = 'sent' AND provider_message_id IS NOT NULL").await, seen.len() as u64);
    let witnesses = shop.column("SELECT DISTINCT witness FROM evidence ORDER BY 1").await;
    assert!(witnesses.contains(&"echo".to_owned()) && witnesses.contains(&"search".to_owned()), "{witnesses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resend_happens_once_and_is_on_record() {
    let faults = Faults { echoes: false, receipts: false, find_nothing: true, ..Faults::by_number() };
    let shop = Shop::open(faults, Duration::from_millis(500)).await;
    for (n, (ending, _)) in lies().iter().enumerate() {
        shop.promise(n, ending, OnAmbiguous::ResendOnce).await;
    }
    shop.rest().await;
    assert!(shop.deliveries().values().all(|copies| *copies <= 2));
    let twice = shop.deliveries().values().filter(|copies| **copies == 2).count() as u64;
    assert!(twice > 0 && shop.count("resent = 1").await >= twice, "{twice}");
    let said = shop.column("SELECT said FROM evidence WHERE witness = 'policy'").await;
    assert!(said.iter().any(|said| said.contains("sends it once more")), "{said:?}");
}
