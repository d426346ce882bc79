//! What this node knows of the removal of tombstones and expired versions
//! (docs/design/replication.md §6).
//!
//! What it is: the versions that wait for a round, the fences that refuse copies which were read
//! too early, the floors of time that coordinators keep to, and what is counted. The crate
//! `ombak-repair` drives the rounds and answers them.
//!
//! What it is not: it does not decide when a tombstone's time has come
//! (`engine/tombstone_reaper.rs`), and asks no other node.
//!
//! Invariants:
//! * A copy that was read before a fence was raised is refused after that.
//! * A floor is raised durably before a version that it stands for is removed.

mod counts;
mod due;
mod fences;
mod floors;
mod state;
mod takes_times;

pub use counts::ReapingCounts;
pub use due::{Class, DueVersions, Ending};
pub use fences::Fences;
pub use floors::Floors;
pub use state::ReapingState;
pub(crate) use takes_times::TakesTimes;
