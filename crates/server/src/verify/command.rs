//! Runs an examination: from the options of the command line to the stores and the report.

use super::report::{Report, StoreReport};
use crate::backends::{Inventories, append_marks, store_root_config, stores_file};
use crate::config::{BackendSettings, DiskSettings, Effective, Settings};
use crate::import::Checkpoint;
use crate::node::lock::DataDirLock;
use crate::node::{has_metadata, join};
use crate::offline::{interrupt_flag, progress_bar};
use indicatif::ProgressBar;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::verify::StoreRoot;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to remove what is damaged.
    pub repair: bool,
    /// The only backend to examine; `None` means all that the node uses.
    pub backend: Option<String>,
}

/// A backend whose directory exists and is locked by this process.
struct Opened {
    root: StoreRoot,
    report: StoreReport,
}

/// Examines the stopped node of this configuration. Ctrl-C ends the examination between two steps.
/// The error is one line for the operator.
pub fn run(options: &Options, effective: &Effective) -> Result<Report, String> {
    let settings = Settings::new(effective).map_err(|problems| join(&problems))?;
    let data_dir = &settings.data_dir;
    if !data_dir.is_dir() {
        return Err(format!("there is no node in {}; name its data directory with --data", data_dir.display()));
    }
    let _lock = DataDirLock::take(data_dir).map_err(|e| e.to_string())?;
    let inventories = Inventories::new(data_dir, false);
    let mut opened = match &options.backend {
        Some(name) => {
            let backend = BackendSettings::named(effective, name).map_err(|problem| problem.to_string())?;
            open(&[(name, &backend)], &inventories, options.repair)?
        }
        None => open(&settings.backend.stores(), &inventories, options.repair)?,
    };
    let interrupted = interrupt_flag()?;
    let bytes = opened.iter().map(|store| bytes_of(&store.root)).sum::<Result<u64, String>>()?;
    let bar = progress_bar(bytes);
    let outcome: Result<u64, String> =
        opened.iter_mut().map(|store| examine(store, options.repair.then_some(data_dir), &bar, &interrupted)).sum();
    bar.finish_and_clear();
    let damaged_left = outcome?;
    let stores: Vec<StoreReport> = opened.into_iter().map(|store| store.report).collect();
    let node_files = examine_files(data_dir);
    let files_damaged = node_files.len() as u64;
    Ok(Report {
        complete: !interrupted.load(Ordering::Relaxed),
        repair: options.repair,
        damaged: stores.iter().map(|store| store.damaged).sum::<u64>() + files_damaged,
        damaged_left: damaged_left + files_damaged,
        stores,
        node_files,
        member: has_metadata(data_dir),
    })
}

fn open(stores: &[(&str, &BackendSettings)], inventories: &Inventories, repair: bool) -> Result<Vec<Opened>, String> {
    let mut opened = Vec::new();
    for (name, settings) in stores {
        let Some(disk @ DiskSettings { data_root, .. }) = settings.disk() else { continue };
        let Some(config) = store_root_config(settings, inventories.of(data_root)) else { continue };
        let root = StoreRoot::open(Arc::new(RealFs), data_root, config).map_err(|e| e.to_string())?;
        let Some(root) = root else { continue };
        // A repair starts the stores, so it must not hide from the next start what is missing.
        let root = root.with_append_marks(Some(disk).filter(|_| repair).and_then(append_marks));
        let (name, backend) = ((*name).to_owned(), root.kind().name());
        let report = StoreReport { name, backend, data_root: data_root.clone(), ..StoreReport::default() };
        opened.push(Opened { root, report });
    }
    if opened.is_empty() {
        let names = stores.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(format!("{names}: there are no files to examine; --backend NAME names another backend"));
    }
    Ok(opened)
}

fn bytes_of(root: &StoreRoot) -> Result<u64, String> {
    let partitions = root.partitions().map_err(|e| e.to_string())?;
    Ok(partitions.into_iter().map(|partition| root.bytes(partition)).sum())
}

/// Damage to the small files that belong to no store.
fn examine_files(data_dir: &Path) -> Vec<String> {
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
    let mut damaged: Vec<String> = ombak_kv::examine_files(&fs, data_dir).iter().map(ToString::to_string).collect();
    damaged.extend(stores_file::examine(data_dir).err());
    damaged.extend(Checkpoint::examine(data_dir).err().map(|error| error.to_string()));
    damaged
}

/// Examines all partitions of a backend, and returns how many damaged places are left. For a repair
/// it is told the directory of the node.
fn examine(
    store: &mut Opened,
    repair: Option<&Path>,
    bar: &ProgressBar,
    interrupted: &AtomicBool,
) -> Result<u64, String> {
    let Opened { root, report } = store;
    let mut damaged_left = 0;
    for partition in root.partitions().map_err(|e| e.to_string())? {
        let mut observe = |read: u64| {
            bar.inc(read);
            !interrupted.load(Ordering::Relaxed)
        };
        bar.set_message(format!("{} partition {partition}", report.name));
        let found = if let Some(data_dir) = repair {
            // The repair may change the store in a way that its next start cannot see.
            ombak_kv::remove_saved_sums(&RealFs, data_dir, partition)
                .and_then(|()| ombak_kv::remove_saved_trees(&RealFs, data_dir, partition))
                .map_err(|why| format!("the saved sums of partition {partition} cannot be removed: {why}"))?;
            let (before, after) = root.repair(partition, &mut observe).map_err(|e| e.to_string())?;
            damaged_left += after.damaged;
            if before.damaged > 0 {
                report.quarantine = Some(root.quarantine());
            }
            before
        } else {
            let found = root.verify(partition, &mut observe).map_err(|e| e.to_string())?;
            damaged_left += found.damaged;
            found
        };
        report.add(found);
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(damaged_left)
}
