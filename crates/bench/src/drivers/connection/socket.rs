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

/// What a buffer may keep between two exchanges, in bytes: a thousand connections hold two of them each.
pub const KEEP_BYTES: usize = 256 << 10;

/// A request, or several, on its way out.
#[derive(Debug, Default)]
pub struct Outbox {
    /// What is to be sent.
    pub bytes: Vec<u8>,
    /// So much of it has been.
    pub sent: usize,
}

impl Outbox {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        clear(&mut self.bytes);
        self.sent = 0;
    }

    /// Forgets what was sent, if that is all.
    pub fn clear_if_sent(&mut self) {
        if self.sent == self.bytes.len() {
            self.clear();
        }
    }
}

fn clear(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP_BYTES {
        buffer.shrink_to(INBOX_BYTES);
    }
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    inbox: Vec<u8>,
    /// So much of `inbox` has been dealt with.
    taken: usize,
    timer: Pin<Box<Sleep>>,
}

impl Socket {
    /// Of a stream that is connected.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            inbox: Vec::with_capacity(INBOX_BYTES),
            taken: 0,
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// What has come in and not been taken.
    pub fn unread(&self) -> &[u8] {
        self.inbox.get(self.taken..).unwrap_or_default()
    }

    /// The next `bytes` bytes have been dealt with.
    pub fn take(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.inbox.len());
        if self.taken == self.inbox.len() {
            clear(&mut self.inbox);
            self.taken = 0;
        }
    }

    /// Makes room for an answer of which so many bytes are still to come, as far as that is sensible at once.
    pub fn expect(&mut self, bytes: usize) {
        self.make_room(bytes.clamp(INBOX_BYTES / 4, 1 << 20));
    }

    fn make_room(&mut self, bytes: usize) {
        if self.inbox.capacity() - self.inbox.len() < bytes {
            self.inbox.drain(..self.taken);
            self.taken = 0;
            self.inbox.reserve(bytes);
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
        match pin!(self.stream.read_buf(&mut self.inbox)).poll(cx) {
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
