//! Nodes with several backends: which backend holds a bucket's objects (docs/riak/backends.md §6).

use crate::support;
use crate::support::{Node, all, found, map, runtime, values};
use bytes::Bytes;
use ombak_kv::buckets::PropsError;
use ombak_kv::{BackendChoice, GetReply, IndexQuery, KvConfig, Listing, PutRequest, QueryRange, head_terms};
use ombak_storage::{BackendFactory, MemoryConfig, MemoryFactory, MultiFactory};
use ombak_types::{Bucket, Error, IndexEntry, VectorClock};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Backends `a` (the default) and `b`; untyped buckets that begin with `0b:` are in `b`.
fn two(config: &mut KvConfig) {
    let names = ["a", "b"];
    let choice = names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
    let choice = Arc::new(BackendChoice::new(choice, 0, vec![(b"0b:".to_vec(), 1)]));
    let store = |name: &&str| -> (String, Arc<dyn BackendFactory>) {
        ((*name).to_owned(), Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms())))
    };
    config.backend = Arc::new(MultiFactory::new(names.iter().map(store).collect(), choice.clone()));
    config.backend_choice = Some(choice);
}

fn put(node: &Node, bucket: &Bucket, key: &str) -> PutRequest {
    let mut request = PutRequest { bucket: bucket.clone(), ..node.put_request(key, "value", VectorClock::default()) };
    request.object.siblings[0].meta.indexes.push(IndexEntry::parse(b"f_bin", b"t").unwrap());
    request
}

/// The number of keys in each backend, over all partitions.
fn keys(node: &Node) -> [u64; 2] {
    let mut keys = [0; 2];
    for (_, status) in node.kv.vnode_status() {
        for (count, (child, name)) in keys.iter_mut().zip(status.children.iter().zip(["a", "b"])) {
            assert_eq!(child.name, name);
            *count += child.keys;
        }
    }
    keys
}

fn set(node: &Node, bucket: &Bucket, props: Value) {
    node.kv.buckets().set_bucket(bucket, &map(props)).unwrap();
}

async fn listed(listing: Result<Listing, Error>) -> BTreeSet<String> {
    all(listing.unwrap()).await.unwrap()
}

async fn indexed(node: &Node, bucket: &Bucket) -> Vec<String> {
    let term = IndexEntry::parse(b"f_bin", b"t").unwrap().term;
    let range = QueryRange::Terms { field: "f_bin".into(), from: term.clone(), to: term };
    let query = IndexQuery {
        bucket: bucket.clone(),
        range,
        after: None,
        results_max: None,
        pattern: None,
        shows_tombstones: false,
    };
    let mut results = node.kv.query(query, None).unwrap();
    let mut keys = Vec::new();
    while let Some(batch) = results.next().await {
        keys.extend(batch.unwrap().into_iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()));
    }
    keys
}

#[test]
fn a_bucket_lies_where_its_property_says() {
    runtime().block_on(async {
        let node = Node::configured(two);
        node.kv.buckets().create_type(b"t", &map(json!({"backend": "b"}))).unwrap();
        node.kv.buckets().activate_type(b"t").unwrap();
        set(&node, &Bucket::untyped("named"), json!({"backend": "b"}));
        set(&node, &Bucket::typed("t", "back"), json!({"backend": "a"}));
        for (bucket, expected) in [
            (Bucket::untyped("plain"), [1, 0]),
            (Bucket::untyped("named"), [1, 1]),
            (Bucket::typed("t", "any"), [1, 2]),
            (Bucket::typed("t", "back"), [2, 2]),
            (Bucket::untyped("0b:block"), [2, 3]),
            (Bucket::typed("t", "0b:typed"), [2, 4]),
        ] {
            node.kv.put(put(&node, &bucket, "k")).await.unwrap();
            assert_eq!(keys(&node), expected, "{bucket:?}");
            assert_eq!(listed(node.kv.list_keys(&bucket, None)).await, BTreeSet::from(["k".to_owned()]));
            assert_eq!(indexed(&node, &bucket).await, ["k"]);
        }
        // A prefix takes precedence over the property.
        set(&node, &Bucket::untyped("0b:block"), json!({"backend": "a"}));
        node.kv.put(put(&node, &Bucket::untyped("0b:block"), "k2")).await.unwrap();
        assert_eq!(keys(&node), [2, 5]);
        let buckets = listed(node.kv.list_buckets(&Bytes::from_static(b"default"), None)).await;
        assert_eq!(buckets, ["plain", "named", "0b:block"].map(str::to_owned).into());
        node.close().await;
    });
}

