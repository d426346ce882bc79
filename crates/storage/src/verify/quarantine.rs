//! Copies of damaged data, for a later attempt to recover something from it.
//!
//! `quarantine/v1-<partition>-<file>-<offset>-<length>` in the directory of the stores has the
//! original bytes. `<file>` is the path of the file with `_` in place of each `/`.
//!
//! `v1-<partition>-report-<n>.txt` lists the findings, one on each line: file, offset, length,
//! damage, effect and storage key, separated by tabs. Bytes of the key that are not printable are
//! escaped. The names begin with a version, which must be raised when the content of these files
//! changes.

use super::examination::PartitionExamination;
use super::zero_filling_file::ZeroFillingFile;
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{File, FileSystem, OpenMode};
use ombak_types::names::split_storage_key;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the directory.
pub(super) const QUARANTINE_DIR: &str = "quarantine";
const CHUNK_BYTES: usize = 256 << 10;

/// The directory for copies of damaged data.
pub(super) struct Quarantine<'a> {
    fs: &'a dyn FileSystem,
    root: &'a Path,
    dir: PathBuf,
    partition: u32,
}

impl<'a> Quarantine<'a> {
    /// Creates the directory durably.
    pub(super) fn open(fs: &'a dyn FileSystem, root: &'a Path, partition: u32) -> Result<Self, StorageError> {
        let dir = root.join(QUARANTINE_DIR);
        fs.create_dir_all(&dir).map_err(|source| io_error("create", &dir, source))?;
        fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        Ok(Self { fs, root, dir, partition })
    }

    /// Copies a part of a file of a store. The copy is durable after [`sync`](Self::sync).
    pub(super) fn keep(&self, path: &Path, offset: u64, length: u64) -> Result<(), StorageError> {
        let source = self.fs.open(path, OpenMode::Read).map_err(|source| io_error("open", path, source))?;
        self.keep_from(&ZeroFillingFile(source), path, offset, length)
    }

    /// Like [`keep`](Self::keep), with an open source, for a file that is not in the stores' file
    /// system.
    pub(super) fn keep_from(
        &self,
        source: &dyn File,
        path: &Path,
        offset: u64,
        length: u64,
    ) -> Result<(), StorageError> {
        let inside = path.strip_prefix(self.root).unwrap_or(path);
        let inside = inside.strip_prefix(self.partition.to_string()).unwrap_or(inside);
        let name = inside.to_string_lossy().replace('/', "_");
        let copy = self.dir.join(format!("v1-{}-{name}-{offset}-{length}", self.partition));
        let write = || {
            // An earlier repair may have left a partial copy.
            match self.fs.remove_file(&copy) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let out = self.fs.open(&copy, OpenMode::CreateNew)?;
            let mut chunk = vec![0; CHUNK_BYTES];
            let mut done = 0;
            while done < length {
                let wanted = (length - done).min(CHUNK_BYTES as u64) as usize;
                let read = source.read_at(&mut chunk[..wanted], offset + done, ReadMode::Blocking)?;
                if read == 0 {
                    break;
                }
                out.write_at(&chunk[..read], done)?;
                done += read as u64;
            }
            out.sync_data()
        };
        write().map_err(|source| io_error("write", &copy, source))
    }

    /// Writes the list of findings to the first report name that is free. A repair after an
    /// interrupted one finds less, so earlier reports are kept.
    pub(super) fn keep_report(&self, exam: &PartitionExamination) -> Result<(), StorageError> {
        let mut text = Vec::from(&b"file\toffset\tlength\tdamage\teffect\tbucket type\tbucket\tkey\n"[..]);
        exam.for_each_finding(&mut |finding| {
            let key = name(finding.key.as_deref().unwrap_or_default());
            let (file, damage, effect) = (finding.file.display(), finding.damage.name(), finding.effect.name());
            text.extend(format!("{file}\t{}\t{}\t{damage}\t{effect}\t{key}\n", finding.offset, finding.length).bytes());
        });
        let path = |number: u32| self.dir.join(format!("v1-{}-report-{number}.txt", self.partition));
        let is_there = |number: &u32| self.fs.file_identity(&path(*number)).is_ok();
        let path = path((1..u32::MAX).find(|number| !is_there(number)).unwrap_or(u32::MAX));
        let write = || {
            let out = self.fs.open(&path, OpenMode::CreateNew)?;
            out.write_at(&text, 0)?;
            out.sync_data()
        };
        write().map_err(|source| io_error("write", &path, source))
    }

    /// Makes the copies survive a loss of power.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.fs.sync_dir(&self.dir).map_err(|source| io_error("fsync", &self.dir, source))
    }
}

/// Bucket type, bucket and key, separated by tabs.
fn name(storage_key: &[u8]) -> String {
    // Bytes that are not a storage key are shown as a key.
    let (bucket_type, bucket, key) = split_storage_key(storage_key).unwrap_or((b"", b"", storage_key));
    format!("{}\t{}\t{}", bucket_type.escape_ascii(), bucket.escape_ascii(), key.escape_ascii())
}
