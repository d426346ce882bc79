//! The walk over the data files.

use super::batch::{Batch, BatchRecord};
use crate::backend::{ReadMode, Stored};
use crate::error::StorageError;
use crate::feed::{Change, Changes, CursorLost, FeedCursor, FeedStep, Origin, Removed, StorePlace};
use crate::fold::{Detail, Snapshot, WriteAttrs};
use crate::fs::is_media_error;
use crate::journal::background::MergeScheduler;
use crate::journal::coding::decompress;
use crate::journal::data_file::DataFile;
use crate::journal::format::{Kind, RecordHeader, Scanner};
use crate::journal::index::{Entry, KeyIndex, Position};
use crate::journal::policy::JournalPolicy;
use crate::journal::snapshot::JournalSnapshot;
use crate::journal::store::Core;
use crate::journal::writer::Writer;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A data file that a walk reads.
pub(super) struct FileToRead {
    file: Arc<DataFile>,
    /// The lowest `seq` in the file.
    seq_min: u64,
    /// Where the next record begins, and where the last one ends.
    offset: u64,
    end: u64,
    /// The highest `seq` before `offset`.
    passed_seq: u64,
}

impl<P: JournalPolicy> Core<P> {
    /// The files that no snapshot from now on needs: those that are closed for appends and have
    /// neither a current version nor a tombstone, and those that a merge has replaced. The caller
    /// holds the lock of background work.
    pub(super) fn files_without_changes(&self, writer: &Writer, merges: &MergeScheduler) -> BTreeSet<u32> {
        let unsealed = writer.unsealed_ids();
        let has_nothing = |file: &&Arc<DataFile>| {
            let counters = &file.counters;
            let is_dead = counters.live_records.load(Ordering::Acquire) == 0
                && counters.tombstones.load(Ordering::Relaxed) == 0
                && !unsealed.contains(&file.id);
            is_dead || merges.is_replaced(file.id)
        };
        self.files.read().values().filter(has_nothing).map(|file| file.id).collect()
    }

    /// The files with records after `seq`, oldest first, but for those that were known to have
    /// nothing before the snapshot of the walk began. The caller holds the lock of background work.
    pub(super) fn files_with_changes(&self, without: &BTreeSet<u32>, seq: u64) -> Vec<FileToRead> {
        let files = self.files.read();
        let has_changes =
            |file: &&Arc<DataFile>| !without.contains(&file.id) && file.counters.seq_max.load(Ordering::Acquire) > seq;
        let to_read = |file: &Arc<DataFile>| {
            let end = file.counters.length.load(Ordering::Acquire);
            let (passed_seq, offset) = file.read_marks.start_after(seq);
            FileToRead { file: file.clone(), seq_min: file.counters.seq_min(), offset, end, passed_seq }
        };
        let mut found: Vec<FileToRead> = files.values().filter(has_changes).map(to_read).collect();
        found.sort_by_key(|file| (file.seq_min, file.file.id));
        found
    }
}

/// The walk; see the module of the journal's feed.
pub(super) struct JournalChanges<P: JournalPolicy> {
    snapshot: JournalSnapshot<P>,
    files: Vec<FileToRead>,
    /// The file that is being read.
    at: usize,
    from: StorePlace,
    end: StorePlace,
    /// Removals that the journal does not record, of keys that are not there.
    removed: VecDeque<Removed>,
    detail: Detail,
}

/// What the index of a snapshot has of a key.
pub(super) fn entry_in<P: JournalPolicy>(
    snapshot: &JournalSnapshot<P>,
    key: &[u8],
) -> Result<Option<Entry>, StorageError> {
    let core = snapshot.core();
    snapshot.with_view(|view| {
        let found = core.index.get_at(P::Index::key(key), view, ReadMode::Blocking)?;
        Ok(found.map(|found| found.entry))
    })
}

/// What a walk makes of a record.
enum Met {
    Change(Change),
    /// The record is not the state of its key, or another record is handed out for it.
    Passed,
    /// The body does not match its checksum.
    Damaged,
}

impl<P: JournalPolicy> JournalChanges<P> {
    pub(super) fn new(
        snapshot: JournalSnapshot<P>,
        files: Vec<FileToRead>,
        (from, end): (StorePlace, StorePlace),
        removed: VecDeque<Removed>,
        detail: Detail,
    ) -> Self {
        Self { snapshot, files, at: 0, from, end, removed, detail }
    }

    fn entries_of(&self, keys: &[&[u8]]) -> Result<Vec<Option<Entry>>, StorageError> {
        let core = self.snapshot.core();
        self.snapshot.with_view(|view| core.index.entries_at(keys, view))
    }

    /// Whether the walk reads the record at a position.
    fn reads(&self, position: Position) -> bool {
        let is_there = |read: &FileToRead| read.file.id == position.file_id && u64::from(position.offset) < read.end;
        self.files.iter().any(is_there)
    }

