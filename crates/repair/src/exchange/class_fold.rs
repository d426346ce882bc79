//! A fold over the versions of some ranges of a class.
//!
//! It visits the whole index of the partition. Where only ranges of key hashes are wanted, a key of
//! another range costs no more than its hash.

use super::sums::{KEY_RANGES, RANGES, range_of_version};
use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, Partition, RepairHost, is_broken, is_of_class};
use ombak_kv::replica::range_of;
use ombak_runtime::{Waited, pause_if_due};
use ombak_storage::{Detail, FoldEntry, Scope, key_hash};
use ombak_types::Error;

/// Number of entries that a fold takes from a snapshot at a time.
const FOLD_ENTRIES: usize = 2_000;

/// Some ranges, from a first slot of expiry on.
pub(super) struct WantedRanges {
    is_wanted: Box<[bool]>,
    wants_slots: bool,
    first_slot: u32,
}

impl WantedRanges {
    pub(super) fn new(ranges: &[u32], first_slot: u32) -> Self {
        let mut is_wanted = vec![false; RANGES].into_boxed_slice();
        for range in ranges {
            if let Some(wanted) = is_wanted.get_mut(*range as usize) {
                *wanted = true;
            }
        }
        let wants_slots = is_wanted.iter().skip(KEY_RANGES).any(|wanted| *wanted);
        Self { is_wanted, wants_slots, first_slot }
    }

    /// Whether some version of this key may be in a range.
    fn may_include(&self, key: &[u8]) -> bool {
        self.wants_slots || self.includes(range_of(key_hash(key), KEY_RANGES as u32))
    }

    fn includes(&self, range: u32) -> bool {
        self.is_wanted.get(range as usize).copied().unwrap_or(false)
    }

    /// The range of a version, if it is wanted.
    fn of(&self, entry: &FoldEntry, hash: u64) -> Option<u32> {
        range_of_version(hash, entry.expires_secs, self.first_slot).filter(|range| self.includes(*range))
    }
}

/// Visits the versions of some ranges of a class, tombstones included, and none that is set aside.
/// Every version whose lock was taken before is visited, or a later one in its place. `visit` gets
/// the hash of the key and the range, too. Blocks.
pub(super) fn fold(
    host: &dyn RepairHost,
    partition: &Partition,
    (class, wanted): (ClassId, &WantedRanges),
    waited: &Waited<'_>,
    mut visit: impl FnMut(&FoldEntry, u64, u32),
) -> Result<(), Error> {
    let buckets = host.buckets().snapshot();
    let may_include = |key: &[u8]| wanted.may_include(key) && is_of_class(&buckets, key, class.n);
    let scope = Scope { class: Some(&may_include), since_seq: partition.set_aside_to(), ..Scope::KEPT };
    let mut snapshot = partition.snapshot()?;
    loop {
        waited.check()?;
        pause_if_due();
        let entries = snapshot.next(&scope, Detail::Keys, FOLD_ENTRIES)?;
        if entries.is_empty() {
            return Ok(());
        }
        for entry in &entries {
            let hash = key_hash(&entry.key);
            if let Some(range) = wanted.of(entry, hash) {
                visit(entry, hash, range);
            }
        }
    }
}

/// Makes everything durable that was found before, and returns the seq up to which it is. Blocks.
pub(super) fn sync(partition: &Partition) -> Result<u64, Error> {
    let seq = partition.store().last_seq();
    if !is_broken(BrokenRule::MarksFollowSyncs) {
        partition.store().sync(seq)?;
    }
    Ok(seq)
}
