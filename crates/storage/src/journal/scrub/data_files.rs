//! Reads the data files of a store and checks each record.

use super::StepEnd;
use super::damage::{LostRecord, MetDamage};
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::fs::{BLOCK_BYTES, File, OpenMode, read_at_twice};
use crate::journal::data_file::{DataFile, data_path};
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader, Scanned, Scanner};
use crate::journal::index::KeyIndex;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use crate::scrub::{DamagedPlace, DamagedVersion, ScrubCursor, ScrubStep};
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How the reading of a range has ended.
enum Scan {
    /// Everything was read.
    Ended,
    /// The step is over.
    Over,
    /// The disk does not give back many blocks in this range. It may take seconds for each, so the
    /// rest waits for the next step.
    BadRegion(Range<u64>),
}

impl<P: JournalPolicy> Core<P> {
    /// Reads on in the data files, until the step is over or all are read.
    pub(super) fn scrub_files(&self, step: &mut ScrubStep, end: &StepEnd<'_>) -> Result<(), StorageError> {
        let Some(file) = self.next_file_to_scrub(step) else {
            let ScrubCursor { store, up_to_seq, .. } = step.next;
            step.next = ScrubCursor { store, in_index: true, up_to_seq, ..ScrubCursor::default() };
            return Ok(());
        };
        match self.open_to_scrub(&file) {
            Ok((handle, length)) => self.scrub_file(&file, &*handle, length, step, end),
            // It is gone: a merge has removed it, and what was current in it lies elsewhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.has_data_file(&file) => {
                step.next.pass_file();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_missing(&file) => {
                let what = "the data file is missing: the next start takes what it held for lost";
                step.found.add_place(DamagedPlace { file: file.path(), offset: 0, length: 0, what: what.into() });
                step.next.pass_file();
                Ok(())
            }
            Err(source) => Err(file.io_error("open", source)),
        }
    }

    fn next_file_to_scrub(&self, step: &mut ScrubStep) -> Option<Arc<DataFile>> {
        let files = self.files.read();
        let ScrubCursor { up_to_seq, lap, last_file, file: from, .. } = step.next;
        let has_old = |file: &&Arc<DataFile>| file.counters.seq_min() <= up_to_seq;
        // Only the end of a lap looks at all files: a store may have a million.
        let from = u32::try_from(from).ok().filter(|_| lap > 0);
        let ahead = from.and_then(|from| files.range(from..).map(|(_, file)| file).find(has_old));
        let in_lap = ahead.map(|file| u64::from(file.id)).filter(|number| *number <= last_file);
        let all = || files.values().filter(has_old).map(|file| u64::from(file.id)).collect::<Vec<_>>();
        let numbers = in_lap.map_or_else(all, |number| vec![number]);
        let number = step.next.next_of(&numbers)?;
        files.get(&u32::try_from(number).ok()?).cloned()
    }

    fn has_data_file(&self, file: &DataFile) -> bool {
        self.files.read().contains_key(&file.id)
    }

    /// Whether a file of the store has been removed by somebody else. A file that has just got its
    /// last name is there by that name; one that a merge removes is no file of the store before.
    fn is_missing(&self, file: &DataFile) -> bool {
        let opened = self.shared.fs.open(&data_path(&self.dir, file.id), OpenMode::Read);
        opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && self.has_data_file(file)
    }

