//! Merging: the current versions of closed files are copied to new files, then the old files are
//! removed.
//!
//! Invariants:
//! * The input files are removed only after the output files, and everything that supersedes
//!   versions that were not copied, are on disk.
//! * The input files are removed together: a commit file names them, and a start that finds a
//!   commit file finishes the work.
//! * A storage tombstone is removed only when no file outside the merge can hold an older version
//!   of its key.
//! * Copies keep their `seq`, so a merge that a crash interrupts at any point changes nothing.

mod commit;
mod commit_file;
mod copying;
mod job;
mod outputs;
mod select;
mod unread;

pub(super) use commit::ReplacedFiles;
pub(super) use commit_file::remove_committed;
pub(crate) use commit_file::{COMMIT_SUFFIX, finish_commit, read_commit, write_commit};
#[cfg(any(test, fuzzing))]
pub(crate) use commit_file::{decode, encode};
pub(super) use job::{MergeJob, Progress};
pub(super) use select::{FileSummary, select_for_room, select_inputs, summarize};
