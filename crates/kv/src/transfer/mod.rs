//! What this node knows of copies that do not lie where they belong, and of classes that are not
//! full (docs/design/replication.md §1, 2, 4).
//!
//! What it is: the state behind the work of `repair`, as far as requests need it, or change it.
//! `foreign` counts what this node holds for others. `owed` knows which peers missed writes.
//! `classes` knows which replicas may lack something. `set_aside` keeps what restored stores held
//! out of everything. `roles` and `change` know which classes this node gets and gives while the
//! ring changes, `proofs` and `orders` how far the work on that is, and `checkpoint` saves what
//! must outlive the process.
//!
//! What it is not: it asks no other node, and moves no copy. It decides nothing about quorums and
//! reaps nothing.
//!
//! Invariants:
//! * Everything goes by class, never by partition alone.
//! * A mark is cleared only for what was proved after the work on it began.
//! * What a restored store held at its start counts as absent until it is taken back.

mod change;
mod checkpoint;
mod classes;
mod counts;
mod foreign;
mod key_choice;
mod orders;
mod owed;
mod progress;
mod proofs;
mod ranges;
mod roles;
mod set_aside;
mod state_file;
mod throttle;

pub use classes::FillReason;
pub use foreign::Amount;
pub(crate) use foreign::UNKNOWN_N;
pub use key_choice::KeyChoice;
pub(crate) use orders::Comparisons;
pub(crate) use owed::AwaitedReplicas;
pub(crate) use progress::Tracked;
pub use progress::{Transfer, TransferKind};
pub(crate) use proofs::Asked;
pub use proofs::ProofObstacle;
pub(crate) use ranges::Ranges;
pub(crate) use roles::is_of_one_ring;

use crate::config::{KvConfig, TransferConfig};
use crate::open_error::OpenError;
use crate::partition::{Partition, PartitionTable};
use crate::replica::ClassId;
use checkpoint::Checkpoint;
use classes::Classes;
use foreign::{ForeignCopy, ForeignData};
use ombak_ring::placement::{HomePlacement, Placement};
use ombak_runtime::{Asker, Pool, Runtime, Waited};
use ombak_types::{Error, NodeId};
use orders::Orders;
use owed::OwedMarks;
use parking_lot::Mutex;
use progress::Progress;
use proofs::Proofs;
use set_aside::SetAside;
use state_file::StateFile;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use throttle::Throttle;
use tokio::sync::Notify;

/// Threads that read, compare, store and remove a bounded number of versions for this work. They
/// are separate, so that it does not delay requests.
const THREADS: usize = 2;
/// Maximum number of jobs that wait for these threads. Another node whose question finds no room
/// asks it again later.
const JOBS_MAX: usize = 1_000;
/// How long a node that has asked what this node holds for it counts as up. By then failure
/// detection knows it.
const RETURNED_FOR: Duration = Duration::from_secs(2);
/// Threads that walk over all keys of a partition. They are separate again: a walk over a large
/// store may take minutes, and comparisons of other nodes wait for 30 s only.
const FOLD_THREADS: usize = 2;
/// Maximum number of walks that wait for these threads.
const FOLDS_MAX: usize = 256;

/// What this node knows of copies that do not lie where they belong, and the work on them.
pub(crate) struct Transfers {
    pub(crate) foreign: ForeignData,
    pub(crate) owed: Arc<OwedMarks>,
    pub(crate) classes: Classes,
    pub(crate) set_aside: SetAside,
    pub(crate) orders: Orders,
    pub(crate) proofs: Proofs,
    /// The placement by which this node has its classes; `None` if it does not know.
    pub(crate) adopted: Mutex<Option<Placement>>,
    /// The placement in force, by which it goes; `None` before the first one.
    pub(crate) in_force: Mutex<Option<Placement>>,
    /// For each class that is being filled: the primaries with which it was compared.
    pub(crate) compared: Mutex<BTreeMap<ClassId, Comparisons>>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) foreign_bytes_max: u64,
    pub(crate) throttle: Throttle,
    pub(crate) progress: Arc<Progress>,
    pub(crate) pool: Pool,
    pub(crate) fold_pool: Pool,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) concurrency: AtomicUsize,
    pub(crate) gives: AtomicBool,
    pub(crate) takes: AtomicBool,
    /// Whether this node hands back what it holds for others. A node that joins does not, until
    /// its join is committed.
    pub(crate) hands_back: AtomicBool,
    /// When a copy was refused last because a disk is full.
    pub(crate) refused_for_space_at: Mutex<Option<Instant>>,
    /// Whether what has failed is to be tried again at once.
    pub(crate) retries_at_once: AtomicBool,
    pub(crate) is_working: AtomicBool,
    pub(crate) is_stopped: AtomicBool,
    /// Nodes that have asked what this node holds for them, and when. They count as up for a while,
    /// whatever failure detection still says.
    pub(crate) returned: Mutex<BTreeMap<NodeId, Instant>>,
    pub(crate) work: Notify,
}

