//! The commit of a merge: its input files count as removed from then on.

use super::commit_file::{commit_path, write_commit};
use super::job::MergeJob;
use crate::backend::LastMerge;
use crate::error::StorageError;
use crate::journal::data_file::DataFile;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Input files of a committed merge that snapshots may still need.
pub(in crate::journal) struct ReplacedFiles {
    pub(in crate::journal) files: Vec<Arc<DataFile>>,
    pub(in crate::journal) commit_path: PathBuf,
    /// Snapshots with a ticket up to this one may need the files.
    pub(in crate::journal) ticket: u64,
}

impl MergeJob {
    /// Commits the merge: syncs the outputs, then marks the input files as removed. None if an
    /// input file must stay. After a failure for lack of room this may be called again: steps that
    /// are already done have no effect.
    pub(in crate::journal) fn commit<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
    ) -> Result<Option<ReplacedFiles>, StorageError> {
        // A start removes copies without a final name, so their originals must stay until the
        // copies have one.
        self.outputs.check_not_broken(core)?;
        self.outputs.finish(core)?;
        // Syncs the versions that superseded those that were not copied.
        core.sync_appended()?;
        let stuck = {
            // With the writer's lock, no put is between its index entry and its counting.
            let _writer = core.writer.lock();
            let must_stay = |file: &&Arc<DataFile>| {
                file.counters.live_records.load(Ordering::Acquire) > 0 || file.may_hide_tombstones()
            };
            let stuck: Vec<_> = self.inputs.iter().filter(must_stay).cloned().collect();
            stuck.iter().for_each(|file| file.unmergeable.store(true, Ordering::Relaxed));
            stuck
        };
        if let Some(file) = stuck.first() {
            tracing::error!(
                partition = core.partition,
                file = %file.path().display(),
                "versions in it cannot be read: it is kept as it is"
            );
            core.tell_unread_versions(&stuck)?;
            return Ok(None);
        }
        self.record_used_seq(core)?;
        if self.outputs.lost_ranges > 0 {
            // There is no copy that could record the loss for the next start.
            self.outputs.note_loss(core)?;
        }
        // A consumer of the change feed from before must learn that it missed removals.
        core.retention.raise_floor(self.forgotten_seq, core.identity.identity().boot)?;
        // An index on disk must not point at input files that are gone.
        core.checkpoint()?;
        P::record_merge(core)?;
        let number = core.writer.lock().take_id(&core.dir)?;
        let files: Vec<(u32, u64)> = self.inputs.iter().map(|file| (file.id, file.salt)).collect();
        self.release_inputs(core)?;
        let commit_path = write_commit(&*core.shared.fs, &core.dir, number, &files)
            .inspect_err(|_| self.keep_inputs(core, number))?;
        let bytes_before: u64 = self.inputs.iter().map(|file| file.counters.length.load(Ordering::Relaxed)).sum();
        tracing::info!(
            partition = core.partition,
            files = files.len(),
            bytes_before,
            bytes_after = self.outputs.bytes_written,
            "merged"
        );
        core.counters.merges.fetch_add(1, Ordering::Relaxed);
        let ended_at_secs = core.now_secs.load(Ordering::Relaxed);
        *core.counters.last_merge.lock() =
            Some(LastMerge { ended_at_secs, bytes_before, bytes_after: self.outputs.bytes_written });
        let ticket = core.snapshot_tickets.lock().next;
        Ok(Some(ReplacedFiles { files: std::mem::take(&mut self.inputs), commit_path, ticket }))
    }

    /// Removes the input files from the inventory before the commit file gets its name.
    fn release_inputs<P: JournalPolicy>(&self, core: &Core<P>) -> Result<(), StorageError> {
        self.set_unpromised(true);
        core.renew_inventory().inspect_err(|_| self.set_unpromised(false))
    }

    /// After the commit file could not be written: the inventory promises the input files as
    /// before, unless the commit file has its name nevertheless.
    fn keep_inputs<P: JournalPolicy>(&self, core: &Core<P>, number: u32) {
        let commit = core.shared.fs.file_identity(&commit_path(&core.dir, number));
        if commit.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.set_unpromised(false);
            core.inventory.note_change();
        }
    }

    fn set_unpromised(&self, is_unpromised: bool) {
        self.inputs.iter().for_each(|file| file.is_unpromised.store(is_unpromised, Ordering::Release));
    }

    /// Writes down the highest synced number if the merge removes a higher one than the files that
    /// stay show for certain: the next start must not take the store for one that was set back. The
    /// last append may be a tombstone that the merge dropped, and what was appended after it may be
    /// lost with the power. A number that is not synced is not written down: nothing shows later
    /// whether its record was lost.
    fn record_used_seq<P: JournalPolicy>(&self, core: &Core<P>) -> Result<(), StorageError> {
        let is_input = |id: u32| self.inputs.iter().any(|input| input.id == id);
        let seq_max_of = |file: &Arc<DataFile>| file.counters.seq_max.load(Ordering::Acquire);
        let removed_max = self.inputs.iter().map(seq_max_of).max();
        let stays_max = {
            // With the writer's lock, the length and the last number of a file are those of one
            // moment.
            let _writer = core.writer.lock();
            let files = core.files.read();
            let is_synced = |file: &&Arc<DataFile>| {
                let length = file.counters.length.load(Ordering::Acquire);
                file.counters.synced_length.load(Ordering::Acquire) >= length
            };
            files.values().filter(|file| !is_input(file.id)).filter(is_synced).map(seq_max_of).max()
        };
        if stays_max >= removed_max {
            return Ok(());
        }
        core.identity.record_used_seq(core.synced_seq.load(Ordering::Acquire))
    }
}
