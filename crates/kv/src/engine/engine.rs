//! The state that all requests of a node share.

use super::background::Background;
use super::io_pool::IoPool;
use super::request_limiter::{ActiveRequest, RequestLimiter};
use super::sync_queue::SyncQueue;
use super::tombstone_reaper::Reaper;
use crate::buckets::BucketRegistry;
use crate::config::KvConfig;
use crate::coordination::Replica;
use crate::names::{Vtags, random_u64};
use crate::partition::{ActorSource, Partition};
use crate::start::OpenError;
use ombak_node_files::{Identity, NodeDirectory};
use ombak_ring::{KeyHash, Ring, RingSize, RingVersion};
use ombak_stats::Stats;
use ombak_storage::Backend;
use ombak_types::names::{KEY_BYTES_MAX, NAME_BYTES_MAX, encode_storage_key};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Error};
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How long [`Engine::close`] waits for active requests.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Threads for listings. They are separate, so that a long listing does not delay reads from the
/// disk.
const FOLD_THREADS: usize = 2;

/// The shared state of a node's requests.
pub(crate) struct Engine {
    pub(crate) config: KvConfig,
    pub(crate) ring: Ring,
    pub(crate) buckets: Arc<BucketRegistry>,
    pub(crate) stats: Arc<Stats>,
    pub(super) partitions: Arc<[Arc<Partition>]>,
    pub(super) vtags: Vtags,
    /// Threads that wait for disks.
    pub(crate) disk_pool: IoPool,
    /// Threads for large requests, so that neither connections nor reads from the disk wait for
    /// them.
    pub(crate) large_request_pool: IoPool,
    pub(crate) fold_pool: IoPool,
    pub(super) syncs: SyncQueue,
    pub(crate) reaper: Arc<Reaper>,
    limiter: RequestLimiter,
    background: Background,
    pub(crate) identity: Identity,
    /// Keeps the directory locked.
    _directory: NodeDirectory,
    /// Locked while a backup is taken.
    pub(crate) backup_turn: Mutex<()>,
}

impl Engine {
    /// Opens all parts, each after the parts that it depends on.
    pub(crate) fn open(config: KvConfig) -> Result<Self, OpenError> {
        let ring_size = RingSize::new(config.ring_size).map_err(|e| OpenError::Config(format!("ring_size: {e}")))?;
        let directory = NodeDirectory::open(config.fs.clone(), &config.data_dir)?;
        directory.check(config.ring_size)?;
        let buckets = open_buckets(&config)?;
        let stores = open_stores(&config)?;
        // A start counts only after all stores have opened.
        let identity = directory.start(config.ring_size)?;
        let version = RingVersion::first(identity.ring_lineage);
        let ring = Ring::of_one_node(identity.node_id, ring_size, version);
        if identity.boot == 1 && stores.iter().any(|store| store.last_seq() > 0) {
            warn!(
                ring_size = identity.ring_size,
                "node.json was missing: this is a new node, over the objects of another. If their ring had another size, most of \
                 them are not found: then stop the node, and put back the copy of your last backup"
            );
        }
        // Each start issues events under a new actor. No file can prove that the disk was not set
        // back to an earlier state, in which the events of a later run are missing
        // (docs/design/replication.md §7.1).
        let actors = Arc::new(ActorSource::new(random_u64()?));
        let partition = |(number, store)| Arc::new(Partition::new(number, store, actors.clone()));
        let partitions: Arc<[Arc<Partition>]> = (0..).zip(stores).map(partition).collect();
        let reaper = Arc::new(Reaper::new(config.delete_mode, config.clock.clone(), partitions.clone()));
        let stats = Arc::new(Stats::new(Instant::now()));
        let disk_pool = IoPool::start("ombak-io", config.io_threads, config.requests_max + partitions.len())?;
        let large_request_pool = IoPool::start("ombak-large", config.io_threads.div_ceil(2), config.requests_max)?;
        let fold_pool = IoPool::start("ombak-fold", FOLD_THREADS, config.requests_max)?;
        let background = Background::start(&config, &partitions, &reaper, &stats)?;
        directory.remove_clean_mark();
        info!(node = config.node_name, boot = identity.boot, "node opened");
        Ok(Self {
            vtags: Vtags::new(random_u64()?),
            syncs: SyncQueue::new(partitions.len()),
            limiter: RequestLimiter::new(config.requests_max),
            config,
            ring,
            buckets,
            stats,
            partitions,
            disk_pool,
            large_request_pool,
            fold_pool,
            reaper,
            background,
            identity,
            _directory: directory,
            backup_turn: Mutex::new(()),
        })
    }

