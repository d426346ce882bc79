//! Values that expire. The time to live is user metadata, which every client can set.

use super::*;
use bytes::Bytes;
use ombak_proto::messages::{
    RpbBucketProps, RpbContent, RpbGetBucketReq, RpbGetBucketResp, RpbGetReq, RpbGetResp, RpbPair, RpbPutReq,
    RpbSetBucketReq,
};
use ombak_runtime::{OtherClocks, TokioRuntime};
use ombak_types::Bucket;
use ombak_types::time::UnixMicros;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// A node whose clock stands still until the returned function moves it.
async fn timed() -> (Node, impl Fn(u64)) {
    let secs = Arc::new(AtomicU64::new(1_800_000_000));
    let clock = secs.clone();
    let clock = move || UnixMicros::from_secs(clock.load(Ordering::SeqCst));
    let runtime = Arc::new(OtherClocks::of(Arc::new(TokioRuntime)).with_wall_clock(clock));
    let backend = Arc::new(MemoryFactory::new(MemoryConfig::default()));
    let node = Node::timed(backend, tempfile::tempdir().unwrap(), PbConfig::default(), runtime).await;
    (node, move |wait_secs| {
        secs.fetch_add(wait_secs, Ordering::SeqCst);
    })
}

fn pair(key: &'static str, value: &'static str) -> RpbPair {
    RpbPair { key: key.into(), value: Some(value.into()) }
}

fn put(usermeta: Vec<RpbPair>) -> RpbPutReq {
    let content = RpbContent { value: "v".into(), usermeta, ..RpbContent::default() };
    RpbPutReq {
        bucket: Some("b".into()),
        key: Some("k".into()),
        content: Some(content),
        return_head: Some(true),
        ..RpbPutReq::default()
    }
}

async fn get(wire: &mut Wire) -> RpbGetResp {
    let request = RpbGetReq { bucket: Some("b".into()), key: Some("k".into()), ..RpbGetReq::default() };
    wire.ask(code::GET_REQ, &request, code::GET_RESP).await
}

#[tokio::test]
async fn user_metadata_says_how_long_a_value_lives() {
    let (node, wait_secs) = timed().await;
    let mut wire = node.connect().await;
    let stored: ombak_proto::messages::RpbPutResp =
        wire.ask(code::PUT_REQ, &put(vec![pair("x-ombak-ttl", "60"), pair("a", "b")]), code::PUT_RESP).await;
    let asked = [pair("x-ombak-ttl", "60"), pair("a", "b")];
    assert_eq!(stored.content[0].usermeta, [&asked[..], &[pair("X-Ombak-Ttl-Left", "60")]].concat());
    wait_secs(59);
    let read = get(&mut wire).await.content.remove(0);
    assert_eq!(read.usermeta, [&asked[..], &[pair("X-Ombak-Ttl-Left", "1")]].concat());
    // The client writes back what it has read, so the time to live begins again.
    wire.send(code::PUT_REQ, &put(read.usermeta)).await;
    wire.frame().await.unwrap();
    wait_secs(60);
    assert_eq!(get(&mut wire).await.content[0].usermeta, [&asked[..], &[pair("X-Ombak-Ttl-Left", "1")]].concat());
    wait_secs(1);
    assert!(get(&mut wire).await.content.is_empty());
}

#[tokio::test]
async fn a_time_to_live_that_cannot_be_is_refused() {
    let (node, _) = timed().await;
    let mut wire = node.connect().await;
    let refused = wire.ask_refused(code::PUT_REQ, &put(vec![pair("X-Ombak-Ttl", "1 h")])).await;
    let text = "X-Ombak-Ttl must be a whole number of seconds from 1 to 1000000000, or 0 for no end";
    assert_eq!(refused, format!("{text}, not '1 h'"));
    assert!(get(&mut wire).await.content.is_empty(), "the connection goes on, and nothing was written");
}

/// Riak's messages have no field for the time to live of a bucket.
#[tokio::test]
async fn the_buckets_time_to_live_outlasts_changes_that_cannot_name_it() {
    let (node, wait_secs) = timed().await;
    let mut wire = node.connect().await;
    node.bucket_type("t", json!({"ttl": 30})).await;
    let kv = node.kv.clone();
    let set = move || kv.buckets().set_bucket(&Bucket::untyped("b"), json!({"ttl": 60}).as_object().unwrap());
    tokio::task::spawn_blocking(set).await.unwrap().unwrap();
    for bucket_type in [None, Some(Bytes::from("t"))] {
        let get = RpbGetBucketReq { bucket: "b".into(), r#type: bucket_type.clone() };
        let read: RpbGetBucketResp = wire.ask(code::GET_BUCKET_REQ, &get, code::GET_BUCKET_RESP).await;
        // The client sends all properties back with one change, as clients do.
        let props = RpbBucketProps { notfound_ok: Some(false), ..read.props };
        let set = RpbSetBucketReq { bucket: "b".into(), r#type: bucket_type, props };
        wire.send(code::SET_BUCKET_REQ, &set).await;
        wire.expect_empty(code::SET_BUCKET_RESP).await;
    }
    let ttl = |bucket| node.kv.buckets().props(&bucket).unwrap().ttl;
    assert_eq!((ttl(Bucket::untyped("b")), ttl(Bucket::typed("t", "b"))), (60, 30));
    wire.send(code::PUT_REQ, &put(Vec::new())).await;
    wire.frame().await.unwrap();
    assert_eq!(get(&mut wire).await.content[0].usermeta, [pair("X-Ombak-Ttl-Left", "60")]);
    wait_secs(61);
    assert!(get(&mut wire).await.content.is_empty());
}
