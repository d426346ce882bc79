//! A running merge: reads its input files from end to end and copies the current versions.

use super::commit::ReplacedFiles;
use super::commit_file::INPUTS_MAX;
use super::outputs::Outputs;
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::journal::data_file::DataFile;
use crate::journal::format::{FILE_HEADER_BYTES, Scanned, Scanner};
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The progress after a slice of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum Progress {
    More,
    /// All input files are read; the merge can be committed.
    CopiedAll,
}

/// A running merge; see the module.
pub(in crate::journal) struct MergeJob {
    pub(super) inputs: Vec<Arc<DataFile>>,
    /// The input file that is being read, and the offset in it.
    input: usize,
    offset: u64,
    pub(super) outputs: Outputs,
    /// The lowest sequence number in any file outside the merge.
    pub(super) outside_seq_min: u64,
    /// The highest `seq` of a storage tombstone that is not copied although its key is absent.
    pub(super) forgotten_seq: u64,
    pub(super) bytes_read: u64,
}

impl MergeJob {
    /// None if the input files are gone, or there is no room for the copies.
    pub(in crate::journal) fn start<P: JournalPolicy>(
        core: &Core<P>,
        ids: &[u32],
        replaced: &[ReplacedFiles],
    ) -> Option<Self> {
        let files = core.files.read();
        let inputs: Vec<Arc<DataFile>> = ids.iter().take(INPUTS_MAX).filter_map(|id| files.get(id).cloned()).collect();
        let is_replaced = |id: u32| replaced.iter().flat_map(|replaced| &replaced.files).any(|file| file.id == id);
        let outside =
            files.values().filter(|file| !is_replaced(file.id) && !inputs.iter().any(|input| input.id == file.id));
        let outside_seq_min = outside.map(|file| file.counters.seq_min()).min().unwrap_or(u64::MAX);
        drop(files);
        let live: u64 = inputs.iter().map(|file| file.counters.live_bytes.load(Ordering::Acquire)).sum();
        let free = core.shared.fs.free_bytes(&core.dir).unwrap_or(0);
        if inputs.is_empty() {
            return None;
        }
        if free < live {
            tracing::debug!(partition = core.partition, free, live, "not merging: no room for the copies");
            return None;
        }
        let outputs = Outputs::new(&inputs);
        Some(Self {
            inputs,
            input: 0,
            offset: FILE_HEADER_BYTES as u64,
            outputs,
            outside_seq_min,
            forgotten_seq: 0,
            bytes_read: 0,
        })
    }

    /// Reads and copies about `allowed_bytes`.
    pub(in crate::journal) fn advance<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        allowed_bytes: u64,
    ) -> Result<Progress, StorageError> {
        let start = self.bytes_moved();
        while let Some(input) = self.inputs.get(self.input).cloned() {
            let used = self.bytes_moved() - start;
            if used >= allowed_bytes {
                core.shared.budget.spend(used);
                return Ok(Progress::More);
            }
            let counters = &input.counters;
            let nothing_to_keep =
                counters.live_records.load(Ordering::Acquire) == 0 && counters.tombstones.load(Ordering::Relaxed) == 0;
            if nothing_to_keep || self.read_some(core, &input, allowed_bytes - used)? {
                self.input += 1;
                self.offset = FILE_HEADER_BYTES as u64;
            }
        }
        self.outputs.flush(core)?;
        core.shared.budget.spend(self.bytes_moved() - start);
        Ok(Progress::CopiedAll)
    }

    /// Whether only the commit is left to do.
    pub(in crate::journal) fn is_uncommitted(&self) -> bool {
        self.input >= self.inputs.len()
    }

    /// Bytes of the input files that are still to be read.
    pub(in crate::journal) fn pending_bytes(&self) -> u64 {
        let rest = self.inputs.get(self.input..).unwrap_or_default();
        let all: u64 = rest.iter().map(|file| file.counters.length.load(Ordering::Relaxed)).sum();
        all.saturating_sub(self.offset.min(all))
    }

    fn bytes_moved(&self) -> u64 {
        self.bytes_read + self.outputs.bytes_written
    }

    /// Continues with one input file; true at its end.
    fn read_some<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        input: &Arc<DataFile>,
        allowed_bytes: u64,
    ) -> Result<bool, StorageError> {
        let failed = |source: io::Error| input.io_error("read", source);
        let handle = core.shared.handles.get(input, ReadMode::Blocking).map_err(failed)?;
        let end = input.counters.length.load(Ordering::Acquire);
        let mut scanner = Scanner::skipping_unreadable(&*handle, input.salt, self.offset, end);
        let stop = self.bytes_moved().saturating_add(allowed_bytes);
        while self.bytes_moved() < stop {
            let scanned = scanner.next();
            // They count also if they have ended the scan.
            core.note_unread_blocks(input, scanner.take_unreadable())?;
            match scanned.map_err(failed)? {
                None => return Ok(true),
                Some(Scanned::Damage { offset, length }) => {
                    self.offset = offset + length;
                    self.bytes_read += length;
                }
                Some(Scanned::Record { offset, header }) => {
                    let key = scanner.key(offset, &header).map_err(failed)?;
                    self.offset = offset + header.total_len();
                    // The body counts only if it is copied: the scanner skips bodies that are
                    // longer than a window.
                    self.bytes_read += header.meta_len();
                    let key = key.to_vec();
                    self.copy_if_current(core, input, &*handle, offset, &header, key)?;
                }
            }
        }
        Ok(false)
    }

    /// Gives the copies so far their final names.
    pub(in crate::journal) fn finalize_outputs<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
    ) -> Result<(), StorageError> {
        self.outputs.check_not_broken(core)?;
        self.outputs.flush(core)?;
        self.outputs.finish(core).inspect_err(|_| self.outputs.set_broken())
    }

    /// Ends the merge early. The copies get their final names and are kept, and so are all input
    /// files.
    pub(in crate::journal) fn abandon<P: JournalPolicy>(mut self, core: &Core<P>) -> Result<(), StorageError> {
        self.outputs.check_not_broken(core)?;
        self.outputs.drop_unwritten(core);
        self.outputs.leave_loss();
        self.outputs.finish(core)
    }
}
