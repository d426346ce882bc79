//! The configuration of an engine.

use super::{ScrubConfig, TransferConfig, TreesConfig, WorkerPools};
use crate::buckets::BackendChoice;
use crate::hooks::Hooks;
use crate::replica::{NoPeers, Peers};
use crate::requests::QueryConfig;
use ombak_runtime::{Runtime, TokioRuntime};
use ombak_storage::BackendFactory;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_types::PropMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When tombstones are removed for good (docs/riak/semantics.md §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// Tombstones are never removed.
    Keep,
    /// The delete itself removes the tombstone.
    Immediate,
    /// The tombstone is removed this long after the delete.
    After(Duration),
}

/// Limits for the size of objects. A write that exceeds a maximum is refused; a write that exceeds
/// a warning threshold is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimits {
    /// Maximum of the bytes of one stored object, with all siblings and metadata.
    pub bytes_max: u64,
    /// Threshold in bytes above which a write is logged.
    pub bytes_warn: u64,
    /// Maximum of the siblings of one object.
    pub siblings_max: usize,
    /// Threshold in siblings above which a write is logged.
    pub siblings_warn: usize,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self { bytes_max: 50 << 20, bytes_warn: 5 << 20, siblings_max: 100, siblings_warn: 25 }
    }
}

/// What becomes of a conditional put when no majority of the key's primaries is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutMajority {
    /// It is refused: of two puts with the same condition at most one is acknowledged.
    #[default]
    Refuse,
    /// The condition is checked before the put, as in Riak's mode `api_only`. Two puts with the
    /// same condition can both pass.
    ApiOnly,
}

/// Riak's limits of read repair (docs/riak/semantics.md §3.1). Stand-ins are never repaired
/// (`read_repair_primaryonly`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRepairLimits {
    /// Number of active requests above which a share of the repairs is left out
    /// (`read_repair_soft`).
    pub soft: Option<usize>,
    /// Number of active requests from which on nothing is repaired (`read_repair_max`).
    pub max: Option<usize>,
    /// Whether each repair is logged (`read_repair_log`).
    pub log: bool,
}

/// The configuration of an engine. Create one with [`KvConfig::new`], then change fields.
#[derive(Clone)]
pub struct KvConfig {
    /// Name of this node, `riak@127.0.0.1` for instance.
    pub node_name: String,
    /// Directory of the node's identity and of its bucket types and properties. The backend has a
    /// directory of its own.
    pub data_dir: PathBuf,
    /// The file system of the node's identity; tests pass one that can fail.
    pub fs: Arc<dyn FileSystem>,
    /// Number of partitions: a power of two from 8 to 1024. The first start of a data directory
    /// fixes it.
    pub ring_size: u32,
    /// Opens the stores.
    pub backend: Arc<dyn BackendFactory>,
    /// The selector that `backend` was created with, when there are several backends.
    pub backend_choice: Option<Arc<BackendChoice>>,
    /// Properties of untyped buckets that differ from the built-in ones (`buckets.default.*`).
    pub default_props: PropMap,
    /// When tombstones are removed.
    pub delete_mode: DeleteMode,
    /// Limits for the size of objects.
    pub limits: ObjectLimits,
    /// Maximum of requests at the same time; further requests are refused with `Error::Overload`.
    pub requests_max: usize,
    /// What becomes of a conditional put without a majority of the primaries.
    pub without_majority: WithoutMajority,
    /// Bound for the large versions that travel between nodes and are in memory, in bytes. What
    /// does not fit is refused with `Error::Overload`.
    pub replica_memory_bytes: u64,
    /// How much reads repair.
    pub read_repair: ReadRepairLimits,
    /// Time limit of gets, puts and deletes that do not set one.
    pub timeout: Duration,
    /// Requests that take this long or longer are logged with where their time went
    /// (`log.slow_request`). `None` and zero log none.
    pub slow_request: Option<Duration>,
    /// The configuration of index queries.
    pub queries: QueryConfig,
    /// Whether this node answers listings and index queries (`participate_in_coverage`). Requests
    /// that it coordinates itself are answered by others if it does not.
    pub participates_in_coverage: bool,
    /// Number of threads that wait for disks.
    pub io_threads: usize,
    /// The pools of threads for work that no get or put waits for.
    pub worker_pools: WorkerPools,
    /// Interval at which the engine runs the background work of the stores.
    pub maintain_interval: Duration,
    /// Limits of the work that brings copies back to where they belong.
    pub transfer: TransferConfig,
    /// Whether partitions keep sums of what their classes hold. Exchanges need them. A class is
    /// counted from its first walk on, so a node that is alone pays nothing for it.
    pub keeps_sums: bool,
    /// Whether sums that are wrong for no known reason are noted, and do not end the process. By
    /// default they end a program with debug assertions, so that a test notices them.
    pub tolerates_sums_differences: bool,
    /// Which trees are kept.
    pub trees: TreesConfig,
    /// How fast what nobody reads is read and checked.
    pub scrub: ScrubConfig,
    /// Whether the node may be one of several. Then it reaps nothing until
    /// [`Kv::set_ring`](crate::Kv::set_ring) says that it is alone, and takes no writes of clients
    /// until [`Kv::open_to_writes`](crate::Kv::open_to_writes).
    pub awaits_ring: bool,
    /// The features that attach to the engine.
    pub hooks: Hooks,
    /// The other nodes of the cluster.
    pub peers: Arc<dyn Peers>,
    /// Clocks, random bytes, tasks and threads: the machine's, except in tests.
    pub runtime: Arc<dyn Runtime>,
}

impl KvConfig {
    /// Riak's defaults: 64 partitions, tombstones are removed after 3 s, the time limit of a
    /// request is 60 s.
    pub fn new(node_name: impl Into<String>, data_dir: impl Into<PathBuf>, backend: Arc<dyn BackendFactory>) -> Self {
        Self {
            node_name: node_name.into(),
            data_dir: data_dir.into(),
            fs: Arc::new(RealFs),
            ring_size: 64,
            backend,
            backend_choice: None,
            default_props: PropMap::new(),
            delete_mode: DeleteMode::After(Duration::from_secs(3)),
            limits: ObjectLimits::default(),
            requests_max: 50_000,
            without_majority: WithoutMajority::default(),
            replica_memory_bytes: 1 << 30,
            read_repair: ReadRepairLimits::default(),
            timeout: Duration::from_secs(60),
            slow_request: None,
            queries: QueryConfig::default(),
            participates_in_coverage: true,
            io_threads: 8,
            worker_pools: WorkerPools::default(),
            maintain_interval: Duration::from_millis(200),
            transfer: TransferConfig::default(),
            keeps_sums: true,
            tolerates_sums_differences: !cfg!(debug_assertions),
            trees: TreesConfig::default(),
            scrub: ScrubConfig::default(),
            awaits_ring: false,
            hooks: Hooks::default(),
            peers: Arc::new(NoPeers),
            runtime: Arc::new(TokioRuntime),
        }
    }
}
