//! The output files of a merge: the copies that wait to be written, and the files that they are
//! written to.

use crate::error::{StorageError, io_error};
use crate::fs::is_disk_full;
use crate::journal::data_file::{DataFile, data_path, hint_path, merging_path};
use crate::journal::format::{FILE_HEADER_BYTES, HintEntry, RecordHeader};
use crate::journal::index::{KeyIndex, Position};
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use crate::journal::writer::{Appender, position_of};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies are written in chunks of about this size.
pub(super) const BUFFER_BYTES: usize = 256 << 10;
/// An output is synced each time this much was written, so that no sync takes long.
const SYNC_BYTES: u64 = 8 << 20;

/// The output files of a merge; see the module.
#[derive(Default)]
pub(super) struct Outputs {
    current: Option<Appender>,
    /// Outputs that take no more copies and do not have their final names.
    full: Vec<Appender>,
    pub(super) copies: CopyBuffer,
    unsynced_bytes: u64,
    /// The content of the current output on disk is unknown: it must not get its final name.
    is_broken: bool,
    /// Lost ranges of the input files that no output has recorded yet.
    pub(super) lost_ranges: u32,
    /// The input files that have them.
    damaged: Vec<Arc<DataFile>>,
    pub(super) bytes_written: u64,
}

/// Records that are to be written to the output.
#[derive(Default)]
pub(super) struct CopyBuffer {
    pub(super) bytes: Vec<u8>,
    pub(super) moves: Vec<Move>,
}

/// A copy, and the record that it replaces.
pub(super) struct Move {
    pub(super) key: Vec<u8>,
    pub(super) header: RecordHeader,
    /// None for tombstones, because no index entry points at them.
    pub(super) from: Option<Position>,
}

impl Outputs {
    /// No outputs of these input files yet.
    pub(super) fn new(inputs: &[Arc<DataFile>]) -> Self {
        let lost_of = |file: &Arc<DataFile>| file.counters.lost_ranges.load(Ordering::Relaxed);
        let damaged: Vec<_> = inputs.iter().filter(|file| lost_of(file) > 0).cloned().collect();
        Self { lost_ranges: damaged.iter().map(lost_of).sum(), damaged, ..Self::default() }
    }

    /// Leaves the lost ranges to the input files, because these stay.
    pub(super) fn leave_loss(&mut self) {
        (self.lost_ranges, self.damaged) = (0, Vec::new());
    }

    /// Records the lost ranges in the store's note of losses, because there is no output that
    /// could.
    pub(super) fn note_loss<P: JournalPolicy>(&mut self, core: &Core<P>) -> Result<(), StorageError> {
        core.take_over_loss(u64::from(self.lost_ranges), &self.damaged)?;
        self.leave_loss();
        Ok(())
    }

    /// Salt and offset for the next record of `size` bytes, in an output that has room for it.
    pub(super) fn place<P: JournalPolicy>(&mut self, core: &Core<P>, size: u64) -> Result<(u64, u64), StorageError> {
        let next_offset = |output: &Appender, copies: &CopyBuffer| output.length + copies.bytes.len() as u64;
        let full = |output: &Appender| {
            let offset = next_offset(output, &self.copies);
            let records = output.file.counters.records.load(Ordering::Relaxed) + self.copies.moves.len() as u64;
            let config = &core.shared.config;
            let is_full = offset.saturating_add(size) > config.file_bytes_max || records >= config.file_records_max;
            offset > FILE_HEADER_BYTES as u64 && is_full
        };
        if self.current.as_ref().is_some_and(full) {
            self.flush(core)?;
            self.full.extend(self.current.take());
        }
        let output = match &mut self.current {
            Some(output) => output,
            none => none.insert(create_output(core)?),
        };
        Ok((output.file.salt, next_offset(output, &self.copies)))
    }

    /// Writes the gathered records, and only then lets the index point at them.
    pub(super) fn flush<P: JournalPolicy>(&mut self, core: &Core<P>) -> Result<(), StorageError> {
        let Some(output) = self.current.as_mut().filter(|_| !self.copies.bytes.is_empty()) else { return Ok(()) };
        let written = self.copies.bytes.len() as u64;
        if let Err(source) = output.handle.write_at(&self.copies.bytes, output.length) {
            // The copies that were written before stay in use, so no torn record may follow them.
            let cut = output.handle.truncate(output.length);
            self.is_broken |= cut.is_err() || !is_disk_full(&source);
            return Err(output.file.io_error("write", source));
        }
        self.bytes_written += written;
        self.unsynced_bytes += written;
        core.counters.merged_bytes.fetch_add(written, Ordering::Relaxed);
        self.copies.bytes.clear();
        self.copies.bytes.shrink_to(2 * BUFFER_BYTES);
        for Move { key, header, from } in self.copies.moves.drain(..) {
            let entry = HintEntry::of(output.length, &header, &key);
            output.count(&core.shared, &entry);
            let Some(from) = from else { continue };
            let to = position_of(output.file.id, &entry);
            // Counted as live first, because a put can supersede it as soon as the index points
            // there.
            output.file.counters.add_live(to.size);
            let moved = core.index.relocate(P::Index::key(&key), from, to)?;
            let left = if moved { from } else { to };
            if let Some(file) = core.files.read().get(&left.file_id) {
                file.counters.remove_live(left.size);
            }
        }
        if self.unsynced_bytes >= SYNC_BYTES {
            self.unsynced_bytes = 0;
            sync_output(core, output).inspect_err(|_| self.is_broken = true)?;
        }
        Ok(())
    }

