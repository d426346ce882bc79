//! A store whose versions may have parts.
//!
//! Hot path: reads and puts of versions without parts cost one comparison of a byte.

use super::changes::PartedChanges;
use super::layout::{Directory, Found, PART_HEAD, is_part, part_key, split_part_key};
use super::snapshot::PartedSnapshot;
use super::sweep::Sweep;
use crate::backend::{Backend, CACHED_READ_BYTES_MAX, ReadMode, Status, Stored, Write, extend_whole};
use crate::backup::StoreBackup;
use crate::drops::{DropObserver, drop_each};
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, FeedCursor};
use crate::fold::{Scope, Snapshot};
use crate::identity::StoreIdentity;
use crate::openings::Openings;
use crate::receipt::{Appended, IndexedVersion};
use crate::scrub::{ScrubCursor, ScrubLimits, ScrubStep};
use crate::terms_check::{TermCursor, TermStep};
use crate::unreadable::UnreadableObserver;
use bytes::{Bytes, BytesMut};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracing::warn;

/// A body of up to this many bytes has no parts: it is written anew when it is extended.
const PLAIN_BYTES_MAX: u64 = 8 << 10;
/// The tail becomes a part when it has more bytes.
const TAIL_BYTES_MAX: usize = 8 << 10;
/// How many replaced versions wait at most for the removal of their parts. The sweep finds the
/// parts of further ones.
const REPLACED_MAX: usize = 10_000;
/// How often a read looks anew because the version was replaced while its parts were read.
const READS_MAX: usize = 16;

/// A store whose versions may have parts.
pub(crate) struct PartedStore {
    pub(super) inner: Arc<dyn Backend>,
    /// How many parts there are, garbage included.
    pub(super) parts: Arc<AtomicU64>,
    /// The versions whose parts are to be removed, once what replaced them is durable.
    replaced: Mutex<Vec<(Vec<u8>, Directory)>>,
    /// Changes of parts hold this shared. The sweep holds it while it decides about a part.
    pub(super) changes: RwLock<()>,
    pub(super) sweep: Mutex<Sweep>,
    /// Whether there may be garbage.
    pub(super) is_sweep_due: Arc<AtomicBool>,
}

/// Learns of the drops of the store below, and passes on those of objects.
struct ObjectDrops {
    observer: Arc<dyn DropObserver>,
    parts: Arc<AtomicU64>,
    is_sweep_due: Arc<AtomicBool>,
}

impl DropObserver for ObjectDrops {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        if is_part(key) {
            count_removed(&self.parts);
            return;
        }
        if self.parts.load(Ordering::Relaxed) > 0 {
            self.is_sweep_due.store(true, Ordering::Relaxed);
        }
        self.observer.dropped(key, version);
    }
}

/// Learns of what the store below cannot read, and passes on the objects to which it belongs.
struct UnreadableObjects(Arc<dyn UnreadableObserver>);

impl UnreadableObserver for UnreadableObjects {
    fn cannot_be_read(&self, key: &[u8]) {
        self.0.cannot_be_read(split_part_key(key).map_or(key, |(object, ..)| object));
    }
}

impl PartedStore {
    /// The layer over a store that was just opened. Counts its parts.
    pub(crate) fn over(inner: Arc<dyn Backend>) -> Self {
        let parts = super::sweep::count(&*inner).unwrap_or_else(|error| {
            warn!(%error, "the parts of values could not be counted, so there may be some");
            1
        });
        Self {
            inner,
            parts: Arc::new(AtomicU64::new(parts)),
            replaced: Mutex::new(Vec::new()),
            changes: RwLock::new(()),
            sweep: Mutex::new(Sweep::default()),
            is_sweep_due: Arc::new(AtomicBool::new(parts > 0)),
        }
    }

    pub(super) fn has_parts(&self) -> bool {
        self.parts.load(Ordering::Relaxed) > 0
    }

