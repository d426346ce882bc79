//! The placement of keys: a key's hash, its home partition, the ring that assigns partitions to
//! nodes, the claim that makes such a ring, the staged changes that lead to another ring, the way
//! from one ring to another, and the positions of a key's replicas.
//!
//! What it is: Riak's placement (docs/riak/semantics.md §1) under the rule of one stored copy per
//! node (docs/design/replication.md §14). Every function depends only on its arguments; the caller
//! passes in which nodes are up.
//!
//! What it is not: it does not know who is up or how data moves to new owners, keeps no state and
//! does no I/O. It knows nodes by their ids, not by name or address.
//!
//! Invariants:
//! * A ring's size is a power of two between 8 and 1,024 and never changes under a version.
//! * A key always has n positions, however few nodes exist or are up, as long as at least one node
//!   is up.
//! * The primary of a position depends only on the ring, never on which nodes are up.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod change_set;
pub mod claim;
mod coverage;
mod key_hash;
mod location;
mod partition;
pub mod placement;
mod positions;
mod ring;
pub mod staging;

pub use change_set::{ChangedHome, ReplicaSet};
pub use coverage::{CoveragePart, CoveragePlan, ReplicaState};
pub use key_hash::KeyHash;
pub use location::{BadLocation, Location, Locations};
pub use partition::{BadPartitionIndex, BadRingSize, PartitionIndex, RingSize};
pub use positions::{Position, Positions};
pub use ring::{BadRing, NodeIndex, Ring, RingVersion};
