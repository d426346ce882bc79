//! One partition's directory: its files, and whether somebody writes there.

use super::hint::{self, Unusable};
use super::latest::{Latest, shadowed_files};
use super::record::{HEADER_BYTES, Tombstone};
use super::scan::{Piece, Scan};
use super::source::Source;
use super::{SourceError, records::Cursor, records::Records};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Larger hint files are not read into memory; the data file is scanned instead.
const HINT_BYTES_MAX: u64 = 256 << 20;
/// Bit of the mode of a data file that says that it is to be deleted.
const SETUID: u32 = 0o4000;

/// One data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its number; files are ordered by it.
    pub id: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// One partition's directory.
#[derive(Clone, Debug)]
pub struct PartitionDir {
    path: PathBuf,
    files: Vec<DataFile>,
}

impl PartitionDir {
    /// Looks what a directory holds. Refuses one that a running Riak node writes to.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let io = |source| SourceError::Io { path: path.to_owned(), source };
        for lock in ["bitcask.write.lock", "bitcask.merge.lock", "bitcask.create.lock"] {
            refuse_held(&path.join(lock))?;
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(io)? {
            let entry = entry.map_err(io)?;
            let Some(id) = entry.file_name().to_str().and_then(data_file_id) else { continue };
            let metadata = entry.metadata().map_err(io)?;
            // Marked for deletion: everything in it that counts was merged into another file.
            if metadata.mode() & SETUID == 0 {
                files.push(DataFile { id, bytes: metadata.len(), path: entry.path() });
            }
        }
        files.sort_by_key(|file| file.id);
        Ok(Self { path: path.to_owned(), files })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its data files that count, in order.
    pub fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// Learns which record of each key is the current one. Parts that cannot be read are passed
    /// over: [`Records`] reports them.
    pub fn load_latest(&self) -> Latest {
        let mut latest = Latest::default();
        for (place, file) in (0u32..).zip(&self.files) {
            // What cannot be opened has no current records, and is reported when its records are
            // read.
            let Ok(data) = File::open(&file.path) else { continue };
            let hinted = self.load_hint(place, file, &data, &mut latest).unwrap_or(0);
            self.load_data(place, file, data, hinted, &mut latest);
        }
        latest
    }

    /// Reads a hint file; tells up to where it covers the data file.
    fn load_hint(&self, place: u32, file: &DataFile, data: &File, latest: &mut Latest) -> Result<u64, Unusable> {
        let unreadable = |_| Unusable("cannot be read");
        let path = file.path.with_extension("hint");
        if fs::metadata(&path).map_err(unreadable)?.len() > HINT_BYTES_MAX {
            return Err(Unusable("is too large"));
        }
        let bytes = fs::read(&path).map_err(unreadable)?;
        let mut covered = 0;
        for entry in hint::check(&bytes, file.bytes)? {
            covered = covered.max(entry.offset + u64::from(entry.record_bytes));
            if entry.tombstone {
                let shadows = || {
                    let value_at = HEADER_BYTES + entry.key.len();
                    let tombstone = tombstone_at(data, entry.offset, value_at, entry.record_bytes);
                    shadowed_files(tombstone, self.files.iter().map(|f| f.id))
                };
                latest.remove(entry.key, entry.tstamp_secs, place, entry.offset, shadows);
            } else {
                latest.put(entry.key, entry.tstamp_secs, place, entry.offset);
            }
        }
        Ok(covered)
    }

    fn load_data(&self, place: u32, file: &DataFile, data: File, from: u64, latest: &mut Latest) {
        let mut scan = Scan::new(data, file.bytes, from);
        while let Ok(Some(piece)) = scan.next_piece() {
            let Piece::Record { offset, tstamp_secs, key, value } = piece else { continue };
            match Tombstone::of(&value) {
                None => latest.put(&key, tstamp_secs, place, offset),
                Some(tombstone) => latest.remove(&key, tstamp_secs, place, offset, || {
                    shadowed_files(tombstone, self.files.iter().map(|f| f.id))
                }),
            }
        }
    }

    /// The current records, from `from` on, in the order of the files.
    pub fn records<'a>(&'a self, latest: &'a Latest, from: Option<Cursor>) -> Records<'a> {
        Records::new(self, latest, from)
    }
}

fn data_file_id(name: &str) -> Option<u32> {
    name.strip_suffix(".bitcask.data")?.parse().ok()
}

/// The tombstone that a hint names. One that cannot be read counts as the oldest kind.
fn tombstone_at(data: &File, offset: u64, value_at: usize, record_bytes: u32) -> Tombstone {
    let value_bytes = (record_bytes as usize).saturating_sub(value_at).min(Tombstone::BYTES_MAX);
    let mut value = vec![0; value_bytes];
    match Source::read_exact_at(data, &mut value, offset + value_at as u64) {
        Ok(()) => Tombstone::of(&value).unwrap_or(Tombstone::Older),
        Err(_) => Tombstone::Older,
    }
}

/// A lock file holds the process id and the file it writes to. It stays behind when a node is
/// killed.
fn refuse_held(lock: &Path) -> Result<(), SourceError> {
    let Ok(text) = fs::read_to_string(lock) else { return Ok(()) };
    let Some(pid) = text.split_ascii_whitespace().next().and_then(|pid| pid.parse::<u32>().ok()) else {
        return Ok(());
    };
    if is_running(pid) { Err(SourceError::InUse { lock: lock.to_owned(), pid }) } else { Ok(()) }
}

fn is_running(pid: u32) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}
