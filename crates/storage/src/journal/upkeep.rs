//! Background work in bounded slices: syncing at an interval, completing hint files, merging, and
//! removing merged files.

use super::checkpoint::{Checkpoint, FileState};
use super::config::{MergePolicy, SyncStrategy};
use super::covered;
use super::data_file::{DataFile, hint_path};
use super::format::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES};
use super::key_index::{Compacted, Entry, Keeps, KeyIndex, SweepCursor};
use super::merge::{FileSummary, MergeJob, Progress, remove_committed, select_for_room, select_inputs, summarize};
use super::shared::Shared;
use super::space::DiskSpace;
use super::store::{Core, ORDER_SLICE};
use super::writer::{Writer, is_no_room};
use crate::backend::LastMerge;
use crate::error::{StorageError, io_error};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The most files that one slice completes, because each may need a sync.
const SEALS_PER_SLICE: usize = 4;
/// The number of keys that one slice checks for expiry.
const SWEEP_SLICE: usize = 10_000;
/// The most slices of work that one writer does for an index that is behind.
const CATCH_UP_SLICES_MAX: usize = 4;
/// The shortest active file that is closed because of its dead bytes. With a lower limit there
/// would be too many files.
const ROLL_BYTES_MIN: u64 = 4 << 20;
/// After this many appended bytes, the store checks for something to merge before the interval is
/// over.
const APPENDED_BYTES_MIN: u64 = 8 << 20;
/// A merge does not continue with a budget of fewer bytes than this.
const MERGE_SLICE_BYTES_MIN: u64 = 64 << 10;
/// Seconds until an operation is retried that failed because the disk was full.
const ROOM_RETRY_SECS: u64 = 2;
/// On a full disk, a log of at least this many bytes is removed early.
const PRESSED_LOG_BYTES_MIN: u64 = 256 << 10;
/// On a full disk, the active file is closed when it has this many dead bytes.
const PRESSED_ROLL_BYTES_MIN: u64 = 64 << 10;

/// The state under the upkeep lock.
pub(super) struct Upkeep {
    next_merge_check_secs: Option<u64>,
    /// Bytes appended up to the last slice of work; `checked_bytes` is the same up to the last
    /// check for something to merge.
    appended_bytes: u64,
    checked_bytes: u64,
    jitter: u64,
    merge: Option<MergeJob>,
    holds_merge_turn: bool,
    /// A merge could not be ended, so its input files must stay. Nothing is merged until the next
    /// start.
    merging_stopped: bool,
    /// A merge found no room for its copies. The next one takes only files whose copies fit.
    lacked_room: bool,
    /// Until this second, operations that failed because the disk was full are not retried.
    next_room_try_secs: u64,
    sweep: Option<SweepCursor>,
    next_sweep_secs: u64,
    retired: Vec<Retired>,
}

/// Merged input files that snapshots may still need.
pub(super) struct Retired {
    pub(super) files: Vec<Arc<DataFile>>,
    pub(super) commit_path: PathBuf,
    /// Snapshots with a ticket up to this one may need the files.
    pub(super) ticket: u64,
}

impl Upkeep {
    pub(super) fn new(partition: u32) -> Self {
        Self {
            next_merge_check_secs: None,
            appended_bytes: 0,
            checked_bytes: 0,
            // A different seed for each partition, so that they check at different times.
            jitter: u64::from(partition).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            merge: None,
            holds_merge_turn: false,
            merging_stopped: false,
            lacked_room: false,
            next_room_try_secs: 0,
            sweep: None,
            next_sweep_secs: 0,
            retired: Vec::new(),
        }
    }

