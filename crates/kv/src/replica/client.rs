//! The questions that a coordinator asks a replica.

use crate::coordination::get::Ask;
use crate::interface::{PutReply, PutRequest};
use bytes::Bytes;
use ombak_runtime::BoxFuture;
use ombak_storage::Stored;
use ombak_types::Error;
use std::time::Instant;

/// A read of one key at one replica.
#[derive(Clone, Debug)]
pub struct ReplicaRead {
    /// The home partition of the key.
    pub partition: u32,
    /// The storage key.
    pub key: Bytes,
    /// The part of the version that is needed.
    pub ask: Ask,
    /// When the coordinator stops waiting; `None` means never.
    pub deadline: Option<Instant>,
}

/// What a replica found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The version, in its stored form. It has a body exactly if the object was asked for.
    Version(Stored),
    /// The replica does not have the key.
    NotFound {
        /// Whether this replica is known to hold everything of its class: only then does its "not
        /// found" prove absence (docs/design/replication.md §1).
        full: bool,
    },
}

/// How a replica treats a version that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreKind {
    /// Whether siblings are merged by dots (the bucket's `dvv_enabled`).
    pub dvv: bool,
}

/// A version for one replica, which merges it by clock with its own.
#[derive(Clone, Debug)]
pub struct ReplicaStore {
    /// The home partition of the key.
    pub partition: u32,
    /// The storage key.
    pub key: Bytes,
    /// The version: clock and metadata.
    pub head: Bytes,
    /// The version: the values.
    pub body: Bytes,
    /// How to merge it.
    pub kind: StoreKind,
    /// Whether the answer waits until the version is durable.
    pub synced: bool,
    /// After this moment the replica must not store the version any more; `None` means never.
    pub deadline: Option<Instant>,
}

/// The version that a replica holds after a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// The digest of the version. It differs from that of the version that was sent if the replica
    /// had seen more.
    pub digest: u64,
}

/// One replica: the same questions for this node and for others. Failures keep their kind on the
/// way from another node.
pub trait ReplicaClient: Send + Sync {
    /// Reads a key.
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<Found, Error>>;

    /// Stores a version by clock alone. A replica applies no property of the bucket that would
    /// reduce siblings (docs/design/replication.md §11).
    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoredVersion, Error>>;

    /// Lets the node of this replica coordinate a whole put, because the asking node has no copy of
    /// the key. The deadline is checked immediately before the event is stamped.
    fn coordinate(&self, put: PutRequest, deadline: Option<Instant>) -> BoxFuture<'static, Result<PutReply, Error>>;
}
