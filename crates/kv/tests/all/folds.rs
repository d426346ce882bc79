//! Folds over several engines in one process: what every node gathers is what the stores hold, each
//! key once, whichever nodes fail meanwhile.

use crate::coverage::{Cluster, Fault};
use bytes::Bytes;
use ombak_kv::folds::{FoldRange, FoldResult, FoldWants, Found, FoundKey, KeyConsumer, SegmentFilter};
use ombak_kv::{KeepTrees, KeptTree, Kv, KvConfig, MemoryReservation, PutOptions, PutRequest, TreeState};
use ombak_ring::KeyHash;
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_tictac::{ClockHash, Segment, Tree, TreeSize};
use ombak_types::stored_object::encode_head;
use ombak_types::time::{GREGORIAN_OFFSET_SECS, UnixMicros};
use ombak_types::{Actor, Bucket, Dot, Error, Object, Quorum, Sibling, SiblingMeta, VectorClock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: TreeSize = TreeSize::Small;
const TREE: FoldWants = FoldWants::Tree(SIZE, ClockHash::With(3));

/// Memory without a limit.
struct Room;

impl MemoryReservation for Room {
    fn reserve(&mut self, _bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        Box::pin(ready(Ok(())))
    }
}

async fn gather(node: &Kv, range: FoldRange, wants: FoldWants) -> Result<FoldResult, Error> {
    node.fold(range, wants, &mut Room).await
}

/// The objects of a test.
#[derive(Default)]
struct Model(BTreeMap<(Bucket, String), Object>);

impl Model {
    /// Objects of buckets with one, two and three copies. Some have siblings, and some are
    /// tombstones.
    fn fill(cluster: &Cluster, keys: usize) -> Self {
        let mut model = Self::default();
        for (name, n) in [("n1", 1), ("n2", 2), ("b", 3)] {
            for number in 0..keys {
                let (bucket, key) = (Bucket::untyped(name), format!("k{number:06}"));
                let object = object(number as u64);
                let mut head = Vec::new();
                encode_head(&object, &mut head);
                cluster.store_head(&bucket, &key, n, &head);
                model.0.insert((bucket, key), object);
            }
        }
        model
    }

    fn of<'a>(&'a self, bucket: &'a Bucket) -> impl Iterator<Item = (&'a str, &'a Object)> {
        self.0.iter().filter(move |((of, _), _)| of == bucket).map(|((_, key), object)| (&key[..], object))
    }

    /// The keys of the objects of a bucket that meet a condition.
    fn keys(&self, bucket: &Bucket, meets: impl Fn(&str, &Object) -> bool) -> Vec<String> {
        self.of(bucket).filter(|(key, object)| meets(key, object)).map(|(key, _)| key.to_owned()).collect()
    }

    fn tree(&self, bucket: &Bucket) -> Tree {
        let mut tree = Tree::new(SIZE);
        for (key, object) in self.of(bucket) {
            tree.add(Segment::of(bucket, key.as_bytes()), ClockHash::With(3).of(&object.clock));
        }
        tree
    }
}

/// The object with this number: written in that second, with up to three siblings.
fn object(number: u64) -> Object {
    let actor = Actor::new(&number.to_be_bytes());
    let clock = VectorClock::from_entries([Dot { actor, counter: 1, stamp_secs: GREGORIAN_OFFSET_SECS + number }]);
    let sibling = |at: u64| Sibling {
        value: Bytes::from(vec![b'v'; at as usize]),
        meta: SiblingMeta {
            deleted: number.is_multiple_of(7),
            last_modified: Some(UnixMicros::from_secs(number)),
            ..SiblingMeta::default()
        },
    };
    let siblings = if number.is_multiple_of(7) { 1 } else { 1 + number % 3 };
    Object { clock, siblings: (0..siblings).map(sibling).collect() }
}

