//! The sums of the classes of a partition.

use super::partition::Partition;
use crate::sums::{ClassCut, PartitionSums, SumsSetup, SumsState, SumsWalk};
use ombak_storage::{DropObserver, StorageError};
use std::sync::Arc;

/// How often a cut is tried while the store removes something by itself.
const CUT_TRIES: usize = 3;

impl Partition {
    /// Keeps sums of the classes from now on. Called before the first write. Blocks.
    pub(crate) fn with_sums(self, setup: &SumsSetup) -> Self {
        let next = self.trees().map(|trees| trees.clone() as Arc<dyn DropObserver>);
        let sums = PartitionSums::open(self.number(), &**self.store(), setup, next);
        self.counting_in(sums)
    }

    /// What is known of the sums of the class with this n.
    pub fn sums_state(&self, n: u32) -> SumsState {
        self.sums().map_or(SumsState::Unknown, |sums| sums.state(n))
    }

    /// Whether sums are kept at all.
    pub const fn keeps_sums(&self) -> bool {
        self.sums().is_some()
    }

    /// Whether the sums of the class with this n are exact, and a walk of this run has compared
    /// them with what the store holds.
    pub fn has_checked_sums(&self, n: u32) -> bool {
        self.sums().is_some_and(|sums| sums.state(n) == SumsState::Exact && sums.is_checked(n))
    }

    /// The sums of the class with this n at this moment. None while they are not exact, and while
    /// the store removes much by itself.
    ///
    /// Locks all keys while it copies the sums, which takes some 10 µs once the locks are there.
    /// The caller holds no key's lock. Blocks.
    pub fn cut_of_class(&self, n: u32) -> Option<ClassCut> {
        let sums = self.sums().filter(|sums| sums.state(n) == SumsState::Exact)?;
        let removes_by_itself = self.store().removes_by_itself();
        (0..CUT_TRIES).find_map(|_| {
            let _all = self.lock_all_keys();
            let seq = self.store().last_seq();
            sums.read(n).map(|(sums, is_checked)| ClassCut { seq, sums, is_checked, removes_by_itself })
        })
    }

    /// Begins a walk over the class with this n, which makes its sums exact, or checks them. None
    /// if the partition keeps no sums. None, too, if a walk over the class is under way, or if the
    /// store removes something by itself at this moment: then the caller tries again later.
    ///
    /// Locks all keys while the snapshot is taken. The caller holds no key's lock. Blocks.
    pub fn begin_sums_walk(&self, n: u32) -> Result<Option<SumsWalk>, StorageError> {
        let Some(sums) = self.sums() else { return Ok(None) };
        let _all = self.lock_all_keys();
        sums.begin_walk(n, self.store().last_seq(), || self.snapshot())
    }

    /// How many sums of the partition were found wrong for no known reason.
    pub(crate) fn sums_differences(&self) -> u64 {
        self.sums().map_or(0, |sums| sums.differences())
    }

    /// Saves the sums for the next start. The store was closed cleanly. Blocks.
    pub(super) fn save_sums(&self) {
        if let Some(sums) = self.sums().cloned() {
            // A write whose append came before the close is counted when its key is free.
            let _all = self.lock_all_keys();
            sums.save(&**self.store());
        }
    }

    /// What is set aside has changed.
    pub(super) fn set_aside_in_sums(&self, seq: u64) {
        if let Some(sums) = self.sums() {
            sums.set_aside(seq);
        }
    }
}
