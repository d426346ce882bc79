//! What the rest of the program sees of the node that the engine runs: its properties, its
//! identity, its stores and its health.

use super::kv::Kv;
use super::requests::PreflistItem;
use crate::buckets::BucketRegistry;
use crate::engine::{check_bucket, check_key};
use crate::replica::LocalReplica;
use ombak_node_files::Identity;
use ombak_ring::{Position, Ring};
use ombak_stats::Stats;
use ombak_storage::fs::FileSystem;
use ombak_storage::{Backend, Status};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, NodeId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

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
    /// The positions of a key in order of preference, with all members counted as up.
    pub fn preflist(&self, bucket: &Bucket, key: &[u8]) -> Result<Vec<PreflistItem>, Error> {
        check_bucket(bucket)?;
        check_key(key)?;
        let props = self.engine.buckets.props(bucket)?;
        let ring = self.engine.ring();
        let home = self.engine.home_of(&ring, bucket, key, &props);
        let item = |p: &Position| PreflistItem {
            partition: p.partition,
            node: self.name_of(ring.id(p.node)),
            primary: p.is_primary(),
        };
        Ok(ring.preflist(home, props.n_val, |_| true).iter().map(item).collect())
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

    /// The directory of the node's files.
    pub fn data_dir(&self) -> &Path {
        &self.engine.config.data_dir
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

    /// The ring in force.
    pub fn ring(&self) -> Arc<Ring> {
        self.engine.ring()
    }

    /// Puts another ring of the same size in force. Requests under way end with the ring that they
    /// began with. The caller answers for what the change does to data (docs/design/replication.md
    /// §3).
    pub fn set_ring(&self, ring: Ring) -> Result<(), Error> {
        self.engine.set_ring(ring)
    }

    /// The replicas of this node, for requests that other nodes coordinate.
    pub fn local_replica(&self) -> LocalReplica {
        LocalReplica::new(self.engine.clone())
    }

    /// The name of this node.
    pub fn node_name(&self) -> &str {
        &self.engine.config.node_name
    }

    /// The names of the ring's nodes.
    pub fn node_names(&self) -> BTreeMap<NodeId, String> {
        self.ring().nodes().map(|(_, id)| (id, self.name_of(id))).collect()
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
