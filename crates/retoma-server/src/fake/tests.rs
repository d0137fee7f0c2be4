use std::collections::BTreeMap;

use http::HeaderMap;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::{HttpTransport, SystemClock, Transport};
use retoma_providers::evolution::fake::{Fault, Faults};
use retoma_providers::outbound::{WireEnd, WireRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;

const KEY: &str = "key-of-the-test";

/// A running fake and a client of it.
struct Bench {
    address: SocketAddr,
    log: DeliveryLog,
    clock: Arc<dyn Clock>,
    transport: HttpTransport,
    _stop: oneshot::Sender<()>,
    _serving: JoinSet<()>,
}

async fn bench(chances: &[(Fault, f64)], webhook: Option<Webhook>) -> Bench {
    let faults = Faults { chances: chances.iter().copied().collect::<BTreeMap<_, _>>(), ..Faults::default() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let fake = Fake::new("loja-a", KEY, faults, 7);
    let setup = FakeSetup { fake, clock: Arc::clone(&clock), webhook, log: None, tell: |_| {} };
    let server = FakeServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), setup).await.unwrap();
    let (address, log) = (server.address().unwrap(), server.log());
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = JoinSet::new();
    serving.spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    let guard = AddressGuard::new(&[address.to_string()]);
    let transport = HttpTransport::new(guard, Arc::clone(&clock));
    Bench { address, log, clock, transport, _stop: stop, _serving: serving }
}

impl Bench {
    async fn send(&self, text: &str, deadline: Duration) -> WireEnd {
        let mut headers = HeaderMap::new();
        headers.insert("apikey", HeaderValue::from_static(KEY));
        let url = format!("http://{}/message/sendText/loja-a", self.address);
        let body = Bytes::from(json!({ "number": "5541999990001", "text": text }).to_string());
        let start_by = self.clock.monotonic() + deadline;
        self.transport.send(WireRequest { url, headers, body }, deadline, start_by).await
    }

    fn delivered(&self) -> Vec<String> {
        self.log.all().into_iter().map(|delivery| delivery.text).collect()
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_send_is_answered_after_it_is_in_the_log() {
    let bench = bench(&[], None).await;
    let end = bench.send("olá", LONG).await;
    assert!(matches!(end, WireEnd::Answer { status: 201, .. }), "{end:?}");
    assert_eq!(bench.delivered(), ["olá"]);
}

#[tokio::test]
async fn faults_look_on_the_wire_as_they_are_called() {
    // FC-32: fault, what the client sees, what reached the phone.
    let cases = [
        (Fault::HangSent, "timeout", 1),
        (Fault::HangUnsent, "timeout", 0),
        (Fault::ResetSent, "the connection", 1),
        (Fault::ResetUnsent, "the connection", 0),
        (Fault::Sent400, "400", 1),
        (Fault::Sent500, "500", 1),
        (Fault::Closed500, "500", 0),
    ];
    for (fault, seen, reached) in cases {
        let bench = bench(&[(fault, 1.0)], None).await;
        let hangs = matches!(fault, Fault::HangSent | Fault::HangUnsent);
        let end = bench.send("olá", if hangs { Duration::from_millis(200) } else { LONG }).await;
        let said = match end {
            WireEnd::Answer { status, .. } => status.to_string(),
            WireEnd::NoAnswer { what } => what,
            WireEnd::NotWritten { what } => format!("not written: {what}"),
        };
        assert!(said.starts_with(seen), "{fault:?}: {said}");
        assert_eq!(bench.delivered().len(), reached, "{fault:?}");
    }
}

/// Reads one request from a connection and answers it with `status`; gives back its head and body.
async fn answer_one(listener: &TcpListener, status: &str) -> (String, serde_json::Value) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut read = Vec::new();
    let (head, body) = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the client closed in the middle of its request");
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8(read.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            break (head.to_owned(), body);
        }
    };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    (head, body)
}

#[tokio::test]
async fn a_webhook_that_is_not_taken_comes_again_with_its_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-hook-secret", HeaderValue::from_static("geheim"));
    let webhook = Webhook { url: format!("http://{}/in/zap", listener.local_addr().unwrap()), headers };
    let bench = bench(&[], Some(webhook)).await;
    bench.send("olá", LONG).await;
    // The echo first; a 503 brings it back, whatever comes in between.
    let (head, first) = answer_one(&listener, "503 Service Unavailable").await;
    assert!(head.starts_with("POST /in/zap ") && head.contains("x-hook-secret: geheim"), "{head}");
    let mut again = 0;
    let mut taken = 0;
    while taken < 4 {
        let (_, body) = answer_one(&listener, "200 OK").await;
        again += usize::from(body == first);
        taken += 1;
    }
    assert_eq!(again, 1);
}

#[tokio::test]
async fn a_webhook_that_is_refused_for_good_does_not_come_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let webhook = Webhook { url: format!("http://{}/", listener.local_addr().unwrap()), headers: HeaderMap::new() };
    let bench = bench(&[], Some(webhook)).await;
    bench.send("olá", LONG).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(answer_one(&listener, "401 Unauthorized").await.1);
    }
    // Echo and three receipts, each once; a repetition of the first would have come 100 ms after it.
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn the_log_is_shown_to_tests() {
    let bench = bench(&[], None).await;
    bench.send("olá", LONG).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(b"GET /log HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let shown: Vec<Delivery> = serde_json::from_str(body).unwrap();
    assert_eq!(shown, bench.log.all());
    assert_eq!(shown[0].number, "5541999990001");
}
