//! The state of the work on copies that requests do not need.
//!
//! What it is not: what requests note, and what must outlive the process, is in the engine
//! ([`Transfers`]). Everything here lives in memory, and begins anew with each start.
//!
//! [`Transfers`]: ombak_kv::repair_host::Transfers

use crate::Host;
use crate::exchange::Exchanges;
use crate::index_repair::IndexRepair;
use crate::orders::{Comparisons, Orders};
use crate::progress::Progress;
use crate::throttle::Throttle;
use ombak_kv::repair_host::RepairHost;
use ombak_kv::{ClassId, TransferConfig};
use ombak_runtime::Runtime;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The state of the work of one node. It knows no engine: whoever calls names the host.
pub(crate) struct Work {
    pub(crate) orders: Orders,
    /// For each class that is being filled: the primaries with which it was compared.
    pub(crate) compared: Mutex<BTreeMap<ClassId, Comparisons>>,
    pub(crate) throttle: Throttle,
    pub(crate) progress: Arc<Progress>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) concurrency: AtomicUsize,
    foreign_bytes_max: u64,
    gives: AtomicBool,
    takes: AtomicBool,
    /// Whether this node hands back what it holds for others. A node that joins does not, until
    /// its join is committed.
    pub(crate) hands_back: AtomicBool,
    /// When a copy was refused last because a disk is full.
    pub(crate) refused_for_space_at: Mutex<Option<Instant>>,
    pub(crate) is_working: AtomicBool,
    pub(crate) is_reaping: AtomicBool,
    /// The exchanges of this node, if they were started.
    pub(crate) exchanges: OnceLock<Arc<Exchanges>>,
    /// The repair of index entries.
    pub(crate) index_repair: Arc<IndexRepair>,
}

impl Work {
    pub(crate) fn new(host: &dyn RepairHost) -> Self {
        let (config, runtime) = (host.transfer_config(), host.runtime().clone());
        Self {
            orders: Orders::default(),
            compared: Mutex::default(),
            throttle: Throttle::new(runtime.clone(), config.bytes_per_second),
            progress: Arc::default(),
            runtime,
            concurrency: AtomicUsize::new(config.concurrency),
            foreign_bytes_max: config.foreign_bytes_max,
            gives: AtomicBool::new(config.gives),
            takes: AtomicBool::new(config.takes),
            hands_back: AtomicBool::new(true),
            refused_for_space_at: Mutex::default(),
            is_working: AtomicBool::new(false),
            is_reaping: AtomicBool::new(false),
            exchanges: OnceLock::new(),
            index_repair: Arc::default(),
        }
    }

    /// Sets whether this node pushes copies, and whether it takes those that others push. What must
    /// be pushed is noted nevertheless. Work that is under way ends at its next push.
    pub(crate) fn set_enabled(&self, host: &Host, gives: bool, takes: bool) {
        self.gives.store(gives, Ordering::SeqCst);
        self.takes.store(takes, Ordering::SeqCst);
        host.transfers().retry_at_once();
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
    pub(crate) fn set_concurrency(&self, host: &Host, concurrency: usize) {
        self.concurrency.store(concurrency, Ordering::Relaxed);
        host.transfers().wake();
    }

    pub(crate) fn takes_pushes(&self) -> bool {
        self.takes.load(Ordering::SeqCst)
    }

    pub(crate) fn gives_pushes(&self) -> bool {
        self.gives.load(Ordering::SeqCst)
    }

    /// Sets whether this node hands back anything at all.
    pub(crate) fn set_hands_back(&self, host: &Host, hands_back: bool) {
        self.hands_back.store(hands_back, Ordering::SeqCst);
        host.transfers().wake();
    }

    /// Whether copies can be brought to a node.
    pub(crate) fn is_reachable(&self, host: &dyn RepairHost, node: NodeId) -> bool {
        host.peers().is_up(node) || host.transfers().has_returned(node)
    }
}
