//! The engine as the crate `ombak-repair` sees it.
//!
//! What it is: everything that the work on copies needs of a node: its stores and what is known of
//! them, the placement, the other nodes, and the few steps of requests that the work uses. The
//! engine implements it. The work keeps to it, so a test can put something else in its place.
//!
//! What it is not: it has no work of its own. Whatever moves, compares or removes copies is above
//! this crate, and this crate learns of it only as [`RepairAnswers`].
//!
//! Invariant: who owns whom has no circle. The engine owns the answers, and the answers own no
//! engine: they are told the host with each question. Work beside the requests keeps a weak
//! reference between its pieces, and looks at [`Transfers::is_stopped`] before it begins one.
//!
//! [`RepairAnswers`]: super::RepairAnswers

use super::engine::Engine;
use super::hidden_values::LeftAndFailed;
use super::placements::RequestPlacement;
use super::repair_answers::RepairAnswers;
use super::replica::Taken;
use super::tombstone_reaper::ReaperWaiting;
use crate::buckets::BucketRegistry;
use crate::config::TransferConfig;
use crate::partition::{Access, Failure, Partition, PartitionTable, Written};
use crate::reaping::{Class, ReapingState};
use crate::replica::{NodeCounter, Peers, ReapingClient, ReplicaClient, ReplicaStore};
use crate::transfer::Transfers;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use ombak_runtime::{BoxFuture, Pool, Runtime};
use ombak_stats::ClusterFigures;
use ombak_storage::Origin;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId};
use std::sync::Arc;

/// What the work on copies needs of the engine of a node. Calls do not block unless they say so.
pub trait RepairHost: Send + Sync {
    /// The identity of this node.
    fn node_id(&self) -> NodeId;

    /// Time, randomness and tasks.
    fn runtime(&self) -> &Arc<dyn Runtime>;

    /// The time of the wall clock.
    fn now(&self) -> UnixMicros;

    /// Whether the engine accepts requests. When it does no more, no round may begin.
    fn is_open(&self) -> bool;

    /// The limits of transfers with which the node was configured.
    fn transfer_config(&self) -> TransferConfig;

    /// The other nodes.
    fn peers(&self) -> &dyn Peers;

    /// The properties of buckets.
    fn buckets(&self) -> &BucketRegistry;

    /// The stores of this node.
    fn partitions(&self) -> &Arc<PartitionTable>;

    /// Threads that wait for disks. Requests use them, too.
    fn disk_pool(&self) -> &Pool;

    /// What is known of copies that do not lie where they belong, and threads for work on them.
    fn transfers(&self) -> &Arc<Transfers>;

    /// What is known of the removal of tombstones and expired versions.
    fn reaping(&self) -> &ReapingState;

    /// The tombstones and expired versions whose time has not come.
    fn waiting_tombstones(&self) -> ReaperWaiting;

    /// What is counted about the other nodes and the work for them, without transfers.
    fn cluster_figures(&self) -> ClusterFigures;

    /// The placement in force.
    fn placement(&self) -> Arc<Placement>;

    /// The placement in force, for what counts as a request: while the caller keeps it, this node
    /// confirms no later placement.
    fn request_placement(&self) -> RequestPlacement;

    /// The version of a home that this node knows. An answer about a class is right for this
    /// version only.
    fn home_version(&self, home: u32) -> RingVersion {
        self.placement().home(home).version()
    }

    /// Whether a message that was stamped with this version of a placement is about the home as
    /// this node knows it: the home has not changed since, and this node is not behind the sender.
    fn agrees_on_home(&self, placement: &Placement, home: u32, stamp: RingVersion) -> bool;

    /// Whether this node owns everything, and nothing moves.
    fn is_alone_in(&self, placement: &Placement) -> bool;

    /// Whether this node is known to hold everything of the class (home, n).
    fn is_full(&self, home: u32, n: u32) -> bool;

    /// Whether every member takes the time from a tombstone before it removes it; `None` if this
    /// node does not know yet.
    fn takes_times(&self) -> Option<bool>;

    /// Asks the gate whether tombstones may lose their time by now.
    fn look_at_gate(&self);

    /// The last counter of fences that a node has told, which may be this node.
    fn counter_of(&self, node: NodeId) -> Option<NodeCounter>;

    /// The replicas of a node, which may be this node.
    fn replica_client(self: Arc<Self>, node: NodeId) -> Arc<dyn ReplicaClient>;

    /// The part of a node in rounds of reaping, which may be this node.
    fn reaping_client(self: Arc<Self>, node: NodeId) -> Arc<dyn ReapingClient>;

