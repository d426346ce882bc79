//! Nodes whose connections are encrypted, and strangers at their ports.

use super::*;
use crate::handshake::HandshakeError;
use crate::handshake::Secret;
use ombak_tls::test_authority::{Issued, TestAuthority, self_signed};
use ombak_tls::{Certificates, TlsNetwork};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A node with a certificate.
struct Secured {
    peers: Peers,
    address: SocketAddr,
    certificates: Arc<Certificates>,
    dir: tempfile::TempDir,
}

impl Secured {
    fn start(number: u64, issued: &Issued, authorities: &str, config: PeersConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let certificates = Arc::new(Certificates::read(issued.write(dir.path(), authorities)).unwrap());
        let network = TlsNetwork::new(Arc::new(TcpNetwork::default()), Arc::clone(&certificates));
        let parts: (Arc<dyn Runtime>, Arc<dyn Network>) = (Arc::new(TokioRuntime), Arc::new(network));
        let (peers, address) = start_in(parts, &Who::node(number), services(|_| {}), config, any_port());
        Self { peers, address, certificates, dir }
    }

    fn rotate(&self, issued: &Issued, authorities: &str) {
        issued.write(self.dir.path(), authorities);
        self.certificates.read_again().unwrap();
    }
}

fn impatient() -> PeersConfig {
    PeersConfig { connect_max: Duration::from_secs(1), ..PeersConfig::default() }
}

/// What a node that knows an address only is told.
async fn asks(peers: &Peers, address: SocketAddr) -> Result<u64, String> {
    let asked = soon(peers.identify(address, Instant::now() + PATIENCE)).await;
    asked.map(|identity| identity.node.get()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn nodes_with_certificates_of_one_authority_serve_each_other() {
    let ca = TestAuthority::new("ca");
    let one = Secured::start(1, &ca.issue("one"), &ca.pem, PeersConfig::default());
    let other = Secured::start(2, &ca.issue("two"), &ca.pem, PeersConfig::default());
    one.peers.set_address(two(), other.address);
    other.peers.set_address(NodeId::new(1), one.address);
    for bytes in [0, 1, 65_536, 20_000_000] {
        let body = bytes::Bytes::from(vec![3; bytes]);
        let (there, back) = tokio::join!(
            soon(one.peers.call(two(), outgoing(ECHO, body.clone()))),
            soon(other.peers.call(NodeId::new(1), outgoing(ECHO, body.clone()))),
        );
        assert_eq!((there, back), (Ok(body.clone()), Ok(body)));
    }
    let calls = (0..300u32).map(|number| one.peers.call(two(), outgoing(ECHO, number.to_le_bytes().to_vec())));
    for answer in soon(futures_util::future::join_all(calls)).await {
        assert_eq!(answer.unwrap().len(), 4);
    }
    assert_eq!(asks(&one.peers, other.address).await, Ok(2));
    other.peers.stop();
    until(|| one.peers.live_session(two()).is_none()).await;
}

#[tokio::test]
async fn strangers_get_nowhere_and_learn_nothing_from_the_node() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("other"));
    let node = Secured::start(1, &ca.issue("one"), &ca.pem, impatient());
    let stranger = |issued: &Issued, trusted: &str| Secured::start(2, issued, trusted, impatient());
    // Each of them knows the secret of the cluster, and trusts the node.
    let own = self_signed("two");
    let both = format!("{}{}", own.chain, ca.pem);
    for (stranger, expected) in [
        (stranger(&own, &both), "refused the certificate of this node"),
        (stranger(&other.issue("two"), &format!("{}{}", other.pem, ca.pem)), "refused the certificate of this node"),
        (stranger(&other.issue("two"), &other.pem), "certificate of the other side does not come from an authority"),
    ] {
        let told = asks(&stranger.peers, node.address).await.unwrap_err();
        assert!(told.contains(expected), "{told}");
        let told = asks(&node.peers, stranger.address).await.unwrap_err();
        assert!(told.contains("certificate"), "{told}");
        assert_eq!(node.peers.live_session(two()), None);
    }
    // A node without a certificate, in both directions.
    let (plain, plain_address) = start(&Who::node(2), services(|_| {}), impatient(), any_port());
    let told = asks(&plain, node.address).await.unwrap_err();
    assert!(told.contains("the other side speaks TLS, and this node has no certificate"), "{told}");
    let told = asks(&node.peers, plain_address).await.unwrap_err();
    assert!(told.contains("it may be configured without TLS"), "{told}");
    // Others hear at most an alert of TLS, which has seven bytes.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4000], &[0x16, 3, 1, 0xff, 0xff, 1]] {
        let mut stream = TcpStream::connect(node.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut said = Vec::new();
        let _read = soon(stream.read_to_end(&mut said)).await;
        assert!(said.len() <= 7, "it answered {said:?}");
    }
    until(|| node.peers.inner.accepted.lock().counts() == (0, 0)).await;
}

