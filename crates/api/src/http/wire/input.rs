//! The bytes that were read from a connection and have not been used yet.

use crate::client_stream::ReadHalf;
use crate::thread_buffers::{self, INPUT_BYTES};
use bytes::BytesMut;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::io::AsyncReadExt;

/// The receiving side of a connection. It has no memory of its own while everything that was read
/// has been used.
pub struct Input<'s> {
    /// The receiving side of the stream.
    pub(crate) half: ReadHalf<'s>,
    /// The bytes that were read and have not been used.
    pub bytes: BytesMut,
}

impl<'s> Input<'s> {
    /// Creates the receiving side of a connection.
    pub(crate) fn new(half: ReadHalf<'s>) -> Self {
        Self { half, bytes: BytesMut::new() }
    }

    /// Reads once. 0 means that the client has closed its sending side.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.bytes.is_empty() {
            self.bytes.reserve(INPUT_BYTES.max(self.bytes.len()));
            return pin!(self.half.read_buf(&mut self.bytes)).poll(cx);
        }
        if self.bytes.capacity() > 0 {
            thread_buffers::give_input(mem::take(&mut self.bytes));
        }
        // Each poll is a separate read that keeps no state from the one before.
        let mut buffer = thread_buffers::input();
        let read = pin!(self.half.read_buf(&mut buffer)).poll(cx);
        match &read {
            Poll::Ready(Ok(1..)) => self.bytes = buffer,
            _ => thread_buffers::give_input(buffer),
        }
        read
    }
}
