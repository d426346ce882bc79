//! Restores a backup into the empty directories of a node that is not running.

use crate::backup_files::{BackupFiles, path_inside};
use crate::error::{BackupError, io_error, unusable};
use crate::manifest::{Manifest, NODE_PART, SavedFile, SavedStore};
use ombak_node_files::INCOMPLETE_RESTORE;
use ombak_storage::begin_restored;
use ombak_storage::fs::{FileSystem, replace_file};
use serde::Serialize;
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Called with the number of bytes of a backup that have been read, and the total number.
pub type ProgressCallback<'a> = &'a dyn Fn(u64, u64);

/// The destination of a restore.
pub struct RestoreTarget {
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// Data directory of the node; the caller holds its lock.
    pub data_dir: PathBuf,
    /// Names of files that may already exist there: the lock, for instance.
    pub allowed_names: Vec<String>,
    /// Number of partitions of the ring in the node's configuration.
    pub ring_size: u32,
    /// The node's backends that have files.
    pub stores: Vec<TargetStore>,
}

/// A backend that has files.
#[derive(Clone, Debug)]
pub struct TargetStore {
    /// The name of the backend, when the node has several.
    pub name: Option<String>,
    /// The backend that reads the files: `bitcask`, `leveled`, `leveldb`.
    pub kind: String,
    /// The directory of the backend.
    pub root: PathBuf,
}

impl TargetStore {
    fn describe(&self) -> String {
        self.name.as_ref().map_or_else(|| self.kind.clone(), |name| format!("{name} ({})", self.kind))
    }
}

/// The result of a restore or of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The name of the node that was backed up.
    pub node_name: String,
    /// The time when the backup began, in Unix seconds.
    pub began_secs: u64,
    /// Number of stores.
    pub stores: u64,
    /// Number of files.
    pub files: u64,
    /// Their total length in bytes.
    pub bytes: u64,
}

impl RestoreReport {
    fn begin(manifest: &Manifest) -> Self {
        Self {
            node_name: manifest.node_name.clone(),
            began_secs: manifest.began_secs,
            stores: manifest.stores.len() as u64,
            files: 0,
            bytes: 0,
        }
    }

    fn count(&mut self, file: &SavedFile) {
        self.files += 1;
        self.bytes += file.length;
    }
}

/// Copies a backup into the directories of a node and checks every byte. A refused restore changes
/// nothing. A restore that fails later leaves the marker [`INCOMPLETE_RESTORE`] in the data
/// directory until the directory is emptied.
pub fn restore(
    backup: &Path,
    target: &RestoreTarget,
    on_progress: ProgressCallback<'_>,
) -> Result<RestoreReport, BackupError> {
    let fs = &*target.fs;
    let manifest = Manifest::read(fs, backup)?;
    let roots = check(backup, &manifest, target)?;
    let marker = target.data_dir.join(INCOMPLETE_RESTORE);
    let counted = counting(&manifest, on_progress);
    let mut destination = BackupFiles::open(target.fs.clone(), &counted);
    destination.create_dir(&target.data_dir)?;
    destination.sync()?;
    replace_file(fs, &marker, b"'ombak restore' has not finished: empty this directory and run it again\n")
        .map_err(io_error("write", &marker))?;
    let mut report = RestoreReport::begin(&manifest);
    for (store, root) in manifest.stores.iter().zip(&roots) {
        copy_all(fs, (backup, &store.part()), root, &store.files, &mut destination, &mut report)?;
        let dir = root.join(store.partition.to_string());
        destination.create_dir(&dir)?;
        destination.sync()?;
        begin_restored(fs, &dir, store.seq)
            .map_err(|source| BackupError::Store { partition: store.partition, source })?;
    }
    copy_all(fs, (backup, NODE_PART), &target.data_dir, &manifest.node, &mut destination, &mut report)?;
    destination.sync()?;
    fs.remove_file(&marker).map_err(io_error("remove", &marker))?;
    fs.sync_dir(&target.data_dir).map_err(io_error("sync", &target.data_dir))?;
    Ok(report)
}

/// Makes the checks that [`restore`] makes before it reads the backup's files. It is for callers
/// that have not created the data directory yet.
pub fn check_restore(backup: &Path, target: &RestoreTarget) -> Result<(), BackupError> {
    check(backup, &Manifest::read(&*target.fs, backup)?, target).map(drop)
}

/// Reads a whole backup and compares it with its manifest, as [`restore`] does, but writes nothing.
pub fn verify(
    fs: Arc<dyn FileSystem>,
    backup: &Path,
    on_progress: ProgressCallback<'_>,
) -> Result<RestoreReport, BackupError> {
    let manifest = Manifest::read(&*fs, backup)?;
    let counted = counting(&manifest, on_progress);
    let reader = BackupFiles::open(fs, &counted);
    let mut report = RestoreReport::begin(&manifest);
    for (part, file) in manifest.files() {
        let path = file.path(backup, &part)?;
        check_length(reader.fs(), &path, file.length)?;
        check_content(&path, reader.read((reader.fs(), &path))?, file)?;
        report.count(file);
    }
    Ok(report)
}

