//! Restores a backup into the directories of a node that is not running.

use crate::config::{BackendSettings, Settings};
use crate::node::lock::{self, DataDirLock, LOCK_FILE};
use ombak_backup::{
    ProgressCallback, RestoreReport, RestoreTarget, TargetStore, check_restore, restore as restore_into,
};
use ombak_node_files::{OwnMetadata, begin_anew, read_identity};
use ombak_storage::fs::RealFs;
use std::path::Path;
use std::sync::Arc;

/// Restores a backup into the node of these settings. `new_cluster`: also a node that listens for
/// others, which then begins a cluster of its own. The error is one line for the operator.
pub fn restore(
    backup: &Path,
    settings: &Settings,
    new_cluster: bool,
    on_progress: ProgressCallback<'_>,
) -> Result<RestoreReport, String> {
    check_no_member(settings, new_cluster)?;
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
    let report = restore_into(&backup, &target, on_progress).map_err(|e| e.to_string())?;
    let found = read_identity(&*target.fs, &target.data_dir).map_err(|e| e.to_string())?;
    if new_cluster && found.is_some_and(|identity| identity.metadata == OwnMetadata::Member) {
        // Under its old id it would be a member of the cluster that is lost.
        begin_anew(&*target.fs, &target.data_dir).map_err(|e| e.to_string())?;
    }
    Ok(report)
}

/// Refuses to restore a node that other members may take for the one that they know: its copies are
/// older than what they may have reaped since (docs/design/replication.md §8).
fn check_no_member(settings: &Settings, new_cluster: bool) -> Result<(), String> {
    match &settings.peer {
        Some(peer) if !new_cluster => Err(format!(
            "{} is set, so this node is for a cluster, and a backup does not bring a member back: a restored node begins \
             a cluster of its own. If other members still run, they have what the node held: see \
             docs/cluster.md. If none runs any more, use --new-cluster. To read the backup beside a cluster, restore it \
             with a configuration without listener.peer",
            peer.key
        )),
        _ => Ok(()),
    }
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
