//! Restores a backup into the directories of a node that is not running.

use crate::config::{BackendSettings, Settings};
use crate::node::lock::{self, DataDirLock, LOCK_FILE};
use ombak_backup::{
    ProgressCallback, RestoreReport, RestoreTarget, TargetStore, check_restore, restore as restore_into,
};
use ombak_storage::fs::RealFs;
use std::path::Path;
use std::sync::Arc;

/// Restores a backup into the node of these settings. The error is one line for the operator.
pub fn restore(backup: &Path, settings: &Settings, on_progress: ProgressCallback<'_>) -> Result<RestoreReport, String> {
    let backup = std::path::absolute(backup).map_err(|e| format!("{}: {e}", backup.display()))?;
    let target = RestoreTarget {
        fs: Arc::new(RealFs),
        data_dir: absolute(&settings.data_dir)?,
        // The lock file is not data, so it does not make the directory count as used.
        allowed_names: vec![LOCK_FILE.into()],
        ring_size: settings.ring_size,
        stores: stores(&settings.backend)?,
    };
    // This check runs before the lock is taken, so that a refused restore leaves no new directory
    // behind. It is skipped if a node is running, because that is the first thing to report.
    if !lock::is_held(&settings.data_dir) {
        check_restore(&backup, &target).map_err(|e| e.to_string())?;
    }
    let _lock = DataDirLock::take(&settings.data_dir).map_err(|e| e.to_string())?;
    restore_into(&backup, &target, on_progress).map_err(|e| e.to_string())
}

fn stores(backend: &BackendSettings) -> Result<Vec<TargetStore>, String> {
    let is_several = matches!(backend, BackendSettings::Multi(_));
    let mut stores = Vec::new();
    for (name, store) in backend.stores() {
        let Some(disk) = store.disk() else { continue };
        let kind = match store {
            // Hanoidb and leveldb have the same files.
            BackendSettings::Hanoidb(_) => "leveldb",
            other => other.name(),
        };
        let name = is_several.then(|| name.to_owned());
        stores.push(TargetStore { name, kind: kind.into(), root: absolute(&disk.data_root)? });
    }
    Ok(stores)
}

fn absolute(dir: &Path) -> Result<std::path::PathBuf, String> {
    std::path::absolute(dir).map_err(|e| format!("{}: {e}", dir.display()))
}
