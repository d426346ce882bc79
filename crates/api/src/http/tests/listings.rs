//! Listings of keys and buckets.

use super::{Answer, DEADLINE, Server};
use crate::MemoryLimits;
use crate::http::HttpLimits;
use crate::{JobClass, JobSwitches};
use ombak_runtime::TokioRuntime;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

fn names(value: &Value) -> BTreeSet<String> {
    let list = value.as_array().unwrap_or_else(|| panic!("no list: {value}"));
    list.iter().map(|name| name.as_str().expect("text").to_owned()).collect()
}

/// The documents of a stream, which follow each other without a separator.
fn documents(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().map(|d| d.expect("JSON")).collect()
}

async fn put(server: &Server, bucket: &str, key: &str) {
    let request = ombak_kv::PutRequest {
        bucket: ombak_types::Bucket::untyped(bucket.to_owned()),
        key: Some(key.to_owned().into()),
        object: ombak_types::Object::new(ombak_types::Sibling::new("v")),
        options: Default::default(),
    };
    server.kv.put(request).await.expect("stored");
}

#[tokio::test]
pub(super) async fn keys_come_whole_or_as_a_stream() {
    let server = Server::start().await;
    // The names do not fit into one piece of the answer.
    let keys: BTreeSet<String> = (0..700).map(|i| format!("{i:0>120}")).collect();
    for key in &keys {
        put(&server, "b", key).await;
    }
    let whole = server.get("/buckets/b/keys?keys=true").await;
    assert_eq!(names(&whole.json()["keys"]), keys);
    let older = server.get("/riak/b?keys=true").await.json();
    assert_eq!((names(&older["keys"]), &older["props"]["name"]), (keys.clone(), &json!("b")));
    assert_eq!(server.get("/riak/b?keys=true&props=false").await.json().get("props"), None);

    let stream = documents(&server.get("/buckets/b/keys?keys=stream").await.text());
    let streamed: BTreeSet<String> = stream.iter().flat_map(|d| names(&d["keys"])).collect();
    assert_eq!(streamed, keys);
    assert_eq!(stream.last(), Some(&json!({"keys": []})));
    let older = documents(&server.get("/riak/b?keys=stream").await.text());
    assert_eq!(older[0]["props"]["name"], "b");
}

#[tokio::test]
async fn small_listings_and_none() {
    let server = Server::start().await;
    server.create_type("t");
    server.put("/buckets/b/keys/%E9", "", "v").await;
    server.put("/buckets/b/keys/%22", "", "v").await;
    server.put("/types/t/buckets/tb/keys/k", "", "v").await;
    let keys = server.get("/buckets/b/keys?keys=true").await;
    assert_eq!(names(&keys.json()["keys"]), ["é", "\""].map(String::from).into());
    assert!(keys.header("content-length").is_some());
    assert_eq!(server.get("/buckets?buckets=true").await.json(), json!({"buckets": ["b"]}));
    assert_eq!(server.get("/riak?buckets=true").await.json(), json!({"buckets": ["b"]}));
    assert_eq!(server.get("/types/t/buckets?buckets=true").await.json(), json!({"buckets": ["tb"]}));
    let stream = documents(&server.get("/buckets?buckets=stream").await.text());
    assert_eq!(stream, [json!({"buckets": ["b"]}), json!({"buckets": []})]);
    assert_eq!(server.get("/buckets/none/keys?keys=true").await.json(), json!({"keys": []}));
    assert_eq!(server.get("/buckets/b/keys").await.json(), json!({}));
    assert_eq!(server.get("/buckets").await.json(), json!({}));
    assert_eq!(server.get("/types/none/buckets?buckets=true").await.status, 404);
    assert_eq!(server.get("/types/none/buckets/b/keys?keys=true").await.status, 404);
    assert_eq!(server.get("/buckets/b/keys?keys=true&timeout=zork").await.text(), "Bad timeout value \"zork\"\n");
}

#[tokio::test]
async fn listings_can_be_switched_off() {
    let jobs = JobSwitches::default().with(JobClass::ListKeys, false).with(JobClass::StreamListBuckets, false);
    let server = Server::with(HttpLimits::default(), jobs).await;
    let refused = server.get("/buckets/b/keys?keys=true").await;
    assert_eq!((refused.status, refused.text().as_str()), (403, "Operation '{riak_kv,list_keys}' is not enabled"));
    assert_eq!(server.get("/buckets?buckets=stream").await.status, 403);
    assert_eq!(server.get("/buckets/b/keys?keys=stream").await.status, 200);
    assert_eq!(server.get("/buckets?buckets=true").await.status, 200);
}

/// Listings of 20 MB, which do not fit into the buffers of the sockets.
const LARGE: [&str; 4] =
    ["/buckets/b/keys?keys=true", "/buckets/b/keys?keys=stream", "/buckets?buckets=true", "/buckets?buckets=stream"];

/// A server with a bucket with long keys, and with many buckets with long names.
async fn large() -> Server {
    let server = Server::start().await;
    for n in 0..20_000 {
        put(&server, "b", &format!("{n:0>1000}")).await;
        put(&server, &format!("{n:0>1000}"), "k").await;
    }
    server
}

