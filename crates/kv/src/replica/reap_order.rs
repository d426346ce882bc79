//! The order to reap tombstones now, whatever the delete mode is.
//!
//! A client's fold gives it. It goes to all primaries of a class, and each lets the tombstones that
//! it holds wait for a round (docs/design/replication.md §6). It is repeated until every primary
//! says that its tombstone is gone, so a lost order does no harm.

use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_types::VectorClock;

/// An order to a primary of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ReapOrder {
    /// The home partition of the keys.
    pub partition: u32,
    /// The n_val of their buckets.
    pub n_val: u32,
    /// The version of the home.
    pub ring: RingVersion,
    /// The storage keys, each with the clock of its tombstone, at most
    /// [`REAP_KEYS_MAX`](super::REAP_KEYS_MAX).
    pub tombstones: Vec<(Bytes, VectorClock)>,
}

/// What became of a tombstone that is to be reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// The primary holds nothing of the key.
    Gone,
    /// The tombstone waits for a round, or for a copy that this primary lacks, or for room.
    Waits,
    /// The primary holds something that the tombstone's clock does not cover, so nothing is
    /// removed.
    Changed,
}
