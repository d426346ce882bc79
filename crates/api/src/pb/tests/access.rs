//! Every request passes the gate before its feature sees it.

use super::*;
use crate::access::NotedAccesses;
use bytes::Bytes;
use ombak_proto::messages::{
    DtFetchReq, DtUpdateReq, RpbContent, RpbCounterUpdateReq, RpbCsBucketReq, RpbDelReq, RpbGetBucketKeyPreflistReq,
    RpbGetBucketReq, RpbGetBucketTypeReq, RpbGetReq, RpbIndexReq, RpbListBucketsReq, RpbListKeysReq, RpbPair,
    RpbPutReq, RpbResetBucketReq, RpbSetBucketReq, RpbSetBucketTypeReq,
};

fn framed<M: Message>(code: u8, message: &M) -> Vec<u8> {
    let mut out = Vec::new();
    write_message(code, message, &mut out);
    out
}

/// A request with each code that needs a permission, with the permission and the place.
fn requests() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let (b, k) = (|| Bytes::from("b"), || Bytes::from("k"));
    let small = RpbContent { value: "v".into(), ..RpbContent::default() };
    let many_pairs = vec![RpbPair::default(); 2_000];
    let large = RpbContent { value: vec![0; 1 << 17].into(), usermeta: many_pairs, ..RpbContent::default() };
    let put = RpbPutReq { bucket: Some(b()), key: Some(k()), content: Some(small), ..RpbPutReq::default() };
    let get = RpbGetReq { bucket: Some(b()), key: Some(k()), ..RpbGetReq::default() };
    vec![
        (framed(code::PUT_REQ, &put), "riak_kv.put", "default/b"),
        (framed(code::PUT_REQ, &RpbPutReq { content: Some(large), ..put }), "riak_kv.put", "-/b"),
        (framed(code::GET_REQ, &get), "riak_kv.get", "default/b"),
        (framed(code::GET_REQ, &RpbGetReq { r#type: Some("t".into()), ..get }), "riak_kv.get", "t/b"),
        (
            framed(code::DEL_REQ, &RpbDelReq { bucket: Some(b()), key: Some(k()), ..RpbDelReq::default() }),
            "riak_kv.delete",
            "default/b",
        ),
        (
            framed(code::LIST_KEYS_REQ, &RpbListKeysReq { bucket: b(), ..RpbListKeysReq::default() }),
            "riak_kv.list_keys",
            "-/b",
        ),
        (framed(code::LIST_BUCKETS_REQ, &RpbListBucketsReq::default()), "riak_kv.list_buckets", "-/-"),
        (
            framed(code::INDEX_REQ, &RpbIndexReq { bucket: b(), index: "$bucket".into(), ..RpbIndexReq::default() }),
            "riak_kv.index",
            "-/b",
        ),
        (
            framed(code::CS_BUCKET_REQ, &RpbCsBucketReq { bucket: b(), ..RpbCsBucketReq::default() }),
            "riak_kv.index",
            "-/b",
        ),
        (
            framed(code::PREFLIST_REQ, &RpbGetBucketKeyPreflistReq { bucket: b(), key: k(), r#type: None }),
            "riak_kv.get_preflist",
            "-/b",
        ),
        (framed(code::GET_BUCKET_REQ, &RpbGetBucketReq { bucket: b(), r#type: None }), "riak_core.get_bucket", "-/b"),
        (
            framed(code::SET_BUCKET_REQ, &RpbSetBucketReq { bucket: b(), ..RpbSetBucketReq::default() }),
            "riak_core.set_bucket",
            "-/b",
        ),
        (
            framed(code::RESET_BUCKET_REQ, &RpbResetBucketReq { bucket: b(), r#type: None }),
            "riak_core.set_bucket",
            "-/b",
        ),
        (
            framed(code::GET_BUCKET_TYPE_REQ, &RpbGetBucketTypeReq { r#type: "t".into() }),
            "riak_core.get_bucket_type",
            "t/-",
        ),
        (
            framed(
                code::SET_BUCKET_TYPE_REQ,
                &RpbSetBucketTypeReq { r#type: "t".into(), ..RpbSetBucketTypeReq::default() },
            ),
            "riak_core.set_bucket_type",
            "t/-",
        ),
        (
            framed(code::DT_FETCH_REQ, &DtFetchReq { bucket: b(), r#type: "t".into(), ..DtFetchReq::default() }),
            "riak_kv.get",
            "t/b",
        ),
        (
            framed(code::DT_UPDATE_REQ, &DtUpdateReq { bucket: b(), r#type: "t".into(), ..DtUpdateReq::default() }),
            "riak_kv.put",
            "t/b",
        ),
        (
            framed(code::COUNTER_UPDATE_REQ, &RpbCounterUpdateReq { bucket: b(), ..RpbCounterUpdateReq::default() }),
            "riak_kv.put",
            "-/b",
        ),
    ]
}

#[tokio::test]
pub(super) async fn the_policy_is_asked_for_each_request_and_its_refusal_is_the_answer() {
    let policy = Arc::new(NotedAccesses::refusing());
    let node = Node::with(PbConfig { policy: Some(policy.clone()), ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    for (bytes, permission, place) in requests() {
        wire.send_bytes(&bytes).await;
        assert_eq!(wire.expect_error().await, format!("no {permission}"));
        assert_eq!(policy.take(), [(permission, place.to_owned())]);
    }
    assert_eq!(node.stat("node_puts_total") + node.stat("node_gets_total"), 0, "the engine was not asked");
    // Requests that are sent together pass the gate one by one.
    let all: Vec<u8> = requests().into_iter().flat_map(|(bytes, ..)| bytes).collect();
    wire.send_bytes(&all).await;
    for (_, permission, _) in requests() {
        assert_eq!(wire.expect_error().await, format!("no {permission}"));
    }
    assert_eq!(policy.take().len(), requests().len());
    wire.ping().await;
    assert!(policy.take().is_empty(), "a ping needs no permission");
}

#[tokio::test]
async fn a_policy_that_allows_changes_nothing() {
    let policy = Arc::new(NotedAccesses::default());
    let node = Node::with(PbConfig { policy: Some(policy.clone()), ..PbConfig::default() }).await;
    let mut wire = node.connect().await;
    let content = Some(RpbContent { value: "v".into(), ..RpbContent::default() });
    let put = RpbPutReq { bucket: Some("b".into()), key: Some("k".into()), content, ..RpbPutReq::default() };
    wire.send(code::PUT_REQ, &put).await;
    wire.expect_empty(code::PUT_RESP).await;
    assert_eq!(policy.take(), [("riak_kv.put", "default/b".to_owned())]);
}
