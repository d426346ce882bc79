//! A connection that is opened again after it was lost.

use super::socket::{Outbox, Socket};
use super::{Backoff, Target, Trouble};
use crate::drivers::DriverError;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// How long opening may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to one server, with the request that is on its way.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    socket: Option<Socket>,
    outbox: Outbox,
    backoff: Backoff,
}

impl Connection {
    /// Opens one. `what` says what is expected at the other end.
    pub async fn open(target: &Target, what: &str) -> Result<Self, DriverError> {
        let mut connection = Self::closed(target);
        match connection.connect().await {
            Ok(()) => Ok(connection),
            Err(error) => Err(DriverError(format!("no {what} at {target}: {error}"))),
        }
    }

    /// One that is opened when it is used.
    pub fn closed(target: &Target) -> Self {
        Self { target: target.clone(), socket: None, outbox: Outbox::default(), backoff: Backoff::default() }
    }

    /// The server.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Whether there is a connection, as far as is known.
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

    /// Opens the connection if it is not, after a pause that grows from failure to failure. What is to be sent is sent
    /// from its beginning.
    pub async fn reopen(&mut self) -> Result<(), Trouble> {
        if self.socket.is_some() {
            return Ok(());
        }
        let pause = self.backoff.pause();
        if !pause.is_zero() {
            sleep(pause).await;
        }
        self.connect().await.map_err(|_| Trouble::Disconnected)
    }

    /// Closes it; the next use opens it again.
    pub fn close(&mut self) {
        self.socket = None;
    }

    /// An exchange has ended well: the next loss is a first one.
    pub const fn worked(&mut self) {
        self.backoff.worked();
    }

    /// Where the next request is to be written; earlier ones are forgotten.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.outbox.clear();
        self.outbox.bytes()
    }

    /// Where a further request is to be written, behind those that are still to be sent. When the connection is lost,
    /// [`Connection::begin`] has to forget them: what is left may begin in the middle of a request.
    pub fn append(&mut self) -> &mut Vec<u8> {
        self.outbox.forget_sent();
        self.outbox.bytes()
    }

    /// Sends and takes in, at least a byte. May be dropped while it waits. After trouble the connection is closed.
    pub async fn transfer(&mut self, deadline: Instant) -> Result<(), Trouble> {
        let Some(socket) = &mut self.socket else { return Err(Trouble::Disconnected) };
        let transferred = socket.transfer(&mut self.outbox, deadline).await;
        if transferred.is_err() {
            self.socket = None;
        }
        transferred
    }

    /// What has come in and not been taken.
    pub fn unread(&self) -> &[u8] {
        self.socket.as_ref().map_or(&[], Socket::unread)
    }

    /// The next `bytes` bytes have been dealt with.
    pub fn take(&mut self, bytes: usize) {
        if let Some(socket) = &mut self.socket {
            socket.take(bytes);
        }
    }

    /// Makes room for an answer of which so many bytes are still to come.
    pub fn expect(&mut self, bytes: usize) {
        if let Some(socket) = &mut self.socket {
            socket.expect(bytes);
        }
    }
}
