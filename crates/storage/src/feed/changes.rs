//! A walk over the changes of a store.

use super::change::Change;
use super::cursor::{CursorLost, FeedCursor};
use crate::backend::Stored;
use crate::error::StorageError;
use crate::fold::Detail;

/// How far a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everything appended, after a sync of what is not on disk yet. The cursor of such a walk may
    /// be kept beyond this run of the store.
    Durable,
    /// Everything appended. The cursor of such a walk is of use only in this run of the store.
    Appended,
}

/// What a consumer asks of a feed.
#[derive(Clone, Copy, Debug)]
pub struct ChangesQuery<'a> {
    /// Where the consumer has arrived.
    pub from: &'a FeedCursor,
    /// How much of each version the walk hands out.
    pub detail: Detail,
    /// How far the walk goes.
    pub reach: Reach,
    /// Whether removals are wanted. Without them, no cursor is lost because removals were
    /// forgotten.
    pub with_removals: bool,
}

/// The answer to a query.
pub enum ChangesSince {
    /// The changes after the cursor.
    Found(Box<dyn Changes>),
    /// The consumer must begin anew.
    Lost(CursorLost),
}

/// One step of a walk.
#[derive(Debug)]
pub enum FeedStep {
    /// Some changes, perhaps none.
    Some(Vec<Change>),
    /// All changes were handed out.
    End,
    /// The rest cannot be read. The consumer must begin anew.
    Lost(CursorLost),
}

/// A walk over the changes of a store as it was at one moment. While it lives, it keeps files from
/// being removed. It blocks: not for network threads.
pub trait Changes: Send {
    /// The next changes: at most `count_max`, after reading about `bytes_max` bytes of files at
    /// most.
    fn next(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError>;

    /// Where a consumer may begin again that has applied everything handed out so far. It moves
    /// with whole files of the journal, and after [`FeedStep::End`] to the moment of the walk.
    fn cursor(&self) -> FeedCursor;

    /// The version of a key that the walk shows.
    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError>;
}
