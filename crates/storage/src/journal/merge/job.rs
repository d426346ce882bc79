//! A running merge: reads its input files from end to end and copies the current versions.

use super::commit::{INPUTS_MAX, commit_path, write_commit};
use crate::backend::{LastMerge, ReadMode};
use crate::error::StorageError;
use crate::error::io_error;
use crate::fs::File;
use crate::journal::coding::{Compression, CompressionPoint, compress};
use crate::journal::covered;
use crate::journal::data_file::{DataFile, data_path, hint_path, merging_path};
use crate::journal::format::{
    ALL_SYNCED, BodyCoding, FILE_HEADER_BYTES, HintEntry, Kind, RECORD_HEADER_BYTES, RecordFields, RecordHeader,
    Scanned, Scanner, encode_record, reseal,
};
use crate::journal::key_index::{Entry, KeyIndex, Position};
use crate::journal::store::Core;
use crate::journal::upkeep::{Retired, Upkeep};
use crate::journal::writer::{Appender, is_disk_full, position_of};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies are written in chunks of about this size.
const BUFFER_BYTES: usize = 256 << 10;
/// An output is synced each time this much was written, so that no sync takes long.
const SYNC_BYTES: u64 = 8 << 20;

/// The progress after a slice of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum Progress {
    More,
    /// All input files are read; the merge can be committed.
    CopiedAll,
}

pub(in crate::journal) struct MergeJob {
    inputs: Vec<Arc<DataFile>>,
    /// The input file that is being read, and the offset in it.
    input: usize,
    offset: u64,
    output: Option<Appender>,
    outputs: Vec<Appender>,
    copies: CopyBuffer,
    /// The lowest sequence number in any file outside the merge.
    outside_seq_min: u64,
    unsynced_bytes: u64,
    /// The content of the current output on disk is unknown: it must not get its final name.
    is_broken: bool,
    /// Lost ranges of the input files that no output has recorded yet.
    lost_ranges: u32,
    bytes_read: u64,
    bytes_written: u64,
}

/// Records that are to be written to the output.
#[derive(Default)]
struct CopyBuffer {
    bytes: Vec<u8>,
    moves: Vec<Move>,
}

struct Move {
    key: Vec<u8>,
    header: RecordHeader,
    /// None for tombstones, because no index entry points at them.
    from: Option<Position>,
}

impl MergeJob {
    /// None if the input files are gone, or there is no room for the copies.
    pub(in crate::journal) fn start<I: KeyIndex>(core: &Core<I>, ids: &[u32], retired: &[Retired]) -> Option<Self> {
        let files = core.files.read();
        let inputs: Vec<Arc<DataFile>> = ids.iter().take(INPUTS_MAX).filter_map(|id| files.get(id).cloned()).collect();
        let is_retired = |id: u32| retired.iter().flat_map(|retired| &retired.files).any(|file| file.id == id);
        let outside =
            files.values().filter(|file| !is_retired(file.id) && !inputs.iter().any(|input| input.id == file.id));
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
        let lost_ranges = inputs.iter().map(|file| file.counters.lost_ranges.load(Ordering::Relaxed)).sum();
        Some(Self {
            inputs,
            input: 0,
            offset: FILE_HEADER_BYTES as u64,
            output: None,
            outputs: Vec::new(),
            copies: CopyBuffer::default(),
            outside_seq_min,
            unsynced_bytes: 0,
            is_broken: false,
            lost_ranges,
            bytes_read: 0,
            bytes_written: 0,
        })
    }

