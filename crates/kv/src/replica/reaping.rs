//! The messages of a round of reaping (docs/design/replication.md §6, "The protocol of one round").

use super::counters::NodeCounter;
use super::peers::UnreachableNode;
use super::reap_order::{Ordered, ReapOrder};
use super::told::ToldSeq;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, VectorClock};
use std::future::ready;

/// Maximum number of keys in one round.
pub const REAP_KEYS_MAX: usize = 1_000;
/// Maximum of the bytes of the keys in one round. One key may be larger; then it is alone.
pub const REAP_BYTES_MAX: usize = 256 << 10;

/// Maximum number of nodes of which an order to remove tells.
pub const TOLD_NODES_MAX: usize = 4_096;

/// What every message of a round carries. A node that knows another version of the home refuses the
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The home partition of the keys.
    pub partition: u32,
    /// The n_val of their buckets.
    pub n_val: u32,
    /// The version of the home, or of a later placement in which the home is the same.
    pub ring: RingVersion,
    /// A random number that tells this round from others.
    pub number: u64,
}

/// A version that is to be removed: a tombstone, or a version that has expired.
#[derive(Clone, Debug, PartialEq)]
pub struct Reapable {
    /// The storage key.
    pub key: Bytes,
    /// The digest of the version, which covers clock and content.
    pub digest: u64,
    /// The clock of the version.
    pub clock: VectorClock,
}

/// What a primary holds of a key, compared with the version that is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Exactly that version, on the disk.
    Same,
    /// Nothing, or something that the version's clock covers. It needs the version first.
    Less,
    /// Something else: the version must not be removed.
    Other,
}

/// A round's question to all primaries. A primary compares first, then syncs its store once, then
/// answers.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteRequest {
    /// The round.
    pub round: Round,
    /// The versions, at most [`REAP_KEYS_MAX`].
    pub versions: Vec<Reapable>,
}

/// A round's question to every other member, after all votes are there. The member raises the fence
/// of the class, then looks for copies, then syncs its store, then answers.
#[derive(Clone, Debug, PartialEq)]
pub struct AskRequest {
    /// The round.
    pub round: Round,
    /// The storage keys.
    pub keys: Vec<Bytes>,
    /// The time of the newest version in a bucket with `last_write_wins`; 0 if there is none. The
    /// member raises its floor of time to it before it answers, because it may stand in for a
    /// primary later.
    pub floor: UnixMicros,
}

/// A round's order to all primaries. A primary removes each version only if it still has exactly
/// that one. A late order does no harm.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoveRequest {
    /// The round.
    pub round: Round,
    /// The storage keys, each with the digest of the version.
    pub versions: Vec<(Bytes, u64)>,
    /// What the members have told of their stores of the partition in this round, each at most
    /// once and at most [`TOLD_NODES_MAX`]. A primary has it on its disk before it removes
    /// anything. Members of an earlier version tell nothing.
    pub told: Vec<(NodeId, ToldSeq)>,
}

/// An answer, with the counter of fences of the node that gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReapReply<T> {
    /// The answer for each key, in the order of the question.
    pub answers: Vec<T>,
    /// The node's counter.
    pub counter: NodeCounter,
    /// What the node's store of the partition had on its disk when it answered. Nodes of an earlier
    /// version, and those without a store, tell nothing. Nor does the answer to an order.
    pub told: Option<ToldSeq>,
}

/// The part of a node in rounds that another node drives: the same for this node and for others.
pub trait ReapingClient: Send + Sync {
    /// Asks a primary what it holds.
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>>;

    /// Asks a member that is no primary whether it holds nothing of each key, on the disk.
    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>>;

    /// Orders a primary to remove versions. Answers whether it has removed each.
    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>>;

    /// Orders a primary to let tombstones wait for a round now. Answers for each, in the order of
    /// the tombstones.
    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>>;
}

impl ReapingClient for UnreachableNode {
    fn vote(&self, _request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn ask(&self, _request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn remove(&self, _request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn order(&self, _order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        Box::pin(ready(Err(self.error())))
    }
}
