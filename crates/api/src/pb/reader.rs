//! The receiving side of a connection: turns bytes into frames.
//!
//! Small frames are received into a buffer that the thread lends. A frame that does not fit into
//! this buffer is received into memory of its own, which grows as the frame arrives and is counted
//! by the connection's account.

use super::close_reason::CloseReason;
use super::config::PbConfig;
use crate::bulk::{STEP_BYTES, in_turns, move_to_larger};
use crate::client_stream::ReadHalf;
use crate::memory::{Account, Lease};
use crate::thread_buffers::{self, INPUT_BYTES};
use bytes::{BufMut, Bytes, BytesMut};
use ombak_proto::frame::{self, Frame, FrameError};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::{io, mem};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};

/// The highest number of bytes that are read ahead while a listing is in progress.
const READ_AHEAD_BYTES_MAX: usize = INPUT_BYTES;

/// The largest frame that is received into the shared buffer, in bytes.
const SMALL_FRAME_BYTES_MAX: usize = INPUT_BYTES;

/// The receiving side of a connection.
pub(super) struct Reader<'s> {
    half: ReadHalf<'s>,
    /// The received bytes. The buffer has no memory of its own while every received request has
    /// been answered.
    buffer: BytesMut,
    /// The large frame that is being received. `buffer` is empty meanwhile.
    large: Option<LargeFrame>,
    /// The lease on the memory of the large frame that is being received or answered.
    lease: Lease<'s>,
    account: &'s Account,
    frame_bytes_max: usize,
    frame_timeout: std::time::Duration,
    /// The time by which the current frame must be complete.
    deadline: Option<Instant>,
}

/// The received part of a large frame.
struct LargeFrame {
    bytes: Vec<u8>,
    /// The length of the whole frame, including its length field.
    length: usize,
}

impl LargeFrame {
    fn is_complete(&self) -> bool {
        self.bytes.len() == self.length
    }

    /// The capacity that is needed to continue. It is at most twice the received bytes, so that a
    /// peer has to send what it makes the node hold.
    fn capacity_needed(&self) -> usize {
        let capacity = self.bytes.capacity();
        if self.bytes.len() < capacity.min(self.length) { capacity } else { self.length.min(2 * capacity) }
    }

    /// Grows to this capacity, if there is memory for the old and the new memory together. Returns
    /// whether it grew.
    async fn grow_now(&mut self, capacity: usize, lease: &mut Lease<'_>) -> bool {
        let fits = lease.resize_now((self.bytes.capacity() + capacity) as u64);
        if fits {
            self.grow(capacity).await;
            lease.resize_now(capacity as u64);
        }
        fits
    }

