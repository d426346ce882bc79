//! Merging: current versions of closed files are copied to new files, then the old ones go.
//!
//! Invariants:
//! * the inputs go only after the outputs, and everything that supersedes what was not copied, are on disk;
//! * the inputs go together: a commit file names them, and a start that finds it finishes the work;
//! * a tombstone goes only when no file outside the merge can hold anything older;
//! * copies keep their `seq`, so a merge that a crash interrupts at any point changes nothing.

mod commit;
mod job;
mod select;

pub(super) use commit::remove_committed;
pub(crate) use commit::{COMMIT_SUFFIX, finish_commit, read_commit, write_commit};
#[cfg(any(test, fuzzing))]
pub(crate) use commit::{decode, encode};
pub(super) use job::{MergeJob, Progress};
pub(super) use select::{FileSummary, select_for_room, select_inputs, summarize};