    /// Reads and copies about `allowed_bytes`.
    pub(in crate::journal) fn advance<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
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
        self.flush(core)?;
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
        self.bytes_read + self.bytes_written
    }

    /// Continues with one input file; true at its end.
    fn read_some<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        input: &Arc<DataFile>,
        allowed_bytes: u64,
    ) -> Result<bool, StorageError> {
        let failed = |source: io::Error| input.io_error("read", source);
        let handle = core.shared.handles.get(input, ReadMode::Blocking).map_err(failed)?;
        let end = input.counters.length.load(Ordering::Acquire);
        let mut scanner = Scanner::new(&*handle, input.salt, self.offset, end);
        let stop = self.bytes_moved().saturating_add(allowed_bytes);
        while self.bytes_moved() < stop {
            match scanner.next().map_err(failed)? {
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
                    self.take(core, input, &*handle, offset, &header, key)?;
                }
            }
        }
        Ok(false)
    }

    /// Decides whether and how to copy one record.
    fn take<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        input: &Arc<DataFile>,
        handle: &dyn File,
        offset: u64,
        header: &RecordHeader,
        key: Vec<u8>,
    ) -> Result<(), StorageError> {
        let hashed = I::key(&key);
        let current = core.index.get(hashed, ReadMode::Blocking)?.map(|found| found.entry);
        let here = |entry: &Entry| entry.position.file_id == input.id && u64::from(entry.position.offset) == offset;
        let hides_something = self.outside_seq_min < header.seq;
        match header.kind {
            Kind::Tombstone => {
                let superseded = current.is_some_and(|entry| entry.seq > header.seq);
                if hides_something && !superseded {
                    self.copy_tombstone(core, key, header)?;
                }
            }
            Kind::Put => match current.filter(here) {
                // The version was deleted, or was swept when it had expired. Whether it counts as
                // expired now does not matter, because clocks can go back.
                None if current.is_none() && hides_something && expires_at(core, header) != 0 => {
                    self.copy_tombstone(core, key, header)?;
                }
                None => {}
                Some(entry) if core.is_expired(entry.expires_secs) => {
                    // The versions that it superseded must not become visible again.
                    if hides_something {
                        self.copy_tombstone(core, key.clone(), header)?;
                    }
                    if core.index.remove_if(hashed, here)?.is_some() {
                        input.counters.remove_live(entry.position.size);
                    }
                }
                Some(entry) if !self.copy_compressed(core, handle, &entry, header, &key)? => {
                    self.copy_version(core, input, handle, &entry, header, key)?;
                }
                Some(_) => {}
            },
        }
        if self.copies.bytes.len() >= BUFFER_BYTES { self.flush(core) } else { Ok(()) }
    }

    fn copy_version<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        input: &DataFile,
        handle: &dyn File,
        entry: &Entry,
        header: &RecordHeader,
        key: Vec<u8>,
    ) -> Result<(), StorageError> {
        let size = header.total_len() as usize;
        let (salt, at) = self.place(core, size as u64)?;
        let start = self.copies.bytes.len();
        self.copies.bytes.resize(start + size, 0);
        let record = &mut self.copies.bytes[start..];
        let read = handle.read_at(record, u64::from(entry.position.offset), ReadMode::Blocking);
        match read {
            Ok(count) if count == size => reseal(record, header.meta_len() as usize, salt, at),
            result => {
                self.copies.bytes.truncate(start);
                let short = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(input.io_error("read", result.err().unwrap_or(short)));
            }
        }
        self.bytes_read += u64::from(header.body_len);
        self.copies.moves.push(Move { key, header: *header, from: Some(entry.position) });
        Ok(())
    }

    /// Copies a version whose body is to be compressed at its first merge. False if there is
    /// nothing to compress.
    fn copy_compressed<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        handle: &dyn File,
        entry: &Entry,
        header: &RecordHeader,
        key: &[u8],
    ) -> Result<bool, StorageError> {
        let config = &core.shared.config;
        let is_due = config.compression_point == CompressionPoint::OnCompact && config.compression != Compression::None;
        if !is_due || header.coding != BodyCoding::Plain {
            return Ok(false);
        }
        let meta_len = header.meta_len() as usize;
        let mut record = vec![0; header.total_len() as usize];
        let read = handle.read_at(&mut record, u64::from(entry.position.offset), ReadMode::Blocking);
        // A body that cannot be read or has a wrong checksum is copied unchanged, so the damage
        // stays detectable.
        if !matches!(read, Ok(count) if count == record.len()) {
            return Ok(false);
        }
        let (meta, body) = record.split_at(meta_len);
        if crc32fast::hash(body) != header.crc_body {
            return Ok(false);
        }
        let Some((coding, body)) = compress(config.compression, &[body]) else { return Ok(false) };
        let fields = RecordFields {
            kind: Kind::Put,
            tstamp_secs: header.tstamp_secs,
            expires_secs: header.expires_secs,
            synced_to: ALL_SYNCED,
            seq: header.seq,
            digest: header.digest,
            coding,
            has_terms: header.has_terms,
            crc_body: crc32fast::hash(&body),
        };
        let head = &meta[header.key_start() + key.len()..];
        let (salt, at) = self.place(core, (meta_len + body.len()) as u64)?;
        encode_record(&mut self.copies.bytes, &fields, key, head, &[&body], salt, at);
        self.bytes_read += u64::from(header.body_len);
        let header = RecordHeader { coding, body_len: body.len() as u32, crc_body: fields.crc_body, ..*header };
        self.copies.moves.push(Move { key: key.to_vec(), header, from: Some(entry.position) });
        Ok(true)
    }

    fn copy_tombstone<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        key: Vec<u8>,
        header: &RecordHeader,
    ) -> Result<(), StorageError> {
        let (salt, at) = self.place(core, (RECORD_HEADER_BYTES + key.len()) as u64)?;
        let fields = RecordFields {
            kind: Kind::Tombstone,
            tstamp_secs: header.tstamp_secs,
            expires_secs: 0,
            coding: BodyCoding::Plain,
            has_terms: false,
            synced_to: ALL_SYNCED,
            seq: header.seq,
            digest: 0,
            crc_body: 0,
        };
        encode_record(&mut self.copies.bytes, &fields, &key, &[], &[], salt, at);
        let header = RecordHeader {
            kind: Kind::Tombstone,
            coding: BodyCoding::Plain,
            has_terms: false,
            expires_secs: 0,
            head_len: 0,
            body_len: 0,
            digest: 0,
            ..*header
        };
        self.copies.moves.push(Move { key, header, from: None });
        Ok(())
    }

    /// Salt and offset for the next record of `size` bytes, in an output that has room for it.
    fn place<I: KeyIndex>(&mut self, core: &Core<I>, size: u64) -> Result<(u64, u64), StorageError> {
        let next_offset = |output: &Appender, copies: &CopyBuffer| output.length + copies.bytes.len() as u64;
        let full = |output: &Appender| {
            let offset = next_offset(output, &self.copies);
            let records = output.file.counters.records.load(Ordering::Relaxed) + self.copies.moves.len() as u64;
            let config = &core.shared.config;
            let is_full = offset.saturating_add(size) > config.file_bytes_max || records >= config.file_records_max;
            offset > FILE_HEADER_BYTES as u64 && is_full
        };
        if self.output.as_ref().is_some_and(full) {
            self.flush(core)?;
            self.outputs.extend(self.output.take());
        }
        let output = match &mut self.output {
            Some(output) => output,
            none => none.insert(create_output(core)?),
        };
        Ok((output.file.salt, next_offset(output, &self.copies)))
    }

    /// Writes the gathered records, and only then lets the index point at them.
    fn flush<I: KeyIndex>(&mut self, core: &Core<I>) -> Result<(), StorageError> {
        let Some(output) = self.output.as_mut().filter(|_| !self.copies.bytes.is_empty()) else { return Ok(()) };
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
            let moved = core.index.relocate(I::key(&key), from, to)?;
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

    /// Gives the copies so far their final names.
    pub(in crate::journal) fn settle<I: KeyIndex>(&mut self, core: &Core<I>) -> Result<(), StorageError> {
        self.check_whole(core)?;
        self.flush(core)?;
        self.finish_outputs(core).inspect_err(|_| self.is_broken = true)
    }

    /// Fails if some copy may not be where the index says.
    fn check_whole<I: KeyIndex>(&self, core: &Core<I>) -> Result<(), StorageError> {
        if !self.is_broken {
            return Ok(());
        }
        let path = self.output.as_ref().map_or_else(|| core.dir.clone(), |output| output.file.path());
        Err(io_error("write", &path, io::Error::other("an earlier write, sync or rename failed")))
    }

    /// Gives the outputs their final names and syncs these. After an error, the outputs without a
    /// final name are kept for another attempt.
    fn finish_outputs<I: KeyIndex>(&mut self, core: &Core<I>) -> Result<(), StorageError> {
        self.outputs.extend(self.output.take());
        let lost_ranges = &mut self.lost_ranges;
        let mut finished = 0;
        let result = self.outputs.iter_mut().try_for_each(|output| {
            finish_output(core, output, lost_ranges)?;
            finished += 1;
            Ok(())
        });
        self.outputs.drain(..finished);
        result?;
        core.inventory.note_change();
        // An index on disk must not point at a file whose name is not durable.
        core.sync_dir().inspect_err(|error| core.poison(error))
    }

    /// Commits the merge: syncs the outputs, then marks the input files as removed. None if an
    /// input file must stay. After a failure for lack of room this may be called again: steps that
    /// are already done have no effect.
    pub(in crate::journal) fn commit<I: KeyIndex>(
        &mut self,
        core: &Core<I>,
        upkeep: &mut Upkeep,
    ) -> Result<Option<Retired>, StorageError> {
        // A start removes copies without a final name, so their originals must stay until the
        // copies have one.
        self.check_whole(core)?;
        self.finish_outputs(core)?;
        // Syncs the versions that superseded those that were not copied.
        core.sync_appended()?;
        let stuck = {
            // With the writer's lock, no put is between its index entry and its counting.
            let _writer = core.writer.lock();
            let has_live = |file: &&Arc<DataFile>| file.counters.live_records.load(Ordering::Acquire) > 0;
            let stuck: Vec<_> = self.inputs.iter().filter(has_live).cloned().collect();
            stuck.iter().for_each(|file| file.unmergeable.store(true, Ordering::Relaxed));
            stuck
        };
        if let Some(file) = stuck.first() {
            tracing::error!(
                partition = core.partition,
                file = %file.path().display(),
                "current versions in it cannot be read: it is kept as it is"
            );
            return Ok(None);
        }
        self.cover_seq(core)?;
        if self.lost_ranges > 0 {
            // There is no copy that could record the loss for the next start.
            core.note_loss(u64::from(self.lost_ranges))?;
            self.lost_ranges = 0;
        }
        // An index on disk must not point at input files that are gone.
        core.checkpoint(upkeep)?;
        let noted = core.index.noted_seq();
        if noted > 0 {
            covered::write(&*core.shared.fs, &core.dir, noted)?;
        }
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
            bytes_after = self.bytes_written,
            "merged"
        );
        core.counters.merges.fetch_add(1, Ordering::Relaxed);
        let ended_at_secs = core.now_secs.load(Ordering::Relaxed);
        *core.counters.last_merge.lock() =
            Some(LastMerge { ended_at_secs, bytes_before, bytes_after: self.bytes_written });
        let ticket = core.snapshot_tickets.lock().next;
        Ok(Some(Retired { files: std::mem::take(&mut self.inputs), commit_path, ticket }))
    }

    /// Removes the input files from the inventory before the commit file gets its name.
    fn release_inputs<I: KeyIndex>(&self, core: &Core<I>) -> Result<(), StorageError> {
        self.set_leaving(true);
        core.renew_inventory().inspect_err(|_| self.set_leaving(false))
    }

    /// After the commit file could not be written: the inventory promises the input files as
    /// before, unless the commit file has its name nevertheless.
    fn keep_inputs<I: KeyIndex>(&self, core: &Core<I>, number: u32) {
        let commit = core.shared.fs.birth(&commit_path(&core.dir, number));
        if commit.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.set_leaving(false);
            core.inventory.note_change();
        }
    }

    fn set_leaving(&self, is_leaving: bool) {
        self.inputs.iter().for_each(|file| file.is_leaving.store(is_leaving, Ordering::Release));
    }

    /// Records the last sequence number if the files that stay do not show it, so that it is not
    /// used again. The last append may be a tombstone that the merge dropped.
    fn cover_seq<I: KeyIndex>(&self, core: &Core<I>) -> Result<(), StorageError> {
        let last_seq = core.writer.lock().last_seq();
        let is_input = |id: u32| self.inputs.iter().any(|input| input.id == id);
        let files = core.files.read();
        let stays = files.values().filter(|file| !is_input(file.id));
        let seq_max = stays.map(|file| file.counters.seq_max.load(Ordering::Acquire)).max();
        drop(files);
        if seq_max >= Some(last_seq) { Ok(()) } else { core.identity.cover(last_seq) }
    }

    /// Ends the merge early. The copies get their final names and are kept, and so are all input
    /// files.
    pub(in crate::journal) fn abandon<I: KeyIndex>(mut self, core: &Core<I>) -> Result<(), StorageError> {
        self.check_whole(core)?;
        self.copies = CopyBuffer::default();
        if let Some(unused) = self.output.take_if(|output| output.length == FILE_HEADER_BYTES as u64) {
            remove_output(core, unused);
        }
        self.finish_outputs(core)
    }
}

