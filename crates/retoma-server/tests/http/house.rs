//! A server with one door of every kind, and a provider that takes everything.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use retoma_core::event::EventKind;
use retoma_core::flow::Flow;
use retoma_core::ids::{ChannelName, Tenant};
use retoma_core::retry::RetryPolicy;
use retoma_engine::{Engine, EngineSetup, Supervisor, SystemClock, Transport};
use retoma_providers::inbound::{
    Auth, CloudDoor, Hmac, HmacAlgorithm, HmacEncoding, Mapping, OnMissingId, Path, Provider, Secret, SignaturePlace,
    Source,
};
use retoma_providers::outbound::{Channel, ChannelKind, WireEnd, WireRequest};
use retoma_server::gate::GatePolicy;
use retoma_server::{AppState, Door, LocalKey, Proxies, Rate, RatePerAddress, ServerSetup};
use retoma_sqlite::{FaultPlan, Options, SqliteStore};
use retoma_store::Retention;
use serde_json::{Value, json};
use sha2::Digest;
use tower::ServiceExt;

/// The secret of every door.
pub(crate) const SECRET: &str = "segredo-de-teste";
/// The key of the command line.
pub(crate) const LOCAL: &str = "chave-local";

/// A provider that takes everything.
struct Taken;

impl Transport for Taken {
    async fn send(&self, _: WireRequest, _: Duration, _: Duration) -> WireEnd {
        let body = json!({ "key": { "remoteJid": "x", "fromMe": true, "id": "WIRE1" }, "status": "PENDING" });
        WireEnd::Answer { status: 201, headers: HeaderMap::new(), body: Bytes::from(body.to_string()) }
    }
}

pub(crate) struct House {
    pub(crate) router: Router,
    pub(crate) engine: Engine<SqliteStore>,
    pub(crate) state: AppState<SqliteStore>,
    pub(crate) faults: FaultPlan,
    _supervisor: Supervisor,
    _dir: tempfile::TempDir,
}

/// An answer, read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) body: Value,
}

impl House {
    /// Everything runs.
    pub(crate) async fn new() -> Self {
        Self::with(true).await
    }

    /// With `decide` off, events stay undecided.
    pub(crate) async fn with(decide: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let faults = FaultPlan::default();
        let options = Options { faults: faults.clone(), ..Options::default() };
        let store = SqliteStore::open(dir.path().join("retoma.db"), options).unwrap();
        let day = Duration::from_secs(86_400);
        let setup = EngineSetup {
            flows: [("vendas".into(), Arc::new(Flow::vendas()))].into(),
            channels: [(ChannelName::new("zap"), Arc::new(zap()))].into(),
            default_channel: Some("zap".into()),
            retry: RetryPolicy::recovery(),
            reconcile_for: Duration::from_secs(600),
            decide,
            deliver: decide,
            tenant: Tenant::default(),
            keep: Retention { events: 90 * day, tasks: 90 * day, gate_held: 30 * day },
        };
        let started = Engine::start(store, setup, Arc::new(SystemClock::new()), Arc::new(Taken)).await;
        let (engine, supervisor) = started.unwrap();
        let state = AppState::new(
            engine.clone(),
            ServerSetup {
                proxies: Proxies::nearby(),
                doors: doors(),
                channels: vec!["zap".into()],
                default_channel: Some("zap".into()),
                timezone: jiff::tz::TimeZone::get("America/Sao_Paulo").unwrap(),
                locale: "pt-BR".to_owned(),
                local_key: Some(LocalKey(LOCAL.to_owned())),
                random: || [7; 32],
                version: "test",
                flow_source: None,
                gate: [(
                    "planilha".to_owned(),
                    GatePolicy { proceed_when_expired: true, lease: Duration::from_secs(60), ..GatePolicy::default() },
                )]
                .into(),
            },
        );
        Self { router: retoma_server::router(state.clone()), state, engine, faults, _supervisor: supervisor, _dir: dir }
    }

