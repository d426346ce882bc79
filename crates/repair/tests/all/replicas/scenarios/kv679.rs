//! The scenarios that Riak's tests call kv679: an acknowledged write must not be mistaken for an
//! event that was seen before, whatever a node has lost and whatever comes back late.

use super::{owners, read, stand_ins, with_r, with_w, write};
use crate::replicas::cluster::{Cluster, bucket};
use crate::replicas::work::Work;
use ombak_kv::{DeleteMode, GetOptions, is_tombstone};
use ombak_types::VectorClock;

/// How a node loses what it has of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// The entry is gone from the store, and nobody has noticed it.
    Entry,
    /// The node starts again with empty stores.
    Stores,
}

/// After some writes the node that coordinated them loses its data. A writer who has seen nothing
/// writes through it. The replicas' older clock must not hide that value: both become siblings.
#[tokio::test]
async fn kv679_dataloss() {
    for loss in [Loss::Entry, Loss::Stores] {
        let mut cluster = Cluster::of(3);
        let mut seen = VectorClock::new();
        for number in 1..=5 {
            seen = write(&cluster, 0, "k", &number.to_string(), &seen, with_w(3)).await.unwrap();
        }
        match loss {
            Loss::Entry => cluster.drop_copy(0, "k"),
            Loss::Stores => cluster.restart_without_objects(0).await,
        }
        assert_eq!(cluster.stored(0, "k"), None);
        write(&cluster, 0, "k", "new", &VectorClock::new(), with_w(3)).await.unwrap();
        for node in 0..3 {
            assert_eq!(read(&cluster, node, "k", with_r(3)).await.1, ["5", "new"], "{loss:?}, node {node}");
        }
        cluster.start_transfers();
        cluster.wait_until_equal(&[0, 1, 2], "k").await;
        cluster.wait_until_settled().await;
        assert_eq!(read(&cluster, 1, "k", with_r(3)).await.1, ["5", "new"], "{loss:?}");
    }
}

/// Stand-ins hold the first version. The primary that coordinated the second one loses its copy,
/// and a read repairs it from a stand-in. What a writer of the first version writes then must not
/// take the event of the second version, which was acknowledged: both become siblings.
#[tokio::test]
async fn kv679_dataloss_fb() {
    let cluster = Cluster::of(5);
    let owners = owners(&cluster, &bucket(), "k");
    let [first, second, third] = owners[..] else { panic!("{owners:?}") };
    cluster.set_down(second, true);
    cluster.set_down(third, true);
    let seen = write(&cluster, first, "k", "1", &VectorClock::new(), with_w(3)).await.unwrap();
    let fallbacks = stand_ins(&cluster, &owners);
    assert!(fallbacks.iter().all(|&node| cluster.stored(node, "k").is_some()), "both stand-ins have the version");
    // The second version is acknowledged by two primaries; the third does not get it.
    cluster.set_down(second, false);
    cluster.set_down(third, false);
    cluster.set_cut(third, true);
    write(&cluster, first, "k", "2", &seen, with_w(2)).await.unwrap();
    cluster.set_cut(third, false);
    cluster.drop_copy(first, "k");
    // The only other node with the second version is down; the stand-in takes its place.
    cluster.set_down(second, true);
    assert_eq!(read(&cluster, third, "k", with_r(3)).await.1, ["1"]);
    cluster.wait_until_equal(&[first, third, fallbacks[0]], "k").await;
    write(&cluster, first, "k", "3", &seen, with_w(3)).await.unwrap();
    cluster.set_down(second, false);
    cluster.start_transfers();
    cluster.wait_until_settled().await;
    for node in 0..5 {
        assert_eq!(read(&cluster, node, "k", with_r(3)).await.1, ["2", "3"], "node {node}");
    }
    // No mark knows of what was lost, so the reads have repaired it.
    cluster.wait_until_equal(&owners, "k").await;
}

/// Several stand-ins hold different versions, the primary has lost its copy, and it cannot read its
/// new one while the versions are handed back. After that every acknowledged value is there.
#[tokio::test]
async fn kv679_dataloss_fb2() {
    let cluster = Cluster::configured(5, |config| {
        config.default_props.insert("dvv_enabled".into(), true.into());
    });
    let owners = owners(&cluster, &bucket(), "k");
    let [first, second, third] = owners[..] else { panic!("{owners:?}") };
    let fallbacks = stand_ins(&cluster, &owners);
    cluster.set_down(second, true);
    cluster.set_down(third, true);
    let seen = write(&cluster, first, "k", "1", &VectorClock::new(), with_w(3)).await.unwrap();
    // Only the first stand-in gets the second version.
    cluster.set_cut(fallbacks[1], true);
    write(&cluster, first, "k", "2", &seen, with_w(2)).await.unwrap();
    // Only the second stand-in gets the third one.
    cluster.drop_copy(first, "k");
    cluster.set_cut(fallbacks[1], false);
    cluster.set_cut(fallbacks[0], true);
    write(&cluster, first, "k", "3", &VectorClock::new(), with_w(2)).await.unwrap();
    cluster.set_cut(fallbacks[0], false);
    let versions: Vec<_> = fallbacks.iter().map(|&node| cluster.stored(node, "k")).collect();
    assert_ne!(versions[0], versions[1]);
    // The primary cannot read its copy while the others come back.
    let faults = &cluster.faults[first];
    faults.set(&faults.reads_fail, true);
    cluster.set_down(second, false);
    cluster.set_down(third, false);
    cluster.start_transfers();
    cluster.wait_until_equal(&[second, third], "k").await;
    faults.set(&faults.reads_fail, false);
    cluster.wait_until_settled().await;
    for node in 0..5 {
        assert_eq!(read(&cluster, node, "k", with_r(3)).await.1, ["2", "3"], "node {node}");
    }
    // No mark knows of what was lost, so the reads have repaired it.
    cluster.wait_until_equal(&owners, "k").await;
    assert_eq!(cluster.holders("k"), sorted(&owners));
}

