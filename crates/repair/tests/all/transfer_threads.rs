//! The threads that work for other nodes: walks over whole stores do not hold up what takes a
//! moment, and nothing is done for nobody.

use crate::support::Node;
use crate::support::faulty::{Faults, FaultyFactory};
use ombak_kv::ClassId;
use ombak_kv::replica::{Compare, Summarize, TransferClient};
use ombak_repair::Repair;
use ombak_runtime::Asker;
use ombak_types::{Error, VectorClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CLASS: ClassId = ClassId { partition: 0, n: 3 };
const SUMMARY: Summarize = Summarize { class: CLASS, ranges: 16, synced: false };
/// Far more than a comparison takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn node() -> (Node, Arc<Faults>) {
    let stores = FaultyFactory::new();
    let faults = stores.faults.clone();
    let node = Node::configured(|c| c.backend = Arc::new(stores));
    // From here on it answers.
    Repair::of(&node.kv);
    (node, faults)
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn a_comparison_is_answered_while_sums_take_long() {
    let (node, faults) = node();
    faults.hold_snapshots(true);
    let replica = node.kv.local_replica();
    let sums: Vec<_> = (0..3).map(|_| tokio::spawn(replica.summarize(SUMMARY))).collect();
    wait_until("two sums have begun", || faults.snapshots.load(Ordering::SeqCst) == 2).await;
    let compare = Compare { class: CLASS, versions: Vec::new(), synced: false };
    let compared = tokio::time::timeout(PATIENCE, replica.compare(compare)).await;
    faults.hold_snapshots(false);
    assert!(compared.is_ok_and(|compared| compared.is_ok()), "no answer while two sums take long");
    for sum in sums {
        assert_eq!(sum.await.unwrap().unwrap().ranges.len(), 16);
    }
}

#[tokio::test]
async fn a_sum_that_nobody_waits_for_any_more_is_not_begun() {
    let (node, faults) = node();
    faults.hold_snapshots(true);
    let replica = node.kv.local_replica();
    let begun: Vec<_> = (0..2).map(|_| tokio::spawn(replica.summarize(SUMMARY))).collect();
    wait_until("two sums have begun", || faults.snapshots.load(Ordering::SeqCst) == 2).await;
    let has_gone = Arc::new(AtomicBool::new(false));
    let gone = has_gone.clone();
    let asker = Asker { deadline: None, has_gone: Some(Arc::new(move || gone.load(Ordering::SeqCst))) };
    let given_up = tokio::spawn(replica.summarize_for(asker, SUMMARY));
    let last = tokio::spawn(replica.summarize(SUMMARY));
    has_gone.store(true, Ordering::SeqCst);
    faults.hold_snapshots(false);
    assert_eq!(given_up.await.unwrap(), Err(Error::Timeout));
    for sum in begun.into_iter().chain([last]) {
        sum.await.unwrap().unwrap();
    }
    assert_eq!(faults.snapshots.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_sum_ends_when_nobody_waits_for_it_any_more() {
    let (node, faults) = node();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    let looks = AtomicU64::new(0);
    // It waits when the sum begins, and has gone by the first keys.
    let has_gone: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(move || looks.fetch_add(1, Ordering::SeqCst) > 0);
    let asker = Asker { deadline: None, has_gone: Some(has_gone) };
    assert_eq!(node.kv.local_replica().summarize_for(asker, SUMMARY).await, Err(Error::Timeout));
    assert_eq!(faults.snapshots.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn sums_beyond_the_bound_are_refused_as_busy() {
    let (node, faults) = node();
    faults.hold_snapshots(true);
    let replica = node.kv.local_replica();
    let mut sums: Vec<_> = (0..400).map(|_| replica.summarize(SUMMARY)).collect();
    let mut refused = 0;
    for sum in &mut sums {
        // A sum is queued when it is looked at first.
        if let Ok(done) = tokio::time::timeout(Duration::ZERO, sum).await {
            assert_eq!(done, Err(Error::Overload));
            refused += 1;
        }
    }
    faults.hold_snapshots(false);
    assert!((100..=144).contains(&refused), "{refused} of 400 were refused");
}
