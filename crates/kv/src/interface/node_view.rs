//! What the rest of the program sees of the node that the engine runs: its properties, its
//! identity, its stores and its health.

use crate::buckets::BucketRegistry;
use crate::config::DeleteMode;
use crate::engine::{Kv, LocalReplica, NoPart, ReplicaMemoryStatus, check_bucket, check_key};
use crate::replica::NodeCounter;
use crate::requests::PreflistItem;
use bytes::Bytes;
use ombak_node_files::{Identity, NodeDirectory};
use ombak_ring::placement::Placement;
use ombak_ring::{Position, Ring, RingVersion};
use ombak_runtime::Runtime;
use ombak_stats::Stats;
use ombak_storage::fs::FileSystem;
use ombak_storage::{Backend, Status};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, NodeId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether a node can serve requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The node accepts requests, and every store accepts writes.
    pub ready: bool,
    /// Stores that no longer accept writes: (partition, reason).
    pub poisoned: Vec<(u32, String)>,
    /// A store refused its last write because its disk is full.
    pub disk_full: bool,
    /// Stores with known data loss: (partition, number of lost ranges). A node with losses still
    /// serves requests.
    pub known_losses: Vec<(u32, u64)>,
}

impl Kv {
    /// The positions of a key in the ring in force, in order of preference. Nodes that are up stand
    /// in for those that are down.
    pub fn preflist(&self, bucket: &Bucket, key: &[u8]) -> Result<Vec<PreflistItem>, Error> {
        check_bucket(bucket)?;
        check_key(key)?;
        let props = self.engine.buckets.props(bucket)?;
        let placement = self.engine.placement();
        let home = placement.home(self.engine.home_of(&placement, bucket, key, &props));
        let ring = home.in_force();
        let item = |p: &Position| PreflistItem {
            partition: p.partition,
            node: self.name_of(ring.id(p.node)),
            primary: p.is_primary(),
        };
        Ok(self.engine.viewer().preflist(home, props.n_val).iter().map(item).collect())
    }

    /// The runtime that all parts of the node share.
    pub fn shared_runtime(&self) -> &Arc<dyn Runtime> {
        &self.engine.config.runtime
    }

    /// Whether this node answers listings and index queries.
    pub fn participates_in_coverage(&self) -> bool {
        self.engine.coverage.participates.load(Ordering::SeqCst)
    }

    /// What the large versions that travel between nodes take.
    pub fn replica_memory(&self) -> ReplicaMemoryStatus {
        self.engine.replica_memory.status()
    }

    /// Counts what another node has sent as long as it is in memory. `Error::Overload` refuses it.
    pub fn hold_memory(&self, sent: Bytes) -> Result<Bytes, Error> {
        self.engine.replica_memory.hold(sent)
    }

    /// Changes whether this node answers listings and index queries, for those that begin from now
    /// on. Other nodes hear of it as they hear of the rest of the node's state.
    pub fn set_participates_in_coverage(&self, participates: bool) {
        self.engine.coverage.participates.store(participates, Ordering::SeqCst);
    }

    /// Bucket types and bucket properties.
    pub fn buckets(&self) -> &BucketRegistry {
        &self.engine.buckets
    }

    /// The statistics of this node.
    pub fn stats(&self) -> &Stats {
        &self.engine.stats
    }

    /// The identity of this node.
    pub fn identity(&self) -> &Identity {
        &self.engine.identity
    }

    /// The directory of the node, with the identity as it is on disk.
    pub fn directory(&self) -> &NodeDirectory {
        &self.engine.directory
    }

    /// Refuses requests of clients and of other nodes from now on, because the node takes no part
    /// in its cluster (docs/design/replication.md §8). Requests under way go on.
    pub fn refuse_requests(&self, why: NoPart) {
        self.engine.refuse_requests(why);
    }

    /// Admits requests that were refused because the node awaited its peers.
    pub fn admit_requests(&self) {
        self.engine.admit_requests();
    }

    /// Why the node takes no part in its cluster, if it does not.
    pub fn no_part(&self) -> Option<NoPart> {
        self.engine.no_part()
    }

    /// The directory of the node's files.
    pub fn data_dir(&self) -> &Path {
        &self.engine.config.data_dir
    }

