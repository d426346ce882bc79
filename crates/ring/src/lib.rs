//! Where a key lives: its hash, its home partition, the ring that says who owns which partition, and the positions of
//! a key's replicas.
//!
//! What it is: Riak's placement (docs/riak/semantics.md §1) under the rules of one stored copy per node
//! (docs/design/replication.md §14). Every function is a function of its arguments; which nodes are up is handed in.
//!
//! What it is not: it does not decide who should own what (claim), it does not know how a ring changes step by step, it
//! keeps no state and does no I/O.
//!
//! Invariants:
//! * a ring's size is a power of two between 8 and 1,024 and never changes under a version;
//! * a key has always n positions, however few nodes there are or answer, as long as one of them does;
//! * who is the primary of a position depends on the ring alone, never on who is up.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod key_hash;
mod partition;
mod positions;
mod ring;

pub use key_hash::KeyHash;
pub use partition::{BadPartitionIndex, BadRingSize, PartitionIndex, RingSize};
pub use positions::{Position, Positions};
pub use ring::{BadRing, NodeIndex, Ring, RingVersion};
