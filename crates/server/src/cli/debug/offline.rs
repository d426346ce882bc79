//! The parts that need no node: the configuration, the log, and facts of the machine.

use super::part::{Content, Part, in_time};
use super::secrets::{REMOVED, is_telling};
use crate::cli::args::Common;
use crate::cli::local_config;
use crate::config::{Effective, Problem, Settings};
use crate::node::record::NodeRecord;
use rustix::fs::statvfs;
use std::collections::VecDeque;
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the parts that read a disk have.
const DISK_TIME: Duration = Duration::from_secs(10);
/// How much of the log is taken: its end.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// How many files of a directory are listed.
const LISTED_MAX: usize = 20_000;
/// The largest file of facts that is read.
const FACT_BYTES_MAX: u64 = 256 << 10;
/// Files with facts of the machine.
const MACHINE: &[&str] = &[
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/sys/fs/file-nr",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/max_map_count",
    "/proc/net/sockstat",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/cpu.max",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/etc/os-release",
];
/// Files with facts of the process of a node.
const PROCESS: &[&str] = &["status", "limits", "io", "cgroup"];

/// Where a node has its files.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) data_dir: PathBuf,
    log_file: PathBuf,
    log_files_max: u32,
    /// Directories with data, and those of logs and backups.
    dirs: Vec<PathBuf>,
}

impl Places {
    pub(super) fn of(common: &Common, effective: &Result<Effective, Vec<Problem>>) -> Self {
        let data_dir = local_config::data_dir(common);
        let settings = effective.as_ref().ok().and_then(|effective| Settings::new(effective).ok());
        let Some(settings) = settings else {
            let log_file = data_dir.join("log/console.log");
            return Self { dirs: vec![data_dir.clone()], data_dir, log_file, log_files_max: 10 };
        };
        let mut dirs = vec![data_dir.clone(), settings.backup_dir.clone()];
        dirs.extend(settings.backend.data_roots().map(Path::to_path_buf));
        dirs.extend(settings.log.file.parent().map(Path::to_path_buf));
        Self { data_dir, log_file: settings.log.file, log_files_max: settings.log.files_max, dirs }
    }
}

/// All parts.
pub(super) async fn parts(effective: &Result<Effective, Vec<Problem>>, places: &Places) -> Vec<Part> {
    let began = Instant::now();
    let of_config = [
        Part::new("config/effective.conf", configuration(effective), began),
        Part::new("config/problems.txt", Ok(problems(effective)), began),
    ];
    let (of_log, of_files, of_disks, of_process) = (places.clone(), places.clone(), places.clone(), places.clone());
    let (log, files, disks, machine, process) = tokio::join!(
        disk_part("log/console.log", move || log(&of_log)),
        disk_part("files/data-directory.txt", move || Ok(listing(&of_files.data_dir))),
        disk_part("files/disks.txt", move || Ok(disks(&of_disks.dirs))),
        disk_part("machine/machine.txt", || Ok(facts(MACHINE.iter().map(PathBuf::from)))),
        disk_part("machine/process.txt", move || process(&of_process.data_dir)),
    );
    of_config.into_iter().chain([log, files, disks, machine, process]).collect()
}

async fn disk_part(path: &str, work: impl FnOnce() -> Content + Send + 'static) -> Part {
    let began = Instant::now();
    Part::new(path, in_time(DISK_TIME, work).await, began)
}

