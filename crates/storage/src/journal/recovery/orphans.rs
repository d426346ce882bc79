//! Hint files whose data files are missing.
//!
//! There are harmless reasons for such a hint file. In each of them the store still knows the
//! versions that the hint file names, or newer ones:
//!
//! * A merge removed both files under its commit file. Its copies have the same sequence numbers in
//!   other files.
//! * The journal removed both files because a tree has everything. The tree has seen their
//!   versions.
//! * A loss of power removed the name of the data file. A hint file gets its name only after the
//!   name of its data file is durable, or while the input files of the merge that wrote it exist.
//!
//! So if a hint file names a version, and nothing else in the store has a version of that key with
//! the same or a higher sequence number, the data file disappeared in some other way, and its
//! content is lost.

use super::{FoundFiles, LostSeqs, Recovery};
use crate::error::{StorageError, io_error};
use crate::fs::{OpenMode, is_disk_full};
use crate::journal::config::JournalConfig;
use crate::journal::data_file::{data_path, hint_path};
use crate::journal::format::{HintEntry, HintReader, Kind};
use crate::journal::identity::IdentityFile;
use crate::journal::index::KeyIndex;
use crate::journal::policy::JournalPolicy;
use crate::journal::shared::Shared;
use std::io;
use std::path::Path;

/// The file id in a hint file's name.
pub(crate) fn hint_id(name: &str) -> Option<u32> {
    let id = name.strip_suffix(".hint")?.parse().ok()?;
    (id < u32::MAX && name == format!("{id:010}.hint")).then_some(id)
}

/// The newest version that a store has of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) seq: u64,
    pub(crate) is_tombstone: bool,
}

/// Whether a store gives a wrong answer because it lacks the version that a hint entry names.
/// `newest` is the newest version of the key that the store has.
pub(crate) fn is_lost_version(named: &HintEntry<'_>, newest: Option<Newest>, config: &JournalConfig) -> bool {
    let would_show = named.kind != Kind::Tombstone && !config.had_expired(named.tstamp_secs, named.expires_secs);
    match newest {
        Some(newest) if newest.seq >= named.seq => false,
        Some(newest) => would_show || !newest.is_tombstone,
        None => would_show,
    }
}

/// The result of examining a hint file without a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orphan {
    /// The store has every version that it names, or a newer one.
    Superseded,
    LostVersions {
        versions: u64,
    },
    Damaged,
}

