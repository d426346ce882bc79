//! Ranges of a data file that do not hold what they should: records with a damaged body, and
//! *holes*, in which no record can be found, because the part is damaged that has its key, or
//! because the disk does not give it back.
//!
//! The hint file says which records lay there; a torn write that a start has passed over is not
//! among them, and is no damage. Without a hint file, the entries of the index that point into a
//! hole say which current versions lay there. The index of a running store knows every current
//! version, so a hole hides no version that nobody can name. It may hide a storage tombstone, which
//! keeps older versions away at the next start: then the file is not merged any more while it has
//! tombstones.

use crate::error::StorageError;
use crate::fold::Scope;
use crate::fs::OpenMode;
use crate::journal::data_file::{DataFile, hint_path};
use crate::journal::format::{HintReader, Kind};
use crate::journal::index::KeyIndex;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use crate::scrub::ScrubStep;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How many records of holes are looked up in one step. Others are found by the next round, or by
/// their readers.
const RECORDS_MAX: usize = 10_000;

/// A record that is damaged.
pub(super) struct LostRecord {
    pub(super) key: Vec<u8>,
    pub(super) offset: u64,
    pub(super) seq: u64,
}

/// The damage that a step has met in a file.
#[derive(Default)]
pub(super) struct MetDamage {
    /// All damaged ranges, in the order of the file.
    ranges: Vec<Range<u64>>,
    holes: Vec<Range<u64>>,
    /// Records with a damaged body.
    records: Vec<LostRecord>,
}

impl MetDamage {
    pub(super) fn add_hole(&mut self, hole: Range<u64>) {
        self.ranges.push(hole.clone());
        self.holes.push(hole);
    }

    pub(super) fn add_record(&mut self, record: LostRecord) {
        self.ranges.push(record.offset..record.offset + 1);
        self.records.push(record);
    }
}

/// What a hint file says of damaged ranges of its data file.
#[derive(Default)]
struct Listed {
    puts: Vec<LostRecord>,
    tombstones: u64,
}

impl<P: JournalPolicy> Core<P> {
    /// Finds out what lay in damaged ranges of a file, and tells of it.
    pub(super) fn met_damage(
        &self,
        file: &DataFile,
        damage: MetDamage,
        step: &mut ScrubStep,
        give_way: &dyn Fn(),
    ) -> Result<(), StorageError> {
        if damage.ranges.is_empty() {
            return Ok(());
        }
        let listed = self.listed_in(file, &damage.ranges, step, give_way);
        if !P::keeps_unreadable_versions() {
            if listed.is_none_or(|listed| listed.tombstones > 0 || !listed.puts.is_empty()) {
                damage.ranges.iter().for_each(|range| self.met_damaged_log(file, range, step));
            }
            return Ok(());
        }
        let lost = match listed {
            Some(listed) => {
                if listed.tombstones > 0 {
                    file.has_unread_part.store(true, Ordering::Relaxed);
                    step.found.obsolete += listed.tombstones;
                }
                listed.puts
            }
            None => self.lost_without_hint(file, damage, step)?,
        };
        lost.into_iter().try_for_each(|record| self.met_damaged_record(file, record, step))
    }

    /// The records in damaged ranges of a file without a hint file.
    fn lost_without_hint(
        &self,
        file: &DataFile,
        damage: MetDamage,
        step: &mut ScrubStep,
    ) -> Result<Vec<LostRecord>, StorageError> {
        let MetDamage { holes, mut records, .. } = damage;
        if !holes.is_empty() {
            file.has_unread_part.store(true, Ordering::Relaxed);
            let found = self.current_in(file, &holes)?;
            let has_none = |hole: &&Range<u64>| !found.iter().any(|record| hole.contains(&record.offset));
            step.found.obsolete += holes.iter().filter(has_none).count() as u64;
            records.extend(found);
        }
        Ok(records)
    }

    /// What the hint file lists in these ranges; none if there is no hint file that can be read. It
    /// is read as a whole, so it counts: a file with damage everywhere is read at the same rate.
    fn listed_in(
        &self,
        file: &DataFile,
        ranges: &[Range<u64>],
        step: &mut ScrubStep,
        give_way: &dyn Fn(),
    ) -> Option<Listed> {
        let handle = self.shared.fs.open(&hint_path(&self.dir, file.id), OpenMode::Read).ok()?;
        step.bytes_read += handle.length().ok()?;
        let reader = HintReader::open(handle, file.id, file.salt).ok()??;
        let mut listed = Listed::default();
        let is_whole = reader.for_each(|entry| {
            give_way();
            let offset = u64::from(entry.offset);
            match entry.kind {
                _ if !is_in(ranges, offset) => {}
                Kind::Tombstone => listed.tombstones += 1,
                Kind::Put if listed.puts.len() < RECORDS_MAX => {
                    listed.puts.push(LostRecord { key: entry.key.to_vec(), offset, seq: entry.seq });
                }
                Kind::Put => {}
            }
        });
        is_whole.ok().filter(|is_whole| *is_whole).map(|_| listed)
    }

    /// The current versions that the index finds in the holes.
    fn current_in(&self, file: &DataFile, holes: &[Range<u64>]) -> Result<Vec<LostRecord>, StorageError> {
        let mut view = {
            // No put is between its append and its index entry.
            let writer = self.writer.lock();
            self.index.view(writer.last_seq())?
        };
        let mut lost = Vec::new();
        let walked = self.index.walk(&mut view, &Scope::KEPT, |key, found| {
            let (position, seq) = (found.entry.position, found.entry.seq);
            let offset = u64::from(position.offset);
            if position.file_id == file.id && is_in(holes, offset) {
                lost.push(LostRecord { key: key.to_vec(), offset, seq });
            }
            lost.len() < RECORDS_MAX
        });
        self.index.end_view(&view);
        walked.map(|()| lost)
    }
}

/// Whether an offset lies in one of these ranges, which ascend.
fn is_in(ranges: &[Range<u64>], offset: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= offset);
    after.checked_sub(1).and_then(|last| ranges.get(last)).is_some_and(|range| range.contains(&offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_in_a_range_or_between_two() {
        let ranges = [40..50, 100..101];
        let inside: Vec<u64> = (0..200).filter(|offset| is_in(&ranges, *offset)).collect();
        assert_eq!(inside, (40..50).chain([100]).collect::<Vec<_>>());
        assert!(!is_in(&[], 7));
    }
}