    async fn grow(&mut self, capacity: usize) {
        self.bytes = move_to_larger(mem::take(&mut self.bytes), capacity).await;
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(half: ReadHalf<'s>, config: &PbConfig, account: &'s Account) -> Self {
        Self {
            half,
            buffer: BytesMut::new(),
            large: None,
            lease: account.lease(),
            account,
            frame_bytes_max: config.frame_bytes_max,
            frame_timeout: config.frame_timeout,
            deadline: None,
        }
    }

    /// The next complete frame among the received bytes.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let frame = match self.large.take_if(|large| large.is_complete()) {
            Some(large) => frame::from_complete(Bytes::from(large.bytes)),
            None => frame::next_frame(&mut self.buffer, self.frame_bytes_max)?,
        };
        if frame.is_some() {
            self.deadline = None;
        }
        Ok(frame)
    }

    /// Whether another complete frame has been received.
    pub(super) fn has_frame(&self) -> bool {
        match &self.large {
            Some(large) => large.is_complete(),
            None => frame::has_frame(&self.buffer, self.frame_bytes_max),
        }
    }

    /// Whether bytes were received that belong to no frame yet returned by [`Self::next_frame`].
    pub(super) fn has_bytes(&self) -> bool {
        self.large.is_some() || !self.buffer.is_empty()
    }

    /// Waits for more bytes. Between frames the peer may pause for any time; within a frame it may
    /// not. All received requests have been answered, so nothing else refers to the buffer and its
    /// front can be reused.
    pub(super) async fn fill(&mut self, stop: Pin<&mut impl Future<Output = ()>>) -> Result<(), CloseReason> {
        if self.large.is_none() {
            // The large frame before this one has been answered.
            self.lease.clear();
            self.begin_large().await?;
        }
        let read = if self.large.is_some() {
            return in_turns(self.account.tenant(), self.fill_large(stop)).await;
        } else if self.buffer.is_empty() {
            tokio::select! {
                biased;
                read = self.read_first() => read,
                () = stop => return Err(CloseReason::Stopping),
            }
        } else {
            frame::make_room(&mut self.buffer, INPUT_BYTES);
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.frame_timeout);
            tokio::select! {
                biased;
                read = self.half.read_buf(&mut self.buffer) => read,
                () = sleep_until(deadline) => return Err(CloseReason::SlowFrame),
                () = stop => return Err(CloseReason::Stopping),
            }
        };
        match read {
            Ok(0) => Err(CloseReason::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(CloseReason::Io(error)),
        }
    }

    /// If the received bytes are the beginning of a large frame, moves them to memory of its own.
    async fn begin_large(&mut self) -> Result<(), CloseReason> {
        let length = match frame::total_length(&self.buffer, self.frame_bytes_max) {
            Ok(Some(length)) if length > SMALL_FRAME_BYTES_MAX => length,
            // Bytes that are not a valid frame have been refused by `next_frame`.
            _ => return Ok(()),
        };
        let capacity = length.min(2 * SMALL_FRAME_BYTES_MAX.max(self.buffer.len()));
        self.lease.resize(capacity as u64).await.map_err(|_| CloseReason::OutOfMemory)?;
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&self.buffer);
        thread_buffers::give_input(mem::take(&mut self.buffer));
        self.large = Some(LargeFrame { bytes, length });
        Ok(())
    }

    async fn fill_large(&mut self, stop: Pin<&mut impl Future<Output = ()>>) -> Result<(), CloseReason> {
        let Some(large) = &mut self.large else { return Ok(()) };
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.frame_timeout);
        let needed = large.capacity_needed();
        // The old memory is released only after its bytes were moved to the new memory, so both
        // are counted.
        let both = (large.bytes.capacity() + needed) as u64;
        let is_full = needed > large.bytes.capacity() && !large.grow_now(needed, &mut self.lease).await;
        let room = needed.min(large.length) - large.bytes.len();
        self.account.waits_for_peer();
        let (half, mut free) = (&mut self.half, (&mut large.bytes).limit(room.min(STEP_BYTES)));
        let read = async {
            // A connection whose peer has stalled must not wait in the queue for memory. So the
            // connection asks for memory only when bytes have arrived that need it.
            if is_full { half.has_more().await.map(usize::from) } else { half.read_buf(&mut free).await }
        };
        let read = tokio::select! {
            biased;
            () = self.account.evicted() => return Err(CloseReason::OutOfMemory),
            read = read => read.map_err(CloseReason::Io)?,
            () = sleep_until(deadline) => return Err(CloseReason::SlowFrame),
            () = stop => return Err(CloseReason::Stopping),
        };
        if read == 0 {
            return Err(CloseReason::Closed);
        }
        if is_full {
            self.account.serves_peer();
            self.lease.resize(both).await.map_err(|_| CloseReason::OutOfMemory)?;
            large.grow(needed).await;
            self.lease.resize_now(needed as u64);
            return Ok(());
        }
        self.account.peer_moved(read);
        if large.is_complete() {
            self.account.serves_peer();
        }
        Ok(())
    }

    /// Reads the next bytes after everything has been answered, into the buffer of this thread.
    async fn read_first(&mut self) -> io::Result<usize> {
        if self.buffer.capacity() > 0 {
            thread_buffers::give_input(mem::take(&mut self.buffer));
        }
        // Each poll is a separate read that keeps no state from the one before.
        poll_fn(|cx| {
            let mut buffer = thread_buffers::input();
            let read = pin!(self.half.read_buf(&mut buffer)).poll(cx);
            match &read {
                Poll::Ready(Ok(1..)) => self.buffer = buffer,
                _ => thread_buffers::give_input(buffer),
            }
            read
        })
        .await
    }

    /// Waits for work whose end the peer waits for. If the peer closes the connection meanwhile,
    /// the work is dropped and the connection ends.
    pub(super) async fn while_open<T>(&mut self, work: impl Future<Output = T>) -> Result<T, CloseReason> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            reason = self.peer_closed() => Err(reason),
        }
    }

    /// Returns when the peer has closed the connection. This reads a little ahead, so that the end
    /// is seen behind requests that were already sent.
    async fn peer_closed(&mut self) -> CloseReason {
        loop {
            match self.half.has_ended().await {
                Ok(true) => return CloseReason::Closed,
                Ok(false) => {}
                Err(error) => return CloseReason::Io(error),
            }
            if self.buffer.len() >= READ_AHEAD_BYTES_MAX {
                return pending().await;
            }
            frame::make_room(&mut self.buffer, INPUT_BYTES);
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) => return CloseReason::Closed,
                Ok(_) => {}
                Err(error) => return CloseReason::Io(error),
            }
        }
    }
}
