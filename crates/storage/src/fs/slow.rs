//! A file system that is as slow as a file says, for tests and measurements.

use super::{File, FileIdentity, FileLock, FileSystem, OpenMode};
use crate::backend::ReadMode;
use crate::machine::Machine;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Another file system whose writes, syncs, and reads beyond the page cache take longer while a
/// file exists. The file has the number of microseconds in decimal digits. It is read before each
/// such operation, so it can appear, change and vanish while a node runs.
pub struct SlowFs {
    inner: Arc<dyn FileSystem>,
    delay: Arc<DelayFile>,
}

struct SlowFile {
    inner: Arc<dyn File>,
    delay: Arc<DelayFile>,
}

struct DelayFile(PathBuf);

impl SlowFs {
    /// Slows `inner` down while `delay_file` exists.
    pub fn new(inner: Arc<dyn FileSystem>, delay_file: &Path) -> Self {
        Self { inner, delay: Arc::new(DelayFile(delay_file.to_owned())) }
    }
}

impl DelayFile {
    /// How long an operation takes longer. A file that does not hold a number delays nothing.
    fn delay(&self) -> Option<Duration> {
        let text = fs::read_to_string(&self.0).ok()?;
        text.trim().parse().ok().map(Duration::from_micros)
    }

    #[expect(clippy::disallowed_methods, reason = "a slow disk holds the thread that asks it, too")]
    fn wait(&self) {
        if let Some(delay) = self.delay() {
            std::thread::sleep(delay);
        }
    }
}

impl File for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        if mode == ReadMode::Blocking {
            self.delay.wait();
        }
        self.inner.read_at(buffer, offset, mode)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.delay.wait();
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.delay.wait();
        self.inner.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.inner.allocate(from, to)
    }

    fn expect_random_reads(&self) {
        self.inner.expect_random_reads();
    }
}

impl FileSystem for SlowFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(SlowFile { inner, delay: self.delay.clone() }))
    }

    fn open_uncached(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open_uncached(path)?;
        Ok(Arc::new(SlowFile { inner, delay: self.delay.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }

    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.inner.file_identity(path)
    }

    fn os_boot_id(&self) -> io::Result<Option<u128>> {
        self.inner.os_boot_id()
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.delay.wait();
        self.inner.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn size_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.size_bytes(dir)
    }

    fn machine(&self) -> &dyn Machine {
        self.inner.machine()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;
    use std::time::Instant;

    #[test]
    fn operations_take_longer_while_the_file_exists() {
        let dir = tempfile::tempdir().unwrap();
        let delay_file = dir.path().join("delay");
        let slow = SlowFs::new(Arc::new(RealFs), &delay_file);
        let file = slow.open(&dir.path().join("data"), OpenMode::CreateNew).unwrap();
        let delayed = |what: &dyn Fn()| {
            fs::write(&delay_file, "30000\n").unwrap();
            let began = Instant::now();
            what();
            let took = began.elapsed();
            fs::remove_file(&delay_file).unwrap();
            took >= Duration::from_millis(30)
        };
        assert!(delayed(&|| file.write_at(b"abc", 0).unwrap()));
        assert!(delayed(&|| file.sync_data().unwrap()));
        let mut buffer = [0; 3];
        file.read_at(&mut buffer, 0, ReadMode::Blocking).unwrap();
        assert_eq!(&buffer, b"abc");
        assert!(delayed(&|| assert_eq!(file.read_at(&mut [0; 3], 0, ReadMode::Blocking).unwrap(), 3)));
        assert_eq!(slow.delay.delay(), None);
    }
}
