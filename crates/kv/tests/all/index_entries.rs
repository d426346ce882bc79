//! Index entries of what is written: a coordinator puts them in order, each once, as Riak does. A
//! replica changes nothing (docs/design/replication.md §11).

use crate::support::{Node, bucket, found, map};
use ombak_kv::ImportOutcome;
use ombak_types::{IndexEntry, Object, Sibling, VectorClock};
use serde_json::json;

fn entry(field: &str, term: &str) -> IndexEntry {
    IndexEntry::parse(field.as_bytes(), term.as_bytes()).unwrap()
}

fn unordered() -> Vec<IndexEntry> {
    let entries =
        [("tag_bin", "b"), ("n_int", "10"), ("Tag_bin", "a"), ("n_int", "9"), ("n_int", "010"), ("tag_bin", "b")];
    entries.into_iter().map(|(field, term)| entry(field, term)).collect()
}

fn in_order() -> Vec<IndexEntry> {
    let entries = [("n_int", "9"), ("n_int", "10"), ("tag_bin", "a"), ("tag_bin", "b")];
    entries.into_iter().map(|(field, term)| entry(field, term)).collect()
}

fn indexed(value: &str, clock: VectorClock) -> Object {
    let mut sibling = Sibling::new(value.to_owned());
    sibling.meta.indexes = unordered();
    Object { clock, siblings: vec![sibling] }
}

#[tokio::test]
async fn every_write_of_a_client_has_its_entries_in_order_and_each_once() {
    for props in [json!({}), json!({"allow_mult": true}), json!({"last_write_wins": true})] {
        let node = Node::configured(|config| config.default_props = map(props.clone()));
        for is_asis in [false, true] {
            let key = format!("key {is_asis}");
            let mut request = node.put_request(&key, "", VectorClock::new());
            request.object = indexed("v", VectorClock::new());
            request.options.asis = is_asis;
            request.options.return_body = true;
            let written = node.kv.put(request).await.unwrap().object.unwrap();
            assert_eq!(written.siblings[0].meta.indexes, in_order(), "{props} {is_asis}");
            assert_eq!(found(node.get(&key).await.unwrap()).siblings[0].meta.indexes, in_order(), "{props} {is_asis}");
        }
    }
}

/// A client that reads an object and adds the entry that it already has does not make it grow.
#[tokio::test]
async fn an_entry_that_is_added_again_and_again_is_there_once() {
    let node = Node::start();
    let mut object = indexed("v", VectorClock::new());
    for _ in 0..5 {
        object.siblings[0].meta.indexes.push(entry("tag_bin", "a"));
        let mut request = node.put_request("key", "", VectorClock::new());
        request.object = object;
        node.kv.put(request).await.unwrap();
        object = found(node.get("key").await.unwrap());
        assert_eq!(object.siblings[0].meta.indexes, in_order());
    }
}

#[tokio::test]
async fn a_copy_from_elsewhere_stays_as_it_is() {
    let node = Node::start();
    let copy = indexed("v", VectorClock::new());
    assert_eq!(node.kv.importer().import(&bucket(), b"key", copy).unwrap(), ImportOutcome::New);
    assert_eq!(found(node.get("key").await.unwrap()).siblings[0].meta.indexes, unordered());
}