impl Transfers {
    /// Loads what was saved. `partitions` are open already.
    pub(crate) fn open(config: &KvConfig, partitions: &PartitionTable) -> Result<Self, OpenError> {
        let runtime = config.runtime.clone();
        let pool = |name, threads, jobs_max| {
            Pool::start(&runtime, name, threads, jobs_max)
                .map_err(|source| OpenError::System { what: "another thread", source })
        };
        let fold_pool = pool("ombak-walk", FOLD_THREADS, FOLDS_MAX)?;
        let pool = pool("ombak-transfer", THREADS, JOBS_MAX)?;
        let file = StateFile::new(config.fs.clone(), &config.data_dir);
        let transfers = Self {
            foreign: ForeignData::new(partitions.ring_size(), config.transfer.foreign_bytes_max),
            owed: Arc::default(),
            classes: Classes::new(partitions.ring_size()),
            set_aside: SetAside::new(partitions),
            orders: Orders::default(),
            proofs: Proofs::default(),
            adopted: Mutex::default(),
            in_force: Mutex::default(),
            compared: Mutex::default(),
            checkpoint: Checkpoint::new(file),
            foreign_bytes_max: config.transfer.foreign_bytes_max,
            throttle: Throttle::new(runtime.clone(), config.transfer.bytes_per_second),
            progress: Arc::default(),
            pool,
            fold_pool,
            runtime,
            concurrency: AtomicUsize::new(config.transfer.concurrency),
            gives: AtomicBool::new(config.transfer.gives),
            takes: AtomicBool::new(config.transfer.takes),
            hands_back: AtomicBool::new(true),
            refused_for_space_at: Mutex::default(),
            retries_at_once: AtomicBool::new(false),
            is_working: AtomicBool::new(false),
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
    pub(crate) fn begin_copy<'a>(
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
    pub(crate) fn await_replicas(&self, home: HomePlacement<'_>, here: NodeId, n: u32) -> Option<AwaitedReplicas> {
        self.owed.await_replicas(home, here, n)
    }

    /// Sets whether this node pushes copies, and whether it takes those that others push. What must
    /// be pushed is noted nevertheless. Work that is under way ends at its next push.
    pub(crate) fn set_enabled(&self, gives: bool, takes: bool) {
        self.gives.store(gives, Ordering::SeqCst);
        self.takes.store(takes, Ordering::SeqCst);
        self.retry_at_once();
    }

    /// Tries at once what has failed and waits for its next try.
    pub(crate) fn retry_at_once(&self) {
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
    pub(crate) fn has_returned(&self, node: NodeId) -> bool {
        let returned = self.returned.lock();
        returned.get(&node).is_some_and(|at| self.runtime.now() < *at + RETURNED_FOR)
    }

    /// The limits that are in force.
    pub(crate) fn config(&self) -> TransferConfig {
        TransferConfig {
            bytes_per_second: self.throttle.bytes_per_second(),
            concurrency: self.concurrency.load(Ordering::Relaxed),
            foreign_bytes_max: self.foreign_bytes_max,
            gives: self.gives_pushes(),
            takes: self.takes_pushes(),
        }
    }

    /// Sets how much is done at the same time. Work that is under way goes on.
    pub(crate) fn set_concurrency(&self, concurrency: usize) {
        self.concurrency.store(concurrency, Ordering::Relaxed);
        self.wake();
    }

    /// Sets the maximum of the bytes that are pushed in a second; 0: no limit.
    pub(crate) fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.throttle.set_bytes_per_second(bytes_per_second);
    }

    pub(crate) fn takes_pushes(&self) -> bool {
        self.takes.load(Ordering::SeqCst)
    }

    pub(crate) fn gives_pushes(&self) -> bool {
        self.gives.load(Ordering::SeqCst)
    }

    /// Lets the worker look for work at once.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
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
    pub(crate) async fn walk<T: Send + 'static>(
        &self,
        asker: Asker,
        walk: impl FnOnce(&Waited<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.fold_pool.run_for(asker, walk).await?
    }
}