    /// When tombstones may be removed.
    pub fn delete_mode(&self) -> DeleteMode {
        self.engine.config.delete_mode
    }

    /// The file system of the node's files.
    pub fn file_system(&self) -> &Arc<dyn FileSystem> {
        &self.engine.config.fs
    }

    /// The store of each partition, with the partition's number.
    pub fn stores(&self) -> impl Iterator<Item = (u32, Arc<dyn Backend>)> + '_ {
        self.engine.partitions().all_open().map(|partition| (partition.number(), partition.store().clone()))
    }

    /// Whether the engine accepts requests.
    pub fn is_open(&self) -> bool {
        self.engine.is_open()
    }

    /// The time of the engine's wall clock.
    pub fn time(&self) -> UnixMicros {
        self.engine.now()
    }

    /// Locked while a backup is taken: a node takes one at a time.
    pub fn backup_turn(&self) -> &Mutex<()> {
        &self.engine.backup_turn
    }

    /// The placement in force.
    pub fn placement(&self) -> Arc<Placement> {
        self.engine.placement()
    }

    /// The version of the placement in force.
    pub fn placement_version(&self) -> RingVersion {
        self.engine.placement_version()
    }

    /// The highest version of the placement below which no request that this node coordinates is
    /// under way. A request whose client was answered counts while it still stores or repairs.
    pub fn confirmed_placement(&self) -> RingVersion {
        self.engine.confirmed_placement()
    }

    /// The ring that all homes have, or are to get.
    pub fn ring(&self) -> Arc<Ring> {
        self.engine.ring()
    }

    /// Puts another ring of the same size in force. Requests under way end with the ring that they
    /// began with. The caller answers for what the change does to data (docs/design/replication.md
    /// §3).
    pub fn set_ring(&self, ring: Ring) -> Result<(), Error> {
        self.set_placement(Placement::of_ring(Arc::new(ring)))
    }

    /// Puts another placement of the same size in force, for requests that begin from now on.
    pub fn set_placement(&self, placement: Placement) -> Result<(), Error> {
        self.engine.set_placement(placement)
    }

    /// The replicas of this node, for requests that other nodes coordinate.
    pub fn local_replica(&self) -> LocalReplica {
        LocalReplica::new(self.engine.clone())
    }

    /// Number of tombstones and expired versions whose time has come and that wait for a round.
    pub fn versions_to_reap(&self) -> usize {
        self.engine.reaping.due.count()
    }

    /// The counter of fences of this node. It is told when a connection begins
    /// (docs/design/replication.md §6).
    pub fn counter(&self) -> NodeCounter {
        self.engine.reaping.fences.counter()
    }

    /// Notes the counter that a peer has told at the beginning of a connection.
    pub fn note_counter(&self, node: NodeId, counter: NodeCounter) {
        self.engine.reaping.counters.note(node, counter);
    }

    /// The name of this node.
    pub fn node_name(&self) -> &str {
        &self.engine.config.node_name
    }

    /// The names of the nodes of all rings in use.
    pub fn node_names(&self) -> BTreeMap<NodeId, String> {
        self.engine.placement().nodes().into_iter().map(|id| (id, self.name_of(id))).collect()
    }

    /// The name of a node of the ring; its identity when its name is not known.
    fn name_of(&self, node: NodeId) -> String {
        if node == self.identity().node_id {
            return self.node_name().to_owned();
        }
        self.engine.config.peers.name(node).unwrap_or_else(|| node.to_string())
    }

    /// The status of the store of each partition: (partition, status).
    pub fn vnode_status(&self) -> Vec<(u32, Status)> {
        self.engine.partitions().all_open().map(|p| (p.number(), p.store().status())).collect()
    }

    /// Whether this node can serve requests.
    pub fn health(&self) -> Health {
        let status = self.vnode_status();
        let disk_full = status.iter().any(|(_, s)| s.disk_full);
        let known_losses = status.iter().map(|(p, s)| (*p, s.lost_ranges)).filter(|(_, places)| *places > 0).collect();
        let poisoned: Vec<_> = status.into_iter().filter_map(|(p, s)| Some((p, s.poisoned?))).collect();
        let ready = self.engine.is_open() && poisoned.is_empty() && !disk_full;
        Health { ready, poisoned, disk_full, known_losses }
    }
}
