//! Runs a conversion: from the options of the command line to the new files and the report.

use super::copy::copy;
use super::place;
use super::report::Report;
use crate::backends::{Inventories, open_one, store_root_config, stores_file};
use crate::config::{BackendSettings, Effective, Settings};
use crate::node::lock::DataDirLock;
use crate::node::{join, open_files};
use crate::offline::{interrupt_flag, progress_bar};
use indicatif::ProgressBar;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::verify::StoreRoot;
use ombak_storage::{InventoryConfig, StorageError, SyncStrategy, begin_restored};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file in a new directory that is complete. It holds the path of the old directory, and exists
/// until the node has recorded that it no longer needs the old directory.
const MARK: &str = "converted-from";

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The backend that has the data.
    pub from: String,
    /// The backend to copy to.
    pub to: String,
}

/// Converts the stopped node of this configuration. Ctrl-C ends the conversion and leaves the node
/// as it was. The error is one line for the operator.
pub fn run(options: &Options, effective: &Effective) -> Result<Report, String> {
    let settings = Settings::new(effective).map_err(|problems| join(&problems))?;
    let named = |name: &str| BackendSettings::named(effective, name).map_err(|problem| problem.to_string());
    let conversion = Conversion::new(options, named(&options.from)?, named(&options.to)?)?;
    let data_dir = &settings.data_dir;
    if !data_dir.is_dir() {
        return Err(format!("there is no node in {}; name its data directory with --data", data_dir.display()));
    }
    let _lock = DataDirLock::take(data_dir).map_err(|e| e.to_string())?;
    open_files::raise_limit();
    let inventories = Inventories::new(data_dir, false);
    let mut report = conversion.report();
    if !conversion.is_whole()? {
        conversion.clear()?;
        let copied = conversion.copy_all(&inventories, &mut report);
        if copied != Ok(true) {
            conversion.clear()?;
            return copied.map(|_| report);
        }
        // New stores take this directory, so the inventory of stores that may have been there
        // before is not needed any more.
        inventories.forget(&conversion.to.disk().map_or(PathBuf::new(), |disk| disk.data_root.clone()))?;
        conversion.put_in_place().or_else(|e| conversion.clear().and(Err(e)))?;
    }
    stores_file::record_conversion(data_dir, &conversion.from, &conversion.to)?;
    let mark = conversion.to_root.join(MARK);
    fs::remove_file(&mark).map_err(|e| format!("cannot remove {}: {e}", mark.display()))?;
    report.complete = true;
    Ok(report)
}

struct Conversion {
    from: BackendSettings,
    to: BackendSettings,
    from_root: PathBuf,
    to_root: PathBuf,
    /// The directory of the new files until they are complete.
    staging: PathBuf,
    names: Options,
}

impl Conversion {
    fn new(options: &Options, from: BackendSettings, to: BackendSettings) -> Result<Self, String> {
        let root = |name: &str, settings: &BackendSettings| match settings.disk() {
            Some(disk) => place::resolved(&disk.data_root).map_err(|e| format!("{}: {e}", disk.data_root.display())),
            None => Err(format!("{name} keeps nothing on disk")),
        };
        let (from_root, to_root) = (root(&options.from, &from)?, root(&options.to, &to)?);
        if from_root.starts_with(&to_root) || to_root.starts_with(&from_root) {
            return Err(format!("{} and {} share the directory {}", options.from, options.to, from_root.display()));
        }
        let mut staging = to_root.clone().into_os_string();
        staging.push(".converting");
        Ok(Self { from, to, from_root, to_root, staging: staging.into(), names: options.clone() })
    }

    fn report(&self) -> Report {
        let (from, to) = (self.from_root.clone(), self.to_root.clone());
        let Options { from: replaced, to: backend } = self.names.clone();
        Report { from, to, backend, replaced, ..Report::default() }
    }

