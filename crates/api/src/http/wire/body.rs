//! Reads request bodies, with bounds on their size, their duration and their memory.

use super::chunked::{ChunkDecoder, ChunkError, Progress};
use super::close_reason::CloseReason;
use super::framing::Framing;
use super::input::Input;
use crate::bulk::{STEP_BYTES, give_way, in_turns, move_to_larger};
use crate::http::context::HttpLimits;
use crate::memory::{Account, Lease, OutOfMemory};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::poll_immediate;
use http::StatusCode;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::{io, mem};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

/// The largest memory that is allocated for a body at first, in bytes. A client need not send the
/// length that it announces.
const ROOM_BYTES: usize = 32 << 10;

/// Why a body was not read.
#[derive(Debug)]
pub enum BodyFailure {
    /// The body is refused with this status: 413 if it is too large, 408 if it is too slow, 503 if
    /// there is no memory for it, 400 if it is cut short or its framing is invalid. The rest of the
    /// body is not read.
    Refused(StatusCode),
    /// The connection has ended.
    Ended(CloseReason),
}

impl From<OutOfMemory> for BodyFailure {
    fn from(_: OutOfMemory) -> Self {
        Self::Refused(StatusCode::SERVICE_UNAVAILABLE)
    }
}

impl From<ChunkError> for BodyFailure {
    fn from(error: ChunkError) -> Self {
        Self::Refused(match error {
            ChunkError::Malformed => StatusCode::BAD_REQUEST,
            ChunkError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        })
    }
}

/// Whether a body is refused because of the length that its head announces.
pub fn is_too_large(framing: Framing, limits: &HttpLimits) -> bool {
    matches!(framing, Framing::Length(length) if length > limits.body_bytes_max as u64)
}

/// Reads a body to its end. The lease counts the memory of the body.
pub async fn read<'a>(
    framing: Framing,
    input: &mut Input<'_>,
    limits: &HttpLimits,
    account: &'a Account,
) -> Result<(Bytes, Lease<'a>), BodyFailure> {
    let mut lease = account.lease();
    let body = match framing {
        Framing::Empty => Bytes::new(),
        _ if is_too_large(framing, limits) => return Err(BodyFailure::Refused(StatusCode::PAYLOAD_TOO_LARGE)),
        Framing::Length(length) => {
            // The length is at most the limit, which has this type.
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if input.bytes.len() >= length {
                // Most bodies arrive together with their head. They are not copied.
                input.bytes.split_to(length).freeze()
            } else {
                in_turns(account.tenant(), read_length(length, input, limits, account, &mut lease)).await?
            }
        }
        Framing::Chunked => in_turns(account.tenant(), read_chunks(input, limits, account, &mut lease)).await?,
    };
    account.serves_peer();
    Ok((body, lease))
}

async fn read_length(
    length: usize,
    input: &mut Input<'_>,
    limits: &HttpLimits,
    account: &Account,
    lease: &mut Lease<'_>,
) -> Result<Bytes, BodyFailure> {
    let pace = Pace::begin(limits, account);
    let mut body = Vec::new();
    grow(&mut body, length.min(ROOM_BYTES.max(input.bytes.len())), account, lease).await?;
    body.extend_from_slice(&input.bytes.split());
    while body.len() < length {
        if body.len() == body.capacity() {
            // The capacity is at most twice the received bytes, so that a client has to send what
            // it makes the node hold.
            let capacity = length.min(2 * body.len());
            if !lease.resize_now((body.capacity() + capacity) as u64) {
                // A connection whose client has stalled must not wait in the queue for memory. So
                // the connection asks for memory only when bytes have arrived that need it.
                pace.keep(async { input.half.has_more().await.map(usize::from) }).await?;
            }
            grow(&mut body, capacity, account, lease).await?;
        }
        let room = (body.capacity() - body.len()).min(length - body.len()).min(STEP_BYTES);
        pace.keep(input.half.read_buf(&mut (&mut body).limit(room))).await?;
        give_way().await;
    }
    Ok(body.into())
}

/// Grows a body to a capacity of `capacity` bytes in total.
async fn grow(
    body: &mut Vec<u8>,
    capacity: usize,
    account: &Account,
    lease: &mut Lease<'_>,
) -> Result<(), OutOfMemory> {
    account.serves_peer();
    // The old memory is released only after its bytes were moved to the new memory, so both are
    // counted.
    lease.resize((body.capacity() + capacity) as u64).await?;
    *body = move_to_larger(mem::take(body), capacity).await;
    lease.resize(capacity as u64).await
}

async fn read_chunks(
    input: &mut Input<'_>,
    limits: &HttpLimits,
    account: &Account,
    lease: &mut Lease<'_>,
) -> Result<Bytes, BodyFailure> {
    let pace = Pace::begin(limits, account);
    let (mut decoder, mut body) = (ChunkDecoder::new(limits.body_bytes_max), BytesMut::new());
    loop {
        let needed = body.len() + input.bytes.len();
        if needed > body.capacity() {
            let capacity = needed.max(2 * body.capacity());
            account.serves_peer();
            lease.resize((body.capacity() + capacity) as u64).await?;
            body.reserve(capacity - body.len());
            lease.resize(body.capacity() as u64).await?;
        }
        let progress = decoder.decode(&mut input.bytes, &mut body)?;
        if progress == Progress::Ended {
            return Ok(body.freeze());
        }
        pace.keep(poll_fn(|cx| input.poll_fill(cx))).await?;
        give_way().await;
    }
}

/// The time limits within which a body has to arrive.
struct Pace<'l> {
    limits: &'l HttpLimits,
    account: &'l Account,
    end: Instant,
}

impl<'l> Pace<'l> {
    fn begin(limits: &'l HttpLimits, account: &'l Account) -> Self {
        Self { limits, account, end: Instant::now() + limits.body_timeout }
    }

    /// Waits for a read within the time limits. Returns the number of bytes, which is at least one.
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
                self.account.waits_for_peer();
                let pause_end = (now + self.limits.body_pause_timeout).min(self.end);
                tokio::select! {
                    biased;
                    read = timeout_at(pause_end, read) => read.map_err(|_| LATE)?,
                    () = self.account.evicted() => return Err(OutOfMemory.into()),
                }
            }
        };
        if let Ok(bytes) = &come {
            self.account.peer_moved(*bytes);
        }
        match come {
            Ok(0) => Err(BodyFailure::Refused(StatusCode::BAD_REQUEST)),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(BodyFailure::Ended(CloseReason::Io(error))),
        }
    }
}
