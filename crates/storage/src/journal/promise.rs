//! What of a data file was on disk once: damage to that is rot, all other damage is what a crash leaves behind.

use super::format::HintReader;
use std::io;

pub(super) enum Promise {
    /// What the records behind it say: the file was written to when the process or the machine stopped.
    ByRecords,
    /// All of it: it has a hint file, of which nothing can be read.
    All,
    /// The records that are in its hint file. What a crash had left half-written before it was made is not.
    Listed {
        /// Where they start, in order.
        offsets: Vec<u32>,
        /// Ranges that were lost before the hint file was made.
        lost_ranges: u32,
    },
}

impl Promise {
    /// What a hint file tells.
    pub(super) fn of_hint(reader: HintReader) -> io::Result<Self> {
        let lost_ranges = reader.trailer().lost_ranges;
        let mut offsets = Vec::new();
        let is_whole = reader.for_each(|entry| offsets.push(entry.offset))?;
        offsets.sort_unstable();
        Ok(if is_whole { Self::Listed { offsets, lost_ranges } } else { Self::All })
    }

    /// Whether damage to a range takes away what was on disk; `synced_to` is what the records of the file say.
    pub(super) fn covers(&self, start: u64, length: u64, synced_to: u64) -> bool {
        match self {
            Self::ByRecords => start < synced_to,
            Self::All => true,
            Self::Listed { offsets, .. } => {
                let first = offsets.partition_point(|offset| u64::from(*offset) < start);
                offsets.get(first).is_some_and(|offset| u64::from(*offset) < start.saturating_add(length))
            }
        }
    }

    /// Whether the file is known to have had a record from `length` on.
    pub(super) fn goes_beyond(&self, length: u64) -> bool {
        matches!(self, Self::Listed { offsets, .. } if offsets.last().is_some_and(|last| u64::from(*last) >= length))
    }

    /// Losses that no byte of the file shows.
    pub(super) fn lost_ranges(&self) -> u32 {
        match self {
            Self::Listed { lost_ranges, .. } => *lost_ranges,
            Self::ByRecords | Self::All => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_rot_where_something_was_promised() {
        assert!(Promise::ByRecords.covers(99, 10, 100) && !Promise::ByRecords.covers(100, 10, 100));
        assert!(Promise::All.covers(100, 10, 0));
        let listed = Promise::Listed { offsets: vec![40, 100, 200], lost_ranges: 3 };
        for (start, length, expected) in
            [(40, 1, true), (41, 59, false), (41, 60, true), (100, 100, true), (101, 99, false), (201, 1000, false)]
        {
            assert_eq!(listed.covers(start, length, 1000), expected, "{start}, {length}");
        }
        assert!(listed.goes_beyond(200) && !listed.goes_beyond(201) && !Promise::All.goes_beyond(0));
    }
}
