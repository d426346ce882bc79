//! What is going to be written to a connection.

use super::connection::End;
use crate::memory::Account;
use crate::thread_buffers;
use bytes::{Buf, Bytes};
use futures_util::future::poll_immediate;
use std::pin::pin;
use std::time::Duration;
use std::{io, mem};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::WriteHalf;
use tokio::time::timeout;

/// From this many bytes on, what is collected is sent before anything is added.
const FLUSH_BYTES: usize = 64 << 10;

/// Bodies and parts of bodies up to this size are copied behind their head; larger ones are sent
/// from where they lie.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The sending side of a connection: answers are collected and leave together.
///
/// This is the one place where bytes of answers wait for a client.
pub struct Output<'s> {
    half: WriteHalf<'s>,
    /// Bytes that have not been sent yet. Has no memory of its own while there are none.
    buffer: Vec<u8>,
    account: &'s Account,
    write_timeout: Duration,
}

impl<'s> Output<'s> {
    /// Of a socket; a client that takes nothing for `write_timeout` is given up.
    pub fn new(half: WriteHalf<'s>, account: &'s Account, write_timeout: Duration) -> Self {
        Self { half, buffer: Vec::new(), account, write_timeout }
    }

    /// Where to write what is sent next.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.buffer.capacity() == 0 {
            self.buffer = thread_buffers::output();
        }
        &mut self.buffer
    }

    /// Adds a body or a part of one. What is large, or much together, is sent: a client that does
    /// not read stops us here.
    pub async fn add(&mut self, body: Bytes) -> Result<(), End> {
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

    /// Sends what is collected if it is much.
    pub async fn flush_if_full(&mut self) -> Result<(), End> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends everything that is collected, in one system call if the client's window allows it.
    pub async fn flush(&mut self) -> Result<(), End> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let collected = mem::take(&mut self.buffer);
        self.write(&mut &collected[..]).await?;
        thread_buffers::give_output(collected);
        Ok(())
    }

    async fn write(&mut self, bytes: &mut (impl Buf + Send)) -> Result<(), End> {
        while bytes.has_remaining() {
            let (half, is_one_piece) = (&mut self.half, bytes.chunk().len() == bytes.remaining());
            let mut written = pin!(async {
                if !is_one_piece {
                    return half.write_buf(bytes).await;
                }
                // One piece takes the cheaper system call.
                let written = half.write(bytes.chunk()).await?;
                bytes.advance(written);
                Ok(written)
            });
            // A timer costs more than a write, so there is one only when the write does not finish
            // at once.
            let written = match poll_immediate(written.as_mut()).await {
                Some(written) => written,
                None => {
                    self.account.waits_for_peer();
                    tokio::select! {
                        biased;
                        written = timeout(self.write_timeout, written) => written.map_err(|_| End::SlowReader)?,
                        () = self.account.evicted() => return Err(End::Evicted),
                    }
                }
            };
            let written = written?;
            if written == 0 {
                return Err(End::Io(io::ErrorKind::WriteZero.into()));
            }
            self.account.peer_moved(written);
        }
        self.account.serves_peer();
        Ok(())
    }
}
