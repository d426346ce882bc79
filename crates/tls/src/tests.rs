//! Tests with real files and real sockets.

use crate::test_authority::{Issued, TestAuthority, self_signed};
use crate::verification::AnyNode;
use crate::{CertificateFiles, Certificates, FileProblem, FileRole, TlsNetwork};
use ombak_runtime::{Network, Stream, TcpNetwork};
use rcgen::{CustomExtension, ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{HandshakeKind, RootCertStore};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const PATIENCE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What `openssl x509 -req` issues if it is given no extensions: a certificate of version 1.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBNTCB3QIUXUB3iiuOfyffmGxWgKpz4Mpggp8wCgYIKoZIzj0EAwIwIzEhMB8G\n\
A1UEAwwYYXV0aG9yaXR5IG9mIHRoZSBjbHVzdGVyMB4XDTI2MTEyMjE2NTM1M1oX\n\
DTI3MTEyMjE2NTM1M1owGTEXMBUGA1UEAwwOb21iYWtAMTAuMC4wLjEwWTATBgcq\n\
hkjOPQIBBggqhkjOPQMBBwNCAAStS7noCIUxs3y4A1VK2Kbp4cYCsIMHnFTjdDUy\n\
Z5tpkEtHyakxOGF4xp/l0Gk5d4wprMFVikmd12NCUXRIL7TFMAoGCCqGSM49BAMC\n\
A0cAMEQCIAN/1+LaB1zatEabwmKgj2ObDJBVg90kjjnW5LJnix/uAiBl/nNgm1Ta\n\
FJwbOBEUhGEa1RdDW5NKU7QqO2w3Z1ds9w==\n\
-----END CERTIFICATE-----\n";

/// The files of a node in a directory of its own.
fn files(issued: &Issued, authorities: &str) -> (TempDir, CertificateFiles) {
    let dir = tempfile::tempdir().unwrap();
    let files = issued.write(dir.path(), authorities);
    (dir, files)
}

fn problem(files: &CertificateFiles) -> FileProblem {
    Certificates::read(files.clone()).err().expect("the files were accepted")
}

/// Asserts which file is wrong and that the operator reads `words`.
fn assert_wrong(issued: &Issued, authorities: &str, role: FileRole, words: &str) {
    let (_dir, files) = files(issued, authorities);
    let found = problem(&files);
    let path = match role {
        FileRole::Certificate => &files.certificate,
        FileRole::Key => &files.key,
        FileRole::Authorities | FileRole::Revocations => &files.authorities,
    };
    assert_eq!((found.role, &found.path), (role, path), "{found}");
    assert!(found.to_string().contains(words), "{found}");
}

#[test]
fn a_certificate_that_no_peer_would_accept_is_refused_with_its_reason() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("ca"));
    let certificate = FileRole::Certificate;
    assert_wrong(&ca.issue("a"), &other.pem, certificate, "does not come from an authority");
    assert_wrong(&ca.issue("a"), &TestAuthority::new("x").pem, certificate, "does not come from an authority");
    assert_wrong(&self_signed("a"), &ca.pem, certificate, "does not come from an authority");
    assert_wrong(&ca.issue_for_years("a", 2001, 2002), &ca.pem, certificate, "has expired");
    assert_wrong(&ca.issue_for_years("a", 2900, 2901), &ca.pem, certificate, "is the clock of this machine right?");
    for purpose in [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth] {
        let one_sided = ca.issue_changed("a", |params| params.extended_key_usages = vec![purpose]);
        assert_wrong(&one_sided, &ca.pem, certificate, "needs both serverAuth and clientAuth");
    }
    let issued_as_authority = ca.intermediate("a");
    let key = self_signed("a").key;
    let no_node = Issued { chain: issued_as_authority.pem, key };
    assert_wrong(&no_node, &ca.pem, FileRole::Key, "does not belong to the certificate in");
    let both = ca.issue_changed("a", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    });
    let (_dir, accepted) = files(&both, &format!("{}{}", other.pem, ca.pem));
    assert!(Certificates::read(accepted).is_ok());
}

