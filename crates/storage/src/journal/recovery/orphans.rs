//! Hints whose data files are not there.
//!
//! A merge removes both under its commit file, and what it copied has the same sequence numbers elsewhere; what is removed
//! because a tree has everything, the tree has seen. So where a hint names a version that nothing else here knows at its
//! sequence number or later, its data file went another way, and what it held is missing.

use super::Recovery;
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::OpenMode;
use crate::journal::data_file::{data_path, hint_path};
use crate::journal::format::{HintEntry, HintReader, Kind, salt_of_hint};
use crate::journal::key_index::{Keeps, KeyIndex};
use crate::journal::lost_note::{LostNote, missing_file};
use crate::journal::writer::is_disk_full;
use std::io;

/// The id in a hint's name.
pub(crate) fn hint_id(name: &str) -> Option<u32> {
    name.strip_suffix(".hint")?.parse().ok()
}

/// The newest that there is of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) seq: u64,
    pub(crate) is_tombstone: bool,
}

/// Whether the store answers something else because it does not have what a hint names, `newest` being what it has of the key.
/// `is_gone`: it would not show.
pub(crate) fn is_missed(named_seq: u64, is_gone: bool, newest: Option<Newest>) -> bool {
    match newest {
        Some(newest) if newest.seq >= named_seq => false,
        Some(newest) => !is_gone || !newest.is_tombstone,
        None => !is_gone,
    }
}

/// What a hint tells that has no data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orphan {
    /// Everything that it names is known, or newer.
    Superseded,
    Missed {
        versions: u64,
    },
    Damaged,
}

impl<I: KeyIndex> Recovery<'_, I> {
    /// Notes that data files are missing whose hints are left, and removes these: a hint must not speak for a later file of
    /// its id. Everything else was loaded.
    pub(super) fn judge_orphans(&mut self, ids: &[u32]) -> Result<(), StorageError> {
        for id in ids {
            let file = data_path(self.dir, *id);
            let is_told = match self.orphan(*id)? {
                Orphan::Superseded => true,
                Orphan::Missed { versions } => {
                    tracing::error!(file = %file.display(), versions, "the data file is missing, and nothing else has what it held");
                    self.miss(*id)?
                }
                Orphan::Damaged => {
                    tracing::error!(file = %file.display(), "the data file is missing, and its hint does not tell what it held");
                    self.miss(*id)?
                }
            };
            if is_told {
                self.remove_hint(*id)?;
            }
        }
        Ok(())
    }

    /// What came of a file is missing. False on a full disk: the hint has to stay and tell again.
    fn miss(&mut self, id: u32) -> Result<bool, StorageError> {
        if I::KEEPS == Keeps::Position && self.index.noted_seq() > 0 {
            // What is on disk of such an index has seen the file.
            self.index.begin_anew()?;
        }
        self.note_missing(id)
    }

    /// The ids of hints without data files. The hint of a file whose last name is not on disk goes: what a loss of power left of
    /// that file is for its records to tell.
    pub(super) fn orphans(&self, names: &[String], files: &[(u32, bool)]) -> Result<Vec<u32>, StorageError> {
        let mut orphans = Vec::new();
        for id in names.iter().filter_map(|name| hint_id(name)) {
            match files.iter().find(|(other, _)| *other == id) {
                None => orphans.push(id),
                Some((_, is_fresh)) if *is_fresh => self.remove_hint(id)?,
                Some(_) => {}
            }
        }
        Ok(orphans)
    }

    fn remove_hint(&self, id: u32) -> Result<(), StorageError> {
        let path = hint_path(self.dir, id);
        self.shared.fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))
    }

    fn orphan(&mut self, id: u32) -> Result<Orphan, StorageError> {
        if self.checkpoint.files.get(&id).is_some_and(|state| state.is_in_use()) {
            // A ledger pointed at it, and told already.
            return Ok(Orphan::Superseded);
        }
        let path = hint_path(self.dir, id);
        let failed = |source: io::Error| io_error("read", &path, source);
        let hint = self.shared.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let Some(salt) = salt_of_hint(&*hint, id).map_err(failed)? else { return Ok(Orphan::Damaged) };
        let Some(reader) = HintReader::open(hint, id, salt).map_err(failed)? else { return Ok(Orphan::Damaged) };
        let (mut versions, mut seq_max, mut unread) = (0, 0, None);
        let whole = reader.for_each(|entry| {
            seq_max = seq_max.max(entry.seq);
            match self.misses(&entry) {
                Ok(is_missed) => versions += u64::from(is_missed),
                Err(error) => unread = Some(error),
            }
        });
        let whole = whole.map_err(failed)?;
        // Nothing new may get a number that was given.
        self.seq_max = self.seq_max.max(seq_max);
        match (unread, whole, versions) {
            (Some(error), _, _) => Err(error),
            (None, false, _) => Ok(Orphan::Damaged),
            (None, true, 0) => Ok(Orphan::Superseded),
            (None, true, versions) => Ok(Orphan::Missed { versions }),
        }
    }

    fn misses(&self, entry: &HintEntry<'_>) -> Result<bool, StorageError> {
        if I::KEEPS != Keeps::Position && entry.seq <= self.checkpoint.seq {
            return Ok(false);
        }
        let config = &self.shared.config;
        let expires_secs = config.expires_at(entry.tstamp_secs, entry.expires_secs);
        let is_expired = expires_secs != 0 && u64::from(expires_secs) < config.opened_at_secs;
        let newest = self.index.get(I::key(entry.key), ReadMode::Blocking)?.map(|found| found.entry);
        let newest = newest.map(|entry| Newest { seq: entry.seq, is_tombstone: entry.position.size == 0 });
        Ok(is_missed(entry.seq, is_expired || entry.kind == Kind::Tombstone, newest))
    }

    /// Counts a missing file now and at every start from now on; false when there is no room for that.
    fn note_missing(&mut self, id: u32) -> Result<bool, StorageError> {
        let fs = &*self.shared.fs;
        let mut note = LostNote::read(fs, self.dir)?;
        let known = note.count();
        note.add_place(missing_file(id));
        self.lost_ranges += note.count() - known;
        match note.write(fs, self.dir) {
            Err(StorageError::Io { source, .. }) if is_disk_full(&source) => Ok(false),
            written => written.map(|()| true),
        }
    }
}