    /// Fails if some copy may not be where the index says.
    pub(super) fn check_not_broken<P: JournalPolicy>(&self, core: &Core<P>) -> Result<(), StorageError> {
        if !self.is_broken {
            return Ok(());
        }
        let path = self.current.as_ref().map_or_else(|| core.dir.clone(), |output| output.file.path());
        Err(io_error("write", &path, io::Error::other("an earlier write, sync or rename failed")))
    }

    /// Gives the outputs their final names and syncs these. After an error, the outputs without a
    /// final name are kept for another attempt.
    pub(super) fn finish<P: JournalPolicy>(&mut self, core: &Core<P>) -> Result<(), StorageError> {
        self.full.extend(self.current.take());
        let (lost_ranges, damaged) = (&mut self.lost_ranges, &mut self.damaged);
        let mut finished = 0;
        let result = self.full.iter_mut().try_for_each(|output| {
            finish_output(core, output, (&mut *lost_ranges, &mut *damaged))?;
            finished += 1;
            Ok(())
        });
        self.full.drain(..finished);
        result?;
        core.inventory.note_change();
        // An index on disk must not point at a file whose name is not durable.
        core.sync_dir().inspect_err(|error| core.poison(error))
    }

    /// Drops the copies that were not written, and removes an output without any.
    pub(super) fn drop_unwritten<P: JournalPolicy>(&mut self, core: &Core<P>) {
        self.copies = CopyBuffer::default();
        if let Some(unused) = self.current.take_if(|output| output.length == FILE_HEADER_BYTES as u64) {
            remove_output(core, unused);
        }
    }

    /// Records that the content of the current output on disk is unknown.
    pub(super) fn set_broken(&mut self) {
        self.is_broken = true;
    }
}

/// Syncs an output, completes its hint file and gives it its final name.
fn finish_output<P: JournalPolicy>(
    core: &Core<P>,
    output: &mut Appender,
    (lost_ranges, damaged): (&mut u32, &mut Vec<Arc<DataFile>>),
) -> Result<(), StorageError> {
    sync_output(core, output)?;
    let file = &output.file;
    file.counters.synced_length.store(output.length, Ordering::Release);
    if let Some(hint) = output.hint.take() {
        let path = hint_path(&core.dir, file.id);
        core.counters.hint_bytes.fetch_add(hint.length(), Ordering::Relaxed);
        match hint.finish(&*core.shared.fs, &path, output.length, *lost_ranges) {
            // The loss must stay known after the file with the damage is removed.
            Ok(()) if *lost_ranges > 0 => {
                // Whoever counts the ranges locks the files, and finds each of them once.
                let _files = core.files.write();
                damaged.drain(..).for_each(|input| input.counters.lost_ranges.store(0, Ordering::Relaxed));
                file.counters.lost_ranges.store(std::mem::take(lost_ranges), Ordering::Relaxed);
            }
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "no hint file: the next start will read the data");
            }
        }
    }
    let path = data_path(&core.dir, file.id);
    core.shared.fs.rename(&file.path(), &path).map_err(|source| io_error("rename", &path, source))?;
    file.set_path(path);
    Ok(())
}

/// Removes an output that the index does not point at.
fn remove_output<P: JournalPolicy>(core: &Core<P>, output: Appender) {
    core.files.write().remove(&output.file.id);
    if let Some(hint) = output.hint {
        hint.abandon(&*core.shared.fs);
    }
    let path = output.file.path();
    if let Err(error) = core.shared.fs.remove_file(&path) {
        tracing::warn!(file = %path.display(), %error, "an empty copy of a merge stays until the next start");
    }
}

/// Syncs an output. A failure poisons the store, because the success of a retry would prove
/// nothing.
fn sync_output<P: JournalPolicy>(core: &Core<P>, output: &Appender) -> Result<(), StorageError> {
    output.handle.sync_data().map_err(|source| {
        let error = output.file.io_error("fsync", source);
        core.poison(&error);
        error
    })
}

fn create_output<P: JournalPolicy>(core: &Core<P>) -> Result<Appender, StorageError> {
    let id = core.writer.lock().take_id(&core.dir)?;
    let path = merging_path(&core.dir, id);
    let now_secs = core.now_secs.load(Ordering::Relaxed);
    let output = Appender::create(&core.shared, &core.dir, path.clone(), id, now_secs)
        .map_err(|source| io_error("create", &path, source))?;
    core.files.write().insert(id, output.file.clone());
    Ok(output)
}
