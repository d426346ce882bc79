//! A socket with a buffer of received bytes, and one timer for all its deadlines.
//!
//! Invariant: an exchange allocates nothing if it fits into the memory that earlier exchanges have
//! needed. Memory above a limit is released.

use super::ExchangeError;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// The initial size of the receive buffer, in bytes.
const INBOX_BYTES: usize = 16 << 10;

/// How much memory a buffer may keep between two exchanges, in bytes, however little its exchanges
/// usually need. A thousand connections have two such buffers each.
const KEEP_BYTES: usize = 256 << 10;

/// A reused buffer of bytes in transit. The memory of a rare large exchange is released after it.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// The bytes that exchanges usually need: a moving average.
    usual: usize,
}

impl Buffer {
    fn clear(&mut self) {
        self.usual = self.usual - self.usual / 8 + self.bytes.len() / 8;
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES.max(4 * self.usual) {
            self.bytes.shrink_to(INBOX_BYTES);
        }
    }
}

/// One or more requests that are being sent.
///
/// Invariant: bytes that were removed from the front are never sent again. A single request is kept
/// until the next one begins, so it can be sent again over another connection. In a pipeline the
/// sent bytes are removed, and if the connection is lost, all its requests have failed.
#[derive(Debug, Default)]
pub struct Outbox {
    buffer: Buffer,
    /// How many bytes of the buffer have been sent.
    sent: usize,
    /// Whether bytes were removed from the front, so that the buffer does not begin with the first
    /// request any more.
    is_cut: bool,
}

impl Outbox {
    /// The bytes to send, to which requests are appended.
    pub const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.buffer.bytes
    }

    fn rest(&self) -> &[u8] {
        self.buffer.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Marks everything as not sent.
    ///
    /// # Panics
    ///
    /// Panics if bytes were removed from the front, because the rest may begin in the middle of a
    /// request.
    pub const fn rewind(&mut self) {
        assert!(!self.is_cut, "requests that were cut off are not sent again");
        self.sent = 0;
    }

    /// Discards all bytes.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.sent = 0;
        self.is_cut = false;
    }

    /// Removes the sent bytes if they are all bytes, or more than those that are left. So for each
    /// sent byte at most one byte is moved, and when this returns the buffer holds at most twice
    /// the bytes that are still to be sent.
    pub fn forget_sent(&mut self) {
        let rest_bytes = self.rest().len();
        if rest_bytes == 0 {
            self.clear();
        } else if self.sent > rest_bytes {
            self.buffer.bytes.drain(..self.sent);
            self.sent = 0;
            self.is_cut = true;
        }
    }
}

/// A socket with its receive buffer.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    inbox: Buffer,
    /// How many bytes of `inbox` have been processed.
    taken: usize,
    timer: Pin<Box<Sleep>>,
}

impl Socket {
    /// Wraps a connected stream.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            inbox: Buffer { bytes: Vec::with_capacity(INBOX_BYTES), usual: 0 },
            taken: 0,
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// The received bytes that have not been taken.
    pub fn unread(&self) -> &[u8] {
        self.inbox.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Marks the next `bytes` received bytes as processed.
    pub fn take(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.inbox.bytes.len());
        if self.taken == self.inbox.bytes.len() {
            self.inbox.clear();
            self.taken = 0;
        }
    }

    /// Makes room for an answer of which `bytes` bytes have not arrived yet, up to 1 MiB at once.
    pub fn expect(&mut self, bytes: usize) {
        self.make_room(bytes.clamp(INBOX_BYTES / 4, 1 << 20));
    }

    fn make_room(&mut self, bytes: usize) {
        if self.inbox.bytes.capacity() - self.inbox.bytes.len() < bytes {
            self.inbox.bytes.drain(..self.taken);
            self.taken = 0;
            self.inbox.bytes.reserve(bytes);
        }
    }

