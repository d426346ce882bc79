//! A backup of a store with a journal. The active file is closed at the cut, so all files up to the
//! cut are finished.
//!
//! An index that can be rebuilt from the journal is left out. An index that has everything
//! (leveldb) is flushed, and is backed up without the journal, which is only its log.

use super::data_file::hint_path;
use super::key_index::{Keeps, KeyIndex};
use super::lost_note::LOST_NOTE;
use super::snapshot::Ticket;
use super::store::Core;
use super::upkeep::Upkeep;
use crate::backup::{CutContent, CutFile, StoreBackup, StoreCut};
use crate::error::{StorageError, io_error};
use crate::journal::data_file::DataFile;
use parking_lot::MutexGuard;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A backup of a store with a journal; see [`StoreBackup`].
pub(super) struct JournalBackup<'a, I: KeyIndex> {
    core: &'a Arc<Core<I>>,
    upkeep: MutexGuard<'a, Upkeep>,
    taken: Taken<I>,
}

/// The state at the cut.
struct Taken<I: KeyIndex> {
    seq: u64,
    files: Vec<Arc<DataFile>>,
    pin: FilePin<I>,
}

/// Keeps files that a merge replaces in place, as a snapshot does.
struct FilePin<I: KeyIndex> {
    core: Arc<Core<I>>,
    ticket: u64,
}

impl<I: KeyIndex> Drop for FilePin<I> {
    fn drop(&mut self) {
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}

impl<'a, I: KeyIndex> JournalBackup<'a, I> {
    /// Begins a backup. Waits until background work of the store has ended its slice.
    pub(super) fn begin(core: &'a Arc<Core<I>>) -> Result<Self, StorageError> {
        let mut upkeep = core.upkeep.lock();
        core.check_writable()?;
        // Gives the copies of an unfinished merge their final names.
        upkeep.settle_merge(core)?;
        let ticket = core.snapshot_tickets.lock().begin(Ticket::of_files());
        let pin = FilePin { core: core.clone(), ticket };
        Ok(Self { core, upkeep, taken: Taken { seq: 0, files: Vec::new(), pin } })
    }

    fn journal_files(&self) -> Result<Vec<CutFile>, StorageError> {
        let core = self.core;
        let mut files = Vec::with_capacity(self.taken.files.len() * 2);
        for file in &self.taken.files {
            let hint = hint_path(&core.dir, file.id);
            let (fs, path) = (core.shared.fs.clone(), file.path());
            if self.exists(&hint)? {
                files.push(self.cut_file(&path, CutContent::Final { fs, path: path.clone(), salt: Some(file.salt) })?);
                files.push(self.final_file(hint)?);
            } else {
                // Without a hint file, the next start reads the data file from end to end, and
                // truncates it after its last intact record.
                let length = file.counters.length.load(Ordering::Acquire);
                files.push(self.cut_file(&path, CutContent::Prefix { fs, path: path.clone(), length })?);
            }
        }
        Ok(files)
    }

    fn final_file(&self, path: PathBuf) -> Result<CutFile, StorageError> {
        let fs = self.core.shared.fs.clone();
        self.cut_file(&path.clone(), CutContent::Final { fs, path, salt: None })
    }

    fn cut_file(&self, path: &Path, content: CutContent) -> Result<CutFile, StorageError> {
        let place = path.strip_prefix(&self.core.shared.root).map(Path::to_owned);
        let place = place.map_err(|_| io_error("name", path, io::ErrorKind::InvalidInput.into()))?;
        Ok(CutFile { place, content })
    }

    fn exists(&self, path: &Path) -> Result<bool, StorageError> {
        match self.core.shared.fs.birth(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(io_error("stat", path, source)),
        }
    }
}

impl<I: KeyIndex> StoreBackup for JournalBackup<'_, I> {
    fn cut(&mut self) -> u64 {
        let mut writer = self.core.writer.lock();
        writer.roll();
        if I::KEEPS == Keeps::Everything {
            self.core.note_checkpoint(&writer);
        } else {
            let files = self.core.files.read();
            self.taken.files = files.values().filter(|file| !self.upkeep.is_retired(file.id)).cloned().collect();
        }
        self.taken.seq = writer.last_seq();
        self.taken.seq
    }

    fn roots(&self) -> Vec<&Path> {
        vec![&self.core.shared.root]
    }

    fn finish(self: Box<Self>) -> Result<Vec<StoreCut>, StorageError> {
        let core = self.core;
        core.sync(self.taken.seq)?;
        core.seal_rolled(usize::MAX)?;
        let (mut files, index_pin) = if I::KEEPS == Keeps::Everything {
            core.write_checkpoint(self.taken.seq)?;
            let (files, pin) = core.index.files()?;
            let files = files.into_iter().map(|(path, content)| self.cut_file(&path, content));
            (files.collect::<Result<Vec<_>, _>>()?, Some(pin))
        } else {
            (self.journal_files()?, None)
        };
        let lost = core.dir.join(LOST_NOTE);
        if self.exists(&lost)? {
            files.push(self.final_file(lost)?);
        }
        let Self { taken, .. } = *self;
        Ok(vec![StoreCut {
            name: None,
            kind: I::BACKEND,
            identity: core.identity.identity(),
            seq: taken.seq,
            root: core.shared.root.clone(),
            files,
            _pin: Box::new((taken.pin, index_pin)),
        }])
    }
}
