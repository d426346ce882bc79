//! A connection that is reopened after it was lost.

use super::socket::{Outbox, Socket};
use super::{Backoff, ExchangeError, Target};
use crate::drivers::DriverError;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to one server, with the requests that are being sent.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    socket: Option<Socket>,
    outbox: Outbox,
    backoff: Backoff,
}

impl Connection {
    /// Opens a connection. `what` describes the expected server, for the error.
    pub async fn open(target: &Target, what: &str) -> Result<Self, DriverError> {
        let mut connection = Self::closed(target);
        match connection.connect().await {
            Ok(()) => Ok(connection),
            Err(error) => Err(DriverError(format!("no {what} at {target}: {error}"))),
        }
    }

    /// Creates a connection that is opened when it is first used.
    pub fn closed(target: &Target) -> Self {
        Self { target: target.clone(), socket: None, outbox: Outbox::default(), backoff: Backoff::default() }
    }

    /// The server.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the connection is open, as far as is known.
    pub const fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    async fn connect(&mut self) -> Result<(), std::io::Error> {
        let address = (&*self.target.host, self.target.port);
        let stream = match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(stream) => stream?,
            Err(_) => return Err(std::io::Error::other(format!("no answer within {CONNECT_TIMEOUT:?}"))),
        };
        stream.set_nodelay(true)?;
        self.socket = Some(Socket::new(stream));
        self.outbox.rewind();
        Ok(())
    }

    /// Opens the connection if it is closed, after a pause that grows with each failure. The
    /// current request is then sent from its beginning.
    pub async fn reopen(&mut self) -> Result<(), ExchangeError> {
        if self.socket.is_some() {
            return Ok(());
        }
        let pause = self.backoff.pause();
        if !pause.is_zero() {
            sleep(pause).await;
        }
        self.connect().await.map_err(|_| ExchangeError::Disconnected)
    }

    /// Closes the connection. The next use opens it again.
    pub fn close(&mut self) {
        self.socket = None;
    }

    /// Records that an exchange succeeded, so that the next failure counts as the first one.
    pub const fn worked(&mut self) {
        self.backoff.worked();
    }

    /// Discards earlier requests and returns the buffer to write the next request to.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.outbox.clear();
        self.outbox.bytes()
    }

    /// Returns the buffer to append a further request to, behind those that have not been sent yet.
    /// After the connection is lost, [`Connection::begin`] must be called to discard them, because
    /// the buffer may begin in the middle of a request.
    pub fn append(&mut self) -> &mut Vec<u8> {
        self.outbox.forget_sent();
        self.outbox.bytes()
    }

    /// Sends pending bytes and receives at least one byte. The future may be dropped while it
    /// waits. After an error the connection is closed.
    pub async fn transfer(&mut self, deadline: Instant) -> Result<(), ExchangeError> {
        let Some(socket) = &mut self.socket else { return Err(ExchangeError::Disconnected) };
        let transferred = socket.transfer(&mut self.outbox, deadline).await;
        if transferred.is_err() {
            self.socket = None;
        }
        transferred
    }

    /// The received bytes that have not been taken.
    pub fn unread(&self) -> &[u8] {
        self.socket.as_ref().map_or(&[], Socket::unread)
    }

    /// Marks the next `bytes` received bytes as processed.
    pub fn take(&mut self, bytes: usize) {
        if let Some(socket) = &mut self.socket {
            socket.take(bytes);
        }
    }

    /// Makes room for an answer of which `bytes` bytes have not arrived yet.
    pub fn expect(&mut self, bytes: usize) {
        if let Some(socket) = &mut self.socket {
            socket.expect(bytes);
        }
    }
}
