//! Taking a backup of a running node.

use super::destination::{Destination, saved};
use super::error::{BackupError, io_error, unusable};
use super::manifest::{Manifest, SavedFile, SavedStore};
use crate::buckets::BUCKETS_FILE;
use crate::kv::Kv;
use crate::node::IDENTITY_FILE;
use ombak_storage::fs::read_file;
use ombak_storage::{CutContent, CutFile, StoreCut};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// The registry of bucket properties is far smaller.
const BUCKETS_BYTES_MAX: u64 = 4 << 30;

/// What a backup is to be.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Where it goes: an absolute path, a directory that is empty or not there yet.
    pub dir: PathBuf,
    /// An earlier backup of this node. What is in that as it is now is not copied and not read again.
    pub since: Option<PathBuf>,
}

/// How far a backup has come, for those who watch.
#[derive(Debug, Default)]
pub struct BackupProgress {
    /// Partitions that are in.
    pub partitions: AtomicU64,
    /// Files that are in.
    pub files: AtomicU64,
    /// Bytes that were read.
    pub bytes_read: AtomicU64,
}

/// What a backup came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// Where it lies.
    pub dir: PathBuf,
    /// Stores in it: those that were ever written to.
    pub stores: u64,
    /// Files in it.
    pub files: u64,
    /// Their length in all, in bytes.
    pub bytes: u64,
    /// Files that lie under a second name in the directory of the node.
    pub linked_files: u64,
    /// Files that are copies.
    pub copied_files: u64,
    /// Their length in all, in bytes.
    pub copied_bytes: u64,
    /// Files that lie under a second name in the earlier backup.
    pub shared_files: u64,
}

/// Files of an earlier backup, to be found again.
struct Earlier {
    /// By store, and by place.
    files: BTreeMap<(u64, String), (PathBuf, SavedFile)>,
}

impl Earlier {
    fn find(&self, store_id: u64, place: &str) -> Option<&(PathBuf, SavedFile)> {
        self.files.get(&(store_id, place.to_owned()))
    }
}

struct Creation<'a> {
    destination: Destination<'a>,
    dir: &'a Path,
    earlier: Option<Earlier>,
    progress: &'a BackupProgress,
    report: BackupReport,
}

impl Backup {
    /// Takes the backup. Blocks, for as long as it takes to read what is new: not for network threads.
    pub fn run(&self, kv: &Kv, progress: &BackupProgress) -> Result<BackupReport, BackupError> {
        let engine = &kv.engine;
        let Some(_turn) = engine.backup_turn.try_lock() else {
            return Err(BackupError::Refused("another backup is being taken: wait for its end".into()));
        };
        self.check_dir(&engine.config.data_dir)?;
        let observe = |bytes| {
            progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
            if engine.is_open() { Ok(()) } else { Err(BackupError::Stopping) }
        };
        let fs = &engine.config.fs;
        let earlier = self.since.as_deref().map(|dir| self.read_earlier(kv, dir)).transpose()?;
        let destination = Destination::create(fs.clone(), &self.dir, &observe)?;
        let report = BackupReport { dir: self.dir.clone(), ..BackupReport::default() };
        let mut creation = Creation { destination, dir: &self.dir, earlier, progress, report };
        let began_secs = engine.now().secs();
        let mut stores = Vec::new();
        for partition in engine.partitions().iter() {
            observe(0)?;
            let failed = |source| BackupError::Store { partition: partition.number(), source };
            let Some(mut backup) = partition.store().begin_backup().map_err(failed)? else {
                let what = "storage_backend = memory keeps nothing on disk: there is nothing to back up";
                return Err(BackupError::Refused(what.into()));
            };
            backup.cut();
            for cut in backup.finish().map_err(failed)? {
                // Nothing was ever written to it.
                if cut.identity.boot > 0 {
                    stores.push(creation.save_store(partition.number(), &cut)?);
                }
            }
            progress.partitions.fetch_add(1, Ordering::Relaxed);
        }
        let node = creation.save_node(kv)?;
        creation.destination.sync()?;
        let manifest = Manifest {
            began_secs,
            node_name: engine.config.node_name.clone(),
            node_id: engine.identity.node_id,
            boot: engine.identity.boot,
            ring_size: engine.identity.ring_size,
            node,
            stores,
        };
        manifest.write(&**fs, &self.dir)?;
        creation.report.stores = manifest.stores.len() as u64;
        Ok(creation.report)
    }

    fn check_dir(&self, data_dir: &Path) -> Result<(), BackupError> {
        if !self.dir.is_absolute() {
            return Err(unusable(&self.dir, "is no absolute path"));
        }
        let inside = std::path::absolute(data_dir).is_ok_and(|data_dir| self.dir.starts_with(data_dir));
        if inside {
            return Err(unusable(&self.dir, "lies in the node's own data directory: name one elsewhere"));
        }
        Ok(())
    }

