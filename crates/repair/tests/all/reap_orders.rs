//! Orders to reap tombstones now, in a cluster that keeps tombstones.

use crate::engines::cluster::{Cluster, bucket, count};
use crate::exchanges::storage_key;
use bytes::Bytes;
use ombak_kv::replica::Ordered;
use ombak_kv::{DeleteMode, GetOptions, GetReply, PutOptions};
use ombak_types::{Error, VectorClock};
use std::time::{Duration, Instant};

/// How long a test asks again.
const PATIENCE: Duration = Duration::from_secs(30);

/// Four nodes, of which the last owns nothing.
fn cluster() -> Cluster {
    Cluster::with_owners(4, 3, |config| config.delete_mode = DeleteMode::Keep)
}

async fn tombstone(cluster: &Cluster, key: &str) -> (Bytes, VectorClock) {
    let all = PutOptions { w: count(3), ..PutOptions::default() };
    cluster.put(0, &bucket(), key, "v", all).await.unwrap();
    cluster.delete(0, &bucket(), key, 3).await.unwrap();
    let found = cluster.get(0, &bucket(), key, GetOptions { r: count(3), ..GetOptions::default() }).await.unwrap();
    let GetReply::NotFound { tombstone: Some(clock) } = found else { panic!("no tombstone: {found:?}") };
    (storage_key(key).into(), clock)
}

async fn order(cluster: &Cluster, through: usize, tombstones: &[(Bytes, VectorClock)]) -> Vec<Result<Ordered, Error>> {
    cluster.kv(through).order_reaping(tombstones).await
}

/// Orders again and again until the answer is this.
async fn order_until(cluster: &Cluster, through: usize, tombstone: &(Bytes, VectorClock), expected: Ordered) {
    let end = Instant::now() + PATIENCE;
    loop {
        let answers = order(cluster, through, std::slice::from_ref(tombstone)).await;
        if answers == [Ok(expected)] {
            return;
        }
        assert!(Instant::now() < end, "{answers:?}, and not {expected:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Any member may order, also one that owns nothing. The answer comes from all primaries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tombstone_that_is_kept_goes_when_it_is_ordered() {
    let cluster = cluster();
    let (first, second) = (tombstone(&cluster, "first").await, tombstone(&cluster, "second").await);
    assert_eq!(cluster.holders(&bucket(), "first").len(), 3);
    order_until(&cluster, 3, &first, Ordered::Gone).await;
    assert_eq!(cluster.holders(&bucket(), "first"), [] as [usize; 0]);
    assert_eq!(cluster.holders(&bucket(), "second").len(), 3, "it was not ordered");
    let both = [first, second];
    assert_eq!(order(&cluster, 3, &both).await, [Ok(Ordered::Gone), Ok(Ordered::Waits)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_written_again_stays() {
    let cluster = cluster();
    let tombstone = tombstone(&cluster, "k").await;
    let all = PutOptions { w: count(3), ..PutOptions::default() };
    cluster.put(1, &bucket(), "k", "again", all).await.unwrap();
    assert_eq!(order(&cluster, 0, std::slice::from_ref(&tombstone)).await, [Ok(Ordered::Changed)]);
    assert_eq!(cluster.holders(&bucket(), "k").len(), 3);
}

/// The rounds need all members. An order that one primary does not answer is given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tombstone_waits_while_a_primary_is_down() {
    let cluster = cluster();
    let tombstone = tombstone(&cluster, "k").await;
    let last = *cluster.owners(&bucket(), "k", 3).last().unwrap();
    cluster.set_cut(last, true);
    for _ in 0..20 {
        let answers = order(&cluster, 3, std::slice::from_ref(&tombstone)).await;
        assert!(matches!(answers[..], [Err(_)]), "{answers:?}");
    }
    assert_eq!(cluster.holders(&bucket(), "k").len(), 3);
    cluster.set_cut(last, false);
    order_until(&cluster, 3, &tombstone, Ordered::Gone).await;
    assert_eq!(cluster.holders(&bucket(), "k"), [] as [usize; 0]);
}
