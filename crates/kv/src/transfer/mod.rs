//! What this node knows of copies that do not lie where they belong, and of classes that are not
//! full (docs/design/replication.md §1, 2, 4).
//!
//! What it is: the state behind the work of the crate `ombak-repair`, as far as requests and
//! changes of the placement need it, or change it. `foreign` counts what this node holds for
//! others: each copy that is stored is counted. `owed` knows which peers missed writes: each put
//! notes them. `classes` knows which replicas may lack something: each read that finds nothing
//! asks. `fullness`, `marks` and `doubt` are what exchanges go by, and `losses` what follows when a
//! store has lost something. `set_aside` keeps what restored stores held out of everything. `roles`
//! and `change` know which classes this node gets and gives while the ring changes. `other_ways`
//! knows which versions are left to exchanges, and `empty_at` when this node held nothing of a
//! class for others. `proofs` knows how far the proofs of homes are, because adopting a placement
//! depends on it. `told` keeps what the stores of other nodes had on their disks, and finds stores
//! of this node that were set back. `checkpoint` saves what must outlive the process. The threads
//! that answer other nodes are here, because they end before the stores close.
//!
//! What it is not: it asks no other node, moves no copy, and starts no work. It decides nothing
//! about quorums and reaps nothing. What only the work needs (orders, limits, progress) is in
//! `ombak-repair`, which this crate does not know.
//!
//! Invariants:
//! * Everything goes by class, never by partition alone.
//! * A mark is cleared only for what was proved after the work on it began.
//! * What a restored store held at its start counts as absent until it is taken back.

mod change;
mod checkpoint;
mod classes;
mod doubt;
mod empty_at;
mod foreign;
mod fullness;
mod joining_store;
mod losses;
mod marks;
mod other_ways;
mod owed;
mod proofs;
mod roles;
mod set_aside;
mod state_file;
mod told;

pub use classes::{Classes, FillReason, Filling};
pub use doubt::Doubt;
pub use empty_at::{EmptyAt, EmptyStore};
pub use foreign::{Amount, FoldBegin, ForeignCopy, ForeignData, UNKNOWN_N};
pub use fullness::Fullness;
pub use marks::{Known, Marks, PeerStore, SyncMarks, Towards};
pub use other_ways::{DroppedFile, OtherWays};
pub use owed::{AwaitedReplicas, Owed, OwedMarks};
pub use proofs::{Asked, Comparison, ProofObstacle, Proofs};
pub use roles::{is_of_one_ring, is_to_be_full};
pub use set_aside::SetAside;
pub use told::{SetBack, ToldSeqs};

use crate::config::KvConfig;
use crate::open_error::OpenError;
use crate::partition::{Partition, PartitionTable};
use checkpoint::Checkpoint;
use ombak_ring::placement::{HomePlacement, Placement};
use ombak_runtime::{Asker, FairPool, FairPoolConfig, PAUSE_MAX_OF_TRANSFERS, Pool, Runtime, Tenant, Waited};
use ombak_types::{Error, NodeId};
use parking_lot::Mutex;
use state_file::StateFile;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use told::OwnStores;

/// Threads that read, compare, store and remove a bounded number of versions for this work. They
/// are separate, so that it does not delay requests.
const THREADS: usize = 2;
/// Maximum number of jobs that wait for these threads. Another node whose question finds no room
/// asks it again later.
const JOBS_MAX: usize = 1_000;
/// How long a node that has asked what this node holds for it counts as up. By then failure
/// detection knows it.
const RETURNED_FOR: Duration = Duration::from_secs(2);

/// What this node knows of copies that do not lie where they belong.
pub struct Transfers {
    /// What this node holds for others.
    pub foreign: ForeignData,
    /// Which peers missed writes.
    pub owed: Arc<OwedMarks>,
    /// Which classes are full.
    pub classes: Classes,
    /// What restored stores held.
    pub set_aside: SetAside,
    /// The tokens of classes that are full.
    pub fullness: Fullness,
    /// What of this node was included at other primaries, and what of theirs here.
    pub marks: SyncMarks,
    /// Up to which seqs copies are in doubt.
    pub doubt: Doubt,
    /// Which versions leave their stores by exchanges alone.
    pub other_ways: OtherWays,
    /// Up to which seqs this node held nothing of classes of which it is no primary.
    pub empty_at: EmptyAt,
    /// How far the proofs of homes that are changing are.
    pub proofs: Proofs,
    /// What the stores of other nodes were known to have on their disks.
    pub told: ToldSeqs,
    /// What the stores of this node were at its start.
    pub(crate) own_stores: OwnStores,
    /// The placement by which this node has its classes; `None` if it does not know.
    pub(crate) adopted: Mutex<Option<Placement>>,
    /// The placement in force, by which it goes; `None` before the first one.
    pub(crate) in_force: Mutex<Option<Placement>>,
    pub(crate) checkpoint: Checkpoint,
    /// Threads for a bounded number of versions.
    pub pool: Pool,
    /// Threads for walks over all keys of a partition. They are separate again: a walk over a large
    /// store may take minutes, and comparisons of other nodes wait for 30 s only.
    pub fold_pool: Pool,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Whether what has failed is to be tried again at once.
    retries_at_once: AtomicBool,
    is_stopped: AtomicBool,
    /// Nodes that have asked what this node holds for them, and when. They count as up for a while,
    /// whatever failure detection still says.
    returned: Mutex<BTreeMap<NodeId, Instant>>,
    work: Notify,
}