    /// Sends the rest of `outbox` and receives at least one byte. The future may be dropped while
    /// it waits: no sent or received byte is lost.
    pub async fn transfer(&mut self, outbox: &mut Outbox, deadline: Instant) -> Result<(), ExchangeError> {
        self.make_room(INBOX_BYTES / 4);
        poll_fn(|cx| self.poll_transfer(outbox, deadline, cx)).await
    }

    fn poll_transfer(
        &mut self,
        outbox: &mut Outbox,
        deadline: Instant,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ExchangeError>> {
        while !outbox.rest().is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, outbox.rest()) {
                Poll::Ready(Ok(bytes @ 1..)) => outbox.sent += bytes,
                Poll::Ready(_) => return Poll::Ready(Err(ExchangeError::Disconnected)),
                Poll::Pending => break,
            }
        }
        match pin!(self.stream.read_buf(&mut self.inbox.bytes)).poll(cx) {
            Poll::Ready(Ok(1..)) => return Poll::Ready(Ok(())),
            Poll::Ready(_) => return Poll::Ready(Err(ExchangeError::Disconnected)),
            Poll::Pending => {}
        }
        self.poll_deadline(deadline, cx).map(|()| Err(ExchangeError::Timeout))
    }

    /// Polls the timer. The timer is reset only if it has fired or is set too late, which happens
    /// once per time limit instead of once per request.
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.deadline() > deadline {
            self.timer.as_mut().reset(deadline);
        }
        ready!(self.timer.as_mut().poll(cx));
        if self.timer.deadline() < deadline {
            self.timer.as_mut().reset(deadline);
            return self.timer.as_mut().poll(cx);
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(buffer: &mut Buffer, bytes: usize) {
        buffer.bytes.resize(bytes, 0);
        buffer.clear();
    }

    #[test]
    fn what_was_sent_is_cut_off_while_there_is_always_more_to_send() {
        let (mut outbox, mut received, mut written) = (Outbox::default(), Vec::new(), Vec::new());
        for n in 0..1000u16 {
            outbox.forget_sent();
            let request = n.to_be_bytes().repeat(500);
            outbox.bytes().extend_from_slice(&request);
            written.extend_from_slice(&request);
            assert!(outbox.bytes().len() <= 2 * 3000 + 1000, "{} bytes after {n} requests", outbox.bytes().len());
            // The first request is not sent completely. From the third request on, as many bytes
            // are sent as are written.
            let bytes = outbox.rest().len().saturating_sub(2000);
            received.extend_from_slice(&outbox.rest()[..bytes]);
            outbox.sent += bytes;
        }
        received.extend_from_slice(outbox.rest());
        assert!(received == written, "every byte is sent once, in its order");
    }

    #[test]
    fn a_single_request_is_kept_until_it_is_answered() {
        let mut outbox = Outbox::default();
        outbox.bytes().extend_from_slice(b"request");
        outbox.sent = 6;
        outbox.rewind();
        assert_eq!(outbox.rest(), b"request");
        outbox.sent = 7;
        outbox.forget_sent();
        assert_eq!(outbox.rest(), b"");
    }

    #[test]
    fn a_rare_large_exchange_gives_its_memory_back() {
        let mut buffer = Buffer::default();
        for _ in 0..50 {
            exchange(&mut buffer, 10_000);
        }
        exchange(&mut buffer, 4 << 20);
        for _ in 0..50 {
            exchange(&mut buffer, 10_000);
        }
        assert!(buffer.bytes.capacity() <= KEEP_BYTES, "{}", buffer.bytes.capacity());
    }

    #[test]
    fn exchanges_that_are_always_large_keep_theirs() {
        let mut buffer = Buffer::default();
        for _ in 0..50 {
            exchange(&mut buffer, 500_000);
        }
        let kept = buffer.bytes.capacity();
        exchange(&mut buffer, 500_000);
        assert!(kept >= 500_000 && buffer.bytes.capacity() == kept, "{kept}");
    }
}
