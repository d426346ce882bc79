//! Background work, in bounded slices: syncing at an interval, hint files, merging, removing merged
//! files.

use super::checkpoint::{Checkpoint, FileState};
use super::config::{MergePolicy, SyncStrategy};
use super::covered;
use super::data_file::{DataFile, hint_path};
use super::format::RECORD_HEADER_BYTES;
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

/// Files that one slice completes: each may take a sync.
const SEALS_PER_SLICE: usize = 4;
/// Keys that one slice looks at for expired versions.
const SWEEP_SLICE: usize = 10_000;
/// Pieces of work that one writer does for an index that is behind.
const CATCH_UP_SLICES_MAX: usize = 4;
/// A file that is still appended to is not closed for its dead before it has so many bytes: files
/// would be too many.
const ROLL_BYTES_MIN: u64 = 4 << 20;
/// What is appended between two looks for something to merge, whatever their interval.
const APPENDED_BYTES_MIN: u64 = 8 << 20;
/// Less than this is not worth waking a merge for.
const MERGE_SLICE_BYTES_MIN: u64 = 64 << 10;
/// Seconds after which something is tried again that a full disk has refused.
const ROOM_RETRY_SECS: u64 = 2;
/// On a full disk, a log goes before its time if it has so many bytes.
const PRESSED_LOG_BYTES_MIN: u64 = 256 << 10;
/// On a full disk, a file that is appended to is closed for so many dead bytes.
const PRESSED_ROLL_BYTES_MIN: u64 = 64 << 10;

/// State under the upkeep lock.
pub(super) struct Upkeep {
    next_merge_check_secs: Option<u64>,
    /// Bytes appended, as of the last slice of work and the last look for something to merge.
    appended_bytes: u64,
    checked_bytes: u64,
    jitter: u64,
    merge: Option<MergeJob>,
    holds_merge_turn: bool,
    /// A merge could not be brought to an end: its inputs must stay, so nothing is merged until the
    /// next start.
    merging_stopped: bool,
    /// A merge found no room for its copies: the next one takes what fits.
    lacked_room: bool,
    /// Before this second, nothing is tried again that a full disk has refused.
    next_room_try_secs: u64,
    sweep: Option<SweepCursor>,
    next_sweep_secs: u64,
    retired: Vec<Retired>,
}

/// Merged files that snapshots may still need.
pub(super) struct Retired {
    pub(super) files: Vec<Arc<DataFile>>,
    pub(super) commit_path: PathBuf,
    /// Snapshots with a ticket up to this one may need them.
    pub(super) ticket: u64,
}

impl Upkeep {
    pub(super) fn new(partition: u32) -> Self {
        Self {
            next_merge_check_secs: None,
            appended_bytes: 0,
            checked_bytes: 0,
            // Partitions look at different moments.
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

    /// Whether it is time to look for something to merge: at an interval, and when much was written
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

    /// Looks again in the next slice: others are merging.
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

    /// Puts what a merge has copied so far under names that it keeps.
    pub(super) fn settle_merge<I: KeyIndex>(&mut self, core: &Core<I>) -> Result<(), StorageError> {
        self.merge.as_mut().map_or(Ok(()), |job| job.settle(core))
    }

    /// Whether a file is only kept for snapshots: a merge has replaced it.
    pub(super) fn is_retired(&self, id: u32) -> bool {
        self.retired.iter().flat_map(|retired| &retired.files).any(|file| file.id == id)
    }

    /// Leaves a merge where it is: what it copied is kept, its inputs are kept too.
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
            // Closed or poisoned: nothing is due, and the status says why.
            return Ok(());
        }
        self.note_appended(&mut upkeep);
        self.seal_rolled(SEALS_PER_SLICE)?;
        self.purge_retired(&mut upkeep)?;
        self.renew_inventory_if_due();
        if self.index.wants_checkpoint() || self.wants_log_removed(&mut upkeep, now_secs) {
            self.checkpoint(&mut upkeep)?;
        }
        self.upkeep_index()?;
        self.sweep_expired(&mut upkeep, now_secs)?;
        // A head that cannot be read must not keep merges waiting.
        let ordered = if self.index.wants_order() { self.make_order(ORDER_SLICE).map(drop) } else { Ok(()) };
        self.merge_some(&mut upkeep, now_secs).and(ordered)
    }

    /// What an index needs before it may gather more; who waits does the work, one at a time.
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

