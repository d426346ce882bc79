//! What a message takes in memory: at most 20 times what its client sent. The worst shape of each
//! kind of message is sent to a real node, whose memory the operating system counts. Each message
//! has a node that has just started: what earlier ones have left with the allocator could hide what
//! one takes, or lie in pieces that it cannot use.
//!
//! This is a test program of its own: it measures memory, and what others do beside it would show.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "all/support/mod.rs"]
mod support;

use ombak_client::messages::{
    DtOp, DtUpdateReq, MapOp, MapUpdate, RpbBucketProps, RpbCommitHook, RpbContent, RpbLink, RpbMapRedReq, RpbPutReq,
    RpbSetBucketReq, SetOp,
};
use prost::Message;
use std::io::{Read, Write};
use std::net::TcpStream;
use support::{DEADLINE, Home, Node, ask};

/// How much memory a message may take, in multiples of its length: 10 for what is decoded. The rest
/// is the message, the buffers in which it was received, lists that are copied while they grow, and
/// a first attempt to decode it, whose memory may stay with the allocator.
const GROWTH_MAX: usize = 20;
/// What a node takes beside messages while it answers: buffers of the threads that are used for the
/// first time, and memory that the allocator keeps in pieces of 4 MiB.
const FIXED_BYTES: usize = 6 << 20;

const MESSAGE_BYTES: usize = 8 << 20;
/// Other messages than puts and jobs may not be larger.
const SMALLER_BYTES: usize = 1_000_000;

const JSON: &str = "Content-Type: application/json\r\n";

fn status(node: &Node, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// The most memory that the node takes while `send` runs, beyond what it had before.
fn growth(node: &Node, send: impl FnOnce()) -> usize {
    // This makes the highest number of bytes begin anew.
    std::fs::write(format!("/proc/{}/clear_refs", node.child.id()), "5").unwrap();
    let before = status(node, "VmRSS");
    send();
    status(node, "VmHWM").saturating_sub(before)
}

/// Sends a message and reads answers up to the last one.
fn send(node: &Node, code: u8, body: &[u8]) {
    let mut stream = TcpStream::connect(&node.pb).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let length = u32::try_from(body.len() + 1).unwrap();
    stream.write_all(&[&length.to_be_bytes()[..], &[code], body].concat()).unwrap();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        // Only jobs have several answers; the field `done` ends the last one.
        if answer[0] != 24 || answer.ends_with(&[0x18, 1]) {
            return;
        }
    }
}

/// As many pieces as fit into a message, with commas between.
fn many(piece: &str, bytes: usize) -> String {
    let mut list = format!("{piece},").repeat(bytes / (piece.len() + 1));
    list.pop();
    list
}

const COUNT: &str =
    r#"[{"reduce":{"language":"erlang","module":"riak_kv_mapreduce","function":"reduce_count_inputs"}}]"#;

fn jobs_in_json() -> Vec<String> {
    let of_inputs = |inputs: String| format!("{{\"inputs\":{inputs},\"query\":{COUNT}}}");
    vec![
        of_inputs(format!("[{}]", many("[\"b\",\"k\"]", MESSAGE_BYTES))),
        of_inputs(format!("[[\"b\",\"k\",[{}]]]", many("[]", MESSAGE_BYTES))),
        of_inputs(format!("[[\"b\",\"k\",[{}]]]", many("{\"\":{}}", MESSAGE_BYTES))),
        of_inputs(format!("[{}]", many("[\"b\",\"k\",{}]", MESSAGE_BYTES))),
        of_inputs(format!("{{\"bucket\":\"b\",\"key_filters\":[{}]}}", many("[\"not\",[[]]]", MESSAGE_BYTES))),
        format!("{{\"inputs\":\"b\",\"query\":[{{\"map\":{{\"arg\":[{}]}}}}]}}", many("0", MESSAGE_BYTES)),
    ]
}

fn jobs_in_terms() -> Vec<Vec<u8>> {
    let of_inputs = |item: &[u8]| {
        let count = MESSAGE_BYTES / item.len();
        let mut bytes = b"\x83\x6c\0\0\0\x02\x68\x02\x77\x06inputs\x6c".to_vec();
        bytes.extend_from_slice(&u32::try_from(count).unwrap().to_be_bytes());
        bytes.extend_from_slice(&item.repeat(count));
        bytes.extend_from_slice(b"\x6a\x68\x02\x77\x05query\x6a\x6a");
        bytes
    };
    let key = b"\x68\x02\x6d\0\0\0\x01b\x6d\0\0\0\x01k";
    vec![of_inputs(key), of_inputs(b"\x6a"), of_inputs(b"\x68\0"), of_inputs(b"\x77\x01a")]
}