    /// Whether an earlier conversion put all new files in place but did not record it. Data of
    /// another backend in the new directory is an error.
    fn is_whole(&self) -> Result<bool, String> {
        let mark = self.to_root.join(MARK);
        match fs::read(&mark) {
            Ok(from) if from == self.from_root.as_os_str().as_encoded_bytes() => return Ok(true),
            Ok(_) => return Err(format!("{}: this directory was converted from another one", mark.display())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(format!("cannot read {}: {e}", mark.display())),
        }
        place::check(&self.to_root).map(|()| false)
    }

    /// Removes what an interrupted conversion has left.
    fn clear(&self) -> Result<(), String> {
        match fs::remove_dir_all(&self.staging) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {e}", self.staging.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes everything to the staging directory, syncs it and reads it back. Returns false if it
    /// was interrupted.
    fn copy_all(&self, inventories: &Inventories, report: &mut Report) -> Result<bool, String> {
        let (partitions, bytes) = self.look()?;
        fs::create_dir_all(&self.staging).map_err(|e| format!("cannot create {}: {e}", self.staging.display()))?;
        self.check_space(bytes)?;
        let interrupted = interrupt_flag()?;
        let bar = progress_bar(bytes);
        let to = self.staged();
        let kept = self.from.disk().map(|disk| inventories.of(&disk.data_root)).unwrap_or_default();
        let copied = self.copy_partitions((&to, kept), &partitions, report, &bar, &interrupted);
        let is_whole =
            copied.and_then(|all| Ok(all && self.read_back(&to, &partitions, report.keys, &bar, &interrupted)?));
        bar.finish_and_clear();
        is_whole
    }

    /// Copies the partitions. Returns false if it was interrupted. `kept` says where the node keeps
    /// the inventories of the stores that are read. The new stores have only the inventory in their
    /// own directory until a node starts with them.
    fn copy_partitions(
        &self,
        (to, kept): (&BackendSettings, InventoryConfig),
        partitions: &[u32],
        report: &mut Report,
        bar: &ProgressBar,
        interrupted: &AtomicBool,
    ) -> Result<bool, String> {
        let open = |backend, inventory| open_one(backend, inventory).map_err(|e| e.to_string());
        let (from, to) = (open(&self.from, kept)?, open(to, InventoryConfig::default())?);
        for partition in partitions {
            let mut observe = |copied: u64| {
                bar.inc(copied);
                bar.set_message(format!("partition {partition}"));
                !interrupted.load(Ordering::Relaxed)
            };
            let failed = |e: StorageError| {
                let is_full = matches!(e, StorageError::DiskFull { .. });
                let advice = if is_full { "" } else { "; 'ombak admin backend verify' reports all damage" };
                format!("partition {partition}: {e}; nothing is changed{advice}")
            };
            let source = from.open(*partition).map_err(failed)?;
            self.begin_store(*partition, &*source)?;
            let target = to.open(*partition).map_err(failed)?;
            let copied = copy(&*source, &*target, &mut observe).map_err(failed)?;
            target.close().map_err(failed)?;
            source.close().map_err(failed)?;
            let Some(copied) = copied else { return Ok(false) };
            report.partitions += 1;
            report.keys += copied.keys;
            report.bytes += copied.bytes;
        }
        Ok(true)
    }

    /// The partitions that have files, and their size in bytes.
    fn look(&self) -> Result<(Vec<u32>, u64), String> {
        let nothing = || format!("there are no files in {}", self.from_root.display());
        let root = open_root(&self.from)?.ok_or_else(nothing)?;
        let partitions = root.partitions().map_err(|e| e.to_string())?;
        let bytes = partitions.iter().map(|partition| root.bytes(*partition)).sum();
        Ok((partitions, bytes))
    }

    fn check_space(&self, bytes: u64) -> Result<(), String> {
        let free = RealFs.free_bytes(&self.staging).map_err(|e| format!("{}: {e}", self.staging.display()))?;
        if free >= bytes {
            return Ok(());
        }
        let (from, to) = (self.from_root.display(), self.to_root.display());
        Err(format!(
            "{bytes} bytes are needed for {to}, as many as {from} has, and {free} are free: nothing is changed"
        ))
    }

    /// The new backend, in the staging directory. Its single writes are not synced, because only a
    /// complete conversion counts and that is synced at its end.
    fn staged(&self) -> BackendSettings {
        let mut to = self.to.in_directory(self.staging.clone());
        if let BackendSettings::Bitcask(disk)
        | BackendSettings::Leveled(disk)
        | BackendSettings::Leveldb(disk)
        | BackendSettings::Hanoidb(disk) = &mut to
        {
            disk.journal.sync = SyncStrategy::None;
        }
        to
    }

    /// Marks a new store as restored if the old one was restored or may have lost its latest writes
    /// in a crash. An absent key in such a store proves nothing until the store has been compared
    /// with another replica, and the same holds for its copy.
    fn begin_store(&self, partition: u32, source: &dyn ombak_storage::Backend) -> Result<(), String> {
        let identity = source.identity();
        if !identity.is_restored && identity.lost_writes_boot.is_none() {
            return Ok(());
        }
        let dir = self.staging.join(partition.to_string());
        fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        begin_restored(&RealFs, &dir, 0).map_err(|e| e.to_string())
    }

    /// Reads and verifies everything that was written. Returns false if it was interrupted.
    fn read_back(
        &self,
        to: &BackendSettings,
        partitions: &[u32],
        keys: u64,
        bar: &ProgressBar,
        interrupted: &AtomicBool,
    ) -> Result<bool, String> {
        let lost =
            || format!("{} does not have the data that was written to it: nothing is changed", self.staging.display());
        let root = open_root(to)?.ok_or_else(lost)?;
        let mut found = 0;
        bar.set_length(partitions.iter().map(|partition| root.bytes(*partition)).sum());
        bar.reset();
        for partition in partitions {
            bar.set_message(format!("partition {partition} read back"));
            let mut observe = |read| {
                bar.inc(read);
                !interrupted.load(Ordering::Relaxed)
            };
            let report = root.verify(*partition, &mut observe).map_err(|e| e.to_string())?;
            if !report.complete {
                return Ok(false);
            }
            if report.damaged > 0 {
                return Err(lost());
            }
            found += report.keys;
        }
        if found == keys { Ok(true) } else { Err(lost()) }
    }

    /// Renames the staging directory to its final name, durably.
    fn put_in_place(&self) -> Result<(), String> {
        let failed = |what: &str, path: &Path, e: io::Error| format!("cannot {what} {}: {e}", path.display());
        let mark = self.staging.join(MARK);
        fs::write(&mark, self.from_root.as_os_str().as_encoded_bytes())
            .and_then(|()| fs::File::open(&mark)?.sync_all())
            .and_then(|()| RealFs.sync_dir(&self.staging))
            .map_err(|e| failed("write", &mark, e))?;
        if self.to_root.is_dir() {
            place::remove_empty(&self.to_root).map_err(|e| failed("replace", &self.to_root, e))?;
        }
        fs::rename(&self.staging, &self.to_root).map_err(|e| failed("create", &self.to_root, e))?;
        let parent = self.to_root.parent().unwrap_or(Path::new("/"));
        RealFs.sync_dir(parent).map_err(|e| failed("sync", parent, e))
    }
}

fn open_root(settings: &BackendSettings) -> Result<Option<StoreRoot>, String> {
    let (Some(disk), Some(config)) = (settings.disk(), store_root_config(settings, InventoryConfig::default())) else {
        return Ok(None);
    };
    StoreRoot::open(Arc::new(RealFs), &disk.data_root, config).map_err(|e| e.to_string())
}