fn names(result: &FoldResult) -> Vec<String> {
    result.keys.iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn every_node_gathers_what_the_stores_hold() {
    let cluster = Cluster::of(5);
    let model = Model::fill(&cluster, 1_500);
    for through in 0..5 {
        let node = &cluster.nodes[through];
        for name in ["n1", "n2", "b"] {
            let bucket = Bucket::untyped(name);
            let range = || FoldRange::of_bucket(bucket.clone());
            let stats = gather(node, range(), FoldWants::Stats).await.unwrap().stats;
            assert_eq!((stats.objects, stats.siblings.values().sum::<u64>()), (1_500, 1_500));
            assert_eq!(gather(node, range(), TREE).await.unwrap().tree, model.tree(&bucket));
            let clocks = gather(node, range(), FoldWants::Clocks).await.unwrap();
            let found: Vec<_> = clocks.keys.iter().map(|found| found.found.clone()).collect();
            let expected: Vec<_> = model.of(&bucket).map(|(_, object)| Found::Clock(object.clock.clone())).collect();
            assert_eq!(found, expected);
            let tombstones = gather(node, range(), FoldWants::Tombstones).await.unwrap();
            assert_eq!(names(&tombstones), model.keys(&bucket, |_, object| object.is_deleted()));
            let siblings = gather(node, range(), FoldWants::SiblingsAbove(2)).await.unwrap();
            assert_eq!(names(&siblings), model.keys(&bucket, |_, object| object.siblings.len() > 2));
        }
        let buckets = gather(node, FoldRange::of_classes([1, 2, 3]), FoldWants::Buckets).await.unwrap().buckets;
        assert_eq!(buckets, ["n1", "n2", "b"].map(Bucket::untyped).into_iter().collect());
        let of_two = gather(node, FoldRange::of_classes([2]), TREE).await.unwrap().tree;
        assert_eq!(of_two, model.tree(&Bucket::untyped("n2")));
    }
}

#[tokio::test]
async fn each_condition_of_a_range_selects_by_itself_and_with_the_others() {
    let cluster = Cluster::of(3);
    let model = Model::fill(&cluster, 400);
    let bucket = Bucket::untyped("b");
    let leaf = |key: &str| SIZE.leaf_of(Segment::of(&bucket, key.as_bytes()).number);
    let keys = (Bytes::from_static(b"k000050"), Bytes::from_static(b"k000149"));
    let leaves: BTreeSet<u32> = (0..400).step_by(3).map(|number| leaf(&format!("k{number:06}"))).collect();
    let segments = SegmentFilter { size: SIZE, leaves: leaves.clone() };
    for chosen in 0..8u8 {
        let range = FoldRange {
            keys: (chosen & 1 != 0).then(|| keys.clone()),
            modified: (chosen & 2 != 0).then_some((100, 299)),
            segments: (chosen & 4 != 0).then(|| segments.clone()),
            ..FoldRange::of_bucket(bucket.clone())
        };
        let expected = model.keys(&bucket, |key, object| {
            let secs = object.last_modified().unwrap_or_default().secs();
            (chosen & 1 == 0 || ("k000050"..="k000149").contains(&key))
                && (chosen & 2 == 0 || (100..=299).contains(&secs))
                && (chosen & 4 == 0 || leaves.contains(&leaf(key)))
        });
        assert!(!expected.is_empty(), "the test selects something");
        let found = gather(&cluster.nodes[1], range, FoldWants::Clocks).await.unwrap();
        assert_eq!(names(&found), expected, "{chosen:03b}");
    }
}

/// What a node has sent of a home partition does not count when another node answers for it.
#[tokio::test]
async fn nothing_counts_twice_when_another_replica_begins_again() {
    for fault in [Fault::Breaks(0), Fault::Breaks(1), Fault::Breaks(3), Fault::Ends(1)] {
        let cluster = Cluster::of(5);
        let model = Model::fill(&cluster, 4_000);
        let bucket = Bucket::untyped("b");
        cluster.fault(1, fault);
        if let Fault::Breaks(_) = fault {
            cluster.fault(3, fault);
        }
        let range = || FoldRange::of_bucket(bucket.clone());
        let node = &cluster.nodes[0];
        assert_eq!(gather(node, range(), FoldWants::Stats).await.unwrap().stats.objects, 4_000, "{fault:?}");
        assert_eq!(gather(node, range(), TREE).await.unwrap().tree, model.tree(&bucket), "{fault:?}");
        let clocks = gather(node, range(), FoldWants::Clocks).await.unwrap();
        assert_eq!(names(&clocks), model.keys(&bucket, |_, _| true), "{fault:?}");
    }
}

/// Counts how often each key comes.
#[derive(Default)]
struct Taken {
    keys: BTreeMap<Bytes, usize>,
    largest: usize,
}

impl KeyConsumer for Taken {
    fn take(&mut self, keys: Vec<FoundKey>) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        self.largest = self.largest.max(keys.len());
        keys.into_iter().for_each(|found| *self.keys.entry(found.key).or_default() += 1);
        Box::pin(ready(Ok(())))
    }
}

