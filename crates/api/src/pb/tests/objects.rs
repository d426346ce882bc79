//! Get, put and delete.

use super::*;
use bytes::Bytes;
use ombak_proto::messages::{RpbContent, RpbDelReq, RpbGetReq, RpbGetResp, RpbLink, RpbPair, RpbPutReq, RpbPutResp};
use ombak_storage::fs::sim::{Call, FaultyFs};
use serde_json::json;

fn get(bucket: &str, key: &str) -> RpbGetReq {
    RpbGetReq { bucket: Some(bucket.to_owned().into()), key: Some(key.to_owned().into()), ..RpbGetReq::default() }
}

fn put(bucket: &str, key: &str, value: &str) -> RpbPutReq {
    RpbPutReq {
        bucket: Some(bucket.to_owned().into()),
        key: Some(key.to_owned().into()),
        content: Some(content(value)),
        ..RpbPutReq::default()
    }
}

fn delete(bucket: &str, key: &str) -> RpbDelReq {
    RpbDelReq { bucket: Some(bucket.to_owned().into()), key: Some(key.to_owned().into()), ..RpbDelReq::default() }
}

fn content(value: &str) -> RpbContent {
    RpbContent { value: value.to_owned().into(), content_type: Some("text/plain".into()), ..RpbContent::default() }
}

fn values(contents: &[RpbContent]) -> Vec<&[u8]> {
    contents.iter().map(|c| &c.value[..]).collect()
}

impl Wire {
    async fn get(&mut self, request: &RpbGetReq) -> RpbGetResp {
        self.ask(code::GET_REQ, request, code::GET_RESP).await
    }

    async fn put(&mut self, request: &RpbPutReq) -> RpbPutResp {
        self.ask(code::PUT_REQ, request, code::PUT_RESP).await
    }

    async fn delete(&mut self, request: &RpbDelReq) {
        self.send(code::DEL_REQ, request).await;
        self.expect_empty(code::DEL_RESP).await;
    }
}

#[tokio::test]
pub(super) async fn everything_a_client_stores_comes_back() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let stored = RpbContent {
        charset: Some("utf-8".into()),
        content_encoding: Some("gzip".into()),
        links: vec![RpbLink { bucket: Some("b".into()), key: Some("x".into()), tag: Some("t".into()) }],
        usermeta: vec![RpbPair { key: "X-Riak-Meta-Foo".into(), value: Some("bar".into()) }],
        indexes: vec![
            RpbPair { key: "A_bin".into(), value: Some("x".into()) },
            RpbPair { key: "n_int".into(), value: Some("-5".into()) },
        ],
        ..content("v")
    };
    let reply = wire.put(&RpbPutReq { content: Some(stored.clone()), ..put("b", "k", "") }).await;
    assert_eq!(reply, RpbPutResp::default());
    let found = wire.get(&get("b", "k")).await;
    let [only] = &found.content[..] else { panic!("{} siblings", found.content.len()) };
    assert!(only.vtag.is_some() && only.last_mod.is_some() && only.last_mod_usecs.is_some() && only.deleted.is_none());
    let mut expected = stored;
    expected.indexes[0].key = "a_bin".into();
    let plain = RpbContent { vtag: None, last_mod: None, last_mod_usecs: None, ..only.clone() };
    assert_eq!(plain, expected);

    let head = wire.get(&RpbGetReq { head: Some(true), ..get("b", "k") }).await;
    assert_eq!(head.content, [RpbContent { value: Bytes::new(), ..only.clone() }]);
    assert_eq!(head.vclock, found.vclock);
}

#[tokio::test]
async fn index_entries_are_stored_in_order_and_each_once() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let pair = |key: &'static str, value: &'static str| RpbPair { key: key.into(), value: Some(value.into()) };
    let given =
        vec![pair("tag_bin", "b"), pair("n_int", "10"), pair("TAG_bin", "a"), pair("n_int", "9"), pair("tag_bin", "b")];
    let content = RpbContent { indexes: given, ..content("v") };
    wire.put(&RpbPutReq { content: Some(content), ..put("b", "k", "") }).await;
    let stored = wire.get(&get("b", "k")).await.content.remove(0).indexes;
    assert_eq!(stored, [pair("n_int", "9"), pair("n_int", "10"), pair("tag_bin", "a"), pair("tag_bin", "b")]);
}

#[tokio::test]
async fn a_put_says_as_much_as_it_was_asked_for() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let body = wire.put(&RpbPutReq { return_body: Some(true), ..put("b", "k", "v") }).await;
    assert_eq!((values(&body.content), body.key.is_none()), (vec![&b"v"[..]], true));
    let head = wire.put(&RpbPutReq { return_head: Some(true), vclock: body.vclock, ..put("b", "k", "w") }).await;
    assert_eq!(values(&head.content), [b""]);
    let made = wire.put(&RpbPutReq { key: None, ..put("b", "", "m") }).await.key.expect("a key");
    assert!(made.len() >= 20 && made.iter().all(u8::is_ascii_alphanumeric), "{made:?}");
    let found = wire.get(&RpbGetReq { key: Some(made), ..get("b", "") }).await;
    assert_eq!(values(&found.content), [b"m"]);
}

