//! Takes a backup of a running node.

use crate::backup_directory::BackupDirectory;
use crate::backup_files::{BackupFiles, Source};
use crate::earlier_backup::EarlierBackup;
use crate::error::{BackupError, io_error, unusable};
use crate::manifest::{Manifest, NODE_PART, SavedFile, SavedStore};
use ombak_kv::Kv;
use ombak_kv::buckets::BUCKETS_FILE;
use ombak_node_files::{IDENTITY_FILE, Identity, OwnMetadata, saved_json};
use ombak_storage::fs::read_file;
use ombak_storage::{CutContent, CutFile, StoreCut};
use serde::Serialize;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::warn;
use xxhash_rust::xxh3::xxh3_64;

/// An upper bound: the registry of bucket properties is far smaller.
const BUCKETS_BYTES_MAX: u64 = 4 << 30;

const NO_FILES: &str = "storage_backend = memory keeps nothing on disk: there is nothing to back up";
const TWO_EARLIER: &str =
    "has an earlier backup, which is what this one goes on from: leave --since out, or name a new directory";

/// The settings of a backup.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The directory of the backup, an absolute path. It may be missing, empty, or hold an earlier
    /// backup of this node. The new backup replaces the earlier one; files that have not changed
    /// stay in place.
    pub dir: PathBuf,
    /// A backup of this node in another directory. It is for a new `dir`: files that have not
    /// changed are not copied from the node again, and both backups share them.
    pub since: Option<PathBuf>,
}

/// The progress of a backup, for observers.
#[derive(Debug, Default)]
pub struct BackupProgress {
    /// Partitions that were saved.
    pub partitions: AtomicU64,
    /// Files that were saved.
    pub files: AtomicU64,
    /// Bytes that were read.
    pub bytes_read: AtomicU64,
}

/// The result of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// The directory of the backup.
    pub dir: PathBuf,
    /// Stores in the backup: all that were ever written to.
    pub stores: u64,
    /// Files in the backup.
    pub files: u64,
    /// Their total length in bytes.
    pub bytes: u64,
    /// Files that an earlier backup had already put into the directory.
    pub kept_files: u64,
    /// Files that are hard links to files of the node.
    pub linked_files: u64,
    /// Files that are hard links to files of another backup.
    pub shared_files: u64,
    /// Files that this backup copied.
    pub copied_files: u64,
    /// Their total length in bytes.
    pub copied_bytes: u64,
    /// Why files of the node were copied and not hard-linked.
    pub not_linked: Option<String>,
    /// Names of the backends that keep nothing on disk: the backup lacks their data.
    pub left_out: Vec<String>,
}

struct BackupRun<'a> {
    destination: BackupFiles<'a>,
    directory: &'a BackupDirectory<'a>,
    earlier: EarlierBackup,
    progress: &'a BackupProgress,
    report: BackupReport,
}

impl Backup {
    /// Takes the backup. Blocks while it reads all new data: not for network threads.
    pub fn run(&self, kv: &Kv, progress: &BackupProgress) -> Result<BackupReport, BackupError> {
        let Some(_turn) = kv.backup_turn().try_lock() else {
            return Err(BackupError::Refused("another backup is being taken: wait for its end".into()));
        };
        self.check_dir(kv.data_dir())?;
        let left_out = self.check_stores(kv)?;
        let observe = |bytes| {
            progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
            if kv.is_open() { Ok(()) } else { Err(BackupError::Stopping) }
        };
        let fs = &**kv.file_system();
        let since = self.since.as_deref().map(|dir| read_since(dir, kv)).transpose()?;
        let destination = BackupFiles::open(kv.file_system().clone(), &observe);
        let missing = destination.missing_dirs(&self.dir);
        let taken = self.take(kv, destination, since, left_out, progress);
        if taken.is_err() {
            // The backup failed, so the directories that it created are removed if they are empty.
            missing.iter().for_each(|dir| drop(fs.remove_dir(dir)));
        }
        taken
    }

    /// Takes the backup. On failure, removes the files that it wrote.
    fn take(
        &self,
        kv: &Kv,
        mut destination: BackupFiles<'_>,
        since: Option<EarlierBackup>,
        left_out: Vec<String>,
        progress: &BackupProgress,
    ) -> Result<BackupReport, BackupError> {
        destination.create_dir(&self.dir)?;
        let directory = BackupDirectory::open(&**kv.file_system(), &self.dir, kv)?;
        let taken = self.take_into(kv, &directory, destination, since, left_out, progress);
        if taken.is_err()
            && let Err(error) = directory.discard_new()
        {
            warn!(%error, "files are left of a backup that failed: the next one removes them");
        }
        taken
    }

