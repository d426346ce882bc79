//! The log in its file: what it holds, and every change of it.

use super::error::LogError;
use super::format::{self, ENTRY_BYTES_MAX, Record};
use super::recovery::recover;
use bytes::Bytes;
use ombak_storage::fs::{File, FileSystem, OpenMode, is_disk_full, read_file, replace_file};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file.
pub(crate) const LOG_FILE: &str = "metadata.log";
/// No log is longer: its entries are purged when they take more bytes than the state.
const LOG_BYTES_MAX: u64 = 4 << 30;

/// What the log holds. The log does not know what its entries mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogContent {
    /// The last entry before the log begins: its index, and which entry it is.
    pub purged: Option<(u64, Bytes)>,
    /// Which entry is known to be committed.
    pub committed: Option<Bytes>,
    /// The entries by their index, without a gap.
    pub entries: BTreeMap<u64, Bytes>,
}

impl LogContent {
    /// The index that the next entry must have; `None` if it may have any.
    fn next_index(&self) -> Option<u64> {
        let last = self.entries.last_key_value().map(|(index, _)| *index);
        last.or(self.purged.as_ref().map(|(index, _)| *index)).map(|index| index.saturating_add(1))
    }

    /// Whether an entry may follow what is there; the error says why not.
    pub(super) fn check_next(&self, index: u64, entry: &[u8]) -> Result<(), LogError> {
        check_entry(self.next_index(), index, entry)
    }

    pub(super) fn remove_from(&mut self, index: u64) {
        self.entries.split_off(&index);
    }

    fn purge(&mut self, index: u64, which: Bytes) {
        self.entries = self.entries.split_off(&index.saturating_add(1));
        self.purged = Some((index, which));
    }
}

/// The log of one node. All methods block, and everything that they did is durable when they
/// return.
pub(crate) struct LogFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    identity: u64,
    file: Arc<dyn File>,
    content: LogContent,
    /// Where the next record goes.
    end: u64,
    /// How many bytes are known to be durable.
    durable: u64,
    is_poisoned: bool,
    /// Whether it is poisoned only because a purge found no room: the file is the old one or the
    /// new one. Another purge replaces either.
    is_purge_open: bool,
}

impl LogFile {
    /// Creates an empty log. An existing one is replaced.
    pub fn create(fs: Arc<dyn FileSystem>, dir: &Path, identity: u64) -> Result<Self, LogError> {
        let path = dir.join(LOG_FILE);
        let content = LogContent::default();
        replace_file(&*fs, &path, &encode(&content, identity).0).map_err(io_error("create", &path))?;
        Self::open(fs, dir)?.ok_or_else(|| LogError::Unusable { path, what: "is missing".into() })
    }

