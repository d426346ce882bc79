//! Counts the merges of versions in the store of this node, as Riak does.

use super::engine::Engine;
use crate::partition::{Failure, Locked, MergeRules, Written};
use ombak_types::Object;

impl Engine {
    /// [`Locked::merge`], counted.
    pub(super) fn merge_counted(
        &self,
        locked: Locked<'_>,
        incoming: Object,
        rules: &MergeRules<'_>,
    ) -> Result<Written, Failure> {
        // Versions of `write_once` keys have no clocks: one of the two stays.
        let is_write_once = incoming.clock.is_empty() && locked.local().is_some_and(|local| local.clock.is_empty());
        let written = locked.merge(incoming, rules)?;
        if is_write_once {
            self.stats.write_once_merged();
        }
        Ok(self.count_merge(written))
    }

    /// Counts a write that made one version of two. Values of kinds have counts of their own.
    pub(super) fn count_merge(&self, written: Written) -> Written {
        let has_kinds = || written.object.siblings.iter().any(|sibling| sibling.meta.kind != 0);
        if let Some(took) = written.combined_in.filter(|_| !has_kinds()) {
            self.stats.object_merged(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
        written
    }
}
