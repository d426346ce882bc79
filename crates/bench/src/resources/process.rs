//! Reads `/proc/PID` on Linux.

use std::fs;
use std::io;

/// Bytes that a process has read from and written to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskBytes {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// The processor time of all threads, in seconds.
pub(super) fn cpu_s(pid: u32) -> io::Result<f64> {
    let ticks = parsed(pid, "stat", ticks)?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The resident memory, in bytes.
pub(super) fn rss_bytes(pid: u32) -> io::Result<u64> {
    parsed(pid, "status", |text| field(text, "VmRSS:")?.checked_mul(1024))
}

/// Bytes read from and written to the disk.
pub(super) fn disk_bytes(pid: u32) -> io::Result<DiskBytes> {
    parsed(pid, "io", |text| {
        Some(DiskBytes { read: field(text, "read_bytes:")?, written: field(text, "write_bytes:")? })
    })
}

fn parsed<T>(pid: u32, file: &str, parse: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    let path = format!("/proc/{pid}/{file}");
    let text = fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    parse(&text).ok_or_else(|| io::Error::other(format!("{path}: not in it")))
}

/// The sum of fields 14 and 15. The search begins behind the second field, the name, because it may
/// contain spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    fields.next()?.ok()?.checked_add(fields.next()?.ok()?)
}

/// The number behind `name` in the line that begins with it.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_any_name() {
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 500 25 0 0"), Some(525));
        assert_eq!(ticks("7 (short) S 1 2"), None);
    }

    #[test]
    fn fields_are_found_by_the_whole_name() {
        let io = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(field(io, "write_bytes:"), Some(8192));
        assert_eq!(field("VmRSS:\t    1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!(field(io, "VmRSS:"), None);
    }
}
