//! The engine: partitions, the coordination of gets and puts, bucket types and properties, listing.
//!
//! What it is: the one place that knows what a quorum, a sibling and a tombstone mean for a
//! request. The coordinators (`coordination`) are state machines without I/O; `engine` runs them
//! over the partitions of this node, and [`Kv`] is the face of both.
//!
//! What it is not: it has no wire format, no text format, no command line and no configuration
//! file. It counts through `ombak_stats`, and backups read it from outside.
//!
//! Invariants:
//! * A write counts only after its write call has returned, and after its sync where the request
//!   asks for one.
//! * Read, merge and write of one key exclude other requests for the key.
//! * Only a coordinator drops siblings, and only together with a new event.
//! * An event id is never issued twice for a key.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod buckets;
mod config;
pub mod coordination;
mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod interface;
mod listing;
mod names;
mod partition;
mod query;
mod replica;
mod start;

pub use buckets::{BackendChoice, BucketRegistry, PropsError, TypeStatus, TypeSummary};
pub use config::{DeleteMode, KvConfig, ObjectLimits};
pub use coordination::expiry;
pub use interface::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, Health, ImportOutcome, Importer, Kv,
    MemoryReservation, PreflistItem, PutCondition, PutOptions, PutReply, PutRequest, Read,
};
pub use listing::Listing;
pub use partition::is_tombstone;
pub use query::{IndexMatch, IndexQuery, QueryConfig, QueryRange, QueryResults, head_terms};
pub use replica::{
    Found, LocalReplica, NoPeers, Peers, ReplicaClient, ReplicaRead, ReplicaStore, StoreKind, StoredVersion,
    UnreachableNode,
};
pub use start::{OpenError, check_start, examine_files};