#[test]
fn the_certificate_of_an_authority_is_none_of_a_node() {
    let ca = TestAuthority::new("ca");
    let own = ca.issue_changed("a", |params| params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    assert_wrong(&own, &ca.pem, FileRole::Certificate, "is that of an authority (CA:TRUE)");
    let critical = ca.issue_changed("a", |params| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions = vec![unknown];
    });
    assert_wrong(&critical, &ca.pem, FileRole::Certificate, "is not valid: UnsupportedCriticalExtension");
}

#[test]
fn files_that_cannot_be_read_are_named_with_what_would_be_right() {
    let (ca, key) = (TestAuthority::new("ca"), FileRole::Key);
    let good = ca.issue("a");
    let with = |chain: &str, key: &str| Issued { chain: chain.to_owned(), key: key.to_owned() };
    assert_wrong(&with("", &good.key), &ca.pem, FileRole::Certificate, "has no certificate");
    assert_wrong(&with(&good.chain.replace("M", "!"), &good.key), &ca.pem, FileRole::Certificate, "is no PEM file");
    assert_wrong(&with(&good.chain, &good.chain), &ca.pem, key, "has no private key");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert_wrong(&with(&good.chain, encrypted), &ca.pem, key, "is encrypted with a passphrase");
    let strange = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    assert_wrong(&with(&good.chain, strange), &ca.pem, key, "is of a kind that cannot be used");
    assert_wrong(&with(&good.chain, &ca.issue("b").key), &ca.pem, key, "does not belong to the certificate");
    assert_wrong(&with(VERSION_1, &good.key), &ca.pem, FileRole::Certificate, "is of version 1 of X.509");
    assert_wrong(&good, "", FileRole::Authorities, "has no certificate");
    let damaged = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert_wrong(&good, &format!("{}{damaged}", ca.pem), FileRole::Authorities, "its certificate number 2");
    let long = format!("{}{}", ca.pem, "#".repeat(1 << 20));
    assert_wrong(&good, &long, FileRole::Authorities, "is longer than");

    let (_dir, mut files) = files(&good, &ca.pem);
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(problem(&files).to_string().contains("has the permissions 644"), "{}", problem(&files));
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(Certificates::read(files.clone()).is_ok(), "the group may read it");
    files.authorities = files.authorities.with_file_name("missing");
    assert!(problem(&files).to_string().contains("missing: cannot be read: No such file"), "{}", problem(&files));
    files.authorities = files.key.parent().unwrap().to_path_buf();
    assert!(problem(&files).to_string().contains("is no file"), "{}", problem(&files));
}

#[test]
fn an_operator_learns_in_time_that_a_certificate_expires() {
    let ca = TestAuthority::new("ca");
    let (_dir, lasting) = files(&ca.issue_for_years("a", 2001, 2900), &ca.pem);
    let lasting = Certificates::read(lasting).unwrap();
    assert_eq!(lasting.expiry_within(30 * DAY), None);
    let soon = lasting.expiry_within(400_000 * DAY).unwrap();
    assert!(soon.to_string().contains("node.crt: the certificate in force expires in"), "{soon}");
}

/// One side of connections.
fn network(issued: &Issued, authorities: &str) -> (TempDir, TlsNetwork) {
    let (dir, files) = files(issued, authorities);
    let certificates = Certificates::read(files).unwrap();
    (dir, TlsNetwork::new(Arc::new(TcpNetwork::default()), Arc::new(certificates)))
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Accepts one connection, and sends back what arrives until its end. Returns how much that was.
fn echo_once(network: &TlsNetwork) -> (SocketAddr, tokio::task::JoinHandle<io::Result<usize>>) {
    let listener = network.listen(any_port()).unwrap();
    let address = listener.local_address().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let (mut total, mut piece) = (0, vec![0; 10_000]);
        loop {
            match stream.read(&mut piece).await? {
                0 => break Ok(total),
                bytes => {
                    stream.write_all(&piece[..bytes]).await?;
                    stream.flush().await?;
                    total += bytes;
                }
            }
        }
    });
    (address, serving)
}

async fn says(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await?;
    let mut heard = vec![0; bytes.len()];
    stream.read_exact(&mut heard).await?;
    assert_eq!(heard, bytes);
    Ok(())
}

