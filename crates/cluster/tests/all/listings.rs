//! Listings and index queries over several nodes and real sockets.

use crate::support::{Cluster, PATIENCE, bucket, put_request, soon};
use bytes::Bytes;
use ombak_kv::{IndexQuery, PutOptions, QueryRange, head_terms};
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Error, IndexEntry, IndexTerm, Quorum};
use std::ops::Bound;
use std::sync::Arc;

const KEYS: usize = 3_000;

async fn filled(count: usize) -> (Cluster, Vec<String>) {
    let cluster = Cluster::of(count);
    let keys = fill(&cluster, count).await;
    (cluster, keys)
}

async fn fill(cluster: &Cluster, count: usize) -> Vec<String> {
    // Long keys, so that an answer is larger than its window.
    let key = |number: usize| format!("{number:06}{}", "k".repeat(2_000));
    for number in 0..KEYS {
        let all = PutOptions { w: Some(Quorum::All), ..PutOptions::default() };
        cluster.put(number % count, &key(number), "v", all).await.unwrap();
    }
    (0..KEYS).map(key).collect()
}

async fn list(cluster: &Cluster, through: usize) -> Result<Vec<String>, Error> {
    let mut listing = cluster.node(through).kv().list_keys(&bucket(), Some(PATIENCE))?;
    let mut keys = Vec::new();
    while let Some(batch) = listing.next().await {
        keys.extend(batch?.iter().map(|key| String::from_utf8(key.to_vec()).unwrap()));
    }
    keys.sort();
    Ok(keys)
}

fn all_keys() -> IndexQuery {
    let range = QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded };
    IndexQuery { bucket: bucket(), range, after: None, results_max: None, pattern: None, shows_tombstones: false }
}

async fn query(cluster: &Cluster, through: usize) -> Result<Vec<String>, Error> {
    let mut results = cluster.node(through).kv().query(all_keys(), Some(PATIENCE))?;
    let mut keys = Vec::new();
    while let Some(batch) = results.next().await {
        keys.extend(batch?.iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()));
    }
    Ok(keys)
}

#[tokio::test]
async fn every_node_lists_every_key_once_and_in_order_where_it_matters() {
    let (cluster, keys) = soon(filled(4)).await;
    for through in 0..4 {
        assert_eq!(soon(list(&cluster, through)).await.unwrap(), keys);
        assert_eq!(soon(query(&cluster, through)).await.unwrap(), keys);
        let mut buckets = cluster.node(through).kv().list_buckets(&Bytes::from_static(b"default"), None).unwrap();
        let name = bucket().name;
        assert_eq!(soon(buckets.next()).await, Some(Ok(vec![name])));
        assert_eq!(soon(buckets.next()).await, None);
    }
    cluster.stop().await;
}

/// The listings have begun, and the window of the node that stops is not used up.
#[tokio::test]
async fn a_node_that_stops_in_the_middle_is_replaced_by_other_replicas() {
    let (cluster, keys) = soon(filled(4)).await;
    let kv = cluster.node(0).kv();
    let mut listing = kv.list_keys(&bucket(), Some(PATIENCE)).unwrap();
    let mut results = kv.query(all_keys(), Some(PATIENCE)).unwrap();
    let mut listed = soon(listing.next()).await.unwrap().unwrap();
    let mut found = soon(results.next()).await.unwrap().unwrap();
    soon(cluster.node(2).stop()).await;
    cluster.beliefs.set_down(cluster.id(2), true);
    while let Some(batch) = soon(listing.next()).await {
        listed.extend(batch.unwrap());
    }
    while let Some(batch) = soon(results.next()).await {
        found.extend(batch.unwrap());
    }
    listed.sort();
    assert_eq!(listed.iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>(), keys);
    assert_eq!(found.iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()).collect::<Vec<_>>(), keys);
    cluster.stop().await;
}

/// A term is as long as an object may be, on one node and on several.
#[tokio::test]
async fn a_term_longer_than_the_window_of_a_stream_is_found_through_every_node() {
    // The stores of the other tests read no index entries.
    let cluster = Cluster::configured(4, |parts| {
        parts.kv.backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    });
    let term = IndexTerm::Bin(Bytes::from(vec![b't'; 3 << 20]));
    let field = Bytes::from_static(b"f_bin");
    let mut request = put_request("k", "v", PutOptions { w: Some(Quorum::All), ..PutOptions::default() });
    request.object.siblings[0].meta.indexes = vec![IndexEntry { field: field.clone(), term: term.clone() }];
    soon(cluster.node(0).kv().put(request)).await.unwrap();
    let (from, to) = (IndexTerm::Bin("a".into()), IndexTerm::Bin("z".into()));
    let range = QueryRange::Terms { field, from, to };
    for through in 0..4 {
        let query = IndexQuery { range: range.clone(), ..all_keys() };
        let mut results = cluster.node(through).kv().query(query, Some(PATIENCE)).unwrap();
        let found = soon(results.next()).await.unwrap().unwrap();
        assert_eq!(found.iter().map(|found| &found.key[..]).collect::<Vec<_>>(), [b"k"]);
        assert!(found[0].term == Some(term.clone()), "through node {through}");
        assert!(soon(results.next()).await.is_none());
    }
    cluster.stop().await;
}

/// More listings than the asking node has windows for answers of another one. Those that nobody
/// reads end on the other nodes, so another listing goes on; and so do they, when they are read.
#[tokio::test]
async fn listings_that_nobody_reads_leave_others_their_places() {
    // Room for 113 windows.
    let cluster = Cluster::configured(4, |parts| parts.transport.mux.arriving_bytes_max = 64 << 20);
    let keys = soon(fill(&cluster, 4)).await;
    let kv = cluster.node(0).kv();
    let mut unread = Vec::new();
    for _ in 0..150 {
        let mut listing = kv.list_keys(&bucket(), None).unwrap();
        let first = soon(listing.next()).await.unwrap().unwrap();
        unread.push((listing, first));
    }
    assert_eq!(soon(list(&cluster, 0)).await.unwrap(), keys);
    assert_eq!(soon(query(&cluster, 0)).await.unwrap(), keys);
    for (mut listing, mut listed) in unread.into_iter().take(5) {
        while let Some(batch) = soon(listing.next()).await {
            listed.extend(batch.unwrap());
        }
        listed.sort();
        assert_eq!(listed.iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>(), keys);
    }
    cluster.stop().await;
}
