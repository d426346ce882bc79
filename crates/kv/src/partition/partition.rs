//! The store of one home partition and its floor of epochs.

use super::event_ids::{ActorSource, Ticket};
use super::locked::Locked;
use super::locks::KeyLocks;
use super::origin_log::OriginLog;
use super::snapshots::WaitingHolders;
use super::unreadable_keys::UnreadableKeys;
use super::{Access, Failure};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::hooks::{Change, ValueKind, WriteObserver};
use crate::kept_trees::PartitionTrees;
use crate::sums::PartitionSums;
use bytes::Bytes;
use ombak_storage::{Backend, Origin, Snapshot, StorageError, Stored, UnreadableObserver};
use ombak_types::stored_object::{Corrupt, SingleSibling};
use ombak_types::{Actor, Error, Object, ShownKey, StoreFailure, StoreFailureKind, VectorClock, stored_object};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{error, warn};

/// The head of the current version of a key.
pub(super) struct Current {
    pub(super) object: Object,
    /// Its position in the store's append order.
    pub(super) seq: u64,
    /// The bytes of its value, if it has only one and bytes can be added to that.
    pub(super) grown_bytes: Option<u64>,
}

/// One home partition on this node.
pub struct Partition {
    number: u32,
    store: Arc<dyn Backend>,
    locks: KeyLocks,
    pub(super) actors: Arc<ActorSource>,
    floor: AtomicU64,
    /// Versions up to this seq are set aside.
    set_aside_to: AtomicU64,
    observers: Vec<Arc<dyn WriteObserver>>,
    /// Where the last changes came from, if there are consumers of the change feed.
    origins: Option<OriginLog>,
    kinds: Vec<Arc<dyn ValueKind>>,
    unreadable_keys: Arc<UnreadableKeys>,
    /// What gives snapshots of stores back when this one has too many.
    snapshot_holders: Arc<WaitingHolders>,
    /// The sums of its classes, if they are kept.
    sums: Option<Arc<PartitionSums>>,
    /// The kept trees of its classes, if it may have some.
    trees: Option<Arc<PartitionTrees>>,
}

impl Partition {
    /// Creates partition `number` over its store.
    pub fn new(number: u32, store: Arc<dyn Backend>, actors: Arc<ActorSource>) -> Self {
        let (locks, floor) = (KeyLocks::new(), AtomicU64::new(0));
        let set_aside_to = AtomicU64::new(0);
        let (unreadable_keys, snapshot_holders) = (Arc::default(), Arc::default());
        let (observers, kinds) = (Vec::new(), Vec::new());
        let (origins, sums, trees) = (None, None, None);
        Self {
            number,
            store,
            locks,
            actors,
            floor,
            set_aside_to,
            observers,
            origins,
            kinds,
            unreadable_keys,
            snapshot_holders,
            sums,
            trees,
        }
    }

    /// Tells observers of each change from now on.
    pub(crate) fn observed_by(mut self, observers: &[Arc<dyn WriteObserver>]) -> Self {
        self.observers = observers.to_vec();
        self
    }

    /// Knows these kinds of values.
    pub(crate) fn with_kinds(mut self, kinds: &[Arc<dyn ValueKind>]) -> Self {
        self.kinds = kinds.to_vec();
        self
    }

    pub(super) fn kinds(&self) -> &[Arc<dyn ValueKind>] {
        &self.kinds
    }

    /// Notes in this list what cannot be read, also what the store finds by itself.
    pub(super) fn noting_in(self, unreadable_keys: Arc<UnreadableKeys>) -> Self {
        let keys = unreadable_keys.clone();
        self.store.observe_unreadable(Arc::new(NotesUnreadable { partition: self.number, keys }));
        Self { unreadable_keys, ..self }
    }

    /// Shares the snapshots of stores with these holders.
    pub(super) fn sharing_snapshots(self, snapshot_holders: Arc<WaitingHolders>) -> Self {
        Self { snapshot_holders, ..self }
    }

    pub(super) fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    /// Tells the observers of a change. Called under the key's lock.
    pub(super) fn tell(&self, key: &[u8], old: Option<&Object>, new: Option<&Object>, (seq, origin): (u64, Origin)) {
        if let Some(origins) = &self.origins {
            origins.note(seq, origin);
        }
        for observer in &self.observers {
            observer.changed(&Change { partition: self.number, key, old, new, seq, origin });
        }
    }

    /// Remembers where the last changes came from, for consumers of the change feed.
    pub(crate) fn remembering_origins(self) -> Self {
        Self { origins: Some(OriginLog::default()), ..self }
    }

