//! Versions, ciphers, and what attackers do to a handshake.

use super::*;
use crate::clients::ciphers::CipherError;
use rustls::{HandshakeKind, ProtocolVersion};
use std::io::Write;
use std::process::{Command, Stdio};

const NEITHER: Versions = Versions { tls12: false, tls13: false };

#[tokio::test]
async fn clients_of_both_versions_connect_and_each_version_can_be_off() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca);
    for (version, negotiated) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let (ours, _) = connect(&node, Client::trusting(&ca.pem).speaking(&[version])).await.unwrap();
        assert_eq!(ours.get_ref().1.protocol_version(), Some(negotiated));
    }
    let (ours, _) = connect(&node, Client::trusting(&ca.pem)).await.unwrap();
    assert_eq!(ours.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let only_13 = Node::of(&ca).speaking(Versions { tls13: true, ..NEITHER });
    let refused = connect(&only_13, Client::trusting(&ca.pem).speaking(&[&TLS12])).await;
    assert_refused(refused, "the client offers no version of TLS that is on");
    let only_12 = Node::of(&ca).speaking(Versions { tls12: true, ..NEITHER });
    let refused = connect(&only_12, Client::trusting(&ca.pem).speaking(&[&TLS13])).await;
    assert_refused(refused, "the client offers no version of TLS that is on");
    let (ours, _) = connect(&only_12, Client::trusting(&ca.pem)).await.unwrap();
    assert_eq!(ours.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

/// The first message of a client that speaks this version and nothing newer.
fn old_hello(minor: u8) -> Vec<u8> {
    let mut body = vec![3, minor];
    body.extend([7; 32]);
    // No session, two suites that were usual, no compression.
    body.extend([0, 0, 4, 0xc0, 0x14, 0, 0x35, 1, 0]);
    let mut hello = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    hello.extend(body);
    let mut record = vec![22, 3, 1, 0, u8::try_from(hello.len()).unwrap()];
    record.extend(hello);
    record
}

#[tokio::test]
async fn clients_of_versions_that_rustls_lacks_get_an_alert() {
    let ca = TestAuthority::new("ca");
    let config = Node::of(&ca).read().current();
    for minor in [0, 1, 2] {
        let (ours, mut theirs) = sockets().await;
        theirs.write_all(&old_hello(minor)).await.unwrap();
        let refused = soon(TlsAcceptor::from(Arc::clone(&config)).accept(ours)).await.unwrap_err();
        let refused = crate::clients::explain(refused).to_string();
        assert!(refused.contains("the client offers no version of TLS that is on"), "{refused}");
        let mut told = Vec::new();
        soon(theirs.read_to_end(&mut told)).await.ok();
        // An alert that ends the connection.
        assert_eq!((told[0], told[5]), (21, 2), "{told:?}");
    }
}

/// Somebody in between takes TLS 1.3 out of what the client offers.
#[tokio::test]
async fn a_downgrade_is_noticed() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).read();
    let (ours, to_node) = sockets().await;
    let (from_client, theirs) = sockets().await;
    let between = async move {
        let (mut from_client, mut to_node) = (from_client, to_node);
        let mut header = [0; 5];
        from_client.read_exact(&mut header).await?;
        let mut hello = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        from_client.read_exact(&mut hello).await?;
        // The extension supported_versions with TLS 1.3 and 1.2.
        let offered = [0, 0x2b, 0, 5, 4, 3, 4, 3, 3];
        let at = hello.windows(offered.len()).position(|part| part == offered).expect("it is offered");
        hello[at + 6] = 1;
        to_node.write_all(&header).await?;
        to_node.write_all(&hello).await?;
        tokio::io::copy_bidirectional(&mut from_client, &mut to_node).await
    };
    let serving = async {
        let mut stream = TlsAcceptor::from(node.current()).accept(ours).await?;
        stream.read_exact(&mut [0]).await
    };
    let asking = async {
        let config = Arc::new(Client::trusting(&ca.pem).config());
        let connected = TlsConnector::from(config).connect(ServerName::try_from("localhost").unwrap(), theirs).await;
        connected.map(drop)
    };
    let (_, served, asked) = soon(async { tokio::join!(between, serving, asking) }).await;
    let why = asked.unwrap_err().to_string();
    assert!(why.contains("AttemptedDowngradeToTls12WhenTls13IsSupported"), "{why}");
    assert!(served.is_err());
}

#[tokio::test]
async fn the_order_of_the_client_counts_unless_the_node_honors_its_own() {
    let ca = TestAuthority::new("ca");
    let (first, second) = ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384");
    for honors_own_order in [false, true] {
        let mut node = Node::of(&ca).speaking(Versions { tls12: true, ..NEITHER });
        node.settings.honors_own_order = honors_own_order;
        let certificates = node.read();
        certificates.set_ciphers(Some(&format!("{second}:{first}"))).unwrap();
        let client = Client::trusting(&ca.pem).with_suites(&format!("{first}:{second}"));
        let (ours, _) = meet(certificates.current(), Arc::new(client.config())).await.unwrap();
        let used = ours.get_ref().1.negotiated_cipher_suite().unwrap();
        let expected = if honors_own_order { second } else { first };
        assert_eq!(vec![used], crate::clients::ciphers::supported(expected));
    }
}

