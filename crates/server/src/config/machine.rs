//! How much memory this process may use.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that are assumed if the operating system does not report its memory.
const FALLBACK_BYTES: u64 = 2 << 30;

/// The memory of the machine, or the limit of this process's control group if that is lower, in
/// bytes.
pub(super) fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_bytes(&text));
    machine.into_iter().chain(group).min().unwrap_or(FALLBACK_BYTES)
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest memory limit of this process's control groups and of the groups around them.
fn group_bytes(cgroup: &str) -> Option<u64> {
    let limit = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let files = cgroup.lines().filter_map(limit_file);
    files
        .flat_map(|(dir, file)| dir.ancestors().map(|dir| dir.join(file)).collect::<Vec<_>>())
        .filter(|path| path.starts_with("/sys/fs/cgroup"))
        .filter_map(|path| limit(&path))
        .min()
}

/// Parses one line of `/proc/self/cgroup` into the directory of the group and the name of the file
/// with its memory limit.
fn limit_file(line: &str) -> Option<(PathBuf, &'static str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let root = Path::new("/sys/fs/cgroup");
    match controllers {
        "" => Some((root.join(path), "memory.max")),
        "memory" => Some((root.join("memory").join(path), "memory.limit_in_bytes")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_understood() {
        assert_eq!(total_bytes("MemTotal:       16384 kB\nMemFree: 1 kB"), Some(16 << 20));
        assert_eq!(total_bytes("nothing"), None);
        assert_eq!(limit_file("0::/a/b"), Some(("/sys/fs/cgroup/a/b".into(), "memory.max")));
        assert_eq!(limit_file("5:memory:/a"), Some(("/sys/fs/cgroup/memory/a".into(), "memory.limit_in_bytes")));
        assert_eq!(limit_file("4:cpu,cpuacct:/a"), None);
        assert!(memory_bytes() >= 1 << 20);
    }
}
