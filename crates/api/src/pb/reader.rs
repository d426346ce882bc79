//! The receiving side of a connection: bytes in, frames out.

use super::config::PbConfig;
use super::connection::End;
use crate::spare::{self, INPUT_BYTES};
use bytes::{Buf, BytesMut};
use ombak_proto::frame::{self, Frame, FrameError};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::{io, mem};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::tcp::ReadHalf;
use tokio::time::{Instant, sleep_until};

/// A buffer that grew beyond this many bytes is given back once the large frame is answered.
const KEEP_BYTES_MAX: usize = 256 << 10;

/// Requests that are read ahead while a listing is under way, in bytes.
const READ_AHEAD_BYTES_MAX: usize = 64 << 10;

/// The receiving side of a connection.
pub(super) struct Reader<'s> {
    half: ReadHalf<'s>,
    /// Has no memory of its own while nothing is read that has not been answered.
    buffer: BytesMut,
    frame_bytes_max: usize,
    frame_timeout: std::time::Duration,
    /// By when the frame that has begun must be complete.
    deadline: Option<Instant>,
    /// A frame was so large that the buffer should not be kept.
    oversized: bool,
}

impl<'s> Reader<'s> {
    pub(super) fn new(half: ReadHalf<'s>, config: &PbConfig) -> Self {
        Self {
            half,
            buffer: BytesMut::new(),
            frame_bytes_max: config.frame_bytes_max,
            frame_timeout: config.frame_timeout,
            deadline: None,
            oversized: false,
        }
    }

    /// The next complete frame among what was read.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let frame = frame::next_frame(&mut self.buffer, self.frame_bytes_max)?;
        if let Some(frame) = &frame {
            self.deadline = None;
            self.oversized |= frame.body.len() > KEEP_BYTES_MAX;
        }
        Ok(frame)
    }

    /// Whether another complete frame has been read.
    pub(super) fn has_frame(&self) -> bool {
        frame::has_frame(&self.buffer, self.frame_bytes_max)
    }

    /// Waits for more bytes. Between frames the peer may take its time; within one it may not. All requests that were
    /// read have been answered, so the buffer is nobody else's and its front can be used again.
    pub(super) async fn fill(&mut self, stop: Pin<&mut impl Future<Output = ()>>) -> Result<(), End> {
        if self.oversized {
            self.buffer = BytesMut::from(self.buffer.chunk());
            self.oversized = false;
        }
        let read = if self.buffer.is_empty() {
            tokio::select! {
                biased;
                read = self.read_first() => read,
                () = stop => return Err(End::Stopping),
            }
        } else {
            let room = INPUT_BYTES.max(self.buffer.len());
            frame::make_room(&mut self.buffer, room);
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.frame_timeout);
            tokio::select! {
                biased;
                read = self.half.read_buf(&mut self.buffer) => read,
                () = sleep_until(deadline) => return Err(End::SlowFrame),
                () = stop => return Err(End::Stopping),
            }
        };
        match read {
            Ok(0) => Err(End::Closed),
            Ok(_) => Ok(()),
            Err(error) => Err(End::Io(error)),
        }
    }

    /// Reads what comes after everything has been answered, into the buffer of this thread.
    async fn read_first(&mut self) -> io::Result<usize> {
        if self.buffer.capacity() > 0 {
            spare::give_input(mem::take(&mut self.buffer));
        }
        // Each poll is a read of its own that keeps nothing from the one before.
        poll_fn(|cx| {
            let mut buffer = spare::input();
            let read = pin!(self.half.read_buf(&mut buffer)).poll(cx);
            match &read {
                Poll::Ready(Ok(1..)) => self.buffer = buffer,
                _ => spare::give_input(buffer),
            }
            read
        })
        .await
    }

    /// Returns when the peer has gone. Meanwhile reads a little ahead, so that the end is seen behind a request that
    /// has already been sent.
    pub(super) async fn gone(&mut self) -> End {
        loop {
            match self.half.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return End::Closed,
                Ok(_) => {}
                Err(error) => return End::Io(error),
            }
            if self.buffer.len() >= READ_AHEAD_BYTES_MAX {
                return pending().await;
            }
            frame::make_room(&mut self.buffer, INPUT_BYTES);
            match self.half.try_read_buf(&mut self.buffer) {
                Ok(0) => return End::Closed,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return End::Io(error),
            }
        }
    }
}