#[tokio::test]
async fn ciphers_change_for_new_connections_and_lists_that_fit_nothing_change_nothing() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).speaking(Versions { tls12: true, ..NEITHER });
    let certificates = node.read();
    let with = |list: &str| Arc::new(Client::trusting(&ca.pem).with_suites(list).config());
    let (allowed, other) = ("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256");
    certificates.set_ciphers(Some(&format!("DHE-RSA-AES256-SHA:{allowed}"))).unwrap();
    for _ in 0..2 {
        meet(certificates.current(), with(allowed)).await.unwrap();
        let refused = meet(certificates.current(), with(other)).await;
        assert_refused(refused, "the client has no cipher that this node allows");
        assert_eq!(certificates.set_ciphers(Some("AES128-SHA:FOO")), Err(CipherError::NoneSupported));
        // The node's key is one of ECDSA.
        for unfit in ["ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256"] {
            let error = certificates.set_ciphers(Some(unfit)).unwrap_err();
            assert!(matches!(&error, CipherError::NoneFits { fitting } if fitting.contains(allowed)), "{error}");
        }
    }
    // Files that are read again leave the list as it is.
    certificates.read_again().unwrap();
    assert!(meet(certificates.current(), with(other)).await.is_err());
    certificates.set_ciphers(None).unwrap();
    meet(certificates.current(), with(other)).await.unwrap();
}

/// With resumption, a client could come back after its certificate was revoked.
#[tokio::test]
async fn each_connection_proves_itself_anew() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).trusting(&ca.pem).revoking(&ca.revoking(&[], 2900)).read();
    for version in [&TLS12, &TLS13] {
        let client = Client::trusting(&ca.pem).speaking(&[version]).showing(&ca.issue("alice"));
        let config = Arc::new(client.config());
        for _ in 0..3 {
            let (ours, theirs) = meet(node.current(), Arc::clone(&config)).await.unwrap();
            assert_eq!(theirs.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
            assert_eq!(theirs.get_ref().1.tls13_tickets_received(), 0);
            assert_eq!(ours.get_ref().1.peer_certificates().map(<[_]>::len), Some(1));
        }
    }
}

/// A message of a handshake has at most 64 KiB.
#[tokio::test]
async fn huge_chains_end_the_handshake() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).trusting(&ca.pem).without_revocation();
    for (count, is_accepted) in [(20, true), (300, false)] {
        let mut issued = ca.issue("alice");
        issued.chain.push_str(&ca.pem.repeat(count));
        let outcome = connect(&node, Client::trusting(&ca.pem).showing(&issued)).await;
        if is_accepted {
            outcome.unwrap();
        } else {
            assert_refused(outcome, "HandshakePayloadTooLarge");
        }
    }
}

/// A client of openssl asks for a new handshake within a connection of TLS 1.2.
#[tokio::test]
async fn renegotiation_is_refused() {
    if Command::new("openssl").arg("version").output().is_err() {
        return;
    }
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).read();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut openssl = Command::new("openssl")
        .args(["s_client", "-connect", &address, "-tls1_2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let serving = async {
        let mut stream = TlsAcceptor::from(node.current()).accept(listener.accept().await?.0).await?;
        openssl.stdin.as_mut().unwrap().write_all(b"R\n")?;
        // The refusal leaves the node with the next bytes that it writes.
        loop {
            match tokio::time::timeout(Duration::from_millis(20), stream.read(&mut [0; 16])).await {
                Ok(read) => break read,
                Err(_) => stream.flush().await?,
            }
        }
    };
    let served = soon(serving).await;
    drop(openssl.stdin.take());
    let said = tokio::task::spawn_blocking(move || openssl.wait_with_output().unwrap());
    let said = String::from_utf8_lossy(&soon(said).await.unwrap().stderr).into_owned();
    assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
    assert!(!matches!(served, Ok(1..)), "{served:?}");
}

/// The versions that clients may use are none of nodes.
#[tokio::test]
async fn nodes_talk_to_each_other_with_tls_1_3_only() {
    let ca = TestAuthority::new("ca");
    let dir = tempfile::tempdir().unwrap();
    let issued = ca.issue_for_host("localhost");
    let certificates = crate::Certificates::read(issued.write(dir.path(), &ca.pem)).unwrap();
    let current = certificates.current();
    let older = Client::trusting(&ca.pem).speaking(&[&TLS12]).showing(&issued);
    let refused = meet(Arc::clone(&current.server), Arc::new(older.config())).await;
    assert_refused(refused, "the client offers no version of TLS that is on");
    let newer = Client::trusting(&ca.pem).speaking(&[&TLS13]).showing(&issued);
    meet(Arc::clone(&current.server), Arc::new(newer.config())).await.unwrap();
    let only_12 = Node::new(&issued).speaking(Versions { tls12: true, ..NEITHER }).read();
    let refused = meet(only_12.current(), Arc::clone(&current.client)).await;
    assert_refused(refused, "the client offers no version of TLS that is on");
}