    pub(crate) fn enter(&self) -> Result<ActiveRequest<'_>, Error> {
        self.limiter.enter()
    }

    /// The time of the wall clock.
    pub(crate) fn now(&self) -> UnixMicros {
        (self.config.clock)()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.limiter.is_open()
    }

    pub(crate) fn partitions(&self) -> &Arc<[Arc<Partition>]> {
        &self.partitions
    }

    /// The home partition of a key, and its storage key.
    pub(super) fn locate(&self, bucket: &Bucket, key: &[u8], props: &BucketProps) -> (&Arc<Partition>, Vec<u8>) {
        let mut storage_key = Vec::with_capacity(5 + bucket.bucket_type.len() + bucket.name.len() + key.len());
        encode_storage_key(bucket, key, &mut storage_key);
        let home = self.home_of(bucket, key, props);
        // `Engine::open` creates a partition for every home of the ring.
        (&self.partitions[home as usize % self.partitions.len()], storage_key)
    }

    pub(crate) fn home_of(&self, bucket: &Bucket, key: &[u8], props: &BucketProps) -> u32 {
        let hash = if props.hash_bucket_only { KeyHash::of_bucket(bucket) } else { KeyHash::of_key(bucket, key) };
        self.ring.home_of(&hash)
    }

    /// The nodes for the `n` positions of a key. This node owns the whole ring, so it has all the
    /// positions.
    pub(super) fn replicas(&self, n: u32) -> SmallVec<[Replica; 3]> {
        smallvec![Replica::primary(n)]
    }

    /// Waits until a write survives a power loss.
    pub(crate) async fn synced(&self, partition: &Arc<Partition>, seq: u64) -> Result<(), Error> {
        self.syncs.wait(&self.disk_pool, partition, seq).await
    }

    /// Refuses new requests, waits for the active requests, and closes the stores.
    pub(crate) fn close(&self) {
        if !self.limiter.close() {
            return;
        }
        let drained = self.limiter.wait_empty(DRAIN_LIMIT);
        if !drained {
            warn!("requests were still under way after {} s", DRAIN_LIMIT.as_secs());
        }
        self.background.stop();
        self.fold_pool.stop();
        self.large_request_pool.stop();
        self.disk_pool.stop();
        let failed = self.partitions.iter().filter(|p| p.close().is_err()).count();
        if drained && failed == 0 {
            info!("node closed");
        } else {
            warn!(failed, "the node has ended, but not cleanly: see above");
        }
    }
}

/// Opened before the stores: the properties of a bucket decide which store gets its keys.
fn open_buckets(config: &KvConfig) -> Result<Arc<BucketRegistry>, OpenError> {
    let buckets = BucketRegistry::open(config.fs.clone(), &config.data_dir, &config.node_name, &config.default_props)?;
    let Some(choice) = &config.backend_choice else { return Ok(Arc::new(buckets)) };
    let buckets = Arc::new(buckets.with_backends(choice.names()));
    choice.use_properties(buckets.clone());
    Ok(buckets)
}

fn open_stores(config: &KvConfig) -> Result<Vec<Arc<dyn Backend>>, OpenError> {
    let open = |partition| config.backend.open(partition).map_err(|source| OpenError::Store { partition, source });
    (0..config.ring_size).map(open).collect()
}

/// Checks the lengths of names (docs/riak/pb-api.md §1.1).
pub(crate) fn check_bucket(bucket: &Bucket) -> Result<(), Error> {
    if bucket.bucket_type.is_empty() {
        return Err(Error::ZeroLength("Type"));
    }
    if bucket.name.is_empty() {
        return Err(Error::ZeroLength("Bucket"));
    }
    if bucket.bucket_type.len() > NAME_BYTES_MAX || bucket.name.len() > NAME_BYTES_MAX {
        return Err(Error::Unsupported(format!("bucket types and buckets are at most {NAME_BYTES_MAX} bytes long")));
    }
    Ok(())
}

pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    match key.len() {
        0 => Err(Error::ZeroLength("Key")),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Error::KeyTooLarge),
    }
}

/// The error for an operation on a strongly consistent bucket; Ombak has no such operations yet.
/// The word is Riak's answer when no ensemble is available (docs/riak/semantics.md §9).
pub(super) fn refuse_consistent(props: &BucketProps) -> Result<(), Error> {
    if props.consistent {
        return Err(Error::Unsupported("unavailable".into()));
    }
    Ok(())
}