/// All keys are in one home partition, and nodes fail after a consumer has got many of them.
#[tokio::test]
async fn a_consumer_gets_each_key_of_a_large_home_partition_once_whichever_nodes_fail() {
    const KEYS: usize = 9_000;
    for fault in [None, Some(Fault::Breaks(45)), Some(Fault::Breaks(70)), Some(Fault::Ends(50))] {
        let cluster = Cluster::of(4);
        let (ring, bucket) = (cluster.nodes[0].ring(), Bucket::untyped("b"));
        let first = cluster.nodes[0].identity().node_id;
        let home_of = |key: &str| ring.home_of(&KeyHash::of_key(&bucket, key.as_bytes()));
        // The first node asks, and holds nothing of it.
        let home = (0..).find(|home| !ring.replica_set(*home, 3).contains(&first)).unwrap();
        let keys: Vec<String> =
            (0..).map(|number| format!("k{number}")).filter(|key| home_of(key) == home).take(KEYS).collect();
        let mut head = Vec::new();
        encode_head(&object(1), &mut head);
        keys.iter().for_each(|key| cluster.store_head(&bucket, key, 3, &head));
        if let Some(fault) = fault {
            cluster.fault(1, fault);
            cluster.fault(2, fault);
        }
        let (range, mut taken) = (FoldRange::of_bucket(bucket.clone()), Taken::default());
        let told = cluster.nodes[0].fold_keys(range, FoldWants::Living, &mut Room, &mut taken).await;
        assert_eq!((told, taken.keys.len()), (Ok(KEYS as u64), KEYS), "{fault:?}");
        assert!(taken.keys.values().all(|times| *times == 1), "{fault:?}");
        assert!(taken.largest < KEYS, "it came in pieces");
    }
}

#[tokio::test]
async fn a_fold_fails_when_some_home_partition_has_no_replica() {
    let cluster = Cluster::of(4);
    Model::fill(&cluster, 50);
    cluster.set_down(2);
    let of = |name: &'static str| FoldRange::of_bucket(Bucket::untyped(name));
    let node = &cluster.nodes[0];
    assert_eq!(gather(node, of("b"), FoldWants::Stats).await.unwrap().stats.objects, 50);
    let lost = gather(node, of("n1"), FoldWants::Stats).await;
    assert_eq!(lost.map(drop), Err(Error::InsufficientVnodesAvailable));
    let typed = FoldRange::of_bucket(Bucket::typed("nosuch", "b"));
    assert!(matches!(gather(node, typed, FoldWants::Stats).await, Err(Error::NoType(_))));
}

