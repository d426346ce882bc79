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
mod conditional;
mod config;
pub mod coordination;
pub mod coverage;
mod deliberate_faults;
mod digest;
mod engine;
mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hooks;
mod hot;
mod interface;
mod listing;
mod names;
mod open_error;
mod partition;
mod query;
mod reaping;
mod repair;
mod replica;
mod requests;
mod routing;
mod slow;
mod start;
mod transfer;

pub use buckets::{
    BackendChoice, BucketRegistry, PropertyAuthority, ProposedChange, PropsError, RecordChange, TypeStatus, Undecided,
};
pub use conditional::Ballot;
pub use config::{DeleteMode, KvConfig, ObjectLimits, ReadRepairLimits, TransferConfig, WithoutMajority};
pub use coordination::expiry;
#[cfg(feature = "deliberate-faults")]
pub use deliberate_faults::{BrokenRule, break_rule, is_broken};
pub use digest::is_tombstone;
pub use engine::{Kv, LocalReplica, NoPart, PauseNumber, ReplicaMemoryStatus};
pub use hot::{HotBucket, HotKey, HotReport, LargeObject, Name};
pub use interface::{EndedJob, Health, ImportOutcome, Importer, RequestCounts, Share, TopOfNode};
pub use listing::Listing;
pub use open_error::OpenError;
pub use query::{QueryResults, head_terms};
pub use repair::{SetAsideReport, SetAsideVersion, Settled, UnreadableReport, UnreadableVersion};
pub use replica::{
    AskRequest, Begun, COMPARE_KEYS_MAX, ClassId, Compare, Compared, ConditionalClient, CoverageClient, CoverageHome,
    CoverageItem, CoverageQuestion, CoverageRequest, CoverageStream, ForwardedPut, Give, Giving, Held, HeldVersion,
    NodeCounter, Peers, PromiseReply, PromiseRequest, Push, Pushed, PutFailure, REAP_KEYS_MAX, RangeSum, ReadReply,
    ReapReply, Reapable, ReapingClient, RemoveRequest, ReplicaClient, ReplicaRead, ReplicaStore, Round,
    SUMMARY_RANGES_MAX, StoreKind, StoreMode, StoreOutcome, StoreReply, StoredVersion, Summarize, Summary,
    TRANSFER_ANSWER_MAX, TransferClient, UnreachableNode, Vote, VoteRequest, checksum_of, range_of,
};
pub use requests::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, Holdings, IndexMatch, IndexQuery, MemoryReservation,
    PreflistItem, PutCondition, PutOptions, PutReply, PutRequest, QueryConfig, QueryRange, Read, compile_pattern,
};
pub use start::{check_start, examine_files};
pub use transfer::{Amount, FillReason, KeyChoice, ProofObstacle, Transfer, TransferKind};
