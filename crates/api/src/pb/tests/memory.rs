//! Peers that make the node hold much memory and then stall.

use super::*;
use crate::memory::ALLOWANCE_BYTES;
use bytes::Bytes;
use ombak_proto::messages::{RpbContent, RpbGetReq, RpbGetResp, RpbMapRedReq, RpbPair, RpbPutReq};

const CLIENTS: usize = 50;
/// The number of clients that never read. The node makes an answer for one of them at a time.
const SILENT_CLIENTS: usize = 12;
const BUDGET_BYTES: u64 = 64 << 20;
/// The memory that each client tries to use. All clients together exceed the budget several times.
const CLIENT_BYTES: usize = 12 << 20;

async fn limited(bytes_max: u64) -> Node {
    let dir = tempfile::tempdir().unwrap();
    let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let mut kv_config = KvConfig::new("ombak@127.0.0.1", dir.path(), backend);
    kv_config.ring_size = 8;
    let limits = MemoryLimits { bytes_max, stalled_after: Duration::from_secs(1), wait_max: PATIENCE };
    Node::limited(kv_config, dir, PbConfig::default(), limits).await
}

fn put(key: &'static str, content: RpbContent) -> RpbPutReq {
    RpbPutReq { bucket: Some("b".into()), key: Some(key.into()), content: Some(content), ..RpbPutReq::default() }
}

fn value(bytes: usize) -> RpbContent {
    RpbContent { value: vec![7; bytes].into(), ..RpbContent::default() }
}

fn get(key: &'static str) -> RpbGetReq {
    RpbGetReq { bucket: Some("b".into()), key: Some(key.into()), ..RpbGetReq::default() }
}

async fn write_and_read(node: &Node, bytes: usize) {
    let mut wire = node.connect().await;
    wire.send(code::PUT_REQ, &put("honest", value(bytes))).await;
    wire.expect_empty(code::PUT_RESP).await;
    let found: RpbGetResp = wire.ask(code::GET_REQ, &get("honest"), code::GET_RESP).await;
    assert_eq!(found.content[0].value.len(), bytes);
}

