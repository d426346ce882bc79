//! Opening a store: builds the index from what is on disk.
//!
//! A data file with a hint file was complete on disk. A data file without one was being written to
//! when the process or the machine stopped, so it is read from end to end. Damage after the point
//! up to which it is known to have been synced is a torn write; it is ignored and counted in
//! `torn_bytes`. Damage before that point is corruption and counted in `lost_ranges`. A file that
//! was never synced has another name (`<id>.fresh`): any part of it may be missing.

use super::checkpoint::{Checkpoint, FileState};
use super::covered;
use super::data_file::{DataFile, data_path, fresh_path, hint_path, hint_temporary_path};
use super::format::{
    FILE_HEADER_BYTES, FileHeader, HeaderError, HintEntry, HintReader, HintWriter, Kind, RecordHeader, Scanned, Scanner,
};
use super::identity::{Found, IdentityFile, run_before_has_failed};
use super::inventory_keeper::InventoryKeeper;
use super::key_index::{Entry, Keeps, KeyIndex, Loaded, Version};
use super::lost_note::LostNote;
use super::merge::{COMMIT_SUFFIX, finish_commit};
use super::promise::Promise;
use super::shared::Shared;
use super::store::{Core, Files, Recovered, Store};
use super::writer::{Writer, is_disk_full, position_of, record_bytes};
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{File, OpenMode};
use crate::inventory::PromisedFile;
use crate::seq::SeqSource;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod orphans;

use orphans::remove_told;
pub(crate) use orphans::{Newest, hint_id, is_missed};

/// Bytes that are read and written at once when a part of a file is written again.
const WRITE_AGAIN_BYTES: usize = 1 << 20;

impl<I: KeyIndex> Store<I> {
    /// Opens or creates the store of a partition. `index` makes the index for the store in a
    /// directory: an empty one, or one that has a checkpoint on disk.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        partition: u32,
        seqs: &SeqSource,
        index: impl FnOnce(&Path) -> Result<I, StorageError>,
    ) -> Result<Self, StorageError> {
        shared.enter(partition)?;
        let dir = shared.root.join(partition.to_string());
        let recovered = shared.finish_drop(partition).and_then(|()| {
            // The inventory is checked before anything is changed; to open an index may rebuild it.
            let inventory = InventoryKeeper::open(shared, partition, &dir)?;
            recover(shared, &dir, seqs, index(&dir)?, inventory)
        });
        let found = recovered.inspect_err(|_| shared.leave(partition))?;
        let core = Core::new(shared.clone(), partition, dir, found);
        core.begin_inventory()?;
        core.tell_of_losses();
        Ok(Self { core: Arc::new(core) })
    }
}

fn recover<I: KeyIndex>(
    shared: &Arc<Shared>,
    dir: &Path,
    seqs: &SeqSource,
    index: I,
    inventory: InventoryKeeper,
) -> Result<Recovered<I>, StorageError> {
    let checkpoint = index.restored().and_then(|bytes| Checkpoint::decode(&bytes)).unwrap_or_default();
    let mut recovery = Recovery {
        shared,
        dir,
        inventory: &inventory,
        left_alone: BTreeMap::new(),
        seq_max: checkpoint.seq,
        checkpoint,
        files: Files::new(),
        lost_ranges: 0,
        torn_bytes: 0,
        has_expiring: index.may_expire(),
        index,
        unclean: false,
        names_settled: false,
        told_hints: Vec::new(),
    };
    let (dir_exists, id_max) = recovery.load_all()?;
    let has_data = recovery.seq_max > 0 || !recovery.files.is_empty();
    let found = if has_data {
        Found::Data
    } else if dir_exists {
        Found::Directory
    } else {
        Found::Nothing
    };
    let identity = IdentityFile::load(shared.fs.clone(), dir, found)?;
    let seq_max = recovery.seq_max.max(identity.seq());
    recovery.index.finish_load(seq_max)?;
    if recovery.unclean {
        // Data that was read from the page cache must be on disk before it counts as durable.
        shared.fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))?;
        shared.fs.sync_dir(&shared.root).map_err(|source| io_error("fsync", &shared.root, source))?;
    }
    let Recovery { index, checkpoint, files, lost_ranges, torn_bytes, has_expiring, told_hints, left_alone, .. } =
        recovery;
    let dir_exists = found != Found::Nothing && begin(shared, dir, dir_exists, &identity)?;
    remove_told(shared, dir, &identity, seq_max, &told_hints)?;
    let counted_after = if I::KEEPS == Keeps::Everything { checkpoint.seq } else { 0 };
    seqs.raise(seq_max);
    let writer = Writer::new(seqs.clone(), seq_max, checkpoint.next_id.max(id_max + 1), dir_exists);
    Ok(Recovered {
        identity,
        inventory,
        left_alone,
        index,
        files,
        writer,
        counted_after,
        lost_ranges,
        torn_bytes,
        has_expiring,
    })
}

