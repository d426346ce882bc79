//! Sums that a node keeps are those of a fold over what it holds, and it answers them to other
//! nodes.

use crate::support::stores::{bitcask, leveled, memory, multi, scratch_dir};
use crate::support::{Node, bucket, map};
use ombak_kv::repair_host::mix;
use ombak_kv::replica::{RangeSum, SUMMARY_RANGES_MAX, Summarize, TransferClient, range_of};
use ombak_kv::{ClassId, KvConfig, SumsState, SumsStep};
use ombak_repair::Repair;
use ombak_storage::{Detail, Scope, key_hash};
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

/// The sums of a partition whose keys are all in one class.
fn folded(node: &Node, partition: u32, ranges: u32) -> Vec<RangeSum> {
    let mut sums = vec![RangeSum::default(); ranges as usize];
    let (_, store) = node.kv.stores().find(|(number, _)| *number == partition).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    loop {
        let entries = snapshot.next(&Scope::KEPT, Detail::Keys, 7).unwrap();
        if entries.is_empty() {
            return sums;
        }
        for entry in entries {
            let hash = key_hash(&entry.key);
            let sum = &mut sums[range_of(hash, ranges) as usize];
            sum.versions += 1;
            sum.sum = sum.sum.wrapping_add(mix(hash, entry.digest));
        }
    }
}

/// All keys are in classes with this n.
async fn assert_equal(node: &Node, n: u32) -> u64 {
    let mut versions = 0;
    for class in classes() {
        assert_eq!(node.kv.sums_state(class), SumsState::Exact);
        let cut = node.kv.cut_of_class(class).unwrap();
        for ranges in [1, 64, SUMMARY_RANGES_MAX] {
            let nothing = || vec![RangeSum::default(); ranges as usize];
            let folded = if class.n == n { folded(node, class.partition, ranges) } else { nothing() };
            assert!(cut.sums.ranges(ranges) == folded, "{class:?} in {ranges} ranges");
            for synced in [false, true] {
                let summarize = Summarize { class, ranges, synced };
                let answered = node.kv.local_replica().summarize(summarize).await.unwrap();
                assert!(answered.ranges == folded, "{class:?} in {ranges} ranges, as another node gets them");
            }
        }
        versions += cut.sums.total().versions;
    }
    versions
}

async fn put(node: &Node, key: &str, value: &str) {
    node.put_back(key, value, VectorClock::new()).await;
}

#[tokio::test]
async fn sums_are_those_of_a_fold_and_other_nodes_get_them() {
    for open in [memory, bitcask, leveled, multi] {
        let dir = scratch_dir();
        let stores = open(dir.path());
        let node = Node::configured(|config: &mut KvConfig| {
            (config.backend, config.ring_size) = (stores, RING_SIZE);
        });
        let _answers = Repair::of(&node.kv);
        for number in 0..40 {
            put(&node, &format!("k{number}"), "before").await;
        }
        make_exact(&node);
        for number in 20..60 {
            put(&node, &format!("k{number}"), "after").await;
        }
        assert_eq!(assert_equal(&node, 3).await, 60);
        node.kv.buckets().set_bucket(&bucket(), &map(json!({"n_val": 2}))).unwrap();
        assert!(classes().all(|class| node.kv.cut_of_class(class).is_none()));
        make_exact(&node);
        assert_eq!(assert_equal(&node, 2).await, 60);
        assert_eq!(node.kv.sums_differences(), 0);
    }
}

#[tokio::test]
async fn a_node_counts_nothing_before_a_walk_and_keeps_no_sums_if_it_is_told_so() {
    let class = ClassId { partition: 0, n: 3 };
    for keeps_sums in [true, false] {
        let node = Node::configured(|config: &mut KvConfig| {
            if !keeps_sums {
                config.keeps_sums = false;
            }
        });
        put(&node, "k", "v").await;
        assert_eq!((node.kv.sums_state(class), node.kv.cut_of_class(class)), (SumsState::Unknown, None));
        assert_eq!(node.kv.begin_sums_walk(class).unwrap().is_some(), keeps_sums);
    }
}
