//! When merges run: checks for something to merge, one merge at a time for each root, and what
//! follows a merge that failed.

use super::space::RoomRetry;
use crate::error::StorageError;
use crate::journal::config::MergePolicy;
use crate::journal::merge::{
    FileSummary, MergeJob, Progress, ReplacedFiles, remove_committed, select_for_room, select_inputs, summarize,
};
use crate::journal::policy::JournalPolicy;
use crate::journal::shared::Shared;
use crate::journal::space::DiskSpace;
use crate::journal::store::Core;
use crate::journal::writer::is_no_room;
use std::sync::atomic::Ordering;

/// After this many appended bytes, the store checks for something to merge before the interval is
/// over.
const APPENDED_BYTES_MIN: u64 = 8 << 20;
/// A merge does not continue with a budget of fewer bytes than this.
const MERGE_SLICE_BYTES_MIN: u64 = 64 << 10;

/// The merges of one store: the one that is under way, and when the next one begins.
pub(crate) struct MergeScheduler {
    next_check_secs: Option<u64>,
    /// Bytes appended up to the last check for something to merge.
    checked_bytes: u64,
    jitter: u64,
    job: Option<MergeJob>,
    holds_turn: bool,
    /// A merge could not be ended, so its input files must stay. Nothing is merged until the next
    /// start.
    is_stopped: bool,
    /// A merge found no room for its copies. The next one takes only files whose copies fit.
    lacked_room: bool,
    room: RoomRetry,
    /// Input files of committed merges that snapshots may still need.
    replaced: Vec<ReplacedFiles>,
}

impl MergeScheduler {
    pub(super) fn new(partition: u32) -> Self {
        Self {
            next_check_secs: None,
            checked_bytes: 0,
            // A different seed for each partition, so that they check at different times.
            jitter: u64::from(partition).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            job: None,
            holds_turn: false,
            is_stopped: false,
            lacked_room: false,
            room: RoomRetry::default(),
            replaced: Vec::new(),
        }
    }

    /// Whether to check for something to merge: at an interval, and when much was appended
    /// meanwhile.
    fn is_check_due<P: JournalPolicy>(&mut self, core: &Core<P>, appended_bytes: u64, now_secs: u64) -> bool {
        let config = &core.shared.config.merge;
        let interval = u64::from(config.check_interval_secs);
        let has_grown = appended_bytes - self.checked_bytes >= APPENDED_BYTES_MIN;
        if !has_grown && self.next_check_secs.is_some_and(|next| now_secs < next) {
            return false;
        }
        self.checked_bytes = appended_bytes;
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let spread = interval * u64::from(config.check_jitter_percent) / 100;
        let jitter = if spread == 0 { 0 } else { (self.jitter >> 33) % (2 * spread + 1) };
        let first = self.next_check_secs.is_none();
        self.next_check_secs = Some(now_secs + interval - spread.min(interval) + jitter);
        !first || has_grown || interval == 0
    }

    /// Checks again in the next slice, because another store is merging.
    fn check_soon(&mut self, now_secs: u64) {
        self.next_check_secs = Some(now_secs);
    }

    fn take_turn<P: JournalPolicy>(&mut self, core: &Core<P>) -> bool {
        let mut merging = core.shared.merging.lock();
        if merging.is_none() {
            *merging = Some(core.partition);
            self.holds_turn = true;
        }
        self.holds_turn
    }

    pub(in crate::journal) fn release_turn(&mut self, shared: &Shared, partition: u32) {
        if std::mem::take(&mut self.holds_turn) {
            let mut merging = shared.merging.lock();
            assert_eq!(*merging, Some(partition), "another partition holds the turn to merge");
            *merging = None;
        }
    }

    /// Gives the copies of an unfinished merge their final names.
    pub(in crate::journal) fn settle<P: JournalPolicy>(&mut self, core: &Core<P>) -> Result<(), StorageError> {
        self.job.as_mut().map_or(Ok(()), |job| job.finalize_outputs(core))
    }

    /// Gives the copies of an unfinished merge their final names, or else ends the merge.
    pub(crate) fn settle_or_abandon<P: JournalPolicy>(&mut self, core: &Core<P>) {
        if let Err(error) = self.settle(core) {
            tracing::warn!(partition = core.partition, %error, "what a merge has copied got no lasting names: its originals stay");
            self.abandon(core);
        }
    }

    /// Whether a file is kept only for snapshots because a merge has replaced it.
    pub(in crate::journal) fn is_replaced(&self, id: u32) -> bool {
        self.replaced.iter().flat_map(|replaced| &replaced.files).any(|file| file.id == id)
    }

    /// Ends a merge early. Both its copies and its input files are kept.
    pub(in crate::journal) fn abandon<P: JournalPolicy>(&mut self, core: &Core<P>) {
        if let Some(job) = self.job.take()
            && let Err(error) = job.abandon(core)
        {
            self.is_stopped = true;
            tracing::warn!(partition = core.partition, %error, "a merge could not be ended: no more merging until the next start");
        }
        self.release_turn(&core.shared, core.partition);
    }
}

impl<P: JournalPolicy> Core<P> {
    /// Removes merged input files that no snapshot needs any more.
    pub(super) fn purge_replaced(&self, merges: &mut MergeScheduler) -> Result<(), StorageError> {
        let oldest = self.snapshot_tickets.lock().live.first_key_value().map_or(u64::MAX, |(ticket, _)| *ticket);
        while let Some(place) = merges.replaced.iter().position(|replaced| replaced.ticket < oldest) {
            let replaced = merges.replaced.swap_remove(place);
            let mut files = self.files.write();
            replaced.files.iter().for_each(|file| drop(files.remove(&file.id)));
            drop(files);
            let ids: Vec<u32> = replaced.files.iter().map(|file| file.id).collect();
            remove_committed(&*self.shared.fs, &self.dir, &ids, &replaced.commit_path)?;
        }
        Ok(())
    }

