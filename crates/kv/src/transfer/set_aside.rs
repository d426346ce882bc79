//! What restored stores held at their start (docs/design/replication.md §8).
//!
//! A store that is a copy, came from a backup, or was set back may hold keys that were deleted and
//! reaped since. Nobody remembers their tombstones any more. So every version up to the seq that
//! the store had at its start is *set aside*: for requests, transfers, listings and reaping it
//! counts as absent. It is taken back where a full primary holds exactly the same version; the
//! other primaries push whatever else the class has, as if the store were empty. What then remains
//! set aside is on no other primary. It stays in the store, and an operator may push it or drop it.
//!
//! A version is taken back by storing it anew, under a seq of now. So one number for each partition
//! says what is set aside, and it is on disk before anything is written above it.

use crate::partition::{Partition, PartitionTable};
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to which seq each partition's versions are set aside.
pub struct SetAside {
    places: Box<[Place]>,
    /// Rises with each change.
    changes: AtomicU64,
}

struct Place {
    set_aside_to: AtomicU64,
    seq_at_start: u64,
}

impl SetAside {
    /// Nothing is set aside yet. `partitions` have just been opened.
    pub(crate) fn new(partitions: &PartitionTable) -> Self {
        let seq_of = |number| partitions.get(number).map_or(0, |partition| partition.store().last_seq());
        let place = |number| Place { set_aside_to: AtomicU64::new(0), seq_at_start: seq_of(number) };
        let ring_size = u32::try_from(partitions.ring_size()).unwrap_or(u32::MAX);
        Self { places: (0..ring_size).map(place).collect(), changes: AtomicU64::new(0) }
    }

    /// The seq up to which versions are set aside; 0: none is.
    pub(crate) fn of(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.set_aside_to.load(Ordering::SeqCst))
    }

    pub(crate) fn seq_at_start(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.seq_at_start)
    }

    /// Sets aside the versions of a partition up to this seq, and no others.
    pub fn up_to(&self, partition: &Partition, seq: u64) {
        if let Some(place) = self.places.get(partition.number() as usize) {
            place.set_aside_to.store(seq, Ordering::SeqCst);
            partition.set_aside(seq);
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Sets aside what the store had at its start.
    pub(crate) fn what_was_there_at_the_start(&self, partition: &Partition) {
        let number = partition.number();
        self.up_to(partition, self.seq_at_start(number).max(self.of(number)));
    }

    /// Nothing is set aside on a node that is alone: there is nobody who knows more.
    pub(crate) fn apply(&self, partitions: &PartitionTable, is_alone: bool) {
        for partition in partitions.all_open() {
            partition.set_aside(if is_alone { 0 } else { self.of(partition.number()) });
        }
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}
