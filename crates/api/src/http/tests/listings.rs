//! Listings of keys and buckets.

use super::{Answer, DEADLINE, Server};
use crate::http::HttpLimits;
use crate::{JobClass, JobSwitches};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::ErrorKind;
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
async fn keys_come_whole_or_as_a_stream() {
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
async fn a_listing_ends_with_its_client() {
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

#[tokio::test]
async fn a_listing_that_takes_too_long_ends_with_an_error() {
    let server = large().await;
    for path in LARGE {
        let request = format!("GET {path}&timeout=1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = server.exchange(request.as_bytes()).await;
        if path.ends_with("=true") && !answer.ends_with(b"{\"error\":\"timeout\"}") {
            // A document that was begun cannot contain an error, so it is cut off.
            assert!(!answer.ends_with(b"0\r\n\r\n"), "{path}");
            continue;
        }
        let late = Answer::parse(&answer);
        assert_eq!(late.status, 200);
        assert_eq!(documents(&late.text()).last(), Some(&json!({"error": "timeout"})), "{path}");
    }
}

/// An answer over HTTP/1.0 has no chunks. So only a reset of the connection shows the client that
/// the answer is incomplete.
#[tokio::test]
async fn an_older_client_sees_by_a_reset_that_a_listing_was_cut_off() {
    let server = Server::start().await;
    for n in 0..20_000 {
        put(&server, "b", &format!("{n:0>1000}")).await;
    }
    // If the machine is too busy to begin the answer in time, a longer limit is tried.
    for limit_ms in [200, 2_000, 20_000] {
        let mut stream = server.connect().await;
        let request = format!("GET /buckets/b/keys?keys=true&timeout={limit_ms} HTTP/1.0\r\n\r\n");
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
        let ended = timeout(DEADLINE, stream.read_to_end(&mut answer)).await.expect("in time");
        assert_eq!(ended.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
        assert!(!answer.ends_with(b"]}"));
        return;
    }
    panic!("no listing began within its time");
}