    /// Sends a request as it stands.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { status: head.status, headers: head.headers, bytes, body }
    }

    /// A webhook with the door's own credential.
    pub(crate) async fn hook(&self, source: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let body = body.into();
        let (name, value) = proof(source, &body, true);
        let mut request = Request::post(format!("/in/{source}")).header(name, value);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// A JSON webhook with the door's own credential.
    pub(crate) async fn json(&self, source: &str, body: &Value) -> Answer {
        self.hook(source, &[("content-type", "application/json")], body.to_string()).await
    }

    /// A call of the API with a key.
    pub(crate) async fn call(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(LOCAL, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(LOCAL, Method::POST, path, Some(body)).await
    }

    /// Waits until the event came to its end.
    pub(crate) async fn decided(&self, answer: &Answer) {
        let id = answer.body["event_id"].as_str().unwrap().parse().unwrap();
        let row = self.engine.decided(&Tenant::default(), id, Duration::from_secs(20)).await.unwrap().unwrap();
        assert!(row.status != retoma_store::EventStatus::Received, "nobody decided it");
    }

    /// The contact of a phone, once a PIX of hers is decided.
    pub(crate) async fn with_pix(&self, phone: &str, transaction: &str) -> String {
        let answer = self.json("loja-hotmart", &pix(&format!("pix-{transaction}"), phone, transaction)).await;
        self.decided(&answer).await;
        let found = self.get(&format!("/v1/contacts?phone={phone}")).await;
        found.body["items"][0]["id"].as_str().unwrap().to_owned()
    }
}

fn credential_of(source: &str) -> &'static str {
    match source {
        "zap" => "x-hook-secret",
        "nuvem" => "X-Hub-Signature-256",
        source if source.contains("hotmart") => "X-HOTMART-HOTTOK",
        _ => "X-Token",
    }
}

/// The header by which a door's sender proves himself, with the right value for the body or with a wrong one.
pub(crate) fn proof(source: &str, body: &[u8], right: bool) -> (&'static str, String) {
    let secret = if right { SECRET } else { "errado" };
    let value = if source == "nuvem" { format!("sha256={}", hmac(secret, body)) } else { secret.to_owned() };
    (credential_of(source), value)
}

/// HMAC-SHA256 in hex, as RFC 2104 writes it; the server's own code would agree with itself.
fn hmac(key: &str, body: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key.as_bytes());
    let digest = |pad: u8, message: &[u8]| {
        let mut hash = sha2::Sha256::new();
        hash.update(block.map(|byte| byte ^ pad));
        hash.update(message);
        hash.finalize()
    };
    hex::encode(digest(0x5c, &digest(0x36, body)))
}

fn doors() -> Vec<Door> {
    let hold = OnMissingId::Hold;
    let mut doors = vec![
        door("pedidos", Provider::Generic, hold),
        door("rejeita", Provider::Generic, OnMissingId::Reject),
        door("impressao", Provider::Generic, OnMissingId::Fingerprint),
        door("loja-hotmart", Provider::Hotmart, hold),
        door("zap", Provider::Evolution, hold),
        door("nuvem", Provider::WhatsappCloud, hold),
    ];
    for (name, provider) in [("", Provider::Generic), ("-hotmart", Provider::Hotmart)] {
        let mut slow = door(&format!("devagar{name}"), provider, hold);
        slow.rate = Some(Rate::new(1, Duration::from_secs(3600)));
        let mut busy = door(&format!("apressado{name}"), provider, hold);
        busy.rate_per_address = Some(RatePerAddress::new(1, Duration::from_secs(3600)));
        let mut listed = door(&format!("vizinhos{name}"), provider, hold);
        listed.addresses = Some(vec!["203.0.113.0/24".parse().unwrap()]);
        let mut unready = door(&format!("sem-segredo{name}"), provider, hold);
        unready.source.auth = Auth::Query { name: "token".into(), secrets: vec![Secret(Vec::new())] };
        doors.extend([slow, busy, listed, unready]);
    }
    let mut shop = door("filial", Provider::Generic, hold);
    shop.source.origin = vec![(Path::parse("$.store").unwrap(), "77".to_owned())];
    shop.source.mapping.as_mut().unwrap().required = vec![Path::parse("$.phone").unwrap()];
    let mut secret = door("secreto", Provider::Generic, hold);
    secret.source.auth = Auth::SecretPath { secrets: vec![Secret(SECRET.into())] };
    doors.extend([shop, secret]);
    doors
}

