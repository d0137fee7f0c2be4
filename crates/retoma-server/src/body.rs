//! Reading a request's body: at most so many bytes, within so much time, within the server's memory (A10). A slow sender is
//! cut off, a large body is refused at the limit and not after it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::{Code, Problem};

/// The longest a body may take from its headers to its last byte.
const BODY_FOR: Duration = Duration::from_secs(15);

/// A body, and the room it takes until it is dropped.
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Reads all of it.
pub(crate) async fn read(body: Body, bytes_max: usize, room: &Arc<Semaphore>) -> Result<Held, Problem> {
    match timeout(BODY_FOR, collect(body, bytes_max, room)).await {
        Ok(held) => held,
        Err(_) => Err(Problem::new(Code::TooSlow, "the body did not arrive within 15 s")),
    }
}

async fn collect(mut body: Body, bytes_max: usize, room: &Arc<Semaphore>) -> Result<Held, Problem> {
    use axum::body::HttpBody;
    let announced = body.size_hint().lower();
    if announced > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut taken: Option<OwnedSemaphorePermit> = None;
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::new(Code::Malformed, "the body ended before it was complete"))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > bytes_max {
            return Err(too_large(bytes_max));
        }
        take(room, &mut taken, length)?;
        // Nearly every body is one frame: it is passed on as it came, without a copy.
        match first.take() {
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(before) => {
                rest.reserve(before.len() + data.len());
                rest.extend_from_slice(&before);
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(Held { bytes: first.unwrap_or_else(|| rest.freeze()), _room: taken })
}

/// Makes what is taken cover `length` bytes.
fn take(room: &Arc<Semaphore>, taken: &mut Option<OwnedSemaphorePermit>, length: usize) -> Result<(), Problem> {
    let have = taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let more = u32::try_from(length.div_ceil(1024).saturating_sub(have)).unwrap_or(u32::MAX);
    if more == 0 {
        return Ok(());
    }
    let permit = Arc::clone(room).try_acquire_many_owned(more).map_err(|_| {
        Problem::new(Code::Overloaded, "too many bodies are being read at once").retry_after(Duration::from_secs(1))
    })?;
    match taken {
        Some(taken) => taken.merge(permit),
        None => *taken = Some(permit),
    }
    Ok(())
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("at most {bytes_max} bytes are taken here"))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::HttpBody;
    use http_body_util::Full;

    use super::*;

    /// A body that comes in frames of these lengths, and then ends or stays silent.
    struct Frames {
        lengths: std::vec::IntoIter<usize>,
        ends: bool,
    }

    impl HttpBody for Frames {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, std::io::Error>>> {
            match self.lengths.next() {
                Some(length) => Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from(vec![b'x'; length]))))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn body(lengths: &[usize], ends: bool) -> Body {
        Body::new(Frames { lengths: Vec::from(lengths).into_iter(), ends })
    }

    #[tokio::test]
    async fn a_body_is_refused_at_its_limit_and_at_the_limit_of_all() {
        let room = Arc::new(Semaphore::new(4));
        let table: [(&[usize], Result<usize, Code>); 6] = [
            (&[], Ok(0)),
            (&[10], Ok(10)),
            (&[10, 20, 30], Ok(60)),
            (&[1; 2000], Ok(2000)),
            (&[4000, 2001], Err(Code::BodyTooLarge)),
            (&[3000, 2000], Err(Code::Overloaded)),
        ];
        for (lengths, expected) in table {
            let got = read(body(lengths, true), 6000, &room).await;
            let got = got.map(|held| held.bytes.len()).map_err(|problem| problem.code);
            assert_eq!(got, expected, "{} frames", lengths.len());
            assert_eq!(room.available_permits(), 4, "room is given back");
        }
    }

    #[tokio::test]
    async fn an_announced_length_over_the_limit_is_refused_before_it_is_read() {
        let room = Arc::new(Semaphore::new(0));
        let got = read(Body::new(Full::new(Bytes::from_static(b"12345"))), 4, &room).await;
        assert_eq!(got.err().map(|problem| problem.code), Some(Code::BodyTooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_cut_off() {
        let room = Arc::new(Semaphore::new(4));
        let got = read(body(&[10], false), 6000, &room).await;
        assert_eq!(got.err().map(|problem| problem.code), Some(Code::TooSlow), "FC-52");
    }
}
