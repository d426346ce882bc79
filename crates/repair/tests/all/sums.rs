//! Sums that a node keeps are those that it answers to other nodes from a fold.

use crate::support::stores::{bitcask, leveled, memory, multi, scratch_dir};
use crate::support::{Node, bucket, map};
use ombak_kv::replica::{SUMMARY_RANGES_MAX, Summarize, TransferClient};
use ombak_kv::{ClassId, KvConfig, SumsState, SumsStep};
use ombak_repair::Repair;
use ombak_types::VectorClock;
use serde_json::json;

const RING_SIZE: u32 = 8;

fn classes() -> impl Iterator<Item = ClassId> {
    (0..RING_SIZE).flat_map(|partition| [2, 3].map(|n| ClassId { partition, n }))
}

fn make_exact(node: &Node) {
    for class in classes() {
        let mut walk = node.kv.begin_sums_walk(class).unwrap().expect("no other walk is under way");
        let end = loop {
            if let SumsStep::Ended(end) = walk.step(10).unwrap() {
                break end;
            }
        };
        assert_eq!((end.is_current, end.differences), (true, 0));
    }
}

async fn assert_equal(node: &Node) -> u64 {
    let mut versions = 0;
    for class in classes() {
        assert_eq!(node.kv.sums_state(class), SumsState::Exact);
        let cut = node.kv.cut_of_class(class).unwrap();
        for ranges in [1, 64, SUMMARY_RANGES_MAX] {
            let summarize = Summarize { class, ranges, synced: false };
            let folded = node.kv.local_replica().summarize(summarize).await.unwrap();
            assert!(cut.sums.ranges(ranges) == folded.ranges, "{class:?} in {ranges} ranges");
        }
        versions += cut.sums.total().versions;
    }
    versions
}

async fn put(node: &Node, key: &str, value: &str) {
    node.put_back(key, value, VectorClock::new()).await;
}

#[tokio::test]
async fn sums_are_those_that_other_nodes_get() {
    for open in [memory, bitcask, leveled, multi] {
        let dir = scratch_dir();
        let stores = open(dir.path());
        let node = Node::configured(|config: &mut KvConfig| {
            (config.backend, config.ring_size, config.keeps_sums) = (stores, RING_SIZE, true);
        });
        let _answers = Repair::of(&node.kv);
        for number in 0..40 {
            put(&node, &format!("k{number}"), "before").await;
        }
        make_exact(&node);
        for number in 20..60 {
            put(&node, &format!("k{number}"), "after").await;
        }
        assert_eq!(assert_equal(&node).await, 60);
        node.kv.buckets().set_bucket(&bucket(), &map(json!({"n_val": 2}))).unwrap();
        assert!(classes().all(|class| node.kv.cut_of_class(class).is_none()));
        make_exact(&node);
        assert_eq!(assert_equal(&node).await, 60);
        assert_eq!(node.kv.sums_differences(), 0);
    }
}

#[tokio::test]
async fn a_node_keeps_no_sums_unless_it_is_told_to() {
    let node = Node::start();
    put(&node, "k", "v").await;
    let class = ClassId { partition: 0, n: 3 };
    assert_eq!((node.kv.sums_state(class), node.kv.cut_of_class(class)), (SumsState::Unknown, None));
    assert!(node.kv.begin_sums_walk(class).unwrap().is_none());
}