#[tokio::test]
async fn two_sides_of_one_authority_talk_and_nobody_between_them_reads_along() {
    let ca = TestAuthority::new("ca");
    let by_intermediate = ca.intermediate("department");
    let below = by_intermediate.issue("b");
    let below = Issued { chain: format!("{}{}", below.chain, by_intermediate.pem), key: below.key };
    let ((_a, a), (_b, b)) = (network(&ca.issue("a"), &ca.pem), network(&below, &ca.pem));
    let (address, serving) = echo_once(&b);
    // A listener in between notes all bytes.
    let between = tokio::net::TcpListener::bind(any_port()).await.unwrap();
    let to = between.local_addr().unwrap();
    let passing = tokio::spawn(async move {
        let (from, mut to) = (between.accept().await.unwrap().0, TcpStream::connect(address).await.unwrap());
        let (mut in_read, mut in_write) = from.into_split();
        let (mut out_read, mut out_write) = to.split();
        let mut seen = Vec::new();
        let there = async {
            let mut piece = [0; 4096];
            while let Ok(bytes @ 1..) = in_read.read(&mut piece).await {
                seen.extend_from_slice(&piece[..bytes]);
                out_write.write_all(&piece[..bytes]).await.unwrap();
            }
            out_write.shutdown().await.unwrap();
        };
        let back = async { drop(tokio::io::copy(&mut out_read, &mut in_write).await) };
        tokio::join!(there, back);
        seen
    });
    let mut stream = soon(a.connect(to)).await.unwrap();
    let words = b"nobody should read this along the way";
    soon(says(&mut stream, words)).await.unwrap();
    soon(says(&mut stream, &vec![7; 300_000])).await.unwrap();
    soon(stream.shutdown()).await.unwrap();
    assert_eq!(soon(serving).await.unwrap().unwrap(), words.len() + 300_000);
    drop(stream);
    let seen = soon(passing).await.unwrap();
    assert!(seen.len() > 300_000 && !seen.windows(12).any(|part| words.windows(12).any(|own| own == part)));
}

#[tokio::test]
async fn a_peer_of_another_authority_is_told_why_and_nothing_of_it_arrives() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("other"));
    let (_a, a) = network(&ca.issue("a"), &ca.pem);
    // It trusts the authority of the listener, which does not trust its own.
    let (_x, stranger) = network(&other.issue("x"), &format!("{}{}", other.pem, ca.pem));
    let (address, serving) = echo_once(&a);
    let mut stream = soon(stranger.connect(address)).await.unwrap();
    let refused = soon(says(&mut stream, &[7; 40_000])).await.unwrap_err().to_string();
    assert!(refused.contains("the other side refused the certificate of this node: it does not come"), "{refused}");
    let why = soon(serving).await.unwrap().unwrap_err().to_string();
    assert!(why.contains("certificate of the other side does not come from an authority"), "{why}");

    // The other way round: the listener is the stranger.
    let (address, serving) = echo_once(&stranger);
    let why = soon(a.connect(address)).await.err().unwrap().to_string();
    assert!(why.contains("certificate of the other side does not come from an authority"), "{why}");
    let refused = soon(serving).await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("refused the certificate of this node"), "{refused}");
}