    /// The whole version, of what `look` finds under the key.
    fn whole(
        &self,
        key: &[u8],
        mode: ReadMode,
        look: impl Fn() -> Result<Option<Stored>, StorageError>,
    ) -> Result<Option<Stored>, StorageError> {
        let mut seen: Option<(u64, StorageError)> = None;
        for _ in 0..READS_MAX {
            let Some(found) = look()? else { return Ok(None) };
            let (stored, directory) = match Found::of(found)? {
                Found::Plain(stored) => return Ok(Some(stored)),
                Found::Parted(stored, directory) => (stored, directory),
            };
            match seen {
                // The same version is there, so its parts were not replaced meanwhile.
                Some((seq, error)) if seq == stored.seq => return Err(error),
                _ => {}
            }
            let read = |part: &[u8]| self.inner.get_with_expired(part, mode);
            match assemble(key, &stored, directory, mode, read) {
                Ok(body) => return Ok(Some(Stored { body: Some(body), ..stored })),
                Err(StorageError::WouldBlock) => return Err(StorageError::WouldBlock),
                Err(error) => seen = Some((stored.seq, error)),
            }
        }
        Err(StorageError::Busy("the version is replaced again and again while it is read".into()))
    }

    /// Puts a part durably. Returns its directory together with the earlier ones.
    fn put_part(&self, key: &[u8], before: Directory, body: &[&[u8]]) -> Result<Directory, StorageError> {
        let part = part_key(key, before.generation, before.parts);
        // Parts never expire by the age of the store: the head record decides.
        let write = Write {
            key: &part,
            head: &PART_HEAD,
            body,
            digest: 0,
            tstamp_secs: u32::MAX,
            expires_secs: 0,
            has_terms: false,
        };
        let appended = self.inner.put(&write)?;
        if appended.previous.digest().is_none() {
            self.parts.fetch_add(1, Ordering::Relaxed);
        }
        // The part and the head record that will name it can lie in two files, and a loss of power
        // must not leave the head record alone.
        self.inner.sync(appended.seq)?;
        Ok(Directory { parts: before.parts + 1, bytes: before.bytes + bytes_of(body) as u64, ..before })
    }

