//! What a consumer is told in one partition at present.

use ombak_storage::{Changes, FeedCursor, Snapshot};
use std::time::Instant;

/// What a consumer is told in a partition.
#[derive(Default)]
pub(super) struct Telling {
    /// The changes after a place, and a moment before which everything is among them.
    pub(super) changes: Option<(Box<dyn Changes>, Instant)>,
    /// Everything, beside the changes.
    pub(super) everything: Option<Everything>,
}

/// Everything that a store has.
pub(super) struct Everything {
    pub(super) snapshot: Box<dyn Snapshot>,
    /// Where the changes go on that come in between. It is the place of the consumer when it was
    /// told everything.
    pub(super) cursor: FeedCursor,
}

impl Telling {
    pub(super) const fn is_nothing(&self) -> bool {
        self.changes.is_none() && self.everything.is_none()
    }
}
