//! How high the seqs of lost records can have been (docs/design/anti-entropy.md §5, "Doubt").
//!
//! A lost record may have replaced or removed an older version of its key, which then comes back.
//! What comes back has a lower seq than the lost record. So a version with a higher seq than all
//! lost records is none that came back, and nobody needs to doubt it.
//!
//! What bounds the seqs of lost records:
//!
//! * The hint file of their data file lists them.
//! * Appends to a file have rising seqs. So what was lost before an append of the same file has a
//!   lower seq than that append. A merge keeps the seqs of what it copies, and copies in any order,
//!   so this says nothing in the output of a merge.
//! * A store appends to one file at a time, and never again to an earlier one. The inputs of a
//!   merge take no appends any more when its output gets an id. So everything in a file has a lower
//!   seq than the appends to files with higher ids.
//! * What a start finds has at most the seq of the last append that it finds.
//!
//! Invariant: when it is unclear which of these holds, the greater bound counts.

use super::Recovery;
use crate::fs::OpenMode;
use crate::journal::data_file::DataFile;
use crate::journal::policy::JournalPolicy;
use crate::journal::synced_extent::has_appends;
use std::ops::Bound;
use std::path::Path;

/// What is known of the seqs of some lost records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostSeqs {
    /// None was higher than this one.
    UpTo(u64),
    /// The records were in the data file with this id.
    OfFile(u32),
    Unknown,
}

/// What is known of the seqs of all lost records of a store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostBound {
    up_to: u64,
    /// The highest id of a file of which it is only known that it had some of them.
    last_file: Option<u32>,
    is_unknown: bool,
}

impl LostBound {
    pub(super) fn add(&mut self, seqs: LostSeqs) {
        match seqs {
            LostSeqs::UpTo(seq) => self.up_to = self.up_to.max(seq),
            LostSeqs::OfFile(id) => self.last_file = self.last_file.max(Some(id)),
            LostSeqs::Unknown => self.is_unknown = true,
        }
    }
}

impl<P: JournalPolicy> Recovery<'_, P> {
    /// The highest seq that a version can have that a lost record had replaced or removed; 0 if
    /// nothing is lost. Everything is loaded. `last_seq` is the last append of the store.
    pub(super) fn lost_up_to(&self, last_seq: u64) -> u64 {
        let LostBound { up_to, last_file, is_unknown } = self.losses.bound();
        if is_unknown {
            return last_seq;
        }
        let before_next = |id: u32| self.first_append_after(id).map_or(last_seq, |seq| seq.saturating_sub(1));
        up_to.max(last_file.map_or(0, before_next)).min(last_seq)
    }

    /// The lowest seq in the next file of appends behind a file.
    fn first_append_after(&self, id: u32) -> Option<u64> {
        let mut later = self.files.range((Bound::Excluded(id), Bound::Unbounded)).map(|(_, file)| file);
        let has_records = |file: &DataFile| file.counters.seq_min() < u64::MAX;
        let next = later.find(|file| has_records(file) && self.has_appends(&file.path(), file.id, id));
        next.map(|file| file.counters.seq_min())
    }

    /// Whether a file is known to have appends, and so says something of an earlier file.
    pub(super) fn has_appends(&self, path: &Path, id: u32, earlier: u32) -> bool {
        let appends = self.shared.fs.open(path, OpenMode::Read).and_then(|file| has_appends(&*file, id));
        appends.unwrap_or_else(|error| {
            // The start reads the file itself, too, if it needs more of it than its hint file.
            tracing::warn!(file = %path.display(), %error, "it cannot say what file {earlier} had");
            false
        })
    }
}
