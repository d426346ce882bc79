//! Facts in `/stats` and `/metrics` beside the counters: the node, its ring and the machine.

use ombak_ring::Ring;
use ombak_stats::ClusterFigures;
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The node that reports the statistics.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// The node.
    pub node_id: NodeId,
    /// The names of the cluster's members.
    pub node_names: BTreeMap<NodeId, String>,
    /// The ring that the node serves.
    pub ring: Arc<Ring>,
    /// The value of `storage_backend`.
    pub backend: &'static str,
    /// What the node counts about the other nodes of its cluster.
    pub cluster: ClusterFigures,
    /// The machine and the process.
    pub system: SystemFacts,
}

impl NodeFacts {
    /// The name of the node that reports the statistics.
    pub fn node_name(&self) -> String {
        self.name_of(self.node_id)
    }

    /// The name of a member; the identity of a node whose name is not known.
    pub fn name_of(&self, node: NodeId) -> String {
        self.node_names.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }
}

/// The machine and this process, as the operating system reports them. Unknown values are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemFacts {
    /// Load averages of 1, 5 and 15 minutes, multiplied by 256.
    pub load_average_256: [u64; 3],
    /// Processes and threads on the machine.
    pub processes: u64,
    /// Processors of the machine.
    pub processors: u64,
    /// Memory of the machine, in bytes.
    pub memory_total_bytes: u64,
    /// Used memory of the machine, in bytes.
    pub memory_used_bytes: u64,
    /// Memory of this process, in bytes.
    pub resident_bytes: u64,
    /// Threads of this process.
    pub threads: u64,
    /// Open files and sockets of this process.
    pub open_files: u64,
    /// Disks that the node writes to.
    pub disks: Vec<Disk>,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The mount point.
    pub mount_point: String,
    /// The size in KiB.
    pub size_kib: u64,
    /// The used part in percent.
    pub used_percent: u64,
}

impl SystemFacts {
    /// Asks the operating system. `dirs` are the directories whose disks are reported. This reads
    /// small files of `/proc` and takes a few hundred microseconds.
    pub fn read(dirs: &[&Path]) -> Self {
        let (load_average_256, processes) = load();
        let (memory_total_bytes, memory_used_bytes) = memory();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut disks: Vec<Disk> = Vec::new();
        for disk in dirs.iter().filter_map(|dir| disk(dir)) {
            if disks.iter().all(|known| known.mount_point != disk.mount_point) {
                disks.push(disk);
            }
        }
        Self {
            load_average_256,
            processes,
            processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
            memory_total_bytes,
            memory_used_bytes,
            resident_bytes: field_of(&status, "VmRSS:") * 1024,
            threads: field_of(&status, "Threads:"),
            open_files: fs::read_dir("/proc/self/fd").map_or(0, |dir| dir.count() as u64),
            disks,
        }
    }
}

/// The format is `0.52 0.58 0.59 1/316 12345`.
fn load() -> ([u64; 3], u64) {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut fields = text.split_ascii_whitespace();
    let mut average = || fields.next().and_then(|f| f.parse::<f64>().ok()).map_or(0, |avg| (avg * 256.0) as u64);
    let averages = [average(), average(), average()];
    let processes = fields.next().and_then(|f| f.split_once('/')).and_then(|(_, all)| all.parse().ok());
    (averages, processes.unwrap_or(0))
}

fn memory() -> (u64, u64) {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib = field_of(&text, "MemTotal:");
    (total_kib * 1024, total_kib.saturating_sub(field_of(&text, "MemFree:")) * 1024)
}

/// The number after a name at the start of a line.
fn field_of(text: &str, name: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    rest.and_then(|r| r.split_ascii_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn disk(dir: &Path) -> Option<Disk> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    // Counts as `df` does: blocks that are reserved for the superuser are not free.
    let usable = used + stat.f_bavail;
    Some(Disk {
        mount_point: mount_point_of(dir),
        size_kib: stat.f_blocks.saturating_mul(stat.f_frsize) / 1024,
        used_percent: if usable == 0 { 0 } else { (used * 100).div_ceil(usable) },
    })
}

fn mount_point_of(dir: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|point| dir.starts_with(point));
    points.max_by_key(|point| point.len()).unwrap_or("/").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_operating_system_answers() {
        let facts = SystemFacts::read(&[Path::new("/"), Path::new("/")]);
        assert!(facts.memory_total_bytes > facts.memory_used_bytes && facts.memory_used_bytes > 0, "{facts:?}");
        assert!(facts.resident_bytes > 0 && facts.threads > 0 && facts.open_files > 0 && facts.processes > 0);
        assert_eq!(facts.disks.len(), 1, "each disk once");
        assert_eq!(facts.disks[0].mount_point, "/");
        assert!(facts.disks[0].size_kib > 0 && facts.disks[0].used_percent <= 100);
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "MemTotal:       25276518 kB\nMemFree:   1 kB\n";
        assert_eq!((field_of(text, "MemTotal:"), field_of(text, "MemFree:"), field_of(text, "X:")), (25_276_518, 1, 0));
    }
}
