//! The counters and histograms of a node.

use crate::feature::{Feature, Figure};
use crate::histogram::Histogram;
use crate::shard::Sum;
use crate::spiral::{Spiral, WINDOW_SECS, WINDOWS};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a copy needed repair after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadRepair {
    /// A primary did not have the key.
    PrimaryNotFound,
    /// A primary had an older version.
    PrimaryOutOfDate,
    /// A fallback did not have the key.
    FallbackNotFound,
    /// A fallback had an older version.
    FallbackOutOfDate,
}

/// The counters and histograms of a node, under Riak's names (docs/riak/semantics.md §14). Times
/// are in microseconds, sizes in bytes. Any thread may record; recording costs nanoseconds.
#[derive(Debug)]
#[allow(missing_docs, reason = "private fields carry Riak's names")]
pub struct Stats {
    last_rotation: Mutex<Instant>,
    node_gets: Spiral,
    node_get_fsm_errors: Spiral,
    node_get_fsm_rejected: Spiral,
    node_get_fsm_time: Histogram,
    node_get_fsm_siblings: Histogram,
    node_get_fsm_objsize: Histogram,
    node_get_fsm_active: Sum,
    node_puts: Spiral,
    node_put_fsm_rejected: Spiral,
    node_put_fsm_time: Histogram,
    node_put_fsm_active: Sum,
    vnode_gets: Spiral,
    vnode_get_fsm_time: Histogram,
    vnode_heads: Spiral,
    vnode_head_fsm_time: Histogram,
    vnode_puts: Spiral,
    vnode_put_fsm_time: Histogram,
    write_once_puts: Spiral,
    write_once_put_time: Histogram,
    write_once_put_objsize: Histogram,
    write_once_merge: Sum,
    object_merge: Spiral,
    object_merge_time: Histogram,
    read_repairs: Spiral,
    skipped_read_repairs: Spiral,
    read_repair_kinds: [Spiral; 4],
    list_fsm_create: Spiral,
    list_fsm_create_error: Spiral,
    list_fsm_active: Sum,
    index_fsm_create: Sum,
    index_fsm_create_error: Sum,
    index_fsm_complete: Sum,
    index_fsm_active: Sum,
    index_fsm_results: Histogram,
    index_fsm_time: Histogram,
    vnode_index_reads: Spiral,
    vnode_index_writes: Spiral,
    vnode_index_writes_postings: Spiral,
    vnode_index_deletes: Spiral,
    vnode_index_deletes_postings: Spiral,
    pbc_connects: Spiral,
    pbc_active: Sum,
    precommit_fail: Sum,
    postcommit_fail: Sum,
    features: RwLock<Vec<Arc<dyn Feature>>>,
}

/// A guard that counts a request or a connection as active until the guard is dropped.
#[derive(Debug)]
#[must_use = "what it stands for counts as under way until it is dropped"]
pub struct ActiveGuard<'a>(&'a Sum);

impl<'a> ActiveGuard<'a> {
    /// Counts one more in `active`.
    pub fn new(active: &'a Sum) -> Self {
        active.add(1);
        Self(active)
    }
}

impl Drop for ActiveGuard<'_> {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}