    /// Opens the log; `None` if there is none. What a loss of power left of an append that was not
    /// acknowledged is removed.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Option<Self>, LogError> {
        let path = dir.join(LOG_FILE);
        let bytes = match read_file(&*fs, &path, LOG_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LogError::Io { op: "read", path, source }),
        };
        let found = recover(&bytes).map_err(|what| LogError::Unusable { path: path.clone(), what })?;
        let file = fs.open(&path, OpenMode::Write).map_err(io_error("open", &path))?;
        let end = found.end as u64;
        if found.end < bytes.len() {
            tracing::info!(path = %path.display(), from = end, to = bytes.len(), "removing an unfinished write");
            file.truncate(end).map_err(io_error("truncate", &path))?;
        }
        // What a killed process wrote may lie in the page cache only.
        file.sync_data().map_err(io_error("sync", &path))?;
        let (identity, content) = (found.identity, found.content);
        let mut log =
            Self { fs, path, identity, file, content, end, durable: end, is_poisoned: false, is_purge_open: false };
        log.seal()?;
        Ok(Some(log))
    }

    /// The random number that tells this log from all others.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// What the log holds.
    pub fn content(&self) -> &LogContent {
        &self.content
    }

    /// The length of the file in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.end
    }

    /// Appends entries. Their indexes follow the last one without a gap.
    pub fn append(&mut self, entries: Vec<(u64, Bytes)>) -> Result<(), LogError> {
        // The whole batch is checked first, so that a refused one leaves no trace.
        let mut next = self.content.next_index();
        for (index, entry) in &entries {
            check_entry(next, *index, entry)?;
            next = Some(index.saturating_add(1));
        }
        self.write(entries.iter().map(|(index, entry)| Record::Entry { index: *index, entry }))?;
        self.content.entries.extend(entries);
        Ok(())
    }

    /// Removes the entries from `index` on.
    pub fn remove_from(&mut self, index: u64) -> Result<(), LogError> {
        self.write([Record::RemoveFrom { index }].into_iter())?;
        self.content.remove_from(index);
        Ok(())
    }

    /// Remembers which entry is known to be committed.
    pub fn set_committed(&mut self, which: Bytes) -> Result<(), LogError> {
        self.write([Record::Committed { which: &which }].into_iter())?;
        self.content.committed = Some(which);
        Ok(())
    }

    /// Removes the entries up to and including `index`, through a new file. If it finds no room,
    /// it may be tried again, and until then nothing else may change.
    pub fn purge(&mut self, index: u64, which: Bytes) -> Result<(), LogError> {
        if !self.is_purge_open {
            self.guard()?;
        }
        let mut content = self.content.clone();
        content.purge(index, which);
        let (bytes, durable) = encode(&content, self.identity);
        let replaced = self.replace(&bytes);
        self.is_poisoned = replaced.is_err();
        self.is_purge_open = replaced.as_ref().is_err_and(LogError::is_full_disk);
        self.file = replaced?;
        self.content = content;
        self.end = bytes.len() as u64;
        self.durable = durable;
        Ok(())
    }

    fn replace(&self, bytes: &[u8]) -> Result<Arc<dyn File>, LogError> {
        replace_file(&*self.fs, &self.path, bytes).map_err(io_error("replace", &self.path))?;
        self.fs.open(&self.path, OpenMode::Write).map_err(io_error("open", &self.path))
    }

    /// Writes records, waits until they are durable, and seals them.
    fn write<'a>(&mut self, records: impl Iterator<Item = Record<'a>>) -> Result<(), LogError> {
        self.guard()?;
        let mut bytes = Vec::new();
        for record in records {
            let offset = self.end + bytes.len() as u64;
            format::write_record(&record, self.identity, self.durable, offset, &mut bytes);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.is_poisoned = true;
        if let Err(error) = self.file.write_at(&bytes, self.end) {
            self.take_back(&error);
            return Err(io_error("write", &self.path)(error));
        }
        self.file.sync_data().map_err(io_error("sync", &self.path))?;
        self.is_poisoned = false;
        self.end += bytes.len() as u64;
        self.durable = self.end;
        self.seal()
    }

    /// Writes that everything until here is durable. The seal itself is not synced: it is there to
    /// tell a damaged record from an unfinished write, and damage of the first seconds may look
    /// like the latter.
    fn seal(&mut self) -> Result<(), LogError> {
        let at = format::seal_offset(self.end as usize) as u64;
        let mut bytes = vec![0; (at - self.end) as usize];
        format::write_record(&Record::Seal, self.identity, self.durable, at, &mut bytes);
        self.is_poisoned = true;
        match self.file.write_at(&bytes, self.end) {
            Ok(()) => {
                self.is_poisoned = false;
                self.end += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.take_back(&error);
                // What is durable is so without a seal, and the next write is followed by one.
                if self.is_poisoned { Err(io_error("write", &self.path)(error)) } else { Ok(()) }
            }
        }
    }

    /// Removes what a write has left that did not find room. Nobody was told of it, and nothing of
    /// it was synced, so the log goes on when there is room again. After all other failures it is
    /// unknown what reached the disk.
    fn take_back(&mut self, error: &io::Error) {
        if is_disk_full(error) {
            self.is_poisoned = self.file.truncate(self.end).is_err();
        }
    }

    fn guard(&self) -> Result<(), LogError> {
        if self.is_poisoned { Err(LogError::Poisoned) } else { Ok(()) }
    }
}

/// Whether an entry is the one with the index `next`, if only one may come next.
fn check_entry(next: Option<u64>, index: u64, entry: &[u8]) -> Result<(), LogError> {
    let refused = |why| Err(LogError::Refused { index, why });
    match next {
        Some(next) if next != index => refused("it does not follow the last one"),
        _ if entry.len() > ENTRY_BYTES_MAX => refused("it is too long"),
        _ => Ok(()),
    }
}

/// The whole file of a log, and how many bytes of it the seal at its end covers.
fn encode(content: &LogContent, identity: u64) -> (Vec<u8>, u64) {
    let mut bytes = format::header(identity).to_vec();
    let purged = content.purged.iter().map(|(index, which)| Record::Purged { index: *index, which });
    let committed = content.committed.iter().map(|which| Record::Committed { which });
    let entries = content.entries.iter().map(|(index, entry)| Record::Entry { index: *index, entry });
    for record in purged.chain(committed).chain(entries) {
        let offset = bytes.len() as u64;
        format::write_record(&record, identity, 0, offset, &mut bytes);
    }
    let durable = bytes.len() as u64;
    bytes.resize(format::seal_offset(bytes.len()), 0);
    let offset = bytes.len() as u64;
    format::write_record(&Record::Seal, identity, durable, offset, &mut bytes);
    (bytes, durable)
}

pub(super) fn io_error<'a>(op: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LogError + 'a {
    move |source| LogError::Io { op, path: path.to_owned(), source }
}
