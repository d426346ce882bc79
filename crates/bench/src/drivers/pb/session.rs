//! Sends requests over a connection and reads their answers, one at a time or several in order.
//!
//! Invariant: an answer belongs to the oldest request. The connection is closed if that is not
//! certain any more: after a timeout, an answer with another message code, or bytes that no request
//! asked for.

use crate::drivers::DriverError;
use crate::drivers::network::{Connection, ExchangeError, Reasons, Target};
use ombak_proto::code;
use ombak_proto::frame::HEADER_BYTES;
use ombak_proto::wire::{Fields, Value};
use std::time::Duration;
use tokio::time::Instant;

/// The largest accepted answer, in bytes. It is larger than any object and smaller than the memory
/// of a machine.
const ANSWER_BYTES_MAX: usize = 512 << 20;

/// A connection that speaks Riak's Protocol Buffers interface.
#[derive(Debug)]
pub struct PbSession {
    connection: Connection,
    reasons: Reasons,
    /// Whether the connection was lost before the last request was answered.
    unanswered: bool,
    /// The length of the frame at the start of the received bytes, which is being processed.
    frame_bytes: usize,
}

impl PbSession {
    /// Opens a connection to a server.
    pub async fn open(target: &Target, reasons: &Reasons) -> Result<Self, DriverError> {
        let connection = Connection::open(target, "server that speaks Protocol Buffers").await?;
        Ok(Self { connection, reasons: reasons.clone(), unanswered: false, frame_bytes: 0 })
    }

    /// The server.
    pub const fn target(&self) -> &Target {
        self.connection.target()
    }

    /// Begins a request and returns the buffer to write it to.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.release();
        self.unanswered = false;
        self.connection.begin()
    }

    /// Whether [`PbSession::exchange`] would send the last request again.
    pub const fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Sends the request, waits for its answer, and returns the body. The answer must have the
    /// message code `answer`. After [`ExchangeError::Disconnected`] this may be called again, which
    /// sends the request again.
    pub async fn exchange(&mut self, answer: u8, limit: Duration) -> Result<&[u8], ExchangeError> {
        let exchanged = self.exchange_frame(limit).await;
        self.unanswered = exchanged == Err(ExchangeError::Disconnected);
        exchanged?;
        self.body(answer)
    }

    async fn exchange_frame(&mut self, limit: Duration) -> Result<(), ExchangeError> {
        self.connection.reopen().await?;
        if !self.connection.unread().is_empty() {
            self.connection.close();
            return Err(ExchangeError::answer("an answer that nobody asked for"));
        }
        self.next_frame(Instant::now() + limit).await
    }

    /// Whether the connection is open, as far as is known.
    pub const fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Returns the buffer to append a further request to, behind those in flight.
    pub fn append(&mut self) -> &mut Vec<u8> {
        self.connection.append()
    }

    /// Sends what was written and waits for the next frame, which [`PbSession::body`] then returns.
    /// The future may be dropped while it waits.
    pub async fn receive(&mut self, deadline: Instant) -> Result<(), ExchangeError> {
        self.connection.reopen().await?;
        self.next_frame(deadline).await
    }

    async fn next_frame(&mut self, deadline: Instant) -> Result<(), ExchangeError> {
        self.release();
        loop {
            let unread = self.connection.unread();
            if let Some(length) = unread.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize) {
                if length == 0 || length > ANSWER_BYTES_MAX {
                    self.connection.close();
                    return Err(ExchangeError::answer("no frame of the protocol"));
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

    /// The body of the received frame, if it has the message code `answer`. An error message from
    /// the server becomes [`ExchangeError::Answer`].
    pub fn body(&mut self, answer: u8) -> Result<&[u8], ExchangeError> {
        let frame = self.connection.unread().get(4..self.frame_bytes).unwrap_or_default();
        match frame.split_first() {
            Some((&code, _)) if code == answer => {}
            Some((&code::ERROR_RESP, body)) => return Err(ExchangeError::Answer(self.reasons.of(error_text(body)))),
            _ => {
                self.close();
                return Err(ExchangeError::answer("an answer of another kind"));
            }
        }
        Ok(self.connection.unread().get(HEADER_BYTES..self.frame_bytes).unwrap_or_default())
    }

    /// Closes the connection and discards the requests in flight. The next use opens it again.
    pub fn close(&mut self) {
        self.connection.close();
        self.connection.begin();
        self.unanswered = false;
        self.frame_bytes = 0;
    }

    /// Releases the frame that was processed.
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
