//! Anti-entropy folds of Riak, as both interfaces ask for them (docs/riak/semantics.md §8.3).
//!
//! What it is: the conditions that a definition must meet, the permissions, and the way to the
//! engine and to the queues of keys. Each interface reads its own form of a definition and writes
//! its own answer.

use crate::access::Permission;
use bytes::Bytes;
use ombak_key_queues::{JobKind, KeyQueues, QueueError};
use ombak_kv::folds::{FoldProgress, FoldRange, FoldResult, FoldWants, SegmentFilter};
use ombak_kv::{Kv, MemoryReservation};
use ombak_tictac::{ClockHash, LEAVES, TreeSize};
use ombak_types::{Bucket, Error};
use std::collections::BTreeSet;

/// The permission of folds that only read. Riak asks for none.
pub(crate) const READ: Permission = Permission::named("riak_kv.aae_fold");

/// The permissions of folds that change objects, also if they only count them.
pub(crate) const ERASE: Permission = Permission::named("riak_kv.aae_erase");
pub(crate) const REAP: Permission = Permission::named("riak_kv.aae_reap");
pub(crate) const REPAIR: Permission = Permission::named("riak_kv.aae_repair");

/// All permissions of folds.
pub(crate) const PERMISSIONS: [Permission; 4] = [READ, ERASE, REAP, REPAIR];

/// What Riak says of a definition that has the right form and cannot be.
pub(crate) const INVALID_DEFINITION: &str = "\"Invalid AAE fold definition\"";

/// A definition has the right form and cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidDefinition;

/// Sets the first and the last key.
pub(crate) fn set_keys(range: &mut FoldRange, first: Bytes, last: Bytes) -> Result<(), InvalidDefinition> {
    if first > last {
        return Err(InvalidDefinition);
    }
    range.keys = Some((first, last));
    Ok(())
}

/// Sets the first and the last second. Times after the last one that has 32 bits are that one.
pub(crate) fn set_modified(range: &mut FoldRange, first: u64, last: u64) -> Result<(), InvalidDefinition> {
    if first > last {
        return Err(InvalidDefinition);
    }
    let limited = |secs: u64| u32::try_from(secs).unwrap_or(u32::MAX);
    range.modified = Some((limited(first), limited(last)));
    Ok(())
}

/// Sets the segments, of which a tree of this size has the numbers.
pub(crate) fn set_segments(range: &mut FoldRange, size: TreeSize, leaves: BTreeSet<u32>) {
    range.segments = Some(SegmentFilter { size, leaves });
}

/// A tree of the kind that Riak keeps of each n_val.
pub(crate) const KEPT_TREE: FoldWants = FoldWants::Tree(TreeSize::Large, ClockHash::Plain);

/// The root of such a tree.
pub(crate) const KEPT_ROOT: FoldWants = FoldWants::Root(TreeSize::Large, ClockHash::Plain);

/// Up to how many branches are asked for one by one. More are taken from the whole tree.
const BRANCHES_ASKED_MAX: usize = 64;

/// Sets the branches of a kept tree that are wanted, if they are few.
pub(crate) fn set_branches(range: &mut FoldRange, branches: &[u32]) {
    if branches.len() <= BRANCHES_ASKED_MAX {
        let leaves_of = |branch: u32| (0..LEAVES as u32).map(move |leaf| branch * LEAVES as u32 + leaf);
        set_segments(range, TreeSize::Large, branches.iter().copied().flat_map(leaves_of).collect());
    }
}

/// Whether there is such a tree of an n_val.
pub(crate) fn has_kept_tree(kv: &Kv, n_val: u32) -> bool {
    !kv.has_empty_folds() && kv.n_vals().contains(&n_val)
}

/// What a list of buckets visits. Riak asks as many of its partitions as find every bucket of this
/// n_val or a higher one.
pub(crate) fn range_of_buckets(kv: &Kv, n_val: u32) -> FoldRange {
    FoldRange::of_classes(kv.n_vals().into_iter().filter(|class| *class >= n_val))
}

/// The buckets of a result in Riak's order: typed ones come first.
pub(crate) fn typed_first(buckets: &BTreeSet<Bucket>) -> impl Iterator<Item = &Bucket> {
    let typed = buckets.iter().filter(|bucket| !bucket.is_default_type());
    typed.chain(buckets.iter().filter(|bucket| bucket.is_default_type()))
}

/// How many objects a fold would change or send.
pub(crate) fn dispatched(result: &FoldResult) -> u64 {
    result.stats.objects.max(result.keys.len() as u64)
}

/// Lets a fold find keys that are erased, reaped or repaired later. Returns their number.
pub(crate) async fn dispatch(
    queues: &KeyQueues,
    kind: JobKind,
    range: FoldRange,
    room: &mut dyn MemoryReservation,
) -> Result<u64, QueueError> {
    if range.is_of_nameless_bucket() {
        return Ok(0);
    }
    queues.fill(kind, range, room).await
}

/// Runs a fold. A bucket without a name has no objects.
pub(crate) async fn run(
    kv: &Kv,
    range: FoldRange,
    wants: FoldWants,
    room: &mut dyn MemoryReservation,
) -> Result<FoldResult, Error> {
    run_watched(kv, range, wants, room, &FoldProgress::default()).await
}

/// As [`run`]. `progress` says meanwhile how far it is.
pub(crate) async fn run_watched(
    kv: &Kv,
    range: FoldRange,
    wants: FoldWants,
    room: &mut dyn MemoryReservation,
    progress: &FoldProgress,
) -> Result<FoldResult, Error> {
    if range.is_of_nameless_bucket() {
        return Ok(FoldResult::empty(&wants));
    }
    kv.fold_watched(range, wants, room, progress).await
}
