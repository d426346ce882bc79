//! One partition's directory: its files, and whether a Riak node writes to it.

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
/// The mode bit of a data file that is marked for deletion.
const SETUID: u32 = 0o4000;

/// A data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// The file's number, which defines the order of files.
    pub id: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// The path of the file.
    pub path: PathBuf,
}

/// One partition's directory.
#[derive(Clone, Debug)]
pub struct PartitionDir {
    path: PathBuf,
    files: Vec<DataFile>,
}

impl PartitionDir {
    /// Lists the files of a directory. Fails if a running Riak node writes to it, or if a data file
    /// is something else than a file, such as a named pipe: reading that could wait for ever.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let io = |source| SourceError::Io { path: path.to_owned(), source };
        for lock in ["bitcask.write.lock", "bitcask.merge.lock", "bitcask.create.lock"] {
            refuse_held(&path.join(lock))?;
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(io)? {
            let entry = entry.map_err(io)?;
            let Some(id) = entry.file_name().to_str().and_then(data_file_id) else { continue };
            let metadata = fs::metadata(entry.path()).map_err(io)?;
            if !metadata.is_file() {
                return Err(SourceError::NotAFile { path: entry.path() });
            }
            // A file that is marked for deletion: its current records were merged into another
            // file.
            if metadata.mode() & SETUID == 0 {
                files.push(DataFile { id, bytes: metadata.len(), path: entry.path() });
            }
        }
        files.sort_by_key(|file| file.id);
        Ok(Self { path: path.to_owned(), files })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its data files in order, without those marked for deletion.
    pub fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// Learns which record of each key is current. Skips parts that cannot be read; [`Records`]
    /// reports them. Asks `stops` for each record, and returns `None` once it is true.
    pub fn load_latest(&self, stops: &dyn Fn() -> bool) -> Option<Latest> {
        let mut latest = Latest::default();
        for (place, file) in (0u32..).zip(&self.files) {
            if stops() {
                return None;
            }
            // A file that cannot be opened has no current records. [`Records`] reports it.
            let Ok(data) = File::open(&file.path) else { continue };
            let hinted = self.load_hint(place, file, &data, (&mut latest, stops)).unwrap_or(0);
            self.load_data(place, file, data, hinted, (&mut latest, stops));
        }
        (!stops()).then_some(latest)
    }

    /// Reads a hint file, and returns the end of the part of the data file that it covers. What it
    /// returns has no meaning once `stops` is true.
    fn load_hint(
        &self,
        place: u32,
        file: &DataFile,
        data: &File,
        (latest, stops): (&mut Latest, &dyn Fn() -> bool),
    ) -> Result<u64, Unusable> {
        let unreadable = |_| Unusable("cannot be read");
        let path = file.path.with_extension("hint");
        let metadata = fs::metadata(&path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(Unusable("is not a regular file"));
        }
        if metadata.len() > HINT_BYTES_MAX {
            return Err(Unusable("is too large"));
        }
        let bytes = fs::read(&path).map_err(unreadable)?;
        let mut covered = 0;
        for entry in hint::check(&bytes, file.bytes)? {
            if stops() {
                break;
            }
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

    fn load_data(
        &self,
        place: u32,
        file: &DataFile,
        data: File,
        from: u64,
        (latest, stops): (&mut Latest, &dyn Fn() -> bool),
    ) {
        let mut scan = Scan::new(data, file.bytes, from);
        while let Ok(Some(piece)) = scan.next_piece() {
            if stops() {
                return;
            }
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

/// The tombstone that a hint entry names. A tombstone that cannot be read counts as the oldest
/// kind.
fn tombstone_at(data: &File, offset: u64, value_at: usize, record_bytes: u32) -> Tombstone {
    let value_bytes = (record_bytes as usize).saturating_sub(value_at).min(Tombstone::BYTES_MAX);
    let mut value = vec![0; value_bytes];
    match Source::read_exact_at(data, &mut value, offset + value_at as u64) {
        Ok(()) => Tombstone::of(&value).unwrap_or(Tombstone::Older),
        Err(_) => Tombstone::Older,
    }
}

/// Fails if the process that a lock file names is running. A lock file has the id of the process
/// and the file that it writes to, and stays behind when a node is killed.
fn refuse_held(lock: &Path) -> Result<(), SourceError> {
    if !lock.is_file() {
        return Ok(());
    }
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
