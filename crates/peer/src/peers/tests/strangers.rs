//! Peers without the secret, without manners, or with an identity that is taken.

use super::*;
use crate::handshake::{Handshake, UNPROVED_BYTES_MAX};
use crate::peers::establish::establish;
use ombak_runtime::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn impatient() -> PeersConfig {
    PeersConfig { connect_max: Duration::from_secs(1), ..PeersConfig::default() }
}

/// All that the node says until it closes the connection.
async fn said(stream: &mut TcpStream) -> usize {
    let mut said = Vec::new();
    // A reset ends the connection as well.
    let _read = soon(stream.read_to_end(&mut said)).await;
    said.len()
}

#[tokio::test]
async fn a_stranger_gets_nowhere() {
    let (one, address) = start(&Who::node(1), services(|_| {}), impatient(), any_port());
    let greeting = {
        let stranger = Who { secret: b"some other secret", ..Who::node(2) };
        Handshake::initiator(stranger.local(), None, Lane::Requests, [5; 32]).take_output()
    };
    let forged = [&greeting[..], &[32, 0, 1], &[0; 32]].concat();
    for (bytes, answer) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], 0),
        (&[0xff; 4000], 0),
        (&greeting[..30], 0),
        (&greeting[..], greeting.len()),
        (&forged[..], greeting.len()),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        assert_eq!(said(&mut stream).await, answer, "it answered {} bytes", bytes.len());
    }
    assert_eq!(forged.len(), UNPROVED_BYTES_MAX);
    until(|| one.inner.accepted.lock().counts() == (0, 0)).await;
}

#[tokio::test]
async fn idle_strangers_do_not_keep_nodes_out() {
    // Nobody is closed for slowness in this test.
    let config = PeersConfig { connect_max: PATIENCE * 2, unproved_max: 3, ..PeersConfig::default() };
    let (one, two_) = pair(config, |_| {});
    let address = two_.listen(any_port()).unwrap();
    let mut strangers = Vec::new();
    for number in 1..=5 {
        strangers.push(TcpStream::connect(address).await.unwrap());
        until(|| two_.inner.accepted.lock().counts().0 == number.min(3)).await;
    }
    assert_eq!(said(&mut strangers[0]).await, 0, "the oldest was closed");
    eventually(&one, two()).await;
    assert!(two_.inner.accepted.lock().counts().0 <= 3);
}

#[tokio::test]
async fn another_secret_is_as_good_as_no_node() {
    let (one, _) = start(&Who::node(1), services(|_| {}), PeersConfig::default(), any_port());
    let stranger = Who { secret: b"some other secret", ..Who::node(2) };
    let (_two, address) = start(&stranger, services(|_| {}), PeersConfig::default(), any_port());
    one.set_address(two(), address);
    assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![1]))).await, Err(PeerError::Unreachable));
    assert_eq!(one.live_session(two()), None);
}

#[tokio::test]
async fn an_address_of_another_node_is_not_used() {
    let (one, other) = pair(PeersConfig::default(), |_| {});
    let address = other.listen(any_port()).unwrap();
    one.set_address(NodeId::new(3), address);
    assert_eq!(soon(one.call(NodeId::new(3), outgoing(ECHO, vec![1]))).await, Err(PeerError::Unreachable));
    eventually(&one, two()).await;
}

#[tokio::test]
async fn a_program_of_another_version_is_told_apart() {
    let (one, _) = start(&Who::node(1), services(|_| {}), PeersConfig::default(), any_port());
    let listener = TcpListener::bind(any_port()).await.unwrap();
    one.set_address(two(), listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 48];
        stream.read_exact(&mut greeting).await.unwrap();
        // A responder that speaks the versions 8 to 9.
        (greeting[9], greeting[12], greeting[14]) = (2, 8, 9);
        stream.write_all(&greeting).await.unwrap();
        let _closed = stream.read_to_end(&mut Vec::new()).await;
    });
    let response = soon(one.call(two(), outgoing(ECHO, vec![1]))).await;
    assert_eq!(response, Err(PeerError::VersionMismatch));
}

