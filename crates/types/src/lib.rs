//! The vocabulary of Ombak: names, objects, causality, bucket properties, error kinds, and Riak's stored bytes.
//!
//! What it is: plain data with the rules that belong to it. Merging two copies of an object, pruning a clock, checking
//! a bucket property: all of it is a function of its arguments.
//!
//! What it is not: there is no I/O, no clock, no randomness and no knowledge of nodes or partitions here. Time and
//! actors are handed in.
//!
//! Invariants:
//! * an [`Object`] always has at least one sibling once it was written; a tombstone is a sibling with `deleted`;
//! * no two siblings of one object carry the same dot with different content;
//! * decoders never trust a length: every one is checked against the bytes that are there, and nesting is bounded.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod clock;
pub mod error;
pub mod etf;
pub mod names;
pub mod object;
pub mod phash2;
pub mod props;
pub mod quorum;
pub mod riak_object;
pub mod stored;
pub mod suggest;
#[cfg(test)]
mod testing;
pub mod time;

pub use clock::{Actor, ClockEntry, Dot, VectorClock};
pub use error::{Error, ErrorClass};
pub use names::Bucket;
pub use object::{IndexEntry, IndexTerm, Link, Metadata, Object, Sibling};
pub use props::{BucketProps, PropMap};
pub use quorum::Quorum;
