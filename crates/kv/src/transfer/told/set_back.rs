//! Finds the stores of this node that were set back, by what other nodes were told
//! (docs/design/anti-entropy.md §3).
//!
//! A store that was set back holds versions that may have been removed everywhere since. It counts
//! as restored: its classes are filling, what it held at its start is set aside, and what it held
//! when it was set back is in doubt.
//! That holds in memory before the peer that knows more gets or sends any request. It is made
//! durable later: until then the next start finds it again, because the seq stays lost.
//!
//! A network thread asks while peers wait. So it looks at what the stores were at the start of the
//! node (`own_stores`), and at a store itself only if a peer was told of what it has not synced.
//!
//! What was accounted for is noted as a told seq of this node itself: one more than the *end* of
//! the opening that has lost the seq. What the same opening has lost is no news at later starts.

use crate::partition::{Partition, PartitionTable};
use crate::replica::ToldSeq;
use crate::transfer::{FillReason, Transfers};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::io;
use tracing::error;

/// The partitions whose stores were set back, each with what is noted when that is accounted for.
pub type SetBack = BTreeMap<u32, u64>;

impl Transfers {
    /// Compares the stores of this node with what it has told another node of them. Returns those
    /// that were set back. They count as restored from now on; make that durable with
    /// [`Self::save_set_back`].
    pub fn find_set_back(
        &self,
        partitions: &PartitionTable,
        (here, by): (NodeId, NodeId),
        told: &[(u32, ToldSeq)],
    ) -> SetBack {
        let mut found = SetBack::new();
        for (number, told) in told {
            let Some(partition) = partitions.get(*number) else { continue };
            let Some(lost) = self.own_stores.loss_of(&partition, *told) else { continue };
            if self.has_accounted((here, *number), *told, lost.note)
                || !self.told.begin_set_back(*number, lost.restored_to)
            {
                continue;
            }
            error!(
                partition = number, node = %by, seq = told.seq,
                "a store of this node was set back: another node was told a seq that the store does not have any more. \
                 Its copies count as restored from a backup: they are compared with the other replicas"
            );
            self.set_aside.what_was_there_at_the_start(&partition);
            self.note_loss(*number, FillReason::Restored, lost.restored_to);
            found.insert(*number, lost.note);
        }
        found
    }

    /// Whether it is known, from this run or an earlier one, that the store of a partition was set
    /// back to before a seq that it has told. Then that seq is no news: what the store held at its
    /// start counts as restored, or was compared with the other replicas since.
    pub fn knows_set_back(&self, here: NodeId, partition: &Partition, seq: u64) -> bool {
        let (number, store_id) = (partition.number(), partition.store().identity().store_id);
        let told = ToldSeq { store_id, seq };
        self.own_stores.loss_of(partition, told).is_some_and(|lost| {
            self.told.is_set_back(number, lost.restored_to) || self.has_accounted((here, number), told, lost.note)
        })
    }

    /// Whether a loss was accounted for by an earlier run. Whoever accounts for one opening
    /// accounts for everything that the store held at its start, so also for what earlier openings
    /// have lost.
    fn has_accounted(&self, (here, partition): (NodeId, u32), told: ToldSeq, note: u64) -> bool {
        let noted = self.told.of(here, partition).filter(|(store_id, _)| *store_id == told.store_id);
        note > 0 && noted.is_some_and(|(_, noted)| note <= noted)
    }

    /// Makes durable that some stores were set back. Blocks.
    pub fn save_set_back(&self, partitions: &PartitionTable, here: NodeId, set_back: &SetBack) -> io::Result<()> {
        if !self.save_filling(partitions) {
            return Err(io::Error::other("the state of the replicas could not be saved"));
        }
        for (number, note) in set_back {
            if let Some(partition) = partitions.get(*number) {
                self.told.note_again(here, *number, partition.store().identity().store_id, *note);
            }
        }
        self.told.save()
    }
}