#[tokio::test]
async fn a_peer_without_a_certificate_gets_nowhere() {
    let ca = TestAuthority::new("ca");
    let (_a, a) = network(&ca.issue("a"), &ca.pem);
    let (address, serving) = echo_once(&a);
    let provider = Arc::new(ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap();
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate).unwrap();
    let verifier = AnyNode { authorities: Arc::new(authorities), provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let name = ServerName::try_from("a").unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    let mut stream = soon(TlsConnector::from(Arc::new(config.with_no_client_auth())).connect(name, tcp)).await.unwrap();
    stream.write_all(&[7; 48]).await.unwrap();
    let mut heard = Vec::new();
    let ended = soon(stream.read_to_end(&mut heard)).await;
    assert!(heard.is_empty() && ended.unwrap_err().to_string().contains("CertificateRequired"), "{heard:?}");
    drop(stream);
    let why = soon(serving).await.unwrap().unwrap_err().to_string();
    assert_eq!(why, "the other side has no certificate");
}

/// With resumption, a peer could come back after its certificate has expired.
#[tokio::test]
async fn each_connection_proves_itself_anew() {
    let ca = TestAuthority::new("ca");
    let (_b, b) = network(&ca.issue("b"), &ca.pem);
    let (_a, own_files) = files(&ca.issue("a"), &ca.pem);
    let mut config = ClientConfig::clone(&Certificates::read(own_files).unwrap().current().client);
    // This peer would like to resume.
    config.resumption = Resumption::in_memory_sessions(8);
    let config = Arc::new(config);
    let listener = b.listen(any_port()).unwrap();
    let address = listener.local_address().unwrap();
    for _ in 0..3 {
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            stream.flush().await.unwrap();
            stream
        };
        let connecting = async {
            let tcp = TcpStream::connect(address).await.unwrap();
            let name = ServerName::from(address.ip());
            let mut stream = TlsConnector::from(Arc::clone(&config)).connect(name, tcp).await.unwrap();
            // A ticket would come before the first bytes.
            stream.read_exact(&mut [0; 5]).await.unwrap();
            stream.get_ref().1.handshake_kind()
        };
        let (_open, kind) = soon(async { tokio::join!(serving, connecting) }).await;
        assert_eq!(kind, Some(HandshakeKind::Full));
    }
}

#[tokio::test]
async fn who_does_not_speak_tls_is_told_apart() {
    let ca = TestAuthority::new("ca");
    let (_a, a) = network(&ca.issue("a"), &ca.pem);
    let (address, serving) = echo_once(&a);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[b'o'; 100_000]).await.unwrap();
    let why = soon(serving).await.unwrap().unwrap_err().to_string();
    assert!(why.contains("the other side does not speak TLS"), "{why}");

    // A listener that closes at once, as a node without TLS does.
    let plain = tokio::net::TcpListener::bind(any_port()).await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move { drop(plain.accept().await) });
    let why = soon(a.connect(address)).await.err().unwrap().to_string();
    assert!(why.contains("it may be configured without TLS"), "{why}");
}

#[tokio::test]
async fn what_was_read_again_counts_for_new_connections_and_unusable_files_change_nothing() {
    let (ca, next) = (TestAuthority::new("ca"), TestAuthority::new("next"));
    let (dir, own_files) = files(&ca.issue("a"), &ca.pem);
    let certificates = Arc::new(Certificates::read(own_files).unwrap());
    let a = TlsNetwork::new(Arc::new(TcpNetwork::default()), Arc::clone(&certificates));
    let (_b, b) = network(&next.issue("b"), &format!("{}{}", next.pem, ca.pem));

    let (address, serving) = echo_once(&b);
    let before = soon(a.connect(address)).await.err().unwrap().to_string();
    assert!(before.contains("does not come from an authority"), "{before}");
    drop(soon(serving).await.unwrap());

    ca.issue("a").write(dir.path(), &format!("{}{}", ca.pem, next.pem));
    certificates.read_again().unwrap();
    let (address, serving) = echo_once(&b);
    let mut stream = soon(a.connect(address)).await.unwrap();
    soon(says(&mut stream, b"one")).await.unwrap();

    self_signed("a").write(dir.path(), &ca.pem);
    let unusable = certificates.read_again().unwrap_err();
    assert_eq!(unusable.role, FileRole::Certificate, "{unusable}");
    let (again, serving_again) = echo_once(&b);
    let mut later = soon(a.connect(again)).await.unwrap();
    soon(says(&mut later, b"two")).await.unwrap();

    next.issue_changed("a", |params| params.not_after = date_time_ymd(2900, 1, 1)).write(dir.path(), &next.pem);
    certificates.read_again().unwrap();
    soon(says(&mut stream, b"the connections that are open stay")).await.unwrap();
    drop((stream, later));
    assert!(
        soon(serving).await.unwrap().is_ok() && soon(serving_again).await.unwrap().is_ok(),
        "ends without a goodbye"
    );
}