/// A lone node folds over what its clients have written, and a tombstone is an object.
#[tokio::test]
async fn a_lone_node_folds_over_what_clients_write() {
    let cluster = Cluster::with(1, |_, config| config.queries.has_empty_folds = false);
    let (node, bucket) = (&cluster.nodes[0], Bucket::untyped("b"));
    for key in ["a", "c", "d"] {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("value")] };
        let options = PutOptions { w: Some(Quorum::All), ..PutOptions::default() };
        let key = Some(Bytes::from_static(key.as_bytes()));
        node.put(PutRequest { bucket: bucket.clone(), key, object, options }).await.unwrap();
    }
    let range = || FoldRange::of_bucket(bucket.clone());
    let living = gather(node, range(), FoldWants::Living).await.unwrap();
    assert_eq!(names(&living), ["a", "c", "d"]);
    let large = gather(node, range(), FoldWants::BytesAbove(4)).await.unwrap();
    assert_eq!(large.keys.len(), 3);
    let Found::Number(bytes) = large.keys[0].found else { panic!("a number") };
    let stats = gather(node, range(), FoldWants::Stats).await.unwrap().stats;
    assert_eq!((stats.objects, stats.bytes), (3, 3 * bytes));
}

const KEPT: FoldWants = FoldWants::Tree(TreeSize::Large, ClockHash::Plain);
const KEPT_ROOT: FoldWants = FoldWants::Root(TreeSize::Large, ClockHash::Plain);

/// The tree that is made of what the nodes hold, by a fold that no kept tree can answer.
async fn walked(node: &Kv, n: u32) -> Tree {
    let modified = Some((0, u32::MAX));
    gather(node, FoldRange { modified, ..FoldRange::of_classes([n]) }, KEPT).await.unwrap().tree
}

async fn root(node: &Kv, n: u32) -> Vec<u8> {
    gather(node, FoldRange::of_classes([n]), KEPT_ROOT).await.unwrap().root
}

fn kept_trees(node: &Kv) -> u64 {
    node.stats().numbers().into_iter().find(|(name, _)| name == "ombak_kept_trees").unwrap().1
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn put(node: &Kv, bucket: &Bucket, key: String) {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("value")] };
    let options = PutOptions { w: Some(Quorum::All), ..PutOptions::default() };
    node.put(PutRequest { bucket: bucket.clone(), key: Some(key.into()), object, options }).await.unwrap();
}

/// The trees of an n_val are kept from the first question on. What puts add is in them, and they
/// answer: what is written past them is not in their answers.
#[tokio::test]
async fn kept_trees_answer_what_a_walk_answers() {
    let cluster = Cluster::with(3, |_, config| config.trees.keep = KeepTrees::WhenAsked);
    let (node, bucket) = (&cluster.nodes[0], Bucket::untyped("b"));
    for number in 0..200 {
        put(node, &bucket, format!("k{number}")).await;
    }
    assert_eq!(cluster.nodes.iter().map(kept_trees).sum::<u64>(), 0);
    let by_walk = walked(node, 3).await;
    assert_eq!(root(node, 3).await, by_walk.root());
    // Each node answers for some partitions, and keeps the trees of all of which it is a primary.
    let homes = node.stores().count() as u64;
    for node in &cluster.nodes {
        root(node, 3).await;
    }
    until("every primary keeps its trees", || cluster.nodes.iter().all(|node| kept_trees(node) == homes)).await;
    for number in 150..300 {
        put(node, &bucket, format!("k{number}")).await;
    }
    for node in &cluster.nodes {
        let by_walk = walked(node, 3).await;
        assert_eq!(root(node, 3).await, by_walk.root());
        let kept = gather(node, FoldRange::of_classes([3]), KEPT).await.unwrap().tree;
        assert_eq!(kept, by_walk);
        let leaves: BTreeSet<u32> =
            by_walk.branches().take(5).flat_map(|branch| branch * 256..(branch + 1) * 256).collect();
        let segments = Some(SegmentFilter { size: TreeSize::Large, leaves });
        let some = gather(node, FoldRange { segments, ..FoldRange::of_classes([3]) }, KEPT).await.unwrap().tree;
        assert_eq!(some.branches().collect::<Vec<_>>(), by_walk.branches().take(5).collect::<Vec<_>>());
        assert!(some.branches().all(|branch| some.branch(branch) == by_walk.branch(branch)));
    }
    let before = root(node, 3).await;
    let mut head = Vec::new();
    encode_head(&object(1), &mut head);
    cluster.store_head(&bucket, "past", 3, &head);
    assert_eq!(root(node, 3).await, before, "the kept trees have answered");
    assert_ne!(walked(node, 3).await.root(), before);
}

