//! The question of a conditional put to the primaries of its key, before it writes
//! (docs/design/replication.md §17).

use super::counters::NodeCounter;
use super::peers::UnreachableNode;
use crate::conditional::Ballot;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_storage::Stored;
use ombak_types::Error;
use ombak_types::time::UnixMicros;
use std::future::ready;
use std::time::Instant;

/// Asks a primary for its copy, and for the promise to accept nothing with an earlier ballot.
#[derive(Clone, Debug)]
pub struct PromiseRequest {
    /// The home partition of the key.
    pub partition: u32,
    /// The bucket's n_val.
    pub n: u32,
    /// The version of the placement by which the coordinator has chosen the replicas.
    pub ring: RingVersion,
    /// The storage key.
    pub key: Bytes,
    /// The ballot of the put.
    pub ballot: Ballot,
    /// When the coordinator stops waiting; `None` means never.
    pub deadline: Option<Instant>,
}

/// The answer of a primary to a [`PromiseRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct PromiseReply {
    /// The head of its version; `None` if it does not have the key.
    pub version: Option<Stored>,
    /// Whether it is a primary of the class that is known to hold everything of it.
    pub full: bool,
    /// The version of the placement that the primary knows, if the home has changed since the one
    /// of the question. Then the answer does not count (docs/design/ring-changes.md).
    pub outdated: Option<RingVersion>,
    /// The time that stands against the ballot; `None` if the primary has promised.
    pub outbid: Option<UnixMicros>,
    /// Its counter of fences, as of before it looked.
    pub counter: NodeCounter,
}

/// A primary as conditional puts see it: the same question for this node and for others.
pub trait ConditionalClient: Send + Sync {
    /// Asks for a copy and a promise.
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>>;
}

impl ConditionalClient for UnreachableNode {
    fn promise(&self, _request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        Box::pin(ready(Err(self.error())))
    }
}
