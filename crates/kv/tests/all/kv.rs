//! The engine on memory stores, as a client sees it.

use crate::support;

use crate::support::{Node, all, bucket, found, map, values};
use bytes::Bytes;
use ombak_kv::{
    DeleteMode, DeleteReply, GetOptions, GetReply, GetRequest, ObjectLimits, PutCondition, PutOptions, PutReply,
    PutRequest,
};
use ombak_types::{Bucket, Error, Object, Quorum, Sibling, VectorClock};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn a_value_is_read_back_with_its_metadata() {
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let object = found(node.get("k").await.unwrap());
    assert_eq!(values(&object), ["v"]);
    let meta = &object.siblings[0].meta;
    assert_eq!(meta.vtag.as_ref().unwrap().len(), 22);
    assert!(meta.last_modified.is_some() && meta.dot.is_some());
    assert_eq!(object.clock.entries().len(), 1);
    assert_eq!(object.clock.entries()[0].actor.as_bytes().len(), 12);
    assert_eq!(node.get("other").await, Ok(GetReply::NotFound { tombstone: None }));
}

#[tokio::test]
async fn every_put_has_a_vtag_of_its_own_and_time_never_goes_back() {
    let node = Node::start();
    let mut last = None;
    let mut tags = BTreeSet::new();
    for i in 0..100 {
        node.put("k", &i.to_string(), VectorClock::new()).await.unwrap();
        let object = found(node.get("k").await.unwrap());
        let meta = object.siblings[0].meta.clone();
        assert!(meta.last_modified > last, "put {i}");
        last = meta.last_modified;
        assert!(tags.insert(meta.vtag));
    }
}

#[tokio::test]
async fn without_allow_mult_the_last_put_wins_and_its_clock_descends() {
    let node = Node::start();
    let first = node.put_back("k", "1", VectorClock::new()).await;
    let second = node.put_back("k", "2", VectorClock::new()).await;
    assert_eq!(values(&second), ["2"]);
    assert!(second.clock.dominates(&first.clock));
}

#[tokio::test]
async fn concurrent_puts_become_siblings_and_are_resolved_by_their_clock() {
    let node = Node::start();
    node.kv.buckets().create_type(b"sibs", &map(json!({}))).unwrap();
    node.kv.buckets().activate_type(b"sibs").unwrap();
    let in_sibs = Bucket::typed("sibs", "b");
    let put = |value: &str, clock| {
        let mut request = node.put_request("k", value, clock);
        request.bucket = in_sibs.clone();
        request.options.return_body = true;
        let kv = node.kv.clone();
        async move { kv.put(request).await.unwrap().object.unwrap() }
    };
    let one = put("1", VectorClock::new()).await;
    let both = put("2", VectorClock::new()).await;
    assert_eq!(values(&both), ["1", "2"]);
    let stale = put("3", one.clock).await;
    assert_eq!(values(&stale), ["2", "3"], "the client had seen 1 only");
    let resolved = put("4", stale.clock).await;
    assert_eq!(values(&resolved), ["4"]);
    let request = GetRequest { bucket: in_sibs.clone(), key: "k".into(), options: GetOptions::default() };
    assert_eq!(values(&found(node.kv.get(request).await.unwrap())), ["4"]);
}

fn content_types(object: &Object) -> Vec<String> {
    let text = |s: &Sibling| String::from_utf8(s.meta.content_type.as_ref().unwrap().to_vec()).unwrap();
    object.siblings.iter().map(text).collect()
}

