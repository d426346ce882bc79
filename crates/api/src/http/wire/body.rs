//! Reading request bodies: not too much, not too slowly, not too many at once.

use super::chunked::{ChunkDecoder, ChunkError, Progress};
use super::connection::End;
use super::framing::Framing;
use super::input::Input;
use crate::http::context::HttpLimits;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::poll_immediate;
use http::StatusCode;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

/// Room that is made for a body at first, at most: what is announced need not come.
const ROOM_BYTES: usize = 1 << 20;

/// The memory that request bodies may take, shared by all connections.
pub struct BodyBudget {
    free_bytes: AtomicUsize,
}

/// A share of the budget, given back when dropped.
pub struct BodyShare<'a> {
    budget: &'a BodyBudget,
    bytes: usize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { free_bytes: AtomicUsize::new(bytes) }
    }

    fn share(&self) -> BodyShare<'_> {
        BodyShare { budget: self, bytes: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let take = |free: usize| free.checked_sub(bytes);
        self.free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

impl BodyShare<'_> {
    /// Accounts for bytes that have come.
    fn grow(&mut self, bytes: usize) -> Result<(), BodyFailure> {
        if !self.budget.take(bytes) {
            return Err(BodyFailure::Refused(StatusCode::SERVICE_UNAVAILABLE));
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyShare<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.free_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Why there is no body.
#[derive(Debug)]
pub enum BodyFailure {
    /// It is not taken: 413 if it is too large, 408 if it is too slow, 503 if too many are under way, 400 if it is cut short
    /// or not framed. What is left of it is not read.
    Refused(StatusCode),
    /// The connection has ended.
    Ended(End),
}

impl From<ChunkError> for BodyFailure {
    fn from(error: ChunkError) -> Self {
        Self::Refused(match error {
            ChunkError::Malformed => StatusCode::BAD_REQUEST,
            ChunkError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        })
    }
}

/// Whether a body is refused for the length that its head announces.
pub fn is_too_large(framing: Framing, limits: &HttpLimits) -> bool {
    matches!(framing, Framing::Length(length) if length > limits.body_bytes_max as u64)
}

/// Reads a body to its end. Every byte of it is accounted for here, when it has come.
pub async fn read<'a>(
    framing: Framing,
    input: &mut Input<'_>,
    limits: &HttpLimits,
    budget: &'a BodyBudget,
) -> Result<(Bytes, BodyShare<'a>), BodyFailure> {
    let mut share = budget.share();
    let body = match framing {
        Framing::Empty => Bytes::new(),
        _ if is_too_large(framing, limits) => return Err(BodyFailure::Refused(StatusCode::PAYLOAD_TOO_LARGE)),
        Framing::Length(length) => {
            // Not more than the limit, which is of this type.
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if input.bytes.len() >= length {
                // Most bodies come with their head, and are not copied.
                share.grow(length)?;
                input.bytes.split_to(length).freeze()
            } else {
                read_length(length, input, limits, &mut share).await?
            }
        }
        Framing::Chunked => read_chunks(input, limits, &mut share).await?,
    };
    Ok((body, share))
}

async fn read_length(
    length: usize,
    input: &mut Input<'_>,
    limits: &HttpLimits,
    share: &mut BodyShare<'_>,
) -> Result<Bytes, BodyFailure> {
    let pace = Pace::begin(limits);
    let mut body = BytesMut::with_capacity(length.min(ROOM_BYTES));
    share.grow(input.bytes.len())?;
    body.extend_from_slice(&input.bytes.split());
    while body.len() < length {
        let missing = length - body.len();
        if body.capacity() == body.len() {
            body.reserve(missing.min(body.len()));
        }
        let come = pace.keep(input.half.read_buf(&mut (&mut body).limit(missing))).await?;
        share.grow(come)?;
    }
    Ok(body.freeze())
}

async fn read_chunks(
    input: &mut Input<'_>,
    limits: &HttpLimits,
    share: &mut BodyShare<'_>,
) -> Result<Bytes, BodyFailure> {
    let pace = Pace::begin(limits);
    let (mut decoder, mut body) = (ChunkDecoder::new(limits.body_bytes_max), BytesMut::new());
    loop {
        let before = body.len();
        let progress = decoder.decode(&mut input.bytes, &mut body)?;
        share.grow(body.len() - before)?;
        if progress == Progress::Ended {
            return Ok(body.freeze());
        }
        pace.keep(poll_fn(|cx| input.poll_fill(cx))).await?;
    }
}

/// How fast a body has to come.
struct Pace<'l> {
    limits: &'l HttpLimits,
    end: Instant,
}

impl<'l> Pace<'l> {
    fn begin(limits: &'l HttpLimits) -> Self {
        Self { limits, end: Instant::now() + limits.body_timeout }
    }

    /// What was read, at least one byte, if it came in time.
    async fn keep(&self, read: impl Future<Output = io::Result<usize>>) -> Result<usize, BodyFailure> {
        const LATE: BodyFailure = BodyFailure::Refused(StatusCode::REQUEST_TIMEOUT);
        let now = Instant::now();
        if now > self.end {
            return Err(LATE);
        }
        let mut read = pin!(read);
        let come = match poll_immediate(read.as_mut()).await {
            Some(come) => come,
            None => {
                let pause_end = (now + self.limits.body_pause_timeout).min(self.end);
                timeout_at(pause_end, read).await.map_err(|_| LATE)?
            }
        };
        match come {
            Ok(0) => Err(BodyFailure::Refused(StatusCode::BAD_REQUEST)),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(BodyFailure::Ended(End::Io(error))),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let budget = BodyBudget::new(10);
        let mut one = budget.share();
        assert!(one.grow(8).is_ok());
        assert!(budget.share().grow(3).is_err());
        drop(one);
        assert!(budget.share().grow(10).is_ok());
    }
}
