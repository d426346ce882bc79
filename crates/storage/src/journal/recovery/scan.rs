//! Reads a data file record by record, and separates corruption from torn writes.

use super::load_file::Hint;
use super::{LostSeqs, Recovery};
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{BLOCK_BYTES, File, is_media_error, read_at_twice};
use crate::journal::data_file::{DataFile, data_path, hint_path, hint_temporary_path};
use crate::journal::format::{FILE_HEADER_BYTES, HintEntry, HintWriter, RecordHeader, Scanned, Scanner};
use crate::journal::identity::run_before_has_failed;
use crate::journal::policy::JournalPolicy;
use crate::journal::synced_extent::SyncedExtent;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read and written at once when a part of a file is written again.
const WRITE_AGAIN_BYTES: usize = 1 << 20;

/// A range in which no record can be found.
struct DamagedRange {
    offset: u64,
    length: u64,
    /// The seq of the record behind it, if that was appended to the file.
    next_append: Option<u64>,
}

impl DamagedRange {
    fn contains(&self, offset: u64) -> bool {
        (self.offset..self.offset + self.length).contains(&offset)
    }
}

/// What a scan found besides good records.
#[derive(Default)]
struct ScanReport {
    /// The end of the last good record.
    end: u64,
    /// The highest `synced_to` of any record.
    synced_to: u64,
    damage: Vec<DamagedRange>,
    /// Records with a corrupt body.
    corrupt_bodies: Vec<(u64, RecordHeader)>,
    /// The offsets of the blocks that the disk does not give back.
    unread: Vec<u64>,
}

impl ScanReport {
    /// Whether a file of `length` bytes does not have the record any more that began at an offset.
    fn is_unread(&self, offset: u64, length: u64) -> bool {
        offset >= length || self.damage.iter().any(|range| range.contains(offset))
    }

    /// Whether the disk does not give back a part of a range. What was there is unknown, so it
    /// counts as corruption, and stays in the file.
    fn has_unread(&self, offset: u64, length: u64) -> bool {
        self.unread.iter().any(|block| *block < offset + length && offset < block + BLOCK_BYTES)
    }
}

