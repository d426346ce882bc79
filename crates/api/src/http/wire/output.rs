//! The bytes that wait to be sent on a connection.

use super::close_reason::CloseReason;
use crate::client_stream::WriteHalf;
use crate::memory::Account;
use crate::stop::Stop;
use crate::thread_buffers;
use bytes::{Buf, Bytes};
use futures_util::future::poll_immediate;
use std::pin::pin;
use std::time::Duration;
use std::{io, mem};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The number of collected bytes from which they are sent before more are added.
const FLUSH_BYTES: usize = 64 << 10;

/// The largest body, or part of a body, that is copied behind its head, in bytes. Larger ones are
/// sent without a copy.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The sending side of a connection. It collects answers and sends them together.
///
/// Only here do bytes of answers wait for a client.
pub struct Output<'s> {
    half: WriteHalf<'s>,
    /// The bytes that have not been sent yet. While there are none, the buffer has no memory.
    buffer: Vec<u8>,
    account: &'s Account,
    write_timeout: Duration,
    stop: Stop,
}

impl<'s> Output<'s> {
    /// Creates the sending side of a connection. The connection ends if the client accepts nothing
    /// for `write_timeout`, or for a short time while the node stops.
    pub(crate) fn new(half: WriteHalf<'s>, account: &'s Account, write_timeout: Duration, stop: Stop) -> Self {
        Self { half, buffer: Vec::new(), account, write_timeout, stop }
    }

    /// The buffer to which the next bytes to send are appended.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.buffer.capacity() == 0 {
            self.buffer = thread_buffers::output();
        }
        &mut self.buffer
    }

    /// Adds a body or a part of one. Large bodies, and many collected bytes, are sent at once. If
    /// the client does not read, this waits.
    pub async fn add(&mut self, body: Bytes) -> Result<(), CloseReason> {
        if body.len() <= COPIED_BYTES_MAX {
            self.buffer().extend_from_slice(&body);
            return self.flush_if_full().await;
        }
        let collected = mem::take(&mut self.buffer);
        let mut both = (&collected[..]).chain(body);
        self.write(&mut both).await?;
        thread_buffers::give_output(collected);
        Ok(())
    }

    /// Sends the collected bytes if they are many.
    pub async fn flush_if_full(&mut self) -> Result<(), CloseReason> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends all collected bytes, in one system call if the client's window allows it.
    pub async fn flush(&mut self) -> Result<(), CloseReason> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let collected = mem::take(&mut self.buffer);
        self.write(&mut &collected[..]).await?;
        thread_buffers::give_output(collected);
        Ok(())
    }

    async fn write(&mut self, bytes: &mut (impl Buf + Send)) -> Result<(), CloseReason> {
        while bytes.has_remaining() {
            let (half, is_one_piece) = (&mut self.half, bytes.chunk().len() == bytes.remaining());
            let mut written = pin!(async {
                // One contiguous piece needs only the cheaper system call.
                let written = if is_one_piece {
                    let written = half.write(bytes.chunk()).await?;
                    bytes.advance(written);
                    written
                } else {
                    half.write_buf(bytes).await?
                };
                if !bytes.has_remaining() {
                    half.flush().await?;
                }
                io::Result::Ok(written)
            });
            // A timer costs more than a write, so it is created only if the write does not complete
            // at once.
            let written = match poll_immediate(written.as_mut()).await {
                Some(written) => written,
                None => {
                    self.account.waits_for_peer();
                    tokio::select! {
                        biased;
                        written = timeout(self.write_timeout, written) => written.map_err(|_| CloseReason::SlowReader)?,
                        () = self.account.evicted() => return Err(CloseReason::Evicted),
                        () = self.stop.and_patience() => return Err(CloseReason::Stopping),
                    }
                }
            };
            let written = written?;
            if written == 0 {
                return Err(CloseReason::Io(io::ErrorKind::WriteZero.into()));
            }
            self.account.peer_moved(written);
        }
        self.account.serves_peer();
        Ok(())
    }
}
