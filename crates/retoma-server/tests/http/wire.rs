//! The house on a real socket, and a client that writes bytes as they stand: a library would refuse to send half of them.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use retoma_server::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::house::{Answer, House};

/// A served house.
pub(crate) struct Wire {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Wire {
    /// Serves the house until it is dropped.
    pub(crate) async fn to(house: &House) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = house.router.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move { serve(listener, router, Limits::default(), std::future::pending()).await.unwrap() });
        Self { address, _serving: serving }
    }

    /// A POST with that body.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, String)], body: &[u8]) -> Answer {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        self.exchange(&[head.as_bytes(), body].concat()).await
    }

    /// Writes those bytes and reads one answer.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let (mut reading, mut writing) = stream.split();
        let write = async {
            // A server that has heard enough answers and closes; whatever it did not read is no error of the test's.
            let _ = writing.write_all(bytes).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = read(&mut reading) => answer,
            () = write => unreachable!("writing never ends before the answer"),
        }
    }
}

async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> Answer {
    let mut bytes = Vec::new();
    loop {
        if let Some(answer) = parsed(&bytes) {
            return answer;
        }
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await.unwrap();
        assert!(length > 0, "the connection ended inside an answer: {:?}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&chunk[..length]);
    }
}

/// The answer, if all of it is there.
fn parsed(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: HeaderMap = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value.trim()).unwrap()))
        .collect();
    let length: usize = headers.get("content-length")?.to_str().unwrap().parse().unwrap();
    let body = bytes.get(end + 4..end + 4 + length)?;
    Some(Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        bytes: Bytes::copy_from_slice(body),
        body: serde_json::from_slice(body).unwrap_or_default(),
    })
}