/// A key is deleted while one primary is down, so a stand-in has the tombstone. The key is gone
/// from the primaries, and is written again. When the stand-in hands its tombstone back, that must
/// not hide the new value.
#[tokio::test]
async fn kv679_tombstone() {
    for allow_mult in [true, false] {
        let cluster = keeping_tombstones(allow_mult);
        let owners = owners(&cluster, &bucket(), "k");
        let [first, second, third] = owners[..] else { panic!("{owners:?}") };
        write(&cluster, first, "k", "old", &VectorClock::new(), with_w(3)).await.unwrap();
        cluster.set_down(third, true);
        cluster.delete(first, "k").await;
        let fallback = stand_ins(&cluster, &owners)[0];
        assert!(cluster.stored(fallback, "k").is_some_and(is_tombstone));
        cluster.drop_copy(first, "k");
        cluster.drop_copy(second, "k");
        cluster.set_cut(fallback, true);
        write(&cluster, first, "k", "new", &VectorClock::new(), with_w(2)).await.unwrap();
        cluster.set_cut(fallback, false);
        cluster.set_down(third, false);
        cluster.start_transfers();
        assert_new_value_stays(&cluster, &owners).await;
    }
}

/// The same, with the tombstone left on a primary that crashed and returns.
#[tokio::test]
async fn kv679_tombstone2() {
    for allow_mult in [true, false] {
        let cluster = keeping_tombstones(allow_mult);
        let owners = owners(&cluster, &bucket(), "k");
        let [first, second, third] = owners[..] else { panic!("{owners:?}") };
        write(&cluster, first, "k", "old", &VectorClock::new(), with_w(3)).await.unwrap();
        cluster.delete(first, "k").await;
        cluster.wait_until_equal(&owners, "k").await;
        cluster.set_down(third, true);
        cluster.drop_copy(first, "k");
        cluster.drop_copy(second, "k");
        write(&cluster, first, "k", "new", &VectorClock::new(), with_w(3)).await.unwrap();
        cluster.set_down(third, false);
        cluster.start_transfers();
        assert_new_value_stays(&cluster, &owners).await;
    }
}

/// The replicas of a key issue events under different ids, and none uses an id of before its start
/// again.
#[tokio::test]
async fn kv679_uid() {
    let mut cluster = Cluster::of(3);
    let mut ids = Vec::new();
    for round in ["before", "after"] {
        for node in 0..3 {
            let key = format!("{round} {node}");
            let clock = write(&cluster, node, &key, "v", &VectorClock::new(), with_w(3)).await.unwrap();
            assert_eq!(clock.entries().len(), 1, "one node issued the event");
            ids.push(clock.entries()[0].actor.as_bytes()[..8].to_vec());
        }
        if round == "before" {
            for node in 0..3 {
                cluster.restart_without_objects(node).await;
            }
        }
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 6, "{ids:?}");
}

/// Bucket types have dotted version vectors by default, untyped buckets have not.
fn keeping_tombstones(allow_mult: bool) -> Cluster {
    Cluster::configured(5, move |config| {
        config.delete_mode = DeleteMode::Keep;
        config.default_props.insert("dvv_enabled".into(), true.into());
        config.default_props.insert("allow_mult".into(), allow_mult.into());
    })
}

/// Waits until everything lies where it belongs, and checks that every node shows the new value.
async fn assert_new_value_stays(cluster: &Cluster, owners: &[usize]) {
    cluster.wait_until_settled().await;
    for node in 0..cluster.nodes.len() {
        let (_, values) = read(cluster, node, "k", GetOptions::default()).await;
        assert_eq!(values, ["new"], "node {node}");
    }
    // A tombstone that only one primary had is known to no mark, so the reads have repaired it
    // (docs/design/replication.md §6).
    cluster.wait_until_equal(owners, "k").await;
    assert_eq!(cluster.holders("k"), sorted(owners));
}

fn sorted(nodes: &[usize]) -> Vec<usize> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}
