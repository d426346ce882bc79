//! Connections with TLS over those of another network.

use crate::certificates::Certificates;
use crate::failure;
use crate::stream::TlsStream;
use ombak_runtime::{BoxFuture, Listener, Network, Stream};
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Makes and takes connections of another network, and encrypts them.
pub struct TlsNetwork {
    below: Arc<dyn Network>,
    certificates: Arc<Certificates>,
}

impl TlsNetwork {
    /// Encrypts the connections of `below`. Each connection uses the certificates that are in force
    /// when it begins.
    pub fn new(below: Arc<dyn Network>, certificates: Arc<Certificates>) -> Self {
        Self { below, certificates }
    }
}

impl Network for TlsNetwork {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let connecting = self.below.connect(to);
        let config = Arc::clone(&self.certificates.current().client);
        Box::pin(async move {
            let stream = connecting.await?;
            let name = ServerName::from(to.ip());
            let connected = TlsConnector::from(config).connect(name, stream).await;
            let stream = connected.map_err(failure::of_connecting)?;
            Ok(Box::new(TlsStream::connected(stream)) as Box<dyn Stream>)
        })
    }

    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let below = self.below.listen(on)?;
        Ok(Box::new(TlsListener { below, certificates: Arc::clone(&self.certificates) }))
    }
}

struct TlsListener {
    below: Box<dyn Listener>,
    certificates: Arc<Certificates>,
}

impl Listener for TlsListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.below.local_address()
    }

    /// The handshake of TLS runs with the first read, so it holds up no other connection, and the
    /// reader's time limit covers it.
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.below.accept().await?;
            let accepting = TlsAcceptor::from(Arc::clone(&self.certificates.current().server)).accept(stream);
            Ok((Box::new(TlsStream::accepting(accepting)) as Box<dyn Stream>, from))
        })
    }
}
