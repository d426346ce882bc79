//! The age of values where the configuration of the backend lets them expire: a copy is as old as
//! what it is a copy of.

use crate::engines::cluster::{Cluster, LIMIT, bucket, count};
use ombak_kv::{GetOptions, GetReply, KvConfig, PutOptions};
use ombak_runtime::OtherClocks;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::time::UnixMicros;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const START_SECS: u64 = 1_000_000;
/// How long values live.
const EXPIRY_SECS: u32 = 100;

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

fn aging(config: &mut KvConfig, clock: &'static AtomicU64) {
    let journal =
        JournalConfig { expiry_secs: Some(EXPIRY_SECS), opened_at_secs: START_SECS, ..JournalConfig::default() };
    config.backend = Arc::new(BitcaskFactory::new(config.fs.clone(), Path::new("/aging"), journal).unwrap());
    config.maintain_interval = Duration::from_millis(5);
    let now = move || UnixMicros::from_secs(clock.load(Ordering::SeqCst));
    config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(now));
}

async fn is_found(cluster: &Cluster, through: usize) -> bool {
    let all = GetOptions { r: count(3), ..GetOptions::default() };
    matches!(cluster.get(through, &bucket(), "k", all).await.unwrap(), GetReply::Found(_))
}

/// Writes a value that the third node misses, and lets it come near the end of its life.
async fn put_what_the_third_misses(cluster: &Cluster, clock: &AtomicU64) {
    cluster.set_handoffs(false);
    cluster.set_cut(2, true);
    cluster.put(0, &bucket(), "k", "v", w(2)).await.unwrap();
    cluster.set_cut(2, false);
    clock.fetch_add(90, Ordering::SeqCst);
}

/// A replica missed the write. A read repairs it within the life of the value, and again and again
/// another one has the younger copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_read_once_in_its_life_expires() {
    static CLOCK: AtomicU64 = AtomicU64::new(START_SECS);
    let cluster = Cluster::configured(3, |config| aging(config, &CLOCK));
    put_what_the_third_misses(&cluster, &CLOCK).await;
    // The first repair may be refused, because the reader does not know the counter of the replica.
    let deadline = Instant::now() + LIMIT;
    while cluster.stored(2, &bucket(), "k").is_none() {
        assert!(is_found(&cluster, 0).await);
        assert!(Instant::now() < deadline, "no read has repaired the replica");
    }
    CLOCK.fetch_add(20, Ordering::SeqCst);
    let is_gone = |c: &Cluster| (0..3).all(|node| c.stored(node, &bucket(), "k").is_none());
    cluster.wait_until("all copies have expired, also the repaired one", is_gone).await;
    assert!(!is_found(&cluster, 0).await);
}

/// The same with a copy that is pushed: a hint, or what a filling replica gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_handed_over_is_no_younger() {
    static CLOCK: AtomicU64 = AtomicU64::new(START_SECS);
    let cluster = Cluster::configured(3, |config| aging(config, &CLOCK));
    put_what_the_third_misses(&cluster, &CLOCK).await;
    cluster.set_handoffs(true);
    cluster.wait_until("the replica has its copy", |c| c.stored(2, &bucket(), "k").is_some()).await;
    CLOCK.fetch_add(20, Ordering::SeqCst);
    cluster.wait_until("the copy has expired", |c| c.stored(2, &bucket(), "k").is_none()).await;
}