    /// Where a change came from, if that is remembered. What the store itself knows is kept.
    pub(crate) fn origin_of(&self, change: &ombak_storage::Change) -> Origin {
        match change.origin {
            Origin::Unknown => self.origins.as_ref().map_or(Origin::Unknown, |origins| origins.of(change.seq())),
            known => known,
        }
    }

    /// The partition's number, 0 … ring_size−1.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The partition's store.
    pub fn store(&self) -> &Arc<dyn Backend> {
        &self.store
    }

    /// Keeps these sums of its classes.
    pub(super) fn counting_in(self, sums: Option<Arc<PartitionSums>>) -> Self {
        Self { sums, ..self }
    }

    /// The sums of its classes, if they are kept.
    pub(super) const fn sums(&self) -> Option<&Arc<PartitionSums>> {
        self.sums.as_ref()
    }

    /// Keeps these trees of its classes.
    pub(super) fn growing_trees(self, trees: Option<Arc<PartitionTrees>>) -> Self {
        Self { trees, ..self }
    }

    /// The kept trees of its classes, if it may have some.
    pub(super) const fn trees(&self) -> Option<&Arc<PartitionTrees>> {
        self.trees.as_ref()
    }

    /// A snapshot of the store for folds. If the store has too many, queries that wait for their
    /// clients give theirs back.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        self.snapshot_holders.make(|| self.store.snapshot())
    }

    /// The same, with an order of the keys and index entries of one bucket. It may wait until the
    /// ordered index is built.
    pub(crate) fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        self.snapshot_holders.make(|| self.store.ordered_snapshot(bucket))
    }

    /// Sets aside every version up to this seq: each counts as absent, until it is stored anew. The
    /// store is older than what its cluster knows, so any of them may have been reaped meanwhile
    /// (docs/design/replication.md §8).
    pub(crate) fn set_aside(&self, seq: u64) {
        self.set_aside_to.store(seq, Ordering::SeqCst);
        self.set_aside_in_sums(seq);
        self.set_aside_in_trees(seq);
    }

    /// The seq up to which versions are set aside; 0: none is.
    pub fn set_aside_to(&self) -> u64 {
        self.set_aside_to.load(Ordering::Relaxed)
    }

    fn present(&self, found: Option<Stored>) -> Option<Stored> {
        found.filter(|found| found.seq > self.set_aside_to())
    }

    /// The version of a key that is set aside, if there is one. Blocks.
    pub fn read_set_aside(&self, key: &[u8]) -> Result<Option<Stored>, Failure> {
        let found = self.store.get_with_expired(key, Access::Blocking.read_mode());
        let found = found.map_err(|e| self.unreadable(key, e))?;
        Ok(found.filter(|found| found.seq <= self.set_aside_to()))
    }

    /// The current version in its stored form, also if it has expired: its clock says what it has
    /// replaced. The coordinator hides expired values from clients. A version that is set aside
    /// counts as absent.
    pub fn read(&self, key: &[u8], access: Access) -> Result<Option<Stored>, Failure> {
        if let Access::BlockingUpTo(bytes_max) = access {
            self.check_size(key, bytes_max)?;
        }
        let found = self.store.get_with_expired(key, access.read_mode()).map_err(|e| self.unreadable(key, e))?;
        self.present(found).map(|found| access.check(&found).map(|()| found)).transpose()
    }

    /// The head of the current version in its stored form, also if it has expired.
    pub fn read_head(&self, key: &[u8], access: Access) -> Result<Option<Stored>, Failure> {
        let found = self.store.head_with_expired(key, access.read_mode()).map_err(|e| self.unreadable(key, e))?;
        self.present(found).map(|found| access.check(&found).map(|()| found)).transpose()
    }

    /// Checks that the current version has at most `bytes_max`, as far as the store knows without
    /// reading it.
    fn check_size(&self, key: &[u8], bytes_max: u64) -> Result<(), Failure> {
        let size = self.store.record_bytes(key).map_err(|e| self.unreadable(key, e))?;
        size.filter(|&bytes| bytes > bytes_max).map_or(Ok(()), |bytes| Err(Failure::TooLarge(bytes)))
    }

    /// The current version with its values, also if it has expired.
    pub fn get(&self, key: &[u8], access: Access) -> Result<Option<Object>, Failure> {
        self.read(key, access)?.map(|found| self.decode(key, &found)).transpose()
    }

    /// The current version with empty values, also if it has expired.
    pub fn head(&self, key: &[u8], access: Access) -> Result<Option<Object>, Failure> {
        self.read_head(key, access)?.map(|found| self.decode(key, &found)).transpose()
    }

    /// The head of the current version, as a write needs it.
    fn current(&self, key: &[u8], access: Access) -> Result<Option<Current>, Failure> {
        let Some(found) = self.read_head(key, access)? else { return Ok(None) };
        let object = self.decode(key, &found)?;
        let grown_bytes = if has_summary(&object) {
            stored_object::single_value_bytes(&found.head).map_err(|corrupt| self.corrupt(key, corrupt))?
        } else {
            None
        };
        Ok(Some(Current { object, seq: found.seq, grown_bytes }))
    }

    /// Decodes a version that [`Self::read`] returned.
    pub fn decode(&self, key: &[u8], found: &Stored) -> Result<Object, Failure> {
        stored_object::decode(&found.head, found.body.as_ref()).map_err(|corrupt| self.corrupt(key, corrupt))
    }

    /// Returns a version that [`Self::read`] returned as [`SingleSibling`], if it is one sibling in
    /// its plain form.
    pub fn single(&self, key: &[u8], found: &Stored) -> Result<Option<SingleSibling>, Failure> {
        let Some(body) = &found.body else { return Ok(None) };
        SingleSibling::read(&found.head, body).map_err(|corrupt| self.corrupt(key, corrupt))
    }

    /// Locks the key and reads the head of its current version. An unreadable version is an error,
    /// not an absent key: nothing may overwrite it, and no epoch issued so far is continued
    /// (docs/design/replication.md §13).
    pub fn lock<'a>(&'a self, key: &'a [u8], access: Access) -> Result<Locked<'a>, Failure> {
        self.await_store(access)?;
        let guard = self.locks.lock(key, access).ok_or(Failure::WouldBlock)?;
        let local = self.current(key, access).inspect_err(|e| self.note_unreadable(e))?;
        Ok(Locked::new(self, key, guard, local, access))
    }

    /// Waits until everybody who held the lock of a key when this was called has released it. A
    /// snapshot that is taken afterwards has what they wrote. Blocks.
    pub fn await_writers(&self) {
        self.locks.await_holders();
    }

    /// Locks all keys for a moment. The caller holds no key's lock. Blocks.
    pub(super) fn lock_all_keys(&self) -> Vec<MutexGuard<'_, ()>> {
        self.locks.lock_all()
    }

    /// [`Self::lock`] for a version that other replicas send to repair this one. If the current
    /// version cannot be read, the key counts as absent, provided that `clock` descends the clock
    /// of that version as far as it can be read: then nothing is lost that was not lost before
    /// (docs/design/replication.md §13).
    pub(crate) fn lock_to_repair<'a>(
        &'a self,
        key: &'a [u8],
        clock: &VectorClock,
        access: Access,
    ) -> Result<Locked<'a>, Failure> {
        self.await_store(access)?;
        let guard = self.locks.lock(key, access).ok_or(Failure::WouldBlock)?;
        let found = self.read(key, access).and_then(|found| {
            let current = |found: Stored| {
                // The value is merged as a whole.
                Ok(Current { object: self.decode(key, &found)?, seq: found.seq, grown_bytes: None })
            };
            found.map(current).transpose()
        });
        match found {
            Err(failure) if is_unreadable(&failure) => {
                self.note_unreadable(&failure);
                let head = match self.head(key, access) {
                    Ok(Some(head)) if !clock.descends(&head.clock) => return Err(failure),
                    Err(Failure::WouldBlock) => return Err(Failure::WouldBlock),
                    head => head.ok().flatten(),
                };
                let what = "a version that cannot be read is replaced by that of another replica";
                let (at, partition) = (ShownKey::of(key), self.number);
                warn!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, "{what}");
                Ok(Locked::new(self, key, guard, None, access).replacing_unreadable(head))
            }
            found => {
                let local = found.inspect_err(|e| self.note_unreadable(e))?;
                Ok(Locked::new(self, key, guard, local, access))
            }
        }
    }

    /// Removes a version that cannot be read, if it is still the one with this digest, which every
    /// primary was proved to hold. Observers are not told what it was. Blocks.
    pub fn remove_unread(&self, key: &[u8], proven: u64) -> Result<bool, Failure> {
        let _guard = self.locks.lock(key, Access::Blocking).ok_or(Failure::WouldBlock)?;
        let Some(removed) = self.delete_if((key, proven), None)? else { return Ok(false) };
        self.tell(key, None, None, (removed.seq, Origin::Handoff));
        Ok(true)
    }

    /// Removes a version that still cannot be read, because an operator gives it up, if it is the
    /// one with this digest. Observers are not told what it was. Blocks.
    pub fn give_up_unreadable(&self, key: &[u8], digest: u64) -> Result<bool, Failure> {
        let _guard = self.locks.lock(key, Access::Blocking).ok_or(Failure::WouldBlock)?;
        let found = self.read(key, Access::Blocking);
        match found.and_then(|found| found.map(|found| self.decode(key, &found)).transpose()) {
            Err(failure) if is_unreadable(&failure) => {}
            found => return found.map(|_| false),
        }
        // The version may have had events of this node.
        self.raise_floor();
        let Some(removed) = self.delete_if((key, digest), None)? else { return Ok(false) };
        self.tell(key, None, None, (removed.seq, Origin::Repair));
        Ok(true)
    }

    /// Whether the current version has this digest, as an index tells without reading it. Blocks.
    pub fn is_known_to_have(&self, key: &[u8], digest: u64) -> Result<bool, Failure> {
        Ok(self.store.known_digest(key)? == Some(digest))
    }

    /// Applies back-pressure: while the store is behind with its work, writers must help it to
    /// catch up. Otherwise its memory would grow without bound.
    fn await_store(&self, access: Access) -> Result<(), Failure> {
        if !self.store.is_behind() {
            return Ok(());
        }
        match access {
            Access::Inline => Err(Failure::WouldBlock),
            Access::Blocking | Access::BlockingUpTo(_) => Ok(self.store.catch_up()?),
        }
    }

    pub(super) fn note_unreadable(&self, failure: &Failure) {
        if matches!(failure, Failure::Refused(_)) {
            self.raise_floor();
        }
    }

    /// Whether somebody has found that the version of a key cannot be read as a whole. Its head may
    /// be readable nevertheless.
    pub fn is_known_as_unreadable(&self, key: &[u8]) -> bool {
        self.unreadable_keys.contains(self.number, key)
    }

    /// The keys of which somebody has found that.
    pub fn keys_known_as_unreadable(&self) -> Vec<Bytes> {
        self.unreadable_keys.of_partition(self.number)
    }

    #[cold]
    fn unreadable(&self, key: &[u8], error: StorageError) -> Failure {
        let failure = read_failure(error);
        if let Failure::Refused(why @ Error::Storage(_)) = &failure {
            let (at, partition) = (ShownKey::of(key), self.number);
            error!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, %why, "read failed");
            if is_unreadable(&failure) {
                self.unreadable_keys.note(self.number, key);
            }
        }
        failure
    }

    #[cold]
    fn corrupt(&self, key: &[u8], corrupt: Corrupt) -> Failure {
        let (at, partition) = (ShownKey::of(key), self.number);
        error!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, %corrupt, "read failed");
        self.unreadable_keys.note(self.number, key);
        Failure::Refused(corrupt.into())
    }

    /// Epochs that were issued before this ticket are never continued.
    pub(super) fn floor(&self) -> Ticket {
        self.floor.load(Ordering::SeqCst)
    }

    /// The actor of the next event on a key, for which no client names a clock.
    pub(super) fn actor_of_event(&self, local: &VectorClock) -> Actor {
        self.actors.actor_for_event(Some(local), local, self.floor())
    }

    /// Raises the floor: no epoch issued so far is continued from now on.
    pub fn raise_floor(&self) {
        self.floor.fetch_max(self.actors.next_ticket(), Ordering::SeqCst);
    }

    /// Closes the store. Closing a closed store succeeds.
    pub fn close(&self) -> Result<(), StorageError> {
        match self.store.close() {
            Ok(()) => {
                self.save_sums();
                self.save_trees();
                Ok(())
            }
            Err(StorageError::Closed) => Ok(()),
            Err(e) => {
                error!(partition = self.number, error = %e, "the store does not close");
                Err(e)
            }
        }
    }
}

/// Notes what a store finds to be unreadable while it works by itself.
struct NotesUnreadable {
    partition: u32,
    keys: Arc<UnreadableKeys>,
}

impl UnreadableObserver for NotesUnreadable {
    fn cannot_be_read(&self, key: &[u8]) {
        self.keys.note(self.partition, key);
    }
}

/// The failure of a read. It has changed nothing, so another node may do what this one cannot.
fn read_failure(error: StorageError) -> Failure {
    let kind = match &error {
        StorageError::MediaError { .. } if is_broken(BrokenRule::MediaErrorsAreRepaired) => StoreFailureKind::Io,
        // The file of the version cannot be opened, or its disk is gone.
        StorageError::Io { .. } => StoreFailureKind::Closed,
        _ => return error.into(),
    };
    Failure::Refused(StoreFailure::new(kind, error.to_string()).into())
}

/// Whether an object has a large value, to which bytes may have been added.
pub(super) fn has_summary(object: &Object) -> bool {
    object.siblings.iter().any(|s| s.meta.of_kind.as_ref().is_some_and(|state| !state.summary.is_empty()))
}

/// Whether something failed because a version cannot be read.
pub fn is_unreadable(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused(Error::Storage(why)) if why.kind == StoreFailureKind::Unreadable)
}
