//! Sync marks: what of this node's stores was included at other primaries, and what of theirs here
//! (docs/design/anti-entropy.md §4).
//!
//! What it is: the marks in memory and in `sync-marks.json`. Exchanges (`ombak-repair`) advance
//! them. Requests ask them whether a copy is covered.
//!
//! What it is not: it does not decide whether a mark holds. That needs an answer of the other node,
//! and whoever finds out that a mark does not hold says so ([`SyncMarks::forget`]).
//!
//! Invariants:
//! * A mark that another node is told of was on the disk before, unless it says the same about
//!   copies as one that was.
//! * Marks name the stores of both nodes. Those that name another store of this node are forgotten
//!   at the start.
//! * No lock is held over I/O that a request waits for.

mod file;
#[allow(clippy::module_inception, reason = "the main type of the module")]
mod marks;
mod sync_marks;

pub use marks::{Known, Marks, PeerStore, Towards};
pub use sync_marks::SyncMarks;
