//! The tree of one class of a partition.

use super::leaves::KeptLeaves;
use crate::buckets::Snapshot as Buckets;
use ombak_tictac::Segment;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The version that a write takes the place of, and the hash of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownClock {
    /// Its place in the append order of the store.
    pub(crate) seq: u64,
    /// The hash of its clock ([`KEPT_HASH`](super::KEPT_HASH)).
    pub(crate) hash: u32,
}

/// Which keys are in a tree, as the epochs of two maps of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeEpoch(u64, u64);

impl TreeEpoch {
    pub(super) fn of(buckets: &Buckets, n: u32) -> Self {
        Self(buckets.class_map(n).epoch, buckets.exclusion_map(n).epoch)
    }
}

/// What a version adds to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It is no version, or not in the tree.
    Nothing,
    /// The hash of its clock.
    Lasting(u32),
    /// It expires, so it is counted and not added.
    Expiring,
}

/// A tree that is kept, or is being built.
pub(super) struct ClassTree {
    pub(super) n: u32,
    pub(super) epoch: TreeEpoch,
    pub(super) leaves: KeptLeaves,
    /// How many versions of the class expire. It may be below 0 while the tree is built.
    expiring: AtomicI64,
    /// Whether something has changed in a way that is not known.
    is_lost: AtomicBool,
    /// Whether the build has ended.
    is_complete: AtomicBool,
}

impl ClassTree {
    /// A tree that is to be built.
    pub(super) fn new(n: u32, epoch: TreeEpoch) -> Self {
        Self::with_leaves(n, epoch, KeptLeaves::new())
    }

    /// A tree of an earlier run, in which nothing expires.
    pub(super) fn of_earlier_run(n: u32, epoch: TreeEpoch, leaves: KeptLeaves) -> Self {
        let tree = Self::with_leaves(n, epoch, leaves);
        tree.complete();
        tree
    }

    fn with_leaves(n: u32, epoch: TreeEpoch, leaves: KeptLeaves) -> Self {
        let (is_lost, is_complete) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { n, epoch, leaves, expiring: AtomicI64::new(0), is_lost, is_complete }
    }

    /// A version of a key takes the place of another one.
    pub(super) fn change(&self, segment: Segment, old: Part, new: Part) {
        let added = |part: Part| match part {
            Part::Lasting(hash) => segment.alternative ^ hash,
            Part::Nothing | Part::Expiring => 0,
        };
        let number = added(old) ^ added(new);
        if number != 0 {
            self.leaves.add(segment.number, number);
        }
        let more = i64::from(new == Part::Expiring) - i64::from(old == Part::Expiring);
        if more != 0 {
            self.expiring.fetch_add(more, Ordering::SeqCst);
        }
    }

    /// Something has changed, and what was there before is not known.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Everything that was there when the build began is in the tree.
    pub(super) fn complete(&self) {
        self.is_complete.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::SeqCst)
    }

    /// Whether some version of the class expires.
    pub(super) fn has_expiring(&self) -> bool {
        self.expiring.load(Ordering::SeqCst) != 0
    }
}
