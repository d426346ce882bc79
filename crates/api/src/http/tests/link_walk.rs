//! Link walks over the graph of docs/riak/riak-test.md §1.8.

use super::memory::{all_is_given_back, until};
use super::{DEADLINE, Server};
use crate::http::HttpLimits;
use crate::{JobSwitches, MemoryLimits};
use bytes::Bytes;
use ombak_kv::{PutOptions, PutRequest};
use ombak_runtime::TokioRuntime;
use ombak_types::{Bucket, Link, Object, Sibling, SiblingMeta};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Bucket, key and tag of a link.
type To = (&'static str, &'static str, &'static str);

/// Bucket, key and links of each object. The value of `a/4` is `v4`, and that of `b/4` is `v4b`.
const GRAPH: [(&str, &str, &[To]); 7] = [
    ("a", "1", &[("a", "2", "next")]),
    ("a", "2", &[("a", "3", "next"), ("a", "1", "prev"), ("b", "2", "next")]),
    ("a", "3", &[("a", "4", "next"), ("b", "4", "next"), ("a", "2", "prev")]),
    ("a", "4", &[("a", "5", "next"), ("a", "3", "prev")]),
    ("a", "5", &[("a", "1", "next"), ("a", "4", "prev")]),
    ("b", "4", &[("b", "5", "next"), ("a", "3", "prev")]),
    ("b", "5", &[("b", "4", "prev")]),
];

async fn graph() -> Server {
    let server = Server::start().await;
    for (bucket, key, links) in GRAPH {
        let links: Vec<String> =
            links.iter().map(|(bucket, key, tag)| format!("</riak/{bucket}/{key}>; riaktag=\"{tag}\"")).collect();
        let value = format!("v{key}{}", if bucket == "b" { "b" } else { "" });
        let header = format!("Link: {}\r\n", links.join(", "));
        assert_eq!(server.put(&format!("/riak/{bucket}/{key}"), &header, &value).await.status, 204);
    }
    server
}

/// The values in the answer to a walk, sorted.
async fn walk(server: &Server, start: &str, steps: &str) -> Vec<String> {
    let answer = server.get(&format!("/riak/a/{start}/{steps}")).await;
    assert_eq!(answer.status, 200, "{steps}: {}", answer.text());
    assert!(answer.header("content-type").is_some_and(|t| t.starts_with("multipart/mixed; boundary=")));
    assert!(answer.header("expires").is_some());
    let text = answer.text();
    let mut values: Vec<String> =
        text.split("\r\n").filter(|line| line.starts_with('v') && line.len() < 4).map(String::from).collect();
    values.sort();
    values
}

#[tokio::test]
async fn walks_lead_where_the_links_lead() {
    let server = graph().await;
    let five = ["_,next,1"; 5].join("/");
    for (start, steps, expected) in [
        ("1", "_,next,1", "v2"),
        ("1", "_,_,1", "v2"),
        ("1", "b,next,1", ""),
        ("1", "a,next,1", "v2"),
        ("1", "_,next,1/_,next,1", "v2 v3"),
        ("1", "_,next,1/b,next,1/_,next,1/_,next,1/_,next,1", "v2"),
        ("1", &five, "v1 v2 v3 v4 v4b v5 v5b"),
        ("1", "_,next,0/_,next,1/a,next,0/a,next,1", "v3 v5"),
        ("1", "_,next,0/_,next,0/_,prev,1/_,next,0/_,next,1", "v2 v4 v4b"),
        ("3", "_,_,1", "v2 v4 v4b"),
        ("3", "a,_,1", "v2 v4"),
        ("3", "b,_,1", "v4b"),
        ("3", "_,_,0/_,next,1", "v3 v5 v5b"),
        ("5", "_,prev,1", "v4"),
        ("5", "_,prev,1/_,prev,1/_,prev,1/_,prev,1", "v1 v2 v3 v4"),
        ("5", "_,prev,1/_,prev,1/_,next,1/_,next,1", "v3 v4 v4 v4b v5 v5b"),
        ("5", "b,next,1", ""),
        ("5", "_,_,1", "v1 v4"),
    ] {
        let expected: Vec<&str> = expected.split_ascii_whitespace().collect();
        assert_eq!(walk(&server, start, steps).await, expected, "from {start}: {steps}");
    }
}

#[tokio::test]
async fn walks_that_are_none() {
    let server = graph().await;
    let bad = server.get("/riak/a/1/x").await;
    assert_eq!(bad.status, 400);
    assert!(bad.text().starts_with("Invalid link walk query submitted."), "{}", bad.text());
    assert_eq!(server.get("/riak/a/none/_,_,1").await.status, 404);
    server.create_type("t");
    assert_eq!(server.get("/types/t/buckets/a/keys/1/_,_,1").await.status, 403);
}

/// Stores an object with this metadata and a link to itself, which walks follow.
async fn put_loop(server: &Server, key: &'static str, mut meta: SiblingMeta) {
    meta.links.push(Link { bucket: "b".into(), key: key.into(), tag: "next".into() });
    let object = Object::new(Sibling { value: Bytes::from_static(b"small"), meta });
    let request =
        PutRequest { bucket: Bucket::untyped("b"), key: Some(key.into()), object, options: PutOptions::default() };
    server.kv.put(request).await.expect("stored");
}

/// Each step reads the object again. Its value is small in all cases, so the rest of the object
/// determines its size.
#[tokio::test]
async fn metadata_counts_against_the_bounds_of_a_walk() {
    const MIB: usize = 1 << 20;
    let server = Server::start().await;
    let walk = async |key: &str, step: &str, steps: usize| {
        let path = vec![step; steps].join("/");
        let answer = server.get(&format!("/buckets/b/keys/{key}/{path}")).await;
        (answer.status, answer.text())
    };

    let user_meta = vec![("name".into(), Bytes::from(vec![b'm'; 3 * MIB]))];
    put_loop(&server, "long", SiblingMeta { user_meta, ..SiblingMeta::default() }).await;
    assert_eq!(walk("long", "_,next,1", 4).await.0, 200);
    let (status, text) = walk("long", "_,next,1", 30).await;
    assert_eq!(status, 400, "{} bytes were answered", text.len());
    assert!(text.contains("more than 67108864 bytes"), "{text}");
    assert_eq!(walk("long", "_,next,0", 30).await.0, 400, "what a walk only passes through counts as well");

    // Each pair has few bytes but its own structures in memory.
    let user_meta = vec![(Bytes::new(), Bytes::new()); 100_000];
    put_loop(&server, "many", SiblingMeta { user_meta, ..SiblingMeta::default() }).await;
    assert_eq!(walk("many", "_,next,1", 4).await.0, 200);
    assert_eq!(walk("many", "_,next,1", 30).await.0, 400);

    // In an answer, each byte of this name takes three bytes.
    let wide = Link { bucket: vec![0xff; MIB].into(), key: "k".into(), tag: "other".into() };
    put_loop(&server, "wide", SiblingMeta { links: vec![wide], ..SiblingMeta::default() }).await;
    assert_eq!(walk("wide", "_,next,0", 30).await.0, 200);
    assert_eq!(walk("wide", "_,next,1", 30).await.0, 400);
}

/// A server with a budget of so many bytes, and an object of 3 MiB that has a link to itself.
async fn limited(bytes_max: u64) -> Server {
    let memory = MemoryLimits { bytes_max, stalled_after: Duration::from_secs(1), wait_max: DEADLINE };
    let server = Server::within(memory, HttpLimits::default(), JobSwitches::default(), Arc::new(TokioRuntime)).await;
    let link = "Link: </buckets/b/keys/long>; riaktag=\"next\"\r\n";
    assert_eq!(server.put("/buckets/b/keys/long", link, &"v".repeat(3 << 20)).await.status, 204);
    server
}

fn path_of(steps: usize) -> String {
    format!("/buckets/b/keys/long/{}", vec!["_,next,1"; steps].join("/"))
}

#[tokio::test]
async fn what_a_walk_holds_counts_in_the_budget_of_memory() {
    let server = limited(64 << 20).await;
    let mut stream = server.connect().await;
    let request = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path_of(8));
    stream.write_all(request.as_bytes()).await.expect("sent");
    // While the client does not read, the node holds the answer, but no objects any more. The
    // allowance of the connection is not taken from the budget.
    let answer_only = (23 << 20)..(25 << 20);
    until("the answer is counted", async || answer_only.contains(&server.memory.status().bytes_used)).await;
    drop(stream);
    all_is_given_back(&server).await;
    let answer = server.get(&path_of(8)).await;
    assert_eq!((answer.status, answer.body.len() > 24 << 20), (200, true));
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn a_walk_for_which_there_is_no_memory_is_refused() {
    let server = limited(16 << 20).await;
    let small = server.get(&path_of(1)).await;
    assert_eq!(small.status, 200, "{}", small.text());
    // The objects of the kept steps take more than the budget.
    let answer = server.get(&path_of(8)).await;
    assert_eq!(answer.status, 500, "{} bytes were answered", answer.body.len());
    assert!(answer.text().contains("overload"), "{}", answer.text());
    all_is_given_back(&server).await;
    assert_eq!(server.memory.status().refused_total, 1);
}
