//! Listing keys, buckets and ranges of objects.

use super::*;
use bytes::Bytes;
use ombak_proto::messages::{
    RpbContent, RpbCsBucketReq, RpbCsBucketResp, RpbListBucketsReq, RpbListBucketsResp, RpbListKeysReq,
    RpbListKeysResp, RpbPutReq,
};
use std::collections::BTreeSet;

impl Wire {
    /// Stores `k00000` and so on, pipelined.
    async fn fill(&mut self, bucket: &str, keys: usize) {
        let mut out = Vec::new();
        for n in 0..keys {
            let request = RpbPutReq {
                bucket: Some(bucket.to_owned().into()),
                key: Some(format!("k{n:05}").into()),
                content: Some(RpbContent { value: "v".into(), ..RpbContent::default() }),
                ..RpbPutReq::default()
            };
            write_message(code::PUT_REQ, &request, &mut out);
        }
        self.send_bytes(&out).await;
        for _ in 0..keys {
            self.expect_empty(code::PUT_RESP).await;
        }
    }

    async fn keys(&mut self, bucket: &str) -> Vec<Bytes> {
        let request = RpbListKeysReq { bucket: bucket.to_owned().into(), ..RpbListKeysReq::default() };
        self.send(code::LIST_KEYS_REQ, &request).await;
        let mut all = Vec::new();
        loop {
            let part: RpbListKeysResp = self.expect(code::LIST_KEYS_RESP).await;
            if part.done == Some(true) {
                assert!(part.keys.is_empty(), "the end comes alone");
                return all;
            }
            assert!(!part.keys.is_empty(), "an empty batch before the end breaks clients");
            all.extend(part.keys);
        }
    }

    async fn range(&mut self, request: &RpbCsBucketReq) -> (Vec<String>, Option<Bytes>) {
        self.send(code::CS_BUCKET_REQ, request).await;
        let mut keys = Vec::new();
        loop {
            let part: RpbCsBucketResp = self.expect(code::CS_BUCKET_RESP).await;
            if part.done == Some(true) {
                assert!(part.objects.is_empty());
                return (keys, part.continuation);
            }
            for object in part.objects {
                assert_eq!((object.object.content.len(), &object.object.content[0].value[..]), (1, &b"v"[..]));
                assert!(object.object.vclock.is_some());
                keys.push(String::from_utf8(object.key.to_vec()).unwrap());
            }
        }
    }
}

#[tokio::test]
async fn keys_are_streamed_each_once() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.fill("b", 3000).await;
    wire.fill("other", 10).await;
    let keys = wire.keys("b").await;
    let distinct: BTreeSet<_> = keys.iter().collect();
    assert_eq!((keys.len(), distinct.len()), (3000, 3000));
    assert!(wire.keys("none").await.is_empty());
    let unknown = RpbListKeysReq { bucket: "b".into(), r#type: Some("nonesuch".into()), timeout: None };
    assert_eq!(wire.ask_refused(code::LIST_KEYS_REQ, &unknown).await, "No bucket-type named 'nonesuch'");
}

#[tokio::test]
async fn buckets_come_at_once_or_as_a_stream() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    for bucket in ["b1", "b2", "b3"] {
        wire.fill(bucket, 3).await;
    }
    let mut request = Vec::new();
    write_empty(code::LIST_BUCKETS_REQ, &mut request);
    wire.send_bytes(&request).await;
    let mut once: RpbListBucketsResp = wire.expect(code::LIST_BUCKETS_RESP).await;
    once.buckets.sort();
    assert_eq!((once.buckets, once.done), (vec!["b1".into(), "b2".into(), "b3".into()], None));

    let streamed = RpbListBucketsReq { stream: Some(true), ..RpbListBucketsReq::default() };
    wire.send(code::LIST_BUCKETS_REQ, &streamed).await;
    let mut found = BTreeSet::new();
    loop {
        let part: RpbListBucketsResp = wire.expect(code::LIST_BUCKETS_RESP).await;
        assert_eq!(part.buckets.is_empty(), part.done == Some(true));
        if part.done == Some(true) {
            break;
        }
        found.extend(part.buckets);
    }
    assert_eq!(found.len(), 3);
}

#[tokio::test]
async fn a_range_of_objects_comes_in_order_and_in_pages() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.fill("b", 50).await;
    let request = RpbCsBucketReq {
        bucket: "b".into(),
        start_key: "k00010".into(),
        end_key: Some("k00013".into()),
        ..RpbCsBucketReq::default()
    };
    assert_eq!(wire.range(&request).await, (vec!["k00010".into(), "k00011".into(), "k00012".into()], None));

    let mut page = RpbCsBucketReq { end_key: None, max_results: Some(16), ..request };
    let mut all = Vec::new();
    loop {
        let (keys, continuation) = wire.range(&page).await;
        all.extend(keys);
        page.continuation = continuation;
        if page.continuation.is_none() {
            break;
        }
    }
    assert_eq!(all, (10..50).map(|n| format!("k{n:05}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_listing_ends_with_its_client() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.fill("b", 5000).await;
    for _ in 0..20 {
        let mut leaver = node.connect().await;
        let request = RpbListKeysReq { bucket: "b".into(), ..RpbListKeysReq::default() };
        leaver.send(code::LIST_KEYS_REQ, &request).await;
        drop(leaver);
    }
    drop(wire);
    until("no connection is left", async || node.connections() == 0).await;
}

#[tokio::test]
async fn switched_off_listings_are_refused() {
    use crate::jobs::{JobClass, JobSwitches};
    let jobs = JobSwitches::default().with(JobClass::StreamListKeys, false).with(JobClass::ListBuckets, false);
    let node = Node::with(PbConfig { jobs, ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    let keys = RpbListKeysReq { bucket: "b".into(), ..RpbListKeysReq::default() };
    let text = wire.ask_refused(code::LIST_KEYS_REQ, &keys).await;
    assert_eq!(text, "Operation '{riak_kv,stream_list_keys}' is not enabled");
    let text = wire.ask_refused(code::LIST_BUCKETS_REQ, &RpbListBucketsReq::default()).await;
    assert_eq!(text, "Operation '{riak_kv,list_buckets}' is not enabled");
    let streamed = RpbListBucketsReq { stream: Some(true), ..RpbListBucketsReq::default() };
    let end: RpbListBucketsResp = wire.ask(code::LIST_BUCKETS_REQ, &streamed, code::LIST_BUCKETS_RESP).await;
    assert_eq!(end.done, Some(true));
}
