//! The HTTP client of the deliverer: HTTP/1.1, one request at a time per connection, where the phase of a failure is known.
//!
//! It counts the bytes written to each connection, so that "surely not sent" and "perhaps sent" are told apart by a number
//! and not by the text of an error. It follows no redirect and repeats nothing: a request whose first byte left is never
//! written again. Addresses are judged after resolution, in the connector ([`AddressGuard`]), since resolvers are skipped
//! for literal addresses.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use retoma_providers::outbound::{WireEnd, WireRequest};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address_guard::AddressGuard;
use crate::clock::Clock;

mod authority;
mod counting;
mod failure;

pub use authority::Authority;

use counting::{Counting, Stream};

/// How much of an answer is kept.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Idle connections per destination.
const IDLE_MAX: usize = 64;
/// Servers close idle connections (Node after 5 s); reusing one at that moment would make a send ambiguous.
const IDLE_FOR: Duration = Duration::from_secs(3);
/// What a request is answered with whose start grew old before its first byte: not sent, and no attempt lost.
pub const START_TOO_OLD: &str = "the start grew too old before the first byte";
/// Longest time to resolve, connect and shake hands.
const CONNECT_FOR: Duration = Duration::from_secs(5);

/// How requests leave. The simulator has its own.
pub trait Transport: Send + Sync + 'static {
    /// Writes the request and reads its answer. The first byte leaves before `start_by` (monotonic clock) or not at all;
    /// the whole takes at most `deadline`.
    fn send(
        &self,
        request: WireRequest,
        deadline: Duration,
        start_by: Duration,
    ) -> impl Future<Output = WireEnd> + Send;
}

/// How a platform is asked what it has: a GET request, whose answer is read up to a limit of the caller's.
pub trait Fetch: Send + Sync + 'static {
    /// Writes the request and reads its answer, in at most `deadline`. A longer answer is cut at `bytes_max`.
    fn fetch(
        &self,
        url: String,
        headers: http::HeaderMap,
        bytes_max: usize,
        deadline: Duration,
    ) -> impl Future<Output = WireEnd> + Send;
}

/// The real one.
pub struct HttpTransport {
    guard: AddressGuard,
    clock: Arc<dyn Clock>,
    tls: tokio_rustls::TlsConnector,
    idle: Mutex<HashMap<Destination, Vec<Idle>>>,
    /// Connection drivers; ends of connections are reaped at each dial.
    drivers: Mutex<JoinSet<()>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Destination {
    tls: bool,
    host: String,
    port: u16,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    written: Arc<AtomicU64>,
}

struct Idle {
    connection: Connection,
    since: Duration,
}

impl HttpTransport {
    /// A client with that guard, which trusts the certificate authorities of the public web.
    pub fn new(guard: AddressGuard, clock: Arc<dyn Clock>) -> Self {
        Self::trusting(guard, clock, &[])
    }

    /// The same, trusting these authorities of the seller's own, too. That certificates are checked cannot be switched off.
    pub fn trusting(guard: AddressGuard, clock: Arc<dyn Clock>, own: &[Authority]) -> Self {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for authority in own {
            // Read as a trust anchor when it was configured.
            let _ = roots.add(authority.0.clone());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            guard,
            clock,
            tls: tokio_rustls::TlsConnector::from(Arc::new(config)),
            idle: Mutex::default(),
            drivers: Mutex::default(),
        }
    }

    fn take_idle(&self, to: &Destination) -> Option<Connection> {
        let now = self.clock.monotonic();
        let mut idle = self.idle.lock().expect("no code panics while it holds the idle list");
        let list = idle.get_mut(to)?;
        while let Some(found) = list.pop() {
            if now.saturating_sub(found.since) < IDLE_FOR && !found.connection.sender.is_closed() {
                return Some(found.connection);
            }
        }
        None
    }

    fn keep_idle(&self, to: Destination, connection: Connection) {
        let since = self.clock.monotonic();
        let mut idle = self.idle.lock().expect("no code panics while it holds the idle list");
        let list = idle.entry(to).or_default();
        if list.len() < IDLE_MAX {
            list.push(Idle { connection, since });
        }
    }

