//! The transport against real sockets: which failures are "surely not sent", which are "perhaps sent" (E4, E9).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use retoma_engine::address_guard::AddressGuard;
use retoma_engine::transport::{Authority, START_TOO_OLD};
use retoma_engine::{Clock, HttpTransport, SystemClock, Transport};
use retoma_providers::outbound::{WireEnd, WireRequest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_secs(20);

/// What the server does with each connection, in order of connections.
#[derive(Clone, Copy, PartialEq)]
enum Behave {
    /// Answers 201 and keeps the connection open.
    Answer,
    /// Answers 201, then closes.
    AnswerAndClose,
    /// Reads the request, then closes without an answer.
    CloseAfterRequest,
    /// Reads the request and never answers.
    Hang,
    /// Answers half of what it announced.
    HalfAnswer,
    /// Sends the client elsewhere.
    Redirect,
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut chunk).await.ok()?;
        if n == 0 {
            return None;
        }
        seen.extend_from_slice(&chunk[..n]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains("\r\n\r\n") && text.ends_with("corpo") {
            return Some(text);
        }
    }
}

async fn behave(mut stream: TcpStream, how: Behave) {
    while let Some(_request) = read_request(&mut stream).await {
        let answer = match how {
            Behave::Answer | Behave::AnswerAndClose => "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}",
            Behave::HalfAnswer => "HTTP/1.1 201 Created\r\ncontent-length: 200\r\n\r\n{}",
            Behave::Redirect => "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
            Behave::CloseAfterRequest => return,
            Behave::Hang => std::future::pending().await,
        };
        if stream.write_all(answer.as_bytes()).await.is_err() || how == Behave::AnswerAndClose {
            return;
        }
        if how == Behave::HalfAnswer {
            return;
        }
    }
}

async fn serve(plan: Vec<Behave>) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for how in plan {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(behave(stream, how));
        }
        while connections.join_next().await.is_some() {}
    });
    (address, tasks)
}

fn transport(allow: &[SocketAddr]) -> (HttpTransport, Arc<dyn Clock>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let allow: Vec<String> = allow.iter().map(ToString::to_string).collect();
    (HttpTransport::new(AddressGuard::new(&allow), Arc::clone(&clock)), clock)
}

fn request(to: impl std::fmt::Display) -> WireRequest {
    WireRequest { url: format!("http://{to}/send"), headers: HeaderMap::new(), body: Bytes::from_static(b"corpo") }
}

async fn send(plan: Vec<Behave>, deadline: Duration) -> WireEnd {
    let (address, _server) = serve(plan).await;
    let (transport, clock) = transport(&[address]);
    transport.send(request(address), deadline, clock.monotonic() + SOON).await
}

