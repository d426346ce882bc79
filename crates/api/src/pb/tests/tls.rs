//! Connections with TLS: from their beginning, or after a client has asked for it.

use super::*;
use super::{access, index, limits, listings, messages, objects};
use crate::access::{NotedAccesses, Proof};
use crate::client_stream::test_tls::{CLIENT, client_tls, connect, connect_with_certificate, over_tls, within};
use ombak_proto::messages::{RpbContent, RpbGetClientIdResp, RpbGetReq, RpbPutReq, RpbSetClientIdReq};
use tokio_rustls::client::TlsStream;

/// Clients write records as a whole.
const WHOLE: usize = usize::MAX;
/// Clients write a few bytes at a time, so that no record comes whole.
const SMALL_BYTES: usize = 5;

#[test]
fn objects_are_stored_and_read_over_tls() {
    let tests: [fn(); 4] = [
        objects::siblings_tombstones_and_clocks,
        objects::pipelined_requests_are_answered_in_order_and_see_what_came_before_them,
        objects::refusals_have_riaks_words_and_leave_the_connection_open,
        objects::values_larger_than_any_buffer_come_back_whole,
    ];
    over_tls(WHOLE, &tests);
    over_tls(SMALL_BYTES, &tests[..1]);
}

#[test]
fn listings_queries_and_properties_are_the_same_over_tls() {
    let tests: [fn(); 5] = [
        listings::keys_are_streamed_each_once,
        listings::a_listing_ends_with_its_client,
        index::exact_and_range_queries_find_what_matches_in_order,
        index::a_query_ends_with_its_client,
        messages::bucket_properties_are_read_set_and_reset,
    ];
    over_tls(WHOLE, &tests);
}

#[test]
fn the_limits_hold_over_tls() {
    let tests: [fn(); 5] = [
        limits::a_frame_beyond_the_limit_is_refused_before_it_has_come,
        limits::a_frame_that_does_not_finish_ends_the_connection_and_idling_does_not,
        limits::a_peer_that_does_not_take_its_answers_is_cut_off,
        limits::stopping_does_not_wait_for_a_peer_that_takes_nothing,
        access::the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer,
    ];
    over_tls(WHOLE, &tests);
}

/// A node whose clients may ask for TLS, with a policy that notes what it is asked.
async fn with_start_tls() -> (Node, Arc<NotedAccesses>) {
    let policy = Arc::new(NotedAccesses::default());
    let (start_tls, noted) = (Some(client_tls()), Some(policy.clone() as Arc<dyn crate::AccessPolicy>));
    (Node::with(PbConfig { start_tls, policy: noted, ..PbConfig::default() }).await, policy)
}

fn start_tls() -> Vec<u8> {
    let mut out = Vec::new();
    write_empty(code::START_TLS, &mut out);
    out
}

fn get(key: &'static str) -> RpbGetReq {
    RpbGetReq { bucket: Some("b".into()), key: Some(key.into()), ..RpbGetReq::default() }
}

/// Sends a frame over TLS and returns the answer to it.
async fn ask(stream: &mut TlsStream<impl AsyncReadExt + AsyncWriteExt + Unpin>, request: &[u8]) -> Frame {
    stream.write_all(request).await.unwrap();
    stream.flush().await.unwrap();
    let mut inbox = BytesMut::new();
    loop {
        if let Some(frame) = next_frame(&mut inbox, usize::MAX).unwrap() {
            return frame;
        }
        assert!(timeout(PATIENCE, stream.read_buf(&mut inbox)).await.expect("an answer in time").unwrap() > 0);
    }
}

