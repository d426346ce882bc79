//! The vocabulary of Ombak: names, objects, causality, bucket properties, error kinds, and Riak's
//! stored bytes.
//!
//! What it is: plain data with its rules. Merging two copies of an object, pruning a clock and
//! checking a bucket property depend only on their arguments.
//!
//! What it is not: it has no I/O, no clock and no randomness. Of nodes it knows only their
//! identity, and of partitions nothing. The caller passes in times and actors.
//!
//! Invariants:
//! * An [`Object`] always has at least one sibling once it was written; a tombstone is a sibling
//!   with `deleted`.
//! * No two siblings of one object have the same dot with different content.
//! * Decoders never trust a length: they check every length against the existing bytes, and they
//!   bound nesting.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod clock;
mod deceptive;
mod decode_budget;
mod distinct;
pub mod error;
pub mod etf;
pub mod json;
pub mod names;
mod node_id;
pub mod object;
pub mod phash2;
pub mod props;
pub mod quorum;
pub mod riak_object;
mod same_text;
mod shown_name;
mod store_failure;
pub mod stored_object;
pub mod suggest;
#[cfg(test)]
mod testing;
pub mod time;

pub use clock::{Actor, ClockEntry, Dot, VectorClock};
pub use deceptive::is_deceptive;
pub use decode_budget::{DecodeBudget, SMALL_MESSAGE_BYTES, TooLarge, allocated};
pub use distinct::{are_distinct_numbers, are_distinct_texts, place_of_number, place_of_text};
pub use error::Error;
pub use names::Bucket;
pub use node_id::{BadNodeId, NodeId};
pub use object::{IndexEntry, IndexTerm, KindState, Link, Object, Sibling, SiblingMeta};
pub use props::{BucketProps, PropMap};
pub use quorum::Quorum;
pub use shown_name::{ShownKey, ShownName};
pub use store_failure::{StoreFailure, StoreFailureKind};