impl<P: JournalPolicy> Recovery<'_, P> {
    /// Reads a part of a file, from the start of a record to the end of the file.
    pub(super) fn load_scan(
        &mut self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        part: Range<u64>,
        extent: SyncedExtent,
    ) -> Result<(), StorageError> {
        self.read_unsynced_data = true;
        let start = part.start;
        let from_start = start == FILE_HEADER_BYTES as u64;
        if from_start {
            // A damaged hint file may have counted some of these records already.
            file.counters.reset_records();
        }
        let temporary = hint_temporary_path(self.dir, file.id);
        let hint = from_start.then(|| HintWriter::create(&*self.shared.fs, temporary, file.id, file.salt).ok());
        let mut hint = hint.flatten();
        let length = part.end;
        let report = self.scan(file, handle, part, &mut hint)?;
        if extent.lost_ranges() > 0 {
            file.counters.lost_ranges.fetch_max(extent.lost_ranges(), Ordering::Relaxed);
            self.losses.add_seqs(LostSeqs::OfFile(file.id));
        }
        let kept = self.classify_damage(file, handle, length, &report, &extent, &mut hint)?;
        if matches!(extent, SyncedExtent::FromHint { .. })
            && let Hint::Whole(reader) = self.open_hint(file.id, file.salt)?
        {
            let is_unread = |offset: u32| report.is_unread(u64::from(offset), length);
            self.load_unread(file.id, Some(file), reader, &is_unread, &mut hint)?;
        }
        if kept < length {
            handle.truncate(kept).map_err(|source| file.io_error("truncate", source))?;
        }
        if run_before_has_failed(&*self.shared.fs, self.dir, self.marked.as_ref())? {
            write_again(file, handle, if from_start { 0..kept } else { start..kept })?;
        }
        handle.sync_data().map_err(|source| file.io_error("fsync", source))?;
        file.counters.length.store(kept, Ordering::Relaxed);
        file.counters.synced_length.store(kept, Ordering::Relaxed);
        if let Some(hint) = hint {
            self.sync_names()?;
            let lost = file.counters.lost_ranges.load(Ordering::Relaxed);
            let written = hint.finish(&*self.shared.fs, &hint_path(self.dir, file.id), kept, lost);
            if let Err(error) = written {
                tracing::warn!(file = %file.path().display(), %error, "no hint file: the next start will read the data again");
            }
        }
        Ok(())
    }

    /// Syncs the names of the data files before hint files are written: a hint file must not
    /// survive a loss of power that its data file's name does not survive. A kill may have left
    /// that name unsynced.
    fn sync_names(&mut self) -> Result<(), StorageError> {
        if !self.names_synced {
            self.shared.fs.sync_dir(self.dir).map_err(|source| io_error("fsync", self.dir, source))?;
            self.names_synced = true;
        }
        Ok(())
    }

    fn scan(
        &mut self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        part: Range<u64>,
        hint: &mut Option<HintWriter>,
    ) -> Result<ScanReport, StorageError> {
        let failed = |source: io::Error| file.io_error("read", source);
        let mut report = ScanReport { end: part.start, synced_to: part.start, ..ScanReport::default() };
        let mut scanner = Scanner::skipping_unreadable(handle, file.salt, part.start, part.end);
        while let Some(scanned) = scanner.next().map_err(failed)? {
            match scanned {
                Scanned::Damage { offset, length } => {
                    report.damage.push(DamagedRange { offset, length, next_append: None });
                }
                Scanned::Record { offset, header } => {
                    if let Some(before) = report.damage.last_mut().filter(|range| range.offset + range.length == offset)
                    {
                        before.next_append = header.is_append().then_some(header.seq);
                    }
                    report.synced_to = report.synced_to.max(u64::from(header.synced_to));
                    if scanner.body_matches(offset, &header).map_err(failed)? {
                        report.end = offset + header.total_len();
                        self.load_scanned(file, &mut scanner, offset, &header, hint)?;
                    } else {
                        report.corrupt_bodies.push((offset, header));
                    }
                }
            }
        }
        for (offset, error) in scanner.take_unreadable() {
            tracing::error!(file = %file.path().display(), offset, %error, "the disk does not give back a part of it");
            report.unread.push(offset);
        }
        Ok(report)
    }

    /// Separates corruption from torn writes, and returns how much of the file to keep.
    fn classify_damage(
        &mut self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        length: u64,
        report: &ScanReport,
        extent: &SyncedExtent,
        hint: &mut Option<HintWriter>,
    ) -> Result<u64, StorageError> {
        let mut kept = report.end;
        let mut torn = 0;
        let synced_end = self.synced_end(file, report, extent);
        let was_synced = |offset: u64, length: u64| {
            report.has_unread(offset, length)
                || offset >= report.end && offset < synced_end
                || extent.covers(offset, length, report.synced_to)
        };
        let listed = self.last_listed(file, extent, |offset| report.is_unread(offset, length))?;
        if extent.has_record_beyond(length) {
            self.add_lost_range(file, listed.map_or(LostSeqs::OfFile(file.id), LostSeqs::UpTo));
            tracing::error!(file = %file.path().display(), length, "the file was longer: what its end held is unknown");
        }
        for (offset, header) in &report.corrupt_bodies {
            let end = offset + header.total_len();
            let is_corrupt = was_synced(*offset, header.total_len());
            if is_corrupt && !P::keeps_unreadable_versions() {
                self.add_lost_range(file, LostSeqs::UpTo(header.seq));
                kept = kept.max(end);
            } else if is_corrupt {
                // The version stays in the index: reads must fail rather than find nothing.
                let mut scanner = Scanner::skipping_unreadable(handle, file.salt, *offset, length);
                self.load_scanned(file, &mut scanner, *offset, header, hint)?;
                kept = kept.max(end);
                tracing::error!(file = %file.path().display(), offset, "a stored version is damaged");
            } else {
                torn += header.total_len();
            }
        }
        for DamagedRange { offset, length, next_append } in &report.damage {
            if was_synced(*offset, *length) {
                let before_next = next_append.map(|seq| seq.saturating_sub(1));
                self.add_lost_range(file, listed.or(before_next).map_or(LostSeqs::OfFile(file.id), LostSeqs::UpTo));
                kept = kept.max(offset + length);
                tracing::error!(file = %file.path().display(), offset, length, "unreadable: what lay there is unknown");
            } else {
                torn += length;
            }
        }
        if torn > 0 {
            self.torn_bytes += torn;
            tracing::warn!(file = %file.path().display(), bytes = torn, "half-written records of a crash are ignored");
        }
        Ok(kept)
    }

    /// Counts a lost range of a file.
    fn add_lost_range(&mut self, file: &DataFile, seqs: LostSeqs) {
        file.counters.lost_ranges.fetch_add(1, Ordering::Relaxed);
        self.losses.add_seqs(seqs);
    }

    /// The highest seq that a hint file lists of those records that its data file does not have any
    /// more; none if it lists none.
    fn last_listed(
        &self,
        file: &DataFile,
        extent: &SyncedExtent,
        is_unread: impl Fn(u64) -> bool,
    ) -> Result<Option<u64>, StorageError> {
        if !matches!(extent, SyncedExtent::FromHint { .. }) {
            return Ok(None);
        }
        let Hint::Whole(reader) = self.open_hint(file.id, file.salt)? else { return Ok(None) };
        let mut last = None;
        let visit = |entry: HintEntry<'_>| {
            if is_unread(u64::from(entry.offset)) {
                last = last.max(Some(entry.seq));
            }
        };
        let path = hint_path(self.dir, file.id);
        let is_whole = reader.for_each(visit).map_err(|source| io_error("read", &path, source))?;
        Ok(last.filter(|_| is_whole))
    }

    /// The offset up to which the end of a file is known to have been synced, by what other files
    /// say. It counts for what lies behind the last good record: a gap before that record may be an
    /// older torn write between records.
    fn synced_end(&self, file: &DataFile, report: &ScanReport, extent: &SyncedExtent) -> u64 {
        let promised = self.inventory.promised_length(file.id);
        let of_damage = report.damage.iter().map(|range| range.offset);
        let of_bodies = report.corrupt_bodies.iter().map(|(offset, _)| *offset);
        let is_in_doubt = |offset: u64| offset >= report.end && offset >= promised;
        let has_doubt = of_damage.chain(of_bodies).any(is_in_doubt);
        if has_doubt && matches!(extent, SyncedExtent::FromRecords) && self.is_followed_by_appends(file.id) {
            return u64::MAX;
        }
        promised
    }

    /// Whether a later file shows that a file was synced as a whole; see `has_appends`.
    fn is_followed_by_appends(&self, id: u32) -> bool {
        let mut later = self.data_files.iter().filter(|(later, is_unsynced)| *later > id && !is_unsynced);
        later.any(|(later, _)| self.has_appends(&data_path(self.dir, *later), *later, id))
    }

    fn load_scanned(
        &mut self,
        file: &Arc<DataFile>,
        scanner: &mut Scanner<'_>,
        offset: u64,
        header: &RecordHeader,
        hint: &mut Option<HintWriter>,
    ) -> Result<(), StorageError> {
        let failed = |source: io::Error| file.io_error("read", source);
        let key = scanner.key(offset, header).map_err(failed)?.to_vec();
        let parts = P::read_parts(scanner, offset, header).map_err(failed)?;
        let entry = HintEntry::of(offset, header, &key);
        self.load_entry(file, &entry, &parts)?;
        if let Some(writer) = hint
            && writer.add(&entry).is_err()
            && let Some(writer) = hint.take()
        {
            writer.abandon(&*self.shared.fs);
        }
        Ok(())
    }
}

