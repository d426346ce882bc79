//! Tests with real files and real sockets.

mod bad_files;
mod certificates_of_clients;
mod changes;
mod costs;
mod names;
mod protocol;

use super::{ClientCertificates, ClientFiles, ClientTlsSettings, Versions};
use crate::test_authority::{Issued, TestAuthority};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::fs::{self, Permissions};
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

const PATIENCE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const BOTH: Versions = Versions { tls12: true, tls13: true };

/// The files of a node in a directory of its own, and how it uses them.
struct Node {
    dir: TempDir,
    settings: ClientTlsSettings,
}

impl Node {
    /// A node with this certificate, which asks its clients for none.
    fn new(issued: &Issued) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = ClientFiles {
            certificate: write(dir.path(), "cert.pem", &issued.chain),
            key: write(dir.path(), "key.pem", &issued.key),
            authorities: None,
            revocations: None,
        };
        let settings = ClientTlsSettings { files, versions: BOTH, honors_own_order: false, checks_revocation: true };
        Self { dir, settings }
    }

    /// A node whose certificate comes from this authority.
    fn of(authority: &TestAuthority) -> Self {
        Self::new(&authority.issue_for_host("localhost"))
    }

    fn trusting(mut self, authorities: &str) -> Self {
        self.settings.files.authorities = Some(write(self.dir.path(), "ca.pem", authorities));
        self
    }

    fn revoking(mut self, lists: &str) -> Self {
        self.settings.files.revocations = Some(write(self.dir.path(), "crl.pem", lists));
        self
    }

    fn without_revocation(mut self) -> Self {
        self.settings.checks_revocation = false;
        self
    }

    fn speaking(mut self, versions: Versions) -> Self {
        self.settings.versions = versions;
        self
    }

    fn read(&self) -> ClientCertificates {
        ClientCertificates::read(self.settings.clone()).unwrap_or_else(|problem| panic!("{problem}"))
    }

    fn problem(&self) -> String {
        ClientCertificates::read(self.settings.clone()).err().expect("the files were accepted").to_string()
    }

    fn warnings(&self) -> Vec<String> {
        self.read().warnings(30 * DAY, 2 * DAY).iter().map(ToString::to_string).collect()
    }
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

/// A client that trusts these authorities.
struct Client {
    authorities: RootCertStore,
    versions: Vec<&'static SupportedProtocolVersion>,
    suites: Vec<rustls::SupportedCipherSuite>,
    own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

impl Client {
    fn trusting(authorities: &str) -> Self {
        let mut store = RootCertStore::empty();
        for certificate in certificates(authorities) {
            store.add(certificate).unwrap();
        }
        Self { authorities: store, versions: vec![&TLS13, &TLS12], suites: ring::ALL_CIPHER_SUITES.to_vec(), own: None }
    }

    fn speaking(mut self, versions: &[&'static SupportedProtocolVersion]) -> Self {
        self.versions = versions.to_vec();
        self
    }

    fn with_suites(mut self, list: &str) -> Self {
        self.suites = super::ciphers::supported(list);
        self
    }

    fn showing(mut self, issued: &Issued) -> Self {
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
        self.own = Some((certificates(&issued.chain), key));
        self
    }

    fn config(self) -> ClientConfig {
        let provider = rustls::crypto::CryptoProvider { cipher_suites: self.suites, ..ring::default_provider() };
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.authorities);
        let mut config = match self.own {
            // Certificates that rustls would not serve are presented all the same.
            Some((chain, key)) => {
                let key = ring::sign::any_supported_type(&key).unwrap();
                let own = rustls::sign::CertifiedKey::new(chain, key);
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own)))
            }
            None => builder.with_no_client_auth(),
        };
        config.resumption = Resumption::in_memory_sessions(8);
        config
    }
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// The two ends of a connection.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (listener.accept().await.unwrap().0, theirs)
}

type Ours = server::TlsStream<TcpStream>;
type Theirs = client::TlsStream<TcpStream>;

/// Runs a handshake, and passes a byte in each direction. The error is what the node logs.
async fn meet(node: Arc<ServerConfig>, client: Arc<ClientConfig>) -> Result<(Ours, Theirs), String> {
    let (ours, theirs) = sockets().await;
    let serving = async {
        let mut stream = TlsAcceptor::from(node).accept(ours).await?;
        stream.read_exact(&mut [0]).await?;
        stream.write_all(&[1]).await?;
        stream.flush().await?;
        Ok(stream)
    };
    let asking = async {
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(client).connect(name, theirs).await?;
        stream.write_all(&[1]).await?;
        stream.read_exact(&mut [0]).await?;
        io::Result::Ok(stream)
    };
    let (served, asked) = soon(async { tokio::join!(serving, asking) }).await;
    match (served, asked) {
        (Ok(ours), Ok(theirs)) => Ok((ours, theirs)),
        (Err(error), _) => Err(super::explain(error).to_string()),
        (Ok(_), Err(error)) => Err(format!("only the client knows: {error}")),
    }
}

/// The same with the files of a node.
async fn connect(node: &Node, client: Client) -> Result<(Ours, Theirs), String> {
    meet(node.read().current(), Arc::new(client.config())).await
}

/// The beginning of an error must contain some words.
#[track_caller]
fn assert_refused<T>(outcome: Result<T, String>, words: &str) {
    let error = outcome.err().expect("it was accepted");
    assert!(error.contains(words), "{error}");
}
