//! Connections with TLS.

use super::{DEADLINE, LISTENER, Server, access, data_types, index, limits, listings, objects, wire};
use crate::access::{NotedAccesses, Proof};
use crate::client_stream::ClientListener;
use crate::client_stream::test_tls::{CLIENT, connect, connect_with_certificate, over_tls, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Clients write records as a whole.
const WHOLE: usize = usize::MAX;
/// Clients write a few bytes at a time, so that no record comes whole.
const SMALL_BYTES: usize = 5;

const PING: &[u8] = b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn objects_are_stored_and_read_over_tls() {
    let tests: [fn(); 5] = [
        objects::an_object_lives_and_dies,
        objects::siblings_are_listed_shown_and_resolved,
        data_types::a_data_type_is_posted_and_read,
        wire::bodies_may_come_in_pieces,
        wire::older_clients_are_spoken_to_in_their_version,
    ];
    over_tls(WHOLE, &tests);
    over_tls(SMALL_BYTES, &tests[..1]);
}

#[test]
fn listings_and_queries_are_the_same_over_tls() {
    let tests: [fn(); 5] = [
        listings::keys_come_whole_or_as_a_stream,
        listings::a_listing_ends_with_its_client,
        index::a_large_answer_comes_whole,
        index::a_query_ends_with_its_client,
        index::a_client_that_sends_no_more_gets_a_long_answer,
    ];
    over_tls(WHOLE, &tests);
}

#[test]
fn the_limits_hold_over_tls() {
    let tests: [fn(); 8] = [
        limits::pipelined_requests_are_answered_in_order,
        limits::a_client_that_sends_no_more_gets_its_answer,
        limits::a_client_may_ask_before_it_sends,
        limits::large_heads_and_bodies_are_refused,
        limits::slow_clients_are_cut_off,
        limits::a_stopping_server_does_not_wait_for_a_client_that_takes_nothing,
        wire::a_refused_head_says_why,
        access::the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer,
    ];
    over_tls(WHOLE, &tests);
}

/// The address of one more listener of a server, which has TLS.
pub(super) async fn https(server: &Server, handshake_timeout: Duration) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    let listener = ClientListener::plain(socket, LISTENER).with_tls(within(handshake_timeout));
    tokio::spawn(crate::http::serve(listener, server.ctx.clone(), server.shutdown.subscribe()));
    address
}

async fn read_to_end(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut read = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut read)).await.expect("the server ends the connection").ok();
    read
}

#[tokio::test]
async fn the_policy_sees_who_the_client_is() {
    let policy = Arc::new(NotedAccesses::default());
    let server = Server::guarded(policy.clone()).await;
    server.get("/buckets/b/keys/k").await;
    let session = policy.take_session().expect("the get was asked about");
    assert_eq!((session.is_encrypted, session.proof, &*session.listener), (false, Proof::Nothing, LISTENER));
    let socket = TcpStream::connect(https(&server, DEADLINE).await).await.expect("a connection");
    let peer = socket.local_addr().expect("an address");
    let mut client = connect_with_certificate(socket).await.expect("TLS");
    let get = "GET /buckets/b/keys/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    client.write_all(get.as_bytes()).await.expect("sent");
    client.flush().await.expect("sent");
    assert!(read_to_end(&mut client).await.starts_with(b"HTTP/1.1 404"));
    let session = policy.take_session().expect("the get was asked about");
    assert_eq!((session.is_encrypted, session.peer), (true, peer));
    assert_eq!(session.proof, Proof::Certificate { name: CLIENT.into() });
}

#[tokio::test]
async fn a_client_without_tls_gets_no_answer_from_a_listener_with_it() {
    let server = Server::start().await;
    let mut plain = TcpStream::connect(https(&server, DEADLINE).await).await.expect("a connection");
    plain.write_all(PING).await.expect("sent");
    let read = read_to_end(&mut plain).await;
    assert!(!read.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&read));
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_cut_off_and_the_server_stops_in_spite_of_it() {
    let server = Server::start().await;
    let mut silent = TcpStream::connect(https(&server, Duration::from_millis(50)).await).await.expect("a connection");
    assert!(read_to_end(&mut silent).await.is_empty());
    let mut patient = TcpStream::connect(https(&server, 100 * DEADLINE).await).await.expect("a connection");
    server.shutdown.send_replace(true);
    assert!(read_to_end(&mut patient).await.is_empty());
}

/// Without the goodbye of TLS, a client cannot tell the end from a connection that was cut.
#[tokio::test]
async fn the_end_of_an_idle_connection_is_one_that_tls_vouches_for() {
    for server_stops in [true, false] {
        let server = Server::start().await;
        let socket = TcpStream::connect(https(&server, DEADLINE).await).await.expect("a connection");
        let mut client = connect(socket).await.expect("TLS");
        client.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        client.flush().await.expect("sent");
        let mut answer = vec![0_u8];
        timeout(DEADLINE, client.read_exact(&mut answer)).await.expect("in time").expect("an answer");
        if server_stops {
            server.shutdown.send_replace(true);
        } else {
            client.shutdown().await.expect("the sending side is closed");
        }
        timeout(DEADLINE, client.read_to_end(&mut answer)).await.expect("in time").expect("a whole answer and an end");
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"OK"));
    }
}
