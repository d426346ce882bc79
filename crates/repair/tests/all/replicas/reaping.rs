//! The removal of tombstones by rounds over all members (docs/design/replication.md §6).

use crate::replicas::cluster::{Cluster, bucket, count};
use crate::replicas::work::Work;
use bytes::Bytes;
use ombak_kv::hooks::ReapingGate;
use ombak_kv::replica::{ReapingClient, RemoveRequest, ReplicaClient, ReplicaStore, Round, StoreOutcome};
use ombak_kv::{DeleteMode, GetOptions, GetReply, PutOptions, is_tombstone};
use ombak_runtime::OtherClocks;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Object, Sibling, VectorClock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

fn reaping(count: usize) -> Cluster {
    let cluster = Cluster::of(count);
    cluster.start_reaping();
    cluster
}

#[tokio::test]
async fn a_tombstone_goes_when_all_primaries_have_it_and_no_other_member_holds_the_key() {
    let cluster = reaping(5);
    for number in 0..20 {
        let key = format!("k{number}");
        cluster.put(number % 5, &key, "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        cluster.delete((number + 1) % 5, &key).await;
        cluster.wait_until("the tombstone is gone", || cluster.holders(&key).is_empty()).await;
        let read = cluster.get(0, &key, GetOptions::default()).await.unwrap();
        assert_eq!(read, GetReply::NotFound { tombstone: None });
        cluster.put(number % 5, &key, "w", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        assert_eq!(cluster.values(0, &key).await, ["w"]);
    }
}

#[tokio::test]
async fn a_tombstone_stays_while_a_member_gives_no_answer_or_holds_the_key() {
    let cluster = reaping(5);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    // A stand-in takes a write for the last owner, and keeps it.
    cluster.set_down(owners[2], true);
    cluster.put(owners[0], "k", "w", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_down(owners[2], false);
    let stand_in = cluster.holders("k").into_iter().find(|node| !owners.contains(node)).unwrap();
    let silent = (0..5).find(|node| !owners.contains(node) && *node != stand_in).unwrap();
    cluster.put(owners[1], "gone", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.delete(owners[0], "k").await;
    let has_tombstone = |node| cluster.stored(node, "k").is_some_and(is_tombstone);
    cluster.wait_until("all owners have the tombstone", || owners.iter().all(|&node| has_tombstone(node))).await;
    // A round has come to its end, and another begins.
    let asked = |node: usize| cluster.nodes[node].counter().counter;
    let before = asked(stand_in);
    cluster.wait_until("the stand-in is asked again", || asked(stand_in) > before.max(1)).await;
    assert!(owners.iter().all(|&node| has_tombstone(node)), "the stand-in holds the key");
    cluster.set_cut(silent, true);
    cluster.drop_copy(stand_in, "k");
    let before = asked(stand_in);
    cluster.wait_until("the stand-in is asked again", || asked(stand_in) > before).await;
    assert!(owners.iter().all(|&node| has_tombstone(node)), "a member has not answered");
    cluster.set_cut(silent, false);
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
}

/// A gate that some member keeps closed, because it runs an earlier version.
struct ClosedGate;

impl ReapingGate for ClosedGate {
    fn may_take_times(&self) -> Option<bool> {
        Some(false)
    }
}

/// Some member removes tombstones with their times. The clock of a stand-in is behind. What it
/// writes must be newer than what was removed, as on a primary.
#[tokio::test]
async fn a_stand_in_stamps_no_earlier_than_what_was_removed() {
    let behind: Arc<Mutex<Option<String>>> = Arc::default();
    let names = behind.clone();
    let cluster = Cluster::configured(5, |config| {
        config.default_props.insert("allow_mult".into(), false.into());
        config.default_props.insert("last_write_wins".into(), true.into());
        config.hooks.reaping_gate = Some(Arc::new(ClosedGate));
        let (inner, name, names) = (config.runtime.clone(), config.node_name.clone(), names.clone());
        let clock = move || {
            let is_behind = names.lock().as_ref() == Some(&name);
            UnixMicros(inner.wall_clock().0 - if is_behind { 3_600_000_000 } else { 0 })
        };
        config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(clock));
    });
    cluster.start_reaping();
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let written = newest(&cluster, owners[0]).await;
    cluster.delete(owners[0], "k").await;
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
    let stand_in = (0..5).find(|node| !owners.contains(node)).unwrap();
    *behind.lock() = Some(format!("node{stand_in}"));
    owners.iter().for_each(|&owner| cluster.set_down(owner, true));
    cluster.put(stand_in, "k", "w", PutOptions::default()).await.unwrap();
    assert!(newest(&cluster, stand_in).await > written);
}

async fn newest(cluster: &Cluster, through: usize) -> UnixMicros {
    let GetReply::Found(object) = cluster.get(through, "k", GetOptions::default()).await.unwrap() else { panic!() };
    object.last_modified().unwrap()
}

/// The driver gives a primary the tombstone that it lacks, so that a later round ends.
#[tokio::test]
async fn a_primary_that_missed_the_delete_gets_the_tombstone() {
    let cluster = reaping(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, true);
    cluster.delete_with(0, "k", 2).await;
    assert!(cluster.stored(2, "k").is_some_and(|digest| !is_tombstone(digest)));
    cluster.set_cut(2, false);
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
}

/// The home changes while the primaries are told to remove a tombstone, so they refuse. A driver
/// that had removed its own copy would leave theirs to rounds that they drive after a minute.
#[tokio::test]
async fn what_a_disturbed_removal_leaves_behind_goes_within_seconds() {
    let cluster = reaping(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.network.links().refuse_removals(true);
    cluster.delete(0, "k").await;
    cluster.wait_until("the order to remove was repeated", || cluster.network.links().refused_removals() >= 6).await;
    cluster.network.links().refuse_removals(false);
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
}

/// Copies with equal clocks and different contents come from elsewhere (§11). No primary votes for
/// another one's copy, and nobody reads the key.
#[tokio::test]
async fn tombstones_with_equal_clocks_and_different_contents_become_equal_and_go() {
    let cluster = Cluster::of(3);
    let mut clock = VectorClock::new();
    clock.increment(&Actor::new(b"elsewhere"), UnixMicros(7_000_000));
    for node in 0..3 {
        (0..3).filter(|other| *other != node).for_each(|other| cluster.set_down(other, true));
        let mut tombstone = Sibling::tombstone();
        tombstone.meta.last_modified = Some(UnixMicros(8_000_000 + node as u64));
        let object = Object { clock: clock.clone(), siblings: vec![tombstone] };
        let asis = PutOptions { asis: true, w: count(1), ..PutOptions::default() };
        cluster.put_object(node, "k", object, asis).await.unwrap();
        (0..3).for_each(|other| cluster.set_down(other, false));
    }
    assert_eq!(cluster.holders("k"), [0, 1, 2]);
    assert!((0..3).all(|node| cluster.stored(node, "k").is_some_and(is_tombstone)));
    assert!((1..3).all(|node| cluster.stored(node, "k") != cluster.stored(0, "k")));
    cluster.start_reaping();
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
}

/// History 2 of §6: a copy that was read before the removal comes after it.
#[tokio::test]
async fn a_copy_that_was_read_before_the_removal_is_refused_after_it() {
    let cluster = reaping(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let old = cluster.copy_of(0, "k", cluster.nodes[1].counter());
    cluster.delete(0, "k").await;
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
    let replica = cluster.nodes[1].local_replica();
    let said = ombak_kv::replica::ReplicaClient::store(&replica, old.clone()).await.unwrap();
    assert_eq!(said.outcome, ombak_kv::replica::StoreOutcome::Fenced);
    assert_eq!(cluster.holders("k"), [] as [usize; 0]);
    // The counter that came with the refusal would let it in: so it is read again first.
    let again = ombak_kv::replica::ReplicaStore { noted: Some(said.counter), ..old };
    let said = ombak_kv::replica::ReplicaClient::store(&replica, again).await.unwrap();
    assert!(matches!(said.outcome, ombak_kv::replica::StoreOutcome::Stored { .. }));
}

/// History 13 of §6: a primary misses the order that takes the time of a tombstone, and gets the
/// tombstone without its time as a copy. A write that was read before that comes after it. It is so
/// for each deletion, also beside one whose tombstone has lost its time before.
#[tokio::test]
async fn a_copy_without_its_time_raises_the_fence_that_its_receiver_missed() {
    let cluster = Cluster::configured(3, without_siblings);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let replica = cluster.nodes[1].local_replica();
    let mut timeless = Object { clock: VectorClock::new(), siblings: Vec::new() };
    for deleted_by in ["one", "other"] {
        let late = cluster.copy_of(0, "k", cluster.nodes[1].counter());
        let mut clock = VectorClock::new();
        let dot = clock.increment(&Actor::new(deleted_by.as_bytes()), UnixMicros(7_000_000));
        let mut tombstone = Sibling::tombstone();
        tombstone.meta.dot = Some(dot);
        timeless.merge(Object { clock, siblings: vec![tombstone] });
        let mut head = Vec::new();
        ombak_types::stored_object::encode_head(&timeless, &mut head);
        let copy = ReplicaStore { head: head.into(), body: Bytes::new(), ..late.clone() };
        let said = replica.store(copy).await.unwrap();
        assert!(matches!(said.outcome, StoreOutcome::Stored { .. }), "{deleted_by}");
        let said = replica.store(late).await.unwrap();
        assert_eq!(said.outcome, StoreOutcome::Fenced, "{deleted_by}");
    }
}

/// A primary that missed that order gets the tombstone that it has, without its time. It has to
/// read its value from the disk for that, which the first try of a copy may not do. The fence that
/// is raised must not refuse the second try, or the primaries never agree.
#[tokio::test]
async fn a_copy_takes_the_time_of_the_tombstone_that_its_receiver_has() {
    let cluster = Cluster::configured(3, without_siblings);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let replica = cluster.nodes[1].local_replica();
    let mut clock = cluster.clock(0, "k").await;
    let mut tombstone = Sibling::tombstone();
    tombstone.meta.dot = Some(clock.increment(&Actor::new(b"deleter"), UnixMicros(7_000_000)));
    tombstone.meta.last_modified = Some(UnixMicros(7_000_000));
    let timed = Object { clock, siblings: vec![tombstone] };
    let mut timeless = timed.clone();
    timeless.take_times_of_tombstones();
    cluster.faults[1].set(&cluster.faults[1].no_value_cached, true);
    let sent = cluster.copy_of(0, "k", cluster.nodes[1].counter());
    let mut stored = Vec::new();
    for form in [timed, timeless] {
        let mut head = Vec::new();
        ombak_types::stored_object::encode_head(&form, &mut head);
        let noted = Some(cluster.nodes[1].counter());
        let copy = ReplicaStore { head: head.into(), body: Bytes::new(), noted, ..sent.clone() };
        let said = replica.store(copy).await.unwrap();
        assert!(matches!(said.outcome, StoreOutcome::Stored { .. }), "{:?}", said.outcome);
        stored.push(cluster.stored(1, "k"));
    }
    assert_ne!(stored[0], stored[1], "the tombstone kept its time");
}

fn without_siblings(config: &mut ombak_kv::KvConfig) {
    config.default_props.insert("allow_mult".into(), false.into());
}

/// History 9 of §6: v1 is written to one node alone, v2 to the others, which then delete it. The
/// deletion is newer than v1, so v1 stays hidden when its node returns, as in Riak. Listings agree.
#[tokio::test]
async fn a_newer_deletion_hides_a_value_that_it_has_not_seen() {
    let cluster = Cluster::configured(3, |config| {
        without_siblings(config);
        config.delete_mode = DeleteMode::Keep;
    });
    let alone = || PutOptions { w: count(1), ..PutOptions::default() };
    (1..3).for_each(|node| cluster.set_down(node, true));
    cluster.put(0, "k", "v1", alone()).await.unwrap();
    (0..3).for_each(|node| cluster.set_down(node, node == 0));
    cluster.put(1, "k", "v2", alone()).await.unwrap();
    cluster.delete_with(1, "k", 2).await;
    assert_eq!(cluster.values(2, "k").await, [] as [&str; 0]);
    cluster.set_down(0, false);
    for through in 0..3 {
        assert_eq!(cluster.get_all(through, "k").await, [] as [&str; 0], "through node {through}");
    }
    cluster.start_reaping();
    cluster.start_transfers();
    let is_deleted = |node| cluster.stored(node, "k").is_some_and(is_tombstone);
    cluster.wait_until("all copies are tombstones", || (0..3).all(is_deleted)).await;
    cluster
        .wait_until("they are equal", || (1..3).all(|node| cluster.stored(node, "k") == cluster.stored(0, "k")))
        .await;
    let mut listing = cluster.nodes[0].list_keys(&bucket(), Some(Duration::from_secs(30))).unwrap();
    while let Some(batch) = listing.next().await {
        assert_eq!(batch.unwrap().len(), 0, "a listing shows the deleted key");
    }
}

/// History 10 of §6: a removal misses one primary, whose clock was ahead when it deleted. What is
/// left behind there has no time, so a value of a clock that is behind is newer.
#[tokio::test]
async fn what_a_removal_leaves_behind_hides_no_later_value() {
    for last_write_wins in [false, true] {
        let ahead: Arc<Mutex<Option<String>>> = Arc::default();
        let names = ahead.clone();
        let cluster = Cluster::configured(3, |config| {
            without_siblings(config);
            config.default_props.insert("last_write_wins".into(), last_write_wins.into());
            config.delete_mode = DeleteMode::Keep;
            let (inner, name, names) = (config.runtime.clone(), config.node_name.clone(), names.clone());
            let clock = move || {
                let is_ahead = names.lock().as_ref() == Some(&name);
                UnixMicros(inner.wall_clock().0 + if is_ahead { 3_600_000_000 } else { 0 })
            };
            config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(clock));
        });
        *ahead.lock() = Some("node2".into());
        cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        cluster.delete(2, "k").await;
        let digest = cluster.stored(2, "k").unwrap();
        assert!((0..3).all(|node| cluster.stored(node, "k") == Some(digest) && is_tombstone(digest)));
        // The first order takes the time everywhere.
        remove(&cluster, &[0, 1, 2], digest).await;
        let timeless = cluster.stored(2, "k").unwrap();
        assert!(timeless != digest && is_tombstone(timeless));
        assert!((0..2).all(|node| cluster.stored(node, "k") == Some(timeless)));
        // The second one removes it, and does not reach node 2.
        remove(&cluster, &[0, 1], timeless).await;
        assert_eq!(cluster.holders("k"), [2]);
        cluster.put(0, "k", "new", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        for through in 0..3 {
            assert_eq!(cluster.get_all(through, "k").await, ["new"], "last_write_wins: {last_write_wins}");
        }
    }
}

/// A late copy of the tombstone with its time does not give the time back.
#[tokio::test]
async fn a_tombstone_does_not_get_its_time_back() {
    let cluster = Cluster::configured(3, |config| config.delete_mode = DeleteMode::Keep);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.delete(0, "k").await;
    let digest = cluster.stored(0, "k").unwrap();
    remove(&cluster, &[0], digest).await;
    let timeless = cluster.stored(0, "k").unwrap();
    assert_eq!(cluster.stored(1, "k"), Some(digest));
    let late = cluster.copy_of(1, "k", cluster.nodes[0].counter());
    ombak_kv::replica::ReplicaClient::store(&cluster.nodes[0].local_replica(), late).await.unwrap();
    assert_eq!(cluster.stored(0, "k"), Some(timeless));
    // A read repairs the others.
    cluster.get_all(2, "k").await;
    cluster.wait_until("no copy has the time", || (0..3).all(|node| cluster.stored(node, "k") == Some(timeless))).await;
}

/// Orders some primaries to remove a version.
async fn remove(cluster: &Cluster, nodes: &[usize], digest: u64) {
    let copy = cluster.copy_of(nodes[0], "k", cluster.nodes[nodes[0]].counter());
    let round = Round { partition: copy.partition, n_val: copy.n, ring: copy.ring, number: 1 };
    for &node in nodes {
        ombak_repair::Repair::of(&cluster.nodes[node]);
        let request = RemoveRequest { round, versions: vec![(copy.key.clone(), digest)], told: Vec::new() };
        cluster.nodes[node].local_replica().remove(request).await.unwrap();
    }
}