    fn take_into(
        &self,
        kv: &Kv,
        directory: &BackupDirectory<'_>,
        destination: BackupFiles<'_>,
        since: Option<EarlierBackup>,
        left_out: Vec<String>,
        progress: &BackupProgress,
    ) -> Result<BackupReport, BackupError> {
        let (identity, fs) = (kv.identity(), &**kv.file_system());
        let earlier = match (&directory.earlier, since) {
            (Some(_), Some(_)) => return Err(unusable(&self.dir, TWO_EARLIER)),
            (Some(manifest), None) => EarlierBackup::new(&self.dir, manifest, true)?,
            (None, since) => since.unwrap_or_default(),
        };
        let report = BackupReport { dir: self.dir.clone(), left_out, ..BackupReport::default() };
        let mut creation = BackupRun { destination, directory, earlier, progress, report };
        let began_secs = kv.time().secs();
        let stores = creation.save_stores(kv)?;
        // The node's files are saved after the stores, so the backup has the bucket type of every
        // key in it.
        let node = creation.save_node(kv)?;
        creation.destination.sync()?;
        let manifest = Manifest {
            began_secs,
            node_name: kv.node_name().to_owned(),
            node_id: identity.node_id,
            boot: identity.boot,
            ring_size: identity.ring_size,
            node,
            stores,
        };
        manifest.write(fs, &self.dir)?;
        if let Err(error) = directory.remove_others(Some(&manifest)) {
            warn!(%error, "the backup is whole, and files of earlier ones are left: the next one removes them");
        }
        Ok(creation.report)
    }

    fn check_dir(&self, data_dir: &Path) -> Result<(), BackupError> {
        if !self.dir.is_absolute() || self.dir.components().any(|part| part == Component::ParentDir) {
            return Err(unusable(&self.dir, "is no path from the root without '..', which is what the node needs"));
        }
        if self.is_in(data_dir) {
            return Err(unusable(&self.dir, "lies in the node's own data directory: name one elsewhere"));
        }
        Ok(())
    }

    fn is_in(&self, dir: &Path) -> bool {
        plain_path(dir).is_ok_and(|dir| self.dir.starts_with(dir))
    }

    /// Checks before anything is written that there is data to back up, and that the backup's
    /// directory lies outside of the stores. Returns the names of the backends without files. All
    /// partitions have the same backends, so one is checked.
    fn check_stores(&self, kv: &Kv) -> Result<Vec<String>, BackupError> {
        let Some((partition, store)) = kv.stores().next() else { return Ok(Vec::new()) };
        let failed = |source| BackupError::Store { partition, source };
        let Some(backup) = store.begin_backup().map_err(failed)? else {
            return Err(BackupError::Refused(NO_FILES.into()));
        };
        if let Some(root) = backup.roots().into_iter().find(|root| self.is_in(root)) {
            let what = format!("lies in {}, where the node has its objects: name one elsewhere", root.display());
            return Err(unusable(&self.dir, what));
        }
        Ok(backup.left_out().into_iter().map(str::to_owned).collect())
    }
}

