//! The command line's way to the API. If a server runs on the database, requests go to it over HTTP with the key of its
//! local file; otherwise the database is opened here and the very same routes are called in-process, with events being
//! decided and nothing being sent.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::tz::TimeZone;
use retoma_server::LocalKey;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::commands::load;
use crate::local::LocalServer;
use crate::wiring::{self, Loops, Running};
use crate::{config, random};

/// How long the server may take to accept a connection before it counts as gone.
const CONNECT_FOR: Duration = Duration::from_secs(2);
/// How long an answer may take; backups are the slow ones.
const ANSWER_FOR: Duration = Duration::from_secs(300);

/// Where requests go.
enum Way {
    /// A running server.
    Remote(LocalServer),
    /// Parts that run in this process.
    Inside { router: Router, key: String, running: Box<Running> },
}

/// The API, wherever it is.
pub(crate) struct Client {
    way: Way,
    /// The zone that times are shown in.
    pub(crate) zone: TimeZone,
}

impl Client {
    /// Finds the server of the configuration's database, or opens the database and decides what waits.
    pub(crate) async fn open(config: &Path) -> anyhow::Result<Self> {
        Self::open_with(config, Loops { decide: true, deliver: false }).await
    }

    /// The same, without moving anything.
    pub(crate) async fn open_to_look(config: &Path) -> anyhow::Result<Self> {
        Self::open_with(config, Loops { decide: false, deliver: false }).await
    }

    async fn open_with(config: &Path, loops: Loops) -> anyhow::Result<Self> {
        let place = config::whereabouts(config).map_err(|error| load::unreadable(config, &error))?;
        let (zone, database) = (place.timezone, place.database);
        if let Some(server) = LocalServer::read(&database)
            && connect(&server.url).await.is_ok()
        {
            return Ok(Self { way: Way::Remote(server), zone });
        }
        let setup = load::setup(config)?;
        let store = wiring::open(&database)?;
        let key = random::text();
        let running = wiring::start(store, setup, loops, Some(LocalKey(key.clone())), None).await?;
        let router = retoma_server::router(running.state.clone());
        Ok(Self { way: Way::Inside { router, key, running: Box::new(running) }, zone })
    }

    /// Whether messages leave while this client works.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.way, Way::Remote(_))
    }

    /// Ends what was opened.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        match self.way {
            Way::Remote(_) => Ok(()),
            Way::Inside { router, running, .. } => {
                drop(router);
                running.stop().await
            }
        }
    }

    /// Asks, and answers the body of a success.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        read(self.send(Method::GET, path, None).await?)
    }

    /// Orders, and answers the body of a success.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        read(self.send(Method::POST, path, Some(body)).await?)
    }

    /// Removes, and answers the body of a success.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        read(self.send(Method::DELETE, path, None).await?)
    }

    /// Asks for bytes that are no JSON.
    pub(crate) async fn get_bytes(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let (status, bytes) = self.send(Method::GET, path, None).await?;
        if status.is_success() { Ok(bytes) } else { Err(problem(status, &bytes)) }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<(StatusCode, Vec<u8>)> {
        let key = match &self.way {
            Way::Remote(server) => &server.key,
            Way::Inside { key, .. } => key,
        };
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {key}"))
            .header(header::CONTENT_TYPE, "application/json");
        match &self.way {
            Way::Remote(server) => {
                let host = server.url.trim_start_matches("http://");
                let request = request.header(header::HOST, host).body(Full::from(bytes))?;
                let asked = tokio::time::timeout(ANSWER_FOR, over_http(&server.url, request));
                asked.await.map_err(|_| anyhow!("the server did not answer in time"))?
            }
            Way::Inside { router, .. } => {
                let answer = router.clone().oneshot(request.body(Body::from(bytes))?).await?;
                let status = answer.status();
                let bytes = answer.into_body().collect().await?.to_bytes().to_vec();
                Ok((status, bytes))
            }
        }
    }
}

async fn connect(url: &str) -> anyhow::Result<TcpStream> {
    let address = url.strip_prefix("http://").ok_or_else(|| anyhow!("the local file names no http address"))?;
    Ok(tokio::time::timeout(CONNECT_FOR, TcpStream::connect(address)).await??)
}

/// One request on a connection of its own, which ends with it.
async fn over_http(url: &str, request: Request<Full<bytes::Bytes>>) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let stream = connect(url).await.context("the server went away")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let answer = sender.send_request(request).await.context("the server closed the connection")?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await.context("the answer broke off")?.to_bytes().to_vec();
    Ok((status, bytes))
}

fn read((status, bytes): (StatusCode, Vec<u8>)) -> anyhow::Result<Value> {
    if !status.is_success() {
        return Err(problem(status, &bytes));
    }
    serde_json::from_slice(&bytes).context("the answer is no JSON")
}

/// A problem of the API in words.
fn problem(status: StatusCode, bytes: &[u8]) -> anyhow::Error {
    let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
    match (problem["title"].as_str(), problem["detail"].as_str()) {
        (Some(title), Some(detail)) => anyhow!("{title}: {detail}"),
        _ => anyhow!("the server answered {status}"),
    }
}

/// Encodes a part of a path or a query value.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A query string of the parameters that are there.
pub(crate) fn query(parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value.as_deref()?))));
    let text = given.collect::<Vec<_>>().join("&");
    if text.is_empty() { text } else { format!("?{text}") }
}

/// The contact that an operator names: an id, a phone or an e-mail.
pub(crate) async fn contact_id(client: &Client, who: &str) -> anyhow::Result<String> {
    let found = client.get(&format!("/v1/contacts{}", query(&[(kind_of(who), Some(who.to_owned()))]))).await?;
    match found["items"].as_array().and_then(|items| items.first()) {
        Some(contact) => Ok(contact["id"].as_str().unwrap_or_default().to_owned()),
        None => bail!("no contact is known by that {}", kind_of(who)),
    }
}

/// `id`, `email` or `phone`.
pub(crate) fn kind_of(who: &str) -> &'static str {
    if who.parse::<uuid::Uuid>().is_ok() {
        "id"
    } else if who.contains('@') {
        "email"
    } else {
        "phone"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses_are_encoded_and_absent_parameters_left_out() {
        assert_eq!(encoded("hotmart:pix:HP/1 ç"), "hotmart%3Apix%3AHP%2F1%20%C3%A7");
        assert_eq!(query(&[("a", None), ("b", Some("x&y".into())), ("c", Some("1".into()))]), "?b=x%26y&c=1");
        assert_eq!(query(&[("a", None)]), "");
    }

    #[test]
    fn a_contact_is_named_by_id_phone_or_email() {
        for (who, kind) in [
            ("0190a1b2-0000-7000-8000-000000000001", "id"),
            ("+55 41 99999-0001", "phone"),
            ("5541999990001", "phone"),
            ("ana@example.com", "email"),
        ] {
            assert_eq!(kind_of(who), kind, "{who}");
        }
    }
}