/// Every answer sorts siblings by their values, whatever the order of writing: the answers of puts,
/// of gets and of heads. A head has no values, so the test also marks each sibling with its content
/// type.
#[tokio::test]
async fn siblings_are_answered_in_the_order_of_their_values() {
    let node = Node::with_siblings();
    let mut last = Object::default();
    for value in ["b", "c", "", "ab", "a"] {
        let mut request = node.put_request("k", value, VectorClock::new());
        request.object.siblings[0].meta.content_type = Some(Bytes::from(format!("text/{value}")));
        request.options.return_body = true;
        last = node.kv.put(request).await.unwrap().object.unwrap();
    }
    assert_eq!(values(&last), ["", "a", "ab", "b", "c"]);
    assert_eq!(values(&found(node.get("k").await.unwrap())), values(&last));

    // A store keeps the sibling order of an imported object, as earlier versions kept siblings in
    // the order of writing.
    last.siblings.reverse();
    node.kv.importer().import(&bucket(), b"old", last).unwrap();
    assert_eq!(values(&found(node.get("old").await.unwrap())), ["", "a", "ab", "b", "c"]);
    for key in ["k", "old"] {
        let mut request = node.get_request(key);
        request.options.head = true;
        let head = found(node.kv.get(request).await.unwrap());
        assert_eq!(values(&head), ["", "", "", "", ""]);
        assert_eq!(content_types(&head), ["text/", "text/a", "text/ab", "text/b", "text/c"], "{key}");
    }
}

/// riak_test sibling_explosion: two clients with stale clocks get at most two siblings, and every
/// write is represented.
#[tokio::test]
async fn interleaved_clients_do_not_pile_up_siblings() {
    let node = Node::with_siblings();
    let mut clocks = [VectorClock::new(), VectorClock::new()];
    for round in 0..20 {
        for (client, clock) in clocks.iter_mut().enumerate() {
            let value = format!("{client}-{round}");
            let object = node.put_back("k", &value, clock.clone()).await;
            assert!(object.siblings.len() <= 2, "{:?}", values(&object));
            assert!(values(&object).contains(&value));
            *clock = object.clock;
        }
    }
}

#[tokio::test]
async fn deletes_leave_tombstones_that_reads_do_not_show() {
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: true }));
    let GetReply::NotFound { tombstone: Some(clock) } = node.get("k").await.unwrap() else { panic!("no tombstone") };
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: false }));
    assert_eq!(node.delete("never").await, Ok(DeleteReply { found: false }));
    assert_eq!(node.list_keys().await, BTreeSet::new());
    assert_eq!(node.list_buckets().await, BTreeSet::new());
    let again = node.put_back("k", "w", clock.clone()).await;
    assert!(again.clock.dominates(&clock));
    assert_eq!(node.list_keys().await, BTreeSet::from(["k".into()]));
}

#[tokio::test]
async fn a_tombstone_with_an_old_clock_is_a_sibling() {
    let node = Node::with_siblings();
    let old = node.put_back("k", "1", VectorClock::new()).await;
    node.put("k", "2", old.clock.clone()).await.unwrap();
    let mut request = node.delete_request("k");
    request.clock = Some(old.clock);
    assert_eq!(node.kv.delete(request).await, Ok(DeleteReply { found: true }));
    let object = found(node.get("k").await.unwrap());
    assert_eq!(object.siblings.iter().map(|s| s.meta.deleted).collect::<Vec<_>>(), [true, false]);
    assert_eq!(node.list_keys().await.len(), 1);
}

#[tokio::test]
async fn tombstones_are_reaped_at_once_or_after_a_while_and_only_as_they_are() {
    for mode in [DeleteMode::Immediate, DeleteMode::After(Duration::from_millis(150))] {
        let node = Node::configured(|c| c.delete_mode = mode);
        node.put("k", "v", VectorClock::new()).await.unwrap();
        node.put("kept", "v", VectorClock::new()).await.unwrap();
        node.delete("k").await.unwrap();
        node.delete("kept").await.unwrap();
        node.put("kept", "back", VectorClock::new()).await.unwrap();
        node.wait_for_keys_stored(1).await;
        assert_eq!(node.get("k").await, Ok(GetReply::NotFound { tombstone: None }));
        assert_eq!(values(&found(node.get("kept").await.unwrap())), ["back"]);
    }
}

#[tokio::test]
async fn conditions_are_checked() {
    let node = Node::start();
    let put = async |condition, value: &str| {
        let mut request = node.put_request("k", value, VectorClock::new());
        request.options.condition = condition;
        node.kv.put(request).await.map(drop)
    };
    assert_eq!(put(PutCondition::IfNotModified(VectorClock::new()), "x").await, Err(Error::NotFound));
    assert_eq!(put(PutCondition::IfNoneMatch, "1").await, Ok(()));
    assert_eq!(put(PutCondition::IfNoneMatch, "x").await, Err(Error::MatchFound));
    assert_eq!(put(PutCondition::IfNotModified(VectorClock::new()), "x").await, Err(Error::Modified));
    let clock = found(node.get("k").await.unwrap()).clock;
    assert_eq!(put(PutCondition::IfNotModified(clock), "2").await, Ok(()));
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["2"]);
    node.delete("k").await.unwrap();
    assert_eq!(put(PutCondition::IfNoneMatch, "3").await, Ok(()));
}