fn door(name: &str, provider: Provider, on_missing_id: OnMissingId) -> Door {
    let secrets = vec![Secret(SECRET.as_bytes().to_vec())];
    let auth = match provider {
        Provider::WhatsappCloud => Auth::Hmac(Hmac {
            place: SignaturePlace::Header(credential_of(name).to_owned()),
            algorithm: HmacAlgorithm::Sha256,
            encoding: HmacEncoding::Hex,
            prefix: "sha256=".to_owned(),
            content: "{body}".to_owned(),
            timestamp_header: None,
            tolerance: None,
            secrets,
        }),
        _ => Auth::Header { name: credential_of(name).to_owned(), secrets, or_body: None },
    };
    Door::new(Source {
        name: name.into(),
        tenant: Tenant::default(),
        provider,
        account: name.into(),
        flow: Some("vendas".into()),
        channel: Some("zap".into()),
        auth,
        instance: (provider == Provider::Evolution).then(|| "loja-a".to_owned()),
        cloud: (provider == Provider::WhatsappCloud).then(|| CloudDoor {
            phone_number_ids: vec!["2000".to_owned()],
            verify_tokens: vec![Secret(b"confirma".to_vec())],
        }),
        mapping: (provider == Provider::Generic).then(|| mapping(on_missing_id)),
        origin: Vec::new(),
        body_bytes_max: 64 * 1024,
    })
}

fn mapping(on_missing_id: OnMissingId) -> Mapping {
    let path = |text: &str| Some(Path::parse(text).unwrap());
    Mapping {
        id: path("$.id").into_iter().collect(),
        kind: path("$.event"),
        contact: path("$.phone"),
        order: path("$.order"),
        types: [("order.pix".to_owned(), EventKind::PixCreated)].into(),
        on_missing_id,
        ..Mapping::default()
    }
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
        concurrency: 8,
        rate: None,
        pair_every: None,
    }
}

/// A PIX that nobody paid yet, as Hotmart says it.
pub(crate) fn pix(id: &str, phone: &str, transaction: &str) -> Value {
    json!({
        "id": id, "event": "PURCHASE_BILLET_PRINTED", "version": "2.0.0",
        "data": {
            "product": { "id": 9000001, "name": "Curso Exemplo" },
            "buyer": { "name": "Ana Teste", "checkout_phone": phone },
            "purchase": {
                "transaction": transaction,
                "price": { "value": 197, "currency_value": "BRL" },
                "payment": { "type": "PIX", "pix_code": "00020101021226EXEMPLO6304ABCD" }
            }
        }
    })
}

/// The payment of it.
pub(crate) fn paid(id: &str, phone: &str, transaction: &str) -> Value {
    let mut body = pix(id, phone, transaction);
    body["event"] = json!("PURCHASE_APPROVED");
    body
}

/// A message, as Evolution says it.
pub(crate) fn message(id: &str, phone: &str, text: &str) -> Value {
    json!({
        "event": "messages.upsert", "instance": "loja-a",
        "data": {
            "key": { "remoteJid": format!("{phone}@s.whatsapp.net"), "fromMe": false, "id": id },
            "pushName": "Ana", "message": { "conversation": text }
        }
    })
}

/// A message, as the Cloud API says it.
pub(crate) fn cloud_message(id: &str, number: &str, phone: &str, text: &str) -> Value {
    json!({
        "object": "whatsapp_business_account",
        "entry": [{ "id": "1", "changes": [{ "field": "messages", "value": {
            "metadata": { "display_phone_number": "554133330000", "phone_number_id": number },
            "contacts": [{ "profile": { "name": "Ana" }, "wa_id": phone }],
            "messages": [{ "from": phone, "id": id, "timestamp": "1790000000", "type": "text", "text": { "body": text } }]
        } }] }]
    })
}
