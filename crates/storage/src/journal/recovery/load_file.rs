//! Loads one data file.

use super::{LostSeqs, Recovery};
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{File, OpenMode};
use crate::journal::checkpoint::FileState;
use crate::journal::data_file::{DataFile, data_path, hint_path, unsynced_path};
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader, HeaderError, HintReader};
use crate::journal::policy::JournalPolicy;
use crate::journal::synced_extent::SyncedExtent;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The hint file of a data file.
pub(super) enum Hint {
    Missing,
    /// The hint file exists, so the data file was complete once, but it cannot be used.
    Damaged,
    Whole(HintReader),
}

/// The header of a file of `length` bytes, or the part of it that the file has.
pub(super) fn header_bytes(handle: &dyn File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length.min(FILE_HEADER_BYTES as u64) as usize];
    match handle.read_at(&mut bytes, 0, ReadMode::Blocking)? {
        read if read == bytes.len() => Ok(bytes),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl<P: JournalPolicy> Recovery<'_, P> {
    /// Loads one data file: what the index has not seen of it, from its hint file or its records.
    pub(super) fn load_file(&mut self, id: u32, is_unsynced: bool) -> Result<(), StorageError> {
        let path = if is_unsynced { unsynced_path(self.dir, id) } else { data_path(self.dir, id) };
        let handle = self.shared.fs.open(&path, OpenMode::Write).map_err(|source| io_error("open", &path, source))?;
        let length = handle.length().map_err(|source| io_error("stat", &path, source))?;
        if length > u64::from(u32::MAX) {
            let what =
                format!("{length} bytes long, and no data file is longer than 4 GiB: it was not written by Ombak");
            return Err(StorageError::Unusable { path, what });
        }
        let Some(header) = self.read_header(&path, &*handle, length, id, is_unsynced)? else { return Ok(()) };
        let file = Arc::new(DataFile::new(id, header.salt, path));
        file.counters.length.store(length, Ordering::Relaxed);
        self.files.insert(id, file.clone());
        let hint = self.open_hint(id, header.salt)?;
        let known = self.policy.known_state(id, header.salt);
        if let Some(known) = known.filter(|known| known.length <= length) {
            self.restore_known(&file, &known);
            if known.length < length {
                file.counters.length.store(length, Ordering::Relaxed);
                self.load_scan(&file, &*handle, known.length..length, self.synced_extent(&file, hint)?)?;
            }
            return self.name_loaded(&file, is_unsynced);
        }
        if let Some(known) = known.filter(|_| self.inventory.is_lost(id)) {
            return self.keep_shortened(&file, &known, hint, length);
        }
        if known.is_some() {
            // The index has seen more of the file than there is.
            self.losses.add_range(LostSeqs::OfFile(id));
        }
        let extent = match hint {
            Hint::Whole(reader) if P::loads_from_hints() => {
                if self.load_hint(&file, reader, length)? {
                    file.counters.synced_length.store(length, Ordering::Relaxed);
                    return Ok(());
                }
                // The hint file is read again to learn which records were synced, because the data
                // may be damaged too.
                let hint = self.open_hint(id, header.salt)?;
                self.synced_extent(&file, hint)?
            }
            hint => self.synced_extent(&file, hint)?,
        };
        self.load_scan(&file, &*handle, FILE_HEADER_BYTES as u64..length, extent)?;
        self.name_loaded(&file, is_unsynced)
    }

    fn synced_extent(&self, file: &DataFile, hint: Hint) -> Result<SyncedExtent, StorageError> {
        match hint {
            Hint::Missing => Ok(SyncedExtent::FromRecords),
            Hint::Damaged => Ok(SyncedExtent::WholeFile),
            Hint::Whole(reader) => {
                let path = hint_path(self.dir, file.id);
                SyncedExtent::of_hint(reader).map_err(|source| io_error("read", &path, source))
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
        self.restore_known(file, known);
        file.counters.length.store(length, Ordering::Relaxed);
        file.counters.synced_length.store(length, Ordering::Relaxed);
        if let Hint::Whole(reader) = hint {
            self.load_unread(file.id, Some(file), reader, &|offset| u64::from(offset) >= known.length, &mut None)?;
        }
        Ok(())
    }

    /// Takes the state in which the index on disk has seen a file.
    fn restore_known(&mut self, file: &DataFile, known: &FileState) {
        known.restore(&file.counters);
        if known.lost_ranges > 0 {
            self.losses.add_seqs(LostSeqs::OfFile(file.id));
        }
    }

    /// Gives a loaded file the name of a synced file, because it is on disk now.
    fn name_loaded(&self, file: &DataFile, is_unsynced: bool) -> Result<(), StorageError> {
        if is_unsynced {
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
        is_unsynced: bool,
    ) -> Result<Option<FileHeader>, StorageError> {
        let bytes = header_bytes(handle, length).map_err(|source| io_error("read", path, source))?;
        match FileHeader::decode(&bytes) {
            Ok(header) if header.file_id == id => Ok(Some(header)),
            Err(HeaderError::Version(version)) => Err(StorageError::other_format(path, version)),
            _ if is_unsynced => {
                // The header never reached the disk.
                self.torn_bytes += length;
                self.shared.fs.remove_file(path).map_err(|source| io_error("remove", path, source))?;
                Ok(None)
            }
            _ => {
                tracing::error!(file = %path.display(), "not a data file any more: its header is damaged; it is left alone");
                self.losses.add_range(LostSeqs::OfFile(id));
                self.unreadable_files.extend(self.inventory.promised().files.get(&id).map(|file| (id, *file)));
                Ok(None)
            }
        }
    }

    pub(super) fn open_hint(&self, id: u32, salt: u64) -> Result<Hint, StorageError> {
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
}