/// The values in force. Values of telling names are removed here already.
fn configuration(effective: &Result<Effective, Vec<Problem>>) -> Content {
    let effective = effective.as_ref().map_err(|_| "the configuration has errors: see config/problems.txt")?;
    let mut text = String::new();
    for setting in effective.shown() {
        let value = match &setting.value {
            Some(_) if is_telling(&setting.key) => REMOVED.to_owned(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let _ = writeln!(text, "{} = {value}    ## {}", setting.key, setting.origin);
    }
    Ok(text.into_bytes())
}

fn problems(effective: &Result<Effective, Vec<Problem>>) -> Vec<u8> {
    let (word, problems) = match effective {
        Ok(effective) => ("warning", &effective.warnings),
        Err(problems) => ("error", problems),
    };
    problems.iter().map(|problem| format!("{word}: {problem}\n")).collect::<String>().into_bytes()
}

/// The end of the log, from several files if the present one is short.
fn log(places: &Places) -> Content {
    let mut pieces: VecDeque<Vec<u8>> = VecDeque::new();
    let mut left = LOG_BYTES_MAX;
    let earlier = (0..places.log_files_max.saturating_sub(1)).map(|number| {
        let mut path = places.log_file.clone().into_os_string();
        path.push(format!(".{number}"));
        PathBuf::from(path)
    });
    for path in std::iter::once(places.log_file.clone()).chain(earlier) {
        if left == 0 {
            break;
        }
        match end_of(&path, left) {
            Ok(piece) => {
                left = left.saturating_sub(piece.len() as u64);
                pieces.push_front(piece);
            }
            Err(e) if pieces.is_empty() => return Err(format!("cannot read {}: {e}", path.display())),
            Err(_) => break,
        }
    }
    Ok(pieces.into_iter().flatten().collect())
}

/// The last bytes of a file, from the beginning of a line on.
fn end_of(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    if skipped > 0 {
        let line_ends = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..line_ends);
    }
    Ok(bytes)
}

/// The files below a directory: permissions, owner, bytes, time and path of each. Their contents
/// are not read, and links are not followed.
fn listing(dir: &Path) -> Vec<u8> {
    let mut text = String::from("mode owner bytes modified_secs path\n");
    let mut waiting = VecDeque::from([dir.to_owned()]);
    let mut listed = 0;
    while let Some(dir) = waiting.pop_front() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) => {
                let _ = writeln!(text, "cannot list {}: {e}", dir.display());
                continue;
            }
        };
        for entry in entries.flatten() {
            if listed == LISTED_MAX {
                let _ = writeln!(text, "... more than {LISTED_MAX} files");
                return text.into_bytes();
            }
            listed += 1;
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            let _ =
                writeln!(text, "{:06o} {} {} {} {}", meta.mode(), meta.uid(), meta.len(), meta.mtime(), path.display());
            if meta.is_dir() {
                waiting.push_back(path);
            }
        }
    }
    text.into_bytes()
}

fn disks(dirs: &[PathBuf]) -> Vec<u8> {
    let mut text = String::from("total_bytes available_bytes files_total files_available directory\n");
    for dir in dirs {
        let _ = match statvfs(dir) {
            Ok(disk) => writeln!(
                text,
                "{} {} {} {} {}",
                disk.f_blocks.saturating_mul(disk.f_frsize),
                disk.f_bavail.saturating_mul(disk.f_frsize),
                disk.f_files,
                disk.f_favail,
                dir.display()
            ),
            Err(e) => writeln!(text, "{}: {e}", dir.display()),
        };
    }
    text.into_bytes()
}

/// Files of facts, one after the other. One that does not exist is named.
fn facts(paths: impl Iterator<Item = PathBuf>) -> Vec<u8> {
    let mut text = String::new();
    for path in paths {
        let mut content = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(FACT_BYTES_MAX).read_to_end(&mut content));
        let _ = match read {
            Ok(_) => writeln!(text, "==> {}\n{}", path.display(), String::from_utf8_lossy(&content)),
            Err(e) => writeln!(text, "==> {}: {e}\n", path.display()),
        };
    }
    text.into_bytes()
}

/// The process that runs in the data directory. Its environment and its command line are not read.
fn process(data_dir: &Path) -> Content {
    let record = NodeRecord::read(data_dir).ok_or("no node runs in the data directory")?;
    let dir = PathBuf::from(format!("/proc/{}", record.pid));
    Ok(facts(PROCESS.iter().map(|name| dir.join(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_log_begins_with_a_line_and_comes_from_several_files() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log_file = dir.path().join("console.log");
        std::fs::write(&log_file, "three\n").expect("write");
        std::fs::write(dir.path().join("console.log.0"), "two\n").expect("write");
        std::fs::write(dir.path().join("console.log.1"), "one\n").expect("write");
        let places = |log_file: &Path| Places {
            data_dir: dir.path().to_owned(),
            log_file: log_file.to_owned(),
            log_files_max: 3,
            dirs: Vec::new(),
        };
        assert_eq!(log(&places(&log_file)), Ok(b"one\ntwo\nthree\n".to_vec()));
        assert_eq!(end_of(&log_file, 3).expect("reads"), b"");
        std::fs::write(&log_file, "a long line\nlast\n").expect("write");
        assert_eq!(end_of(&log_file, 7).expect("reads"), b"last\n");
        assert!(log(&places(Path::new("/nonexistent/console.log"))).is_err());
        let listed = String::from_utf8(listing(dir.path())).expect("text");
        assert!(listed.contains("console.log.1") && listed.lines().count() == 4, "{listed}");
    }
}
