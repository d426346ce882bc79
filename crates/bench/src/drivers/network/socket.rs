//! A socket with what has come in and not been looked at, and one timer for all its deadlines.
//!
//! Invariant: nothing is allocated by an exchange that fits into what earlier ones have needed, up to a limit beyond
//! which memory is given back.

use super::Trouble;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Room for what comes in, in bytes.
const INBOX_BYTES: usize = 16 << 10;

/// What a buffer may keep between two exchanges, in bytes, however little they usually need: a thousand connections have
/// two of them each.
const KEEP_BYTES: usize = 256 << 10;

/// Bytes on their way, whose memory is used again. What a rare large exchange has needed is given back after it.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// What exchanges need, in bytes: a moving average.
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

/// A request, or several, on its way out.
///
/// Invariant: what was cut off is never to be sent again. A single request is kept until the next one begins, so it can be
/// sent again over another connection; of several in a pipeline what was sent is cut off, and without their connection all
/// of them have failed.
#[derive(Debug, Default)]
pub struct Outbox {
    buffer: Buffer,
    /// So much of it has been sent.
    sent: usize,
    /// It does not begin with the first request any more.
    is_cut: bool,
}

impl Outbox {
    /// What is to be sent, to be appended to.
    pub const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.buffer.bytes
    }

    fn rest(&self) -> &[u8] {
        self.buffer.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Everything is to be sent again.
    ///
    /// # Panics
    ///
    /// When a part was cut off: the rest may begin in the middle of a request.
    pub const fn rewind(&mut self) {
        assert!(!self.is_cut, "requests that were cut off are not sent again");
        self.sent = 0;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.sent = 0;
        self.is_cut = false;
    }

    /// Forgets what was sent, if that is all or more than what is left: every byte moves at most once for one that was
    /// sent, and the buffer holds at most twice what is still to be sent when this returns.
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

/// A socket.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    inbox: Buffer,
    /// So much of `inbox` has been dealt with.
    taken: usize,
    timer: Pin<Box<Sleep>>,
}

impl Socket {
    /// Of a stream that is connected.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            inbox: Buffer { bytes: Vec::with_capacity(INBOX_BYTES), usual: 0 },
            taken: 0,
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// What has come in and not been taken.
    pub fn unread(&self) -> &[u8] {
        self.inbox.bytes.get(self.taken..).unwrap_or_default()
    }

    /// The next `bytes` bytes have been dealt with.
    pub fn take(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.inbox.bytes.len());
        if self.taken == self.inbox.bytes.len() {
            self.inbox.clear();
            self.taken = 0;
        }
    }

    /// Makes room for an answer of which so many bytes are still to come, as far as that is sensible at once.
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

    /// Sends what is left of `outbox` and takes in what arrives, at least a byte. May be dropped while it waits: nothing
    /// that was sent or has arrived is forgotten.
    pub async fn transfer(&mut self, outbox: &mut Outbox, deadline: Instant) -> Result<(), Trouble> {
        self.make_room(INBOX_BYTES / 4);
        poll_fn(|cx| self.poll_transfer(outbox, deadline, cx)).await
    }

    fn poll_transfer(
        &mut self,
        outbox: &mut Outbox,
        deadline: Instant,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Trouble>> {
        while !outbox.rest().is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, outbox.rest()) {
                Poll::Ready(Ok(bytes @ 1..)) => outbox.sent += bytes,
                Poll::Ready(_) => return Poll::Ready(Err(Trouble::Disconnected)),
                Poll::Pending => break,
            }
        }
        match pin!(self.stream.read_buf(&mut self.inbox.bytes)).poll(cx) {
            Poll::Ready(Ok(1..)) => return Poll::Ready(Ok(())),
            Poll::Ready(_) => return Poll::Ready(Err(Trouble::Disconnected)),
            Poll::Pending => {}
        }
        self.poll_deadline(deadline, cx).map(|()| Err(Trouble::Timeout))
    }

    /// The timer is set anew only when it has run out or is late: once a time limit, not once a request.
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
            // Less than all from the first request on, as much as is written from the third.
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
