//! What follows when a store has lost something, and the tokens that say it has not
//! (docs/design/anti-entropy.md §4, §5, §9).
//!
//! Invariants:
//! * The order within a loss: copies are in doubt, then the classes are filling, then their tokens
//!   are other ones. So nobody finds a full class with a token of the time before. A file has all
//!   three or none.
//! * A loss is on the disk before this node gives evidence about the class again: whoever asks for
//!   a token finds losses that nobody has noted yet, and saves them first.

use super::Transfers;
use super::classes::FillReason;
use super::marks::PeerStore;
use crate::partition::PartitionTable;
use crate::replica::ClassId;
use ombak_types::{Error, StoreFailure};
use std::collections::BTreeSet;

impl Transfers {
    /// The store of this node for a class, with the token that stands for how long the class has
    /// been full; none if it is not full. The token is on the disk. `ns` are the n_vals in use: a
    /// class without a token gets one together with all others. Blocks.
    pub fn own_store(
        &self,
        partitions: &PartitionTable,
        class: ClassId,
        ns: &BTreeSet<u32>,
    ) -> Result<Option<PeerStore>, Error> {
        let partition = partitions.find(class.partition)?;
        if !self.note_new_losses(partitions, &partition) {
            return Err(not_saved());
        }
        let losses = self.classes.losses(class.partition);
        if !self.classes.is_full(class.partition, class.n) {
            return Ok(None);
        }
        let store_id = partition.store().identity().store_id;
        let token = match self.fullness.token(class) {
            Some(token) => token,
            None => self.draw_missing(partitions, class, ns)?,
        };
        // A loss that came meanwhile has another token.
        let is_same = self.classes.losses(class.partition) == losses && self.fullness.token(class) == Some(token);
        Ok(is_same.then_some(PeerStore { store_id, token }))
    }

    /// Gives each class that has no token one, and saves them. Returns that of a class.
    fn draw_missing(&self, partitions: &PartitionTable, class: ClassId, ns: &BTreeSet<u32>) -> Result<u64, Error> {
        let ns: BTreeSet<u32> = ns.iter().copied().chain([class.n]).collect();
        let open = partitions.all_open().map(|partition| partition.number());
        let is_saved = self.fullness.draw_missing(open, &ns, &*self.runtime) && self.save_filling(partitions);
        self.fullness.token(class).filter(|_| is_saved).ok_or_else(not_saved)
    }

    /// Makes a class full, because it was compared with every other primary, once its token is on
    /// the disk. A loss that came after the first `losses` needs another comparison; then, or if
    /// the token could not be saved, this returns false. Blocks.
    pub fn became_full(&self, partitions: &PartitionTable, ns: &BTreeSet<u32>, class: ClassId, losses: u64) -> bool {
        // A token that was drawn when the class was lost was told to nobody.
        let has_token = self.fullness.token(class).is_some() || self.draw_missing(partitions, class, ns).is_ok();
        let has_noted =
            || partitions.get(class.partition).is_none_or(|partition| self.note_new_losses(partitions, &partition));
        has_token && has_noted() && self.classes.became_full(class, losses)
    }

    /// Puts what a partition stored up to a seq in doubt and makes its classes filling, durably,
    /// because its store lost something in its middle. `up_to` is the highest seq that what was
    /// lost can have had, if that is known; otherwise everything is in doubt. Returns false if it
    /// could not be saved. Blocks.
    pub fn found_damage(&self, partitions: &PartitionTable, partition: u32, up_to: Option<u64>) -> bool {
        self.note_damage(partitions, partition, up_to);
        self.save_filling(partitions)
    }

    /// As [`Self::found_damage`], before it is saved.
    pub(super) fn note_damage(&self, partitions: &PartitionTable, partition: u32, up_to: Option<u64>) {
        let last = || partitions.get(partition).map_or(0, |partition| partition.store().last_seq());
        self.note_loss(partition, FillReason::Unreadable, up_to.unwrap_or_else(last));
    }

    /// Makes the classes of a partition filling. What it stored up to a seq is in doubt then,
    /// unless it lost only its newest writes, or everything.
    pub(super) fn note_loss(&self, partition: u32, reason: FillReason, up_to: u64) {
        let _held = self.checkpoint.hold_files();
        if matches!(reason, FillReason::Restored | FillReason::Unreadable) {
            self.doubt.raise(partition, up_to);
        }
        self.classes.set_filling(partition, reason);
        if reason != FillReason::LostWrites {
            self.fullness.draw_anew(partition, &*self.runtime, |_| true);
        }
    }

    /// Draws other tokens for the classes with these n in all partitions, durably: keys come to
    /// them, or leave them. All marks that name a store of this node for them are void. Returns
    /// false if they could not be saved. Blocks.
    pub(crate) fn renew_fullness(&self, partitions: &PartitionTable, ns: &BTreeSet<u32>) -> bool {
        if ns.is_empty() {
            return true;
        }
        for partition in partitions.all_open() {
            self.fullness.draw_anew(partition.number(), &*self.runtime, |n| ns.contains(&n));
        }
        self.marks.forget_classes(self.runtime.now(), |class| ns.contains(&class.n));
        !self.has_state() || self.save_filling(partitions)
    }
}

fn not_saved() -> Error {
    StoreFailure::internal("what this node knows of its replicas could not be saved").into()
}