impl Stats {
    /// Creates statistics in which everything is zero. The first window begins at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            last_rotation: Mutex::new(now),
            node_gets: Spiral::default(),
            node_get_fsm_errors: Spiral::default(),
            node_get_fsm_rejected: Spiral::default(),
            node_get_fsm_time: Histogram::default(),
            node_get_fsm_siblings: Histogram::default(),
            node_get_fsm_objsize: Histogram::default(),
            node_get_fsm_active: Sum::default(),
            node_puts: Spiral::default(),
            node_put_fsm_rejected: Spiral::default(),
            node_put_fsm_time: Histogram::default(),
            node_put_fsm_active: Sum::default(),
            vnode_gets: Spiral::default(),
            vnode_get_fsm_time: Histogram::default(),
            vnode_heads: Spiral::default(),
            vnode_head_fsm_time: Histogram::default(),
            vnode_puts: Spiral::default(),
            vnode_put_fsm_time: Histogram::default(),
            write_once_puts: Spiral::default(),
            write_once_put_time: Histogram::default(),
            write_once_put_objsize: Histogram::default(),
            write_once_merge: Sum::default(),
            object_merge: Spiral::default(),
            object_merge_time: Histogram::default(),
            read_repairs: Spiral::default(),
            skipped_read_repairs: Spiral::default(),
            read_repair_kinds: Default::default(),
            list_fsm_create: Spiral::default(),
            list_fsm_create_error: Spiral::default(),
            list_fsm_active: Sum::default(),
            index_fsm_create: Sum::default(),
            index_fsm_create_error: Sum::default(),
            index_fsm_complete: Sum::default(),
            index_fsm_active: Sum::default(),
            index_fsm_results: Histogram::default(),
            index_fsm_time: Histogram::default(),
            vnode_index_reads: Spiral::default(),
            vnode_index_writes: Spiral::default(),
            vnode_index_writes_postings: Spiral::default(),
            vnode_index_deletes: Spiral::default(),
            vnode_index_deletes_postings: Spiral::default(),
            pbc_connects: Spiral::default(),
            pbc_active: Sum::default(),
            precommit_fail: Sum::default(),
            postcommit_fail: Sum::default(),
            features: RwLock::default(),
        }
    }

    /// Shows the numbers of a feature from now on. Each feature attaches once.
    pub fn attach(&self, feature: Arc<dyn Feature>) {
        self.features.write().push(feature);
    }

    /// Goes through what the attached features count.
    pub fn each_figure(&self, mut see: impl FnMut(Figure<'_>)) {
        for feature in self.features.read().iter() {
            feature.figures().into_iter().for_each(&mut see);
        }
    }

    /// Advances the windows of the last minute. Call it about every second; a late call makes up
    /// for missed calls.
    pub fn tick(&self, now: Instant) {
        let mut last = self.last_rotation.lock();
        let windows = now.saturating_duration_since(*last).as_secs() / WINDOW_SECS;
        if windows == 0 {
            return;
        }
        *last += Duration::from_secs(windows * WINDOW_SECS);
        let windows = usize::try_from(windows).unwrap_or(usize::MAX).min(WINDOWS + 1);
        self.spirals().iter().for_each(|(_, s)| s.rotate(windows));
        self.read_repair_kinds.iter().for_each(|s| s.rotate(windows));
        self.histograms().iter().for_each(|(_, h)| h.rotate(windows));
        self.each_figure(|figure| figure.rotate(windows));
    }

    /// Records a get that was answered, with the number of siblings and the size of the object;
    /// both are 0 when the key was not found.
    pub fn node_get(&self, duration_us: u64, siblings: u64, objsize_bytes: u64) {
        self.node_gets.add(1);
        self.node_get_fsm_time.record(duration_us);
        if siblings > 0 {
            self.node_get_fsm_siblings.record(siblings);
            self.node_get_fsm_objsize.record(objsize_bytes);
        }
    }

    /// Records a get that failed.
    pub fn node_get_error(&self) {
        self.node_get_fsm_errors.add(1);
    }

    /// Records a get that was refused because too many requests were active.
    pub fn node_get_rejected(&self) {
        self.node_get_fsm_rejected.add(1);
    }

    /// Counts a get as active while the guard lives.
    pub fn node_get_active(&self) -> ActiveGuard<'_> {
        ActiveGuard::new(&self.node_get_fsm_active)
    }

    /// Records a put that was answered.
    pub fn node_put(&self, duration_us: u64) {
        self.node_puts.add(1);
        self.node_put_fsm_time.record(duration_us);
    }

    /// Records a put that was refused because too many requests were active.
    pub fn node_put_rejected(&self) {
        self.node_put_fsm_rejected.add(1);
    }

    /// Counts a put as active while the guard lives.
    pub fn node_put_active(&self) -> ActiveGuard<'_> {
        ActiveGuard::new(&self.node_put_fsm_active)
    }

    /// Records that a partition read a key.
    pub fn vnode_get(&self, duration_us: u64) {
        self.vnode_gets.add(1);
        self.vnode_get_fsm_time.record(duration_us);
    }

    /// Records that a partition read a key's clock and metadata.
    pub fn vnode_head(&self, duration_us: u64) {
        self.vnode_heads.add(1);
        self.vnode_head_fsm_time.record(duration_us);
    }

    /// Records that a partition wrote a key.
    pub fn vnode_put(&self, duration_us: u64) {
        self.vnode_puts.add(1);
        self.vnode_put_fsm_time.record(duration_us);
    }

    /// Records a put to a `write_once` bucket that was answered.
    pub fn write_once_put(&self, duration_us: u64, objsize_bytes: u64) {
        self.write_once_puts.add(1);
        self.write_once_put_time.record(duration_us);
        self.write_once_put_objsize.record(objsize_bytes);
    }

    /// Records that a `write_once` key already existed and two values had to be merged.
    pub fn write_once_merged(&self) {
        self.write_once_merge.add(1);
    }

    /// Records that two copies of an object were merged.
    pub fn object_merged(&self, duration_us: u64) {
        self.object_merge.add(1);
        self.object_merge_time.record(duration_us);
    }

    /// Records that a copy was repaired after a read.
    pub fn read_repair(&self, kind: ReadRepair) {
        self.read_repairs.add(1);
        self.read_repair_kinds[kind as usize].add(1);
    }

    /// Records a repair that was skipped because too many repairs were active.
    pub fn read_repair_skipped(&self) {
        self.skipped_read_repairs.add(1);
    }

    /// Records that a listing began; it is active until [`Self::list_ended`].
    pub fn list_started(&self) {
        self.list_fsm_create.add(1);
        self.list_fsm_active.add(1);
    }

    /// Records that a listing ended, with success or not.
    pub fn list_ended(&self) {
        self.list_fsm_active.subtract(1);
    }

    /// Records that a listing could not begin.
    pub fn list_failed(&self) {
        self.list_fsm_create_error.add(1);
    }

    /// Records that a partition stored a version that has index entries or replaces some, with the
    /// number of entries that are new and of those that are gone.
    pub fn vnode_index_write(&self, added: u64, removed: u64) {
        self.vnode_index_writes.add(1);
        self.vnode_index_writes_postings.add(added);
        self.vnode_index_deletes_postings.add(removed);
    }

    /// Records that a partition stored a tombstone in place of a version with this number of index
    /// entries.
    pub fn vnode_index_delete(&self, removed: u64) {
        self.vnode_index_deletes.add(1);
        self.vnode_index_deletes_postings.add(removed);
    }

    /// Records that an index query over `partitions` partitions began; it is active until
    /// [`Self::query_ended`].
    pub fn query_started(&self, partitions: usize) {
        self.index_fsm_create.add(1);
        self.index_fsm_active.add(1);
        self.vnode_index_reads.add(partitions as u64);
    }

    /// Records that an index query ended. A complete query adds its results and its time.
    pub fn query_ended(&self, is_complete: bool, results: u64, duration_us: u64) {
        self.index_fsm_active.subtract(1);
        if is_complete {
            self.index_fsm_complete.add(1);
            self.index_fsm_results.record(results);
            self.index_fsm_time.record(duration_us);
        }
    }

    /// Records that an index query could not begin.
    pub fn query_failed(&self) {
        self.index_fsm_create_error.add(1);
    }

    /// Records that a Protocol Buffers client connected; it counts as connected while the guard
    /// lives.
    pub fn pbc_connected(&self) -> ActiveGuard<'_> {
        self.pbc_connects.add(1);
        ActiveGuard::new(&self.pbc_active)
    }

    /// Records that a pre-commit hook refused a write.
    pub fn precommit_failed(&self) {
        self.precommit_fail.add(1);
    }

    /// Records that `hooks` post-commit hooks of a write could not run.
    pub fn postcommit_failed(&self, hooks: usize) {
        if hooks > 0 {
            self.postcommit_fail.add(hooks as u64);
        }
    }

    /// The counters that have a value for the last minute, under Riak's names.
    pub fn spirals(&self) -> [(&'static str, &Spiral); 20] {
        [
            ("node_gets", &self.node_gets),
            ("node_get_fsm_errors", &self.node_get_fsm_errors),
            ("node_get_fsm_rejected", &self.node_get_fsm_rejected),
            ("node_puts", &self.node_puts),
            ("node_put_fsm_rejected", &self.node_put_fsm_rejected),
            ("vnode_gets", &self.vnode_gets),
            ("vnode_heads", &self.vnode_heads),
            ("vnode_puts", &self.vnode_puts),
            ("write_once_puts", &self.write_once_puts),
            ("object_merge", &self.object_merge),
            ("read_repairs", &self.read_repairs),
            ("skipped_read_repairs", &self.skipped_read_repairs),
            ("list_fsm_create", &self.list_fsm_create),
            ("list_fsm_create_error", &self.list_fsm_create_error),
            ("vnode_index_reads", &self.vnode_index_reads),
            ("vnode_index_writes", &self.vnode_index_writes),
            ("vnode_index_writes_postings", &self.vnode_index_writes_postings),
            ("vnode_index_deletes", &self.vnode_index_deletes),
            ("vnode_index_deletes_postings", &self.vnode_index_deletes_postings),
            ("pbc_connects", &self.pbc_connects),
        ]
    }

    /// The histograms, under Riak's names.
    pub fn histograms(&self) -> [(&'static str, &Histogram); 12] {
        [
            ("node_get_fsm_time", &self.node_get_fsm_time),
            ("node_get_fsm_siblings", &self.node_get_fsm_siblings),
            ("node_get_fsm_objsize", &self.node_get_fsm_objsize),
            ("node_put_fsm_time", &self.node_put_fsm_time),
            ("vnode_get_fsm_time", &self.vnode_get_fsm_time),
            ("vnode_head_fsm_time", &self.vnode_head_fsm_time),
            ("vnode_put_fsm_time", &self.vnode_put_fsm_time),
            ("write_once_put_time", &self.write_once_put_time),
            ("write_once_put_objsize", &self.write_once_put_objsize),
            ("object_merge_time", &self.object_merge_time),
            ("index_fsm_results", &self.index_fsm_results),
            ("index_fsm_time", &self.index_fsm_time),
        ]
    }

    /// Gauges, and counters without a value for the last minute, under Riak's names.
    pub fn gauges_and_counters(&self) -> [(&'static str, u64); 11] {
        [
            ("node_get_fsm_active", self.node_get_fsm_active.get()),
            ("node_put_fsm_active", self.node_put_fsm_active.get()),
            ("list_fsm_active", self.list_fsm_active.get()),
            ("index_fsm_active", self.index_fsm_active.get()),
            ("index_fsm_create", self.index_fsm_create.get()),
            ("index_fsm_create_error", self.index_fsm_create_error.get()),
            ("index_fsm_complete", self.index_fsm_complete.get()),
            ("pbc_active", self.pbc_active.get()),
            ("precommit_fail", self.precommit_fail.get()),
            ("postcommit_fail", self.postcommit_fail.get()),
            ("write_once_merge", self.write_once_merge.get()),
        ]
    }

    /// All numbers under the names and suffixes of Riak's `/stats`, except the kinds of read
    /// repairs.
    pub fn numbers(&self) -> Vec<(String, u64)> {
        let mut numbers = Vec::new();
        for (name, spiral) in self.spirals() {
            numbers.push((name.to_owned(), spiral.last_minute()));
            numbers.push((format!("{name}_total"), spiral.total()));
        }
        for (name, histogram) in self.histograms() {
            numbers.extend(histogram.numbers(name));
        }
        numbers.extend(self.gauges_and_counters().map(|(name, value)| (name.to_owned(), value)));
        self.each_figure(|figure| figure.add_numbers(&mut numbers));
        numbers
    }

    /// The repairs after reads by what was wrong with the copy, under the middle part of Riak's
    /// names.
    pub fn read_repair_kinds(&self) -> impl Iterator<Item = (&'static str, &Spiral)> {
        // The names are in the order of `ReadRepair`.
        ["primary_notfound", "primary_outofdate", "fallback_notfound", "fallback_outofdate"]
            .into_iter()
            .zip(&self.read_repair_kinds)
    }
}
