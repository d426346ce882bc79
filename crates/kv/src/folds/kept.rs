//! What a kept tree answers in place of a walk.

use super::entry::GatheredEntry;
use super::range::{FoldOf, FoldRange, SegmentFilter};
use super::wants::FoldWants;
use crate::kept_trees::{KEPT_HASH, KEPT_SIZE, KeptLeaves};
use crate::partition::Partition;
use ombak_tictac::LEAVES;
use std::collections::BTreeSet;

/// The n_val whose kept trees can answer a fold, if they can answer it.
pub(crate) fn kept_class(range: &FoldRange, wants: FoldWants) -> Option<u32> {
    let is_kept = wants == FoldWants::Tree(KEPT_SIZE, KEPT_HASH) || wants == FoldWants::Root(KEPT_SIZE, KEPT_HASH);
    let is_tree = matches!(wants, FoldWants::Tree(..));
    let of_size = |segments: &SegmentFilter| is_tree && segments.size == KEPT_SIZE;
    let has_parts = range.keys.is_none() && range.modified.is_none() && range.segments.as_ref().is_none_or(of_size);
    match &range.of {
        FoldOf::Classes(classes) if is_kept && has_parts && classes.len() == 1 => classes.first().copied(),
        FoldOf::Classes(_) | FoldOf::Bucket(_) => None,
    }
}

/// What the store of a home partition answers from the kept tree of a class. None if it keeps none:
/// then a walk answers. Blocks.
pub(crate) fn gather_kept(
    partition: &Partition,
    n: u32,
    (range, wants): (&FoldRange, FoldWants),
) -> Option<Vec<GatheredEntry>> {
    partition.read_kept_tree(n, |leaves| match (wants, &range.segments) {
        (FoldWants::Root(..), _) => vec![GatheredEntry::Root(leaves.root())],
        (_, Some(segments)) => wanted_branches(leaves, &segments.leaves),
        (_, None) => leaves.branches().map(|(branch, bytes)| GatheredEntry::Branch(branch, bytes)).collect(),
    })
}

fn wanted_branches(leaves: &KeptLeaves, wanted: &BTreeSet<u32>) -> Vec<GatheredEntry> {
    let branches: BTreeSet<u32> = wanted.iter().map(|leaf| leaf / LEAVES as u32).collect();
    let entry = |branch: u32| {
        let bytes = leaves.branch(branch, |leaf| wanted.contains(&leaf))?;
        Some(GatheredEntry::Branch(branch, bytes))
    };
    branches.into_iter().filter_map(entry).collect()
}