/// Makes a path absolute for the node, without `.` and `..`, and without following links. Fails
/// when the working directory no longer exists.
fn plain_path(path: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// Reads a backup of this node in another directory.
fn read_since(dir: &Path, kv: &Kv) -> Result<EarlierBackup, BackupError> {
    let manifest = Manifest::read(&**kv.file_system(), dir)?;
    if manifest.node_id != kv.identity().node_id {
        return Err(unusable(dir, format!("is a backup of another node, {}", manifest.node_name)));
    }
    EarlierBackup::new(dir, &manifest, false)
}

/// The node's identity. A cluster of this node alone begins anew after a restore, and takes over
/// the bucket types of the backup.
fn identity_text(kv: &Kv, path: &Path) -> io::Result<Vec<u8>> {
    match kv.directory().identity() {
        Some(identity) if identity.metadata == OwnMetadata::Alone => {
            Ok(saved_json::to_text(&Identity { metadata: OwnMetadata::None, ..identity })?)
        }
        _ => read_file(&**kv.file_system(), path, BUCKETS_BYTES_MAX),
    }
}

impl BackupRun<'_> {
    /// Saves one partition after another. Each partition is cut when its turn comes.
    fn save_stores(&mut self, kv: &Kv) -> Result<Vec<SavedStore>, BackupError> {
        let mut stores = Vec::new();
        for (partition, store) in kv.stores() {
            self.destination.observe(0)?;
            let failed = |source| BackupError::Store { partition, source };
            let Some(mut backup) = store.begin_backup().map_err(failed)? else {
                return Err(BackupError::Refused(NO_FILES.into()));
            };
            backup.cut();
            for cut in backup.finish().map_err(failed)? {
                // Stores with boot number 0 were never written to.
                if cut.identity.boot > 0 {
                    stores.push(self.save_store(partition, &cut)?);
                }
            }
            self.progress.partitions.fetch_add(1, Ordering::Relaxed);
        }
        // A node that began to stop meanwhile may have had no store left to name.
        self.destination.observe(0)?;
        self.report.stores = stores.len() as u64;
        Ok(stores)
    }

    fn save_store(&mut self, partition: u32, cut: &StoreCut) -> Result<SavedStore, BackupError> {
        let mut store = SavedStore {
            partition,
            name: cut.name.clone(),
            kind: cut.kind.to_owned(),
            store_id: cut.identity.store_id,
            boot: cut.identity.boot,
            seq: cut.seq,
            files: Vec::with_capacity(cut.files.len()),
        };
        let part = store.part();
        for file in &cut.files {
            let saved = self.save_file(file, &part)?;
            self.count(&saved);
            store.files.push(saved);
        }
        Ok(store)
    }

    fn save_file(&mut self, file: &CutFile, part: &str) -> Result<SavedFile, BackupError> {
        let to = self.directory.new_dir().join(part).join(&file.place);
        match &file.content {
            CutContent::Bytes(bytes) => self.save_bytes(&file.place, bytes, &to),
            CutContent::Prefix { path, fs, length } => {
                let read = self.destination.copy((&**fs, path), Some(*length), &to)?;
                if read.0 != *length {
                    return Err(unusable(path, format!("has {} bytes, and {length} were written", read.0)));
                }
                self.count_copy(*length);
                self.saved(&file.place, read, None)
            }
            CutContent::Final { path, fs, salt } => {
                let from: Source<'_> = (&**fs, path);
                let known = self.earlier.find(part, &file.place, *salt, from, &self.destination)?;
                self.save_final(&file.place, from, *salt, known, &to)
            }
        }
    }

    /// Saves a file that never changes again, in the cheapest way: it is kept, hard-linked or
    /// copied.
    fn save_final(
        &mut self,
        place: &Path,
        from: Source<'_>,
        salt: Option<u64>,
        known: Option<(PathBuf, SavedFile)>,
        to: &Path,
    ) -> Result<SavedFile, BackupError> {
        if let Some((_, known)) = &known
            && self.earlier.is_here
        {
            self.report.kept_files += 1;
            return Ok(known.clone());
        }
        match self.destination.link(from.1, to)? {
            Ok(()) => {
                self.report.linked_files += 1;
                let read = match known {
                    Some((_, known)) => (known.length, known.checksum),
                    None => self.destination.read(from)?,
                };
                return self.saved(place, read, salt);
            }
            Err(why) => drop(self.report.not_linked.get_or_insert_with(|| why.to_string())),
        }
        if let Some((path, known)) = known
            && self.destination.link(&path, to)?.is_ok()
        {
            self.report.shared_files += 1;
            return Ok(SavedFile { generation: self.directory.generation, ..known });
        }
        let read = self.destination.copy(from, None, to)?;
        self.count_copy(read.0);
        self.saved(place, read, salt)
    }

    fn save_bytes(&mut self, place: &Path, bytes: &[u8], to: &Path) -> Result<SavedFile, BackupError> {
        self.destination.write(to, bytes)?;
        self.count_copy(bytes.len() as u64);
        self.saved(place, (bytes.len() as u64, xxh3_64(bytes)), None)
    }

    /// The manifest's entry for a file that was written.
    fn saved(&self, place: &Path, (length, checksum): (u64, u64), salt: Option<u64>) -> Result<SavedFile, BackupError> {
        let relative_path = place.to_str().ok_or_else(|| unusable(place, "its name is no text"))?.to_owned();
        Ok(SavedFile { generation: self.directory.generation, relative_path, length, checksum, salt })
    }

    /// Saves the files of the node itself.
    fn save_node(&mut self, kv: &Kv) -> Result<Vec<SavedFile>, BackupError> {
        let mut node = Vec::new();
        for name in [IDENTITY_FILE, BUCKETS_FILE] {
            let path = kv.data_dir().join(name);
            // A member of a cluster has its bucket types elsewhere than in that file.
            let read = match name {
                BUCKETS_FILE => kv.buckets().to_file_text(),
                _ => identity_text(kv, &path).map(Some),
            };
            let bytes = match read {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(source) => return Err(io_error("read", &path)(source)),
            };
            let file =
                self.save_bytes(Path::new(name), &bytes, &self.directory.new_dir().join(NODE_PART).join(name))?;
            self.count(&file);
            node.push(file);
        }
        Ok(node)
    }

    fn count(&mut self, file: &SavedFile) {
        self.report.files += 1;
        self.report.bytes += file.length;
        self.progress.files.fetch_add(1, Ordering::Relaxed);
    }

    fn count_copy(&mut self, bytes: u64) {
        self.report.copied_files += 1;
        self.report.copied_bytes += bytes;
    }
}
