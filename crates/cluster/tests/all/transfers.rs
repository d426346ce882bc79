//! What brings copies back to where they belong, over real sockets.

use crate::support::{Cluster, soon, until, with_w};
use ombak_kv::PutOptions;

#[tokio::test]
async fn a_copy_that_other_primaries_lack_reaches_them() {
    let cluster = Cluster::of(5);
    for key in ["a", "b", "c", "d"] {
        let options = PutOptions { n_val: Some(1), ..with_w(1) };
        soon(cluster.put(0, key, "v", options)).await.unwrap();
    }
    for key in ["a", "b", "c", "d"] {
        until("all primaries have it", || cluster.holders(key).len() == 3).await;
    }
    until("the nodes are settled", || (0..5).all(|node| cluster.node(node).repair().settled().is_settled())).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_hint_goes_back_to_its_primaries() {
    let cluster = Cluster::of(5);
    soon(cluster.put(0, "k", "old", with_w(3))).await.unwrap();
    let owners = cluster.holders("k");
    let down = cluster.id(owners[0]);
    cluster.beliefs.set_down(down, true);
    soon(cluster.put(owners[1], "k", "new", with_w(3))).await.unwrap();
    assert_eq!(cluster.holders("k").len(), 4);
    cluster.beliefs.set_down(down, false);
    until("the hint has gone", || cluster.holders("k") == owners).await;
    let versions: Vec<_> = owners.iter().map(|&node| cluster.stored(node, "k")).collect();
    assert!(versions.iter().all(|version| version == &versions[0]), "{versions:?}");
    cluster.stop().await;
}
