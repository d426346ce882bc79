//! Writes whose deadline has passed (docs/design/replication.md §12): nothing is written after the
//! answer `timeout`.

use crate::support;

use crate::support::faulty::{Faults, FaultyFactory};
use crate::support::{Node, found, values};
use ombak_kv::{DeleteReply, GetReply, PutReply, PutRequest};
use ombak_runtime::OtherClocks;
use ombak_types::props::SyncOnWrite;
use ombak_types::{Error, Object, Sibling, VectorClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Far less than any test may take. It is the time limit of writes that must time out.
const SHORT: Duration = Duration::from_millis(30);
/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

struct Subject {
    node: Node,
    faults: Arc<Faults>,
    /// How far the monotonic clock is ahead of the machine's.
    ahead_secs: Arc<AtomicU64>,
    /// How often an I/O thread has read the monotonic clock.
    clock_reads: Arc<AtomicU64>,
}

fn subject(io_threads: usize) -> Subject {
    let stores = FaultyFactory::new();
    let (faults, ahead_secs) = (stores.faults.clone(), Arc::new(AtomicU64::new(0)));
    let ahead = ahead_secs.clone();
    let clock_reads = Arc::new(AtomicU64::new(0));
    // The runtime of the test has only the thread of the test.
    let (reads, test_thread) = (clock_reads.clone(), std::thread::current().id());
    let node = Node::configured(|config| {
        config.backend = Arc::new(stores);
        config.io_threads = io_threads;
        let clock = move || {
            let is_elsewhere = std::thread::current().id() != test_thread;
            reads.fetch_add(u64::from(is_elsewhere), Ordering::SeqCst);
            Instant::now() + Duration::from_secs(ahead.load(Ordering::SeqCst))
        };
        config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_monotonic_clock(clock));
        config.default_props = support::map(serde_json::json!({"allow_mult": true, "dvv_enabled": true}));
    });
    Subject { node, faults, ahead_secs, clock_reads }
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Subject {
    /// Occupies the only I/O thread with a sync that waits until syncs are released.
    async fn block_the_io_thread(&self) -> JoinHandle<Result<PutReply, Error>> {
        self.faults.hold_syncs(true);
        let mut request = self.node.put_request("other", "v", VectorClock::new());
        request.options.sync_on_write = Some(SyncOnWrite::One);
        let put = self.spawn(request);
        wait_until("a sync begins", || self.faults.syncs.load(Ordering::SeqCst) > 0).await;
        put
    }

    /// Returns when the I/O thread has executed all jobs that were queued before.
    async fn drain_the_io_thread(&self) {
        self.faults.set(&self.faults.nothing_cached, true);
        self.node.get("other").await.unwrap();
        self.faults.set(&self.faults.nothing_cached, false);
    }

    fn put_request(&self, value: &str, clock: VectorClock, timeout: Duration) -> PutRequest {
        let mut request = self.node.put_request("k", value, clock);
        request.options.timeout = Some(timeout);
        request
    }

    fn spawn(&self, request: PutRequest) -> JoinHandle<Result<PutReply, Error>> {
        let kv = self.node.kv.clone();
        tokio::spawn(async move { kv.put(request).await })
    }

    /// Starts a put on an I/O thread. Returns when the put waits in the store and holds the lock of
    /// its key.
    async fn put_held_in_the_store(&self, timeout: Duration) -> JoinHandle<Result<PutReply, Error>> {
        self.faults.hold_puts(true);
        self.faults.set(&self.faults.nothing_cached, true);
        let before = self.faults.puts.load(Ordering::SeqCst);
        let put = self.spawn(self.put_request("first", VectorClock::new(), timeout));
        wait_until("the put is in the store", || self.faults.puts.load(Ordering::SeqCst) > before).await;
        put
    }
}

/// The history of the issue: the client receives "timeout", writes another value and deletes it;
/// then the queue proceeds.
#[tokio::test]
async fn a_put_that_timed_out_in_the_queue_never_runs() {
    let subject = subject(1);
    let Subject { node, faults, .. } = &subject;
    let blocking = subject.block_the_io_thread().await;
    faults.set(&faults.nothing_cached, true);
    for asis in [false, true] {
        let mut request = subject.put_request("late", VectorClock::new(), SHORT);
        request.options.asis = asis;
        assert_eq!(node.kv.put(request).await, Err(Error::Timeout));
    }
    faults.set(&faults.nothing_cached, false);
    node.put("k", "second", VectorClock::new()).await.unwrap();
    assert_eq!(node.delete("k").await, Ok(DeleteReply { found: true }));

    faults.hold_syncs(false);
    blocking.await.unwrap().unwrap();
    subject.drain_the_io_thread().await;
    assert!(matches!(node.get("k").await, Ok(GetReply::NotFound { tombstone: Some(_) })), "the key stays deleted");
}

#[tokio::test]
async fn a_delete_that_timed_out_in_the_queue_never_runs() {
    let subject = subject(1);
    let Subject { node, faults, .. } = &subject;
    let clock = node.put_back("k", "first", VectorClock::new()).await.clock;
    let blocking = subject.block_the_io_thread().await;
    faults.set(&faults.nothing_cached, true);
    let mut delete = node.delete_request("k");
    (delete.clock, delete.put.timeout) = (Some(clock.clone()), Some(SHORT));
    assert_eq!(node.kv.delete(delete).await, Err(Error::Timeout));
    faults.set(&faults.nothing_cached, false);

    faults.hold_syncs(false);
    blocking.await.unwrap().unwrap();
    subject.drain_the_io_thread().await;
    let object = found(node.get("k").await.unwrap());
    assert_eq!((values(&object), object.clock), (vec!["first".to_owned()], clock));
}

/// The second put waits on an I/O thread for the lock of its key until its deadline has passed.
#[tokio::test]
async fn the_deadline_is_asked_under_the_lock_of_the_key() {
    let subject = subject(2);
    let Subject { node, faults, ahead_secs, clock_reads } = &subject;
    let first = subject.put_held_in_the_store(LONG * 3).await;
    let reads_before = clock_reads.load(Ordering::SeqCst);
    let second = subject.spawn(subject.put_request("second", VectorClock::new(), LONG));
    // The machine's timer still has an hour left, so only the deadline itself can refuse the write.
    // The I/O thread has found the second put in time, and goes on to the lock.
    wait_until("an I/O thread takes the second put", || clock_reads.load(Ordering::SeqCst) > reads_before).await;
    ahead_secs.store(2 * LONG.as_secs(), Ordering::SeqCst);
    faults.hold_puts(false);
    assert!(first.await.unwrap().is_ok());
    assert_eq!(second.await.unwrap(), Err(Error::Timeout));
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["first"]);
}