/// The server waits for a client that reads slowly and does not collect more names meanwhile. If a
/// client closes its connection, its listing ends.
#[tokio::test]
pub(super) async fn a_listing_ends_with_its_client() {
    let server = large().await;
    for path in LARGE {
        let mut leaver = server.connect().await;
        leaver.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await.expect("sent");
        let mut some = [0; 4096];
        timeout(DEADLINE, leaver.read_exact(&mut some)).await.expect("in time").expect("an answer");
        assert_eq!(server.stat("list_fsm_active"), 1, "{path}");
        drop(leaver);
        server.until_none("list_fsm_active").await;
    }
}

/// A document with a list that is incomplete because of the time limit. `None`: the answer is of
/// another form.
fn incomplete(document: &Value, member: &str) -> Option<usize> {
    let is_late = document["error"] == "timeout";
    document[member].as_array().filter(|_| is_late).map(Vec::len)
}

#[tokio::test]
async fn a_listing_that_takes_too_long_ends_with_an_error() {
    let server = large().await;
    for path in LARGE {
        let request = format!("GET {path}&timeout=1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let late = Answer::parse(&server.exchange(request.as_bytes()).await);
        assert_eq!(late.status, 200);
        let documents = documents(&late.text());
        let last = documents.last().expect("a document");
        let member = if path.contains("keys") { "keys" } else { "buckets" };
        assert!(last == &json!({"error": "timeout"}) || incomplete(last, member).is_some(), "{path}");
        assert!(path.ends_with("=stream") || documents.len() == 1, "{path}");
    }
}

/// Asks for a list of 20 MB, and reads it only after its time is over: by then the head has been
/// sent. Returns the body.
async fn read_late(server: &Server, version: &str) -> Vec<u8> {
    // If the machine is too busy to begin the answer in time, a longer limit is tried.
    for limit_ms in [200, 2_000, 20_000] {
        let mut stream = server.connect().await;
        let end = if version == "1.1" { "Host: h\r\nConnection: close\r\n" } else { "" };
        let request = format!("GET /buckets/b/keys?keys=true&timeout={limit_ms} HTTP/{version}\r\n{end}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = timeout(DEADLINE, stream.read_buf(&mut answer)).await.expect("in time").expect("an answer");
            assert_ne!(read, 0, "the head of the answer is missing");
        }
        if String::from_utf8_lossy(&answer).contains("Content-Length: ") {
            continue;
        }
        // The listing has begun and is larger than the buffers of the sockets. It times out while
        // the client does not read.
        tokio::time::sleep(Duration::from_millis(limit_ms)).await;
        timeout(DEADLINE, stream.read_to_end(&mut answer)).await.expect("in time").expect("no reset");
        return Answer::parse(&answer).body;
    }
    panic!("no listing began within its time");
}

/// The head with the status 200 is gone when the time is over, so the document says it.
#[tokio::test]
async fn a_document_that_was_begun_ends_with_its_error() {
    let server = Server::start().await;
    for n in 0..20_000 {
        put(&server, "b", &format!("{n:0>1000}")).await;
    }
    for version in ["1.1", "1.0"] {
        let document: Value = serde_json::from_slice(&read_late(&server, version).await).expect("valid JSON");
        let listed = incomplete(&document, "keys").unwrap_or_else(|| panic!("HTTP/{version} has no error"));
        assert!((1_000..20_000).contains(&listed), "HTTP/{version}: {listed}");
    }
    super::memory::all_is_given_back(&server).await;
}

/// Less than a megabyte is collected before the head is sent. So a list of that size is whole, or
/// the answer is the error alone.
#[tokio::test]
async fn a_short_listing_that_takes_too_long_has_an_answer_of_its_own() {
    const KEYS: usize = 900;
    let server = Server::start().await;
    for n in 0..KEYS {
        put(&server, "b", &format!("{n:0>1000}")).await;
    }
    let whole = server.get("/buckets/b/keys?keys=true").await;
    assert!(whole.header("content-length").is_some(), "the list is sent in one piece");
    for timeout_ms in 1..20 {
        let listed = server.get(&format!("/buckets/b/keys?keys=true&timeout={timeout_ms}")).await;
        let document = listed.json();
        let is_whole = document["keys"].as_array().is_some_and(|keys| keys.len() == KEYS);
        assert!(is_whole || document == json!({"error": "timeout"}), "{timeout_ms} ms: {}", listed.head);
        let queried = server.get(&format!("/buckets/b/index/$bucket/b?timeout={timeout_ms}")).await;
        match queried.status {
            200 => assert_eq!(queried.json()["keys"].as_array().map(Vec::len), Some(KEYS)),
            status => assert_eq!((status, queried.text().as_str()), (503, "request timed out\n")),
        }
    }
    super::memory::all_is_given_back(&server).await;
}

/// What is collected counts, and a list that finds no memory is refused before its head is sent.
#[tokio::test]
async fn what_a_listing_collects_is_counted() {
    let memory = MemoryLimits { bytes_max: 256 << 10, wait_max: Duration::from_millis(50), ..MemoryLimits::default() };
    let server = Server::within(memory, HttpLimits::default(), JobSwitches::default(), Arc::new(TokioRuntime)).await;
    for n in 0..900 {
        put(&server, "b", &format!("{n:0>1000}")).await;
    }
    let refused = server.get("/buckets/b/keys?keys=true").await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(refused.text().contains("overload"), "{}", refused.text());
    super::memory::all_is_given_back(&server).await;
}
