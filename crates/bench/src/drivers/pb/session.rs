//! Frames over a connection: one request and its answer, or several requests and their answers in order.
//!
//! Invariant: an answer belongs to the oldest request. Where that is no longer certain (a timeout, an answer of another
//! kind, bytes that nobody asked for) the connection is closed.

use crate::drivers::DriverError;
use crate::drivers::network::{Connection, Reasons, Target, Trouble};
use ombak_proto::code;
use ombak_proto::frame::HEADER_BYTES;
use ombak_proto::wire::{Fields, Value};
use std::time::Duration;
use tokio::time::Instant;

/// The largest answer that is taken, in bytes: more than any object, less than any machine's memory.
const ANSWER_BYTES_MAX: usize = 512 << 20;

/// A connection that speaks Riak's client protocol.
#[derive(Debug)]
pub struct PbSession {
    connection: Connection,
    reasons: Reasons,
    /// The last request went down with its connection.
    unanswered: bool,
    /// The frame at the start of what has come in, in bytes: it is being looked at.
    frame_bytes: usize,
}

impl PbSession {
    /// Opens one.
    pub async fn open(target: &Target, reasons: &Reasons) -> Result<Self, DriverError> {
        let connection = Connection::open(target, "server that speaks Protocol Buffers").await?;
        Ok(Self { connection, reasons: reasons.clone(), unanswered: false, frame_bytes: 0 })
    }

    /// The server.
    pub const fn target(&self) -> &Target {
        self.connection.target()
    }

    /// Where the next request is to be written.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.release();
        self.unanswered = false;
        self.connection.begin()
    }

    /// Whether [`PbSession::exchange`] would send the last request again.
    pub const fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Sends the request and waits for its answer, which has to have this code; returns its body. After
    /// [`Trouble::Disconnected`] it may be called again, which sends the request again.
    pub async fn exchange(&mut self, answer: u8, limit: Duration) -> Result<&[u8], Trouble> {
        let exchanged = self.exchange_frame(limit).await;
        self.unanswered = exchanged == Err(Trouble::Disconnected);
        exchanged?;
        self.body(answer)
    }

    async fn exchange_frame(&mut self, limit: Duration) -> Result<(), Trouble> {
        self.connection.reopen().await?;
        if !self.connection.unread().is_empty() {
            self.connection.close();
            return Err(Trouble::answer("an answer that nobody asked for"));
        }
        self.next_frame(Instant::now() + limit).await
    }

    /// Whether there is a connection, as far as is known.
    pub const fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Where a further request is to be written, behind those that are on their way.
    pub fn append(&mut self) -> &mut Vec<u8> {
        self.connection.append()
    }

    /// Sends what was written and waits for the next frame, which [`PbSession::body`] then shows. May be dropped while it
    /// waits.
    pub async fn receive(&mut self, deadline: Instant) -> Result<(), Trouble> {
        self.connection.reopen().await?;
        self.next_frame(deadline).await
    }

    async fn next_frame(&mut self, deadline: Instant) -> Result<(), Trouble> {
        self.release();
        loop {
            let unread = self.connection.unread();
            if let Some(length) = unread.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize) {
                if length == 0 || length > ANSWER_BYTES_MAX {
                    self.connection.close();
                    return Err(Trouble::answer("no frame of the protocol"));
                }
                let missing = (4 + length).saturating_sub(unread.len());
                if missing == 0 {
                    self.frame_bytes = 4 + length;
                    self.connection.worked();
                    return Ok(());
                }
                self.connection.expect(missing);
            }
            self.connection.transfer(deadline).await?;
        }
    }

    /// The body of the frame that has come, if it has this code. The server's error is trouble.
    pub fn body(&mut self, answer: u8) -> Result<&[u8], Trouble> {
        let frame = self.connection.unread().get(4..self.frame_bytes).unwrap_or_default();
        match frame.split_first() {
            Some((&code, _)) if code == answer => {}
            Some((&code::ERROR_RESP, body)) => return Err(Trouble::Answer(self.reasons.of(error_text(body)))),
            _ => {
                self.close();
                return Err(Trouble::answer("an answer of another kind"));
            }
        }
        Ok(self.connection.unread().get(HEADER_BYTES..self.frame_bytes).unwrap_or_default())
    }

    /// Closes the connection and forgets what was on its way; the next use opens it again.
    pub fn close(&mut self) {
        self.connection.close();
        self.connection.begin();
        self.unanswered = false;
        self.frame_bytes = 0;
    }

    /// What was looked at is not needed any more.
    fn release(&mut self) {
        self.connection.take(std::mem::take(&mut self.frame_bytes));
    }
}

/// The text of an `RpbErrorResp`.
fn error_text(body: &[u8]) -> &[u8] {
    let mut fields = Fields::new(body);
    while let Ok(Some(field)) = fields.next() {
        if let (1, Value::Bytes(text)) = field {
            return text;
        }
    }
    &[]
}