impl<P: JournalPolicy> Recovery<'_, P> {
    /// The ids of hint files without data files.
    /// The hint file of a file that still has the name of an unsynced file is removed: after a loss
    /// of power, the records of that file show what is left.
    pub(super) fn find_orphans(&self, found: &FoundFiles<'_>) -> Result<Vec<u32>, StorageError> {
        let (files, mut orphans) = (&found.data_files, Vec::new());
        for id in found.hints.iter().copied() {
            match files.binary_search_by_key(&id, |(id, _)| *id) {
                Err(_) => orphans.push(id),
                Ok(place) if files[place].1 => remove_hint(self.shared, self.dir, id)?,
                Ok(_) => {}
            }
        }
        Ok(orphans)
    }

    /// Notes which data files are missing. Everything else was loaded.
    pub(super) fn examine_orphans(&mut self, ids: &[u32]) -> Result<(), StorageError> {
        for id in ids {
            let file = data_path(self.dir, *id);
            let seq_max = self.seq_max;
            let is_consumed = match self.examine_orphan(*id)? {
                // This hint file is not evidence now. After further deletes it would look like
                // evidence of a loss.
                Orphan::Superseded if self.seq_max == seq_max => {
                    remove_hint(self.shared, self.dir, *id)?;
                    false
                }
                Orphan::Superseded => true,
                Orphan::LostVersions { versions } => {
                    let what = "the data file is missing, and nothing else has what it held";
                    tracing::error!(file = %file.display(), versions, "{what}");
                    self.record_missing_file(*id)? && !self.keep_lost_versions(*id)?
                }
                Orphan::Damaged => {
                    let what = "the data file is missing, and its hint does not tell what it held";
                    tracing::error!(file = %file.display(), "{what}");
                    self.record_missing_file(*id)?
                }
            };
            if is_consumed {
                self.consumed_hints.push(*id);
            }
        }
        Ok(())
    }

    fn examine_orphan(&mut self, id: u32) -> Result<Orphan, StorageError> {
        let path = hint_path(self.dir, id);
        let failed = |source: io::Error| io_error("read", &path, source);
        let hint = self.shared.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let Some((salt, reader)) = HintReader::open_alone(hint, id).map_err(failed)? else {
            return Ok(Orphan::Damaged);
        };
        let is_listed = self.policy.known_state(id, salt).is_some();
        let (mut versions, mut seq_max, mut unread) = (0, 0, None);
        let whole = reader.for_each(|entry| {
            seq_max = seq_max.max(entry.seq);
            match self.lacks_version(&entry, is_listed) {
                Ok(lacks) => versions += u64::from(lacks),
                Err(error) => unread = Some(error),
            }
        });
        let whole = whole.map_err(failed)?;
        // New versions must not get sequence numbers that were used already.
        self.seq_max = self.seq_max.max(seq_max);
        match (unread, whole, versions) {
            (Some(error), _, _) => Err(error),
            (None, false, _) => Ok(Orphan::Damaged),
            (None, true, 0) => Ok(Orphan::Superseded),
            (None, true, versions) => Ok(Orphan::LostVersions { versions }),
        }
    }

    /// Whether the store lacks a version that a hint entry names. `is_listed`: the index on disk
    /// knew the file.
    fn lacks_version(&self, entry: &HintEntry<'_>, is_listed: bool) -> Result<bool, StorageError> {
        let newest = self.index.loaded(P::Index::key(entry.key))?;
        if self.policy.has_seen(entry.seq) {
            // The index on disk has seen the version and has the current one. But if the index were
            // rebuilt, a missing tombstone could not hide older versions of the key in other files.
            let hides = is_listed && entry.kind == Kind::Tombstone;
            return Ok(hides && newest.is_none());
        }
        let newest = newest.map(|entry| Newest { seq: entry.seq, is_tombstone: entry.position.size == 0 });
        Ok(is_lost_version(entry, newest, &self.shared.config))
    }

    /// Keeps the versions of a missing file in the index, if the index has a place for them: reads
    /// of those keys fail. The hint file then stays, so that later starts do the same.
    fn keep_lost_versions(&mut self, id: u32) -> Result<bool, StorageError> {
        if !P::keeps_unreadable_versions() {
            return Ok(false);
        }
        let path = hint_path(self.dir, id);
        let failed = |source: io::Error| io_error("read", &path, source);
        let hint = self.shared.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let Some((_, reader)) = HintReader::open_alone(hint, id).map_err(failed)? else { return Ok(false) };
        self.load_unread(id, None, reader, &|_| true, &mut None)?;
        Ok(true)
    }

    /// Notes that the content of a file is missing. False on a full disk: the hint file must stay
    /// and be examined again.
    fn record_missing_file(&mut self, id: u32) -> Result<bool, StorageError> {
        P::data_file_is_missing(&mut self.index)?;
        or_disk_full(self.losses.note_missing(&[id], LostSeqs::OfFile(id)))
    }
}

/// Removes hint files that are no longer needed. They must not be taken for those of later files
/// with the same ids. Before that, `seq_max` is recorded in the identity file, so that no number up
/// to it is used again. If the disk is too full for that, the hint files stay.
pub(super) fn remove_consumed_hints(
    shared: &Shared,
    dir: &Path,
    identity: &IdentityFile,
    seq_max: u64,
    consumed: &[u32],
) -> Result<(), StorageError> {
    if consumed.is_empty() || !identity.has_begun() || !or_disk_full(identity.record_used_seq(seq_max))? {
        return Ok(());
    }
    consumed.iter().try_for_each(|id| remove_hint(shared, dir, *id))
}

fn remove_hint(shared: &Shared, dir: &Path, id: u32) -> Result<(), StorageError> {
    let path = hint_path(dir, id);
    shared.fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))
}

/// False if there was no room.
fn or_disk_full(written: Result<(), StorageError>) -> Result<bool, StorageError> {
    match written {
        Err(StorageError::Io { source, .. }) if is_disk_full(&source) => Ok(false),
        written => written.map(|()| true),
    }
}