/// Syncs an output, completes its hint file and gives it its final name.
fn finish_output<I: KeyIndex>(
    core: &Core<I>,
    output: &mut Appender,
    lost_ranges: &mut u32,
) -> Result<(), StorageError> {
    sync_output(core, output)?;
    let file = &output.file;
    file.counters.synced_length.store(output.length, Ordering::Release);
    if let Some(hint) = output.hint.take() {
        let path = hint_path(&core.dir, file.id);
        core.counters.hint_bytes.fetch_add(hint.length(), Ordering::Relaxed);
        match hint.finish(&*core.shared.fs, &path, output.length, *lost_ranges) {
            // The loss must stay known after the file with the damage is removed.
            Ok(()) => file.counters.lost_ranges.store(std::mem::take(lost_ranges), Ordering::Relaxed),
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
fn remove_output<I: KeyIndex>(core: &Core<I>, output: Appender) {
    core.files.write().remove(&output.file.id);
    if let Some(hint) = output.hint {
        hint.abandon(&*core.shared.fs);
    }
    let path = output.file.path();
    if let Err(error) = core.shared.fs.remove_file(&path) {
        tracing::warn!(file = %path.display(), %error, "an empty copy of a merge stays until the next start");
    }
}

fn expires_at<I: KeyIndex>(core: &Core<I>, header: &RecordHeader) -> u32 {
    core.shared.config.expires_at(header.tstamp_secs, header.expires_secs)
}

/// Syncs an output. A failure poisons the store, because the success of a retry would prove
/// nothing.
fn sync_output<I: KeyIndex>(core: &Core<I>, output: &Appender) -> Result<(), StorageError> {
    output.handle.sync_data().map_err(|source| {
        let error = output.file.io_error("fsync", source);
        core.poison(&error);
        error
    })
}

fn create_output<I: KeyIndex>(core: &Core<I>) -> Result<Appender, StorageError> {
    let id = core.writer.lock().take_id(&core.dir)?;
    let path = merging_path(&core.dir, id);
    let now_secs = core.now_secs.load(Ordering::Relaxed);
    let output = Appender::create(&core.shared, &core.dir, path.clone(), id, now_secs)
        .map_err(|source| io_error("create", &path, source))?;
    core.files.write().insert(id, output.file.clone());
    Ok(output)
}