/// A write that is in the store when its deadline passes is not answered before it has ended, so
/// the client's next request cannot come before it.
#[tokio::test]
async fn a_write_that_began_in_time_is_answered_by_its_outcome() {
    let subject = subject(2);
    let Subject { node, faults, .. } = &subject;
    let mut first = subject.put_held_in_the_store(SHORT).await;
    let waited = tokio::time::timeout(SHORT * 4, &mut first).await;
    assert!(waited.is_err(), "answered while the store was at work: {waited:?}");
    faults.hold_puts(false);
    first.await.unwrap().unwrap();
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["first"]);
}

/// A write that needs no local copy is refused like any other write, and a write without a limit
/// waits.
#[tokio::test]
async fn zero_is_no_limit() {
    let subject = subject(1);
    let Subject { node, faults, ahead_secs, .. } = &subject;
    let blocking = subject.block_the_io_thread().await;
    faults.set(&faults.nothing_cached, true);
    let unlimited = subject.spawn(subject.put_request("v", VectorClock::new(), Duration::ZERO));
    let mut request = node.put_request("w", "v", VectorClock::new());
    request.object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
    request.options.timeout = Some(LONG);
    let limited = subject.spawn(request);
    tokio::task::yield_now().await;
    ahead_secs.store(2 * LONG.as_secs(), Ordering::SeqCst);
    faults.hold_syncs(false);
    blocking.await.unwrap().unwrap();
    assert!(unlimited.await.unwrap().is_ok());
    assert_eq!(limited.await.unwrap(), Err(Error::Timeout));
    faults.set(&faults.nothing_cached, false);
    assert!(matches!(node.get("w").await, Ok(GetReply::NotFound { tombstone: None })));
}
