//! What a kept tree and a walk answer.

use crate::folds::{FoldRange, FoldWalk, FoldWants, GatheredEntry, SegmentFilter, gather_kept};
use crate::kept_trees::{BuildEnd, BuildStep, KEPT_HASH, KEPT_SIZE, TreeBuild};
use crate::partition::tests::sums::world::World;
use ombak_tictac::Segment;
use ombak_types::Bucket;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

const TREE: FoldWants = FoldWants::Tree(KEPT_SIZE, KEPT_HASH);
const ROOT: FoldWants = FoldWants::Root(KEPT_SIZE, KEPT_HASH);

/// Some leaves: every second key of [`KEYS`] is in one of them.
static LEAVES: LazyLock<BTreeSet<u32>> = LazyLock::new(|| {
    let leaf = |number: u8| {
        let (bucket, key) = name_of(number);
        KEPT_SIZE.leaf_of(Segment::of(&Bucket::untyped(bucket), key.as_bytes()).number)
    };
    (0..KEYS).step_by(2).flat_map(|number| [leaf(number), leaf(number) ^ 1]).collect()
});

/// The number of keys of a history.
pub(super) const KEYS: u8 = 9;
/// The buckets of a history.
pub(super) const BUCKETS: [&str; 3] = ["a", "b", "c"];

/// The bucket and the name of a key.
pub(super) fn name_of(number: u8) -> (&'static str, String) {
    (BUCKETS[usize::from(number % 3)], format!("k{number}"))
}

/// The questions that kept trees answer.
fn questions(n: u32) -> [(FoldRange, FoldWants); 3] {
    let all = FoldRange::of_classes([n]);
    let segments = Some(SegmentFilter { size: KEPT_SIZE, leaves: LEAVES.clone() });
    [(all.clone(), ROOT), (all.clone(), TREE), (FoldRange { segments, ..all }, TREE)]
}

fn walked(world: &World, n: u32, (range, wants): (FoldRange, FoldWants)) -> Vec<GatheredEntry> {
    let of = (Arc::new(range), wants);
    let mut walk = FoldWalk::new(world.partition(), of, &[n], world.now()).unwrap();
    let mut budget = usize::MAX;
    while walk.next_batch(&world.run().registry, &mut budget).unwrap().is_some() {}
    walk.finish()
}

/// Compares what the kept tree of a class answers with what a walk does. Returns whether it
/// answers.
pub(super) fn is_answered_as_by_a_walk(world: &World, n: u32) -> bool {
    let mut is_answered = true;
    for (range, wants) in questions(n) {
        let Some(kept) = gather_kept(world.partition(), n, (&range, wants)) else {
            is_answered = false;
            continue;
        };
        assert!(is_answered, "all questions or none");
        assert!(kept == walked(world, n, (range, wants)), "{:?}: the tree of n = {n} is wrong", world.kind);
    }
    is_answered
}

pub(super) fn begin(world: &World, n: u32) -> TreeBuild {
    world.partition().begin_tree(n).unwrap().expect("no other build is under way")
}

/// Makes the tree of a class.
pub(super) fn build(world: &World, n: u32) -> BuildEnd {
    let mut build = begin(world, n);
    while build.step(3).unwrap() != BuildStep::Visited {}
    world.partition().end_tree(build).expect("nothing has changed")
}
