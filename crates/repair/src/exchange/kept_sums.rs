//! The sums that the partitions keep (`kv/src/sums`), as exchanges compare them.
//!
//! Invariants:
//! * Sums that are behind, and those of an earlier run that nobody has compared with the index yet,
//!   are not known.
//! * A version that this node cannot read makes a difference in the sum of its range, and another
//!   one than at any other node: equal sums would say that the version is there.

use super::class_fold::sync;
use super::sums::{Cut, KEY_RANGES, NO_SLOTS, SumSource, Sums, range_of_slot};
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Partition, RepairHost, is_of_class, mix};
use ombak_kv::replica::range_of;
use ombak_storage::key_hash;
use ombak_types::Error;

/// Takes a cut of what is kept.
pub(super) struct KeptSums;

impl SumSource for KeptSums {
    fn cut(&self, host: &dyn RepairHost, class: ClassId, first_slot: u32) -> Result<Option<Cut>, Error> {
        let partition = host.partitions().find(class.partition)?;
        let Some(kept) = partition.cut_of_class(class.n).filter(|cut| cut.is_checked) else { return Ok(None) };
        // Replicas that remove by themselves agree on no slots.
        if kept.removes_by_itself && first_slot != NO_SLOTS {
            return Ok(None);
        }
        let mut sums = Sums::default();
        kept.sums.lasting().for_each(|(range, sum)| sums.add(range, sum.sum));
        kept.sums.slots_from(first_slot).for_each(|(slot, sum)| sums.add(range_of_slot(slot), sum.sum));
        doubt_unreadable(host, &partition, class, &mut sums);
        let through = sync(&partition)?;
        Ok(Some(Cut { seq: kept.seq, through, sums }))
    }
}

/// Whether the sums of a class were compared with the store: until then a record that vanished
/// while the node was down would look like a removal.
pub(super) fn has_checked_sums(host: &dyn RepairHost, class: ClassId) -> bool {
    host.partitions().get(class.partition).is_some_and(|found| found.has_checked_sums(class.n))
}

fn doubt_unreadable(host: &dyn RepairHost, partition: &Partition, class: ClassId, sums: &mut Sums) {
    let unreadable = partition.keys_known_as_unreadable();
    if unreadable.is_empty() {
        return;
    }
    let (buckets, store_id) = (host.buckets().snapshot(), partition.store().identity().store_id);
    for key in unreadable.iter().filter(|key| is_of_class(&buckets, key, class.n)) {
        let hash = key_hash(key);
        sums.add(range_of(hash, KEY_RANGES as u32), mix(hash, store_id) | 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::{Kv, KvConfig, SumsStep};
    use ombak_storage::{MemoryConfig, MemoryFactory};
    use std::sync::Arc;

    const CLASS: ClassId = ClassId { partition: 0, n: 3 };

    fn open(config: MemoryConfig) -> (tempfile::TempDir, Kv) {
        let dir = tempfile::tempdir().unwrap();
        let kv = Kv::open(KvConfig::new("node", dir.path(), Arc::new(MemoryFactory::new(config)))).unwrap();
        (dir, kv)
    }

    fn cut(kv: &Kv, first_slot: u32) -> Option<Cut> {
        KeptSums.cut(&*kv.repair_host(), CLASS, first_slot).unwrap()
    }

    #[tokio::test]
    async fn sums_are_known_when_a_walk_has_shown_that_they_are_right() {
        let (_dir, kv) = open(MemoryConfig::default());
        assert_eq!(cut(&kv, 0), None);
        let mut walk = kv.begin_sums_walk(CLASS).unwrap().unwrap();
        assert_eq!(cut(&kv, 0), None);
        while walk.step(10).unwrap() == SumsStep::More {}
        assert_eq!(cut(&kv, 0).unwrap().sums, Sums::default());
    }

    #[tokio::test]
    async fn a_store_that_removes_by_itself_agrees_on_no_slots() {
        let (_dir, kv) = open(MemoryConfig { ttl_secs: Some(60), ..MemoryConfig::default() });
        let mut walk = kv.begin_sums_walk(CLASS).unwrap().unwrap();
        while walk.step(10).unwrap() == SumsStep::More {}
        assert_eq!(cut(&kv, 0), None);
        assert!(cut(&kv, NO_SLOTS).is_some());
    }
}
