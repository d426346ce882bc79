//! The questions that a coordinator asks a replica.

use super::counters::NodeCounter;
use crate::conditional::Ballot;
use crate::coordination::get::Ask;
use crate::requests::{PutReply, PutRequest};
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_storage::Stored;
use ombak_types::{Error, VectorClock};
use std::time::Instant;

/// A read of one key at one replica.
#[derive(Clone, Debug)]
pub struct ReplicaRead {
    /// The home partition of the key.
    pub partition: u32,
    /// The bucket's n_val. Together with the partition it is the key's class
    /// (docs/design/replication.md §1).
    pub n: u32,
    /// The version of the placement by which the coordinator has chosen the replicas.
    pub ring: RingVersion,
    /// The storage key.
    pub key: Bytes,
    /// The part of the version that is needed.
    pub ask: Ask,
    /// When the coordinator stops waiting; `None` means never.
    pub deadline: Option<Instant>,
}

/// What a replica found.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadReply {
    /// The version in its stored form; `None` if the replica does not have the key. It has a body
    /// exactly if the object was asked for.
    pub version: Option<Stored>,
    /// For a key that the replica does not have: whether it is a primary of the class that is known
    /// to hold everything of it. Only then does its "not found" prove absence
    /// (docs/design/replication.md §1).
    pub full: bool,
    /// The version of the placement that the replica knows, if the home has changed since the one
    /// of the read. Then the answer does not count (docs/design/ring-changes.md).
    pub outdated: Option<RingVersion>,
    /// Whether a mark covers the version, or it is in doubt, as of when it was read: then a read
    /// does not spread it (docs/design/anti-entropy.md §5).
    pub left_to_exchanges: bool,
    /// The replica's counter of fences, as of before it looked.
    pub counter: NodeCounter,
}

/// What the sender of a version knows about its bucket. A merge does not depend on it, so that a
/// replica that does not know the bucket's type yet stores rightly (docs/design/replication.md
/// §11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreKind {
    /// The bucket's `dvv_enabled`.
    pub dvv: bool,
    /// The number of the kind of value ([`crate::hooks::ValueKind`]), whose siblings operations and
    /// answers have in one; 0: plain values.
    pub values: u16,
}

/// What a replica does with a version that reaches it, besides merging it by clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreMode {
    /// It merges the version with its own.
    #[default]
    Merge,
    /// It stores the version only if its own has nothing that the put has not seen, and if it has
    /// promised no later ballot; otherwise it answers [`StoreOutcome::Conflict`]. A replica that is
    /// not a full primary answers that, too (docs/design/replication.md §17).
    IfExpected {
        /// The clock of everything that the put has seen.
        expected: VectorClock,
        /// The ballot of the put.
        ballot: Ballot,
    },
    /// The value is only what an operation has added to a large one. It adds that to its own value
    /// if it has everything that the operation builds on; otherwise it answers
    /// [`StoreOutcome::Lacks`] (docs/design/datatypes.md).
    Add,
    /// It merges the version with its own. If it cannot read its own, it stores the version in its
    /// place, provided that the version descends its own clock, as far as that can be read
    /// (docs/design/replication.md §13).
    ReplaceUnreadable,
}

/// A version for one replica, which merges it by clock with its own.
#[derive(Clone, Debug)]
pub struct ReplicaStore {
    /// The home partition of the key.
    pub partition: u32,
    /// The bucket's n_val. Together with the partition it is the key's class
    /// (docs/design/replication.md §1).
    pub n: u32,
    /// The version of the placement by which the sender has chosen the replicas.
    pub ring: RingVersion,
    /// The storage key.
    pub key: Bytes,
    /// The version: clock and metadata.
    pub head: Bytes,
    /// The version: the values.
    pub body: Bytes,
    /// Unix seconds at which the version was stored first, for expiry by age. `None` for a version
    /// that is new, and where it is not known: then the age counts from the arrival.
    pub stored_secs: Option<u32>,
    /// What is known about the bucket.
    pub kind: StoreKind,
    /// Whether it is merged in any case.
    pub mode: StoreMode,
    /// The last counter of the receiver that the sender knew before it read the version or asked
    /// anybody for it. The receiver refuses the version if it has raised a fence since then, and if
    /// the counter is missing (docs/design/replication.md §6).
    pub noted: Option<NodeCounter>,
    /// Whether the answer waits until the version is durable.
    pub synced: bool,
    /// After this moment the replica must not store the version any more; `None` means never.
    pub deadline: Option<Instant>,
}

/// What a replica has done with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The replica holds the version or a descendant.
    Stored {
        /// The digest of the version that it holds. It differs from that of the version that was
        /// sent if the replica had seen more.
        digest: u64,
    },
    /// The replica has raised a fence since the sender noted its counter. The sender may read again
    /// and send what it then has.
    Fenced,
    /// The replica lacks what an addition ([`StoreMode::Add`]) builds on, and has stored nothing.
    /// The sender sends the whole version.
    Lacks,
    /// The condition of [`StoreMode::IfExpected`] does not hold.
    Conflict,
    /// The home has changed since the placement by which the sender has chosen the replicas. The
    /// replica does not acknowledge the version: the sender finds the replicas anew
    /// (docs/design/ring-changes.md).
    Outdated {
        /// The version of the placement that the replica knows.
        known: RingVersion,
        /// The digest of the version that the replica holds: the one that was sent, or a
        /// descendant. `None` if it was to check a condition, and has stored nothing.
        digest: Option<u64>,
    },
}

/// The version that a replica holds after a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// The digest of the version. It differs from that of the version that was sent if the replica
    /// had seen more.
    pub digest: u64,
}

/// The answer of a replica to a [`ReplicaStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreReply {
    /// What it has done.
    pub outcome: StoreOutcome,
    /// Its counter of fences.
    pub counter: NodeCounter,
}

/// A put that another node coordinates, because the sender has no position for the key or cannot
/// coordinate.
#[derive(Clone, Debug)]
pub struct ForwardedPut {
    /// A random number that names the put. A node executes each number at most once.
    pub number: u64,
    /// The put. It has a key.
    pub request: PutRequest,
    /// After this moment the receiver must not stamp an event, and the transport must not send the
    /// put any more: both answer [`PutFailure::Refused`], and the sender may try another node.
    pub begin_by: Option<Instant>,
    /// When the client stops waiting; `None` means never.
    pub deadline: Option<Instant>,
}

/// Why a put that one node coordinates has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutFailure {
    /// The put was provably not executed there, and never will be: it was not delivered, it was too
    /// late, or the node refused it before it stamped an event.
    Refused(Error),
    /// The put has ended, or it is unknown whether it was executed. No other node may be asked
    /// (docs/design/replication.md §12).
    Ended(Error),
}

impl PutFailure {
    /// The error for the client.
    pub fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Ended(error) => error,
        }
    }
}

/// One replica: the same questions for this node and for others. Failures keep their kind on the
/// way from another node. An answer that did not come in time is [`Error::Timeout`]; a question
/// that was provably not delivered fails with `StoreFailureKind::Unreachable`.
pub trait ReplicaClient: Send + Sync {
    /// Reads a key.
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>>;

    /// Stores a version by clock alone. A replica applies no property of the bucket that would
    /// reduce siblings (docs/design/replication.md §11).
    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>>;

    /// Lets the node of this replica coordinate a whole put.
    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>>;
}