/// Of many writers that saw the same version, at most one is acknowledged, because the condition is
/// checked under the key's lock.
#[test]
fn a_condition_lets_one_writer_through() {
    let node = Node::start();
    let runtime = support::runtime();
    for round in 0..50 {
        let key = format!("k{round}");
        let wins: usize = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|i| {
                    let mut request = node.put_request(&key, &i.to_string(), VectorClock::new());
                    request.options.condition = PutCondition::IfNoneMatch;
                    let (node, handle) = (&node, runtime.handle().clone());
                    scope.spawn(move || usize::from(handle.block_on(node.kv.put(request)).is_ok()))
                })
                .collect();
            writers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!(wins, 1, "{key}");
    }
}

#[tokio::test]
async fn quorum_errors_are_riaks() {
    let node = Node::start();
    let get = async |f: fn(&mut GetOptions)| {
        let mut request = node.get_request("k");
        f(&mut request.options);
        node.kv.get(request).await.map(drop).map_err(|e| e.to_string())
    };
    let put = async |f: fn(&mut PutOptions)| {
        let mut request = node.put_request("k", "v", VectorClock::new());
        f(&mut request.options);
        node.kv.put(request).await.map(drop).map_err(|e| e.to_string())
    };
    let refused = |text: &str| Err(text.to_owned());
    assert_eq!(get(|o| o.r = Some(Quorum::Count(9))).await, refused("{n_val_violation,3}"));
    assert_eq!(get(|o| o.n_val = Some(9)).await, refused("{n_val_violation,9}"));
    assert_eq!(get(|o| o.node_confirms = Some(Quorum::Count(9))).await, refused("{insufficient_nodes,1,need,9}"));
    assert_eq!(put(|o| o.w = Some(Quorum::Count(9))).await, refused("{n_val_violation,3}"));
    assert_eq!(put(|o| o.node_confirms = Some(Quorum::Count(9))).await, refused("{n_val_violation,3}"));
    let two_nodes = put(|o| o.node_confirms = Some(Quorum::Count(2))).await;
    assert_eq!(two_nodes, refused("{node_confirms_val_unsatisfied,2,1}"));
    for f in [(|o| o.r = Some(Quorum::Count(0))) as fn(&mut GetOptions), |o| o.pr = Some(Quorum::All)] {
        assert_eq!(get(f).await, Ok(()));
    }
    for f in [
        (|o| o.w = Some(Quorum::Count(0))) as fn(&mut PutOptions),
        |o| o.pw = Some(Quorum::All),
        |o| o.timeout = Some(Duration::ZERO),
        |o| o.sloppy_quorum = false,
    ] {
        assert_eq!(put(f).await, Ok(()));
    }
    let mut request = node.delete_request("missing");
    request.rw = Some(Quorum::Count(9));
    assert_eq!(node.kv.delete(request).await.unwrap_err().to_string(), "{n_val_violation,3}");
}

#[tokio::test]
async fn names_are_checked() {
    let node = Node::start();
    let get = async |bucket: Bucket, key: Bytes| {
        node.kv.get(GetRequest { bucket, key, options: GetOptions::default() }).await.map_err(|e| e.to_string())
    };
    let err = |text: &str| Err(text.to_owned());
    assert_eq!(get(Bucket::untyped(""), "k".into()).await, err("Bucket cannot be zero-length"));
    assert_eq!(get(Bucket::typed("", "b"), "k".into()).await, err("Type cannot be zero-length"));
    assert_eq!(get(bucket(), Bytes::new()).await, err("Key cannot be zero-length"));
    assert_eq!(get(bucket(), vec![0; 65_537].into()).await, err("key_too_large"));
    assert!(get(bucket(), vec![0; 65_536].into()).await.is_ok());
    assert_eq!(get(Bucket::typed("nonesuch", "b"), "k".into()).await, err("no_type"));
    assert!(node.kv.list_keys(&Bucket::typed("nonesuch", "b"), None).is_err());
    assert!(node.kv.list_buckets(&"nonesuch".into(), None).is_err());
}