fn update(op: DtOp, bucket_type: &'static str) -> Vec<u8> {
    let names =
        DtUpdateReq { bucket: "b".into(), key: Some("k".into()), r#type: bucket_type.into(), ..Default::default() };
    DtUpdateReq { op, ..names }.encode_to_vec()
}

fn messages() -> Vec<(&'static str, u8, Vec<u8>)> {
    let job = |request: Vec<u8>, content_type: &'static str| {
        RpbMapRedReq { request: request.into(), content_type: content_type.into() }.encode_to_vec()
    };
    let mut messages = Vec::new();
    for request in jobs_in_json() {
        messages.push(("a job in JSON", 23, job(request.into(), "application/json")));
    }
    for request in jobs_in_terms() {
        messages.push(("a job in terms", 23, job(request, "application/x-erlang-binary")));
    }
    let links = vec![RpbLink::default(); MESSAGE_BYTES / 2];
    let content = RpbContent { value: "v".into(), links, ..RpbContent::default() };
    let put =
        RpbPutReq { bucket: Some("b".into()), key: Some("k".into()), content: Some(content), ..Default::default() };
    messages.push(("a put", 11, put.encode_to_vec()));
    let empty = || vec![bytes(""); SMALLER_BYTES / 2];
    let set = DtOp { set_op: Some(SetOp { adds: empty(), removes: Vec::new() }), ..DtOp::default() };
    messages.push(("a set", 82, update(set, "sets")));
    let updates = vec![MapUpdate::default(); SMALLER_BYTES / 8];
    let map = DtOp { map_op: Some(MapOp { updates, ..MapOp::default() }), ..DtOp::default() };
    messages.push(("a map", 82, update(map, "maps")));
    let props = RpbBucketProps { precommit: vec![RpbCommitHook::default(); SMALLER_BYTES / 3], ..Default::default() };
    let set_props = RpbSetBucketReq { bucket: "b".into(), props, r#type: None };
    messages.push(("properties", 21, set_props.encode_to_vec()));
    messages
}

fn bytes(text: &'static str) -> prost::bytes::Bytes {
    prost::bytes::Bytes::from_static(text.as_bytes())
}

fn bodies() -> Vec<(&'static str, &'static str, String)> {
    let mut bodies: Vec<_> = jobs_in_json().into_iter().map(|job| ("POST", "/mapred", job)).collect();
    let set = "/types/sets/buckets/b/datatypes/k";
    bodies.push(("POST", set, format!("{{\"add_all\":[{}]}}", many("\"\"", MESSAGE_BYTES))));
    bodies.push(("POST", set, format!("{{\"update\":[{}]}}", many("{}", MESSAGE_BYTES))));
    let map = "/types/maps/buckets/b/datatypes/k";
    bodies.push(("POST", map, format!("{{\"update\":{{{}}}}}", many("\"_map\":{}", MESSAGE_BYTES))));
    for piece in ["[]", "{\"\":{}}"] {
        bodies.push(("PUT", "/buckets/b/props", format!("{{\"props\":{{\"a\":[{}]}}}}", many(piece, MESSAGE_BYTES))));
    }
    bodies
}

#[test]
fn a_message_takes_at_most_twenty_times_what_was_sent() {
    let home = Home::new("storage_backend = memory");
    let node = home.start();
    for (name, kind) in [("sets", "set"), ("maps", "map")] {
        let props = format!(r#"{{"props":{{"datatype":"{kind}","allow_mult":true}}}}"#);
        home.run(&["admin", "bucket-type", "create", name, &props]).ok();
        home.run(&["admin", "bucket-type", "activate", name]).ok();
    }
    node.stop();
    let mut grown = Vec::new();
    for (what, code, body) in messages() {
        let node = home.start();
        grown.push((what.to_owned(), body.len(), growth(&node, || send(&node, code, &body))));
        node.stop();
    }
    for (method, path, body) in bodies() {
        let (node, mut answer) = (home.start(), String::new());
        let bytes = growth(&node, || answer = ask(&node, method, path, JSON, &body));
        node.stop();
        let shown: String = body.chars().take(60).collect();
        grown.push((format!("{path} {shown}: {}", answer.lines().next().unwrap_or_default()), body.len(), bytes));
    }
    for (what, sent, bytes) in &grown {
        println!("{bytes:>10} bytes, {:5.1} times {sent}: {what}", *bytes as f64 / *sent as f64);
    }
    for (what, sent, bytes) in grown {
        assert!(bytes <= GROWTH_MAX * sent + FIXED_BYTES, "{bytes} bytes for {sent}: {what}");
    }
}