    pub(super) fn merge_some(
        &self,
        merges: &mut MergeScheduler,
        appended_bytes: u64,
        now_secs: u64,
    ) -> Result<(), StorageError> {
        if !P::merges_files() {
            return Ok(());
        }
        if merges.job.is_none() && !self.start_merge(merges, appended_bytes, now_secs) {
            return Ok(());
        }
        if !merges.room.is_due(now_secs) && merges.job.as_ref().is_some_and(MergeJob::is_uncommitted) {
            return Ok(());
        }
        let allowed = self.shared.budget.available_bytes(self.shared.fs.machine().now());
        let Some(job) = merges.job.as_mut().filter(|_| allowed >= MERGE_SLICE_BYTES_MIN) else {
            return Ok(());
        };
        let progress = job.advance(self, allowed);
        self.counters.merge_pending_bytes.store(job.pending_bytes(), Ordering::Relaxed);
        match progress {
            Ok(Progress::More) => Ok(()),
            Ok(Progress::CopiedAll) => self.commit_merge(merges, now_secs),
            Err(error) => {
                tracing::warn!(partition = self.partition, %error, "a merge was given up; nothing is lost");
                // A damaged index cannot say which versions are current, so a retry would not help.
                merges.is_stopped |= error.is_unreadable_version();
                merges.abandon(self);
                if !is_no_room(&error) {
                    return Err(error);
                }
                merges.lacked_room = true;
                merges.room.defer(now_secs);
                Ok(())
            }
        }
    }

    fn commit_merge(&self, merges: &mut MergeScheduler, now_secs: u64) -> Result<(), StorageError> {
        let Some(mut job) = merges.job.take() else { return Ok(()) };
        let result = job.commit(self);
        // While this merge waits for room, others may run and make room.
        merges.release_turn(&self.shared, self.partition);
        match result {
            Ok(replaced) => {
                merges.replaced.extend(replaced);
                self.purge_replaced(merges)
            }
            Err(error) if is_no_room(&error) => {
                tracing::warn!(partition = self.partition, %error, "a merge waits for room to be committed");
                merges.job = Some(job);
                merges.room.defer(now_secs);
                Ok(())
            }
            Err(error) => {
                merges.is_stopped = true;
                Err(error)
            }
        }
    }

    fn start_merge(&self, merges: &mut MergeScheduler, appended_bytes: u64, now_secs: u64) -> bool {
        let config = &self.shared.config.merge;
        if merges.is_stopped || config.policy == MergePolicy::Never {
            return false;
        }
        let is_short_of_space = merges.lacked_room || self.lacks_room();
        let is_room_try = is_short_of_space && merges.room.is_due(now_secs);
        if !merges.is_check_due(self, appended_bytes, now_secs) && !is_room_try {
            return false;
        }
        let summaries = self.mergeable(merges);
        let inputs = self.merge_inputs(&summaries, is_short_of_space, now_secs);
        if is_room_try {
            merges.room.defer(now_secs);
        }
        merges.lacked_room = false;
        if inputs.is_empty() {
            return false;
        }
        if !merges.take_turn(self) {
            merges.check_soon(now_secs);
            return false;
        }
        merges.job = MergeJob::start(self, &inputs, &merges.replaced);
        if merges.job.is_none() {
            merges.release_turn(&self.shared, self.partition);
        }
        merges.job.is_some()
    }

    /// The input files of the next merge. On a full disk, or if the copies of the usual choice do
    /// not fit, these are files whose merge makes room.
    fn merge_inputs(&self, summaries: &[FileSummary], is_short_of_space: bool, now_secs: u64) -> Vec<u32> {
        let config = &self.shared.config.merge;
        let expired_before =
            self.shared.config.expiry_secs.map(|expiry| {
                now_secs.saturating_sub(u64::from(expiry) + u64::from(self.shared.config.expiry_grace_secs))
            });
        let inputs = select_inputs(summaries, config, expired_before);
        let chosen = || summaries.iter().filter(|file| inputs.contains(&file.id));
        self.counters.merge_pending_bytes.store(chosen().map(|file| file.bytes).sum(), Ordering::Relaxed);
        // A merge outside its hours is better than a disk that takes no puts.
        let may_begin = !inputs.is_empty() && config.policy.allows_start(config.utc_offset_secs, now_secs);
        if !may_begin && !is_short_of_space {
            return Vec::new();
        }
        let free_bytes = self.shared.fs.free_bytes(&self.dir).unwrap_or(0);
        let room_bytes = DiskSpace::merge_bytes_max(free_bytes);
        let copied_bytes: u64 = chosen().map(|file| file.live_bytes).sum();
        if !is_short_of_space && copied_bytes <= room_bytes {
            return inputs;
        }
        let fitting = select_for_room(summaries, room_bytes);
        if fitting.is_empty() && !is_short_of_space {
            let partition = self.partition;
            tracing::warn!(partition, free_bytes, copied_bytes, "not merging: no file whose copy would fit makes room");
        }
        fitting
    }

    /// Summaries of the store's files. Only files that are closed and complete can be merged.
    fn mergeable(&self, merges: &MergeScheduler) -> Vec<FileSummary> {
        let writer = self.writer.lock();
        let files = self.files.read();
        let unsealed = writer.unsealed_ids();
        files
            .values()
            .filter(|file| !merges.is_replaced(file.id))
            .map(|file| {
                let keeps_tombstones = self.retention.keeps(file.counters.seq_max.load(Ordering::Acquire));
                FileSummary { keeps_tombstones, ..summarize(file, !unsealed.contains(&file.id)) }
            })
            .collect()
    }
}
