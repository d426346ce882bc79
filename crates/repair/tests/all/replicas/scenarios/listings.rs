//! Scenarios of listings.

use super::{with_w, write};
use crate::replicas::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_kv::{Listing, PutOptions, PutRequest};
use ombak_types::{Bucket, Error, VectorClock};
use std::collections::BTreeSet;

async fn names(listing: Result<Listing, Error>) -> Result<Vec<String>, Error> {
    let mut listing = listing?;
    let mut names = Vec::new();
    while let Some(batch) = listing.next().await {
        names.extend(batch?.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()));
    }
    names.sort();
    Ok(names)
}

/// The keys of the bucket, as a node lists them.
pub(super) async fn keys(cluster: &Cluster, through: usize) -> Result<Vec<String>, Error> {
    names(cluster.nodes[through].list_keys(&bucket(), None)).await
}

async fn buckets(cluster: &Cluster, through: usize) -> Result<Vec<String>, Error> {
    names(cluster.nodes[through].list_buckets(&Bytes::from_static(b"default"), None)).await
}

/// Listings of keys and buckets are what was written, through every node, with each node down in
/// turn. With three of four nodes down a listing of keys fails, and a listing of buckets is
/// incomplete.
#[tokio::test]
async fn verify_listkeys() {
    let cluster = Cluster::of(4);
    let all: Vec<_> = (0..200).map(|number| format!("k{number:03}")).collect();
    let mut names = vec!["b".to_owned()];
    for (number, key) in all.iter().enumerate() {
        write(&cluster, number % 4, key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
    }
    for number in 0..40 {
        let name = format!("b{number:02}");
        let options = PutOptions { w: count(3), ..PutOptions::default() };
        let object = super::object("v", &VectorClock::new());
        let request = PutRequest { bucket: Bucket::untyped(name.clone()), key: Some("k".into()), object, options };
        cluster.nodes[number % 4].put(request).await.unwrap();
        names.push(name);
    }
    for down in [None, Some(0), Some(1), Some(2), Some(3)] {
        if let Some(down) = down {
            cluster.set_down(down, true);
        }
        for through in (0..4).filter(|node| Some(*node) != down) {
            assert_eq!(keys(&cluster, through).await.unwrap(), all, "node {down:?} is down");
            assert_eq!(buckets(&cluster, through).await.unwrap(), names, "node {down:?} is down");
        }
        if let Some(down) = down {
            cluster.set_down(down, false);
        }
    }
    let unknown = cluster.nodes[0].list_keys(&Bucket::typed("unknown", "b"), None);
    assert!(matches!(unknown.map(drop), Err(Error::NoType(_))));
    (1..4).for_each(|node| cluster.set_down(node, true));
    assert_eq!(keys(&cluster, 0).await, Err(Error::InsufficientVnodesAvailable));
    let incomplete = buckets(&cluster, 0).await.unwrap();
    let all: BTreeSet<_> = names.iter().collect();
    assert!(!incomplete.is_empty() && incomplete.len() < names.len(), "{incomplete:?}");
    assert!(incomplete.iter().all(|name| all.contains(name)));
}

/// A node that does not take part in coverage is never asked by the listings of others, and its own
/// listings are complete.
#[tokio::test]
async fn coverage_participation() {
    let cluster = Cluster::configured_each(4, |number, config| config.participates_in_coverage = number != 1);
    let all: Vec<_> = (0..100).map(|number| format!("k{number:02}")).collect();
    for key in &all {
        write(&cluster, 0, key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
    }
    // What only this node has shows whether it is asked. A version of the same key elsewhere would
    // hide it, so the key is removed from the other nodes.
    write(&cluster, 0, "only there", "v", &VectorClock::new(), with_w(3)).await.unwrap();
    let holders = cluster.holders("only there");
    holders.iter().filter(|node| **node != 1).for_each(|&node| cluster.drop_copy(node, "only there"));
    for through in 0..4 {
        for _ in 0..20 {
            assert_eq!(keys(&cluster, through).await.unwrap(), all, "through node {through}");
        }
    }
}