#[tokio::test]
async fn keys_are_made_when_none_is_given() {
    let node = Node::start();
    let mut request = node.put_request("", "v", VectorClock::new());
    request.key = None;
    let PutReply { key: Some(key), object: None } = node.kv.put(request.clone()).await.unwrap() else {
        panic!("no key")
    };
    assert_eq!(key.len(), 27);
    assert_ne!(node.kv.put(request).await.unwrap().key, Some(key.clone()));
    let key = std::str::from_utf8(&key).unwrap();
    assert_eq!(values(&found(node.get(key).await.unwrap())), ["v"]);
}

#[tokio::test]
async fn objects_beyond_the_limits_are_refused_and_change_nothing() {
    let limits = ObjectLimits { bytes_max: 1000, bytes_warn: 500, siblings_max: 3, siblings_warn: 2 };
    let node = Node::configured(|c| {
        c.limits = limits;
        c.default_props = map(json!({"allow_mult": true}));
    });
    let refused = node.put("large", &"x".repeat(1001), VectorClock::new()).await;
    assert!(matches!(refused, Err(Error::TooLarge { bytes: 1002.., bytes_max: 1000 })), "{refused:?}");
    assert_eq!(node.get("large").await, Ok(GetReply::NotFound { tombstone: None }));
    for i in 0..3 {
        node.put("many", &i.to_string(), VectorClock::new()).await.unwrap();
    }
    assert_eq!(node.put("many", "3", VectorClock::new()).await.map(drop), Err(Error::TooManySiblings(4)));
    assert_eq!(values(&found(node.get("many").await.unwrap())), ["0", "1", "2"]);
    assert_eq!(number(&node, "object_merge_total"), 2);
}

fn number(node: &Node, name: &str) -> u64 {
    node.kv.stats().numbers().into_iter().find(|(is, _)| is == name).unwrap().1
}

#[tokio::test]
async fn write_once_values_converge_and_can_be_deleted() {
    let node = Node::start();
    node.kv.buckets().create_type(b"once", &map(json!({"write_once": true}))).unwrap();
    node.kv.buckets().activate_type(b"once").unwrap();
    let bucket = Bucket::typed("once", "b");
    let put = async |value: &str| {
        let mut request = node.put_request("k", value, VectorClock::new());
        request.bucket = bucket.clone();
        request.options.return_body = true;
        assert_eq!(node.kv.put(request).await, Ok(PutReply { key: None, object: None }));
    };
    let get = async || {
        let options = GetOptions::default();
        node.kv.get(GetRequest { bucket: bucket.clone(), key: "k".into(), options }).await.unwrap()
    };
    put("a").await;
    let first = found(get().await);
    assert!(first.clock.is_empty());
    put("b").await;
    assert_eq!(found(get().await).siblings.len(), 1);
    assert_eq!((number(&node, "write_once_merge"), number(&node, "object_merge_total")), (1, 0));
    let mut delete = node.delete_request("k");
    delete.bucket = bucket.clone();
    assert_eq!(node.kv.delete(delete).await, Ok(DeleteReply { found: true }));
    assert!(matches!(get().await, GetReply::NotFound { tombstone: Some(_) }));
    put("c").await;
    assert_eq!(values(&found(get().await)), ["c"]);
}