    /// What becomes of a record, given what the index has of its key. A version that a merge has
    /// moved is handed out where it was when the walk began.
    fn meet(
        &self,
        file: &DataFile,
        scanner: &mut Scanner<'_>,
        record: &BatchRecord<'_>,
        entry: Option<Entry>,
    ) -> Result<Met, StorageError> {
        let BatchRecord { offset, header, key } = *record;
        let entry = match (header.kind, entry) {
            (Kind::Tombstone, None) if header.seq <= self.end.seq => {
                let key = Bytes::copy_from_slice(key);
                return Ok(Met::Change(Change::removed(key, header.seq, Origin::Unknown)));
            }
            (Kind::Put, Some(entry)) if entry.seq == header.seq => entry,
            _ => return Ok(Met::Passed),
        };
        let is_here = entry.position.file_id == file.id && u64::from(entry.position.offset) == offset;
        if !is_here && self.reads(entry.position) {
            return Ok(Met::Passed);
        }
        let mut found = self.snapshot.fold_entry(Bytes::copy_from_slice(key), &entry);
        if self.detail == Detail::Keys {
            return Ok(Met::Change(Change::stored(found)));
        }
        let bytes =
            if self.detail == Detail::Objects { scanner.record(offset, header) } else { scanner.meta(offset, header) };
        let bytes = bytes.map_err(|source| file.io_error("read", source))?;
        let Some(parts) = take_apart(bytes, header, self.detail) else { return Ok(Met::Damaged) };
        let stored_secs = Some(header.tstamp_secs);
        found.stored =
            Some(Stored { head: parts.0, body: parts.1, digest: header.digest, seq: header.seq, stored_secs });
        let RecordHeader { tstamp_secs, expires_secs, has_terms, .. } = *header;
        let attrs = WriteAttrs { tstamp_secs, expires_secs, has_terms };
        found.attrs = (self.detail == Detail::Objects).then_some(attrs);
        Ok(Met::Change(Change::stored(found)))
    }

    /// Reads on in the present file. Returns what the walk has to hand out.
    fn read_file(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError> {
        let Some(read) = self.files.get(self.at) else { return Ok(FeedStep::End) };
        let (file, begin, end) = (read.file.clone(), read.offset, read.end);
        let stop = end.min(begin.saturating_add(bytes_max));
        let core = self.snapshot.core().clone();
        let handle = core.shared.handles.get(&file, ReadMode::Blocking).map_err(|e| file.io_error("read", e))?;
        let mut scanner = Scanner::new(&*handle, file.salt, begin, end);
        let (mut changes, mut passed_seq, mut offset) = (Vec::new(), read.passed_seq, begin);
        while changes.len() < count_max && offset < stop {
            let batch = match Batch::read(&mut scanner, self.from.seq, count_max - changes.len(), stop) {
                Err(source) if is_media_error(&source) => return Ok(give_up(&file, end)),
                batch => batch.map_err(|e| file.io_error("read", e))?,
            };
            // A start cuts torn writes off, so what is damaged may have been a change.
            let Some(batch) = batch else { return Ok(give_up(&file, end)) };
            let keys: Vec<&[u8]> = batch.records().map(|record| record.key).collect();
            for (record, entry) in batch.records().zip(self.entries_of(&keys)?) {
                match self.meet(&file, &mut scanner, &record, entry)? {
                    Met::Change(change) => changes.push(change),
                    Met::Passed => {}
                    Met::Damaged => return Ok(give_up(&file, end)),
                }
            }
            passed_seq = passed_seq.max(batch.seq_max);
            offset = batch.end;
        }
        file.read_marks.note(passed_seq, offset);
        if let Some(read) = self.files.get_mut(self.at) {
            (read.offset, read.passed_seq) = (offset, passed_seq);
            self.at += usize::from(offset >= end);
        }
        Ok(FeedStep::Some(changes))
    }
}

/// Ends a walk at a place that cannot be read. A consumer that has begun anew since then reads on
/// behind the part of the file that was there.
fn give_up(file: &DataFile, end: u64) -> FeedStep {
    file.read_marks.note(file.counters.seq_max.load(Ordering::Acquire), end);
    FeedStep::Lost(CursorLost::Damaged)
}

/// The head of a record, and its body if that is wanted; none if the body is damaged.
fn take_apart(record: &[u8], header: &RecordHeader, detail: Detail) -> Option<(Bytes, Option<Bytes>)> {
    let (meta, body) = record.split_at_checked(header.meta_len() as usize)?;
    let head = meta.get(header.key_start() + header.key_len as usize..)?;
    if detail != Detail::Objects {
        return Some((Bytes::copy_from_slice(head), None));
    }
    if body.len() != header.body_len as usize || crc32fast::hash(body) != header.crc_body {
        return None;
    }
    // One allocation for both.
    let both = Bytes::copy_from_slice(record.get(meta.len() - head.len()..)?);
    let body = decompress(header.coding, both.slice(head.len()..))?;
    Some((both.slice(..head.len()), Some(body)))
}

impl<P: JournalPolicy> Changes for JournalChanges<P> {
    fn next(&mut self, count_max: usize, bytes_max: u64) -> Result<FeedStep, StorageError> {
        let (count_max, bytes_max) = (count_max.max(1), bytes_max.max(1));
        if !self.removed.is_empty() {
            let count = count_max.min(self.removed.len());
            return Ok(FeedStep::Some(self.removed.drain(..count).map(Removed::into_change).collect()));
        }
        self.read_file(count_max, bytes_max)
    }

    fn cursor(&self) -> FeedCursor {
        let unread = self.files.get(self.at..).unwrap_or_default();
        if !self.removed.is_empty() {
            return FeedCursor::of_store(self.from);
        }
        let passed_seq = unread.iter().map(|read| read.seq_min.saturating_sub(1)).min().unwrap_or(u64::MAX);
        FeedCursor::of_store(StorePlace { seq: passed_seq.min(self.end.seq).max(self.from.seq), ..self.end })
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        self.snapshot.read(key)
    }
}