/// Writes a part of a file again with its own content. After a failed sync the kernel takes pages
/// for written that never reached the disk, and a later sync leaves them out.
fn write_again(file: &DataFile, handle: &dyn File, part: Range<u64>) -> Result<(), StorageError> {
    let mut buffer = vec![0; WRITE_AGAIN_BYTES];
    let (mut offset, mut is_careful) = (part.start, false);
    while offset < part.end {
        // After an error each block is read alone, so that a bad one hides nothing of the others.
        let in_block = BLOCK_BYTES - offset % BLOCK_BYTES;
        let most = if is_careful { in_block as usize } else { buffer.len() };
        let wanted = usize::try_from(part.end - offset).map_or(most, |left| left.min(most));
        let read = match read_at_twice(handle, &mut buffer[..wanted], offset, ReadMode::Blocking) {
            Ok(0) => break,
            Err(source) if is_media_error(&source) && !is_careful => {
                is_careful = true;
                continue;
            }
            Err(source) if is_media_error(&source) => {
                // What cannot be read was on the disk, or is lost.
                offset += wanted as u64;
                continue;
            }
            read => read.map_err(|source| file.io_error("read", source))?,
        };
        handle.write_at(&buffer[..read], offset).map_err(|source| file.io_error("write", source))?;
        offset += read as u64;
    }
    Ok(())
}
