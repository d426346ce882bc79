//! What is being transferred at this moment, for `transfers`.

use crate::counts::TransferCounts;
use ombak_kv::ClassId;
use ombak_types::NodeId;
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why copies are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferKind {
    /// This node holds them for others (hinted handoff).
    HandBack,
    /// The target missed writes.
    Owed,
    /// The target, or this node, does not know yet that it holds everything.
    Fill,
    /// An exchange has found that the target lacks them.
    Exchange,
    /// The target is to hold the class when its home has changed (ownership handoff).
    Ownership,
}

/// One transfer that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Why.
    pub kind: TransferKind,
    /// The class of the copies.
    pub class: ClassId,
    /// The node that gets them.
    pub target: NodeId,
    /// The number of keys that were compared so far.
    pub keys: u64,
    /// The number of keys that are compared until it ends, about, if that is known.
    pub keys_total: Option<u64>,
    /// The bytes that were pushed so far.
    pub bytes: u64,
    /// When it began, by the wall clock.
    pub since: UnixMicros,
}

#[derive(Default)]
struct Table {
    next: u64,
    active: BTreeMap<u64, (Transfer, Arc<Counters>)>,
}

#[derive(Default)]
struct Counters {
    keys: AtomicU64,
    /// 0 if it is not known.
    keys_total: AtomicU64,
    bytes: AtomicU64,
}

/// The transfers of this node.
#[derive(Default)]
pub(crate) struct Progress {
    table: Mutex<Table>,
    pub(crate) counts: TransferCounts,
}

/// The place of one transfer in the table; it leaves the table when this is dropped.
pub(crate) struct Tracked {
    progress: Arc<Progress>,
    number: u64,
    kind: TransferKind,
    counters: Arc<Counters>,
}

impl Progress {
    pub(crate) fn begin(
        self: &Arc<Self>,
        kind: TransferKind,
        class: ClassId,
        target: NodeId,
        now: UnixMicros,
    ) -> Tracked {
        let counters = Arc::<Counters>::default();
        let mut table = self.table.lock();
        let number = table.next;
        table.next += 1;
        let transfer = Transfer { kind, class, target, keys: 0, keys_total: None, bytes: 0, since: now };
        table.active.insert(number, (transfer, counters.clone()));
        Tracked { progress: self.clone(), number, kind, counters }
    }

    /// All transfers, in the order in which they began.
    pub(crate) fn list(&self) -> Vec<Transfer> {
        let table = self.table.lock();
        let read = |(transfer, counters): &(Transfer, Arc<Counters>)| {
            let (keys, bytes) = (counters.keys.load(Ordering::Relaxed), counters.bytes.load(Ordering::Relaxed));
            let keys_total = Some(counters.keys_total.load(Ordering::Relaxed)).filter(|total| *total > 0);
            Transfer { keys, keys_total, bytes, ..*transfer }
        };
        table.active.values().map(read).collect()
    }
}

impl Tracked {
    /// Notes how many keys will be compared, about.
    pub(crate) fn expects(&self, keys: u64) {
        self.counters.keys_total.store(keys, Ordering::Relaxed);
    }

    pub(crate) fn compared(&self, keys: u64) {
        self.counters.keys.fetch_add(keys, Ordering::Relaxed);
    }

    pub(crate) fn pushed(&self, keys: u64, bytes: u64) {
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.progress.counts.pushed(self.kind, keys, bytes);
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.progress.table.lock().active.remove(&self.number);
    }
}
