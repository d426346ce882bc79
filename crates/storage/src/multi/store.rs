//! Several stores of one partition behind one [`Backend`].

use super::Selector;
use super::backup::MultiBackup;
use super::changes::MultiChanges;
use super::snapshot::MultiSnapshot;
use crate::backend::{Backend, ReadMode, Status, Stored, Write};
use crate::backup::StoreBackup;
use crate::drops::{DropObserver, drop_each};
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, CursorLost, FeedCursor};
use crate::fold::{Scope, Snapshot};
use crate::identity::StoreIdentity;
use crate::openings::Openings;
use crate::receipt::{Appended, IndexedVersion};
use crate::scrub::{ScrubCursor, ScrubLimits, ScrubStep};
use crate::seq::SeqSource;
use crate::terms_check::{TermCursor, TermStep};
use crate::unreadable::UnreadableObserver;
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store with the name of its backend.
type Child = (String, Arc<dyn Backend>);

/// Tells the observer only of keys whose bucket belongs to this store. Folds and reads do not see
/// the other keys that the store may have.
struct SelectedDrops {
    at: usize,
    selector: Arc<dyn Selector>,
    observer: Arc<dyn DropObserver>,
}

impl DropObserver for SelectedDrops {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        if self.selector.select(key).is_ok_and(|selected| selected == self.at) {
            self.observer.dropped(key, version);
        }
    }
}

/// Tells the observer only of keys whose bucket belongs to this store.
struct SelectedUnreadable {
    at: usize,
    selector: Arc<dyn Selector>,
    observer: Arc<dyn UnreadableObserver>,
}

impl UnreadableObserver for SelectedUnreadable {
    fn cannot_be_read(&self, key: &[u8]) {
        if self.selector.select(key).is_ok_and(|selected| selected == self.at) {
            self.observer.cannot_be_read(key);
        }
    }
}

pub(super) struct MultiStore {
    stores: Vec<Child>,
    selector: Arc<dyn Selector>,
    seqs: SeqSource,
    /// Every writer holds this shared; a backup holds it exclusively at the moment of its cut.
    gate: RwLock<()>,
}

impl MultiStore {
    pub(super) fn new(stores: Vec<Child>, selector: Arc<dyn Selector>, seqs: SeqSource) -> Self {
        Self { stores, selector, seqs, gate: RwLock::new(()) }
    }

    fn store(&self, key: &[u8]) -> Result<&dyn Backend, StorageError> {
        let selected = self.selector.select(key)?;
        self.stores.get(selected).map(|(_, store)| &**store).ok_or(StorageError::Closed)
    }

    fn stores(&self) -> impl Iterator<Item = &dyn Backend> {
        self.stores.iter().map(|(_, store)| &**store)
    }

    /// Does `work` on all stores. Returns the first error after all were tried.
    fn all(&self, work: impl Fn(&dyn Backend) -> Result<(), StorageError>) -> Result<(), StorageError> {
        let results: Vec<_> = self.stores().map(work).collect();
        results.into_iter().collect()
    }
}

