//! A walk over the changes of all stores of a partition, one store after another.

use super::Selector;
use crate::backend::Stored;
use crate::error::StorageError;
use crate::feed::{Changes, FeedCursor, FeedStep};
use std::sync::Arc;

pub(super) struct MultiChanges {
    walks: Vec<Box<dyn Changes>>,
    selector: Arc<dyn Selector>,
    /// The store that the walk has reached.
    at: usize,
    /// Where the walk has begun, and where it ends.
    from_seq: u64,
    end_seq: u64,
}

impl MultiChanges {
    pub(super) fn new(walks: Vec<Box<dyn Changes>>, selector: Arc<dyn Selector>, from_seq: u64, end_seq: u64) -> Self {
        Self { walks, selector, at: 0, from_seq, end_seq }
    }
}

impl Changes for MultiChanges {
    fn next(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError> {
        let Some(walk) = self.walks.get_mut(self.at) else { return Ok(FeedStep::End) };
        match walk.next(count_max, bytes_max)? {
            FeedStep::Some(mut changes) => {
                // A store may have keys of a bucket whose backend was changed. Nobody sees them.
                let (at, selector) = (self.at, &*self.selector);
                changes.retain(|change| selector.select(change.key()).is_ok_and(|selected| selected == at));
                Ok(FeedStep::Some(changes))
            }
            FeedStep::End => {
                self.at += 1;
                Ok(FeedStep::Some(Vec::new()))
            }
            lost @ FeedStep::Lost(_) => Ok(lost),
        }
    }

    fn cursor(&self) -> FeedCursor {
        let seq = if self.at < self.walks.len() { self.from_seq } else { self.end_seq };
        FeedCursor { seq, stores: self.walks.iter().flat_map(|walk| walk.cursor().stores).collect() }
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let selected = self.selector.select(key)?;
        self.walks.get(selected).ok_or(StorageError::Closed)?.read(key)
    }
}
