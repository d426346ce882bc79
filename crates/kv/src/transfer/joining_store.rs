//! The store of a class that this node is to get (docs/design/anti-entropy.md §9).
//!
//! What it is: while a home changes, the members of its old set prove to the new ones what they
//! hold. Such a proof gives a mark. It names the token that the class will have when it is full.
//!
//! What it is not: the class is not full yet, so what this node lacks of it is no evidence.

use super::Transfers;
use super::marks::PeerStore;
use crate::partition::PartitionTable;
use crate::replica::ClassId;
use ombak_types::Error;

impl Transfers {
    /// The store of a class that would be full if its home flipped now, with the token that the
    /// class has then. None if the class does not join, or if something of its partition is in
    /// doubt. Blocks.
    pub fn joining_store(&self, partitions: &PartitionTable, class: ClassId) -> Result<Option<PeerStore>, Error> {
        let partition = partitions.find(class.partition)?;
        if !self.note_new_losses(partitions, &partition) || self.doubt.up_to(class.partition) > 0 {
            return Ok(None);
        }
        let losses = self.classes.losses(class.partition);
        let joins = self.classes.is_joining(class.partition, class.n);
        let would_be_full = || self.classes.would_be_full(class.partition, class.n);
        let Some(token) = self.fullness.token(class).filter(|_| joins && would_be_full()) else { return Ok(None) };
        // A loss that came meanwhile has another token.
        let is_same = self.classes.losses(class.partition) == losses && self.fullness.token(class) == Some(token);
        Ok(is_same.then(|| PeerStore { store_id: partition.store().identity().store_id, token }))
    }
}
