//! Riak's TicTac trees (docs/riak/semantics.md §8.2): which segment a key belongs to, what its
//! clock adds to the hash of the segment, and the bytes that Riak's clients receive.
//!
//! What it is: pure functions and one type, [`Tree`]. Two trees over the same objects are equal,
//! whichever server has made them. That is how clusters compare what they hold.
//!
//! What it is not: it reads no store and knows no partition. Ombak's own exchanges do not use these
//! trees (docs/design/anti-entropy.md).
//!
//! Invariants:
//! * A tree is a function of the set of keys and clocks that were added, whatever their order.
//! * To add a key and its clock a second time takes them away, as in Riak.
//! * Inputs up to [`EXACT_BYTES_MAX`] are compressed to the same bytes as by Riak's zlib.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod clock_hash;
mod compress;
mod deflate;
mod segment;
mod tree;
mod tree_size;

pub use clock_hash::ClockHash;
pub use compress::{EXACT_BYTES_MAX, compressed_branches, riak_clock};
pub use segment::Segment;
pub use tree::{LEAVES, Tree};
pub use tree_size::TreeSize;
