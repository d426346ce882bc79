//! The engine over stores that would block, cannot read, cannot write, or sync slowly.

use crate::support::faulty::{Faults, FaultyFactory};
use crate::support::{Node, found, values};
use ombak_kv::hooks::{CommitHooks, HookedKey, Hooks};
use ombak_kv::{DeleteReply, Kv};
use ombak_runtime::BoxFuture;
use ombak_types::props::{Hook, SyncOnWrite};
use ombak_types::{Error, Object, StoreFailureKind, VectorClock};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn node() -> (Node, Arc<Faults>) {
    let stores = FaultyFactory::new();
    let faults = stores.faults.clone();
    (Node::configured(|c| c.backend = Arc::new(stores)), faults)
}

/// Starts a put that asks for a sync, in a task of its own.
fn put_synced(node: &Node, key: &str, timeout: Option<Duration>) -> tokio::task::JoinHandle<Result<(), Error>> {
    let mut request = node.put_request(key, "v", VectorClock::new());
    request.options.sync_on_write = Some(SyncOnWrite::One);
    request.options.timeout = timeout;
    let kv: Kv = node.kv.clone();
    tokio::spawn(async move { kv.put(request).await.map(drop) })
}

/// The kind of the store's failure that ended a request.
fn kind<T>(result: Result<T, Error>) -> Option<StoreFailureKind> {
    match result {
        Err(Error::Storage(failure)) => Some(failure.kind),
        _ => None,
    }
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_is_not_cached_is_read_by_the_io_threads() {
    let (node, faults) = node();
    let clock = node.put_back("k", "1", VectorClock::new()).await.clock;
    faults.set(&faults.nothing_cached, true);
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["1"]);
    assert_eq!(values(&node.put_back("k", "2", clock).await), ["2"]);
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: true }));
}

/// docs/design/replication.md §13: an unreadable version is not an absent one.
#[tokio::test]
async fn a_version_that_cannot_be_read_is_neither_absent_nor_overwritten() {
    let (node, faults) = node();
    let before = node.put_back("k", "1", VectorClock::new()).await;
    faults.set(&faults.reads_fail, true);
    let unreadable = Some(StoreFailureKind::Unreadable);
    assert_eq!(kind(node.get("k").await), unreadable);
    assert_eq!(kind(node.put("k", "2", VectorClock::new()).await), unreadable);
    assert_eq!(kind(node.delete("k").await), unreadable);
    faults.set(&faults.reads_fail, false);
    assert_eq!(found(node.get("k").await.unwrap()), before);
    let after = node.put_back("k", "2", VectorClock::new()).await;
    assert_eq!(after.clock.entries().len(), 2, "the epoch from before the error is not continued");
}

#[tokio::test]
async fn an_event_whose_write_failed_is_never_made_again() {
    let (node, faults) = node();
    node.put("k", "1", VectorClock::new()).await.unwrap();
    faults.set(&faults.writes_fail, true);
    assert_eq!(kind(node.put("k", "2", VectorClock::new()).await), Some(StoreFailureKind::DiskFull));
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["1"], "reads go on");
    faults.set(&faults.writes_fail, false);
    let after = node.put_back("k", "3", VectorClock::new()).await;
    assert_eq!(after.clock.entries().len(), 2);
}

#[tokio::test]
async fn a_put_counts_once_its_sync_is_done_and_many_share_one() {
    let (node, faults) = node();
    faults.hold_syncs(true);
    let first = put_synced(&node, "k", None);
    wait_until("a sync begins", || faults.syncs.load(Ordering::SeqCst) == 1).await;
    let others: Vec<_> = (0..20).map(|_| put_synced(&node, "k", None)).collect();
    // This runtime has one thread: the tasks above run until they wait, before this task continues.
    tokio::task::yield_now().await;
    assert!(!first.is_finished() && others.iter().all(|p| !p.is_finished()));
    faults.hold_syncs(false);
    assert_eq!(first.await.unwrap(), Ok(()));
    for put in others {
        assert_eq!(put.await.unwrap(), Ok(()));
    }
    assert_eq!(faults.syncs.load(Ordering::SeqCst), 2, "one sync for the first, one for all the others");
}