#[tokio::test]
async fn the_older_of_two_processes_with_one_id_stays() {
    let (one, address) = start(&Who::node(1), services(|_| {}), PeersConfig::default(), any_port());
    let node = |session| {
        let (peers, _) = start(&Who { session, ..Who::node(2) }, services(|_| {}), PeersConfig::default(), any_port());
        peers.set_address(NodeId::new(1), address);
        peers
    };
    let (older, copy) = (node(10), node(11));
    eventually(&older, NodeId::new(1)).await;
    let refused = soon(copy.call(NodeId::new(1), outgoing(ECHO, vec![1]))).await;
    assert_eq!(refused, Err(PeerError::Unreachable));
    assert_eq!(one.live_session(two()).unwrap().session, 10);
    eventually(&older, NodeId::new(1)).await;
    older.stop();
    eventually(&copy, NodeId::new(1)).await;
    assert_eq!(one.live_session(two()).unwrap().session, 11);
}

/// Runs a real handshake as node 2 and returns the stream, on which nothing answers afterwards.
async fn mute_peer(address: SocketAddr) -> Box<dyn Stream> {
    let (two, _) = start(&Who::node(2), services(|_| {}), PeersConfig::default(), any_port());
    let stream: Box<dyn Stream> = Box::new(TcpStream::connect(address).await.unwrap());
    let handshake = Handshake::initiator(Who::node(2).local(), None, Lane::Requests, [6; 32]);
    establish(stream, handshake, &two.inner.sessions, &two.inner.clock).await.unwrap().stream
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_given_up() {
    let mut config = PeersConfig::default();
    (config.mux.ping_interval_us, config.mux.silence_max_us) = (20_000, 100_000);
    let (one, address) = start(&Who::node(1), services(|_| {}), config, any_port());
    let mut stream = mute_peer(address).await;
    // It pings, and then it closes with a goodbye.
    let mut said = Vec::new();
    soon(stream.read_to_end(&mut said)).await.unwrap();
    assert!(said.windows(10).any(|part| part == b"was silent"), "{said:?}");
    until(|| one.inner.accepted.lock().counts().1 == 0).await;
    assert_eq!(one.live_session(two()), None);
}

#[tokio::test]
async fn a_peer_that_sends_no_frames_is_cut_off() {
    let (one, address) = start(&Who::node(1), services(|_| {}), PeersConfig::default(), any_port());
    let mut stream = mute_peer(address).await;
    until(|| one.inner.accepted.lock().counts().1 == 1).await;
    stream.write_all(&[0xff; 100]).await.unwrap();
    let _read = soon(stream.read_to_end(&mut Vec::new())).await;
    until(|| one.inner.accepted.lock().counts().1 == 0).await;
}

#[tokio::test]
async fn a_second_connection_of_a_lane_takes_the_place_of_the_first() {
    let (one, address) = start(&Who::node(1), services(|_| {}), PeersConfig::default(), any_port());
    let mut first = mute_peer(address).await;
    until(|| one.inner.accepted.lock().counts().1 == 1).await;
    let _second = mute_peer(address).await;
    let mut said = Vec::new();
    let _read = soon(first.read_to_end(&mut said)).await;
    assert!(said.windows(18).any(|part| part == b"another connection"), "{said:?}");
    assert_eq!(one.inner.accepted.lock().counts().1, 1);
}

#[tokio::test]
async fn a_node_that_is_known_by_its_address_says_who_it_is_to_those_who_know_the_secret() {
    let (one, _) = start(&Who::node(1), services(|_| {}), impatient(), any_port());
    let (_two, address) = start(&Who::node(2), services(|_| {}), impatient(), any_port());
    let deadline = Instant::now() + PATIENCE;
    assert_eq!(one.identify(address, deadline).await.unwrap().node, two());
    let stranger = Who { secret: b"some other secret", ..Who::node(3) };
    let (stranger, _) = start(&stranger, services(|_| {}), impatient(), any_port());
    let refused = stranger.identify(address, deadline).await.unwrap_err();
    assert!(matches!(refused, IdentifyError::Handshake(_)), "{refused}");
    let nobody = stranger.identify("127.0.0.1:1".parse().unwrap(), deadline).await.unwrap_err();
    assert!(matches!(nobody, IdentifyError::Unreachable(_)), "{nobody}");
}