/// The threads store copies under locks that requests need, and a cluster waits for them. So they
/// do not come behind requests: a cluster with busy processors then settled after 37 s in place of
/// 2 s. They pause in and after jobs that are not short.
fn transfer_pool(runtime: &Arc<dyn Runtime>) -> io::Result<Pool> {
    let config = FairPoolConfig {
        name: "ombak-transfer",
        threads: THREADS,
        jobs_max: JOBS_MAX,
        comes_behind: false,
        pause_max: PAUSE_MAX_OF_TRANSFERS,
        times: None,
    };
    Ok(FairPool::start(runtime, config)?.of(Tenant::default()))
}

impl Transfers {
    /// Loads what was saved. `partitions` are open already. Walks run on `fold_pool`.
    pub(crate) fn open(config: &KvConfig, partitions: &PartitionTable, fold_pool: Pool) -> Result<Self, OpenError> {
        let runtime = config.runtime.clone();
        let pool = transfer_pool(&runtime).map_err(|source| OpenError::System { what: "another thread", source })?;
        let file = StateFile::new(config.fs.clone(), &config.data_dir);
        let told = ToldSeqs::open(config.fs.clone(), &config.data_dir)
            .map_err(|source| OpenError::System { what: "the seqs that other nodes have told", source })?;
        let own_store = |number| Some(partitions.get(number)?.store().identity().store_id);
        let marks = SyncMarks::open(config.fs.clone(), &config.data_dir, partitions.ring_size(), own_store)?;
        let empty_at = EmptyAt::open(config.fs.clone(), &config.data_dir)?;
        let transfers = Self {
            foreign: ForeignData::new(partitions.ring_size(), config.transfer.foreign_bytes_max),
            owed: Arc::default(),
            classes: Classes::new(partitions.ring_size()),
            set_aside: SetAside::new(partitions),
            fullness: Fullness::default(),
            marks,
            doubt: Doubt::new(partitions.ring_size()),
            other_ways: OtherWays::default(),
            empty_at,
            proofs: Proofs::default(),
            told,
            own_stores: OwnStores::new(partitions),
            adopted: Mutex::default(),
            in_force: Mutex::default(),
            checkpoint: Checkpoint::new(file),
            pool,
            fold_pool,
            runtime,
            retries_at_once: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            returned: Mutex::default(),
            work: Notify::new(),
        };
        transfers.load(partitions)?;
        Ok(transfers)
    }

    /// Begins to store a copy here; what this returns is held until it is stored. The caller holds
    /// the lock of its key. Fails if this node is no primary of the class and holds too much for
    /// others.
    pub fn begin_copy<'a>(
        &'a self,
        partition: &'a Partition,
        n: u32,
        key: &'a [u8],
    ) -> Result<Option<ForeignCopy<'a>>, Error> {
        let Some((copy, was_clean)) = self.foreign.begin_copy(partition, n, key)? else { return Ok(None) };
        if was_clean {
            self.wake();
        }
        Ok(Some(copy))
    }

    /// Begins a put of a class that this node coordinates.
    pub fn await_replicas(&self, home: HomePlacement<'_>, here: NodeId, n: u32) -> Option<AwaitedReplicas> {
        self.owed.await_replicas(home, here, n)
    }

    /// Tries at once what has failed and waits for its next try.
    pub fn retry_at_once(&self) {
        self.retries_at_once.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Notes that a node is there again and waits for what this node holds for it.
    pub(crate) fn note_returned(&self, node: NodeId) {
        let now = self.runtime.now();
        let mut returned = self.returned.lock();
        let is_known = returned.insert(node, now).is_some_and(|before| now < before + RETURNED_FOR);
        drop(returned);
        if !is_known {
            self.retry_at_once();
        }
    }

    /// Whether a node has just asked what this node holds for it.
    pub fn has_returned(&self, node: NodeId) -> bool {
        let returned = self.returned.lock();
        returned.get(&node).is_some_and(|at| self.runtime.now() < *at + RETURNED_FOR)
    }

    /// Lets the worker look for work at once.
    pub fn wake(&self) {
        self.work.notify_one();
    }

    /// Whether somebody wants what has failed to be tried again at once. The wish is forgotten with
    /// the answer.
    pub fn takes_retry(&self) -> bool {
        self.retries_at_once.swap(false, Ordering::SeqCst)
    }

    /// Waits until there may be work. One waits at a time.
    pub async fn woken(&self) {
        self.work.notified().await;
    }

    /// Whether the engine closes, so that no work may begin.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Ends the work, and saves the marks. No put is under way any more.
    pub(crate) fn stop(&self, partitions: &PartitionTable) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake();
        self.fold_pool.stop();
        self.pool.stop();
        self.save_at_close(partitions);
    }

    /// Answers a question of another node about a bounded number of versions, on a thread that may
    /// wait. It is not answered if the other node has given up by then.
    pub(crate) async fn answer<T: Send + 'static>(
        &self,
        asker: Asker,
        answer: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.pool.run_for(asker, |_| answer()).await?
    }

    /// Walks over a partition for another node, on a thread for such walks, as long as the other
    /// node waits for it.
    pub async fn walk<T: Send + 'static>(
        &self,
        asker: Asker,
        walk: impl FnOnce(&Waited<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.fold_pool.run_for(asker, walk).await?
    }
}
