//! The sending side of a connection: collects frames and sends them together.

use super::close_reason::CloseReason;
use super::config::PbConfig;
use crate::bulk::{STEP_BYTES, give_way, in_turns};
use crate::client_stream::WriteHalf;
use crate::memory::{Account, Lease};
use crate::stop::Stop;
use crate::thread_buffers;
use bytes::Bytes;
use futures_util::future::poll_immediate;
use ombak_proto::reply::Output;
use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;
use std::{io, mem};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

/// The number of collected bytes from which they are sent before more are added.
const FLUSH_BYTES: usize = 64 << 10;

/// The smallest value, in bytes, that is not copied to the buffer.
const UNCOPIED_BYTES_MIN: usize = 64 << 10;

/// The sending side of a connection.
pub(super) struct Writer<'s> {
    half: WriteHalf<'s>,
    /// The frames that have not been sent yet.
    pub(super) buffer: Vec<u8>,
    /// The bytes to send before `buffer`: large values, and the frames collected between them.
    queue: VecDeque<Bytes>,
    /// The leases on the memory of answers that have not been sent yet.
    leases: Vec<Lease<'s>>,
    account: &'s Account,
    write_timeout: Duration,
    stop: Stop,
}

impl Output for Writer<'_> {
    #[inline]
    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    #[inline]
    fn put_value(&mut self, value: &Bytes) {
        if value.len() < UNCOPIED_BYTES_MIN {
            self.buffer.extend_from_slice(value);
        } else {
            self.put_uncopied(value.clone());
        }
    }
}

impl<'s> Writer<'s> {
    pub(super) fn new(half: WriteHalf<'s>, config: &PbConfig, account: &'s Account, stop: Stop) -> Self {
        let (buffer, queue, leases) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { half, buffer, queue, leases, account, write_timeout: config.write_timeout, stop }
    }

    /// Prepares a buffer for the next frames.
    pub(super) fn begin(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer = thread_buffers::output();
        }
    }

    /// The group of the client's address, for what listings share.
    pub(super) fn address_group(&self) -> u64 {
        self.account.tenant().group
    }

    /// Creates a lease for the memory of an answer on this connection.
    pub(super) fn lease(&self) -> Lease<'s> {
        self.account.lease()
    }

    /// Keeps the lease of a written answer until the answer has been sent.
    #[inline]
    pub(super) fn hold(&mut self, lease: Lease<'s>) {
        if lease.bytes() > 0 {
            self.leases.push(lease);
        }
    }

    /// Appends bytes without copying them.
    #[cold]
    pub(super) fn put_uncopied(&mut self, bytes: Bytes) {
        if !self.buffer.is_empty() {
            self.queue.push_back(mem::take(&mut self.buffer).into());
        }
        self.queue.push_back(bytes);
    }

    /// Sends the collected bytes if they are many. If the peer does not read, this waits.
    pub(super) async fn flush_if_full(&mut self) -> Result<(), CloseReason> {
        if self.buffer.len() < FLUSH_BYTES && self.queue.is_empty() { Ok(()) } else { self.flush().await }
    }

    /// Sends all collected bytes, in one system call if the peer's window allows it and no value is
    /// large.
    pub(super) async fn flush(&mut self) -> Result<(), CloseReason> {
        while let Some(part) = self.queue.pop_front() {
            self.send(&part).await?;
        }
        if !self.buffer.is_empty() {
            let buffer = mem::take(&mut self.buffer);
            self.send(&buffer).await?;
            thread_buffers::give_output(buffer);
        }
        if !self.leases.is_empty() {
            self.leases.clear();
        }
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), CloseReason> {
        if bytes.len() <= FLUSH_BYTES * 2 {
            let half = &mut self.half;
            let mut all = pin!(async {
                half.write_all(bytes).await?;
                half.flush().await
            });
            // A timer costs more than a write, so it is created only if the write does not complete
            // at once.
            if let Some(sent) = poll_immediate(all.as_mut()).await {
                return sent.map_err(CloseReason::Io);
            }
            self.account.waits_for_peer();
            let sent = tokio::select! {
                biased;
                sent = timeout(self.write_timeout, all) => sent,
                () = self.account.evicted() => return Err(CloseReason::Evicted),
                () = self.stop.and_patience() => return Err(CloseReason::Stopping),
            };
            self.account.serves_peer();
            return sent.map_err(|_| CloseReason::SlowPeer)?.map_err(CloseReason::Io);
        }
        in_turns(self.account.tenant(), self.send_large(bytes)).await
    }

    /// Sends bytes that the peer is not expected to accept at once.
    async fn send_large(&mut self, mut bytes: &[u8]) -> Result<(), CloseReason> {
        let deadline = Instant::now() + self.write_timeout;
        self.account.waits_for_peer();
        while !bytes.is_empty() {
            let (part, half) = (&bytes[..bytes.len().min(STEP_BYTES)], &mut self.half);
            let written = async {
                let written = half.write(part).await?;
                if written == bytes.len() {
                    half.flush().await?;
                }
                io::Result::Ok(written)
            };
            let sent = tokio::select! {
                biased;
                () = self.account.evicted() => return Err(CloseReason::Evicted),
                sent = written => sent.map_err(CloseReason::Io)?,
                () = sleep_until(deadline) => return Err(CloseReason::SlowPeer),
                () = self.stop.and_patience() => return Err(CloseReason::Stopping),
            };
            self.account.peer_moved(sent);
            bytes = &bytes[sent..];
            give_way().await;
        }
        self.account.serves_peer();
        Ok(())
    }

    /// Closes the sending side of the connection.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.half.shutdown().await
    }
}