    /// Whether to check for something to merge: at an interval, and when much was appended
    /// meanwhile.
    fn is_merge_check_due<I: KeyIndex>(&mut self, core: &Core<I>, now_secs: u64) -> bool {
        let config = &core.shared.config.merge;
        let interval = u64::from(config.check_interval_secs);
        let has_grown = self.appended_bytes - self.checked_bytes >= APPENDED_BYTES_MIN;
        if !has_grown && self.next_merge_check_secs.is_some_and(|next| now_secs < next) {
            return false;
        }
        self.checked_bytes = self.appended_bytes;
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let spread = interval * u64::from(config.check_jitter_percent) / 100;
        let jitter = if spread == 0 { 0 } else { (self.jitter >> 33) % (2 * spread + 1) };
        let first = self.next_merge_check_secs.is_none();
        self.next_merge_check_secs = Some(now_secs + interval - spread.min(interval) + jitter);
        !first || has_grown || interval == 0
    }

    /// Checks again in the next slice, because another store is merging.
    fn check_soon(&mut self, now_secs: u64) {
        self.next_merge_check_secs = Some(now_secs);
    }

    fn take_merge_turn<I: KeyIndex>(&mut self, core: &Core<I>) -> bool {
        let mut merging = core.shared.merging.lock();
        if merging.is_none() {
            *merging = Some(core.partition);
            self.holds_merge_turn = true;
        }
        self.holds_merge_turn
    }

    pub(super) fn release_merge_turn(&mut self, shared: &Shared, partition: u32) {
        if std::mem::take(&mut self.holds_merge_turn) {
            let mut merging = shared.merging.lock();
            assert_eq!(*merging, Some(partition), "the turn to merge was somebody else's");
            *merging = None;
        }
    }

    /// Gives the copies of an unfinished merge their final names.
    pub(super) fn settle_merge<I: KeyIndex>(&mut self, core: &Core<I>) -> Result<(), StorageError> {
        self.merge.as_mut().map_or(Ok(()), |job| job.settle(core))
    }

    /// Whether a file is kept only for snapshots because a merge has replaced it.
    pub(super) fn is_retired(&self, id: u32) -> bool {
        self.retired.iter().flat_map(|retired| &retired.files).any(|file| file.id == id)
    }

    /// Ends a merge early. Both its copies and its input files are kept.
    pub(super) fn abandon_merge<I: KeyIndex>(&mut self, core: &Core<I>) {
        if let Some(job) = self.merge.take()
            && let Err(error) = job.abandon(core)
        {
            self.merging_stopped = true;
            tracing::warn!(partition = core.partition, %error, "a merge could not be ended: no more merging until the next start");
        }
        self.release_merge_turn(&core.shared, core.partition);
    }
}

