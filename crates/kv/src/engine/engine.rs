//! The state that all requests of a node share.

use super::after_reply::AnsweredRequests;
use super::background::Background;
use super::coverage_state::CoverageState;
use super::forwarded_puts::ForwardedPuts;
use super::leaving::Leaving;
use super::local_replica::LocalReplica;
use super::placements::{Placements, RequestPlacement};
use super::repair_answers::AnswersSlot;
use super::replica_memory::ReplicaMemory;
use super::request_limiter::{ActiveRequest, NoPart, RequestLimiter};
use super::sync_queue::SyncQueue;
use super::tombstone_reaper::Reaper;
use super::waking::Waking;
use super::work_class::WorkClass;
use super::work_pools::WorkPools;
use crate::buckets::BucketRegistry;
use crate::conditional::{Ballots, ConditionalPuts};
use crate::config::{KeepTrees, KvConfig};
use crate::deliberate_faults::{BrokenRule, is_broken, to_put_in_force};
use crate::hot::HotKeys;
use crate::names::Vtags;
use crate::open_error::OpenError;
use crate::partition::{ActorSource, Partition, PartitionTable, WriteGate};
use crate::reaping::{DueVersions, Floors, ReapingState};
use crate::replica::{
    ClassId, ConditionalClient, CoverageClient, NodeCounter, ReapingClient, ReplicaClient, Target, Viewer,
};
use crate::scrub::Scrubbing;
use crate::slow::SlowLog;
use crate::sums::SumsSetup;
use crate::transfer::Transfers;
use crate::tree_keeping::TreeKeeping;
use futures_util::future::{Either, select};
use ombak_node_files::{Identity, NodeDirectory};
use ombak_ring::placement::Placement;
use ombak_ring::{KeyHash, ReplicaState, Ring, RingSize, RingVersion};
use ombak_runtime::{BoxFuture, Pool, Runtime, RuntimeExt, Tenant, within};
use ombak_stats::Stats;
use ombak_types::names::{KEY_BYTES_MAX, NAME_BYTES_MAX, encode_storage_key};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Error, NodeId};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::{info, warn};
use xxhash_rust::xxh3::xxh3_64;

/// How long [`Engine::close`] waits for active requests. With what the other parts of a stop may
/// take, this is less than the time after which the program ends a stop that hangs.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);
/// How long a question of a conditional put waits until this node knows the placement of its
/// sender.
const BEHIND_MAX: Duration = Duration::from_secs(1);

