//! The comparison of index entries with heads, for a store with a journal.

use super::core::Core;
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::fold::Expired;
use crate::journal::index::{Entry, IndexAnswer, KeyIndex, OrderedIndex, TermsSource};
use crate::journal::policy::JournalPolicy;
use crate::journal::read::Wanted;
use crate::terms_check::{TermCursor, TermStep};
use bytes::Bytes;

/// About what it costs to build the order by one key.
const BUILD_COST_BYTES: u64 = 1 << 10;

impl<P: JournalPolicy> Core<P> {
    /// Takes a step; see [`crate::Backend::check_terms`]. An order that is not complete is built
    /// first, by at most `count_max` keys a step.
    pub(super) fn check_terms(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        self.check_appendable()?;
        if self.index.wants_ordered_index() {
            self.build_ordered_index(count_max)?;
            return Ok(TermStep { cost_bytes: BUILD_COST_BYTES * count_max as u64, ..TermStep::at(cursor) });
        }
        let read_head = |key: &[u8], entry: &Entry| self.head_to_check(key, entry);
        let without_writes = |work: &mut dyn FnMut()| {
            let _writer = self.writer.lock();
            work();
        };
        let source = TermsSource { read_head: &read_head, without_writes: &without_writes };
        let step = self.index.check_terms(cursor, count_max, &source)?;
        self.scrub.terms_checked(&step);
        Ok(step)
    }

    /// The head of exactly this version, if it has not expired.
    fn head_to_check(&self, key: &[u8], entry: &Entry) -> Result<Option<Bytes>, StorageError> {
        let indexed = P::Index::key(key);
        let is_it = |found: &IndexAnswer| found.entry.seq == entry.seq;
        let look = || Ok(self.index.get_head(indexed, ReadMode::Blocking)?.filter(is_it));
        let read = self.read_with(key, ReadMode::Blocking, Wanted::Head, Expired::Hidden, look);
        let read = read.inspect_err(|error| self.tell_unreadable(key, error))?;
        Ok(read.map(|read| read.stored.head))
    }
}
