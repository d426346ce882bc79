//! The engine: partitions, the coordination of gets and puts, bucket types and properties, listing.
//!
//! What it is: the one place that knows what a quorum, a sibling and a tombstone mean for a
//! request. The coordinators (`coordination`) are state machines without I/O; `engine` runs them
//! over the partitions of this node, and [`Kv`] is the face of both.
//!
//! What it is not: it has no wire format, no text format, no command line and no configuration
//! file. It counts through `ombak_stats`, and backups read it from outside.
//!
//! The root has what an embedding program needs. What others need is in public modules. [`replica`]
//! has the messages between nodes. [`hooks`] has what features attach. [`buckets`] and [`coverage`]
//! have what the cluster carries between nodes. [`admin`] has what operators see, and
//! [`repair_host`] has what the crate `ombak-repair` uses.
//!
//! Invariants:
//! * A write counts only after its write call has returned, and after its sync where the request
//!   asks for one.
//! * Read, merge and write of one key exclude other requests for the key.
//! * Only a coordinator drops siblings, and only together with a new event.
//! * An event id is never issued twice for a key.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod admin;
pub mod buckets;
mod conditional;
mod config;
pub mod coordination;
pub mod coverage;
mod deliberate_faults;
mod digest;
mod engine;
mod feed;
pub mod folds;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hooks;
mod hot;
mod interface;
mod kept_trees;
mod listing;
mod names;
mod open_error;
mod partition;
mod query;
mod reaping;
pub mod repair_host;
pub mod replica;
mod requests;
mod routing;
mod scrub;
mod slow;
mod start;
mod sums;
mod transfer;
mod tree_keeping;

pub use buckets::{BackendChoice, BucketRegistry};
pub use conditional::Ballot;
pub use config::{
    DeleteMode, KeepTrees, KvConfig, ObjectLimits, PoolStrategy, ReadRepairLimits, ScrubConfig, TransferConfig,
    TreesConfig, WithoutMajority, WorkerPools,
};
pub use coordination::expiry;
pub use coverage::FeatureAnswersOfNodes;
#[cfg(feature = "deliberate-faults")]
pub use deliberate_faults::{BrokenRule, break_rule, is_broken};
pub use digest::is_tombstone;
pub use engine::{CountJobs, Kv, LocalReplica, NoPart, PauseNumber, WeakKv};
pub use interface::{FeatureRequest, ImportOutcome, Importer, Share};
pub use kept_trees::remove_saved_trees;
pub use listing::Listing;
pub use open_error::OpenError;
pub use query::{QueryResults, head_terms};
pub use replica::{ClassId, Peers};
pub use requests::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, Holdings, IndexMatch, IndexQuery, MemoryReservation,
    PreflistItem, PutCondition, PutOptions, PutReply, PutRequest, QueryConfig, QueryRange, Read, UncountedMemory,
    compile_pattern,
};
pub use scrub::{ScrubReport, ScrubState, ScrubbedStore};
pub use start::{check_start, examine_files};
pub use sums::{ClassCut, SLOT_SECS, Sums, SumsState, SumsStep, SumsWalk, WalkEnd, remove_saved_sums, slot_of};
pub use transfer::{Amount, FillReason, ProofObstacle};
pub use tree_keeping::{KeptTree, TreeState};