    /// Merges a version that another node has sent with the version that is here, and stores the
    /// result, unless a fence or a condition refuses it.
    fn store_copy(&self, copy: &ReplicaStore, origin: Origin, access: Access) -> Result<Taken, Failure>;

    /// Counts a version that another node has sent, and schedules what follows from it.
    fn note_stored(&self, partition: &Partition, key: &[u8], written: &Written);

    /// Reads a storage key from all of its primaries that are up, and repairs those that are behind
    /// or cannot read what they hold.
    fn repair_key(self: Arc<Self>, storage_key: Bytes) -> BoxFuture<'static, Result<(), Error>>;

    /// Replaces the values of a batch that tombstones hide, and owes the new tombstones to the
    /// other primaries of the class. Returns the versions that are left, and those that could not
    /// be replaced now. Blocks.
    fn replace_hidden(self: Arc<Self>, class: Class, batch: Vec<(Bytes, u64)>) -> LeftAndFailed;

    /// Gives the engine the answers to other nodes, unless it has some. Returns those that it has
    /// then: of two callers, both get the same.
    fn answer_with(&self, make: &dyn Fn() -> Arc<dyn RepairAnswers>) -> Arc<dyn RepairAnswers>;
}

impl RepairHost for Engine {
    fn node_id(&self) -> NodeId {
        self.identity.node_id
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.config.runtime
    }

    fn now(&self) -> UnixMicros {
        Self::now(self)
    }

    fn is_open(&self) -> bool {
        Self::is_open(self)
    }

    fn transfer_config(&self) -> TransferConfig {
        self.config.transfer
    }

    fn peers(&self) -> &dyn Peers {
        &*self.config.peers
    }

    fn buckets(&self) -> &BucketRegistry {
        &self.buckets
    }

    fn partitions(&self) -> &Arc<PartitionTable> {
        Self::partitions(self)
    }

    fn disk_pool(&self) -> &Pool {
        &self.disk_pool
    }

    fn transfers(&self) -> &Arc<Transfers> {
        &self.transfers
    }

    fn reaping(&self) -> &ReapingState {
        &self.reaping
    }

    fn waiting_tombstones(&self) -> ReaperWaiting {
        self.reaper.waiting()
    }

    fn cluster_figures(&self) -> ClusterFigures {
        let waiting = (self.reaper.waiting().versions + self.reaping.due.count()) as u64;
        ClusterFigures {
            reaping: self.reaping.due.counts.figures(waiting),
            coverage: self.coverage.counts.figures(),
            ..self.config.peers.figures()
        }
    }

    fn placement(&self) -> Arc<Placement> {
        Self::placement(self)
    }

    fn request_placement(&self) -> RequestPlacement {
        Self::request_placement(self)
    }

    fn agrees_on_home(&self, placement: &Placement, home: u32, stamp: RingVersion) -> bool {
        Self::agrees_on_home(self, placement, home, stamp)
    }

    fn is_alone_in(&self, placement: &Placement) -> bool {
        Self::is_alone_in(self, placement)
    }

    fn is_full(&self, home: u32, n: u32) -> bool {
        Self::is_full(self, home, n)
    }

    fn takes_times(&self) -> Option<bool> {
        self.knows_who_takes_times().then(|| Self::takes_times(self))
    }

    fn look_at_gate(&self) {
        Self::look_at_gate(self);
    }

    fn counter_of(&self, node: NodeId) -> Option<NodeCounter> {
        let is_here = node == self.identity.node_id;
        if is_here { Some(self.reaping.fences.counter()) } else { Self::counter_of(self, node) }
    }

    fn replica_client(self: Arc<Self>, node: NodeId) -> Arc<dyn ReplicaClient> {
        Self::replica_client(&self, node)
    }

    fn reaping_client(self: Arc<Self>, node: NodeId) -> Arc<dyn ReapingClient> {
        Self::reaping_client(&self, node)
    }

    fn store_copy(&self, copy: &ReplicaStore, origin: Origin, access: Access) -> Result<Taken, Failure> {
        Self::store_copy(self, copy, origin, access)
    }

    fn note_stored(&self, partition: &Partition, key: &[u8], written: &Written) {
        Self::note_stored(self, partition, key, written);
    }

    fn repair_key(self: Arc<Self>, storage_key: Bytes) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move { Self::repair_key(&self, &storage_key).await })
    }

    fn replace_hidden(self: Arc<Self>, class: Class, batch: Vec<(Bytes, u64)>) -> LeftAndFailed {
        Self::replace_hidden(&self, class, batch)
    }

    fn answer_with(&self, make: &dyn Fn() -> Arc<dyn RepairAnswers>) -> Arc<dyn RepairAnswers> {
        self.repair_answers.get_or_set(make)
    }
}
