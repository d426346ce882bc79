//! Sums by a fold over the keys of a class. It takes as long as the class is large.

use super::sums::{Cut, RANGES, SumSource, Sums};
use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, Partition, RepairHost, is_broken, is_of_class, mix};
use ombak_kv::replica::range_of;
use ombak_runtime::Waited;
use ombak_storage::{Detail, FoldEntry, Scope, key_hash};
use ombak_types::Error;

/// Number of entries that a fold takes from a snapshot at a time.
const FOLD_ENTRIES: usize = 2_000;

/// Sums up anew for each question.
pub(super) struct FoldedSums;

impl SumSource for FoldedSums {
    fn cut(&self, host: &dyn RepairHost, class: ClassId, waited: &Waited<'_>) -> Result<Option<Cut>, Error> {
        let partition = host.partitions().find(class.partition)?;
        // A store hands out a seq before the index has the record. Whoever got one up to this seq
        // holds the lock of its key until the index has it.
        let seq = partition.store().last_seq();
        partition.await_writers();
        let mut sums = Sums::default();
        fold(host, &partition, class, waited, |entry, hash| {
            sums.add(range_of(hash, RANGES as u32), mix(hash, entry.digest));
            if partition.is_known_as_unreadable(&entry.key) {
                // The sum proves nothing, so the keys of the range are compared one by one.
                sums.add(range_of(hash, RANGES as u32), 1);
            }
        })?;
        let through = sync(&partition)?;
        Ok(Some(Cut { seq, through, sums }))
    }
}

/// Visits the versions of a class, expired ones and tombstones included, and none that is set
/// aside. Every version whose lock was taken before is visited, or a later one in its place.
/// Blocks.
pub(super) fn fold(
    host: &dyn RepairHost,
    partition: &Partition,
    class: ClassId,
    waited: &Waited<'_>,
    mut visit: impl FnMut(&FoldEntry, u64),
) -> Result<(), Error> {
    let buckets = host.buckets().snapshot();
    let of_class = |key: &[u8]| is_of_class(&buckets, key, class.n);
    let scope = Scope { class: Some(&of_class), since_seq: partition.set_aside_to(), ..Scope::KEPT };
    let mut snapshot = partition.snapshot()?;
    loop {
        waited.check()?;
        let entries = snapshot.next(&scope, Detail::Keys, FOLD_ENTRIES)?;
        if entries.is_empty() {
            return Ok(());
        }
        entries.iter().for_each(|entry| visit(entry, key_hash(&entry.key)));
    }
}

/// Makes everything durable that a fold has found before, and returns the seq up to which it is.
/// Blocks.
pub(super) fn sync(partition: &Partition) -> Result<u64, Error> {
    let seq = partition.store().last_seq();
    if !is_broken(BrokenRule::MarksFollowSyncs) {
        partition.store().sync(seq)?;
    }
    Ok(seq)
}
