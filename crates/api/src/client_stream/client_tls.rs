//! How a plain stream becomes one with TLS.

use super::stream::ClientStream;
use super::tls_stream::TlsStream;
use crate::access::{Proof, Session};
use crate::stop::Stop;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Reads the name of a client in its certificate, which has been verified; `None` if it has none
/// that counts.
pub type CertificateName = fn(&CertificateDer<'_>) -> Option<String>;

/// How a plain stream becomes one with TLS.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ServerConfig>,
    handshake_timeout: Duration,
    name_of: Option<CertificateName>,
}

impl ClientTls {
    /// TLS with this configuration. A client has `handshake_timeout` for the whole handshake.
    pub const fn new(config: Arc<ServerConfig>, handshake_timeout: Duration) -> Self {
        Self { config, handshake_timeout, name_of: None }
    }

    /// The same, where the certificate of a client proves the name that `name_of` reads in it. The
    /// configuration has to ask for certificates and to verify them.
    #[must_use]
    pub fn with_names(self, name_of: CertificateName) -> Self {
        Self { name_of: Some(name_of), ..self }
    }

    /// Runs the handshake on a plain stream. Returns the stream with TLS, and the session with what
    /// the client has proved.
    ///
    /// # Errors
    /// The connection cannot be used any more. [`io::ErrorKind::TimedOut`]: the handshake was not
    /// complete in time. [`io::ErrorKind::Interrupted`]: the node stops.
    /// [`io::ErrorKind::AlreadyExists`]: the stream has TLS already.
    pub(crate) async fn secure(
        &self,
        stream: ClientStream,
        session: &Session,
        shutdown: &watch::Receiver<bool>,
    ) -> io::Result<(ClientStream, Session)> {
        let ClientStream::Plain(socket) = stream else { return Err(io::ErrorKind::AlreadyExists.into()) };
        // The handshake is large. Plain connections, which share the caller's future, need not be.
        let stream = Box::pin(self.shake_hands(socket, shutdown)).await?;
        let certificate = self.name_of.and_then(|name_of| name_of(&stream.certificate()?));
        let proof = certificate.map_or(Proof::Nothing, |name| Proof::Certificate { name: name.into() });
        let session = Session { is_encrypted: true, ..session.with_proof(proof) };
        Ok((ClientStream::Tls(Box::new(stream)), session))
    }

    async fn shake_hands(&self, socket: TcpStream, shutdown: &watch::Receiver<bool>) -> io::Result<TlsStream> {
        let accepting = TlsAcceptor::from(Arc::clone(&self.config)).accept(socket);
        tokio::select! {
            biased;
            accepted = timeout(self.handshake_timeout, accepting) => {
                accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map(TlsStream::new)
            }
            () = Stop::new(shutdown) => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}
