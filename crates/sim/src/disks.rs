//! The disks of one host, what the machine remembers of them, and what is lost with either.

use crate::cluster::RING_SIZE;
use crate::world::HostRuntime;
use ombak_storage::AppendMarks;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the node's own files are.
pub const NODE_DIR: &str = "/node";
/// Where the stores are.
pub const STORES_DIR: &str = "/stores";

/// The two disks of a host: one for the node's own files, one for its stores.
pub struct Disks {
    /// The disk with the node's identity.
    pub node: Arc<FaultyFs>,
    /// The disk with the stores.
    pub stores: Arc<FaultyFs>,
    /// How far the stores have come, in the memory of the machine.
    pub append_marks: Arc<AppendMarks>,
    /// How many processes have ended on them.
    pub ended_processes: u32,
}

impl Disks {
    /// Empty disks.
    pub fn new(seed: u64, machine: &Arc<HostRuntime>) -> Self {
        Self {
            node: FaultyFs::on_machine(seed, machine.clone()),
            stores: FaultyFs::on_machine(seed ^ 1, machine.clone()),
            append_marks: AppendMarks::in_memory(RING_SIZE),
            ended_processes: 0,
        }
    }

    /// The disks as the next process finds them. Nothing is written to the old ones any more.
    pub fn restart(&self, loss: Loss) -> Self {
        let append_marks =
            if loss.ends_machine() { AppendMarks::in_memory(RING_SIZE) } else { self.append_marks.clone() };
        let ended_processes = self.ended_processes + 1;
        Self { node: self.node.restart(loss), stores: self.stores.restart(loss), append_marks, ended_processes }
    }

    /// Replaces the disk of the stores by an empty one.
    pub fn lose_stores(&mut self, seed: u64, machine: &Arc<HostRuntime>) {
        self.stores.restart(Loss::Everything);
        self.stores = FaultyFs::on_machine(seed, machine.clone());
    }

    /// All files of the stores, with their lengths.
    pub fn store_files(&self) -> io::Result<Vec<(PathBuf, u64)>> {
        let mut files = Vec::new();
        self.walk(Path::new(STORES_DIR), &mut files)?;
        Ok(files)
    }

    /// The data files of the stores, by the directories of their partitions.
    pub fn data_files(&self) -> io::Result<BTreeMap<PathBuf, Vec<PathBuf>>> {
        let mut by_partition = BTreeMap::<PathBuf, Vec<PathBuf>>::new();
        let is_data = |path: &Path| path.extension().is_some_and(|ext| ext == "data");
        for (path, _) in self.store_files()?.into_iter().filter(|(path, _)| is_data(path)) {
            if let Some(partition) = path.parent() {
                by_partition.entry(partition.to_owned()).or_default().push(path);
            }
        }
        Ok(by_partition)
    }

    fn walk(&self, dir: &Path, files: &mut Vec<(PathBuf, u64)>) -> io::Result<()> {
        for name in self.stores.list(dir)? {
            let path = dir.join(name);
            match self.stores.length(&path) {
                Ok(length) => files.push((path, length)),
                Err(_) => self.walk(&path, files)?,
            }
        }
        Ok(())
    }
}
