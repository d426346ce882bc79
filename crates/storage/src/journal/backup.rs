//! A backup of a store with a journal. The active file is closed at the cut, so all files up to the
//! cut are finished. The policy of the backend says which files the backup takes.

use super::background::{BackgroundWork, MergeScheduler};
use super::data_file::{DataFile, hint_path};
use super::lost_note::LOST_NOTE;
use super::policy::JournalPolicy;
use super::snapshot::Ticket;
use super::store::Core;
use crate::backup::{CutContent, CutFile, StoreBackup, StoreCut};
use crate::error::{StorageError, io_error};
use parking_lot::MutexGuard;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A backup of a store with a journal; see [`StoreBackup`].
pub(super) struct JournalBackup<'a, P: JournalPolicy> {
    core: &'a Arc<Core<P>>,
    background: MutexGuard<'a, BackgroundWork>,
    seq: u64,
    cut: P::BackupCut,
    pin: FilePin<P>,
}

/// Keeps files that a merge replaces in place, as a snapshot does.
struct FilePin<P: JournalPolicy> {
    core: Arc<Core<P>>,
    ticket: u64,
}

impl<P: JournalPolicy> Drop for FilePin<P> {
    fn drop(&mut self) {
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}

impl<'a, P: JournalPolicy> JournalBackup<'a, P> {
    /// Begins a backup. Waits until background work of the store has ended its slice.
    pub(super) fn begin(core: &'a Arc<Core<P>>) -> Result<Self, StorageError> {
        let mut background = core.background.lock();
        core.check_writable()?;
        // Gives the copies of an unfinished merge their final names.
        background.merges.settle(core)?;
        let ticket = core.snapshot_tickets.lock().begin(Ticket::of_files());
        let pin = FilePin { core: core.clone(), ticket };
        Ok(Self { core, background, seq: 0, cut: P::BackupCut::default(), pin })
    }
}

/// The data files of a store at the cut of a backup, for a journal that has everything. An index
/// that can be rebuilt from the journal is left out.
#[derive(Default)]
pub(crate) struct JournalFiles {
    files: Vec<Arc<DataFile>>,
}

impl JournalFiles {
    /// All files at this moment, except those that a merge has replaced. The active file was just
    /// closed.
    pub(crate) fn at_cut<P: JournalPolicy>(core: &Core<P>, merges: &MergeScheduler) -> Self {
        let files = core.files.read();
        Self { files: files.values().filter(|file| !merges.is_replaced(file.id)).cloned().collect() }
    }

    /// The files of the backup: each data file with its hint file.
    pub(crate) fn into_backup<P: JournalPolicy>(self, core: &Core<P>) -> Result<Vec<CutFile>, StorageError> {
        let mut files = Vec::with_capacity(self.files.len() * 2);
        for file in &self.files {
            let hint = hint_path(&core.dir, file.id);
            let (fs, path) = (core.shared.fs.clone(), file.path());
            if core.has_file(&hint)? {
                let content = CutContent::Final { fs, path: path.clone(), salt: Some(file.salt) };
                files.push(core.backed_up_file(&path, content)?);
                files.push(core.final_file(hint)?);
            } else {
                // Without a hint file, the next start reads the data file from end to end, and
                // truncates it after its last intact record.
                let length = file.counters.length.load(Ordering::Acquire);
                files.push(core.backed_up_file(&path, CutContent::Prefix { fs, path: path.clone(), length })?);
            }
        }
        Ok(files)
    }
}

impl<P: JournalPolicy> Core<P> {
    /// A file of a backup that is never written to again.
    fn final_file(&self, path: PathBuf) -> Result<CutFile, StorageError> {
        let fs = self.shared.fs.clone();
        self.backed_up_file(&path.clone(), CutContent::Final { fs, path, salt: None })
    }

    /// A file of a backup, at its place below the root.
    pub(crate) fn backed_up_file(&self, path: &Path, content: CutContent) -> Result<CutFile, StorageError> {
        let place = path.strip_prefix(&self.shared.root).map(Path::to_owned);
        let place = place.map_err(|_| io_error("name", path, io::ErrorKind::InvalidInput.into()))?;
        Ok(CutFile { place, content })
    }

    fn has_file(&self, path: &Path) -> Result<bool, StorageError> {
        match self.shared.fs.file_identity(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(io_error("stat", path, source)),
        }
    }
}

impl<P: JournalPolicy> StoreBackup for JournalBackup<'_, P> {
    fn cut(&mut self) -> u64 {
        let mut writer = self.core.writer.lock();
        writer.close_active();
        self.cut = P::cut_backup(self.core, &writer, &self.background.merges);
        self.seq = writer.last_seq();
        self.seq
    }

    fn roots(&self) -> Vec<&Path> {
        vec![&self.core.shared.root]
    }

    fn finish(self: Box<Self>) -> Result<Vec<StoreCut>, StorageError> {
        let Self { core, background, seq, cut, pin } = *self;
        core.sync(seq)?;
        core.seal_closed_files(usize::MAX)?;
        let (mut files, index_pin) = P::finish_backup(core, cut, seq)?;
        let lost = core.dir.join(LOST_NOTE);
        if core.has_file(&lost)? {
            files.push(core.final_file(lost)?);
        }
        drop(background);
        Ok(vec![StoreCut {
            name: None,
            kind: P::BACKEND,
            identity: core.identity.identity(),
            seq,
            root: core.shared.root.clone(),
            files,
            _pin: Box::new((pin, index_pin)),
        }])
    }
}
