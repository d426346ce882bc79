//! A log file that is replaced by a new one when it is full, with a few of its predecessors.
//!
//! `console.log` is the current file, `console.log.0` is the one before it, and so on.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
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
        let mut file = OpenOptions::new().append(true).create(true).mode(mode).open(path)?;
        let mut len_bytes = file.metadata()?.len();
        if !ends_with_a_whole_line(path, len_bytes) {
            // The process before this one was ended in the middle of a message.
            file.write_all(b"\n")?;
            len_bytes += 1;
        }
        Ok(Self { path: path.to_owned(), file, len_bytes, bytes_max, files_max, mode })
    }

    /// Opens the file that now has the name, or creates it: an external program that rotates logs
    /// has renamed the open file. After an error, the log continues in the file that is open.
    pub fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.bytes_max, self.files_max, self.mode)?;
        Ok(())
    }

    fn predecessor(&self, number: u32) -> PathBuf {
        self.with_suffix(number)
    }

    fn with_suffix(&self, suffix: impl Display) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{suffix}"));
        name.into()
    }

    /// Begins a new file. It is there before any other is renamed: whatever fails, no earlier file
    /// is lost, and the log goes on in the file that is open.
    fn rotate(&mut self) -> io::Result<()> {
        let next = self.with_suffix("new");
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(self.mode).open(&next)?;
        file.set_len(0)?;
        let predecessors_max = self.files_max.saturating_sub(1);
        for number in (1..predecessors_max).rev() {
            rename_if_there(&self.predecessor(number - 1), &self.predecessor(number))?;
        }
        if predecessors_max > 0 {
            rename_if_there(&self.path, &self.predecessor(0))?;
        }
        std::fs::rename(&next, &self.path)?;
        self.file = file;
        self.len_bytes = 0;
        Ok(())
    }
}

/// Whether the last byte of a file is the end of a line. A file that cannot be read passes for
/// whole.
fn ends_with_a_whole_line(path: &Path, len_bytes: u64) -> bool {
    let mut last = [b'\n'];
    let Some(at) = len_bytes.checked_sub(1) else { return true };
    match File::open(path).and_then(|file| file.read_exact_at(&mut last, at)) {
        Ok(()) => last == *b"\n",
        Err(_) => true,
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
            // A file that is too large is better than a message that is lost. The next message
            // tries again.
            drop(self.rotate());
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
    fn a_rotation_that_fails_loses_no_file_and_no_message() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("console.log");
        let mut log = RotatingFile::open(&path, 100, 3, MODE).expect("open");
        let message = |n: u32| format!("{n}{}\n", "x".repeat(48));
        (0..4).for_each(|n| log.write_all(message(n).as_bytes()).expect("write"));
        // Nothing can be created under the name of the next file.
        std::fs::create_dir(dir.path().join("console.log.new")).expect("something in the way");
        (4..10).for_each(|n| log.write_all(message(n).as_bytes()).expect("write"));
        let all =
            ["console.log.0", "console.log"].map(|name| std::fs::read_to_string(dir.path().join(name)).expect("read"));
        assert_eq!(all.concat(), (0..10).map(message).collect::<String>());
        std::fs::remove_dir(dir.path().join("console.log.new")).expect("remove");
        log.write_all(b"on\n").expect("write");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "on\n");
    }

    #[test]
    fn a_message_that_was_cut_off_spoils_no_other() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("console.log");
        std::fs::write(&path, "one\ntw").expect("write");
        let mut log = RotatingFile::open(&path, 1_000, 3, MODE).expect("open");
        log.write_all(b"three\n").expect("write");
        log.reopen().expect("reopen");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "one\ntw\nthree\n");
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
