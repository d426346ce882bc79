//! The partitions that a node has open. The table changes while requests run.

use super::event_ids::ActorSource;
use super::partition::Partition;
use super::snapshots::WaitingHolders;
use super::unreadable_keys::UnreadableKeys;
use crate::hooks::{ValueKind, WriteObserver};
use crate::sums::SumsSetup;
use arc_swap::ArcSwapOption;
use ombak_runtime::Pool;
use ombak_storage::{BackendFactory, StorageError};
use ombak_types::{StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::{error, info};

/// For each home partition of the ring: its store, if this node has it open.
///
/// A request keeps the partition that it found until it ends. When the partition is closed
/// meanwhile, its store refuses further writes of the request; what the store acknowledged before
/// is durable.
pub struct PartitionTable {
    slots: Box<[ArcSwapOption<Partition>]>,
    backend: Arc<dyn BackendFactory>,
    actors: Arc<ActorSource>,
    observers: Vec<Arc<dyn WriteObserver>>,
    kinds: Vec<Arc<dyn ValueKind>>,
    /// Whether partitions remember where changes came from.
    remembers_origins: bool,
    /// What the stores of all partitions cannot read.
    unreadable_keys: Arc<UnreadableKeys>,
    /// Queries that wait for their clients with snapshots of these stores.
    snapshot_holders: Arc<WaitingHolders>,
    /// With what partitions keep sums of their classes, if they do.
    sums: Option<SumsSetup>,
    /// Whether partitions that keep sums can keep trees, too.
    keeps_trees: bool,
    /// Held while a partition is opened, closed or dropped.
    changes: Mutex<()>,
}

impl PartitionTable {
    /// A table of `ring_size` partitions, none of which is open.
    pub(crate) fn new(ring_size: u32, backend: Arc<dyn BackendFactory>, actors: Arc<ActorSource>) -> Self {
        let slots = (0..ring_size).map(|_| ArcSwapOption::empty()).collect();
        let (unreadable_keys, snapshot_holders) = (Arc::default(), Arc::default());
        let (observers, kinds) = (Vec::new(), Vec::new());
        let changes = Mutex::new(());
        let (remembers_origins, sums, keeps_trees) = (false, None, false);
        Self {
            slots,
            backend,
            actors,
            observers,
            kinds,
            remembers_origins,
            unreadable_keys,
            snapshot_holders,
            sums,
            keeps_trees,
            changes,
        }
    }

    /// Tells observers of each change in the partitions that are opened from now on.
    pub(crate) fn observed_by(self, observers: &[Arc<dyn WriteObserver>]) -> Self {
        Self { observers: observers.to_vec(), ..self }
    }

    /// Knows these kinds of values in the partitions that are opened from now on.
    pub(crate) fn with_kinds(self, kinds: &[Arc<dyn ValueKind>]) -> Self {
        Self { kinds: kinds.to_vec(), ..self }
    }

    /// Whether partitions that are opened from now on remember where changes came from, for
    /// consumers of the change feed.
    pub(crate) fn remembering_origins(self, remembers_origins: bool) -> Self {
        Self { remembers_origins, ..self }
    }

    /// Keeps sums of the classes in the partitions that are opened from now on.
    pub(crate) fn with_sums(self, sums: Option<SumsSetup>) -> Self {
        Self { sums, ..self }
    }

    /// Lets the partitions that are opened from now on keep trees of their classes, if they keep
    /// sums.
    pub(crate) fn with_trees(self, keeps_trees: bool) -> Self {
        Self { keeps_trees, ..self }
    }

    /// The keys that wait for a repair.
    pub fn unreadable_keys(&self) -> &Arc<UnreadableKeys> {
        &self.unreadable_keys
    }

    /// The queries that wait for their clients with snapshots of the stores.
    pub(crate) fn snapshot_holders(&self) -> &Arc<WaitingHolders> {
        &self.snapshot_holders
    }

    /// The number of partitions of the ring, whether they are open here or not.
    pub(crate) fn ring_size(&self) -> usize {
        self.slots.len()
    }

    /// A partition, if it is open.
    pub fn get(&self, number: u32) -> Option<Arc<Partition>> {
        self.slots.get(number as usize)?.load_full()
    }

    /// A partition, or the failure of a request that needs it.
    pub fn find(&self, number: u32) -> Result<Arc<Partition>, StoreFailure> {
        let closed = || format!("partition {number} is not open on this node");
        self.get(number).ok_or_else(|| StoreFailure::new(StoreFailureKind::Closed, closed()))
    }

    /// The partitions that are open at this moment, in the order of their numbers.
    pub fn all_open(&self) -> impl Iterator<Item = Arc<Partition>> + '_ {
        self.slots.iter().filter_map(ArcSwapOption::load_full)
    }

    /// Opens a partition, and creates its store if it has none. Does nothing if it is open. Fails
    /// while requests that found the partition before it was closed still use its store: the caller
    /// tries again.
    ///
    /// No epoch that was issued before is continued in it: the store may have lost its last events
    /// since this node closed it.
    pub(crate) fn open(&self, number: u32) -> Result<(), StorageError> {
        let _changing = self.changes.lock();
        let Some(slot) = self.slots.get(number as usize) else { return Err(StorageError::Closed) };
        if slot.load().is_none() {
            let partition = Partition::new(number, self.backend.open(number)?, self.actors.clone());
            let partition = partition.observed_by(&self.observers).with_kinds(&self.kinds);
            let partition = partition.noting_in(self.unreadable_keys.clone());
            let partition = partition.sharing_snapshots(self.snapshot_holders.clone());
            let partition = if self.remembers_origins { partition.remembering_origins() } else { partition };
            let partition = match &self.sums {
                Some(setup) if self.keeps_trees => partition.with_trees(setup).with_sums(setup),
                Some(setup) => partition.with_sums(setup),
                None => partition,
            };
            partition.raise_floor();
            slot.store(Some(Arc::new(partition)));
        }
        Ok(())
    }

    /// Closes a partition: its store is synced and takes no more calls. Does nothing if it is
    /// closed. A partition whose store fails to close is not open any more either.
    pub(crate) fn close(&self, number: u32) -> Result<(), StorageError> {
        let _changing = self.changes.lock();
        self.take(number).map_or(Ok(()), |partition| partition.close())
    }

    /// Removes a partition with everything in it, if nothing was written to it after `proven_seq`.
    /// It opens as an empty one afterwards. The caller has proved that nobody needs what was
    /// written up to `proven_seq` (docs/design/replication.md §4). Returns false, and leaves the
    /// partition open, if something was written later.
    pub(crate) fn drop_content(&self, number: u32, proven_seq: u64) -> Result<bool, StorageError> {
        let _changing = self.changes.lock();
        let Some(partition) = self.get(number) else { return Err(StorageError::Closed) };
        // Writes that were under way have ended when this returns.
        partition.store().close_to_writes(true);
        if partition.store().last_seq() != proven_seq {
            partition.store().close_to_writes(false);
            return Ok(false);
        }
        drop(self.take(number));
        info!(partition = number, "removing the content of a partition");
        partition.store().drop_partition().inspect_err(|e| {
            error!(partition = number, error = %e, "the content of a partition could not be removed");
        })?;
        Ok(true)
    }

    /// Closes all partitions on the threads of a pool, after the jobs that the pool has, and stops
    /// the pool. Returns how many failed to close. Each waits for its disk several times, so one
    /// after the other takes as many times longer.
    pub(crate) fn close_all(&self, threads: &Pool) -> usize {
        let _changing = self.changes.lock();
        let closing: Vec<_> = (0..self.slots.len()).filter_map(|number| self.take(number as u32)).collect();
        let not_closed = Arc::new(AtomicUsize::new(closing.len()));
        for partition in closing {
            let not_closed = not_closed.clone();
            let close = move || {
                if partition.close().is_ok() {
                    not_closed.fetch_sub(1, Ordering::SeqCst);
                }
            };
            let close = Arc::new(close);
            let there = close.clone();
            if threads.submit(move || there()).is_err() {
                close();
            }
        }
        threads.stop();
        not_closed.load(Ordering::SeqCst)
    }

    fn take(&self, number: u32) -> Option<Arc<Partition>> {
        self.slots.get(number as usize)?.swap(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ObjectLimits;
    use crate::partition::{Access, WriteRules};
    use ombak_runtime::{Runtime, TokioRuntime};
    use ombak_storage::fs::RealFs;
    use ombak_storage::{BitcaskFactory, JournalConfig};
    use ombak_types::time::UnixMicros;
    use ombak_types::{BucketProps, Error, Object, Sibling, VectorClock};
    use std::sync::atomic::AtomicBool;
    use std::thread;

    fn table(dir: &std::path::Path) -> PartitionTable {
        let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap();
        PartitionTable::new(8, Arc::new(stores), Arc::new(ActorSource::new(7)))
    }

    fn write(partition: &Partition, key: &[u8]) -> Result<Object, Error> {
        let (props, limits) = (BucketProps::default(), ObjectLimits::default());
        let rules =
            WriteRules { props: &props, limits: &limits, now: UnixMicros::from_secs(1), values: None, deadline: None };
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
        let locked = partition.lock(key, Access::Blocking).map_err(refused)?;
        Ok(locked.coordinate(object, b"tag", &rules).map_err(refused)?.object)
    }

    fn refused(failure: crate::partition::Failure) -> Error {
        match failure {
            crate::partition::Failure::Refused(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn partitions_open_close_and_go_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path());
        assert_eq!(table.find(3).err().map(|e| e.kind), Some(StoreFailureKind::Closed));
        table.open(3).unwrap();
        table.open(5).unwrap();
        assert_eq!(table.all_open().map(|p| p.number()).collect::<Vec<_>>(), [3, 5]);
        let first = write(&table.get(3).unwrap(), b"k").unwrap();
        table.close(3).unwrap();
        table.close(3).unwrap();
        assert!(table.get(3).is_none());
        table.open(3).unwrap();
        let again = table.get(3).unwrap();
        assert_eq!(again.get(b"k", Access::Blocking).unwrap(), Some(first.clone()), "closing kept it");
        let second = write(&again, b"k").unwrap();
        let actors = |o: &Object| o.clock.entries().iter().map(|e| e.actor.clone()).collect::<Vec<_>>();
        assert_eq!(actors(&second).len(), 2, "an epoch from before the close is not continued");
        assert_eq!(actors(&first).len(), 1);
        assert!(matches!(table.close(3), Ok(())) && table.open(3).is_err(), "a request still uses the store");
        drop(again);
        table.open(3).unwrap();
        let partition = table.get(3).unwrap();
        let proven_seq = partition.store().last_seq();
        write(&partition, b"k").unwrap();
        assert!(!table.drop_content(3, proven_seq).unwrap(), "there is a write that was not proved");
        write(&partition, b"k").expect("it takes writes again");
        assert!(table.drop_content(3, partition.store().last_seq()).unwrap());
        drop(partition);
        assert!(matches!(table.drop_content(3, 0), Err(StorageError::Closed)), "it is closed");
        table.open(3).unwrap();
        assert_eq!(table.get(3).unwrap().get(b"k", Access::Blocking).unwrap(), None);
        assert!(matches!(table.open(8), Err(StorageError::Closed)), "the ring has eight");
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        assert_eq!(table.close_all(&Pool::start(&runtime, "test", 2, 100).unwrap()), 0);
        assert_eq!(table.all_open().count(), 0);
    }

    /// With one thread, or a queue that has no room, all of them close as well.
    #[test]
    fn all_partitions_close_whatever_the_threads() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        for (threads, jobs_max) in [(1, 1), (1, 100), (4, 100)] {
            let dir = tempfile::tempdir().unwrap();
            let table = table(dir.path());
            (0..8).for_each(|number| table.open(number).unwrap());
            let partition = table.get(5).unwrap();
            assert_eq!(table.close_all(&Pool::start(&runtime, "test", threads, jobs_max).unwrap()), 0);
            assert!(write(&partition, b"k").is_err(), "the store takes no more writes");
            drop(partition);
            table.open(5).expect("it was closed");
        }
    }

    #[test]
    fn a_write_that_was_acknowledged_survives_closing_under_load() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path());
        table.open(0).unwrap();
        let done = AtomicBool::new(false);
        let acknowledged = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut acknowledged = Vec::new();
                let mut numbers = 0u32..;
                while !done.load(Ordering::SeqCst) || acknowledged.is_empty() {
                    let n = numbers.next().unwrap();
                    let key = n.to_be_bytes();
                    if let Some(partition) = table.get(0)
                        && write(&partition, &key).is_ok()
                    {
                        acknowledged.push(key);
                    }
                }
                acknowledged
            });
            for _ in 0..50 {
                table.close(0).unwrap();
                while table.open(0).is_err() {
                    thread::yield_now();
                }
            }
            done.store(true, Ordering::SeqCst);
            writer.join().unwrap()
        });
        let partition = table.get(0).unwrap();
        for key in &acknowledged {
            assert!(partition.head(key, Access::Blocking).unwrap().is_some(), "{key:?} is missing");
        }
        assert!(!acknowledged.is_empty());
    }
}
