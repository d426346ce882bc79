//! Sums over what a store holds, by class, by range of key hashes and by time of expiry.
//!
//! ```text
//!   put, merge, removal         drop by the store itself      fold over the index
//!   (the key is locked)         (the store is locked)         (a snapshot, in steps)
//!          |                            |                             |
//!          +--------------+-------------+                             |
//!                         v                                           v
//!   PartitionSums ---- ClassSums: one for each n            SumsWalk: adds what is missing,
//!                       ranges: 4,096 of key hashes   <---- or shows that nothing is
//!                       slots of expiry: 4,096 s each
//!                       which ranges are behind
//!                         |                  |
//!      all keys locked    |                  |  orderly close, next start
//!      for a moment       v                  v
//!                      ClassCut          SumsFile
//! ```
//!
//! What it is: for each class, the number of versions and a wrapping sum of a hash over key and
//! digest. Two replicas with the same versions have the same sums. Digests cover clocks and sets of
//! events, so the layout of a grown value does not matter.
//!
//! What it is not: it compares no replicas and repairs nothing. It has no thread: whoever needs the
//! sums of a class drives a [`SumsWalk`].
//!
//! Invariants:
//! * **Sum = f(index).** The sums of a class that is [exact](SumsState::Exact) are those of a fold
//!   over the versions that the store holds at that moment, expired ones included, without what is
//!   set aside. `f` does not depend on a clock.
//! * Sums that are known to be behind are never answered.
//! * A cut has each write up to its seq, and no part of a later one.
//! * Sums from an earlier run are taken only if no write can have come since they were saved. They
//!   are marked until a walk of this run has compared them with the index.
//! * Sums are never corrected silently: the difference is noted first, and by the caller.

mod behind;
mod by_range;
mod class_sums;
mod file;
mod mix;
mod partition_sums;
mod plain;
mod quiet;
mod run;
mod saved;
pub(crate) mod saved_bytes;
pub(crate) mod saved_file;
mod slots;
mod state;
mod walk;

pub(crate) use file::SumsSetup;
pub use file::remove_saved_sums;
pub use mix::mix;
pub(crate) use partition_sums::PartitionSums;
pub use plain::{SLOT_SECS, Sums, slot_of};
pub(crate) use run::StoreRun;
pub use state::{ClassCut, SumsState};
pub use walk::{SumsStep, SumsWalk, WalkEnd};
