//! The repair of index entries over all stores of a node.

use crate::engines::cluster::{Cluster, bucket};
use ombak_repair::{IndexRepairState, Repair};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_looks_at_all_partitions_of_a_node_and_ends() {
    let cluster = Cluster::of(1);
    for key in 0..10 {
        cluster.put(0, &bucket(), &format!("k{key}"), "v", Default::default()).await.unwrap();
    }
    let kv = cluster.kv(0);
    let repair = Repair::of(&kv);
    assert_eq!(repair.index_repair_status().state, IndexRepairState::Never);
    assert!(!repair.kill_index_repair() && !repair.set_index_repair_speed(5));
    assert!(repair.start_index_repair(&[100_000], 100).is_err(), "no such partition");
    let chosen = repair.start_index_repair(&[], 100).unwrap().expect("none is under way");
    assert!(!chosen.is_empty());
    let deadline = Instant::now() + Duration::from_secs(30);
    while repair.index_repair_status().state == IndexRepairState::Running {
        assert!(Instant::now() < deadline, "{:?}", repair.index_repair_status());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = repair.index_repair_status();
    assert_eq!((status.state, status.finished), (IndexRepairState::Finished, chosen.len() as u64));
    assert_eq!((status.lacking, status.surplus, status.failures.len()), (0, 0, 0));
    let numbers = kv.stats().numbers();
    assert!(numbers.iter().any(|(name, count)| name == "vnode_index_refreshes_total" && *count == 0));
}