/// Records the start on disk, and returns whether the directory exists then. If the disk is full,
/// the first write does this later; reads go on.
fn begin(shared: &Shared, dir: &Path, dir_exists: bool, identity: &IdentityFile) -> Result<bool, StorageError> {
    let begun = || {
        if !dir_exists {
            shared.fs.create_dir_all(dir)?;
            shared.fs.sync_dir(&shared.root)?;
        }
        identity.begin()
    };
    match begun() {
        Ok(()) => Ok(true),
        Err(error) if is_disk_full(&error) => {
            tracing::warn!(dir = %dir.display(), "the disk is full: the store takes no writes until there is room");
            Ok(dir_exists)
        }
        Err(source) => Err(io_error("write", dir, source)),
    }
}

/// The error for a tree that lacks versions which were removed from the journal.
pub(crate) fn tree_is_behind(dir: &Path, seen_seq: u64, covered_seq: u64) -> StorageError {
    let what = format!(
        "the tree of this partition has seen its journal up to {seen_seq}, but what came before {covered_seq} was removed \
         because the tree had it: put back the newest copy of the tree that you have, or go on with what is there after \
         'ombak admin backend verify --repair'"
    );
    StorageError::Unusable { path: dir.to_owned(), what }
}

/// The header of a file of `length` bytes, or the part of it that the file has.
fn header_bytes(handle: &dyn File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length.min(FILE_HEADER_BYTES as u64) as usize];
    match handle.read_at(&mut bytes, 0, ReadMode::Blocking)? {
        read if read == bytes.len() => Ok(bytes),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes a part of a file again with its own content. After a failed sync the kernel takes pages
/// for written that never reached the disk, and a later sync leaves them out.
fn write_again(file: &DataFile, handle: &dyn File, part: Range<u64>) -> Result<(), StorageError> {
    let mut buffer = vec![0; WRITE_AGAIN_BYTES];
    let mut offset = part.start;
    while offset < part.end {
        let wanted = usize::try_from(part.end - offset).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = handle.read_at(&mut buffer[..wanted], offset, ReadMode::Blocking);
        let read = read.map_err(|source| file.io_error("read", source))?;
        if read == 0 {
            break;
        }
        handle.write_at(&buffer[..read], offset).map_err(|source| file.io_error("write", source))?;
        offset += read as u64;
    }
    Ok(())
}

/// The id in a data file's name, and whether the name is that of a file that was never synced.
pub(crate) fn parse_name(name: &str) -> Option<(u32, bool)> {
    let (id, is_fresh) = match name.strip_suffix(".data") {
        Some(id) => (id, false),
        None => (name.strip_suffix(".fresh")?, true),
    };
    let id = id.parse().ok().filter(|id| *id < u32::MAX)?;
    Some((id, is_fresh))
}

/// The hint file of a data file.
enum Hint {
    Missing,
    /// The hint file exists, so the data file was complete once, but it cannot be used.
    Damaged,
    Whole(HintReader),
}

struct Recovery<'a, I> {
    shared: &'a Shared,
    dir: &'a Path,
    inventory: &'a InventoryKeeper,
    /// Promised files that cannot be read. They are left in place.
    left_alone: BTreeMap<u32, PromisedFile>,
    index: I,
    /// What the index has already seen of the journal.
    checkpoint: Checkpoint,
    files: Files,
    seq_max: u64,
    lost_ranges: u64,
    torn_bytes: u64,
    has_expiring: bool,
    unclean: bool,
    /// Whether the names of all data files are on disk.
    names_settled: bool,
    /// Hint files without data files that are to be removed.
    told_hints: Vec<u32>,
}