async fn all_is_given_back(node: &Node) {
    until("all memory is given back", async || node.memory.status().bytes_used == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_stall_within_large_requests_do_not_keep_others_from_writing() {
    let node = limited(BUDGET_BYTES).await;
    let mut stalled = Vec::new();
    for _ in 0..CLIENTS {
        let mut wire = node.connect().await;
        stalled.push(tokio::spawn(async move {
            // The server may close the connection at any point.
            drop(wire.stream.write_all(&(60u32 << 20).to_be_bytes()).await);
            drop(wire.stream.write_all(&vec![code::PUT_REQ; CLIENT_BYTES]).await);
            wire
        }));
    }
    until("the budget is exhausted", async || node.memory.status().evicted_total > 0).await;
    write_and_read(&node, 1 << 10).await;
    let mut wires = Vec::new();
    for client in stalled {
        wires.push(client.await.unwrap());
    }
    // The remaining clients have sent everything that they will send.
    write_and_read(&node, 20 << 20).await;
    let status = node.memory.status();
    assert!(status.bytes_used <= BUDGET_BYTES, "{status:?}");
    drop(wires);
    all_is_given_back(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_large_answers_do_not_keep_others_from_reading() {
    let node = limited(BUDGET_BYTES).await;
    write_and_read(&node, CLIENT_BYTES).await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        write_message(code::GET_REQ, &get("honest"), &mut requests);
    }
    let mut silent = Vec::new();
    for _ in 0..SILENT_CLIENTS {
        let mut wire = node.connect().await;
        wire.send_bytes(&requests).await;
        silent.push(wire);
    }
    until("the budget is exhausted", async || node.memory.status().evicted_total > 0).await;
    let mut wire = node.connect().await;
    for _ in 0..3 {
        let found: RpbGetResp = wire.ask(code::GET_REQ, &get("honest"), code::GET_RESP).await;
        assert_eq!(found.content[0].value.len(), CLIENT_BYTES);
        let status = node.memory.status();
        assert!(status.bytes_used <= BUDGET_BYTES, "{status:?}");
    }
    write_and_read(&node, 1 << 20).await;
    drop((silent, wire));
    all_is_given_back(&node).await;
}

#[tokio::test]
async fn a_request_that_can_never_have_its_memory_is_told_so() {
    let node = limited(1 << 20).await;
    let mut wire = node.connect().await;
    wire.send(code::PUT_REQ, &put("k", value(ALLOWANCE_BYTES))).await;
    wire.expect_empty(code::PUT_RESP).await;
    let mut frame = Vec::new();
    write_message(code::PUT_REQ, &put("k", value(4 << 20)), &mut frame);
    // The server does not read all of these bytes.
    drop(wire.stream.write_all(&frame[..1 << 20]).await);
    let text = wire.expect_error().await;
    assert!(text.starts_with("overload"), "{text}");
    assert_eq!(wire.frame().await, None);
    all_is_given_back(&node).await;
    assert_eq!(node.memory.status().refused_total, 1);
}

#[tokio::test]
async fn an_answer_that_can_never_have_its_memory_is_refused_and_the_connection_goes_on() {
    let node = limited(4 << 20).await;
    let mut object = ombak_types::Object::default();
    object.siblings.push(ombak_types::Sibling { value: vec![1; 8 << 20].into(), ..Default::default() });
    let request = ombak_kv::PutRequest {
        bucket: ombak_types::Bucket::untyped("b"),
        key: Some("huge".into()),
        object,
        options: Default::default(),
    };
    node.kv.put(request).await.unwrap();
    let mut wire = node.connect().await;
    assert_eq!(wire.ask_refused(code::GET_REQ, &get("huge")).await, "overload");
    wire.ping().await;
    all_is_given_back(&node).await;
}

#[tokio::test]
async fn an_object_of_very_many_parts_comes_back_as_it_was_written() {
    let node = Node::start().await;
    let pair = |n: usize| RpbPair { key: format!("name-{n}").into(), value: Some(format!("{n}").into()) };
    let entry = |n: usize| RpbPair { key: Bytes::from_static(b"n_int"), value: Some(format!("{n}").into()) };
    let content = RpbContent {
        usermeta: (0..5_000).map(pair).collect(),
        indexes: (0..5_000).map(entry).collect(),
        ..value(100_000)
    };
    let mut requests = Vec::new();
    // Later requests on the same connection see what the large put has written.
    write_message(code::PUT_REQ, &put("many", value(1)), &mut requests);
    write_message(code::PUT_REQ, &put("many", content.clone()), &mut requests);
    write_message(code::GET_REQ, &get("many"), &mut requests);
    let back = RpbPutReq { return_body: Some(true), ..put("again", content.clone()) };
    write_message(code::PUT_REQ, &back, &mut requests);
    let mut wire = node.connect().await;
    wire.send_bytes(&requests).await;
    wire.expect_empty(code::PUT_RESP).await;
    wire.expect_empty(code::PUT_RESP).await;
    let found: RpbGetResp = wire.expect(code::GET_RESP).await;
    let stored: ombak_proto::messages::RpbPutResp = wire.expect(code::PUT_RESP).await;
    for shown in [&found.content[0], &stored.content[0]] {
        assert_eq!(shown.value, content.value);
        assert_eq!(shown.usermeta.len(), 5_000);
        assert_eq!((&shown.usermeta, shown.indexes.len()), (&content.usermeta, 5_000));
    }
    all_is_given_back(&node).await;
    wire.ping().await;
}

#[tokio::test]
async fn messages_that_cannot_need_it_may_not_be_large() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    for code in [code::GET_REQ, code::DEL_REQ, code::LIST_KEYS_REQ, code::SET_BUCKET_REQ, code::DT_UPDATE_REQ] {
        let body = vec![0; 2 << 20];
        let mut frame = (body.len() as u32 + 1).to_be_bytes().to_vec();
        frame.push(code);
        frame.extend_from_slice(&body);
        wire.send_bytes(&frame).await;
        let text = wire.expect_error().await;
        assert!(text.contains("at most 1048576 bytes"), "{code}: {text}");
    }
    wire.ping().await;
    all_is_given_back(&node).await;
}

/// A job that gives its inputs. Its results fit into no buffer of a socket.
fn large_job() -> RpbMapRedReq {
    let keys = "[\"b\",\"k\"],".repeat(1_500_000);
    let request = format!("{{\"inputs\":[{keys}[\"b\",\"k\"]],\"query\":[]}}");
    RpbMapRedReq { request: request.into(), content_type: "application/json".into() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_gives_its_memory_back_when_its_client_leaves() {
    let node = limited(256 << 20).await;
    // This client leaves while its job is decoded, or has just begun.
    let mut early = node.connect().await;
    early.send(code::MAP_RED_REQ, &large_job()).await;
    drop(early);
    all_is_given_back(&node).await;
    // This one leaves when the answer has begun, and has read nothing of it.
    let mut late = node.connect().await;
    late.send(code::MAP_RED_REQ, &large_job()).await;
    timeout(PATIENCE, late.stream.readable()).await.expect("the answer begins").unwrap();
    assert!(node.memory.status().bytes_used > 4_000_000, "it holds its inputs");
    drop(late);
    all_is_given_back(&node).await;
}