impl Backend for MultiStore {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.store(key)?.get(key, mode)
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.store(key)?.head(key, mode)
    }

    fn get_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.store(key)?.get_with_expired(key, mode)
    }

    fn head_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.store(key)?.head_with_expired(key, mode)
    }

    fn check_writable(&self, key: &[u8]) -> Result<(), StorageError> {
        self.store(key)?.check_writable(key)
    }

    fn record_bytes(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        self.store(key)?.record_bytes(key)
    }

    fn known_digest(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        self.store(key)?.known_digest(key)
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let _writing = self.gate.read();
        self.store(write.key)?.put(write)
    }

    fn extend(&self, write: &Write<'_>, kept_bytes: u64, mode: ReadMode) -> Result<Appended, StorageError> {
        let _writing = self.gate.read();
        self.store(write.key)?.extend(write, kept_bytes, mode)
    }

    fn put_over_extended(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let _writing = self.gate.read();
        self.store(write.key)?.put_over_extended(write)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        let _writing = self.gate.read();
        self.store(key)?.delete(key)
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        let _writing = self.gate.read();
        self.store(key)?.delete_if(key, digest)
    }

    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError> {
        let _writing = self.gate.read();
        self.store(key)?.drop_if(key, digest)
    }

    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool {
        let selected = |(at, store): (usize, &dyn Backend)| {
            let (selector, observer) = (self.selector.clone(), observer.clone());
            store.observe_drops(Arc::new(SelectedDrops { at, selector, observer }))
        };
        let results: Vec<bool> = self.stores().enumerate().map(selected).collect();
        results.into_iter().all(|is_set| is_set)
    }

    fn observe_unreadable(&self, observer: Arc<dyn UnreadableObserver>) {
        for (at, store) in self.stores().enumerate() {
            let (selector, observer) = (self.selector.clone(), observer.clone());
            store.observe_unreadable(Arc::new(SelectedUnreadable { at, selector, observer }));
        }
    }

    fn sync(&self, seq: u64) -> Result<(), StorageError> {
        // A store accepts only numbers up to its own last append.
        self.all(|store| store.sync(seq.min(store.last_seq())))
    }

    fn is_synced(&self, seq: u64) -> bool {
        self.stores().all(|store| store.is_synced(seq.min(store.last_seq())))
    }

    fn synced_seq(&self) -> u64 {
        // Read before any store is asked: a later append may go to a store that was asked already.
        let last_seq = self.last_seq();
        let behind = self.stores().filter(|store| store.synced_seq() < store.last_seq());
        behind.map(|store| store.synced_seq()).min().unwrap_or(last_seq)
    }

    /// The source of the numbers does not know which appends have failed. The next start finds none
    /// of those, and whoever remembers their numbers would take the store for one that was set
    /// back.
    fn last_seq(&self) -> u64 {
        self.stores().map(|store| store.last_seq()).max().unwrap_or(0)
    }

    fn found_seq(&self) -> u64 {
        self.seqs.found()
    }

    fn first_seq(&self) -> u64 {
        self.seqs.base() + 1
    }

    fn openings(&self) -> Openings {
        Openings::of_all(self.stores().map(|store| store.openings()))
    }

    fn close_to_writes(&self, closed: bool) {
        self.stores().for_each(|store| store.close_to_writes(closed));
    }

    fn sync_each_write(&self) -> bool {
        self.stores().any(|store| store.sync_each_write())
    }

    fn removes_by_itself(&self) -> bool {
        self.stores().any(|store| store.removes_by_itself())
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        let stores = self.stores().map(|store| store.snapshot()).collect::<Result<_, _>>()?;
        Ok(Box::new(MultiSnapshot::new(stores, self.selector.clone())))
    }

    fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        // The other stores must not build an ordered index for this bucket.
        self.store(bucket)?.ordered_snapshot(bucket)
    }

    fn feed_cursor(&self) -> FeedCursor {
        // Read before any store is asked: what is appended later may go to a store that was asked
        // already.
        let seq = self.last_seq();
        FeedCursor { seq, stores: self.stores().flat_map(|store| store.feed_cursor().stores).collect() }
    }

    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        let seq = self.last_seq();
        if query.from.stores.len() != self.stores.len() {
            return Ok(ChangesSince::Lost(CursorLost::OtherStore));
        }
        let mut walks = Vec::with_capacity(self.stores.len());
        for (store, place) in self.stores().zip(&query.from.stores) {
            let from = FeedCursor::of_store(*place);
            match store.changes_since(&ChangesQuery { from: &from, ..*query })? {
                ChangesSince::Found(walk) => walks.push(walk),
                lost @ ChangesSince::Lost(_) => return Ok(lost),
            }
        }
        Ok(ChangesSince::Found(Box::new(MultiChanges::new(walks, self.selector.clone(), query.from.seq, seq))))
    }

    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        self.all(|store| store.retain_removals(after))
    }

    fn identity(&self) -> StoreIdentity {
        StoreIdentity::of_all(self.stores().map(|store| store.identity()).collect())
    }

    fn begin_backup(&self) -> Result<Option<Box<dyn StoreBackup + '_>>, StorageError> {
        let (mut stores, mut left_out) = (Vec::with_capacity(self.stores.len()), Vec::new());
        for (name, store) in &self.stores {
            match store.begin_backup()? {
                Some(backup) => stores.push((name.as_str(), backup)),
                None => left_out.push(name.as_str()),
            }
        }
        if stores.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(MultiBackup { gate: &self.gate, seqs: &self.seqs, stores, left_out, seq: 0 })))
    }

    fn status(&self) -> Status {
        let status_of = |(name, store): &Child| Status { name: name.clone(), ..store.status() };
        let children: Vec<Status> = self.stores.iter().map(status_of).collect();
        let sum = |count: fn(&Status) -> u64| children.iter().map(count).sum();
        Status {
            name: String::new(),
            backend: "multi",
            keys: sum(|child| child.keys),
            live_bytes: sum(|child| child.live_bytes),
            dead_bytes: sum(|child| child.dead_bytes),
            files: sum(|child| child.files),
            index_bytes: sum(|child| child.index_bytes),
            key_bytes: sum(|child| child.key_bytes),
            put_bytes: sum(|child| child.put_bytes),
            bytes_written: sum(|child| child.bytes_written),
            merge_pending_bytes: sum(|child| child.merge_pending_bytes),
            last_merge: children.iter().filter_map(|child| child.last_merge).max_by_key(|merge| merge.ended_at_secs),
            ledger: None,
            merges: sum(|child| child.merges),
            read_errors: sum(|child| child.read_errors),
            lost_ranges: sum(|child| child.lost_ranges),
            lost_up_to: children.iter().map(|child| child.lost_up_to).max().unwrap_or(0),
            torn_bytes: sum(|child| child.torn_bytes),
            disk_full: children.iter().any(|child| child.disk_full),
            poisoned: children.iter().find_map(|child| child.poisoned.clone()),
            children,
        }
    }

    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        // One store with a loss is enough to make the partition incomplete.
        self.stores().next().ok_or(StorageError::Closed)?.note_loss(lost_ranges)
    }

    /// Drops from every store, because a bucket whose backend was changed has old objects
    /// elsewhere.
    fn drop_scope(&self, scope: &Scope<'_>) -> Result<u64, StorageError> {
        let mut dropped = 0;
        for store in self.stores() {
            dropped += drop_each(&mut *store.snapshot()?, scope, |entry| {
                let _writing = self.gate.read();
                store.drop_if(&entry.key, entry.digest)
            })?;
        }
        Ok(dropped)
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        self.all(|store| store.drop_partition())
    }

    fn tell_time(&self, now_secs: u64) {
        self.stores.iter().for_each(|(_, store)| store.tell_time(now_secs));
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.all(|store| store.maintain(now_secs))
    }

    fn sync_interval(&self) -> Option<Duration> {
        self.stores().filter_map(|store| store.sync_interval()).min()
    }

    fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        self.all(|store| store.sync_if_due(now))
    }

    fn is_behind(&self) -> bool {
        self.stores.iter().any(|(_, store)| store.is_behind())
    }

    fn catch_up(&self) -> Result<(), StorageError> {
        self.all(|store| store.catch_up())
    }

    fn bytes_to_scrub(&self) -> u64 {
        self.stores().map(|store| store.bytes_to_scrub()).sum()
    }

    /// One store after the other. A damaged version of a key that belongs to another store now
    /// counts as obsolete.
    fn scrub_step(&self, cursor: &ScrubCursor, limits: ScrubLimits<'_>) -> Result<ScrubStep, StorageError> {
        let at = cursor.store as usize;
        let Some((_, store)) = self.stores.get(at) else { return Ok(ScrubStep::nothing()) };
        let mut step = store.scrub_step(&ScrubCursor { store: 0, ..*cursor }, limits)?;
        step.next.store = cursor.store;
        if step.is_round_over && at + 1 < self.stores.len() {
            step.is_round_over = false;
            step.next = ScrubCursor { store: cursor.store + 1, ..ScrubCursor::default() };
        }
        let found = &mut step.found;
        let listed = found.versions.len();
        found.versions.retain(|version| self.selector.select(&version.key).is_ok_and(|selected| selected == at));
        let hidden = (listed - found.versions.len()) as u64;
        (found.versions_count, found.obsolete) = (found.versions_count - hidden, found.obsolete + hidden);
        Ok(step)
    }

    /// One store after the other.
    fn check_terms(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        let Some((_, store)) = self.stores.get(cursor.store as usize) else { return Ok(TermStep::nothing()) };
        let mut step = store.check_terms(&TermCursor { store: 0, ..cursor.clone() }, count_max)?;
        step.next.store = cursor.store;
        if step.is_over && cursor.store as usize + 1 < self.stores.len() {
            step.is_over = false;
            step.next = TermCursor { store: cursor.store + 1, ..TermCursor::default() };
        }
        Ok(step)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.all(|store| store.close())
    }
}
