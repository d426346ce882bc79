//! Listings of keys, of buckets, and of ranges of objects.

use super::*;
use bytes::Bytes;
use ombak_kv::{PutOptions, PutRequest};
use ombak_proto::messages::{
    RpbContent, RpbCsBucketReq, RpbCsBucketResp, RpbListBucketsReq, RpbListBucketsResp, RpbListKeysReq,
    RpbListKeysResp, RpbPutReq,
};
use ombak_types::{Bucket, Object, Sibling};
use std::collections::BTreeSet;

impl Wire {
    /// Stores the keys `k00000` and so on, in a pipeline.
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
pub(super) async fn keys_are_streamed_each_once() {
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

/// A node with a bucket with long keys, and with many buckets with long names. The answers have 20
/// MB, which do not fit into the buffers of the sockets.
async fn large() -> Node {
    let node = Node::start().await;
    let put = async |bucket: String, key: String| {
        let request = PutRequest {
            bucket: Bucket::untyped(bucket),
            key: Some(key.into()),
            object: Object::new(Sibling::new("v")),
            options: PutOptions::default(),
        };
        node.kv.put(request).await.unwrap();
    };
    for n in 0..20_000 {
        put("b".into(), format!("{n:0>1000}")).await;
        put(format!("{n:0>1000}"), "k".into()).await;
    }
    node
}

/// Requests for such answers, each with the number of `/stats` that counts it while it is answered.
fn large_requests(timeout: Option<u32>) -> [(Vec<u8>, &'static str); 3] {
    let keys = RpbListKeysReq { bucket: "b".into(), timeout, ..RpbListKeysReq::default() };
    let buckets = RpbListBucketsReq { stream: Some(true), timeout, ..RpbListBucketsReq::default() };
    let range = RpbCsBucketReq { bucket: "b".into(), timeout, ..RpbCsBucketReq::default() };
    let mut requests = [const { Vec::new() }; 3];
    write_message(code::LIST_KEYS_REQ, &keys, &mut requests[0]);
    write_message(code::LIST_BUCKETS_REQ, &buckets, &mut requests[1]);
    write_message(code::CS_BUCKET_REQ, &range, &mut requests[2]);
    let [keys, buckets, range] = requests;
    [(keys, "list_fsm_active"), (buckets, "list_fsm_active"), (range, "index_fsm_active")]
}

/// The server waits for a client that reads slowly and does not collect more names meanwhile. If a
/// client closes its connection, its listing ends.
#[tokio::test]
pub(super) async fn a_listing_ends_with_its_client() {
    let node = large().await;
    for (request, active) in large_requests(None) {
        let mut leaver = node.connect().await;
        leaver.send_bytes(&request).await;
        assert!(leaver.frame().await.is_some_and(|frame| error_text(&frame).is_none()));
        assert_eq!(node.stat(active), 1, "{active}");
        drop(leaver);
        until("no listing is left", async || node.stat(active) == 0 && node.connections() == 0).await;
    }
}

#[tokio::test]
async fn a_listing_that_takes_too_long_ends_with_an_error() {
    let node = large().await;
    let mut wire = node.connect().await;
    for (request, _) in large_requests(Some(1)) {
        wire.send_bytes(&request).await;
        let late = loop {
            let frame = wire.frame().await.unwrap();
            if let Some(text) = error_text(&frame) {
                break text;
            }
        };
        assert_eq!(late, "timeout");
        wire.ping().await;
    }
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
