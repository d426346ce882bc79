//! What walks over the feed remember of a data file, so that the next one does not read the file
//! from its start.

use crate::journal::format::FILE_HEADER_BYTES;
use parking_lot::Mutex;

/// The least bytes between two marks, except for the last one.
const STEP_BYTES: u64 = 1 << 20;

/// Places in a file: all records before the offset have at most this `seq`. Both numbers rise.
#[derive(Default)]
pub(in crate::journal) struct ReadMarks(Mutex<Vec<(u64, u64)>>);

impl ReadMarks {
    /// The offset from which a reader finds all records after `seq`, and the highest `seq` before
    /// it.
    pub(super) fn start_after(&self, seq: u64) -> (u64, u64) {
        let marks = self.0.lock();
        let passed = marks.partition_point(|(highest, _)| *highest <= seq);
        passed.checked_sub(1).map_or((0, FILE_HEADER_BYTES as u64), |last| marks[last])
    }

    /// Notes that all records before `offset` have at most this `seq`.
    pub(super) fn note(&self, seq: u64, offset: u64) {
        let mut marks = self.0.lock();
        if marks.last().is_some_and(|(_, last)| *last >= offset) {
            return;
        }
        let before_last = marks.len().checked_sub(2).map(|place| marks[place].1);
        let replaces_last = marks.last().is_some_and(|(highest, _)| *highest == seq)
            || before_last.is_some_and(|before| offset - before < STEP_BYTES);
        if replaces_last {
            marks.pop();
        }
        marks.push((seq, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_begins_at_the_last_mark_that_it_has_passed() {
        let (marks, header) = (ReadMarks::default(), FILE_HEADER_BYTES as u64);
        assert_eq!(marks.start_after(9), (0, header));
        marks.note(5, 100);
        marks.note(8, STEP_BYTES + 50);
        marks.note(9, STEP_BYTES + 60);
        marks.note(12, STEP_BYTES + 300);
        assert_eq!(marks.start_after(4), (0, header));
        assert_eq!(marks.start_after(8), (5, 100), "marks close to each other become one");
        assert_eq!(marks.start_after(11), (9, STEP_BYTES + 60));
        assert_eq!(marks.start_after(12), (12, STEP_BYTES + 300));
        marks.note(12, STEP_BYTES + 250);
        assert_eq!(marks.start_after(99), (12, STEP_BYTES + 300), "marks do not go back");
    }
}
