//! A keep-alive connection that costs the machine little: the generator shares the cores with what it measures, and a
//! client of its weight would be measured with it. It reads just enough HTTP/1.1 for the answers of the two servers.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More headers than either server answers.
const HEADERS_MAX: usize = 16;
const ANSWER_BYTES: usize = 1024;

/// One connection.
pub(super) struct Wire {
    stream: TcpStream,
    /// The header lines that every request has.
    head: Vec<u8>,
    sent: Vec<u8>,
    read: Vec<u8>,
    /// Where the body of the last answer begins.
    body: usize,
}

impl Wire {
    /// Connects; `headers` go with every request.
    pub(super) async fn connect(address: SocketAddr, headers: &HeaderMap) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the server cannot be reached")?;
        stream.set_nodelay(true)?;
        let mut head = Vec::new();
        for (name, value) in headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        Ok(Self { stream, head, sent: Vec::new(), read: Vec::with_capacity(ANSWER_BYTES), body: 0 })
    }

    /// Sends one request, and waits for the whole answer.
    pub(super) async fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<StatusCode> {
        self.sent.clear();
        self.sent.extend_from_slice(format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len()).as_bytes());
        self.sent.extend_from_slice(&self.head);
        self.sent.extend_from_slice(b"\r\n");
        self.sent.extend_from_slice(body);
        self.stream.write_all(&self.sent).await?;
        self.read.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server closed a connection");
            if let Some((status, body)) = whole_answer(&self.read)? {
                self.body = body;
                return Ok(status);
            }
        }
    }

    /// The body of the last answer.
    pub(super) fn body(&self) -> &[u8] {
        &self.read[self.body..]
    }
}

/// The status of an answer that is there in full, and where its body begins; `None` while more must come.
fn whole_answer(bytes: &[u8]) -> anyhow::Result<Option<(StatusCode, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = answer.parse(bytes)? else { return Ok(None) };
    let length = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let Some(length) = length else { bail!("an answer without a length") };
    let length: usize = std::str::from_utf8(length.value)?.parse()?;
    if bytes.len() < head + length {
        return Ok(None);
    }
    Ok(Some((StatusCode::from_u16(answer.code.context("an answer without a status")?)?, head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\nContent-Length: 4\r\n\r\n{  }";
        for cut in 0..answer.len() {
            assert_eq!(whole_answer(&answer[..cut]).unwrap(), None, "{cut} bytes");
        }
        assert_eq!(whole_answer(answer).unwrap(), Some((StatusCode::ACCEPTED, answer.len() - 4)));
    }

    #[test]
    fn an_answer_that_cannot_be_measured_is_an_error() {
        assert!(whole_answer(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(whole_answer(b"SMTP\r\n\r\n").is_err());
    }
}
