//! The byte ranges of a data file that are known to have been synced. Damage inside them is
//! corruption; all other damage is a torn write that a crash left behind.

use super::format::{FILE_HEADER_BYTES, FileHeader, HintReader, Scanned, Scanner};
use crate::backend::ReadMode;
use crate::fs::File;
use std::io;

/// Whether a file that has the name of a synced file was written by appends, and not by a merge.
///
/// Then all files of appends with lower ids were synced as a whole. A sync covers all files that
/// are closed and not synced yet, in the order of their ids, before the active file gets that name.
/// A start also syncs the files in that order. The records of the earlier files cannot say this of
/// the last of them.
pub(crate) fn has_appends(file: &dyn File, id: u32) -> io::Result<bool> {
    let length = file.length()?;
    let mut bytes = [0; FILE_HEADER_BYTES];
    let read = file.read_at(&mut bytes, 0, ReadMode::Blocking)?;
    let Some(header) = FileHeader::decode(&bytes[..read]).ok().filter(|header| header.file_id == id) else {
        return Ok(false);
    };
    let mut scanner = Scanner::new(file, header.salt, FILE_HEADER_BYTES as u64, length);
    while let Some(scanned) = scanner.next()? {
        if let Scanned::Record { header, .. } = scanned {
            return Ok(header.is_append());
        }
    }
    Ok(false)
}

pub(super) enum SyncedExtent {
    /// The range up to which the records of the file say that it was synced. For a file that was
    /// being written to when the process or the machine stopped.
    FromRecords,
    /// The whole file: it has a hint file, but the hint file cannot be read.
    WholeFile,
    /// The records that the hint file lists. A torn write from before the hint file was made is not
    /// among them.
    FromHint {
        /// The offsets of the records, in order.
        offsets: Vec<u32>,
        /// Number of ranges that were lost before the hint file was made.
        lost_ranges: u32,
    },
}

impl SyncedExtent {
    /// The synced ranges according to a hint file.
    pub(super) fn of_hint(reader: HintReader) -> io::Result<Self> {
        let lost_ranges = reader.trailer().lost_ranges;
        let mut offsets = Vec::new();
        let is_whole = reader.for_each(|entry| offsets.push(entry.offset))?;
        offsets.sort_unstable();
        Ok(if is_whole { Self::FromHint { offsets, lost_ranges } } else { Self::WholeFile })
    }

    /// Whether damage to a range destroys synced data. `synced_to` is the synced length that the
    /// records of the file state.
    pub(super) fn covers(&self, start: u64, length: u64, synced_to: u64) -> bool {
        match self {
            Self::FromRecords => start < synced_to,
            Self::WholeFile => true,
            Self::FromHint { offsets, .. } => {
                let first = offsets.partition_point(|offset| u64::from(*offset) < start);
                offsets.get(first).is_some_and(|offset| u64::from(*offset) < start.saturating_add(length))
            }
        }
    }

    /// Whether the file is known to have had a record at `length` or beyond.
    pub(super) fn has_record_beyond(&self, length: u64) -> bool {
        matches!(self, Self::FromHint { offsets, .. } if offsets.last().is_some_and(|last| u64::from(*last) >= length))
    }

    /// Number of lost ranges that the bytes of the file do not show.
    pub(super) fn lost_ranges(&self) -> u32 {
        match self {
            Self::FromHint { lost_ranges, .. } => *lost_ranges,
            Self::FromRecords | Self::WholeFile => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_corruption_where_something_was_synced() {
        assert!(SyncedExtent::FromRecords.covers(99, 10, 100) && !SyncedExtent::FromRecords.covers(100, 10, 100));
        assert!(SyncedExtent::WholeFile.covers(100, 10, 0));
        let listed = SyncedExtent::FromHint { offsets: vec![40, 100, 200], lost_ranges: 3 };
        for (start, length, expected) in
            [(40, 1, true), (41, 59, false), (41, 60, true), (100, 100, true), (101, 99, false), (201, 1000, false)]
        {
            assert_eq!(listed.covers(start, length, 1000), expected, "{start}, {length}");
        }
        assert!(
            listed.has_record_beyond(200)
                && !listed.has_record_beyond(201)
                && !SyncedExtent::WholeFile.has_record_beyond(0)
        );
    }
}
