//! The engine: partitions, the coordination of gets and puts, bucket types and properties, listing.
//!
//! What it is: the one place that knows what a quorum, a sibling and a tombstone mean for a
//! request. The coordinators ([`get`], [`put`]) are state machines without I/O; [`Kv`] runs them
//! over the partitions of this node.
//!
//! What it is not: it has no wire format, no command line and no configuration file.
//!
//! Invariants:
//! * A write counts only after its write call has returned, and after its sync where the request
//!   asks for one.
//! * Read, merge and write of one key exclude other requests for the key.
//! * Only a coordinator drops siblings, and only together with a new event.
//! * An event id is never issued twice for a key.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod backend_choice;
pub mod buckets;
pub mod clock;
pub mod config;
mod deadline;
mod engine;
pub mod expiry;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod get;
mod ids;
mod import;
mod kv;
mod listing;
mod log_text;
pub mod partition;
pub mod put;
pub mod query;
mod quorums;
mod random;
mod replica;
pub mod request;
mod room;
mod start;

pub use backend_choice::BackendChoice;
pub use buckets::{BucketRegistry, PropsError, TypeStatus, TypeSummary};
pub use config::{DeleteMode, KvConfig, ObjectLimits};
pub use import::{ImportOutcome, Importer};
pub use kv::{Health, Kv};
pub use listing::Listing;
pub use start::{OpenError, check_start, examine_files};
pub use query::{IndexMatch, IndexQuery, QueryConfig, QueryOf, QueryResults, head_terms};
pub use replica::Replica;
pub use request::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, PreflistItem, PutCondition, PutOptions, PutReply,
    PutRequest, Read,
};
pub use room::Room;