    /// Opens a file, and says how much of it is to be read.
    fn open_to_scrub(&self, file: &DataFile) -> io::Result<(Arc<dyn File>, u64)> {
        let fs = &self.shared.fs;
        let is_appended_to = self.writer.lock().unsealed_ids().contains(&file.id);
        let synced = file.counters.synced_length.load(Ordering::Acquire);
        let length = if is_appended_to { synced } else { file.counters.length.load(Ordering::Acquire) };
        // A read past the page cache would make appends to the same file wait on some file systems.
        let is_in_use = is_appended_to || synced < length;
        let open = |path: &Path| if is_in_use { fs.open(path, OpenMode::Read) } else { fs.open_uncached(path) };
        match open(&file.path()) {
            // It may just have got its last name. The file is renamed before the store knows that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((open(&data_path(&self.dir, file.id))?, length))
            }
            opened => Ok((opened?, length)),
        }
    }

    fn scrub_file(
        &self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        length: u64,
        step: &mut ScrubStep,
        end: &StepEnd<'_>,
    ) -> Result<(), StorageError> {
        if step.next.offset == 0 {
            self.check_file_header(file, handle, length, step);
            step.next.offset = FILE_HEADER_BYTES as u64;
        }
        let mut damage = MetDamage::default();
        let over = |step: &ScrubStep| self.is_step_over(step, end);
        // A file that has lost its end says nothing about the disk.
        let there = handle.length().map_err(|source| file.io_error("read", source))?.min(length);
        match self.scan(file, handle, there, &mut damage, step, &over)? {
            Scan::Ended => {
                if there < length {
                    damage.add_hole(there..length);
                }
                step.next.pass_file();
            }
            Scan::Over => {}
            Scan::BadRegion(bad) => {
                // What lies before it, and was in the same window.
                self.scan(file, handle, bad.start, &mut damage, step, &|_| false)?;
                step.bytes_read += bad.end - bad.start;
                step.next.offset = bad.end;
                damage.add_hole(bad);
            }
        }
        self.met_damage(file, damage, step, end.give_way)
    }

    /// Reads and checks records from the place of the step to `end`, or until `is_over`.
    fn scan(
        &self,
        file: &DataFile,
        handle: &dyn File,
        end: u64,
        damage: &mut MetDamage,
        step: &mut ScrubStep,
        is_over: &dyn Fn(&ScrubStep) -> bool,
    ) -> Result<Scan, StorageError> {
        let failed = |source: io::Error| file.io_error("read", source);
        let mut scanner = Scanner::skipping_unreadable(handle, file.salt, step.next.offset, end);
        loop {
            let scanned = scanner.next();
            let unread = note_unread_blocks(file, &mut scanner, step);
            match (scanned, unread) {
                (Err(_), Some(unread)) => {
                    let start = unread.start.max(step.next.offset);
                    return Ok(Scan::BadRegion(start..unread.end.min(end).max(start + 1)));
                }
                (Err(source), None) => return Err(failed(source)),
                (Ok(None), _) => return Ok(Scan::Ended),
                (Ok(Some(Scanned::Damage { offset, length })), _) => {
                    step.bytes_read += length;
                    step.next.offset = offset + length;
                    damage.add_hole(offset..offset + length);
                }
                (Ok(Some(Scanned::Record { offset, header })), _) => {
                    let matches = scanner.body_matches(offset, &header);
                    let has_unread = note_unread_blocks(file, &mut scanner, step).is_some();
                    if !matches.or_else(|source| if has_unread { Ok(false) } else { Err(failed(source)) })? {
                        let key = scanner.key(offset, &header).map_err(failed)?.to_vec();
                        damage.add_record(LostRecord { key, offset, seq: header.seq });
                    }
                    step.records += 1;
                    step.bytes_read += header.total_len();
                    step.next.offset = offset + header.total_len();
                }
            }
            // What the window has would be read from the disk again by the next step.
            if is_over(step) && !scanner.holds_next() {
                return Ok(Scan::Over);
            }
        }
    }

    /// A start needs the header to read the file. The running store knows what it says.
    fn check_file_header(&self, file: &DataFile, handle: &dyn File, length: u64, step: &mut ScrubStep) {
        if length < FILE_HEADER_BYTES as u64 {
            return;
        }
        let mut bytes = [0; FILE_HEADER_BYTES];
        let read = read_at_twice(handle, &mut bytes, 0, ReadMode::Blocking);
        step.bytes_read += FILE_HEADER_BYTES as u64;
        let header = read.ok().filter(|count| *count == bytes.len()).and_then(|_| FileHeader::decode(&bytes).ok());
        if !header.is_some_and(|header| header.file_id == file.id && header.salt == file.salt) {
            let what = "the header of the data file is damaged, and a start needs it: stop the node, and run 'ombak \
                        admin backend verify --repair'";
            let length = FILE_HEADER_BYTES as u64;
            step.found.add_place(DamagedPlace { file: file.path(), offset: 0, length, what: what.into() });
        }
    }

    /// Tells of a damaged record if it is the current version of its key.
    pub(super) fn met_damaged_record(
        &self,
        file: &DataFile,
        LostRecord { key, offset, seq }: LostRecord,
        step: &mut ScrubStep,
    ) -> Result<(), StorageError> {
        let is_current = match self.index.get(P::Index::key(&key), ReadMode::Blocking) {
            Ok(found) => found.is_some_and(|found| {
                let position = found.entry.position;
                found.entry.seq == seq && position.file_id == file.id && u64::from(position.offset) == offset
            }),
            // Nobody can say which version is current, so the owner has to look.
            Err(error) if error.is_unreadable_version() => true,
            Err(error) => return Err(error),
        };
        if is_current {
            self.unreadable.tell(&key);
            step.found.add_version(DamagedVersion { key: Bytes::from(key), file: file.path(), offset });
        } else {
            step.found.obsolete += 1;
        }
        Ok(())
    }

    /// The journal is a log of what is in memory, and will be in the index on disk. Its damage is
    /// harmless once that is written, so it is written soon.
    pub(super) fn met_damaged_log(&self, file: &DataFile, range: &Range<u64>, step: &mut ScrubStep) {
        self.scrub.wants_checkpoint.store(true, Ordering::Relaxed);
        let what = "the log of the tree is damaged: what it has is written to the tree now";
        let (offset, length) = (range.start, range.end - range.start);
        step.found.add_place(DamagedPlace { file: file.path(), offset, length, what: what.into() });
    }
}

/// Notes the blocks that the disk has not given back, and returns the range that they are in. They
/// do not count towards a failure of the store as a whole: nobody has needed what lies there.
fn note_unread_blocks(file: &DataFile, scanner: &mut Scanner<'_>, step: &mut ScrubStep) -> Option<Range<u64>> {
    let blocks = scanner.take_unreadable();
    for (offset, error) in &blocks {
        tracing::error!(file = %file.path().display(), offset, %error, "the disk does not give back a part of it");
    }
    step.unread_blocks += blocks.len() as u64;
    let (first, last) = (*blocks.first_key_value()?.0, *blocks.last_key_value()?.0);
    Some(first..last + BLOCK_BYTES)
}