#[tokio::test]
async fn asis_keeps_the_clock() {
    let node = Node::with_siblings();
    let source = Node::with_siblings();
    let object = source.put_back("k", "v", VectorClock::new()).await;
    let asis = |object: Object| {
        let options = PutOptions { asis: true, return_body: true, ..PutOptions::default() };
        PutRequest { bucket: bucket(), key: Some("k".into()), object, options }
    };
    let stored = node.kv.put(asis(object.clone())).await.unwrap().object.unwrap();
    assert_eq!(stored, object);
    let other = Node::with_siblings().put_back("k", "w", VectorClock::new()).await;
    let merged = node.kv.put(asis(other.clone())).await.unwrap().object.unwrap();
    assert_eq!(values(&merged), ["v", "w"]);
    assert!(merged.clock.descends(&object.clock) && merged.clock.descends(&other.clock));
    assert_eq!((number(&node, "write_once_merge"), number(&node, "object_merge_total")), (0, 1));
    assert_eq!(merged.clock.entries().len(), 2, "no event of this node");
    // A known version is not stored again, and the answer nevertheless shows its values.
    let known = node.kv.put(asis(object.clone())).await.unwrap().object.unwrap();
    assert_eq!(known, merged);
    let single = Node::with_siblings();
    for _ in 0..2 {
        assert_eq!(single.kv.put(asis(object.clone())).await.unwrap().object.unwrap(), object);
    }
    let bare = Object::new(Sibling::new("plain"));
    assert!(node.kv.put(asis(bare)).await.is_ok());
}

#[tokio::test]
async fn hooks_that_cannot_run_refuse_writes() {
    let node = Node::start();
    let hooks = map(json!({"precommit": [{"mod": "nomod", "fun": "nofun"}]}));
    node.kv.buckets().set_bucket(&bucket(), &hooks).unwrap();
    let refused = node.put("k", "v", VectorClock::new()).await.unwrap_err();
    assert_eq!(refused.to_string(), "{precommit_fail,{hook_crashed,{nomod,nofun,error,undef}}}");
    assert_eq!(node.stat("precommit_fail"), 1);
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: false }));
    let mut delete = node.delete_request("k");
    delete.clock = Some(VectorClock::new());
    assert!(matches!(node.kv.delete(delete).await, Err(Error::PrecommitFail(_))));
    assert_eq!(node.stat("precommit_fail"), 2);
}

/// A bucket's post-commit hooks do not stop a write, as in Riak; each hook that could not run is
/// counted.
#[tokio::test]
async fn post_commit_hooks_that_cannot_run_are_counted() {
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    assert_eq!(node.stat("postcommit_fail"), 0);
    let hooks = map(json!({"postcommit": [{"mod": "m", "fun": "one"}, {"mod": "m", "fun": "two"}]}));
    node.kv.buckets().set_bucket(&bucket(), &hooks).unwrap();
    node.put("k", "w", VectorClock::new()).await.unwrap();
    assert_eq!(node.stat("postcommit_fail"), 2);
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: true }));
    assert_eq!(node.stat("postcommit_fail"), 4);
    let mut refused = node.put_request("k", "x", VectorClock::new());
    refused.options.condition = PutCondition::IfNotModified(VectorClock::new());
    assert!(node.kv.put(refused).await.is_err());
    assert_eq!(node.stat("postcommit_fail"), 4, "nothing was written");
}

#[tokio::test]
async fn plain_puts_work_in_datatype_buckets_and_consistent_ones_are_refused() {
    let node = Node::start();
    for (name, props) in [("sets", json!({"datatype": "set"})), ("strong", json!({"consistent": true}))] {
        node.kv.buckets().create_type(name.as_bytes(), &map(props)).unwrap();
        node.kv.buckets().activate_type(name.as_bytes()).unwrap();
    }
    let mut request = node.put_request("k", "v", VectorClock::new());
    request.bucket = Bucket::typed("sets", "b");
    assert!(node.kv.put(request.clone()).await.is_ok());
    request.bucket = Bucket::typed("strong", "b");
    assert!(matches!(node.kv.put(request).await, Err(Error::Unsupported(_))));
}