#[test]
fn changing_the_property_moves_nothing_and_counts_at_once() {
    runtime().block_on(async {
        let node = Node::configured(two);
        let bucket = support::bucket();
        node.kv.put(put(&node, &bucket, "old")).await.unwrap();
        set(&node, &bucket, json!({"backend": "b"}));
        assert!(matches!(node.kv.get(node.get_request("old")).await, Ok(GetReply::NotFound { .. })));
        assert_eq!(listed(node.kv.list_keys(&bucket, None)).await, BTreeSet::new());
        assert_eq!(listed(node.kv.list_buckets(&Bytes::from_static(b"default"), None)).await, BTreeSet::new());
        assert_eq!(indexed(&node, &bucket).await, Vec::<String>::new());
        node.kv.put(put(&node, &bucket, "new")).await.unwrap();
        assert_eq!(keys(&node), [1, 1]);
        assert_eq!(listed(node.kv.list_keys(&bucket, None)).await, BTreeSet::from(["new".to_owned()]));
        node.kv.buckets().reset_bucket(&bucket).unwrap();
        assert_eq!(values(&found(node.kv.get(node.get_request("old")).await.unwrap())), ["value"]);
        assert_eq!(indexed(&node, &bucket).await, ["old"]);
        node.close().await;
    });
}

#[test]
fn a_backend_that_is_not_there_is_refused() {
    let node = Node::configured(two);
    let registry = node.kv.buckets();
    let unknown = map(json!({"backend": "c"}));
    let is_named = |error: &PropsError| error.to_string().contains("undefined_backend: it is one of a, b");
    assert!(is_named(&registry.set_bucket(&support::bucket(), &unknown).unwrap_err()));
    assert!(is_named(&registry.create_type(b"t", &unknown).unwrap_err()));
    registry.create_type(b"t", &map(json!({}))).unwrap();
    registry.activate_type(b"t").unwrap();
    assert!(is_named(&registry.update_type(b"t", &unknown).unwrap_err()));
    // With one backend, the property has no effect and is kept.
    assert_eq!(Node::start().kv.buckets().set_bucket(&support::bucket(), &unknown), Ok(()));
}

#[test]
fn a_backend_that_is_not_there_any_more_is_an_error_for_its_buckets_only() {
    runtime().block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let before = Node::configured(|config| config.data_dir = dir.path().to_owned());
        set(&before, &support::bucket(), json!({"backend": "gone"}));
        before.close().await;
        drop(before);
        let node = Node::configured(|config| {
            two(config);
            config.data_dir = dir.path().to_owned();
        });
        for failed in [
            node.kv.put(put(&node, &support::bucket(), "k")).await.err(),
            node.kv.get(node.get_request("k")).await.err(),
            all(node.kv.list_keys(&support::bucket(), None).unwrap()).await.err(),
        ] {
            let text = failed.expect("refused").to_string();
            assert!(text.contains("is 'gone', which is not configured (there are a, b)"), "{text}");
        }
        let other = Bucket::untyped("other");
        node.kv.put(put(&node, &other, "k")).await.unwrap();
        let buckets = listed(node.kv.list_buckets(&Bytes::from_static(b"default"), None)).await;
        assert_eq!(buckets, BTreeSet::from(["other".to_owned()]));
        set(&node, &support::bucket(), json!({"backend": "b"}));
        node.kv.put(put(&node, &support::bucket(), "k")).await.unwrap();
        node.close().await;
    });
}
