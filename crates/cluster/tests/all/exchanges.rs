//! Exchanges between three nodes over real sockets: what nobody reads is repaired.

use crate::support::{Cluster, bucket, soon, storage_key, until, with_w};
use bytes::Bytes;
use ombak_cluster::NodeParts;
use ombak_kv::replica::{ReplicaStore, StoreKind, StoreMode};
use ombak_kv::{ClassId, SumsState};
use ombak_repair::ExchangeConfig;
use ombak_ring::KeyHash;
use ombak_types::{Object, Sibling, stored_object};
use std::collections::BTreeSet;
use std::time::Duration;

const N: u32 = 3;

fn exchanging(parts: &mut NodeParts) {
    // A test starts its rounds by itself.
    let interval = Duration::from_secs(10_000_000);
    let look_again_after = Duration::from_millis(20);
    parts.exchange = Some(ExchangeConfig { interval, look_again_after, ..ExchangeConfig::default() });
}

fn home_of(cluster: &Cluster, key: &str) -> u32 {
    cluster.node(0).kv().ring().home_of(&KeyHash::of_key(&bucket(), key.as_bytes()))
}

/// Keys with so many primaries: where the ring closes, a home of three nodes has only two of them.
fn keys_with(cluster: &Cluster, primaries: usize) -> impl Iterator<Item = String> + '_ {
    let placement = cluster.node(0).kv().placement();
    let is_meant = move |key: &String| {
        let set: BTreeSet<_> = placement.home(home_of(cluster, key)).replica_set(N).into_iter().collect();
        set.len() == primaries
    };
    (0..).map(|number| format!("k{number}")).filter(is_meant)
}

/// Stores a version at one node alone, as if the write to the others had been lost together with
/// the node that coordinated it.
async fn store_at(cluster: &Cluster, node: usize, key: &str) {
    let kv = cluster.node(node).kv();
    let object = Object::new(Sibling::new(Bytes::from_static(b"v")));
    let mut head = Vec::new();
    stored_object::encode_head(&object, &mut head);
    let store = ReplicaStore {
        partition: home_of(cluster, key),
        n: N,
        ring: kv.ring().version(),
        key: storage_key(key),
        head: head.into(),
        body: object.siblings[0].value.clone(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: Some(kv.counter()),
        synced: true,
        deadline: None,
    };
    let other = (node + 1) % cluster.nodes.len();
    soon(cluster.replica(other, node).store(store)).await.unwrap();
    assert_eq!(cluster.holders(key), [node]);
}

async fn until_settled(cluster: &Cluster) {
    let nodes = cluster.nodes.len();
    let is_settled = || (0..nodes).all(|node| cluster.node(node).repair().settled().is_settled());
    until("the nodes are settled", is_settled).await;
}

fn begin_round(cluster: &Cluster) {
    cluster.nodes.iter().for_each(|test| test.node.repair().start_exchange_round());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_difference_is_repaired_without_a_read() {
    let cluster = Cluster::configured(3, exchanging);
    until_settled(&cluster).await;
    let keys: Vec<String> = keys_with(&cluster, 3).take(3).collect();
    for (node, key) in keys.iter().enumerate() {
        store_at(&cluster, node, key).await;
    }
    begin_round(&cluster);
    until("all have all", || keys.iter().all(|key| cluster.holders(key) == [0, 1, 2])).await;
    for key in &keys {
        let versions: BTreeSet<_> = (0..3).map(|node| cluster.stored(node, key)).collect();
        assert_eq!(versions.len(), 1, "{key} is the same everywhere");
    }
    let repaired = |node: usize| {
        let figures = cluster.node(node).repair().exchange_figures().unwrap();
        figures.classes.values().map(|class| class.repaired).sum::<u64>()
    };
    // Who holds a key gives it, or another one that got it before.
    until("it is counted", || (0..3).map(repaired).sum::<u64>() >= 3).await;
    cluster.stop().await;
}

/// The sums of a store show a record that has vanished behind the back of its node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_vanishes_comes_back_without_a_read() {
    let cluster = Cluster::configured(3, |parts| {
        exchanging(parts);
        parts.kv.tolerates_sums_differences = true;
    });
    let key = keys_with(&cluster, 3).next().unwrap();
    soon(cluster.put(0, &key, "v", with_w(3))).await.unwrap();
    until("all have it", || cluster.holders(&key) == [0, 1, 2]).await;
    until_settled(&cluster).await;
    let class = ClassId { partition: home_of(&cluster, &key), n: N };
    let kv = cluster.node(1).kv();
    until("its sums are exact", || kv.sums_state(class) == SumsState::Exact).await;
    let (_, store) = kv.stores().find(|(partition, _)| *partition == class.partition).unwrap();
    assert!(store.delete(&storage_key(&key)).unwrap().is_some());
    assert_eq!(cluster.holders(&key), [0, 2]);
    cluster.node(1).repair().check_sums();
    until("its sums have shown it", || kv.sums_differences() > 0).await;
    begin_round(&cluster);
    until("all have it again", || cluster.holders(&key) == [0, 1, 2]).await;
    cluster.stop().await;
}
