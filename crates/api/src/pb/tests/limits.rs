//! Peers that are slow, greedy or numerous, or that send arbitrary bytes.

use super::*;
use ombak_proto::messages::{RpbContent, RpbGetReq, RpbPutReq};
use proptest::prelude::*;

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_frame_of_length_zero_ends_the_connection() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.send_bytes(&[0, 0, 0, 0]).await;
    assert_eq!(wire.frame().await, None);
}

#[tokio::test]
pub(super) async fn a_frame_beyond_the_limit_is_refused_before_it_has_come() {
    let node = Node::with(PbConfig { frame_bytes_max: 1 << 20, ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    let mut out = Vec::new();
    write_empty(code::PING_REQ, &mut out);
    out.extend_from_slice(&(2u32 << 20).to_be_bytes());
    wire.send_bytes(&out).await;
    wire.expect_empty(code::PING_RESP).await;
    let text = wire.expect_error().await;
    assert!(text.contains("2097152") && text.contains("1048576"), "{text}");
    assert_eq!(wire.frame().await, None);
}

#[tokio::test]
pub(super) async fn a_frame_that_does_not_finish_ends_the_connection_and_idling_does_not() {
    let node = Node::with(PbConfig { frame_timeout: SHORT, ..PbConfig::default() }).await;
    let mut idle = node.connect().await;
    idle.ping().await;
    let mut slow = node.connect().await;
    slow.send_bytes(&[0, 0, 0]).await;
    assert_eq!(slow.frame().await, None);
    let mut dripping = node.connect().await;
    dripping.send_bytes(&[0, 0, 1, 0]).await;
    let dripped = timeout(PATIENCE, async {
        // Each byte arrives in time, but the frame as a whole does not.
        while dripping.stream.write_all(&[1]).await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    dripped.await.expect("the server closes the connection");
    idle.ping().await;
}

/// A peer that has asked for more answers than fit into the buffers of its connection.
async fn unread_answers(node: &Node) -> Wire {
    let mut wire = node.connect().await;
    let content = RpbContent { value: vec![7; 1 << 20].into(), ..RpbContent::default() };
    let put =
        RpbPutReq { bucket: Some("b".into()), key: Some("k".into()), content: Some(content), ..RpbPutReq::default() };
    wire.send(code::PUT_REQ, &put).await;
    wire.expect_empty(code::PUT_RESP).await;
    let mut out = Vec::new();
    for _ in 0..200 {
        let get = RpbGetReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbGetReq::default() };
        write_message(code::GET_REQ, &get, &mut out);
    }
    wire.send_bytes(&out).await;
    wire
}

#[tokio::test]
pub(super) async fn a_peer_that_does_not_take_its_answers_is_cut_off() {
    let node = Node::with(PbConfig { write_timeout: SHORT, ..PbConfig::default() }).await;
    let _wire = unread_answers(&node).await;
    until("the connection has gone", async || node.connections() == 0).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so() {
    let node = Node::with(PbConfig { connections_max: 2, ..PbConfig::default() }).await;
    let (mut first, mut second) = (node.connect().await, node.connect().await);
    first.ping().await;
    second.ping().await;
    let mut third = node.connect().await;
    assert!(third.expect_error().await.starts_with("overload"));
    assert_eq!(third.frame().await, None);
    drop(first);
    until("there is room again", async || {
        let mut wire = node.connect().await;
        let mut out = Vec::new();
        write_empty(code::PING_REQ, &mut out);
        wire.stream.write_all(&out).await.is_ok() && wire.frame().await.is_some_and(|f| f.code == code::PING_RESP)
    })
    .await;
    second.ping().await;
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_the_port() {
    let node = Node::start().await;
    let mut idle = node.connect().await;
    idle.ping().await;
    let mut half = node.connect().await;
    half.send_bytes(&[0, 0]).await;
    node.stop.send(true).unwrap();
    timeout(PATIENCE, node.served).await.expect("it stops in time").unwrap();
    assert_eq!((idle.frame().await, half.frame().await), (None, None));
    assert!(TcpStream::connect(node.address).await.is_err());
}

#[tokio::test]
pub(super) async fn stopping_does_not_wait_for_a_peer_that_takes_nothing() {
    let patient = Duration::from_secs(600);
    let config = PbConfig { write_timeout: patient, drain_timeout: patient, ..PbConfig::default() };
    let node = Node::with(config).await;
    let wire = unread_answers(&node).await;
    timeout(PATIENCE, wire.stream.readable()).await.expect("the answers begin").unwrap();
    node.stop.send(true).unwrap();
    timeout(PATIENCE, node.served).await.expect("it stops in time").unwrap();
}

#[tokio::test]
async fn requests_in_pieces_of_any_size_are_understood() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.stream.set_nodelay(true).unwrap();
    let mut out = Vec::new();
    for _ in 0..20 {
        write_empty(code::GET_SERVER_INFO_REQ, &mut out);
    }
    for piece in out.chunks(3) {
        wire.send_bytes(piece).await;
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        let frame = wire.frame().await.unwrap();
        assert_eq!(frame.code, code::GET_SERVER_INFO_RESP);
    }
}

/// Frames that are likely to be decoded in part: real codes, and bodies that begin as real messages
/// do.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec(prop_oneof![any::<u8>(), 0u8..32, Just(0x0a), Just(0x12)], 0..60);
    let frame = (0u8..=255, body, -2i64..=2).prop_map(|(code, body, lie)| {
        let length = (body.len() as i64 + 1 + lie).max(0) as u32;
        [&length.to_be_bytes()[..], &[code], &body].concat()
    });
    prop::collection::vec(frame, 1..12).prop_map(|frames| frames.concat())
}

#[test]
fn whatever_is_sent_the_node_lives_and_serves_others() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = PbConfig { frame_timeout: SHORT, ..PbConfig::default() };
    let (node, honest) = runtime.block_on(async {
        let node = Node::with(config).await;
        let honest = tokio::sync::Mutex::new(node.connect().await);
        (node, honest)
    });
    proptest!(ProptestConfig::with_cases(200), |(bytes in hostile_bytes())| {
        runtime.block_on(async {
            let mut wire = node.connect().await;
            // The server may close the connection at any point. The test checks that it neither
            // hangs nor crashes.
            drop(wire.stream.write_all(&bytes).await);
            drop(wire.stream.shutdown().await);
            while let Some(frame) = wire.frame().await {
                assert!(frame.body.len() < 1 << 20);
            }
            honest.lock().await.ping().await;
        });
    });
}

#[tokio::test]
async fn a_client_that_sends_many_requests_at_once_does_not_delay_the_others_of_its_thread() {
    const REQUESTS: usize = 5_000;
    let node = Node::start().await;
    let get = RpbGetReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbGetReq::default() };
    let mut requests = Vec::new();
    (0..REQUESTS).for_each(|_| write_message(code::GET_REQ, &get, &mut requests));
    let mut greedy = node.send_on_this_thread(&requests).await;
    requests.clear();
    write_message(code::GET_REQ, &get, &mut requests);
    let mut modest = node.send_on_this_thread(&requests).await;
    modest.frame().await.expect("an answer");
    let answered = node.stat("node_gets_total");
    assert!(answered < REQUESTS as u64, "all {answered} requests of the other connection came first");
    for _ in 0..REQUESTS {
        greedy.frame().await.expect("every request is answered");
    }
}