#[tokio::test]
pub(super) async fn siblings_tombstones_and_clocks() {
    let node = Node::start().await;
    node.bucket_type("sibs", json!({})).await;
    let mut wire = node.connect().await;
    let typed_get = RpbGetReq { r#type: Some("sibs".into()), ..get("b", "s") };
    let typed_put = |value| RpbPutReq { r#type: Some("sibs".into()), ..put("b", "s", value) };
    wire.put(&typed_put("a")).await;
    let seen = wire.get(&typed_get).await.vclock;
    wire.put(&typed_put("b")).await;
    let both = wire.get(&typed_get).await;
    assert_eq!(both.content.len(), 2);

    wire.delete(&RpbDelReq { r#type: Some("sibs".into()), vclock: seen, ..delete("b", "s") }).await;
    let found = wire.get(&typed_get).await;
    let deleted = found.content.iter().filter(|c| c.deleted == Some(true) && c.value.is_empty()).count();
    assert_eq!((found.content.len(), deleted), (2, 1));

    wire.put(&RpbPutReq { vclock: found.vclock, ..typed_put("resolved") }).await;
    let resolved = wire.get(&typed_get).await;
    assert_eq!(values(&resolved.content), [b"resolved"]);

    let same = wire.get(&RpbGetReq { if_modified: resolved.vclock, ..typed_get.clone() }).await;
    assert_eq!(same, RpbGetResp { unchanged: Some(true), ..RpbGetResp::default() });
    let changed = wire.get(&RpbGetReq { if_modified: both.vclock, ..typed_get.clone() }).await;
    assert_eq!(values(&changed.content), [b"resolved"]);
}

#[tokio::test]
async fn a_deleted_key_is_not_found_but_its_clock_can_be_asked_for() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    wire.delete(&delete("b", "never")).await;
    wire.put(&put("b", "k", "v")).await;
    wire.delete(&delete("b", "k")).await;
    assert_eq!(wire.get(&get("b", "k")).await, RpbGetResp::default());
    let tombstone = wire.get(&RpbGetReq { deletedvclock: Some(true), ..get("b", "k") }).await;
    assert!(tombstone.content.is_empty() && tombstone.vclock.is_some(), "{tombstone:?}");
}

#[tokio::test]
pub(super) async fn refusals_have_riaks_words_and_leave_the_connection_open() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let index = |name: &'static str, value: &'static str| {
        let indexes = vec![RpbPair { key: name.into(), value: Some(value.into()) }];
        RpbPutReq { content: Some(RpbContent { indexes, ..content("v") }), ..put("b", "k", "") }
    };
    wire.put(&put("b", "k", "v")).await;
    let puts = [
        (put("", "k", "v"), "Bucket cannot be zero-length"),
        (put("b", "", "v"), "Key cannot be zero-length"),
        (RpbPutReq { r#type: Some("".into()), ..put("b", "k", "v") }, "Type cannot be zero-length"),
        (RpbPutReq { r#type: Some("nonesuch".into()), ..put("b", "k", "v") }, "no_type"),
        (RpbPutReq { w: Some(9), ..put("b", "k", "v") }, "{n_val_violation,3}"),
        (RpbPutReq { if_none_match: Some(true), ..put("b", "k", "v") }, "match_found"),
        (RpbPutReq { if_not_modified: Some(true), ..put("b", "k", "v") }, "modified"),
        (RpbPutReq { if_not_modified: Some(true), ..put("b", "absent", "v") }, "notfound"),
        (index("n_int", "zork"), "{precommit_fail,[{field_parsing_failed,{<<\"n_int\">>,<<\"zork\">>}}]}"),
        (index("zork", "1"), "{precommit_fail,[{unknown_field_type,<<\"zork\">>}]}"),
    ];
    for (request, text) in puts {
        assert_eq!(wire.ask_refused(code::PUT_REQ, &request).await, text);
    }
    let gets = [
        (get("", "k"), "Bucket cannot be zero-length"),
        (get("b", ""), "Key cannot be zero-length"),
        (RpbGetReq { r: Some(9), ..get("b", "k") }, "{n_val_violation,3}"),
        (RpbGetReq { n_val: Some(9), ..get("b", "k") }, "{n_val_violation,9}"),
        (RpbGetReq { node_confirms: Some(9), ..get("b", "k") }, "{insufficient_nodes,1,need,9}"),
        (RpbGetReq { r#type: Some("nonesuch".into()), ..get("b", "k") }, "no_type"),
    ];
    for (request, text) in gets {
        assert_eq!(wire.ask_refused(code::GET_REQ, &request).await, text);
    }
    let deletes = [
        (RpbDelReq { rw: Some(9), ..delete("b", "k") }, "{n_val_violation,3}"),
        (RpbDelReq { r#type: Some("nonesuch".into()), ..delete("b", "k") }, "no_type"),
    ];
    for (request, text) in deletes {
        assert_eq!(wire.ask_refused(code::DEL_REQ, &request).await, text);
    }
    let bad_clock = RpbPutReq { vclock: Some("zork".into()), ..put("b", "k", "v") };
    assert!(wire.ask_refused(code::PUT_REQ, &bad_clock).await.contains("vclock does not decode"));
    wire.ping().await;
}

#[tokio::test]
async fn a_request_that_names_no_key_finds_and_deletes_nothing() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    assert_eq!(wire.get(&RpbGetReq { key: None, ..get("b", "") }).await, RpbGetResp::default());
    wire.delete(&RpbDelReq { key: None, ..delete("b", "") }).await;
}

#[tokio::test]
pub(super) async fn pipelined_requests_are_answered_in_order_and_see_what_came_before_them() {
    answers_in_order(&Node::start().await, 300).await;
}

#[tokio::test]
async fn so_they_are_when_each_write_waits_for_the_disk() {
    answers_in_order(&Node::synced().await, 60).await;
}

async fn answers_in_order(node: &Node, rounds: usize) {
    let mut wire = node.connect().await;
    let mut out = Vec::new();
    for n in 0..rounds {
        let key = format!("k{}", n % 7);
        write_message(code::PUT_REQ, &put("b", &key, &n.to_string()), &mut out);
        if n % 3 == 0 {
            write_message(code::GET_REQ, &get("b", &key), &mut out);
        }
        if n % 20 == 0 {
            write_empty(code::PING_REQ, &mut out);
            write_message(code::GET_REQ, &get("", "k"), &mut out);
        }
    }
    wire.send_bytes(&out).await;
    for n in 0..rounds {
        wire.expect_empty(code::PUT_RESP).await;
        if n % 3 == 0 {
            let found: RpbGetResp = wire.expect(code::GET_RESP).await;
            assert_eq!(values(&found.content), [n.to_string().as_bytes()]);
        }
        if n % 20 == 0 {
            wire.expect_empty(code::PING_RESP).await;
            assert_eq!(wire.expect_error().await, "Bucket cannot be zero-length");
        }
    }
}

/// A put that times out delays later requests for the same key until it can no longer be executed.
/// Other keys are not delayed.
#[tokio::test]
async fn a_put_that_timed_out_comes_before_what_follows_it_or_never() {
    let (fs, dir) = (FaultyFs::new(1), tempfile::tempdir().unwrap());
    let stores = BitcaskFactory::new(fs.clone(), dir.path().join("bitcask"), JournalConfig::default()).unwrap();
    let mut config = KvConfig::new("ombak@127.0.0.1", dir.path(), Arc::new(stores));
    config.ring_size = 8;
    config.default_props.insert("allow_mult".into(), true.into());
    let node = Node::configured(config, dir, PbConfig::default()).await;
    let mut wire = node.connect().await;
    wire.put(&put("b", "k", "old")).await;
    // The client has not seen the current value, so the node must read it to keep it as a sibling.
    // The disk does not answer.
    fs.set_nothing_is_cached(true);
    fs.hold(Call::Read);
    let mut out = Vec::new();
    let late = RpbPutReq { timeout: Some(50), ..put("b", "k", "late") };
    for request in [late, put("b", "k", "next"), put("b", "other", "v")] {
        write_message(code::PUT_REQ, &request, &mut out);
    }
    wire.send_bytes(&out).await;
    assert_eq!(wire.expect_error().await, "timeout");
    let keys = || node.kv.vnode_status().iter().map(|(_, status)| status.keys).sum::<u64>();
    until("the put of another key is executed", async || keys() == 2).await;
    fs.release(Call::Read);
    for _ in ["next", "other"] {
        wire.expect_empty(code::PUT_RESP).await;
    }
    let found = wire.get(&get("b", "k")).await;
    let mut found = values(&found.content);
    found.sort_unstable();
    assert_eq!(found, [&b"next"[..], b"old"]);
}

#[tokio::test]
pub(super) async fn values_larger_than_any_buffer_come_back_whole() {
    let node = Node::start().await;
    let mut wire = node.connect().await;
    let value = "0123456789abcdef".repeat(200_000);
    wire.put(&put("b", "big", &value)).await;
    let found = wire.get(&get("b", "big")).await;
    assert!(values(&found.content) == [value.as_bytes()]);
    wire.put(&put("b", "small", "s")).await;
    assert_eq!(values(&wire.get(&get("b", "small")).await.content), [b"s"]);
}