#[tokio::test]
async fn strangers_that_dawdle_are_ended_in_time_and_keep_nobody_out() {
    let ca = TestAuthority::new("ca");
    let config = PeersConfig { connect_max: PATIENCE * 2, unproved_max: 3, ..PeersConfig::default() };
    let node = Secured::start(1, &ca.issue("one"), &ca.pem, config);
    let mut strangers = Vec::new();
    for number in 1..=5 {
        let mut stranger = TcpStream::connect(node.address).await.unwrap();
        // The start of a handshake whose rest never comes.
        stranger.write_all(&[0x16, 3, 1, 1, 0, 1]).await.unwrap();
        strangers.push(stranger);
        until(|| node.peers.inner.accepted.lock().counts().0 == number.min(3)).await;
    }
    let mut said = Vec::new();
    let _read = soon(strangers[0].read_to_end(&mut said)).await;
    assert_eq!(said, b"", "the oldest was closed");
    let friend = Secured::start(2, &ca.issue("two"), &ca.pem, PeersConfig::default());
    friend.peers.set_address(NodeId::new(1), node.address);
    eventually(&friend.peers, NodeId::new(1)).await;

    let strict = Secured::start(3, &ca.issue("three"), &ca.pem, impatient());
    let mut dawdling = TcpStream::connect(strict.address).await.unwrap();
    dawdling.write_all(&[0x16, 3, 1, 1, 0, 1]).await.unwrap();
    let _read = soon(dawdling.read_to_end(&mut said)).await;
    until(|| strict.peers.inner.accepted.lock().counts() == (0, 0)).await;
}

#[tokio::test]
async fn certificates_are_replaced_while_requests_run() {
    let (ca, next) = (TestAuthority::new("ca"), TestAuthority::new("next"));
    let both = format!("{}{}", ca.pem, next.pem);
    let one = Secured::start(1, &ca.issue("one"), &ca.pem, PeersConfig::default());
    let other = Secured::start(2, &ca.issue("two"), &ca.pem, PeersConfig::default());
    one.peers.set_address(two(), other.address);
    eventually(&one.peers, two()).await;
    let requests = async {
        for number in 0..200u32 {
            let answer = soon(one.peers.call(two(), outgoing(ECHO, vec![5; 50_000]))).await;
            assert_eq!(answer.map(|body| body.len()), Ok(50_000), "request {number}");
        }
    };
    let rotation = async {
        one.rotate(&ca.issue("one"), &both);
        other.rotate(&ca.issue("two"), &both);
        tokio::task::yield_now().await;
        one.rotate(&next.issue("one"), &both);
        tokio::task::yield_now().await;
        other.rotate(&next.issue("two"), &both);
        tokio::task::yield_now().await;
        one.rotate(&next.issue("one"), &next.pem);
        other.rotate(&next.issue("two"), &next.pem);
    };
    tokio::join!(requests, rotation);
    assert_eq!(one.peers.counts()[&two()].connections, 1, "the connection stays");
    // A connection from now on proves itself anew.
    let bulk = Outgoing { lane: Lane::Bulk, ..outgoing(ECHO, vec![1]) };
    assert!(soon(one.peers.call(two(), bulk)).await.is_ok());
    let late = Secured::start(3, &ca.issue("three"), &both, impatient());
    let told = asks(&late.peers, one.address).await.unwrap_err();
    assert!(told.contains("refused the certificate of this node"), "{told}");
}

#[tokio::test]
async fn a_secret_is_proved_beside_the_certificates_if_there_is_one() {
    let ca = TestAuthority::new("ca");
    let node = |number: u64, secret: Option<Secret>| {
        let dir = tempfile::tempdir().unwrap();
        let issued = ca.issue("a node");
        let certificates = Arc::new(Certificates::read(issued.write(dir.path(), &ca.pem)).unwrap());
        let mut local = Who::node(number).local();
        local.secret = secret.unwrap_or_else(Secret::known_to_everybody);
        let peers = Peers::new(PeersParts {
            runtime: Arc::new(TokioRuntime),
            network: Arc::new(TlsNetwork::new(Arc::new(TcpNetwork::default()), certificates)),
            local,
            services: services(|_| {}),
            admission: Arc::new(KeepOlderSession),
            config: impatient(),
        });
        let peers = peers.unwrap();
        let address = peers.listen(any_port()).unwrap();
        (peers, address)
    };
    let with_secret = |number| node(number, Some(Secret::new(SECRET).unwrap()));
    let ((one, at_one), (second, _), (without, _), (without_too, at_without)) =
        (with_secret(1), with_secret(2), node(3, None), node(4, None));
    assert_eq!(asks(&second, at_one).await, Ok(1));
    assert_eq!(asks(&without, at_without).await, Ok(4));
    assert_eq!(asks(&without, at_one).await.unwrap_err(), HandshakeError::ClosedAfterProof.to_string());
    assert_eq!(asks(&one, at_without).await.unwrap_err(), HandshakeError::ClosedAfterProof.to_string());
    drop(without_too);
}
