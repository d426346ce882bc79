//! Riak's trees over what the classes of a partition hold, kept up to date.
//!
//! ```text
//!   put, merge, removal          drop by the store itself     fold over the heads
//!   (the key is locked)          (it names no clock)          (a snapshot, in steps)
//!          |                            |                             |
//!          |  old and new clock         | the tree is lost            |
//!          v                            v                             v
//!   PartitionTrees ------------- ClassTree: for each n          TreeBuild: adds what was
//!                                 one that is complete, and <-- there when it began
//!                                 one that is being made
//!                                  |                |
//!      all keys locked             |                |  orderly close, next start
//!      for a moment                v                v
//!                             root, branches     TreeFile
//! ```
//!
//! What it is: for each class, the tree of `ombak_tictac` with Riak's size for kept trees and its
//! plain hash of clocks. A leaf is the XOR of what its keys add, so a change needs only what the
//! old and the new version add, in whatever order it comes. Changes after the moment at which a
//! build began are added to the tree at once, and the build adds what was there at that moment.
//!
//! What it is not: it has no thread, and it does not decide which trees are kept. That is the
//! business of `tree_keeping`. The sums of classes (`sums`) compare what replicas hold; trees are
//! for clients that compare clusters.
//!
//! Invariants:
//! * **Tree = f(store).** A complete tree that is answered is that of a fold over the heads of the
//!   versions of the class that the store holds at that moment, without what is set aside and
//!   without buckets that have `aae_tree_exclude`.
//! * A change whose old clock is not known loses the tree. It is never answered again, and a new
//!   one is built.
//! * A class with versions that expire is not answered from its tree, because a fold visits such a
//!   version only until its time has come.
//! * A store that removes versions by itself has no trees.
//! * A tree from an earlier run is taken only if no write can have come since it was saved.

mod build;
mod class_tree;
mod file;
mod leaves;
mod partition_trees;
mod saved;

pub(crate) use build::{BuildEnd, BuildFailure, BuildStep, TreeBuild};
pub(crate) use class_tree::KnownClock;
pub use file::remove_saved_trees;
pub(crate) use leaves::{KEPT_HASH, KEPT_SIZE, KeptLeaves, TREE_BYTES_MAX};
pub(crate) use partition_trees::PartitionTrees;