/// The shared state of a node's requests.
pub(crate) struct Engine {
    pub(crate) config: KvConfig,
    placements: Placements,
    pub(crate) buckets: Arc<BucketRegistry>,
    pub(crate) stats: Arc<Stats>,
    /// The log of slow requests.
    pub(crate) slow: Arc<SlowLog>,
    /// The keys and buckets with the most requests.
    pub(crate) hot: HotKeys,
    pub(super) partitions: Arc<PartitionTable>,
    pub(crate) write_gate: WriteGate,
    pub(super) vtags: Vtags,
    /// Threads that wait for disks.
    pub(crate) disk_pool: Pool,
    /// Threads for large requests, so that neither connections nor reads from the disk wait for
    /// them.
    pub(crate) large_request_pool: Pool,
    /// Threads for listings, queries, folds and walks.
    pub(crate) work_pools: WorkPools,
    pub(super) syncs: SyncQueue,
    pub(crate) reaper: Arc<Reaper>,
    /// What does not lie where it belongs.
    pub(crate) transfers: Arc<Transfers>,
    /// Whoever answers other nodes that compare, push or reap copies.
    pub(crate) repair_answers: AnswersSlot,
    /// What is known of the removal of tombstones and expired versions in a cluster.
    pub(crate) reaping: ReapingState,
    /// The part of this node in listings and index queries.
    pub(crate) coverage: CoverageState,
    /// What this node has promised to conditional puts, and their order.
    pub(super) conditional: ConditionalPuts,
    /// Numbers of the puts that other nodes have forwarded to this one lately.
    pub(crate) forwarded_puts: ForwardedPuts,
    /// Bounds the large versions that travel between nodes.
    pub(crate) replica_memory: ReplicaMemory,
    /// The requests whose clients were answered.
    pub(super) answered: AnsweredRequests,
    /// Whether this node goes on after a pause.
    pub(crate) waking: Waking,
    /// Whether this node leaves its cluster, and what it has to end before.
    pub(crate) leaving: Leaving,
    /// Reads what nobody asks for.
    pub(crate) scrubbing: Arc<Scrubbing>,
    /// Keeps the trees that folds ask for.
    pub(crate) tree_keeping: Arc<TreeKeeping>,
    limiter: RequestLimiter,
    background: Background,
    pub(crate) identity: Identity,
    /// The directory, which stays locked.
    pub(crate) directory: NodeDirectory,
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
        // Each start issues events under a new actor. No file can prove that the disk was not set
        // back to an earlier state, in which the events of a later run are missing
        // (docs/design/replication.md §7).
        let runtime = &config.runtime;
        let is_reused = is_broken(BrokenRule::EachRunHasItsOwnActor);
        let actor = if is_reused { xxh3_64(config.node_name.as_bytes()) } else { random_u64(runtime)? };
        let actors = Arc::new(ActorSource::new(actor));
        let partitions = Arc::new(open_partitions(&config, &buckets, actors)?);
        // A start counts only after all stores have opened.
        let identity = directory.start(config.ring_size)?;
        let version = RingVersion::first(identity.ring_lineage);
        let ring = Ring::of_one_node(identity.node_id, ring_size, version);
        if identity.boot == 1 && partitions.all_open().any(|partition| partition.store().last_seq() > 0) {
            warn!(
                ring_size = identity.ring_size,
                "node.json was missing: this is a new node, over the objects of another. If their ring had another size, most of \
                 them are not found: then stop the node, and put back the copy of your last backup"
            );
        }
        let has_features = !config.hooks.features_asked.is_empty();
        let work_pools = WorkPools::start(runtime, &config.worker_pools, has_features).map_err(no_thread)?;
        let walk_pool = work_pools.of(WorkClass::Walk, Tenant::default());
        let transfers = Arc::new(Transfers::open(&config, &partitions, walk_pool)?);
        let floors = Floors::open(config.fs.clone(), &config.data_dir, config.ring_size)?;
        let now = runtime.wall_clock();
        let ballots = Ballots::open(config.fs.clone(), &config.data_dir, now)?;
        let due = Arc::new(DueVersions::new(buckets.clone(), runtime.clone()));
        let reaper = Arc::new(Reaper::new(config.delete_mode, partitions.clone(), runtime.clone(), due.clone()));
        let write_gate = WriteGate::default();
        if config.awaits_ring {
            reaper.set_alone(false);
            write_gate.close();
        }
        let stats = Arc::new(Stats::new(runtime.now()));
        config.hooks.features().for_each(|feature| stats.attach(feature));
        let slow = Arc::new(SlowLog::new(config.slow_request));
        stats.attach(slow.clone());
        let pool = |name, threads, jobs_max| Pool::start(runtime, name, threads, jobs_max).map_err(no_thread);
        let disk_pool = pool("ombak-io", config.io_threads, config.requests_max + partitions.ring_size())?;
        let large_request_pool = pool("ombak-large", config.io_threads.div_ceil(2), config.requests_max)?;
        stats.attach(work_pools.counts());
        let scrubbing = Arc::new(Scrubbing::open(&config, partitions.clone()));
        stats.attach(scrubbing.clone());
        let tree_keeping = Arc::new(TreeKeeping::new(&config, buckets.clone(), partitions.clone()));
        stats.attach(tree_keeping.clone());
        let placement = Placement::of_ring(Arc::new(ring));
        if !config.awaits_ring {
            tree_keeping.set_placement(identity.node_id, &placement);
        }
        let background =
            Background::start(&config, (&partitions, &buckets), &reaper, (&scrubbing, &tree_keeping), &stats)?;
        let vtags = Vtags::new(random_u64(runtime)?);
        directory.remove_clean_mark();
        info!(node = config.node_name, boot = identity.boot, "node opened");
        Ok(Self {
            vtags,
            syncs: SyncQueue::new(partitions.ring_size()),
            limiter: RequestLimiter::new(config.requests_max),
            replica_memory: ReplicaMemory::new(config.replica_memory_bytes),
            coverage: CoverageState::new(config.participates_in_coverage),
            reaping: ReapingState::new(floors, due, &config, identity.boot),
            conditional: ConditionalPuts::new(ballots),
            waking: Waking::new(config.runtime.now()),
            leaving: Leaving::default(),
            hot: HotKeys::new(config.runtime.now()),
            slow,
            config,
            placements: Placements::new(placement),
            answered: AnsweredRequests::default(),
            buckets,
            stats,
            partitions,
            write_gate,
            disk_pool,
            large_request_pool,
            work_pools,
            reaper,
            transfers,
            repair_answers: AnswersSlot::default(),
            forwarded_puts: ForwardedPuts::default(),
            scrubbing,
            tree_keeping,
            background,
            identity,
            directory,
            backup_turn: Mutex::new(()),
        })
    }

    pub(crate) fn enter(&self) -> Result<ActiveRequest<'_>, Error> {
        self.limiter.enter()
    }

    /// The time of the wall clock.
    pub(crate) fn now(&self) -> UnixMicros {
        self.config.runtime.wall_clock()
    }

    /// The tenant that a listing or query is, with a number of its own within its group.
    pub(crate) fn listing_tenant(&self, group: u64) -> Tenant {
        Tenant { group, member: self.coverage.begun.fetch_add(1, Ordering::Relaxed) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.limiter.is_open()
    }

    /// The error of requests of clients if the node does not admit them.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.limiter.refusal().map_or(Ok(()), Err)
    }

    pub(crate) fn refuse_requests(&self, why: NoPart) {
        self.limiter.refuse(why);
    }

    pub(crate) fn admit_requests(&self) {
        self.limiter.admit();
    }

    pub(crate) fn no_part(&self) -> Option<NoPart> {
        self.limiter.no_part()
    }

    pub(crate) fn partitions(&self) -> &Arc<PartitionTable> {
        &self.partitions
    }

    /// The store of a key with this home partition, and the storage key.
    pub(super) fn locate(&self, bucket: &Bucket, key: &[u8], home: u32) -> Result<(Arc<Partition>, Vec<u8>), Error> {
        Ok((self.partitions.find(home)?, storage_key(bucket, key)))
    }

    /// The placement in force, for what is no request.
    pub(crate) fn placement(&self) -> Arc<Placement> {
        self.placements.present()
    }

    /// The placement in force. A request that this node coordinates takes it once, and keeps it to
    /// its end.
    pub(crate) fn request_placement(&self) -> RequestPlacement {
        self.placements.for_request()
    }

    /// Reads from the placement in force.
    pub(super) fn look_at_placement<T>(&self, at: impl FnOnce(&Placement) -> T) -> T {
        self.placements.look(at)
    }

    /// Waits until a version of the placement is in force here that another node has told.
    pub(super) fn learn_placement(self: &Arc<Self>, from: NodeId, at_least: RingVersion) -> BoxFuture<'static, ()> {
        let engine = self.clone();
        Box::pin(async move {
            let fetched = engine.config.peers.learn_placement(from, at_least);
            let is_known = pin!(engine.placements.wait_for(at_least));
            if let Either::Right(((), is_known)) = select(is_known, fetched).await {
                is_known.await;
            }
        })
    }

    /// Waits for a moment until a version is in force here that a sender uses. What this node does
    /// while it is behind a sender does not count for a conditional put.
    pub(crate) async fn wait_for_placement(&self, used: RingVersion, deadline: Option<Instant>) {
        if self.placement_version() < used {
            let runtime = &*self.config.runtime;
            let patience = runtime.now() + BEHIND_MAX;
            let until = deadline.map_or(patience, |deadline| deadline.min(patience));
            // Without success it answers as one that is behind.
            let _ = within(runtime, Some(until), Box::pin(self.placements.wait_for(used))).await;
        }
    }

    /// The version of the placement in force.
    pub(crate) fn placement_version(&self) -> RingVersion {
        self.placements.look(Placement::version)
    }

    /// The highest version of the placement below which no request of this node is under way.
    pub(crate) fn confirmed_placement(&self) -> RingVersion {
        self.placements.confirmed()
    }

    /// The ring that all homes have, or are to get.
    pub(crate) fn ring(&self) -> Arc<Ring> {
        self.placements.look(|placement| placement.goal().clone())
    }

    /// Puts another placement of the same size in force, for requests that begin from now on.
    pub(crate) fn set_placement(&self, placement: Placement) -> Result<(), Error> {
        let (size, present) = (placement.size(), self.placements.look(Placement::size));
        if size != present {
            let text = format!("the ring has {} partitions, and this node has {}", size.get(), present.get());
            return Err(Error::Unsupported(text));
        }
        let placement = to_put_in_force(placement);
        // The reaper stops before other nodes have a say, and starts after they have none any more.
        let is_alone = self.is_alone_in(&placement);
        if !is_alone {
            self.reaper.set_alone(false);
        }
        let (here, ns) = (self.identity.node_id, self.buckets.snapshot().all_n_vals());
        self.transfers.set_placement(&placement, here, &self.partitions, &ns);
        self.placements.set(placement.clone());
        self.transfers.placement_is_in_force(&placement, here, &self.partitions, &ns);
        self.tree_keeping.set_placement(here, &placement);
        if is_alone {
            self.reaping.due.clear();
            self.reaper.set_alone(true);
        }
        Ok(())
    }

    /// Whether a message that was stamped with this version of a placement is about the home as
    /// this node knows it: the home has not changed since, and this node is not behind the sender.
    pub(crate) fn agrees_on_home(&self, placement: &Placement, home: u32, stamp: RingVersion) -> bool {
        placement.home(home).version() <= stamp && stamp <= placement.version()
    }

    /// Whether this node owns everything, and nothing moves.
    pub(crate) fn is_alone_in(&self, placement: &Placement) -> bool {
        let ring = placement.goal();
        ring.node_count() == 1 && ring.id(ring.owner(0)) == self.identity.node_id && placement.is_settled()
    }

    pub(crate) fn home_of(&self, placement: &Placement, bucket: &Bucket, key: &[u8], props: &BucketProps) -> u32 {
        let hash = if props.hash_bucket_only { KeyHash::of_bucket(bucket) } else { KeyHash::of_key(bucket, key) };
        placement.goal().home_of(&hash)
    }

    /// What this node needs to find the replicas of a request.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        Viewer { here: self.identity.node_id, peers: &*self.config.peers }
    }

    /// The replicas of this node.
    pub(crate) fn local_replica(self: &Arc<Self>) -> LocalReplica {
        LocalReplica::new(self.clone())
    }

    /// The replicas of a node.
    pub(crate) fn replica_client(self: &Arc<Self>, node: NodeId) -> Arc<dyn ReplicaClient> {
        if node == self.identity.node_id {
            return Arc::new(LocalReplica::new(self.clone()));
        }
        self.config.peers.replica(node)
    }

    /// The part of a node in conditional puts.
    pub(super) fn conditional_client(self: &Arc<Self>, node: NodeId) -> Arc<dyn ConditionalClient> {
        if node == self.identity.node_id {
            return Arc::new(LocalReplica::new(self.clone()));
        }
        self.config.peers.conditional(node)
    }

    /// The part of a node in listings and index queries.
    pub(crate) fn coverage_client(self: &Arc<Self>, node: NodeId) -> Arc<dyn CoverageClient> {
        if node == self.identity.node_id {
            return Arc::new(LocalReplica::new(self.clone()));
        }
        self.config.peers.coverage(node)
    }

    /// Whether this node is known to hold everything of the class (home, n). A node that is alone
    /// has nobody to compare with, so what its store lacks stays missing.
    pub(crate) fn is_full(&self, home: u32, n: u32) -> bool {
        let Some(partition) = self.partitions.get(home) else { return false };
        self.transfers.classes.is_full(home, n)
            && (!self.placements.look(|p| self.is_alone_in(p)) || partition.store().complete())
    }

    /// Whether a class that joins would be full if its home flipped now.
    pub(super) fn would_be_full(&self, home: u32, n: u32) -> bool {
        let is_complete = self.partitions.get(home).is_some_and(|partition| partition.store().complete());
        is_complete && self.transfers.classes.would_be_full(home, n)
    }

    /// What is known about a node as a replica of the class (home, n).
    pub(crate) fn replica_state(&self, node: NodeId, home: u32, n: u32) -> ReplicaState {
        let state = self.config.peers.replica_state(node, home, n);
        if node != self.identity.node_id {
            let missed_here = self.transfers.owed.has_owed(ClassId { partition: home, n }, node);
            return ReplicaState { missed_writes: state.missed_writes || missed_here, ..state };
        }
        let participates = self.coverage.participates.load(Ordering::SeqCst);
        ReplicaState { is_up: true, participates, is_full: self.is_full(home, n), ..state }
    }

    /// The part of a node in rounds of reaping.
    pub(crate) fn reaping_client(self: &Arc<Self>, node: NodeId) -> Arc<dyn ReapingClient> {
        if node == self.identity.node_id {
            return Arc::new(LocalReplica::new(self.clone()));
        }
        self.config.peers.reaping(node)
    }

    /// A replica of a request that begins now.
    pub(crate) fn target(self: &Arc<Self>, node: NodeId) -> Target {
        let is_here = node == self.identity.node_id;
        let noted = if is_here { Some(self.reaping.fences.counter()) } else { self.counter_of(node) };
        let client = if is_here { None } else { Some(self.config.peers.replica(node)) };
        Target { node, client, noted }
    }

    /// The last counter of fences that another node has told.
    pub(crate) fn counter_of(&self, node: NodeId) -> Option<NodeCounter> {
        self.reaping.counters.of(node).or_else(|| self.config.peers.first_counter(node))
    }

    /// Whether this node is a primary of a class: it owns a position, whoever is up.
    pub(crate) fn is_primary(&self, ring: &Ring, partition: u32, n_val: u32) -> bool {
        let here = ring.node(self.identity.node_id);
        here.is_some_and(|here| ring.owners_of(partition, n_val).iter().any(|position| position.owner == here))
    }

    /// Number of active requests.
    pub(super) fn active_requests(&self) -> usize {
        self.limiter.under_way()
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
        self.transfers.stop(&self.partitions);
        self.work_pools.stop();
        self.large_request_pool.stop();
        let failed = self.partitions.close_all(&self.disk_pool);
        if drained && failed == 0 {
            info!("node closed");
        } else {
            warn!(failed, "the node has ended, but not cleanly: see above");
        }
    }
}