    /// Lets merging keep up with what is appended, and closes a file that is mostly dead before it
    /// is full: only closed files are merged.
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
        // Tombstones have to stay: a file of nothing else is no help.
        let droppable_bytes = dead_bytes.saturating_sub(counters.tombstone_bytes.load(Ordering::Relaxed));
        if is_due || (is_pressed && I::KEEPS != Keeps::Everything && droppable_bytes >= PRESSED_ROLL_BYTES_MIN) {
            writer.roll();
        }
    }

    /// Dead bytes that a file may have before it is closed.
    fn dead_bytes_of_one_max(&self) -> u64 {
        let config = &self.shared.config.merge;
        let Some(percent) = config.dead_percent_max else { return config.trigger_dead_bytes };
        let live: u64 = self.files.read().values().map(|file| file.counters.live_bytes.load(Ordering::Relaxed)).sum();
        // Of what the store may have, a part: the files of the largest dead share are to be found
        // among several.
        (live / 100 * u64::from(percent) / 4).max(ROLL_BYTES_MIN).min(config.trigger_dead_bytes)
    }

    /// Writes what the index has in memory, with a note of how far it has seen the journal. Merging
    /// stands still: whoever holds `upkeep` is the one who merges.
    pub(super) fn checkpoint(&self, upkeep: &mut Upkeep) -> Result<(), StorageError> {
        if I::KEEPS == Keeps::Head {
            // A start removes what a merge had not finished.
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
                // Nothing was ever written here, and nothing is left behind that says otherwise.
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

    /// The first half of a checkpoint, at the moment that it is of.
    pub(super) fn note_checkpoint(&self, writer: &Writer) {
        let files = self.files.read();
        let states = files.values().map(|file| (file.id, FileState::of(file)));
        // Who has everything, or nothing on disk, does not ask where a version lies.
        let files = if I::KEEPS == Keeps::Head { states.collect() } else { BTreeMap::new() };
        let checkpoint = Checkpoint { seq: writer.last_seq(), next_id: writer.next_id, files };
        self.index.checkpoint(checkpoint.encode());
    }

    /// The second half: on disk when this returns. Everything up to `covered` was noted.
    pub(super) fn write_checkpoint(&self, covered: u64) -> Result<(), StorageError> {
        // Nothing on disk may point at what is not.
        self.sync(covered)?;
        self.index.flush()?;
        if I::KEEPS == Keeps::Everything {
            self.remove_covered(covered)?;
        }
        Ok(())
    }

    /// Removes the files of which the index has everything on its own disk.
    fn remove_covered(&self, seq: u64) -> Result<(), StorageError> {
        self.seal_rolled(usize::MAX)?;
        let appended: Vec<u32> = {
            let writer = self.writer.lock();
            writer.rolled.iter().chain(writer.active.as_ref()).map(|appender| appender.file.id).collect()
        };
        let is_covered =
            |file: &DataFile| !appended.contains(&file.id) && file.counters.seq_max.load(Ordering::Acquire) <= seq;
        if !self.files.read().values().any(|file| is_covered(file)) {
            return Ok(());
        }
        let lost_ranges = |file: &Arc<DataFile>| u64::from(file.counters.lost_ranges.load(Ordering::Relaxed));
        let lost = self.files.read().values().filter(|file| is_covered(file)).map(lost_ranges).sum();
        if lost > 0 {
            // The knowledge that something is missing outlives the file in which it was.
            self.note_loss(lost)?;
        }
        // Nothing may be missed that is removed here.
        self.files
            .read()
            .values()
            .filter(|file| is_covered(file))
            .for_each(|file| file.is_leaving.store(true, Ordering::Release));
        self.renew_inventory_with(seq)?;
        // An index that has not seen what is removed here must be known for that.
        covered::write(&*self.shared.fs, &self.dir, seq)?;
        let covered: Vec<Arc<DataFile>> = {
            let mut files = self.files.write();
            let ids: Vec<u32> = files.iter().filter(|(_, file)| is_covered(file)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| files.remove(id)).collect()
        };
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

    /// Forgets versions that have expired: their keys leave the index, what they take on disk is
    /// dead.
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
                // What expires behind the damage is still absent to readers. Other work must not
                // wait for it.
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

    /// The record of a version that is forgotten is as good as a tombstone: a merge must not lose
    /// it while it hides older versions of its key.
    fn count_swept(&self, old: &Entry, key_len: usize) {
        if let Some(file) = self.files.read().get(&old.position.file_id) {
            file.counters.tombstones.fetch_add(1, Ordering::Relaxed);
            file.counters.tombstone_bytes.fetch_add((RECORD_HEADER_BYTES + key_len) as u64, Ordering::Relaxed);
        }
    }

    /// Syncs what was appended when the interval is over. Takes no lock that a merge, a backup or
    /// `catch_up` holds.
    pub(super) fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        let SyncStrategy::Interval(interval) = self.shared.config.sync else { return Ok(()) };
        if self.check_writable().is_err() {
            // The status says why.
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

    /// Asks how full the disk is: for all stores of the root now and then, and for a store whose
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

    /// Whether the log should go before the index asks for it: the disk is full, and the index has
    /// its own copy.
    fn wants_log_removed(&self, upkeep: &mut Upkeep, now_secs: u64) -> bool {
        if I::KEEPS != Keeps::Everything || now_secs < upkeep.next_room_try_secs || !self.lacks_room() {
            return false;
        }
        upkeep.next_room_try_secs = now_secs + ROOM_RETRY_SECS;
        let length = |file: &Arc<DataFile>| file.counters.length.load(Ordering::Relaxed);
        self.files.read().values().map(length).sum::<u64>() >= PRESSED_LOG_BYTES_MIN
    }

    /// Syncs the files that are closed for appends and completes the hint files of some of them.
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
        // Until the hint's name is on disk, a loss of power takes away what says that the last
        // record of the file was synced: had the disk put that elsewhere, it would pass for a torn
        // tail. That is worth one sync a file.
        self.sync_dir().inspect_err(|error| self.poison(error))
    }

    /// Removes merged files that no snapshot needs any more.
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
                // An index that cannot be read cannot say what is current, however often it is
                // asked.
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
        // Others may merge, and make room, while this one waits for it.
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

    /// The files of the next merge. On a full disk, or where their copies do not fit, these are the
    /// ones that make room.
    fn merge_inputs(&self, summaries: &[FileSummary], is_pressed: bool, now_secs: u64) -> Vec<u32> {
        let config = &self.shared.config.merge;
        let expired_before =
            self.shared.config.expiry_secs.map(|expiry| {
                now_secs.saturating_sub(u64::from(expiry) + u64::from(self.shared.config.expiry_grace_secs))
            });
        let inputs = select_inputs(summaries, config, expired_before);
        let chosen = || summaries.iter().filter(|file| inputs.contains(&file.id));
        self.counters.merge_pending_bytes.store(chosen().map(|file| file.bytes).sum(), Ordering::Relaxed);
        // A disk that takes no puts is worse than a merge outside its hours.
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

    /// What is in each file of the store; only those that are closed and complete are open to
    /// merging.
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
