//! A walk over changes in which versions with parts are whole, and parts are not seen. A version
//! that was added to is a change of its key like any other.

use super::layout::is_part;
use super::snapshot::complete;
use crate::backend::Stored;
use crate::error::StorageError;
use crate::feed::{Change, Changes, FeedCursor, FeedStep, KeyState};
use crate::fold::Detail;

pub(super) struct PartedChanges {
    inner: Box<dyn Changes>,
    detail: Detail,
}

impl PartedChanges {
    pub(super) fn new(inner: Box<dyn Changes>, detail: Detail) -> Self {
        Self { inner, detail }
    }

    fn complete(&self, mut change: Change) -> Result<Change, StorageError> {
        if let KeyState::Stored(entry) = &mut change.state
            && let Some(stored) = entry.stored.take()
        {
            entry.stored = Some(complete(&entry.key, stored, self.detail, |part| self.inner.read(part))?);
        }
        Ok(change)
    }
}

impl Changes for PartedChanges {
    fn next(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError> {
        let step = self.inner.next(count_max, bytes_max)?;
        let FeedStep::Some(changes) = step else { return Ok(step) };
        let objects = changes.into_iter().filter(|change| !is_part(change.key()));
        objects.map(|change| self.complete(change)).collect::<Result<_, _>>().map(FeedStep::Some)
    }

    fn cursor(&self) -> FeedCursor {
        self.inner.cursor()
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let read = |part: &[u8]| self.inner.read(part);
        self.inner.read(key)?.map(|stored| complete(key, stored, Detail::Objects, read)).transpose()
    }
}
