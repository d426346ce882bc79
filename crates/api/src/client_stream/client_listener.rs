//! A listener for clients.

use super::client_tls::ClientTls;
use super::stream::ClientStream;
use crate::access::Session;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A listener for clients, with the terms on which it takes connections.
#[derive(Debug)]
pub struct ClientListener {
    socket: TcpListener,
    terms: Terms,
}

/// The terms on which a listener takes connections.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    listener: Arc<str>,
    tls: Option<ClientTls>,
}

impl ClientListener {
    /// A listener for plain connections. `name` is its key in the configuration.
    pub fn plain(socket: TcpListener, name: impl Into<Arc<str>>) -> Self {
        Self { socket, terms: Terms { listener: name.into(), tls: None } }
    }

    /// The same listener, where connections begin with a handshake of TLS.
    #[must_use]
    pub fn with_tls(self, tls: ClientTls) -> Self {
        Self { terms: Terms { tls: Some(tls), ..self.terms }, ..self }
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.socket.accept().await
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }
}

impl Terms {
    /// Whether a client that is turned away before any handshake can read why.
    pub(crate) fn are_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Begins a connection. With TLS this waits for the handshake, so it belongs to the task of the
    /// connection.
    ///
    /// # Errors
    /// Those of [`ClientTls::secure`]. A plain connection begins without one.
    pub(crate) async fn begin(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        shutdown: &watch::Receiver<bool>,
    ) -> io::Result<(ClientStream, Session)> {
        let (stream, session) = (ClientStream::Plain(socket), Session::new(peer, Arc::clone(&self.listener)));
        match &self.tls {
            None => Ok((stream, session)),
            Some(tls) => tls.secure(stream, &session, shutdown).await,
        }
    }
}