    async fn dial(&self, to: &Destination) -> Result<Connection, String> {
        let addresses: Vec<_> = tokio::net::lookup_host((to.host.as_str(), to.port))
            .await
            .map_err(|error| failure::of_dns(&error).to_owned())?
            .collect();
        // Every address must pass: a name that resolves to one public and one private address is a trap.
        for address in &addresses {
            self.guard.judge(&to.host, to.port, address.ip()).map_err(|why| format!("address refused: {why}"))?;
        }
        let mut last = "dns: the host name has no address".to_owned();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return self.shake_hands(to, stream).await,
                Err(error) => last = format!("connect: {}", error.kind()),
            }
        }
        Err(last)
    }

    async fn shake_hands(&self, to: &Destination, stream: TcpStream) -> Result<Connection, String> {
        let _ = stream.set_nodelay(true);
        let stream = if to.tls {
            let name = rustls::pki_types::ServerName::try_from(to.host.clone())
                .map_err(|_| "tls: the host is no valid server name".to_owned())?;
            let tls = self.tls.connect(name, stream).await.map_err(|error| failure::of_tls(&error))?;
            Stream::Tls(Box::new(tls))
        } else {
            Stream::Plain(stream)
        };
        let written = Arc::new(AtomicU64::new(0));
        let io = hyper_util::rt::TokioIo::new(Counting::new(stream, Arc::clone(&written)));
        let (sender, driver) =
            hyper::client::conn::http1::handshake(io).await.map_err(|error| format!("connect: {error}"))?;
        let mut drivers = self.drivers.lock().expect("no code panics while it holds the drivers");
        while drivers.try_join_next().is_some() {}
        drivers.spawn(async move {
            // How a connection ends is told by the request on it.
            let _ = driver.await;
        });
        Ok(Connection { sender, written })
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
        deadline: Duration,
    ) -> WireEnd {
        let before = connection.written.load(Ordering::Acquire);
        let answer = async {
            let answer = connection.sender.send_request(request).await.map_err(|error| plain(&error))?;
            let (head, mut body) = answer.into_parts();
            let mut kept = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| plain(&error))?;
                if let Ok(data) = frame.into_data() {
                    let room = bytes_max.saturating_sub(kept.len());
                    kept.extend_from_slice(&data[..data.len().min(room)]);
                    if data.len() > room {
                        // The rest is not worth reading; dropping the body closes the connection.
                        break;
                    }
                }
            }
            Ok::<_, String>(WireEnd::Answer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: kept.freeze(),
            })
        };
        let what = match timeout(deadline, answer).await {
            Ok(Ok(end)) => return end,
            Ok(Err(what)) => what,
            Err(_) => "timeout".to_owned(),
        };
        if connection.written.load(Ordering::Acquire) == before {
            WireEnd::NotWritten { what }
        } else {
            WireEnd::NoAnswer { what }
        }
    }
}

/// What went wrong on a connection, without anything of its content.
fn plain(error: &hyper::Error) -> String {
    let what = if error.is_incomplete_message() {
        "the connection closed before the answer"
    } else if error.is_parse() {
        "the answer is no valid HTTP"
    } else if error.is_canceled() {
        "the connection closed before the request"
    } else {
        "the connection broke"
    };
    what.to_owned()
}

fn destination(url: &str) -> Result<(Destination, Uri), String> {
    let uri: Uri = url.parse().map_err(|_| "the URL is not valid".to_owned())?;
    let tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("only http and https are allowed".to_owned()),
    };
    let authority = uri.authority().ok_or_else(|| "the URL names no host".to_owned())?;
    if authority.as_str().contains('@') {
        return Err("a URL with a user or password is refused; use a header".to_owned());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    Ok((Destination { tls, host, port }, uri))
}

fn to_http(method: Method, request: WireRequest, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut built = Request::builder().method(method).uri(path).header(header::HOST, authority);
    for (name, value) in &request.headers {
        built = built.header(name, value);
    }
    built
        .header(header::USER_AGENT, concat!("retoma/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(request.body))
        .map_err(|_| "the request is not valid".to_owned())
}

impl Transport for HttpTransport {
    async fn send(&self, request: WireRequest, deadline: Duration, start_by: Duration) -> WireEnd {
        self.perform(Method::POST, request, ANSWER_BYTES_MAX, deadline, start_by).await
    }
}

impl Fetch for HttpTransport {
    async fn fetch(&self, url: String, headers: http::HeaderMap, bytes_max: usize, deadline: Duration) -> WireEnd {
        let request = WireRequest { url, headers, body: Bytes::new() };
        self.perform(Method::GET, request, bytes_max, deadline, Duration::MAX).await
    }
}

impl HttpTransport {
    async fn perform(
        &self,
        method: Method,
        request: WireRequest,
        bytes_max: usize,
        deadline: Duration,
        start_by: Duration,
    ) -> WireEnd {
        let begun = self.clock.monotonic();
        let prepared = destination(&request.url).and_then(|(to, uri)| Ok((to, to_http(method, request, &uri)?)));
        let (to, request) = match prepared {
            Ok(prepared) => prepared,
            Err(what) => return WireEnd::NotWritten { what },
        };
        let reused = match self.take_idle(&to) {
            // Ready means: the answer before was read to its end. A connection that closed meanwhile never gets ready.
            Some(mut idle) => idle.sender.ready().await.is_ok().then_some(idle),
            None => None,
        };
        let mut connection = match reused {
            Some(connection) => connection,
            None => match timeout(CONNECT_FOR.min(deadline), self.dial(&to)).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(what)) => return WireEnd::NotWritten { what },
                Err(_) => return WireEnd::NotWritten { what: "connect: timeout".to_owned() },
            },
        };
        // Tested last before the write: a start that grew old while we dialled must not become a request.
        let now = self.clock.monotonic();
        if now >= start_by {
            return WireEnd::NotWritten { what: START_TOO_OLD.to_owned() };
        }
        let left = deadline.saturating_sub(now.saturating_sub(begun));
        let end = self.exchange(&mut connection, request, bytes_max, left).await;
        if matches!(end, WireEnd::Answer { .. }) && !connection.sender.is_closed() {
            self.keep_idle(to, connection);
        }
        end
    }
}