#[tokio::test]
async fn listings_show_each_live_key_once_per_bucket_and_type() {
    let node = Node::start();
    node.kv.buckets().create_type(b"t", &map(json!({}))).unwrap();
    node.kv.buckets().activate_type(b"t").unwrap();
    let mut expected = BTreeSet::new();
    for i in 0..2500 {
        let key = format!("key{i}");
        node.put(&key, "v", VectorClock::new()).await.unwrap();
        expected.insert(key);
    }
    for name in ["typed", "bb"] {
        let mut request = node.put_request("other", "v", VectorClock::new());
        request.bucket = Bucket::typed("t", name);
        node.kv.put(request).await.unwrap();
    }
    for i in 0..100 {
        let key = format!("key{i}");
        node.delete(&key).await.unwrap();
        expected.remove(&key);
    }
    assert_eq!(node.list_keys().await, expected);
    assert_eq!(node.list_buckets().await, BTreeSet::from(["b".into()]));
    let typed = all(node.kv.list_buckets(&"t".into(), None).unwrap()).await.unwrap();
    assert_eq!(typed, BTreeSet::from(["typed".into(), "bb".into()]));
    let keys = all(node.kv.list_keys(&Bucket::typed("t", "bb"), None).unwrap()).await.unwrap();
    assert_eq!(keys, BTreeSet::from(["other".into()]));
}

#[tokio::test]
async fn a_listing_ends_at_its_time_limit() {
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let listing = node.kv.list_keys(&bucket(), Some(Duration::ZERO)).unwrap();
    assert_eq!(all(listing).await, Err(Error::Timeout));
}

#[tokio::test]
async fn heads_have_no_values() {
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let mut request = node.get_request("k");
    request.options.head = true;
    let head = found(node.kv.get(request).await.unwrap());
    assert_eq!(values(&head), [""]);
    let mut request = node.put_request("k", "w", head.clock);
    request.options.return_head = true;
    assert_eq!(values(&node.kv.put(request).await.unwrap().object.unwrap()), [""]);
}

#[tokio::test]
async fn too_many_requests_and_a_closed_node_are_refused() {
    let node = Node::configured(|c| c.requests_max = 0);
    assert_eq!(node.get("k").await, Err(Error::Overload));
    let node = Node::start();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    assert!(node.kv.health().ready);
    node.close().await;
    assert_eq!(node.get("k").await, Err(Error::Stopping));
    assert_eq!(node.put("k", "v", VectorClock::new()).await.map(drop), Err(Error::Stopping));
    assert!(node.kv.list_keys(&bucket(), None).is_err());
    assert!(!node.kv.health().ready);
}

#[tokio::test]
async fn the_preference_list_has_n_rows_from_the_home_on() {
    let node = Node::start();
    let rows = node.kv.preflist(&Bucket::untyped("b"), b"k").unwrap();
    assert_eq!(rows.iter().map(|r| r.partition).collect::<Vec<_>>(), [28, 29, 30]);
    assert!(rows.iter().all(|r| r.primary && r.node == node.kv.node_name()));
}

/// Several threads write one key: no write is lost, and no dot is issued twice.
#[test]
fn concurrent_writers_of_one_key_lose_nothing() {
    let node = Node::configured(|c| {
        c.default_props = map(json!({"allow_mult": true, "dvv_enabled": true}));
        c.limits.siblings_max = 1000;
    });
    let runtime = support::runtime();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (node, handle) = (&node, runtime.handle().clone());
            scope.spawn(move || {
                for i in 0..50 {
                    handle.block_on(node.put("k", &format!("{t}-{i}"), VectorClock::new())).unwrap();
                }
            });
        }
    });
    let object = found(runtime.block_on(node.get("k")).unwrap());
    assert_eq!(object.siblings.len(), 200);
    let dots: BTreeSet<_> = object.siblings.iter().map(|s| format!("{:?}", s.meta.dot)).collect();
    assert_eq!(dots.len(), 200);
}

#[tokio::test]
async fn what_was_done_is_counted() {
    let node = Node::start();
    for i in 0..5 {
        node.put(&format!("k{i}"), "v", VectorClock::new()).await.unwrap();
        node.get(&format!("k{i}")).await.unwrap();
    }
    let mut listing = node.kv.list_keys(&bucket(), None).unwrap();
    let names = ["node_puts_total", "node_gets_total", "vnode_puts_total", "vnode_gets_total", "vnode_heads_total"];
    assert_eq!(names.map(|name| node.stat(name)), [5, 5, 5, 5, 0], "one copy of a key on a node");
    assert_eq!(node.stat("list_fsm_active"), 1);
    listing.next().await.unwrap().unwrap();
    drop(listing);
    assert_eq!((node.stat("list_fsm_active"), node.stat("list_fsm_create_total")), (0, 1));
}
