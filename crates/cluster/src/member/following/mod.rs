//! How a node follows what the metadata has decided.
//!
//! What it is: one state of the metadata after another is put in force: members, placement, bucket
//! types and closings ([`adopt`], [`placement`], [`closings`]). What a state says about this node
//! itself has consequences, too ([`own_step`]): the node leaves, or takes no part any more
//! ([`removal`], [`taking_no_part`]). What concerns its way into a cluster it hands on
//! ([`state::JoinSteps`]).
//!
//! What it is not: it decides nothing, and drives no change of the ring (`ring_change`). How a node
//! changes from one cluster to another is in `joining`.
//!
//! Invariants:
//! * One state is adopted at a time, under one lock. Whoever changes what a state decides, such as
//!   the log that is followed, holds that lock.
//! * A state counts as followed after everything of it is in force, and after the last write that
//!   began before a closing has ended.
//! * A node that takes no part adopts nothing.
//!
//! Rules: docs/design/replication.md §8 (directories), docs/design/ring-changes.md (placements).

pub(super) mod adopt;
pub(super) mod closings;
pub(super) mod known_members;
pub(super) mod moved_members;
pub(super) mod own_step;
pub(super) mod placement;
pub(super) mod removal;
pub(super) mod state;
pub(super) mod taking_no_part;