/// What a scan found besides good records.
#[derive(Default)]
struct ScanReport {
    /// The end of the last good record.
    end: u64,
    /// The highest `synced_to` of any record.
    synced_to: u64,
    /// Offset and length of each damaged range.
    damage: Vec<(u64, u64)>,
    /// Records with a corrupt body.
    rotten: Vec<(u64, RecordHeader)>,
}

impl<I: KeyIndex> Recovery<'_, I> {
    /// Loads all files. Returns whether the directory exists, and the highest file id in it.
    fn load_all(&mut self) -> Result<(bool, u32), StorageError> {
        let fs = &*self.shared.fs;
        let names = match fs.list(self.dir) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.check_index(&[], &[])?;
                return Ok((false, 0));
            }
            Err(source) => return Err(io_error("list", self.dir, source)),
        };
        self.lost_ranges += LostNote::read(fs, self.dir)?.count();
        for name in names.iter().filter(|name| name.ends_with(COMMIT_SUFFIX)) {
            if !finish_commit(fs, self.dir, name)? {
                self.note_lost(1)?;
                let path = self.dir.join(name);
                fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
            }
        }
        let unfinished: Vec<u32> =
            names.iter().filter_map(|name| name.strip_suffix(".merging")?.parse().ok()).collect();
        for name in names.iter().filter(|name| name.ends_with(".merging") || name.ends_with(".tmp")) {
            let path = self.dir.join(name);
            fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
        }
        let names = fs.list(self.dir).map_err(|source| io_error("list", self.dir, source))?;
        let mut files: Vec<(u32, bool)> = names.iter().filter_map(|name| parse_name(name)).collect();
        files.sort_unstable();
        let orphans = self.find_orphans(&names, &files)?;
        self.check_index(&files, &unfinished)?;
        for (id, is_fresh) in &files {
            self.load_file(*id, *is_fresh)?;
        }
        self.judge_orphans(&orphans)?;
        // The highest id includes lost files, because their hint files must not be taken for those
        // of later files.
        let lost = self.inventory.promised().lost_files.iter().copied();
        let ids = files.iter().map(|(id, _)| *id).chain(orphans).chain(lost);
        Ok((true, ids.max().unwrap_or(0)))
    }

    /// Checks that the index on disk belongs to this journal. Another index would point at missing
    /// data, or contain superseded versions. The index is older than the journal if the disk lost
    /// writes of the index that it had confirmed, and newer if the disk lost writes of the journal.
    /// An index is rebuilt if the journal has everything; otherwise the start fails. A misfit that
    /// is only an output of a merge in `unfinished` is not a loss, because the inputs of that merge
    /// are still there.
    fn check_index(&mut self, files: &[(u32, bool)], unfinished: &[u32]) -> Result<(), StorageError> {
        match I::KEEPS {
            Keeps::Position => {
                let noted = self.index.noted_seq();
                if noted > 0 && noted < covered::read(&*self.shared.fs, self.dir)? {
                    self.index.begin_anew()?;
                }
                Ok(())
            }
            Keeps::Head => {
                let mut misfits = Vec::new();
                // The ledger keeps its entries for a file that is known to be lost, so that reads
                // of those keys fail.
                let is_lost = |id: &u32| self.inventory.is_lost(*id);
                let in_use = self.checkpoint.files.iter().filter(|(id, state)| state.is_in_use() && !is_lost(id));
                for (id, state) in in_use {
                    if !self.has_file(*id, state, files)? {
                        misfits.push(*id);
                    }
                }
                if !misfits.is_empty() {
                    let what = "data files are not those that the ledger points at";
                    tracing::error!(dir = %self.dir.display(), files = misfits.len(), "{what}");
                    let missing: Vec<u32> = misfits.iter().copied().filter(|id| !unfinished.contains(id)).collect();
                    self.note_missing(&missing)?;
                    self.index.begin_anew()?;
                    // The rebuilt index has seen nothing.
                    self.checkpoint = Checkpoint { next_id: self.checkpoint.next_id, ..Checkpoint::default() };
                }
                Ok(())
            }
            Keeps::Everything => {
                let covered = covered::read(&*self.shared.fs, self.dir)?.max(self.inventory.promised().index_seq);
                if self.checkpoint.seq >= covered {
                    return Ok(());
                }
                Err(tree_is_behind(self.dir, self.checkpoint.seq, covered))
            }
        }
    }

    /// Counts lost ranges, now and at every start from now on, because the evidence is about to be
    /// removed.
    fn note_lost(&mut self, ranges: u64) -> Result<(), StorageError> {
        if ranges == 0 {
            return Ok(());
        }
        let fs = &*self.shared.fs;
        let mut note = LostNote::read(fs, self.dir)?;
        note.add_further(ranges);
        note.write(fs, self.dir)?;
        self.lost_ranges += ranges;
        Ok(())
    }

    /// Whether a file has everything that the index has seen of it.
    fn has_file(&self, id: u32, state: &FileState, files: &[(u32, bool)]) -> Result<bool, StorageError> {
        let Some((_, is_fresh)) = files.iter().find(|(other, _)| *other == id) else { return Ok(false) };
        let path = if *is_fresh { fresh_path(self.dir, id) } else { data_path(self.dir, id) };
        let failed = |source: io::Error| io_error("read", &path, source);
        let handle = self.shared.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let length = handle.length().map_err(failed)?;
        let header = header_bytes(&*handle, length).map_err(failed)?;
        // An unreadable header is reported when the file is loaded.
        let is_same = FileHeader::decode(&header).map_or(true, |header| header.salt == state.salt);
        Ok(is_same && length >= state.length)
    }

    fn load_file(&mut self, id: u32, is_fresh: bool) -> Result<(), StorageError> {
        let path = if is_fresh { fresh_path(self.dir, id) } else { data_path(self.dir, id) };
        let handle = self.shared.fs.open(&path, OpenMode::Write).map_err(|source| io_error("open", &path, source))?;
        let length = handle.length().map_err(|source| io_error("stat", &path, source))?;
        if length > u64::from(u32::MAX) {
            let what =
                format!("{length} bytes long, and no data file is longer than 4 GiB: it was not written by Ombak");
            return Err(StorageError::Unusable { path, what });
        }
        let Some(header) = self.read_header(&path, &*handle, length, id, is_fresh)? else { return Ok(()) };
        let file = Arc::new(DataFile::new(id, header.salt, path));
        file.counters.length.store(length, Ordering::Relaxed);
        self.files.insert(id, file.clone());
        let hint = self.open_hint(id, header.salt)?;
        let known = self.checkpoint.files.get(&id).filter(|known| known.salt == header.salt).copied();
        if let Some(known) = known.filter(|known| known.length <= length) {
            known.restore(&file.counters);
            if known.length < length {
                file.counters.length.store(length, Ordering::Relaxed);
                self.load_scan(&file, &*handle, known.length..length, self.promise(&file, hint)?)?;
            }
            return self.name_loaded(&file, is_fresh);
        }
        if let Some(known) = known.filter(|_| I::KEEPS == Keeps::Head && self.inventory.is_lost(id)) {
            return self.keep_shortened(&file, &known, hint, length);
        }
        if known.is_some() {
            // The index has seen more of the file than there is.
            self.lost_ranges += 1;
        }
        let promise = match hint {
            Hint::Whole(reader) if I::KEEPS == Keeps::Position => {
                if self.load_hint(&file, reader, length)? {
                    file.counters.synced_length.store(length, Ordering::Relaxed);
                    return Ok(());
                }
                // The hint file is read again to learn which records were synced, because the data
                // may be damaged too.
                let hint = self.open_hint(id, header.salt)?;
                self.promise(&file, hint)?
            }
            hint => self.promise(&file, hint)?,
        };
        self.load_scan(&file, &*handle, FILE_HEADER_BYTES as u64..length, promise)?;
        self.name_loaded(&file, is_fresh)
    }

    fn promise(&self, file: &DataFile, hint: Hint) -> Result<Promise, StorageError> {
        match hint {
            Hint::Missing => Ok(Promise::ByRecords),
            Hint::Damaged => Ok(Promise::All),
            Hint::Whole(reader) => {
                let path = hint_path(self.dir, file.id);
                Promise::of_hint(reader).map_err(|source| io_error("read", &path, source))
            }
        }
    }

    /// Loads a file whose end is missing and had been seen by the ledger. The ledger keeps its
    /// entries there, so that reads of those keys fail. For the records that the ledger had not
    /// seen, the hint file is used.
    fn keep_shortened(
        &mut self,
        file: &Arc<DataFile>,
        known: &FileState,
        hint: Hint,
        length: u64,
    ) -> Result<(), StorageError> {
        known.restore(&file.counters);
        file.counters.length.store(length, Ordering::Relaxed);
        file.counters.synced_length.store(length, Ordering::Relaxed);
        if let Hint::Whole(reader) = hint {
            self.load_unread(file.id, Some(file), reader, &|offset| u64::from(offset) >= known.length, &mut None)?;
        }
        Ok(())
    }

    /// Loads those versions from a hint file that its data file no longer has. They stay in the
    /// index, so that reads of their keys fail instead of finding an older version. An index that
    /// keeps whole values has no place for them.
    fn load_unread(
        &mut self,
        id: u32,
        file: Option<&Arc<DataFile>>,
        reader: HintReader,
        is_unread: &dyn Fn(u32) -> bool,
        hint: &mut Option<HintWriter>,
    ) -> Result<(), StorageError> {
        if I::KEEPS == Keeps::Everything {
            return Ok(());
        }
        let (path, seen_seq) = (hint_path(self.dir, id), self.checkpoint.seq);
        let mut failed = None;
        reader
            .for_each(|entry| {
                if failed.is_some() || !is_unread(entry.offset) {
                    return;
                }
                // For versions that a ledger has seen, its own entries are better.
                if I::KEEPS == Keeps::Position || entry.seq > seen_seq {
                    failed = self.load_lost_entry(id, file, &entry).err();
                }
                if let Some(writer) = hint
                    && writer.add(&entry).is_err()
                    && let Some(writer) = hint.take()
                {
                    writer.abandon(&*self.shared.fs);
                }
            })
            .map_err(|source| io_error("read", &path, source))?;
        failed.map_or(Ok(()), Err)
    }

    fn load_lost_entry(
        &mut self,
        id: u32,
        file: Option<&Arc<DataFile>>,
        entry: &HintEntry<'_>,
    ) -> Result<(), StorageError> {
        match file {
            Some(file) => self.load_entry(file, entry, &[], &[]),
            // The counters of this file object are not used.
            None => self.load_entry(&Arc::new(DataFile::new(id, 0, data_path(self.dir, id))), entry, &[], &[]),
        }
    }

    /// Gives a loaded file the name of a synced file, because it is on disk now.
    fn name_loaded(&self, file: &DataFile, is_fresh: bool) -> Result<(), StorageError> {
        if is_fresh {
            let path = data_path(self.dir, file.id);
            self.shared.fs.rename(&file.path(), &path).map_err(|source| file.io_error("rename", source))?;
            file.set_path(path);
        }
        Ok(())
    }

    /// Reads the header of a data file. None if nothing in the file can be read.
    fn read_header(
        &mut self,
        path: &Path,
        handle: &dyn File,
        length: u64,
        id: u32,
        is_fresh: bool,
    ) -> Result<Option<FileHeader>, StorageError> {
        let bytes = header_bytes(handle, length).map_err(|source| io_error("read", path, source))?;
        match FileHeader::decode(&bytes) {
            Ok(header) if header.file_id == id => Ok(Some(header)),
            Err(HeaderError::Version(version)) => Err(StorageError::other_format(path, version)),
            _ if is_fresh => {
                // The header never reached the disk.
                self.torn_bytes += length;
                self.shared.fs.remove_file(path).map_err(|source| io_error("remove", path, source))?;
                Ok(None)
            }
            _ => {
                tracing::error!(file = %path.display(), "not a data file any more: its header is damaged; it is left alone");
                self.lost_ranges += 1;
                self.left_alone.extend(self.inventory.promised().files.get(&id).map(|file| (id, *file)));
                Ok(None)
            }
        }
    }

    fn open_hint(&self, id: u32, salt: u64) -> Result<Hint, StorageError> {
        let path = hint_path(self.dir, id);
        let opened = match self.shared.fs.open(&path, OpenMode::Read) {
            Ok(file) => HintReader::open(file, id, salt),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Hint::Missing),
            Err(source) => return Err(io_error("open", &path, source)),
        };
        match opened {
            Ok(Some(reader)) => Ok(Hint::Whole(reader)),
            Ok(None) => Ok(Hint::Damaged),
            Err(source) => Err(io_error("read", &path, source)),
        }
    }

    /// Loads a file from its hint file. False if the hint file does not match the data file, which
    /// must then be read.
    fn load_hint(&mut self, file: &Arc<DataFile>, reader: HintReader, length: u64) -> Result<bool, StorageError> {
        let trailer = reader.trailer();
        if trailer.data_length != length {
            return Ok(false);
        }
        let path = hint_path(self.dir, file.id);
        let mut failed = None;
        let load = |entry: HintEntry<'_>| {
            let loaded = self.load_entry(file, &entry, &[], &[]);
            failed = failed.take().or(loaded.err());
        };
        let whole = reader.for_each(load).map_err(|source| io_error("read", &path, source))?;
        if let Some(error) = failed {
            return Err(error);
        }
        if whole {
            file.counters.lost_ranges.store(trailer.lost_ranges, Ordering::Relaxed);
        } else {
            tracing::warn!(file = %path.display(), "damaged hint file: reading the data instead");
        }
        Ok(whole)
    }

    fn load_entry(
        &mut self,
        file: &Arc<DataFile>,
        hint: &HintEntry<'_>,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), StorageError> {
        self.seq_max = self.seq_max.max(hint.seq);
        file.counters.count_record(hint.kind == Kind::Tombstone, record_bytes(hint), hint.seq, hint.tstamp_secs);
        // An old file that should have been removed may hold versions that were deleted in another
        // file that was removed.
        if I::KEEPS == Keeps::Everything && hint.seq <= self.checkpoint.seq {
            return Ok(());
        }
        let position = position_of(file.id, hint);
        let expires_secs = self.shared.config.expires_at(hint.tstamp_secs, hint.expires_secs);
        self.has_expiring |= expires_secs != 0;
        let entry = Entry { position, expires_secs, seq: hint.seq, digest: hint.digest };
        let version = Version { head, body: &[body], tstamp_secs: hint.tstamp_secs, expires_secs: hint.expires_secs };
        let Loaded::Newest(old) = self.index.load(I::key(hint.key), &entry, &version)? else { return Ok(()) };
        // Versions that such an index knew before were never counted as live.
        let is_counted = |old: &Entry| I::KEEPS != Keeps::Everything || old.seq > self.checkpoint.seq;
        if let Some(old) = old.filter(|old| old.position.size != 0 && is_counted(old))
            && let Some(old_file) = self.files.get(&old.position.file_id)
        {
            old_file.counters.remove_live(old.position.size);
        }
        if position.size != 0 {
            file.counters.add_live(position.size);
        }
        Ok(())
    }

    /// Reads a part of a file, from the start of a record to the end of the file.
    fn load_scan(
        &mut self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        part: Range<u64>,
        promise: Promise,
    ) -> Result<(), StorageError> {
        self.unclean = true;
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
        file.counters.lost_ranges.fetch_max(promise.lost_ranges(), Ordering::Relaxed);
        let kept = self.judge(file, handle, length, &report, &promise, &mut hint)?;
        if matches!(promise, Promise::Listed { .. })
            && let Hint::Whole(reader) = self.open_hint(file.id, file.salt)?
        {
            let is_damaged =
                |offset: u64| report.damage.iter().any(|(start, length)| (*start..start + length).contains(&offset));
            let is_unread = |offset: u32| u64::from(offset) >= length || is_damaged(u64::from(offset));
            self.load_unread(file.id, Some(file), reader, &is_unread, &mut hint)?;
        }
        if kept < length {
            handle.truncate(kept).map_err(|source| file.io_error("truncate", source))?;
        }
        if run_before_has_failed(&*self.shared.fs, self.dir)? {
            write_again(file, handle, if from_start { 0..kept } else { start..kept })?;
        }
        handle.sync_data().map_err(|source| file.io_error("fsync", source))?;
        file.counters.length.store(kept, Ordering::Relaxed);
        file.counters.synced_length.store(kept, Ordering::Relaxed);
        if let Some(hint) = hint {
            self.settle_names()?;
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
    fn settle_names(&mut self) -> Result<(), StorageError> {
        if !self.names_settled {
            self.shared.fs.sync_dir(self.dir).map_err(|source| io_error("fsync", self.dir, source))?;
            self.names_settled = true;
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
        let mut scanner = Scanner::new(handle, file.salt, part.start, part.end);
        while let Some(scanned) = scanner.next().map_err(failed)? {
            match scanned {
                Scanned::Damage { offset, length } => report.damage.push((offset, length)),
                Scanned::Record { offset, header } => {
                    report.synced_to = report.synced_to.max(u64::from(header.synced_to));
                    if scanner.body_matches(offset, &header).map_err(failed)? {
                        report.end = offset + header.total_len();
                        self.load_scanned(file, &mut scanner, offset, &header, hint)?;
                    } else {
                        report.rotten.push((offset, header));
                    }
                }
            }
        }
        Ok(report)
    }

    /// Separates corruption from torn writes, and returns how much of the file to keep.
    fn judge(
        &mut self,
        file: &Arc<DataFile>,
        handle: &dyn File,
        length: u64,
        report: &ScanReport,
        promise: &Promise,
        hint: &mut Option<HintWriter>,
    ) -> Result<u64, StorageError> {
        let mut kept = report.end;
        let mut torn = 0;
        if promise.goes_beyond(length) {
            file.counters.lost_ranges.fetch_add(1, Ordering::Relaxed);
            tracing::error!(file = %file.path().display(), length, "the file was longer: what its end held is unknown");
        }
        for (offset, header) in &report.rotten {
            let end = offset + header.total_len();
            let is_rot = promise.covers(*offset, header.total_len(), report.synced_to);
            if is_rot && I::KEEPS == Keeps::Everything {
                // This index has no place for a version that cannot be read.
                file.counters.lost_ranges.fetch_add(1, Ordering::Relaxed);
                kept = kept.max(end);
            } else if is_rot {
                // The version stays in the index: reads must fail rather than find nothing.
                let mut scanner = Scanner::new(handle, file.salt, *offset, length);
                self.load_scanned(file, &mut scanner, *offset, header, hint)?;
                kept = kept.max(end);
                tracing::error!(file = %file.path().display(), offset, "a stored version is damaged");
            } else {
                torn += header.total_len();
            }
        }
        for (offset, length) in &report.damage {
            // A promised length ends after a record. A gap before that record may be an older torn
            // write between records.
            let was_end = *offset >= report.end && *offset < self.inventory.promised_length(file.id);
            if was_end || promise.covers(*offset, *length, report.synced_to) {
                file.counters.lost_ranges.fetch_add(1, Ordering::Relaxed);
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
        let head = match I::KEEPS {
            Keeps::Position => Vec::new(),
            Keeps::Head | Keeps::Everything => scanner.head(offset, header).map_err(failed)?.to_vec(),
        };
        let body = match I::KEEPS {
            Keeps::Position | Keeps::Head => Vec::new(),
            Keeps::Everything => scanner.body(offset, header).map_err(failed)?,
        };
        let entry = HintEntry::of(offset, header, &key);
        self.load_entry(file, &entry, &head, &body)?;
        if let Some(writer) = hint
            && writer.add(&entry).is_err()
            && let Some(writer) = hint.take()
        {
            writer.abandon(&*self.shared.fs);
        }
        Ok(())
    }
}