    /// The directory of a version that is about to be replaced or removed.
    fn directory_of(&self, key: &[u8]) -> Option<Directory> {
        if !self.has_parts() {
            return None;
        }
        match self.inner.head_with_expired(key, ReadMode::Blocking).and_then(|f| f.map(Found::of).transpose()) {
            Ok(found) => found.and_then(|found| found.directory()),
            // Nobody can say which parts it had.
            Err(_) => {
                self.is_sweep_due.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Notes the parts of a version that was replaced or removed.
    fn note_replaced(&self, key: &[u8], directory: Option<Directory>) {
        let Some(directory) = directory else { return };
        let mut replaced = self.replaced.lock();
        if replaced.len() < REPLACED_MAX {
            replaced.push((key.to_vec(), directory));
        } else {
            self.is_sweep_due.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the parts of versions that were replaced. A loss of power must not bring such a
    /// version back without its parts, so what replaced it is synced first.
    fn remove_replaced(&self) -> Result<(), StorageError> {
        let replaced = std::mem::take(&mut *self.replaced.lock());
        if replaced.is_empty() {
            return Ok(());
        }
        let removed = self.inner.sync(self.inner.last_seq()).and_then(|()| {
            let parts = replaced.iter().flat_map(|(key, directory)| directory.part_keys(key));
            parts.into_iter().try_for_each(|part| self.remove_part(&part))
        });
        removed.inspect_err(|error| {
            warn!(%error, "parts of replaced versions could not be removed; this is tried again");
            self.is_sweep_due.store(true, Ordering::Relaxed);
        })
    }

    pub(super) fn remove_part(&self, part: &[u8]) -> Result<(), StorageError> {
        if self.inner.delete(part)?.is_some() {
            count_removed(&self.parts);
        }
        Ok(())
    }

    /// Removes a version with `remove`, and notes its parts.
    fn removing<T>(
        &self,
        key: &[u8],
        remove: impl FnOnce() -> Result<T, StorageError>,
        is_removed: impl FnOnce(&T) -> bool,
    ) -> Result<T, StorageError> {
        let _changing = self.changes.read();
        let directory = self.directory_of(key);
        let done = remove()?;
        if is_removed(&done) {
            self.note_replaced(key, directory);
        }
        Ok(done)
    }

    /// Makes a first part of a body that has none.
    fn begin_parts(&self, write: &Write<'_>, whole: &Bytes) -> Result<Appended, StorageError> {
        let generation = self.inner.first_seq().max(self.inner.last_seq() + 1);
        let directory = self.put_part(write.key, Directory { generation, parts: 0, bytes: 0 }, &[whole])?;
        self.put_head_record(&Write { head: &directory.head_record(write.head), ..*write })
    }

    /// Puts a head record after its newest part, which is garbage if this fails.
    fn put_head_record(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.inner.put(write).inspect_err(|_| self.is_sweep_due.store(true, Ordering::Relaxed))
    }
}

/// The body of a version. `read` finds a part.
pub(super) fn assemble(
    key: &[u8],
    stored: &Stored,
    directory: Directory,
    mode: ReadMode,
    read: impl Fn(&[u8]) -> Result<Option<Stored>, StorageError>,
) -> Result<Bytes, StorageError> {
    let tail = stored.body.as_ref().map_or(&[][..], |tail| &tail[..]);
    let bytes = usize::try_from(directory.bytes).unwrap_or(usize::MAX).saturating_add(tail.len());
    if mode == ReadMode::Cached && bytes > CACHED_READ_BYTES_MAX {
        return Err(StorageError::WouldBlock);
    }
    // The parts say how much there is. The directory only bounds it.
    let mut body = BytesMut::new();
    for number in 0..directory.parts {
        let found = read(&part_key(key, directory.generation, number))?;
        let part = found.and_then(|part| part.body).ok_or(StorageError::Incomplete("a part of its body is missing"))?;
        if number == 0 {
            body.reserve(bytes.min(part.len().saturating_mul(2)));
        }
        body.extend_from_slice(&part);
        if body.len() > bytes {
            return Err(StorageError::Incomplete("its parts have more bytes than its list says"));
        }
    }
    body.extend_from_slice(tail);
    if body.len() != bytes {
        return Err(StorageError::Incomplete("its parts have fewer bytes than its list says"));
    }
    Ok(body.freeze())
}

/// The count of parts may have begun too low, because a part could not be seen.
fn count_removed(parts: &AtomicU64) {
    let fewer = |parts: u64| Some(parts.saturating_sub(1));
    let (Ok(_) | Err(_)) = parts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
}

/// Refuses what waits for a sync.
fn may_wait(mode: ReadMode) -> Result<(), StorageError> {
    if mode == ReadMode::Cached { Err(StorageError::WouldBlock) } else { Ok(()) }
}

fn bytes_of(body: &[&[u8]]) -> usize {
    body.iter().map(|piece| piece.len()).sum()
}

impl Backend for PartedStore {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.whole(key, mode, || self.inner.get(key, mode))
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.inner.head(key, mode)?.map(|found| Found::of(found).map(Found::into_head)).transpose()
    }

    fn get_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.whole(key, mode, || self.inner.get_with_expired(key, mode))
    }

    fn head_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.inner.head_with_expired(key, mode)?.map(|found| Found::of(found).map(Found::into_head)).transpose()
    }

    fn check_writable(&self, key: &[u8]) -> Result<(), StorageError> {
        self.inner.check_writable(key)
    }

    fn record_bytes(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let Some(bytes) = self.inner.record_bytes(key)? else { return Ok(None) };
        Ok(Some(bytes + self.directory_of(key).map_or(0, |directory| directory.bytes)))
    }

    fn known_digest(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        self.inner.known_digest(key)
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.inner.put(write)
    }

    fn extend(&self, write: &Write<'_>, kept_bytes: u64, mode: ReadMode) -> Result<Appended, StorageError> {
        let added = bytes_of(write.body);
        if write.has_terms || kept_bytes + added as u64 <= PLAIN_BYTES_MAX {
            return extend_whole(self, write, kept_bytes, mode);
        }
        let gone = || StorageError::Incomplete("the version to extend is not the one that was read");
        let _changing = self.changes.read();
        let found = self.inner.get_with_expired(write.key, mode)?.ok_or_else(gone)?;
        match Found::of(found)? {
            Found::Plain(stored) => {
                let body = stored.body.filter(|body| body.len() as u64 == kept_bytes).ok_or_else(gone)?;
                may_wait(mode)?;
                self.begin_parts(write, &body)
            }
            Found::Parted(stored, directory) => {
                let tail = stored.body.unwrap_or_default();
                if directory.bytes + tail.len() as u64 != kept_bytes {
                    return Err(gone());
                }
                let mut pieces: Vec<&[u8]> = Vec::with_capacity(1 + write.body.len());
                pieces.push(&tail);
                pieces.extend_from_slice(write.body);
                if tail.len() + added <= TAIL_BYTES_MAX {
                    return self.inner.put(&Write {
                        head: &directory.head_record(write.head),
                        body: &pieces,
                        ..*write
                    });
                }
                may_wait(mode)?;
                let directory = self.put_part(write.key, directory, &pieces)?;
                self.put_head_record(&Write { head: &directory.head_record(write.head), body: &[], ..*write })
            }
        }
    }

    fn put_over_extended(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.removing(write.key, || self.inner.put(write), |_| true)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.removing(key, || self.inner.delete(key), Option::is_some)
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.removing(key, || self.inner.delete_if(key, digest), Option::is_some)
    }

    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError> {
        self.removing(key, || self.inner.drop_if(key, digest), |is_dropped| *is_dropped)
    }

    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool {
        let (parts, is_sweep_due) = (self.parts.clone(), self.is_sweep_due.clone());
        self.inner.observe_drops(Arc::new(ObjectDrops { observer, parts, is_sweep_due }))
    }

    fn observe_unreadable(&self, observer: Arc<dyn UnreadableObserver>) {
        self.inner.observe_unreadable(Arc::new(UnreadableObjects(observer)));
    }

    fn sync(&self, seq: u64) -> Result<(), StorageError> {
        self.inner.sync(seq)
    }

    fn is_synced(&self, seq: u64) -> bool {
        self.inner.is_synced(seq)
    }

    fn synced_seq(&self) -> u64 {
        self.inner.synced_seq()
    }

    fn last_seq(&self) -> u64 {
        self.inner.last_seq()
    }

    fn found_seq(&self) -> u64 {
        self.inner.found_seq()
    }

    fn first_seq(&self) -> u64 {
        self.inner.first_seq()
    }

    fn openings(&self) -> Openings {
        self.inner.openings()
    }

    fn close_to_writes(&self, closed: bool) {
        self.inner.close_to_writes(closed);
    }

    fn sync_each_write(&self) -> bool {
        self.inner.sync_each_write()
    }

    fn removes_by_itself(&self) -> bool {
        self.inner.removes_by_itself()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        Ok(Box::new(PartedSnapshot::new(self.inner.snapshot()?)))
    }

    fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        Ok(Box::new(PartedSnapshot::new(self.inner.ordered_snapshot(bucket)?)))
    }

    fn status(&self) -> Status {
        let status = self.inner.status();
        Status { keys: status.keys.saturating_sub(self.parts.load(Ordering::Relaxed)), ..status }
    }

    fn feed_cursor(&self) -> FeedCursor {
        self.inner.feed_cursor()
    }

    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        Ok(match self.inner.changes_since(query)? {
            ChangesSince::Found(inner) => ChangesSince::Found(Box::new(PartedChanges::new(inner, query.detail))),
            lost @ ChangesSince::Lost(_) => lost,
        })
    }

    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        self.inner.retain_removals(after)
    }

    fn identity(&self) -> StoreIdentity {
        self.inner.identity()
    }

    fn begin_backup(&self) -> Result<Option<Box<dyn StoreBackup + '_>>, StorageError> {
        self.inner.begin_backup()
    }

    fn complete(&self) -> bool {
        self.inner.complete()
    }

    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        self.inner.note_loss(lost_ranges)
    }

    fn drop_scope(&self, scope: &Scope<'_>) -> Result<u64, StorageError> {
        drop_each(&mut *self.snapshot()?, scope, |entry| self.drop_if(&entry.key, entry.digest))
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        self.inner.drop_partition()
    }

    fn tell_time(&self, now_secs: u64) {
        self.inner.tell_time(now_secs);
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.inner.maintain(now_secs)?;
        self.remove_replaced()?;
        self.sweep_some(now_secs)
    }

    fn sync_interval(&self) -> Option<Duration> {
        self.inner.sync_interval()
    }

    fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        self.inner.sync_if_due(now)
    }

    fn is_behind(&self) -> bool {
        self.inner.is_behind()
    }

    fn catch_up(&self) -> Result<(), StorageError> {
        self.inner.catch_up()
    }

    fn bytes_to_scrub(&self) -> u64 {
        self.inner.bytes_to_scrub()
    }

    /// A damaged part is damage of the version to which it belongs.
    fn scrub_step(&self, cursor: &ScrubCursor, limits: ScrubLimits<'_>) -> Result<ScrubStep, StorageError> {
        let mut step = self.inner.scrub_step(cursor, limits)?;
        for version in &mut step.found.versions {
            if let Some((object, ..)) = split_part_key(&version.key) {
                version.key = Bytes::copy_from_slice(object);
            }
        }
        Ok(step)
    }

    fn check_terms(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        self.inner.check_terms(cursor, count_max)
    }

    fn close(&self) -> Result<(), StorageError> {
        // A snapshot keeps files open.
        self.sweep.lock().pause();
        self.inner.close()
    }
}