impl<I: KeyIndex> Core<I> {
    pub(super) fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.now_secs.store(now_secs, Ordering::Relaxed);
        self.end_overdue_views(now_secs);
        self.look_for_room(now_secs);
        self.sync_if_due(Instant::now())?;
        let Some(mut upkeep) = self.upkeep.try_lock() else { return Ok(()) };
        if self.check_writable().is_err() {
            // The store is closed or poisoned: nothing is due, and the status has the reason.
            return Ok(());
        }
        self.note_appended(&mut upkeep);
        self.seal_rolled(SEALS_PER_SLICE)?;
        self.purge_retired(&mut upkeep)?;
        self.sync_new_file()?;
        self.renew_inventory_if_due();
        if self.index.wants_checkpoint() || self.wants_log_removed(&mut upkeep, now_secs) {
            self.checkpoint(&mut upkeep)?;
        }
        self.upkeep_index()?;
        self.sweep_expired(&mut upkeep, now_secs)?;
        // A head that cannot be read must not delay merges.
        let ordered = if self.index.wants_order() { self.make_order(ORDER_SLICE).map(drop) } else { Ok(()) };
        self.merge_some(&mut upkeep, now_secs).and(ordered)
    }

    /// Does the work that an index needs before it may take more writes. Waiting writers do it one
    /// at a time.
    pub(super) fn catch_up(&self) -> Result<(), StorageError> {
        let mut upkeep = self.upkeep.lock();
        self.check_writable()?;
        for _ in 0..CATCH_UP_SLICES_MAX {
            if !self.index.is_behind() {
                break;
            }
            if self.index.wants_checkpoint() {
                self.checkpoint(&mut upkeep)?;
            }
            self.upkeep_index()?;
        }
        Ok(())
    }

    fn upkeep_index(&self) -> Result<(), StorageError> {
        if let Some(Compacted { bytes_before, bytes_after }) = self.index.upkeep()? {
            let ended_at_secs = self.now_secs.load(Ordering::Relaxed);
            *self.counters.last_merge.lock() = Some(LastMerge { ended_at_secs, bytes_before, bytes_after });
            self.counters.merges.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Earns merge budget for what was appended. Closes the active file before it is full if it is
    /// mostly dead, because only closed files are merged.
    fn note_appended(&self, upkeep: &mut Upkeep) {
        let mut writer = self.writer.lock();
        let appended_bytes = writer.bytes_written;
        self.shared.budget.earn(appended_bytes - std::mem::replace(&mut upkeep.appended_bytes, appended_bytes));
        let config = &self.shared.config.merge;
        let is_pressed = self.shared.space.is_short() || writer.disk_full;
        let Some(active) = writer.active.as_ref().filter(|_| config.policy != MergePolicy::Never) else { return };
        let counters = &active.file.counters;
        let live_bytes = counters.live_bytes.load(Ordering::Acquire);
        let dead_bytes = active.length.saturating_sub(live_bytes);
        let is_mostly_dead = dead_bytes * 100 >= active.length * u64::from(config.trigger_fragmentation_percent);
        let is_due = active.length >= ROLL_BYTES_MIN && (is_mostly_dead || dead_bytes >= self.dead_bytes_of_one_max());
        // Tombstones must be kept by a merge, so they do not count.
        let droppable_bytes = dead_bytes.saturating_sub(counters.tombstone_bytes.load(Ordering::Relaxed));
        if is_due || (is_pressed && I::KEEPS != Keeps::Everything && droppable_bytes >= PRESSED_ROLL_BYTES_MIN) {
            writer.roll();
        }
    }

    /// The dead bytes that the active file may have before it is closed.
    fn dead_bytes_of_one_max(&self) -> u64 {
        let config = &self.shared.config.merge;
        let Some(percent) = config.dead_percent_max else { return config.trigger_dead_bytes };
        let live: u64 = self.files.read().values().map(|file| file.counters.live_bytes.load(Ordering::Relaxed)).sum();
        // A quarter of what the store may have, so that the dead bytes are spread over several
        // files to choose from.
        (live / 100 * u64::from(percent) / 4).max(ROLL_BYTES_MIN).min(config.trigger_dead_bytes)
    }

    /// Writes the index's data from memory to disk, with a checkpoint that says how far it has seen
    /// the journal. No merge runs meanwhile, because merging needs the `upkeep` lock that the
    /// caller holds.
    pub(super) fn checkpoint(&self, upkeep: &mut Upkeep) -> Result<(), StorageError> {
        if I::KEEPS == Keeps::Head {
            // A start removes the outputs of an unfinished merge, so the checkpoint must not point
            // at them.
            if let Err(error) = upkeep.settle_merge(self) {
                tracing::warn!(partition = self.partition, %error, "what a merge has copied got no lasting names: its originals stay");
                upkeep.abandon_merge(self);
            }
        }
        if self.index.has_unwritten() {
            self.sync_appended()?;
            self.index.flush()?;
        }
        let covered = {
            let mut writer = self.writer.lock();
            if writer.last_seq() == 0 {
                // Nothing was ever written to this store, so no checkpoint is needed.
                return Ok(());
            }
            if I::KEEPS == Keeps::Everything {
                writer.roll();
            }
            self.note_checkpoint(&writer);
            writer.last_seq()
        };
        self.write_checkpoint(covered)?;
        drop(self.renew_inventory());
        Ok(())
    }

    /// The first half of a checkpoint: takes the state at this moment.
    pub(super) fn note_checkpoint(&self, writer: &Writer) {
        let files = self.files.read();
        let states = files.values().map(|file| (file.id, FileState::of(file)));
        // Other indexes do not need the states of the journal's files.
        let files = if I::KEEPS == Keeps::Head { states.collect() } else { BTreeMap::new() };
        let checkpoint = Checkpoint { seq: writer.last_seq(), next_id: writer.next_id, files };
        self.index.checkpoint(checkpoint.encode());
    }

    /// The second half of a checkpoint: on disk when this returns. The first half took everything
    /// up to `covered`.
    pub(super) fn write_checkpoint(&self, covered: u64) -> Result<(), StorageError> {
        // The index on disk must not point at records that are not on disk.
        self.sync(covered)?;
        self.index.flush()?;
        if I::KEEPS == Keeps::Everything {
            self.remove_covered(covered)?;
        }
        Ok(())
    }

    /// Removes the journal files whose versions the index has on its own disk.
    fn remove_covered(&self, seq: u64) -> Result<(), StorageError> {
        self.seal_rolled(usize::MAX)?;
        let covered = self.covered_files(seq);
        if covered.is_empty() {
            return Ok(());
        }
        let lost = covered.iter().map(|file| u64::from(file.counters.lost_ranges.load(Ordering::Relaxed))).sum();
        if lost > 0 {
            // The loss must stay known after the file with the damage is removed.
            self.note_loss(lost)?;
        }
        // The inventory must stop promising these files before they are removed.
        covered.iter().for_each(|file| file.is_leaving.store(true, Ordering::Release));
        self.renew_inventory_with(seq)?;
        // Records up to where the index must have seen the journal, so that an older index is
        // recognised.
        covered::write(&*self.shared.fs, &self.dir, seq)?;
        let mut files = self.files.write();
        covered.iter().for_each(|file| drop(files.remove(&file.id)));
        drop(files);
        for file in covered {
            for path in [hint_path(&self.dir, file.id), file.path()] {
                match self.shared.fs.remove_file(&path) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        return Err(io_error("remove", &path, source));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The files that are closed for appends and that have no record after `seq`. The caller must
    /// not look for them a second time: a file that was created since then has no record yet, and
    /// would seem to be one of them.
    fn covered_files(&self, seq: u64) -> Vec<Arc<DataFile>> {
        let writer = self.writer.lock();
        let appended: Vec<u32> =
            writer.rolled.iter().chain(writer.active.as_ref()).map(|appender| appender.file.id).collect();
        let is_covered =
            |file: &Arc<DataFile>| !appended.contains(&file.id) && file.counters.seq_max.load(Ordering::Acquire) <= seq;
        let files = self.files.read();
        files.values().filter(|file| is_covered(file)).cloned().collect()
    }

    /// Removes expired versions from the index. Their records on disk are dead from then on.
    fn sweep_expired(&self, upkeep: &mut Upkeep, now_secs: u64) -> Result<(), StorageError> {
        if !self.expires_anything() {
            return Ok(());
        }
        if upkeep.sweep.is_none() && now_secs >= upkeep.next_sweep_secs {
            upkeep.next_sweep_secs = now_secs + u64::from(self.shared.config.sweep_interval_secs);
            upkeep.sweep = Some(SweepCursor::default());
        }
        let Some(cursor) = &mut upkeep.sweep else { return Ok(()) };
        let expired = match self.index.expired(now_secs, cursor, SWEEP_SLICE) {
            Err(StorageError::Damaged { .. }) => {
                // Expired versions after the damage are still hidden from readers. Other work must
                // not be held up.
                upkeep.sweep = None;
                return Ok(());
            }
            expired => expired?,
        };
        for key in expired {
            let removed = self.index.remove_if(I::key(&key), |entry| self.is_expired(entry.expires_secs))?;
            if let Some(old) = removed {
                self.forget_live(&old);
                self.count_swept(&old, key.len());
            }
        }
        if cursor.is_done {
            upkeep.sweep = None;
        }
        Ok(())
    }

    /// Counts the record of a removed expired version as a tombstone: a merge must keep a tombstone
    /// for it while it hides older versions of its key.
    fn count_swept(&self, old: &Entry, key_len: usize) {
        if let Some(file) = self.files.read().get(&old.position.file_id) {
            file.counters.tombstones.fetch_add(1, Ordering::Relaxed);
            file.counters.tombstone_bytes.fetch_add((RECORD_HEADER_BYTES + key_len) as u64, Ordering::Relaxed);
        }
    }

    /// Syncs the appends when the interval is over. Takes no lock that a merge, a backup or
    /// `catch_up` holds.
    pub(super) fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        let SyncStrategy::Interval(interval) = self.shared.config.sync else { return Ok(()) };
        if self.check_writable().is_err() {
            // The status has the reason.
            return Ok(());
        }
        {
            let mut last_sync = self.last_sync.lock();
            if now.saturating_duration_since(*last_sync) < interval {
                return Ok(());
            }
            *last_sync = now;
        }
        self.sync_appended()
    }

    /// Syncs the active file if it was never synced, whatever the sync strategy: once for each file.
    /// Only a synced file is listed in the inventory, and only a listed file can be missed by a
    /// start. With the strategy `none`, nothing else syncs the file before it is closed.
    fn sync_new_file(&self) -> Result<(), StorageError> {
        let is_unsynced = self.writer.lock().active.as_ref().is_some_and(|active| {
            active.length > FILE_HEADER_BYTES as u64 && active.file.counters.synced_length.load(Ordering::Acquire) == 0
        });
        if is_unsynced { self.sync_appended() } else { Ok(()) }
    }

    /// Checks the free space: once a second for all stores of the root, and for each store whose
    /// writes were refused.
    fn look_for_room(&self, now_secs: u64) {
        let (found_full, dir) = {
            let writer = self.writer.lock();
            (writer.disk_full, if writer.dir_exists { &self.dir } else { &self.shared.root })
        };
        let space = &self.shared.space;
        if !space.wants_look_at(now_secs) && !found_full {
            return;
        }
        let room = space.look(&*self.shared.fs, dir).map(|free_bytes| space.is_room_again(free_bytes));
        if found_full && room.unwrap_or(false) {
            self.writer.lock().disk_full = false;
        }
    }

    /// Whether puts are refused until there is room.
    fn lacks_room(&self) -> bool {
        self.shared.space.is_short() || self.writer.lock().disk_full
    }

    /// Whether the log should be removed before the index asks for it: the disk is full, and the
    /// index has its own copy.
    fn wants_log_removed(&self, upkeep: &mut Upkeep, now_secs: u64) -> bool {
        if I::KEEPS != Keeps::Everything || now_secs < upkeep.next_room_try_secs || !self.lacks_room() {
            return false;
        }
        upkeep.next_room_try_secs = now_secs + ROOM_RETRY_SECS;
        let length = |file: &Arc<DataFile>| file.counters.length.load(Ordering::Relaxed);
        self.files.read().values().map(length).sum::<u64>() >= PRESSED_LOG_BYTES_MIN
    }

    /// Syncs the files that are closed for appends, and completes the hint files of at most
    /// `count_max` of them.
    pub(super) fn seal_rolled(&self, count_max: usize) -> Result<(), StorageError> {
        if self.writer.lock().rolled.is_empty() {
            return Ok(());
        }
        self.sync_appended()?;
        let sealed = {
            let mut writer = self.writer.lock();
            let synced = |file: &DataFile, length| file.counters.synced_length.load(Ordering::Acquire) >= length;
            writer
                .rolled
                .extract_if(.., |rolled| synced(&rolled.file, rolled.length))
                .take(count_max)
                .collect::<Vec<_>>()
        };
        let mut is_named = false;
        for appender in sealed {
            self.inventory.note_change();
            let Some(hint) = appender.hint else { continue };
            let path = hint_path(&self.dir, appender.file.id);
            self.counters.hint_bytes.fetch_add(hint.length(), Ordering::Relaxed);
            match hint.finish(&*self.shared.fs, &path, appender.length, 0) {
                Ok(()) => is_named = true,
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "no hint file: the next start will read the data");
                }
            }
        }
        if !is_named {
            return Ok(());
        }
        // The hint file proves that the last record of its data file was synced. Without a durable
        // name, a loss of power can remove the hint file, and damage to the last record (for
        // instance by a misdirected write) would look like a torn write. To prevent that is worth
        // one sync for each file.
        self.sync_dir().inspect_err(|error| self.poison(error))
    }

    /// Removes merged input files that no snapshot needs any more.
    fn purge_retired(&self, upkeep: &mut Upkeep) -> Result<(), StorageError> {
        let oldest = self.snapshot_tickets.lock().live.first_key_value().map_or(u64::MAX, |(ticket, _)| *ticket);
        while let Some(retired) = upkeep.retired.iter().position(|retired| retired.ticket < oldest) {
            let retired = upkeep.retired.swap_remove(retired);
            let mut files = self.files.write();
            retired.files.iter().for_each(|file| drop(files.remove(&file.id)));
            drop(files);
            let ids: Vec<u32> = retired.files.iter().map(|file| file.id).collect();
            remove_committed(&*self.shared.fs, &self.dir, &ids, &retired.commit_path)?;
        }
        Ok(())
    }

    fn merge_some(&self, upkeep: &mut Upkeep, now_secs: u64) -> Result<(), StorageError> {
        if I::KEEPS == Keeps::Everything {
            return Ok(());
        }
        if upkeep.merge.is_none() && !self.start_merge(upkeep, now_secs) {
            return Ok(());
        }
        if now_secs < upkeep.next_room_try_secs && upkeep.merge.as_ref().is_some_and(MergeJob::is_uncommitted) {
            return Ok(());
        }
        let allowed = self.shared.budget.available_bytes();
        let Some(job) = upkeep.merge.as_mut().filter(|_| allowed >= MERGE_SLICE_BYTES_MIN) else {
            return Ok(());
        };
        let progress = job.advance(self, allowed);
        self.counters.merge_pending_bytes.store(job.pending_bytes(), Ordering::Relaxed);
        match progress {
            Ok(Progress::More) => Ok(()),
            Ok(Progress::CopiedAll) => self.commit_merge(upkeep, now_secs),
            Err(error) => {
                tracing::warn!(partition = self.partition, %error, "a merge was given up; nothing is lost");
                // A damaged index cannot say which versions are current, so a retry would not help.
                upkeep.merging_stopped |= matches!(error, StorageError::Damaged { .. });
                upkeep.abandon_merge(self);
                if !is_no_room(&error) {
                    return Err(error);
                }
                upkeep.lacked_room = true;
                upkeep.next_room_try_secs = now_secs + ROOM_RETRY_SECS;
                Ok(())
            }
        }
    }

    fn commit_merge(&self, upkeep: &mut Upkeep, now_secs: u64) -> Result<(), StorageError> {
        let Some(mut job) = upkeep.merge.take() else { return Ok(()) };
        let result = job.commit(self, upkeep);
        // While this merge waits for room, others may run and make room.
        upkeep.release_merge_turn(&self.shared, self.partition);
        match result {
            Ok(retired) => {
                upkeep.retired.extend(retired);
                self.purge_retired(upkeep)
            }
            Err(error) if is_no_room(&error) => {
                tracing::warn!(partition = self.partition, %error, "a merge waits for room to be committed");
                upkeep.merge = Some(job);
                upkeep.next_room_try_secs = now_secs + ROOM_RETRY_SECS;
                Ok(())
            }
            Err(error) => {
                upkeep.merging_stopped = true;
                Err(error)
            }
        }
    }

    fn start_merge(&self, upkeep: &mut Upkeep, now_secs: u64) -> bool {
        let config = &self.shared.config.merge;
        if upkeep.merging_stopped || config.policy == MergePolicy::Never {
            return false;
        }
        let is_pressed = upkeep.lacked_room || self.lacks_room();
        let is_room_try = is_pressed && now_secs >= upkeep.next_room_try_secs;
        if !upkeep.is_merge_check_due(self, now_secs) && !is_room_try {
            return false;
        }
        let summaries = self.mergeable(upkeep);
        let inputs = self.merge_inputs(&summaries, is_pressed, now_secs);
        if is_room_try {
            upkeep.next_room_try_secs = now_secs + ROOM_RETRY_SECS;
        }
        upkeep.lacked_room = false;
        if inputs.is_empty() {
            return false;
        }
        if !upkeep.take_merge_turn(self) {
            upkeep.check_soon(now_secs);
            return false;
        }
        upkeep.merge = MergeJob::start(self, &inputs, &upkeep.retired);
        if upkeep.merge.is_none() {
            upkeep.release_merge_turn(&self.shared, self.partition);
        }
        upkeep.merge.is_some()
    }

    /// The input files of the next merge. On a full disk, or if the copies of the usual choice do
    /// not fit, these are files whose merge makes room.
    fn merge_inputs(&self, summaries: &[FileSummary], is_pressed: bool, now_secs: u64) -> Vec<u32> {
        let config = &self.shared.config.merge;
        let expired_before =
            self.shared.config.expiry_secs.map(|expiry| {
                now_secs.saturating_sub(u64::from(expiry) + u64::from(self.shared.config.expiry_grace_secs))
            });
        let inputs = select_inputs(summaries, config, expired_before);
        let chosen = || summaries.iter().filter(|file| inputs.contains(&file.id));
        self.counters.merge_pending_bytes.store(chosen().map(|file| file.bytes).sum(), Ordering::Relaxed);
        // A merge outside its hours is better than a disk that takes no puts.
        let may_begin = !inputs.is_empty() && is_in_window(config.policy, config.utc_offset_secs, now_secs);
        if !may_begin && !is_pressed {
            return Vec::new();
        }
        let free_bytes = self.shared.fs.free_bytes(&self.dir).unwrap_or(0);
        let room_bytes = DiskSpace::merge_bytes_max(free_bytes);
        let copied_bytes: u64 = chosen().map(|file| file.live_bytes).sum();
        if !is_pressed && copied_bytes <= room_bytes {
            return inputs;
        }
        let fitting = select_for_room(summaries, room_bytes);
        if fitting.is_empty() && !is_pressed {
            let partition = self.partition;
            tracing::warn!(partition, free_bytes, copied_bytes, "not merging: no file whose copy would fit makes room");
        }
        fitting
    }

    /// Summaries of the store's files. Only files that are closed and complete can be merged.
    fn mergeable(&self, upkeep: &Upkeep) -> Vec<FileSummary> {
        let writer = self.writer.lock();
        let files = self.files.read();
        let appended: Vec<u32> =
            writer.rolled.iter().chain(writer.active.as_ref()).map(|appender| appender.file.id).collect();
        files
            .values()
            .filter(|file| !upkeep.is_retired(file.id))
            .map(|file| summarize(file, !appended.contains(&file.id)))
            .collect()
    }
}

fn is_in_window(policy: MergePolicy, utc_offset_secs: i32, now_secs: u64) -> bool {
    match policy {
        MergePolicy::Always => true,
        MergePolicy::Never => false,
        MergePolicy::Window { start_hour, end_hour } => {
            let hour = (now_secs.saturating_add_signed(i64::from(utc_offset_secs)) / 3600 % 24) as u8;
            if start_hour <= end_hour {
                (start_hour..=end_hour).contains(&hour)
            } else {
                hour >= start_hour || hour <= end_hour
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_include_both_hours_and_may_span_midnight() {
        let at = |hour: u64| hour * 3600 + 1800;
        let night = MergePolicy::Window { start_hour: 22, end_hour: 4 };
        let merging: Vec<u64> = (0..24).filter(|hour| is_in_window(night, 0, at(*hour))).collect();
        assert_eq!(merging, [0, 1, 2, 3, 4, 22, 23]);
        let day = MergePolicy::Window { start_hour: 9, end_hour: 10 };
        assert!(is_in_window(day, 0, at(10)) && !is_in_window(day, 0, at(11)));
        assert!(is_in_window(day, 7200, at(7)) && !is_in_window(day, 7200, at(9)));
        assert!(is_in_window(MergePolicy::Always, 0, 0) && !is_in_window(MergePolicy::Never, 0, 0));
    }
}
