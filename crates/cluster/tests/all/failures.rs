//! Failures of a node arrive at the node that asked, with their kind.

use crate::support;

use crate::support::{Cluster, put_request, soon, storage_key, until};
use bytes::Bytes;
use ombak_cluster::RequestOutcome;
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::{
    ForwardedPut, PutFailure, ReadReply, ReplicaRead, ReplicaStore, StoreKind, StoreMode, StoreOutcome, StoreReply,
};
use ombak_kv::{GetOptions, PutOptions, PutRequest};
use ombak_ring::RingVersion;
use ombak_types::{Error, Object, Sibling, StoreFailureKind, stored_object};
use std::time::{Duration, Instant};

fn read(cluster: &Cluster, key: &str) -> ReplicaRead {
    let ring = cluster.node(0).kv().ring().version();
    ReplicaRead { partition: 0, n: 3, ring, key: storage_key(key), ask: Ask::Object, deadline: None }
}

fn store(cluster: &Cluster, key: &str, value: &str) -> ReplicaStore {
    let object = Object::new(Sibling::new(Bytes::copy_from_slice(value.as_bytes())));
    let mut head = Vec::new();
    stored_object::encode_head(&object, &mut head);
    ReplicaStore {
        partition: 0,
        n: 3,
        ring: cluster.node(0).kv().ring().version(),
        key: storage_key(key),
        head: head.into(),
        body: object.siblings[0].value.clone(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: Some(cluster.node(1).kv().counter()),
        synced: false,
        deadline: None,
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> StoreFailureKind {
    match result {
        Err(Error::Storage(failure)) => failure.kind,
        other => panic!("no failure of a store: {other:?}"),
    }
}

#[tokio::test]
async fn failures_of_a_store_keep_their_kind() {
    let cluster = Cluster::of(3);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    assert!(matches!(soon(there.read(read(&cluster, "k"))).await, Ok(ReadReply { version: None, full: true, .. })));
    let stored = soon(there.store(store(&cluster, "k", "v"))).await.unwrap();
    let StoreReply { outcome: StoreOutcome::Stored { digest }, .. } = stored else { panic!("{stored:?}") };
    let Ok(ReadReply { version: Some(found), .. }) = soon(there.read(read(&cluster, "k"))).await else {
        panic!("the version is gone")
    };
    assert_eq!((found.digest, found.body), (digest, Some("v".into())));
    let head = ReplicaRead { ask: Ask::Head, ..read(&cluster, "k") };
    let Ok(ReadReply { version: Some(head), .. }) = soon(there.read(head)).await else { panic!("the version is gone") };
    assert_eq!((head.digest, head.head, head.body), (digest, found.head, None));

    let elsewhere = ReplicaRead { partition: 99, ..read(&cluster, "k") };
    assert_eq!(kind(soon(there.read(elsewhere)).await), StoreFailureKind::Closed);
    let garbage = ReplicaStore { head: "garbage".into(), ..store(&cluster, "k", "v") };
    assert_eq!(kind(soon(there.store(garbage)).await), StoreFailureKind::Unreadable);
    faults.set(&faults.reads_fail, true);
    assert_eq!(kind(soon(there.read(read(&cluster, "k"))).await), StoreFailureKind::Unreadable);
    faults.set(&faults.reads_fail, false);
    faults.set(&faults.writes_fail, true);
    assert_eq!(kind(soon(there.store(store(&cluster, "other", "v"))).await), StoreFailureKind::DiskFull);
    faults.set(&faults.writes_fail, false);
    faults.set(&faults.syncs_fail, true);
    let synced = ReplicaStore { synced: true, ..store(&cluster, "third", "v") };
    assert_eq!(kind(soon(there.store(synced)).await), StoreFailureKind::Poisoned);
    faults.set(&faults.syncs_fail, false);
    assert!(cluster.beliefs.outcomes_of(cluster.id(1)).iter().all(|o| *o == RequestOutcome::Answered));
    cluster.stop().await;
}

#[tokio::test]
async fn what_no_service_has_seen_is_unreachable() {
    let cluster = Cluster::of(3);
    let there = cluster.replica(0, 1);
    soon(there.store(store(&cluster, "k", "v"))).await.unwrap();
    // Another lineage of the ring: nothing is executed.
    cluster.node(0).kv().set_ring(ombak_ring::Ring::clone(&other_lineage(&cluster))).unwrap();
    assert_eq!(kind(soon(there.store(store(&cluster, "other", "v"))).await), StoreFailureKind::Unreachable);
    assert_eq!(cluster.stored(1, "other"), None);
    assert_eq!(cluster.node(1).replica_counts().refused_lineage, 1);
    cluster.set_ring(RingVersion::first(7));
    soon(there.store(store(&cluster, "other", "v"))).await.unwrap();
    // A node that stops refuses first, and is gone then.
    soon(cluster.node(1).stop()).await;
    // A request that leaves before the goodbye arrives was not executed, either.
    for _ in 0..50 {
        assert_eq!(kind(soon(there.read(read(&cluster, "k"))).await), StoreFailureKind::Unreachable);
    }
    // A node that nobody knows.
    let nobody = ombak_kv::Peers::replica(&**cluster.node(0).peers(), ombak_types::NodeId::new(12_345));
    assert_eq!(kind(soon(nobody.read(read(&cluster, "k"))).await), StoreFailureKind::Unreachable);
    cluster.stop().await;
}

fn other_lineage(cluster: &Cluster) -> ombak_ring::Ring {
    let owners: Vec<_> = cluster.node(0).kv().ring().owners().collect();
    ombak_ring::Ring::from_owners(&owners, RingVersion::first(8)).unwrap()
}

#[tokio::test]
async fn questions_beyond_the_bound_are_refused() {
    let cluster = Cluster::configured(2, |parts| parts.replica_calls_max = 1);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    soon(there.store(store(&cluster, "k", "v"))).await.unwrap();
    faults.hold_syncs(true);
    let held = tokio::spawn(there.store(ReplicaStore { synced: true, ..store(&cluster, "held", "v") }));
    until("the sync begins", || faults.syncs.load(std::sync::atomic::Ordering::SeqCst) > 0).await;
    assert!(matches!(soon(there.read(read(&cluster, "k"))).await, Err(Error::Overload)));
    assert_eq!(cluster.node(1).replica_counts().refused_overload, 1);
    faults.hold_syncs(false);
    soon(held).await.unwrap().unwrap();
    assert!(matches!(soon(there.read(read(&cluster, "k"))).await, Ok(ReadReply { version: Some(_), .. })));
    assert!(cluster.beliefs.outcomes_of(cluster.id(1)).contains(&RequestOutcome::Overloaded));
    cluster.stop().await;
}

#[tokio::test]
async fn a_request_without_an_answer_is_a_timeout() {
    let cluster = Cluster::of(2);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    soon(there.store(store(&cluster, "k", "v"))).await.unwrap();
    faults.hold_syncs(true);
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    let late = soon(there.store(ReplicaStore { synced: true, deadline, ..store(&cluster, "late", "v") })).await;
    assert!(matches!(late, Err(Error::Timeout)), "{late:?}");
    assert_eq!(cluster.beliefs.outcomes_of(cluster.id(1)).last(), Some(&RequestOutcome::NotAnswered));
    // The connection ends before the answer. The node may have executed the request.
    let lost = tokio::spawn(there.store(ReplicaStore { synced: true, ..store(&cluster, "lost", "v") }));
    until("it is served", || cluster.node(1).replica_counts().stores_served == 3).await;
    cluster.node(1).transport().stop();
    let lost = soon(lost).await.unwrap();
    assert!(matches!(lost, Err(Error::Timeout)), "{lost:?}");
    // A caller that does not wait any more is heard of, too.
    faults.hold_syncs(false);
    cluster.stop().await;
}

#[tokio::test]
async fn a_question_that_is_given_up_is_reported() {
    let cluster = Cluster::of(2);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    soon(there.store(store(&cluster, "k", "v"))).await.unwrap();
    faults.hold_syncs(true);
    let given_up = there.store(ReplicaStore { synced: true, ..store(&cluster, "late", "v") });
    assert!(tokio::time::timeout(Duration::from_millis(20), given_up).await.is_err());
    assert_eq!(cluster.beliefs.outcomes_of(cluster.id(1)).last(), Some(&RequestOutcome::Abandoned));
    faults.hold_syncs(false);
    cluster.stop().await;
}

/// docs/design/replication.md §12: a forwarded put that comes late is not executed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_put_does_not_begin_after_its_deadline() {
    let cluster = Cluster::of(3);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    // The first put holds the lock of the key, on a thread that may wait.
    faults.set(&faults.nothing_cached, true);
    faults.hold_puts(true);
    let options = || PutOptions { n_val: Some(1), ..support::with_w(1) };
    let key = key_of(&cluster, 1);
    let first = tokio::spawn(there.coordinate(forwarded(1, put_request(&key, "first", options()), None)));
    until("the put is in the store", || faults.puts.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    let deadline = Some(Instant::now() + Duration::from_millis(100));
    let late = soon(there.coordinate(forwarded(2, put_request(&key, "late", options()), deadline))).await;
    assert!(matches!(late, Err(PutFailure::Refused(Error::Timeout) | PutFailure::Ended(Error::Timeout))), "{late:?}");
    faults.hold_puts(false);
    soon(first).await.unwrap().unwrap();
    until("nothing is served any more", || cluster.node(1).transport().serving() == 0).await;
    // The other nodes have no copy, and may answer before the disk of node 1.
    let only_copy = GetOptions { n_val: Some(1), ..GetOptions::default() };
    assert_eq!(soon(cluster.values_with(1, &key, only_copy)).await, ["first"]);
    assert_eq!(faults.puts.load(std::sync::atomic::Ordering::SeqCst), 1, "the late put never reached the store");
    cluster.stop().await;
}

fn forwarded(number: u64, request: PutRequest, deadline: Option<Instant>) -> ForwardedPut {
    ForwardedPut { number, request, begin_by: deadline, deadline }
}

/// docs/design/replication.md §12: a put that cannot leave is refused in time for another node.
#[tokio::test]
async fn a_forwarded_put_that_cannot_leave_is_refused_before_its_deadline() {
    // Without the limit of the put, connecting would take longer than this test waits.
    let cluster = Cluster::configured(2, |parts| parts.transport.connect_max = 2 * support::PATIENCE);
    // Connections to this listener are never accepted, so no handshake ends.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut members = cluster.node(0).members();
    members[0].address = silent.local_addr().unwrap();
    cluster.node(0).set_members(members);
    let (now, request) = (Instant::now(), put_request("k", "v", PutOptions::default()));
    let begin_by = Some(now + Duration::from_millis(50));
    let put = ForwardedPut { number: 1, request, begin_by, deadline: Some(now + 2 * support::PATIENCE) };
    let refused = soon(cluster.replica(0, 1).coordinate(put)).await;
    let Err(PutFailure::Refused(why)) = refused else { panic!("{refused:?}") };
    assert_eq!(kind::<()>(Err(why)), StoreFailureKind::Unreachable);
    cluster.stop().await;
}

/// A node that stops while others forward puts to it: what it did not execute, another node does.
#[tokio::test]
async fn no_put_is_lost_at_a_node_that_stops() {
    let cluster = Cluster::of(4);
    let puts = (0..400).map(|number| {
        let cluster = &cluster;
        async move {
            for _ in 0..number % 20 {
                tokio::task::yield_now().await;
            }
            cluster.put(0, &format!("k{number}"), "v", support::with_w(1)).await
        }
    });
    let stop = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        cluster.node(2).stop().await;
    };
    let (done, ()) = soon(async { tokio::join!(futures_util::future::join_all(puts), stop) }).await;
    for (number, said) in done.into_iter().enumerate() {
        assert!(said.is_ok(), "put {number}: {said:?}");
    }
    cluster.stop().await;
}

/// A key whose first position belongs to a node.
fn key_of(cluster: &Cluster, node: usize) -> String {
    let name = cluster.node(node).kv().node_name();
    let kv = cluster.node(node).kv();
    let is_first = |key: &String| kv.preflist(&support::bucket(), key.as_bytes()).unwrap()[0].node == name;
    (0..).map(|number| format!("k{number}")).find(is_first).unwrap()
}

/// A stop lets the requests that are under way end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_what_is_under_way_and_refuses_the_rest() {
    let cluster = Cluster::of(2);
    let (there, faults) = (cluster.replica(0, 1), &cluster.nodes[1].faults);
    faults.hold_syncs(true);
    let held = tokio::spawn(there.store(ReplicaStore { synced: true, ..store(&cluster, "held", "v") }));
    until("the sync begins", || faults.syncs.load(std::sync::atomic::Ordering::SeqCst) > 0).await;
    let stopping = cluster.node(1).stop();
    let check = async {
        // The refusal shows that the stop has begun.
        let give_up_at = Instant::now() + support::PATIENCE;
        while !matches!(there.read(read(&cluster, "k")).await, Err(Error::Storage(failure)) if failure.kind == StoreFailureKind::Unreachable)
        {
            assert!(Instant::now() < give_up_at, "reads are still served");
        }
        faults.hold_syncs(false);
        soon(held).await.unwrap().unwrap();
    };
    soon(async { tokio::join!(stopping, check) }).await;
    cluster.stop().await;
}
