//! The sending side of a connection: frames are collected and leave together.

use super::config::PbConfig;
use super::connection::End;
use crate::spare;
use futures_util::future::poll_immediate;
use std::pin::pin;
use std::{io, mem};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::WriteHalf;
use tokio::time::timeout;

/// From this many bytes on, what is collected is sent before anything is added.
const FLUSH_BYTES: usize = 64 << 10;

/// The sending side of a connection.
pub(super) struct Writer<'s> {
    half: WriteHalf<'s>,
    /// Frames that have not been sent yet.
    pub(super) buffer: Vec<u8>,
    write_timeout: std::time::Duration,
}

impl<'s> Writer<'s> {
    pub(super) fn new(half: WriteHalf<'s>, config: &PbConfig) -> Self {
        Self { half, buffer: Vec::new(), write_timeout: config.write_timeout }
    }

    /// Gets a buffer ready for what will be written now.
    pub(super) fn begin(&mut self) {
        if self.buffer.capacity() == 0 {
            self.buffer = spare::output();
        }
    }

    /// Sends what is collected if it is much: a peer that does not read stops us here.
    pub(super) async fn relieve(&mut self) -> Result<(), End> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends everything that is collected, in one system call if the peer's window allows it.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let sent = {
            let mut all = pin!(self.half.write_all(&self.buffer));
            // A timer costs more than a write, so there is one only when the write does not finish at once.
            match poll_immediate(all.as_mut()).await {
                Some(sent) => sent,
                None => timeout(self.write_timeout, all).await.map_err(|_| End::SlowPeer)?,
            }
        };
        sent.map_err(End::Io)?;
        spare::give_output(mem::take(&mut self.buffer));
        Ok(())
    }

    /// Says that nothing more will come.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.half.shutdown().await
    }
}
