//! TLS for tests: certificates, clients, and a bridge that puts TLS below tests of plain
//! connections.

use super::{ClientListener, ClientTls, Handshakes};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A time limit that no correct handshake reaches.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// The name in the certificates of servers.
const SERVER: &str = "localhost";

thread_local! {
    /// The size of the pieces in which clients of this thread write; `None`: without TLS.
    static PIECE_BYTES: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What both sides of a connection need.
struct Configs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    client_with_certificate: Arc<ClientConfig>,
}

/// The name in the certificate of the client that has one.
pub(crate) const CLIENT: &str = "alice.example";

impl Configs {
    fn get() -> &'static Self {
        static CONFIGS: OnceLock<Configs> = OnceLock::new();
        CONFIGS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let provider = Arc::new(ring::default_provider());
        let [server, client] = [SERVER, CLIENT].map(|name| generate_simple_self_signed([name.to_owned()]).unwrap());
        let clients = WebPkiClientVerifier::builder_with_provider(trusting(&client), Arc::clone(&provider));
        let server_config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
            .with_single_cert(vec![server.cert.der().clone()], key_of(&server))
            .unwrap();
        let connecting = || {
            ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(trusting(&server))
        };
        let certificate = vec![client.cert.der().clone()];
        Self {
            server: Arc::new(server_config),
            client: Arc::new(connecting().with_no_client_auth()),
            client_with_certificate: Arc::new(
                connecting().with_client_auth_cert(certificate, key_of(&client)).unwrap(),
            ),
        }
    }
}

fn trusting(issued: &CertifiedKey<KeyPair>) -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add(issued.cert.der().clone()).unwrap();
    Arc::new(store)
}

fn key_of(issued: &CertifiedKey<KeyPair>) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap()
}

/// The name of the one client that has a certificate.
fn name_of(certificate: &CertificateDer<'_>) -> Option<String> {
    certificate.windows(CLIENT.len()).any(|part| part == CLIENT.as_bytes()).then(|| CLIENT.to_owned())
}

/// TLS with a certificate for `localhost`. A client may have a certificate.
pub(crate) fn client_tls() -> ClientTls {
    within(HANDSHAKE_TIMEOUT)
}

/// The same with this limit for a handshake.
pub(crate) fn within(handshake_timeout: Duration) -> ClientTls {
    bounded(Handshakes::new(handshake_timeout, 1000, 2))
}

/// The same with these bounds for handshakes.
pub(crate) fn bounded(handshakes: Handshakes) -> ClientTls {
    ClientTls::new(|| Arc::clone(&Configs::get().server), handshakes).with_names(name_of)
}

/// The same, where the configuration for each handshake comes from a function.
pub(crate) fn with_current(
    current: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static,
    handshakes: Handshakes,
) -> ClientTls {
    ClientTls::new(current, handshakes).with_names(name_of)
}

/// The configuration of the node in tests.
pub(crate) fn server_config() -> Arc<ServerConfig> {
    Arc::clone(&Configs::get().server)
}

/// The first message of a client.
pub(crate) fn hello() -> Vec<u8> {
    let name = ServerName::try_from(SERVER).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::clone(&Configs::get().client), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

/// Runs the handshake of a client that has no certificate.
pub(crate) async fn connect(socket: TcpStream) -> io::Result<TlsStream<InPieces>> {
    shake_hands(&Configs::get().client, InPieces::new(socket, usize::MAX)).await
}

/// Runs the handshake of the client that has a certificate.
pub(crate) async fn connect_with_certificate(socket: TcpStream) -> io::Result<TlsStream<InPieces>> {
    shake_hands(&Configs::get().client_with_certificate, InPieces::new(socket, usize::MAX)).await
}

/// The same as [`connect`], where the client writes in pieces of this size.
pub(crate) async fn connect_in_pieces(socket: TcpStream, piece_bytes: usize) -> io::Result<TlsStream<InPieces>> {
    shake_hands(&Configs::get().client, InPieces::new(socket, piece_bytes)).await
}

async fn shake_hands(config: &Arc<ClientConfig>, socket: InPieces) -> io::Result<TlsStream<InPieces>> {
    socket.socket.set_nodelay(true)?;
    TlsConnector::from(Arc::clone(config)).connect(ServerName::try_from(SERVER).unwrap(), socket).await
}

/// A socket that is written in pieces, with a pause between any two, and that may be cut off.
pub(crate) struct InPieces {
    socket: TcpStream,
    piece_bytes: usize,
    has_paused: bool,
    /// After how many further bytes the socket is closed for writing; `None`: never.
    pub(crate) cut_after_bytes: Option<usize>,
}

impl InPieces {
    fn new(socket: TcpStream, piece_bytes: usize) -> Self {
        Self { socket, piece_bytes, has_paused: false, cut_after_bytes: None }
    }
}

impl AsyncRead for InPieces {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl AsyncWrite for InPieces {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let length = bytes.len().min(self.piece_bytes).min(self.cut_after_bytes.unwrap_or(usize::MAX));
        if length < bytes.len() && !self.has_paused {
            self.has_paused = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if length == 0 {
            ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &bytes[..length]))?;
        self.has_paused = false;
        if let Some(left) = &mut self.cut_after_bytes {
            *left -= written;
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Runs tests of plain connections over TLS: the listeners that they start on this thread have TLS,
/// and their connections go through a bridge whose client writes in pieces of this size.
pub(crate) fn over_tls(piece_bytes: usize, tests: &[fn()]) {
    PIECE_BYTES.set(Some(piece_bytes));
    for test in tests {
        test();
    }
    PIECE_BYTES.set(None);
}

/// The listener of a test: with TLS within [`over_tls`], otherwise plain.
pub(crate) fn listener(socket: TcpListener, name: &str) -> ClientListener {
    let listener = ClientListener::plain(socket, name);
    if PIECE_BYTES.get().is_some() { listener.with_tls(client_tls()) } else { listener }
}

/// A connection of a test to its listener: through a bridge within [`over_tls`], otherwise direct.
pub(crate) async fn connection(to: SocketAddr) -> TcpStream {
    let Some(piece_bytes) = PIECE_BYTES.get() else { return TcpStream::connect(to).await.unwrap() };
    let bridge = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(bridge.local_addr().unwrap()).await.unwrap();
    let (mut plain, _) = bridge.accept().await.unwrap();
    plain.set_nodelay(true).unwrap();
    tokio::spawn(async move {
        let mut secured = connect_in_pieces(TcpStream::connect(to).await?, piece_bytes).await?;
        // Whichever side ends the connection, the other one learns it.
        copy_bidirectional(&mut plain, &mut secured).await
    });
    stream
}
