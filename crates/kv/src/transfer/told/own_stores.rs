//! What the stores of this node were when it started, as far as told seqs need it.
//!
//! The id and the history of a store stay as they are for a run. They lie behind locks that a
//! store holds while it waits for its disk, for example before its first append. A connection must
//! not wait for that, and with 1,024 partitions it would wait for many. So they are copied once.
//!
//! Invariant: a store that began later, or in place of another one, has an id of its own, and no
//! seq of it is lost in this run.

use crate::partition::{Partition, PartitionTable};
use crate::replica::ToldSeq;
use ombak_storage::Openings;

/// The stores of this node at its start, by partition.
#[derive(Debug, Default)]
pub(crate) struct OwnStores(Box<[Option<OwnStore>]>);

/// That a store has lost a seq that it has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostTold {
    /// What is noted of it: one more than the end of the opening that has lost the seq, or 0 if no
    /// opening knows of it. Then a run has issued it of which the store knows nothing any more.
    pub(super) note: u64,
    /// What the store held up to this seq was there when it was set back: the base of that opening.
    /// What came later was stored by this node since.
    pub(super) restored_to: u64,
}

#[derive(Debug)]
struct OwnStore {
    store_id: u64,
    last_seq: u64,
    openings: Openings,
}

impl OwnStores {
    /// `partitions` have just been opened.
    pub(crate) fn new(partitions: &PartitionTable) -> Self {
        let ring_size = u32::try_from(partitions.ring_size()).unwrap_or(u32::MAX);
        let own = |number| {
            let partition = partitions.get(number)?;
            OwnStore::of(&partition)
        };
        Self((0..ring_size).map(own).collect())
    }

    /// What is known of a loss, if the store has lost a seq that it has told.
    pub(super) fn loss_of(&self, partition: &Partition, told: ToldSeq) -> Option<LostTold> {
        let own = self.0.get(partition.number() as usize)?.as_ref()?;
        if own.store_id != told.store_id {
            return None;
        }
        let of_opening = own.opening_that_lost(told.seq);
        of_opening.or_else(|| {
            let restored_to = partition.store().first_seq().saturating_sub(1);
            lacks_newest(partition, own, told).then_some(LostTold { note: 0, restored_to })
        })
    }
}

impl OwnStore {
    /// None of a store to which nothing was written: it has told nothing.
    fn of(partition: &Partition) -> Option<Self> {
        let store = partition.store();
        let identity = store.identity();
        let has_id = identity.boot > 0 && identity.store_id != 0;
        has_id.then(|| Self { store_id: identity.store_id, last_seq: store.last_seq(), openings: store.openings() })
    }

    /// The newest opening that has lost a seq. Before the first append of a run, such a seq is also
    /// above the last one of the store.
    fn opening_that_lost(&self, seq: u64) -> Option<LostTold> {
        let lost_it = self.openings.opening_that_lost(seq)?;
        Some(LostTold { note: lost_it.end + 1, restored_to: lost_it.base })
    }
}

/// Whether a store has not got as far as what it has told. Only synced seqs are told, so in most
/// cases this waits for no lock of the store.
fn lacks_newest(partition: &Partition, own: &OwnStore, told: ToldSeq) -> bool {
    let store = partition.store();
    let has_it = told.seq <= own.last_seq || told.seq <= store.synced_seq();
    !has_it && told.seq > store.last_seq() && store.identity().store_id == told.store_id
}
