//! How a plain stream becomes one with TLS.

use super::handshakes::Handshakes;
use super::stream::ClientStream;
use super::tls_stream::TlsStream;
use crate::access::{Proof, Session};
use crate::stop::Stop;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::Acceptor;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

/// Reads the name of a client in its certificate, which has been verified; `None` if it has none
/// that counts.
pub type CertificateName = fn(&CertificateDer<'_>) -> Option<String>;

/// Puts an error of a handshake into words for the log.
pub type HandshakeFault = fn(io::Error) -> io::Error;

/// How a plain stream becomes one with TLS.
#[derive(Clone)]
pub struct ClientTls {
    current: Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>,
    handshakes: Handshakes,
    name_of: Option<CertificateName>,
    fault_of: HandshakeFault,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("handshakes", &self.handshakes).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// TLS with the configuration that `current` gives for each handshake when it begins. All
    /// listeners of a node share `handshakes`.
    pub fn new(current: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static, handshakes: Handshakes) -> Self {
        Self { current: Arc::new(current), handshakes, name_of: None, fault_of: |error| error }
    }

    /// The same, where the certificate of a client proves the name that `name_of` reads in it. The
    /// configuration has to verify the certificates for which it asks.
    #[must_use]
    pub fn with_names(self, name_of: CertificateName) -> Self {
        Self { name_of: Some(name_of), ..self }
    }

    /// The same with other words for what went wrong in a handshake.
    #[must_use]
    pub fn with_faults(self, fault_of: HandshakeFault) -> Self {
        Self { fault_of, ..self }
    }

    /// Runs the handshake on a plain stream. Returns the stream with TLS, and the session with what
    /// the client has proved.
    ///
    /// # Errors
    /// The connection cannot be used any more. [`io::ErrorKind::TimedOut`]: the handshake was not
    /// complete in time. [`io::ErrorKind::ConnectionAborted`]: another address needed its place.
    /// [`io::ErrorKind::Interrupted`]: the node stops. [`io::ErrorKind::AlreadyExists`]: the stream
    /// has TLS already.
    pub(crate) async fn secure(
        &self,
        stream: ClientStream,
        session: &Session,
        shutdown: &watch::Receiver<bool>,
    ) -> io::Result<(ClientStream, Session)> {
        let ClientStream::Plain(socket) = stream else { return Err(io::ErrorKind::AlreadyExists.into()) };
        // The handshake is large. Plain connections, which share the caller's future, need not be.
        let shaking = Box::pin(self.shake_hands(socket, session.peer.ip(), shutdown));
        let stream = shaking.await.map_err(|error| self.failed(error, session))?;
        let certificate = self.name_of.and_then(|name_of| name_of(&stream.certificate()?));
        let proof = certificate.map_or(Proof::Nothing, |name| Proof::Certificate { name: name.into() });
        let session = Session { is_encrypted: true, ..session.with_proof(proof) };
        Ok((ClientStream::Tls(Box::new(stream)), session))
    }

    async fn shake_hands(
        &self,
        socket: TcpStream,
        address: IpAddr,
        shutdown: &watch::Receiver<bool>,
    ) -> io::Result<TlsStream> {
        let shaking = async {
            // A client that says nothing holds nobody up: the bounds count from its first message.
            let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
            let place = self.handshakes.place(address).await;
            let answering = async {
                let accepting = {
                    let _turn = self.handshakes.turn().await?;
                    // This computes the signature of the node, which is most of what a handshake
                    // costs.
                    hello.into_stream((self.current)())
                };
                accepting.await.map(TlsStream::new)
            };
            place.keep(in_time(self.handshakes.place_limit(), answering)).await
        };
        tokio::select! {
            biased;
            shaken = in_time(self.handshakes.time_limit(), shaking) => shaken,
            () = Stop::new(shutdown) => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    /// The error in words. One that TLS itself has found is logged: somebody has to change the
    /// client or the node.
    fn failed(&self, error: io::Error, session: &Session) -> io::Error {
        let error = (self.fault_of)(error);
        if error.kind() == io::ErrorKind::InvalidData {
            let (peer, listener) = (session.peer, &*session.listener);
            tracing::info!(%peer, listener, %error, "a handshake of TLS with a client failed");
        }
        error
    }
}

/// What `work` comes to, if it ends within the limit.
async fn in_time<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