#[tokio::test]
async fn a_sync_that_fails_fails_the_put_and_one_that_hangs_times_out() {
    let (node, faults) = node();
    faults.set(&faults.syncs_fail, true);
    assert_eq!(kind(put_synced(&node, "k", None).await.unwrap()), Some(StoreFailureKind::Poisoned));
    faults.set(&faults.syncs_fail, false);
    faults.hold_syncs(true);
    assert_eq!(put_synced(&node, "k", Some(Duration::from_millis(20))).await.unwrap(), Err(Error::Timeout));
    faults.hold_syncs(false);
}

#[tokio::test]
async fn without_a_sync_asked_for_none_is_made() {
    let (node, faults) = node();
    node.put("k", "v", VectorClock::new()).await.unwrap();
    assert_eq!(faults.syncs.load(Ordering::SeqCst), 0);
}

/// Closing waits for the active requests before the stores close.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_waits_for_requests_under_way() {
    let (node, faults) = node();
    faults.hold_syncs(true);
    let put = put_synced(&node, "k", None);
    wait_until("the put waits", || faults.syncs.load(Ordering::SeqCst) == 1).await;
    let kv = node.kv.clone();
    let close = tokio::task::spawn_blocking(move || kv.close());
    wait_until("the node is closing", || !node.kv.health().ready).await;
    assert!(!close.is_finished());
    faults.hold_syncs(false);
    assert_eq!(put.await.unwrap(), Ok(()));
    close.await.unwrap();
}

/// Hooks that cannot run, because too many others do.
struct BusyHooks;

impl CommitHooks for BusyHooks {
    fn pre_commit(
        &self,
        _: HookedKey,
        _: Vec<Hook>,
        _: Object,
        _: Option<Instant>,
    ) -> BoxFuture<'_, Result<Object, Error>> {
        Box::pin(async { Err(Error::Overload) })
    }

    fn post_commit(&self, _: HookedKey, _: Vec<Hook>, _: Object, _: Arc<dyn Fn() + Send + Sync>) {}
}

/// Makes a put, a delete that reads the clock, and one that is given it.
async fn write_thrice(node: &Node) -> [Option<Error>; 3] {
    let mut request = node.delete_request("k");
    request.clock = Some(VectorClock::new());
    [
        node.put("k", "v", VectorClock::new()).await.err(),
        node.delete("k").await.err(),
        node.kv.delete(request).await.err(),
    ]
}

/// Requests that were refused, and writes that failed, since the start.
fn refused_and_failed(node: &Node) -> (u64, u64) {
    let counts = node.kv.top(1).counts;
    (counts.refused, counts.put_errors)
}

#[tokio::test]
async fn a_write_counts_as_refused_if_it_was_not_admitted_and_as_failed_otherwise() {
    let node = Node::configured(|c| c.requests_max = 0);
    assert_eq!(write_thrice(&node).await, [const { Some(Error::Overload) }; 3]);
    assert_eq!(refused_and_failed(&node), (3, 0), "too many requests");
    let node = Node::start();
    node.close().await;
    assert_eq!(write_thrice(&node).await, [const { Some(Error::Stopping) }; 3]);
    assert_eq!(refused_and_failed(&node), (3, 0), "a node that stops");

    let node = Node::configured(|config| {
        config.hooks = Hooks { commit: Some(Arc::new(BusyHooks)), ..Hooks::default() };
        config.default_props.insert("precommit".into(), json!([{"name": "busy"}]));
    });
    // The delete that reads the clock finds nothing to delete.
    assert_eq!(write_thrice(&node).await, [Some(Error::Overload), None, Some(Error::Overload)]);
    assert_eq!(refused_and_failed(&node), (0, 2), "hooks that are busy");
    let (node, faults) = self::node();
    faults.set(&faults.writes_fail, true);
    assert_eq!(kind(node.put("k", "v", VectorClock::new()).await), Some(StoreFailureKind::DiskFull));
    assert_eq!(refused_and_failed(&node), (0, 1), "a full disk");
}
