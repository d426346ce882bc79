//! The seam for sockets between nodes.

use crate::runtime::BoxFuture;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes to another node: TCP, TLS over TCP, or simulated.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes connections.
pub trait Network: Send + Sync {
    /// Connects to an address. Gives up by itself only where the system does: the caller sets a
    /// time limit.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;

    /// Listens on an address. Port 0 means any free port.
    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>>;
}

/// A socket that takes connections. Dropping it ends that.
pub trait Listener: Send + Sync {
    /// The address that it listens on.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// Waits for the next connection, and returns it with the address of its other end. An error
    /// concerns one connection or a lack of resources; the listener goes on.
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>>;
}
