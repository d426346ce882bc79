//! Folds over several engines in one process: what every node gathers is what the stores hold, each
//! key once, whichever nodes fail meanwhile.

use crate::coverage::{Cluster, Fault};
use bytes::Bytes;
use ombak_kv::folds::{FoldRange, FoldResult, FoldWants, Found, SegmentFilter};
use ombak_kv::{Kv, MemoryReservation, PutOptions, PutRequest};
use ombak_tictac::{ClockHash, Segment, Tree, TreeSize};
use ombak_types::stored_object::encode_head;
use ombak_types::time::{GREGORIAN_OFFSET_SECS, UnixMicros};
use ombak_types::{Actor, Bucket, Dot, Error, Object, Quorum, Sibling, SiblingMeta, VectorClock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::pin::Pin;

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