#[tokio::test]
async fn an_answer_comes_with_its_status_and_body() {
    match send(vec![Behave::Answer], SOON).await {
        WireEnd::Answer { status, body, .. } => assert_eq!((status, &body[..]), (201, &b"{}"[..])),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refused_connection_is_surely_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (transport, clock) = transport(&[address]);
    let end = transport.send(request(address), SOON, clock.monotonic() + SOON).await;
    assert!(matches!(&end, WireEnd::NotWritten { what } if what.starts_with("connect:")), "{end:?}");
}

#[tokio::test]
async fn a_connection_closed_after_the_request_is_perhaps_sent() {
    let end = send(vec![Behave::CloseAfterRequest], SOON).await;
    assert!(matches!(end, WireEnd::NoAnswer { .. }), "{end:?}");
}

#[tokio::test]
async fn a_time_out_after_the_request_is_perhaps_sent() {
    let end = send(vec![Behave::Hang], Duration::from_millis(200)).await;
    assert!(matches!(&end, WireEnd::NoAnswer { what } if what == "timeout"), "{end:?}");
}

#[tokio::test]
async fn half_an_answer_is_perhaps_sent() {
    let end = send(vec![Behave::HalfAnswer], SOON).await;
    assert!(matches!(end, WireEnd::NoAnswer { .. }), "{end:?}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_never_followed() {
    let end = send(vec![Behave::Redirect], SOON).await;
    assert!(matches!(end, WireEnd::Answer { status: 302, .. }), "{end:?}");
}

#[tokio::test]
async fn a_start_that_grew_old_writes_nothing() {
    let (address, _server) = serve(vec![Behave::Answer]).await;
    let (transport, _) = transport(&[address]);
    let end = transport.send(request(address), SOON, Duration::ZERO).await;
    assert!(matches!(&end, WireEnd::NotWritten { what } if what == START_TOO_OLD), "{end:?}");
}

#[tokio::test]
async fn a_private_address_without_an_entry_is_refused_before_a_byte_leaves() {
    let (address, _server) = serve(vec![Behave::Answer]).await;
    let (transport, clock) = transport(&[]);
    for url in [format!("http://{address}/"), format!("http://localhost:{}/", address.port())] {
        let wire = WireRequest { url, headers: HeaderMap::new(), body: Bytes::from_static(b"corpo") };
        let end = transport.send(wire, SOON, clock.monotonic() + SOON).await;
        assert!(matches!(&end, WireEnd::NotWritten { what } if what.starts_with("address refused")), "{end:?}");
    }
}

#[tokio::test]
async fn strange_urls_are_refused() {
    let (transport, clock) = transport(&[]);
    for url in ["ftp://example.com/", "http://user:pw@example.com/", "http:///", "nonsense"] {
        let wire = WireRequest { url: url.into(), headers: HeaderMap::new(), body: Bytes::new() };
        let end = transport.send(wire, SOON, clock.monotonic() + SOON).await;
        assert!(matches!(end, WireEnd::NotWritten { .. }), "{url}: {end:?}");
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_idle_is_not_used_again() {
    let (address, _server) = serve(vec![Behave::AnswerAndClose; 20]).await;
    let (transport, clock) = transport(&[address]);
    for round in 0..20 {
        let end = transport.send(request(address), SOON, clock.monotonic() + SOON).await;
        // The close may cross the request on the wire only if it was reused before the close was seen.
        assert!(!matches!(end, WireEnd::NotWritten { .. }), "round {round}: {end:?}");
    }
}

#[tokio::test]
async fn a_kept_connection_is_used_again() {
    // One accepted connection only: a second dial would be refused a server.
    let (address, _server) = serve(vec![Behave::Answer]).await;
    let (transport, clock) = transport(&[address]);
    for round in 0..5 {
        let end = transport.send(request(address), Duration::from_secs(5), clock.monotonic() + SOON).await;
        assert!(matches!(end, WireEnd::Answer { status: 201, .. }), "round {round}: {end:?}");
    }
}

/// A TLS server with that certificate, which answers 201.
async fn serve_tls(certificate: &[u8]) -> (SocketAddr, JoinSet<()>) {
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").await;
            let _ = stream.shutdown().await;
        }
    });
    (address, tasks)
}

/// One request to `https://localhost` on that port, trusting the test's own authority.
async fn send_tls(to: SocketAddr) -> WireEnd {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let own = Authority::read(include_bytes!("tls/ca.pem")).unwrap();
    let guard = AddressGuard::new(&[format!("localhost:{}", to.port())]);
    let transport = HttpTransport::trusting(guard, Arc::clone(&clock), &own);
    let request = WireRequest { url: format!("https://localhost:{}/send", to.port()), ..request(to) };
    transport.send(request, SOON, clock.monotonic() + SOON).await
}

// FC-69: each with its own reason, none of them sent, and all delivered once they are repaired.
#[tokio::test]
async fn every_broken_certificate_is_surely_not_sent_and_says_what_to_repair() {
    let broken: [(&[u8], &str); 4] = [
        (include_bytes!("tls/expired.pem"), "has expired"),
        (include_bytes!("tls/other.pem"), "for another host"),
        (include_bytes!("tls/self.pem"), "nobody whom we trust"),
        (include_bytes!("tls/leaf-of-ica.pem"), "a missing intermediate"),
    ];
    for (certificate, reason) in broken {
        let (address, _server) = serve_tls(certificate).await;
        match send_tls(address).await {
            WireEnd::NotWritten { what } => assert!(what.starts_with("tls: ") && what.contains(reason), "{what}"),
            other => panic!("{reason}: {other:?}"),
        }
    }
    let (address, _server) = serve_tls(include_bytes!("tls/good.pem")).await;
    assert!(matches!(send_tls(address).await, WireEnd::Answer { status: 201, .. }), "repaired");
}

// FC-69
#[tokio::test]
async fn a_server_without_tls_and_a_name_without_an_address_are_surely_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    match send_tls(address).await {
        WireEnd::NotWritten { what } => assert_eq!(what, "tls: the server does not speak TLS on this port"),
        other => panic!("{other:?}"),
    }
    let (transport, clock) = transport(&[]);
    let nowhere = WireRequest { url: "https://loja.invalid/send".to_owned(), ..request(address) };
    match transport.send(nowhere, SOON, clock.monotonic() + SOON).await {
        WireEnd::NotWritten { what } => assert!(what.starts_with("dns: "), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_authority_is_a_certificate() {
    assert_eq!(Authority::read(include_bytes!("tls/ca.pem")).unwrap().len(), 1);
    assert!(Authority::read(b"").unwrap_err().contains("no certificate"));
    assert!(Authority::read(include_bytes!("tls/server.key")).unwrap_err().contains("no certificate"));
}