/// Sums up the bytes that are read and reports them to `on_progress`.
fn counting(manifest: &Manifest, on_progress: ProgressCallback<'_>) -> impl Fn(u64) -> Result<(), BackupError> {
    let bytes_total = manifest.files().map(|(_, file)| file.length).fold(0, u64::saturating_add);
    let bytes_done = Cell::new(0_u64);
    move |bytes| {
        bytes_done.set(bytes_done.get().saturating_add(bytes));
        on_progress(bytes_done.get(), bytes_total);
        Ok(())
    }
}

/// Makes all checks that are possible before the first byte is written. Returns the directories of
/// the stores.
fn check(backup: &Path, manifest: &Manifest, target: &RestoreTarget) -> Result<Vec<PathBuf>, BackupError> {
    if manifest.ring_size != target.ring_size {
        return Err(BackupError::Refused(format!(
            "the backup is of a node with ring_size {size}, and the configuration says {}: set ring_size = {size}",
            target.ring_size,
            size = manifest.ring_size
        )));
    }
    let roots: Vec<PathBuf> =
        manifest.stores.iter().map(|store| root_of(store, target)).collect::<Result<_, BackupError>>()?;
    check_empty(&*target.fs, &target.data_dir, &target.allowed_names, &target.stores)?;
    for store in &target.stores {
        check_empty(&*target.fs, &store.root, &[], &[])?;
    }
    for (part, file) in manifest.files() {
        check_length(&*target.fs, &file.path(backup, &part)?, file.length)?;
    }
    Ok(roots)
}

fn root_of(store: &SavedStore, target: &RestoreTarget) -> Result<PathBuf, BackupError> {
    let fits = |other: &&TargetStore| other.name == store.name && other.kind == store.kind;
    if let Some(found) = target.stores.iter().find(fits) {
        return Ok(found.root.clone());
    }
    let saved = store.name.as_ref().map_or_else(|| store.kind.clone(), |name| format!("{name} ({})", store.kind));
    let configured: Vec<String> = target.stores.iter().map(TargetStore::describe).collect();
    let configured = if configured.is_empty() { "none".into() } else { configured.join(", ") };
    Err(BackupError::Refused(format!(
        "the backup has data of the backend {saved}, and the configured backends with files are: {configured}; configure \
         storage_backend as it was when the backup was taken"
    )))
}

/// Checks that a directory to be filled is empty. `allowed_names` may be there, and so may
/// directories that lead to one of the stores in `inside`.
fn check_empty(
    fs: &dyn FileSystem,
    dir: &Path,
    allowed_names: &[String],
    inside: &[TargetStore],
) -> Result<(), BackupError> {
    let names = match fs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io_error("read", dir)(source)),
    };
    let leads_to_store = |name: &String| inside.iter().any(|store| store.root.starts_with(dir.join(name)));
    if names.iter().any(|name| name == INCOMPLETE_RESTORE) {
        return Err(unusable(dir, "an earlier restore into it was not finished: empty it and run this again"));
    }
    match names.iter().filter(|name| !allowed_names.contains(name) && !leads_to_store(name)).min() {
        None => Ok(()),
        Some(name) => Err(unusable(
            dir,
            format!("is not empty: there is {name}; a backup is only restored into empty directories"),
        )),
    }
}

fn check_length(fs: &dyn FileSystem, path: &Path, length: u64) -> Result<(), BackupError> {
    let file = match fs.open(path, ombak_storage::fs::OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(unusable(path, "is missing from the backup, which cannot be used without"));
        }
        Err(source) => return Err(io_error("open", path)(source)),
    };
    let found = file.length().map_err(io_error("read", path))?;
    if found != length {
        return Err(unusable(path, format!("has {found} bytes instead of {length}: the backup is damaged")));
    }
    Ok(())
}

fn copy_all(
    fs: &dyn FileSystem,
    (backup, part): (&Path, &str),
    to: &Path,
    files: &[SavedFile],
    destination: &mut BackupFiles<'_>,
    report: &mut RestoreReport,
) -> Result<(), BackupError> {
    for file in files {
        let (source, path) = (file.path(backup, part)?, path_inside(to, &file.relative_path)?);
        check_content(&source, destination.copy((fs, &source), None, &path)?, file)?;
        report.count(file);
    }
    Ok(())
}

fn check_content(path: &Path, read: (u64, u64), file: &SavedFile) -> Result<(), BackupError> {
    if read != (file.length, file.checksum) {
        return Err(unusable(path, "does not match its checksum: the backup is damaged"));
    }
    Ok(())
}
