//! How an engine is set up.

use crate::backend_choice::BackendChoice;
use crate::clock::{MonotonicClock, WallClock, system_clock, system_monotonic_clock};
use crate::query::QueryConfig;
use ombak_storage::BackendFactory;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_types::PropMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When tombstones are removed for good (docs/riak/semantics.md §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// Never.
    Keep,
    /// With the delete itself.
    Immediate,
    /// This long after it.
    After(Duration),
}

/// How large objects may become. A write beyond a maximum is refused, beyond a warning threshold it is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLimits {
    /// Bytes of one stored object, all siblings and metadata.
    pub bytes_max: u64,
    /// Bytes from which a write is logged.
    pub bytes_warn: u64,
    /// Siblings of one object.
    pub siblings_max: usize,
    /// Siblings from which a write is logged.
    pub siblings_warn: usize,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self { bytes_max: 50 << 20, bytes_warn: 5 << 20, siblings_max: 100, siblings_warn: 25 }
    }
}

/// How an engine is set up. Make one with [`KvConfig::new`] and change what differs.
#[derive(Clone)]
pub struct KvConfig {
    /// Name of this node, `riak@127.0.0.1` for instance.
    pub node_name: String,
    /// Directory of the node's identity and of its bucket types and properties. The backend has its own.
    pub data_dir: PathBuf,
    /// The file system of the node's identity; tests put one here that they can break.
    pub fs: Arc<dyn FileSystem>,
    /// Number of partitions: a power of two from 8 to 1024. Fixed with the first start of a data directory.
    pub ring_size: u32,
    /// Opens the stores.
    pub backend: Arc<dyn BackendFactory>,
    /// With several backends: the selector that `backend` was made with.
    pub backend_choice: Option<Arc<BackendChoice>>,
    /// Properties of untyped buckets that differ from the built-in ones (`buckets.default.*`).
    pub default_props: PropMap,
    /// When tombstones go.
    pub delete_mode: DeleteMode,
    /// How large objects may become.
    pub limits: ObjectLimits,
    /// Requests under way at once; more are refused with `Error::Overload`.
    pub requests_max: usize,
    /// Time limit of gets, puts and deletes that name none.
    pub timeout: Duration,
    /// Index queries.
    pub queries: QueryConfig,
    /// Threads that wait for disks.
    pub io_threads: usize,
    /// How often background work of the stores is looked after.
    pub maintain_interval: Duration,
    /// What time it is; the machine's clock, but for tests.
    pub clock: WallClock,
    /// What the deadlines of writes go by; the machine's monotonic clock, but for tests.
    pub monotonic_clock: MonotonicClock,
}

impl KvConfig {
    /// Riak's defaults: 64 partitions, tombstones go after 3 s, requests are given 60 s.
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
            timeout: Duration::from_secs(60),
            queries: QueryConfig::default(),
            io_threads: 8,
            maintain_interval: Duration::from_millis(200),
            clock: system_clock(),
            monotonic_clock: system_monotonic_clock(),
        }
    }
}
