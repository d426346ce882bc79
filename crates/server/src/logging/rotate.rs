//! A log file that is replaced by a new one when it is full, with a few of its predecessors.
//!
//! `console.log` is the current file, `console.log.0` is the one before it, and so on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The current file. Each `write` is one whole message, which is never split over two files.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    len_bytes: u64,
    bytes_max: u64,
    files_max: u32,
    mode: u32,
}

impl RotatingFile {
    /// Opens the file at `path` for appending, or creates it, and its directory. `files_max`
    /// includes the current file. `mode` has the permissions of new files, from which the process
    /// may take some (its umask).
    pub fn open(path: &Path, bytes_max: u64, files_max: u32, mode: u32) -> io::Result<Self> {
        if let Some(dir) = path.parent().filter(|dir| *dir != Path::new("")) {
            std::fs::create_dir_all(dir)?;
        }
        let file = OpenOptions::new().append(true).create(true).mode(mode).open(path)?;
        let len_bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, len_bytes, bytes_max, files_max, mode })
    }

    /// Opens the file that now has the name, or creates it: an external program that rotates logs
    /// has renamed the open file. After an error, the log continues in the file that is open.
    pub fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.bytes_max, self.files_max, self.mode)?;
        Ok(())
    }

    fn predecessor(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&mut self) -> io::Result<()> {
        let predecessors_max = self.files_max.saturating_sub(1);
        for number in (1..predecessors_max).rev() {
            rename_if_there(&self.predecessor(number - 1), &self.predecessor(number))?;
        }
        if predecessors_max > 0 {
            rename_if_there(&self.path, &self.predecessor(0))?;
        }
        let mut options = OpenOptions::new();
        self.file = options.write(true).create(true).truncate(true).mode(self.mode).open(&self.path)?;
        self.len_bytes = 0;
        Ok(())
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Write for RotatingFile {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        if self.len_bytes > 0 && self.len_bytes.saturating_add(message.len() as u64) > self.bytes_max {
            self.rotate()?;
        }
        self.file.write_all(message)?;
        self.len_bytes += message.len() as u64;
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: u32 = 0o644;

    fn names(dir: &Path) -> Vec<(String, u64)> {
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .expect("dir")
            .map(|e| e.expect("entry"))
            .map(|e| (e.file_name().to_string_lossy().into_owned(), e.metadata().expect("meta").len()))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("console.log");
        let mut log = RotatingFile::open(&path, 100, 3, MODE).expect("open");
        for n in 0..10 {
            log.write_all(format!("{n}{}\n", "x".repeat(48)).as_bytes()).expect("write");
        }
        let sizes: Vec<_> = names(dir.path());
        assert_eq!(sizes, [("console.log".into(), 100), ("console.log.0".into(), 100), ("console.log.1".into(), 100)]);
        assert!(std::fs::read_to_string(&path).expect("read").starts_with("8x"));
        assert!(std::fs::read_to_string(dir.path().join("console.log.1")).expect("read").starts_with("4x"));
    }

    #[test]
    fn a_restart_goes_on_with_the_file_and_one_file_is_enough() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("console.log");
        for n in 0..5 {
            let mut log = RotatingFile::open(&path, 100, 1, MODE).expect("open");
            log.write_all(format!("{n}{}\n", "x".repeat(38)).as_bytes()).expect("write");
        }
        assert_eq!(names(dir.path()), [("console.log".into(), 40)]);
    }

    #[test]
    fn a_file_that_was_renamed_is_written_to_until_the_log_is_reopened() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (path, renamed) = (dir.path().join("console.log"), dir.path().join("renamed"));
        let mut log = RotatingFile::open(&path, 100, 3, MODE).expect("open");
        log.write_all(b"one\n").expect("write");
        std::fs::rename(&path, &renamed).expect("rename");
        log.write_all(b"two\n").expect("write");
        log.reopen().expect("reopen");
        log.write_all(b"three\n").expect("write");
        let read = |path: &Path| std::fs::read_to_string(path).expect("read");
        assert_eq!((read(&renamed).as_str(), read(&path).as_str()), ("one\ntwo\n", "three\n"));
        std::fs::remove_file(&path).expect("remove");
        std::fs::create_dir(&path).expect("something in the way");
        assert!(log.reopen().is_err());
        log.write_all(b"four\n").expect("the file that was open is open still");
    }

    #[test]
    fn a_message_beyond_the_size_has_a_file_of_its_own() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("console.log");
        let mut log = RotatingFile::open(&path, 10, 4, MODE).expect("open");
        for _ in 0..2 {
            log.write_all(&[b'y'; 50]).expect("write");
        }
        assert_eq!(names(dir.path()), [("console.log".into(), 50), ("console.log.0".into(), 50)]);
    }
}