/// Nobody asks any more, so the memory is given back.
#[tokio::test]
async fn kept_trees_are_given_up_when_nobody_asks() {
    let cluster = Cluster::with(1, |_, config| {
        (config.trees.keep, config.trees.idle) = (KeepTrees::WhenAsked, Duration::from_secs(3));
    });
    let node = &cluster.nodes[0];
    put(node, &Bucket::untyped("b"), "k".to_owned()).await;
    root(node, 3).await;
    until("its trees are made", || kept_trees(node) > 0).await;
    until("its trees are given up", || kept_trees(node) == 0).await;
}

fn built(node: &Kv) -> u64 {
    node.stats().numbers().into_iter().find(|(name, _)| name.contains("kept_trees_built")).unwrap().1
}

/// The trees of an n_val that are there.
fn there(node: &Kv, n: u32) -> usize {
    let is_there = |tree: &&KeptTree| tree.n_val == n && matches!(tree.state, TreeState::Built | TreeState::Rebuilding);
    node.kept_trees().unwrap().iter().filter(is_there).count()
}

/// Not all trees have room. Those that are there are made anew nevertheless, and the others come
/// when nobody asks for the first ones any more.
#[tokio::test]
async fn trees_are_made_anew_in_full_memory_and_others_come_when_it_is_free_again() {
    let cluster = Cluster::with(1, |_, config| {
        (config.trees.keep, config.trees.idle) = (KeepTrees::WhenAsked, Duration::from_secs(4));
        // That of three trees, one of which is the room of a rebuild.
        config.trees.memory_bytes_max = 13 << 20;
    });
    let node = &cluster.nodes[0];
    put(node, &Bucket::untyped("b"), "k".to_owned()).await;
    put(node, &Bucket::untyped("n2"), "k".to_owned()).await;
    assert_eq!(node.kept_trees(), Some(Vec::new()), "nobody has asked");
    root(node, 3).await;
    until("two trees are made", || there(node, 3) == 2).await;
    let homes = node.stores().count();
    assert_eq!(node.kept_trees().unwrap().len(), homes, "the others are wanted");
    let before = built(node);
    assert_eq!(node.rebuild_kept_trees(None, Duration::ZERO), Some(homes));
    until("both are made anew", || built(node) == before + 2).await;
    assert_eq!(there(node, 3), 2);
    let began = Instant::now();
    while (there(node, 3), there(node, 2)) != (0, 2) {
        assert!(began.elapsed() < Duration::from_secs(30), "the others do not have their turn");
        root(node, 2).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_tree_of_one_partition_is_made_anew_at_its_time() {
    let cluster = Cluster::with(1, |_, config| config.trees.keep = KeepTrees::WhenAsked);
    let node = &cluster.nodes[0];
    put(node, &Bucket::untyped("b"), "k".to_owned()).await;
    root(node, 3).await;
    let homes = node.stores().count();
    until("all trees are made", || there(node, 3) == homes).await;
    let before = built(node);
    assert_eq!(node.rebuild_kept_trees(Some(1), Duration::from_secs(3_600)), Some(1));
    let tree = node.kept_trees().unwrap().into_iter().find(|tree| tree.partition == 1).unwrap();
    assert!(tree.made_before.is_some() && tree.made_anew_in.is_some_and(|time| time <= Duration::from_secs(3_600)));
    assert_eq!(built(node), before, "it is not due");
    assert_eq!(node.rebuild_kept_trees(Some(1), Duration::ZERO), Some(1));
    until("one is made anew", || built(node) == before + 1).await;
    let never = Cluster::with(1, |_, config| config.trees.keep = KeepTrees::Never);
    assert_eq!(never.nodes[0].kept_trees(), None);
}

/// Riak's `verify_tictac_aae_treeexclude`, as far as trees show it: a bucket that is left out is in
/// no tree of its n_val, kept or not. Folds over the bucket see it.
#[tokio::test]
async fn verify_tictac_aae_treeexclude() {
    for keep in [KeepTrees::Never, KeepTrees::Always] {
        let cluster = Cluster::with(3, |_, config| config.trees.keep = keep);
        let (node, bucket, excluded) = (&cluster.nodes[0], Bucket::untyped("b"), Bucket::untyped("excluded"));
        let exclude = |is_excluded: bool| {
            let changes = serde_json::json!({"aae_tree_exclude": is_excluded}).as_object().cloned().unwrap();
            for node in &cluster.nodes {
                node.buckets().set_bucket(&excluded, &changes).unwrap();
            }
        };
        exclude(true);
        if keep == KeepTrees::Always {
            // Each home partition has a class of each n_val, and each class n primaries.
            let trees = node.stores().count() as u64 * (1 + 2 + 3);
            until("trees are kept", || cluster.nodes.iter().map(kept_trees).sum::<u64>() == trees).await;
        }
        for number in 0..50 {
            put(node, &bucket, format!("k{number}")).await;
        }
        let without = root(node, 3).await;
        assert_eq!(without, walked(node, 3).await.root());
        for number in 0..50 {
            put(node, &excluded, format!("k{number}")).await;
        }
        assert_eq!(root(node, 3).await, without, "{keep:?}");
        assert_eq!(walked(node, 3).await.root(), without, "{keep:?}");
        let found = gather(node, FoldRange::of_bucket(excluded.clone()), FoldWants::Clocks).await.unwrap();
        assert_eq!(found.keys.len(), 50);
        let range_tree = gather(node, FoldRange::of_bucket(excluded.clone()), TREE).await.unwrap().tree;
        assert!(range_tree.branches().next().is_some());
        exclude(false);
        let with = walked(node, 3).await.root();
        assert_ne!(with, without);
        assert_eq!(root(node, 3).await, with, "the trees without the bucket answer no more");
    }
}

async fn put_as_is(node: &Kv, bucket: &Bucket, key: String, object: Object) {
    let options = PutOptions { w: Some(Quorum::All), asis: true, ..PutOptions::default() };
    node.put(PutRequest { bucket: bucket.clone(), key: Some(key.into()), object, options }).await.unwrap();
}

/// The keys of an n_val that two clusters do not hold with the same clocks, as a client finds them:
/// by the roots, the branches that differ, and the clocks of the segments that differ.
async fn differing_keys(one: &Kv, other: &Kv, n: u32) -> BTreeSet<Bytes> {
    let roots = [root(one, n).await, root(other, n).await];
    let [a, b] = [&roots[0], &roots[1]].map(|root| root.as_chunks::<4>().0.to_vec());
    let branches: Vec<u32> = (0u32..).zip(a.iter().zip(&b)).filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    let of = |leaves: BTreeSet<u32>| {
        let segments = Some(SegmentFilter { size: TreeSize::Large, leaves });
        FoldRange { segments, ..FoldRange::of_classes([n]) }
    };
    let leaves: BTreeSet<u32> = branches.iter().flat_map(|branch| branch * 256..(branch + 1) * 256).collect();
    let a = gather(one, of(leaves.clone()), KEPT).await.unwrap().tree;
    let b = gather(other, of(leaves), KEPT).await.unwrap().tree;
    let mut differing = BTreeSet::new();
    for branch in branches {
        let (a, b) = (a.branch(branch), b.branch(branch));
        let places = (0u32..).zip(a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0));
        differing.extend(places.filter(|(_, (a, b))| a != b).map(|(place, _)| branch * 256 + place));
    }
    let a = gather(one, of(differing.clone()), FoldWants::Clocks).await.unwrap().keys;
    let b = gather(other, of(differing), FoldWants::Clocks).await.unwrap().keys;
    let only = a.iter().filter(|key| !b.contains(key)).chain(b.iter().filter(|key| !a.contains(key)));
    only.map(|found| found.key.clone()).collect()
}

/// Riak's `verify_aaefold_nval`.
#[tokio::test]
async fn verify_aaefold_nval() {
    let clusters = [3, 4].map(|nodes| {
        Cluster::with(nodes, |_, config| {
            config.trees.keep = KeepTrees::Always;
            // Rebuilds go on meanwhile.
            (config.trees.rebuild_wait, config.trees.rebuild_delay) = (Duration::ZERO, Duration::ZERO);
        })
    });
    let [one, other] = [&clusters[0].nodes[0], &clusters[1].nodes[0]];
    let nothing = Tree::new(TreeSize::Large).root();
    for (bucket, n) in [("b", 3), ("n2", 2)].map(|(name, n)| (Bucket::untyped(name), n)) {
        assert_eq!((root(one, n).await, root(other, n).await), (nothing.clone(), nothing.clone()));
        for number in 0..200u64 {
            for node in [one, other] {
                put_as_is(node, &bucket, format!("k{number}"), object(number)).await;
            }
        }
        let before = root(one, n).await;
        assert!(before != nothing && before == root(other, n).await);
        assert_eq!(differing_keys(one, other, n).await, BTreeSet::new());
        let changed: BTreeSet<Bytes> = [7, 50, 199, 1_000].map(|number| format!("k{number}").into()).into();
        for key in &changed {
            put(other, &bucket, String::from_utf8(key.to_vec()).unwrap()).await;
        }
        assert_ne!(root(other, n).await, before);
        assert_eq!(differing_keys(one, other, n).await, changed, "n_val {n}");
    }
    let homes = one.stores().count() as u64;
    for (cluster, through) in clusters.iter().zip([one, other]) {
        until("trees are kept", || cluster.nodes.iter().map(kept_trees).sum::<u64>() == homes * 6).await;
        let with_all = [root(through, 3).await, root(through, 2).await];
        cluster.set_down(1);
        assert_eq!([root(through, 3).await, root(through, 2).await], with_all, "one node is down");
    }
}

/// Riak's `verify_tictacrebuild_via_statsfold`. A fold of statistics reads the objects, so it is
/// right as soon as folds are switched on, as in Riak with its native store. So is a root, before
/// and after the trees are made.
#[tokio::test]
async fn verify_tictacrebuild_via_statsfold() {
    let dir = tempfile::tempdir().unwrap();
    let open = |is_on: bool| {
        let stores =
            BitcaskFactory::new(Arc::new(RealFs), dir.path().join("bitcask"), JournalConfig::default()).unwrap();
        let mut config = KvConfig::new("node", dir.path(), Arc::new(stores));
        (config.ring_size, config.queries.has_empty_folds) = (8, !is_on);
        config.trees.keep = if is_on { KeepTrees::Always } else { KeepTrees::Never };
        Kv::open(config).unwrap()
    };
    let (bucket, node) = (Bucket::untyped("b"), open(false));
    let stats =
        async |node: &Kv| gather(node, FoldRange::of_bucket(bucket.clone()), FoldWants::Stats).await.unwrap().stats;
    for number in 0..100 {
        put(&node, &bucket, format!("k{number}")).await;
    }
    assert_eq!(stats(&node).await.objects, 0);
    node.close();
    drop(node);
    let node = open(true);
    assert_eq!(stats(&node).await.objects, 100, "at once");
    let by_walk = walked(&node, 3).await.root();
    assert_eq!(root(&node, 3).await, by_walk);
    until("its trees are made", || kept_trees(&node) == 8).await;
    assert_eq!((stats(&node).await.objects, root(&node, 3).await), (100, by_walk.clone()));
    node.close();
    drop(node);
    // The trees outlive the stop: they are there at once.
    let node = open(true);
    root(&node, 3).await;
    assert_eq!((kept_trees(&node), root(&node, 3).await), (8, by_walk));
    node.close();
}
