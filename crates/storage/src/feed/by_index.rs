//! A walk over the changes of a store without a lasting journal: over the index, which is visited
//! as a whole, and over the removals that the store remembers.

use super::change::Change;
use super::changes::{Changes, FeedStep};
use super::cursor::FeedCursor;
use super::removal_log::Removed;
use crate::backend::Stored;
use crate::error::StorageError;
use crate::fold::{Detail, Expired, Scope, Snapshot};
use std::collections::VecDeque;

/// The most entries that one call takes from the snapshot.
const ENTRIES_MAX: usize = 10_000;

/// A walk over the index; see the module.
pub(crate) struct IndexChanges {
    snapshot: Box<dyn Snapshot>,
    from: FeedCursor,
    end: FeedCursor,
    removed: VecDeque<Removed>,
    detail: Detail,
    is_done: bool,
}

impl IndexChanges {
    /// A walk from one cursor to another. The snapshot is not older than `end`. `end` and the
    /// removals were taken together, while nothing was appended. No key of `removed` is there.
    pub(crate) fn new(
        snapshot: Box<dyn Snapshot>,
        from: FeedCursor,
        end: FeedCursor,
        removed: VecDeque<Removed>,
        detail: Detail,
    ) -> Self {
        Self { snapshot, from, end, removed, detail, is_done: false }
    }
}

impl Changes for IndexChanges {
    fn next(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError> {
        let count_max = count_max.clamp(1, ENTRIES_MAX).min(usize::try_from(bytes_max).unwrap_or(usize::MAX).max(1));
        if !self.removed.is_empty() {
            let count = count_max.min(self.removed.len());
            return Ok(FeedStep::Some(self.removed.drain(..count).map(Removed::into_change).collect()));
        }
        if self.is_done {
            return Ok(FeedStep::End);
        }
        let since_seq = self.from.stores.first().map_or(0, |place| place.seq);
        let scope = Scope { since_seq, expired: Expired::All, ..Scope::ALL };
        let entries = self.snapshot.next(&scope, self.detail, count_max)?;
        self.is_done = entries.is_empty();
        Ok(FeedStep::Some(entries.into_iter().map(Change::stored).collect()))
    }

    fn cursor(&self) -> FeedCursor {
        // The index has no order by seq, so nothing is passed before everything is.
        if self.is_done { self.end.clone() } else { self.from.clone() }
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        self.snapshot.read(key)
    }
}
