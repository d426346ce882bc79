//! Scenarios of copies that come back to where they belong.

use super::{owners, read, with_r, with_w, write};
use crate::replicas::cluster::{Cluster, bucket};
use crate::replicas::work::Work;
use ombak_kv::{PutOptions, PutRequest};
use ombak_repair::Repair;
use ombak_storage::{Detail, Scope};
use ombak_types::{Bucket, VectorClock};
use serde_json::json;
use std::collections::BTreeMap;

const KEYS: usize = 120;

/// What the stores of a node hold: the digests by key.
fn held(cluster: &Cluster, node: usize) -> BTreeMap<Vec<u8>, u64> {
    let mut held = BTreeMap::new();
    for (_, store) in cluster.nodes[node].stores() {
        let mut fold = store.snapshot().unwrap();
        loop {
            let entries = fold.next(&Scope::ALL, Detail::Keys, 1_000).unwrap();
            held.extend(entries.iter().map(|entry| (entry.key.to_vec(), entry.digest)));
            if entries.is_empty() {
                break;
            }
        }
    }
    held
}

/// A node is down while objects are written, in a typed bucket too. After its return it has exactly
/// what the other replicas have, and the stand-ins hold nothing any more.
#[tokio::test]
async fn verify_handoff() {
    let cluster = Cluster::of(4);
    cluster.create_type("typed", json!({"n_val": 2, "allow_mult": true}).as_object().unwrap());
    cluster.start_transfers();
    for down in 0..4 {
        cluster.set_down(down, true);
        let through = (down + 1) % 4;
        let typed = Bucket::typed("typed", "b");
        for number in 0..KEYS {
            let key = format!("{down} {number}");
            write(&cluster, through, &key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
            let object = super::object("v", &VectorClock::new());
            let request =
                PutRequest { bucket: typed.clone(), key: Some(key.into()), object, options: PutOptions::default() };
            cluster.nodes[through].put(request).await.unwrap();
        }
        cluster.set_down(down, false);
        cluster.wait_until_settled().await;
        for number in 0..KEYS {
            let key = format!("{down} {number}");
            let places = owners(&cluster, &bucket(), &key);
            cluster.wait_until_equal(&places, &key).await;
            assert_eq!(cluster.holders(&key).len(), 3, "{key}");
        }
    }
    // Three copies of the plain objects, two of the typed ones.
    let copies: usize = (0..4).map(|node| held(&cluster, node).len()).sum();
    assert_eq!(copies, 4 * KEYS * (3 + 2));
}

/// The data of each node in turn are wiped. The other replicas give back exactly the same objects,
/// also when one of them is gone in the middle.
#[tokio::test]
async fn partition_repair() {
    let mut cluster = Cluster::of(4);
    for number in 0..KEYS {
        let key = format!("k{number}");
        write(&cluster, number % 4, &key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
        cluster.wait_until_equal(&owners(&cluster, &bucket(), &key), &key).await;
    }
    cluster.start_transfers();
    for wiped in 0..4 {
        let before = held(&cluster, wiped);
        assert!(!before.is_empty());
        cluster.restart_without_objects(wiped).await;
        assert!(held(&cluster, wiped).is_empty());
        Repair::of(&cluster.nodes[wiped]).start_transfers();
        let giver = (wiped + 1) % 4;
        cluster.wait_until("the first objects are back", || !held(&cluster, wiped).is_empty()).await;
        cluster.set_cut(giver, true);
        // Its "not found" does not count meanwhile.
        assert_eq!(read(&cluster, wiped, "k0", with_r(1)).await.1, ["v"]);
        cluster.set_cut(giver, false);
        cluster.wait_until_settled().await;
        assert_eq!(held(&cluster, wiped), before, "node {wiped}");
    }
}