#[tokio::test]
async fn a_client_that_asks_for_tls_goes_on_with_it() {
    let (node, policy) = with_start_tls().await;
    let mut wire = node.connect().await;
    let content = Some(RpbContent { value: "v".into(), ..RpbContent::default() });
    let put = RpbPutReq { bucket: Some("b".into()), key: Some("k".into()), content, ..RpbPutReq::default() };
    wire.send(code::PUT_REQ, &put).await;
    wire.expect_empty(code::PUT_RESP).await;
    let session = policy.take_session().expect("the put was asked about");
    let peer = wire.stream.local_addr().unwrap();
    assert_eq!((session.is_encrypted, &session.proof, session.peer), (false, &Proof::Nothing, peer));
    assert_eq!(&*session.listener, LISTENER);
    wire.send_bytes(&start_tls()).await;
    wire.expect_empty(code::START_TLS).await;
    let mut secured = connect_with_certificate(wire.stream).await.unwrap();
    let mut request = Vec::new();
    write_message(code::GET_REQ, &get("k"), &mut request);
    assert_eq!(ask(&mut secured, &request).await.code, code::GET_RESP);
    let session = policy.take_session().expect("the get was asked about");
    assert_eq!((session.is_encrypted, session.peer), (true, peer));
    assert_eq!(session.proof, Proof::Certificate { name: CLIENT.into() });
    // TLS begins once.
    let again = ask(&mut secured, &start_tls()).await;
    assert_eq!(error_text(&again).as_deref(), Some("Security not enabled; STARTTLS not allowed."));
    assert_eq!(node.connections(), 1);
    drop(secured);
    until("the connection has gone", async || node.connections() == 0).await;
}

/// Somebody between the client and the node could put requests behind that for TLS.
#[tokio::test]
async fn what_was_sent_before_the_handshake_is_not_served() {
    let (node, policy) = with_start_tls().await;
    let mut wire = node.connect().await;
    let mut both = start_tls();
    write_message(code::GET_REQ, &get("k"), &mut both);
    wire.send_bytes(&both).await;
    wire.expect_empty(code::START_TLS).await;
    assert_eq!(wire.frame().await, None);
    assert!(policy.take().is_empty());
    // The same holds for the beginning of a frame.
    let mut wire = node.connect().await;
    wire.send_bytes(&[&start_tls()[..], &[0, 0]].concat()).await;
    wire.expect_empty(code::START_TLS).await;
    assert_eq!(wire.frame().await, None);
}

/// Somebody between the client and the node could have set it.
#[tokio::test]
async fn what_was_set_before_the_handshake_is_forgotten() {
    let (node, _) = with_start_tls().await;
    let mut wire = node.connect().await;
    wire.send(code::SET_CLIENT_ID_REQ, &RpbSetClientIdReq { client_id: "abcd".into() }).await;
    wire.expect_empty(code::SET_CLIENT_ID_RESP).await;
    wire.send_bytes(&start_tls()).await;
    wire.expect_empty(code::START_TLS).await;
    let mut secured = connect(wire.stream).await.unwrap();
    let mut request = Vec::new();
    write_empty(code::GET_CLIENT_ID_REQ, &mut request);
    let answer = ask(&mut secured, &request).await;
    assert_eq!(answer.code, code::GET_CLIENT_ID_RESP);
    let id: RpbGetClientIdResp = lenient::decode(&answer.body).unwrap();
    assert_eq!(&id.client_id[..], [0; 4]);
}

#[tokio::test]
async fn a_handshake_that_never_ends_gives_its_place_back() {
    let start_tls_soon = Some(within(Duration::from_millis(50)));
    let node = Node::with(PbConfig { start_tls: start_tls_soon, ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    wire.send_bytes(&start_tls()).await;
    wire.expect_empty(code::START_TLS).await;
    assert_eq!(wire.frame().await, None, "no handshake follows");
    until("the connection has gone", async || node.connections() == 0).await;
}

#[tokio::test]
async fn a_client_without_a_certificate_proves_nothing() {
    let (node, policy) = with_start_tls().await;
    let mut wire = node.connect().await;
    wire.send_bytes(&start_tls()).await;
    wire.expect_empty(code::START_TLS).await;
    let mut secured = connect(wire.stream).await.unwrap();
    let mut request = Vec::new();
    write_message(code::GET_REQ, &get("none"), &mut request);
    assert_eq!(ask(&mut secured, &request).await.code, code::GET_RESP);
    let session = policy.take_session().expect("the get was asked about");
    assert_eq!((session.is_encrypted, session.proof), (true, Proof::Nothing));
}