fn random_u64(runtime: &Arc<dyn Runtime>) -> Result<u64, OpenError> {
    runtime.random_u64().map_err(|e| OpenError::System { what: "random bytes", source: e.into() })
}

pub(super) fn no_thread(source: std::io::Error) -> OpenError {
    OpenError::System { what: "another thread", source }
}

/// Opened before the stores: the properties of a bucket decide which store gets its keys.
fn open_buckets(config: &KvConfig) -> Result<Arc<BucketRegistry>, OpenError> {
    let buckets = BucketRegistry::open(config.fs.clone(), &config.data_dir, &config.node_name, &config.default_props)?;
    let buckets = buckets.with_namespaces(config.hooks.namespaces.clone());
    let buckets = match &config.backend_choice {
        Some(choice) => Arc::new(buckets.with_backends(choice.names())),
        None => Arc::new(buckets),
    };
    if let Some(choice) = &config.backend_choice {
        choice.use_properties(buckets.clone());
    }
    Ok(buckets)
}

/// This node owns the whole ring, so it opens all partitions.
fn open_partitions(
    config: &KvConfig,
    buckets: &Arc<BucketRegistry>,
    actors: Arc<ActorSource>,
) -> Result<PartitionTable, OpenError> {
    let table = PartitionTable::new(config.ring_size, config.backend.clone(), actors);
    let table = table.observed_by(&config.hooks.observers).with_kinds(&config.hooks.kinds);
    let table = table.remembering_origins(config.hooks.follows_changes());
    let sums = || SumsSetup {
        buckets: buckets.clone(),
        fs: config.fs.clone(),
        data_dir: config.data_dir.clone(),
        choice_print: config.backend_choice.as_ref().map_or(0, |choice| choice.print()),
        tolerates_differences: config.tolerates_sums_differences,
    };
    let keeps_trees = config.trees.keep != KeepTrees::Never;
    let table = table.with_sums(config.keeps_sums.then(sums)).with_trees(keeps_trees);
    for partition in 0..config.ring_size {
        table.open(partition).map_err(|source| OpenError::Store { partition, source })?;
    }
    Ok(table)
}

/// The key under which a store keeps an object.
pub(super) fn storage_key(bucket: &Bucket, key: &[u8]) -> Vec<u8> {
    let mut storage_key = Vec::with_capacity(5 + bucket.bucket_type.len() + bucket.name.len() + key.len());
    encode_storage_key(bucket, key, &mut storage_key);
    storage_key
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