    fn read_earlier(&self, kv: &Kv, dir: &Path) -> Result<Earlier, BackupError> {
        let manifest = Manifest::read(&*kv.engine.config.fs, dir)?;
        if manifest.node_id != kv.engine.identity.node_id {
            return Err(unusable(dir, format!("is a backup of another node, {}", manifest.node_name)));
        }
        let mut files = BTreeMap::new();
        for store in manifest.stores {
            let base = dir.join("stores").join(store.dir_name());
            for file in store.files {
                let path = super::destination::place_in(&base, &file.place)?;
                files.insert((store.store_id, file.place.clone()), (path, file));
            }
        }
        Ok(Earlier { files })
    }
}

impl Creation<'_> {
    fn save_store(&mut self, partition: u32, cut: &StoreCut) -> Result<SavedStore, BackupError> {
        if self.dir.starts_with(&cut.root) {
            return Err(unusable(self.dir, "lies in a directory of the node's stores: name one elsewhere"));
        }
        let mut store = SavedStore {
            partition,
            name: cut.name.clone(),
            kind: cut.kind.to_owned(),
            store_id: cut.identity.store_id,
            boot: cut.identity.boot,
            seq: cut.seq,
            files: Vec::with_capacity(cut.files.len()),
        };
        let base = self.dir.join("stores").join(store.dir_name());
        for file in &cut.files {
            let saved = self.save_file(cut, file, &base.join(&file.place))?;
            self.count(&saved);
            store.files.push(saved);
        }
        Ok(store)
    }

    fn save_file(&mut self, cut: &StoreCut, file: &CutFile, to: &Path) -> Result<SavedFile, BackupError> {
        match &file.content {
            CutContent::Bytes(bytes) => {
                self.destination.write(to, bytes)?;
                self.count_copy(bytes.len() as u64);
                saved(&file.place, (bytes.len() as u64, xxh3_64(bytes)), None)
            }
            CutContent::Prefix { path, fs, length } => {
                let read = self.destination.copy((&**fs, path), Some(*length), to)?;
                if read.0 != *length {
                    return Err(unusable(path, format!("has {} bytes, and {length} were written", read.0)));
                }
                self.count_copy(*length);
                saved(&file.place, read, None)
            }
            CutContent::Final { path, fs, salt } => {
                let known = self.known(cut.identity.store_id, file, *salt);
                if self.destination.link(path, to)? {
                    self.report.linked_files += 1;
                    let read = match known {
                        Some((_, known)) => (known.length, known.checksum),
                        None => self.destination.read((&**fs, path))?,
                    };
                    return saved(&file.place, read, *salt);
                }
                if let Some(same) = self.share(cut.identity.store_id, file, *salt, to)? {
                    return Ok(same);
                }
                let read = self.destination.copy((&**fs, path), None, to)?;
                self.count_copy(read.0);
                saved(&file.place, read, *salt)
            }
        }
    }

    /// The file of the earlier backup that is this one, as its salt says.
    fn known(&self, store_id: u64, file: &CutFile, salt: Option<u64>) -> Option<(PathBuf, SavedFile)> {
        let known = self.earlier.as_ref()?.find(store_id, file.place.to_str()?)?;
        (salt.is_some() && known.1.salt == salt).then(|| known.clone())
    }

    /// Takes a file from the earlier backup instead of copying it, if that has it.
    fn share(
        &mut self,
        store_id: u64,
        file: &CutFile,
        salt: Option<u64>,
        to: &Path,
    ) -> Result<Option<SavedFile>, BackupError> {
        let (Some(earlier), Some(place)) = (&self.earlier, file.place.to_str()) else { return Ok(None) };
        let Some((path, known)) = earlier.find(store_id, place).cloned() else { return Ok(None) };
        let is_same = match (&file.content, salt) {
            (_, Some(_)) => known.salt == salt,
            // Without a number of its own, its content has to be looked at.
            (CutContent::Final { path, fs, .. }, None) => {
                self.destination.read((&**fs, path))? == (known.length, known.checksum)
            }
            _ => false,
        };
        if !is_same || !self.destination.link(&path, to)? {
            return Ok(None);
        }
        self.report.shared_files += 1;
        Ok(Some(known))
    }

    /// Files of the node itself. After the stores: a bucket type that a key needs is in.
    fn save_node(&mut self, kv: &Kv) -> Result<Vec<SavedFile>, BackupError> {
        let config = &kv.engine.config;
        let mut node = Vec::new();
        for name in [IDENTITY_FILE, BUCKETS_FILE] {
            let path = config.data_dir.join(name);
            let bytes = match read_file(&*config.fs, &path, BUCKETS_BYTES_MAX) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound && name == BUCKETS_FILE => continue,
                Err(source) => return Err(io_error("read", &path)(source)),
            };
            self.destination.write(&self.dir.join("node").join(name), &bytes)?;
            self.count_copy(bytes.len() as u64);
            let file = saved(Path::new(name), (bytes.len() as u64, xxh3_64(&bytes)), None)?;
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
