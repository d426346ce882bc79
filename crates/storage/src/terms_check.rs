//! The comparison of a store's index entries with the objects that justify them.
//!
//! What it is: the place of a walk in a store, and what one step has found and mended. An index
//! entry that an object justifies and that is missing is added. One that no object justifies is
//! removed. [`crate::Backend::check_terms`] takes a step.
//!
//! What it is not: nothing here paces itself, and no object is changed.

use bytes::Bytes;

/// A step reads about this many bytes at most. It may read one value more.
pub(crate) const STEP_BYTES_MAX: u64 = 8 << 20;
/// What a look at a key or an index entry costs beside the bytes of its value.
pub(crate) const VISIT_COST_BYTES: u64 = 64;

/// The place of a walk in a store. The default is its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermCursor {
    /// Which of the stores of a partition with several backends, from 0.
    pub store: u32,
    /// Whether the keys are done, and the index entries are being looked at.
    pub in_terms: bool,
    /// Behind what the walk goes on, in the form of the store; none: at the beginning.
    pub(crate) after: Option<Bytes>,
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermStep {
    /// Where the next step begins.
    pub next: TermCursor,
    /// Whether everything of the store was looked at.
    pub is_over: bool,
    /// Keys and index entries that were looked at.
    pub visited: u64,
    /// Index entries that were missing and are there now.
    pub lacking: u64,
    /// Index entries that no object justified and that are gone.
    pub surplus: u64,
    /// About how many bytes were read for it, in memory or from a disk. For a pace.
    pub cost_bytes: u64,
}

impl TermStep {
    /// A step that has done nothing yet.
    pub(crate) fn at(cursor: &TermCursor) -> Self {
        Self { next: cursor.clone(), ..Self::default() }
    }

    /// The step of a store without index entries.
    pub(crate) fn nothing() -> Self {
        Self { is_over: true, ..Self::default() }
    }

    /// Passes what was looked at. `is_end`: there is no more of its kind.
    pub(crate) fn pass(&mut self, last: Option<Bytes>, is_end: bool) {
        if !is_end {
            self.next.after = last;
        } else if self.next.in_terms {
            self.is_over = true;
        } else {
            (self.next.in_terms, self.next.after) = (true, None);
        }
    }
}
