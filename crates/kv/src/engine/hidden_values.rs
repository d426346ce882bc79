//! Tombstones that lose their time before they are removed, and values that a newer tombstone hides
//! (docs/design/replication.md §6).

use super::engine::Engine;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::{Access, Failure, Partition, Written, is_tombstone};
use crate::reaping::{Class, TakesTimes};
use bytes::Bytes;
use ombak_types::{BucketProps, Object};
use std::sync::Arc;

/// The versions of a batch that are left, and those that a disk keeps from being replaced.
pub type LeftAndFailed = (Vec<(Bytes, u64)>, Vec<(Bytes, u64)>);

impl Engine {
    /// Whether every member takes the time from a tombstone before it removes it, and lets a newer
    /// tombstone hide a value. It stays so until a member is known that does not: a node that is
    /// alone takes times, and may join older nodes later.
    pub(crate) fn takes_times(&self) -> bool {
        self.reaping.takes_times.get() == TakesTimes::YES
    }

    /// Whether this node knows yet what the other members do. A node that has just started does
    /// not, and removes nothing.
    pub(crate) fn knows_who_takes_times(&self) -> bool {
        self.reaping.takes_times.get() != TakesTimes::UNKNOWN
    }

    /// Asks whether tombstones may lose their time by now.
    pub(crate) fn look_at_gate(&self) {
        let answer = self.config.hooks.reaping_gate.as_ref().map_or(Some(true), |gate| gate.may_take_times());
        if let Some(takes_times) = answer {
            self.reaping.takes_times.set(takes_times);
        }
    }

    /// Whether a reader of the bucket prefers a living value to a newer tombstone, because not all
    /// members take the time from tombstones yet: then a removal may have left the tombstone
    /// behind. With `last_write_wins` a floor of time does the same meanwhile.
    pub(crate) fn prefers_live(&self, props: &BucketProps) -> bool {
        let is_broken = is_broken(BrokenRule::NewerTombstonesHide);
        !props.allow_mult && !props.last_write_wins && (is_broken || !self.takes_times())
    }

    /// Schedules what follows from a version that was stored here: the removal of a tombstone, or
    /// the replacement of values that a tombstone hides.
    pub(crate) fn note_version(&self, partition: &Partition, key: &[u8], written: &Written) {
        if is_tombstone(written.digest) {
            self.reaper.schedule(partition, key, written.digest);
        } else {
            self.note_hidden(partition, key, written);
        }
    }

    /// Schedules the replacement of values that a tombstone hides in a version that was stored
    /// here.
    pub(crate) fn note_hidden(&self, partition: &Partition, key: &[u8], written: &Written) {
        if self.is_hidden(key, &written.object) && !is_broken(BrokenRule::HiddenValuesAreReplaced) {
            self.reaper.schedule_at_once(partition.number(), key, written.digest);
        }
    }

    /// Schedules the same for a version that a read has found, and that may have been stored by an
    /// earlier process.
    pub(crate) fn note_hidden_at_rest(&self, partition: u32, key: &[u8], digest: u64) {
        if !is_broken(BrokenRule::HiddenValuesAreReplaced) {
            self.reaper.schedule_at_once(partition, key, digest);
        }
    }

    /// Whether clients get "not found" for an object because a newer tombstone hides its values.
    fn is_hidden(&self, key: &[u8], object: &Object) -> bool {
        // Nearly every object has one sibling.
        object.is_hidden_by_tombstone()
            && self.reaping.due.props_of(key).is_some_and(|props| props.is_newest_only() && !self.prefers_live(&props))
    }

    /// Replaces the values that tombstones hide, and owes the new tombstones to the other primaries
    /// of the class. Returns the versions of the batch that are left, and those that could not be
    /// replaced now. Blocks.
    pub(crate) fn replace_hidden(self: &Arc<Self>, class: Class, batch: Vec<(Bytes, u64)>) -> LeftAndFailed {
        let Ok(partition) = self.partitions().find(class.0) else { return (batch, Vec::new()) };
        let (mut left, mut failed) = (Vec::new(), Vec::new());
        for (key, digest) in batch {
            if is_tombstone(digest) {
                left.push((key, digest));
                continue;
            }
            match self.replace_hidden_of(&partition, class.1, &key) {
                Ok(true) => {}
                Ok(false) => left.push((key, digest)),
                Err(_) => failed.push((key, digest)),
            }
        }
        (left, failed)
    }

    /// Replaces the values of one key, if a tombstone hides them. Returns whether it has.
    fn replace_hidden_of(&self, partition: &Arc<Partition>, n_val: u32, key: &[u8]) -> Result<bool, Failure> {
        let placement = self.request_placement();
        let home = placement.home(partition.number());
        if !home.replica_set(n_val).contains(&self.identity.node_id) {
            // What a stand-in holds is handed back first.
            return Ok(false);
        }
        // Begun before the copy is stored, so that no checkpoint comes between the two.
        let mut awaited = self.transfers.await_replicas(home, self.identity.node_id, n_val);
        let locked = partition.lock(key, Access::Blocking)?;
        if !locked.local().is_some_and(|local| self.is_hidden(key, local)) {
            return Ok(false);
        }
        let Some(written) = locked.replace_hidden(self.now())? else { return Ok(false) };
        if let Some(awaited) = &mut awaited {
            awaited.written(written.seq);
        }
        drop(awaited);
        self.transfers.wake();
        self.count_entries(&written);
        self.note_version(partition, key, &written);
        Ok(true)
    }
}
