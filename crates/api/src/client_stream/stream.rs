//! The stream of a client's connection.

use super::halves::{ReadHalf, WriteHalf};
use super::tls_stream::TlsStream;
use futures_util::future::poll_immediate;
use std::future::poll_fn;
use tokio::net::TcpStream;

/// The stream of a client's connection.
pub(crate) enum ClientStream {
    /// A socket.
    Plain(TcpStream),
    /// A socket with TLS. It is boxed, so that it does not enlarge plain connections.
    Tls(Box<TlsStream>),
}

impl ClientStream {
    /// The receiving and the sending side. The same task polls both.
    pub(crate) fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        match self {
            Self::Plain(stream) => {
                let (read, write) = stream.split();
                (ReadHalf::Plain(read), WriteHalf::Plain(write))
            }
            Self::Tls(stream) => (ReadHalf::Tls(stream), WriteHalf::Tls(stream)),
        }
    }

    /// Tells the client that nothing more comes, as far as that needs no waiting. TLS can tell this
    /// end from a connection that was cut. For a plain stream, closing the socket says it.
    pub(crate) async fn say_goodbye(&self) {
        if let Self::Tls(stream) = self {
            // The connection ends anyway.
            drop(poll_immediate(poll_fn(|cx| stream.poll_shutdown(cx))).await);
        }
    }
}
