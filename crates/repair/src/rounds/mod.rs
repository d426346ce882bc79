//! The rounds that remove tombstones and expired versions in a cluster (docs/design/replication.md
//! §6).
//!
//! What it is: the driver of the rounds of the classes of which this node is a primary, and the
//! answers of this node to rounds.
//!
//! What it is not: it does not decide when a tombstone's time has come.
//! The engine does (`kv/src/engine/tombstone_reaper.rs`), and removes by itself what a node that is
//! alone holds. What waits for a round, and what refuses copies that were read too early, is in
//! `kv/src/reaping`.
//!
//! Invariants:
//! * A version is removed only if every primary had exactly it on its disk, and every other member
//!   held nothing of its key, on its disk, after that.
//! * A copy that was read before the removal, or before a member's answer, is refused afterwards.
//! * A tombstone is removed only after it has lost its time at every primary, in a round of its
//!   own. So what a removal leaves behind is older than every value.

pub(crate) mod answers;
mod driver;
mod round;

pub(crate) use answers::empty_store;
pub(crate) use driver::Driver;
