//! The operating system's file system.

use super::{File, FileIdentity, FileLock, FileSystem, OpenMode, read_whole, write_whole, write_zeros};
use crate::backend::ReadMode;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// A random number that identifies each boot of the machine, in hexadecimal digits and dashes
/// (Linux: proc(5)).
const MACHINE_BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The operating system's file system. On Linux, [`ReadMode::Cached`] reads from the page cache. On
/// systems that cannot tell what is cached, such reads answer `WouldBlock`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

struct RealFile(fs::File);

struct RealLock(#[expect(dead_code, reason = "held for its lock, which ends with the handle")] fs::File);

impl FileLock for RealLock {}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        match mode {
            ReadMode::Cached => read_cached(&self.0, buffer, offset),
            ReadMode::Blocking => read_whole(buffer, |rest, done| self.0.read_at(rest, offset + done as u64)),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_whole(bytes, |rest, done| self.0.write_at(rest, offset + done as u64))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.0, FallocateFlags::empty(), from, to.saturating_sub(from)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(from, to, |zeros, at| self.write_at(zeros, at)),
            allocated => Ok(allocated?),
        }
    }

    #[cfg(target_os = "linux")]
    fn expect_random_reads(&self) {
        use rustix::fs::{Advice, fadvise};
        // If the hint is refused, reads are slower, but not wrong.
        let _ = fadvise(&self.0, 0, None, Advice::Random);
    }
}

/// Reads with one system call. A range that is only partly cached counts as not cached.
#[cfg(target_os = "linux")]
pub(super) fn read_cached(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let wanted = buffer.len();
    let mut slices = [io::IoSliceMut::new(buffer)];
    match preadv2(file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
        Ok(count) if count == wanted => Ok(count),
        // Either the end of the file or a page that is not cached. The caller's blocking read finds
        // out which.
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_cached(_file: &fs::File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

impl FileSystem for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::Write => options.write(true),
            OpenMode::CreateNew => options.write(true).create_new(true),
        };
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    #[cfg(target_os = "linux")]
    fn open_uncached(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(super::uncached::UncachedFile::open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity> {
        let metadata = fs::metadata(path)?;
        let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let created_ns = created.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        Ok(FileIdentity { inode: metadata.ino(), created_ns })
    }

    fn os_boot_id(&self) -> io::Result<Option<u128>> {
        match fs::read_to_string(MACHINE_BOOT) {
            Ok(text) => Ok(u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // All names that Ombak writes are ASCII. A name that is not UTF-8 belongs to another
            // program and can be ignored.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn size_bytes(&self, dir: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(dir)?;
        Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock(file))),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_writes_and_locks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let fs = RealFs;
        let file = fs.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(b"hello world", 0).unwrap();
        file.sync_data().unwrap();
        let mut buffer = [0; 5];
        assert_eq!(file.read_at(&mut buffer, 6, ReadMode::Blocking).unwrap(), 5);
        assert_eq!(&buffer, b"world");
        assert_eq!(file.read_at(&mut buffer, 9, ReadMode::Blocking).unwrap(), 2);
        file.truncate(5).unwrap();
        assert_eq!(file.length().unwrap(), 5);
        file.allocate(5, 300_000).unwrap();
        assert_eq!(file.length().unwrap(), 300_000);
        assert_eq!(file.read_at(&mut buffer, 3, ReadMode::Blocking).unwrap(), 5);
        assert_eq!(&buffer, b"lo\0\0\0");
        assert!(fs.open(&path, OpenMode::CreateNew).is_err());
        let file_identity = fs.file_identity(&path).unwrap();
        fs.rename(&path, &dir.path().join("b")).unwrap();
        fs.sync_dir(dir.path()).unwrap();
        assert!(fs.free_bytes(dir.path()).unwrap() > 0);
        assert_eq!(fs.list(dir.path()).unwrap(), ["b"]);

        fs.hard_link(&dir.path().join("b"), &dir.path().join("c")).unwrap();
        let taken = fs.hard_link(&dir.path().join("b"), &dir.path().join("c")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        fs::copy(dir.path().join("b"), dir.path().join("copy")).unwrap();
        assert_eq!(fs.file_identity(&dir.path().join("b")).unwrap(), file_identity);
        assert_eq!(fs.file_identity(&dir.path().join("c")).unwrap(), file_identity);
        assert_ne!(fs.file_identity(&dir.path().join("copy")).unwrap(), file_identity);
        assert_eq!(fs.os_boot_id().unwrap(), fs.os_boot_id().unwrap());

        let lock = fs.lock(&dir.path().join("lock")).unwrap();
        assert_eq!(fs.lock(&dir.path().join("lock")).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        assert!(fs.lock(&dir.path().join("lock")).is_ok());
    }

    /// Bytes that were just written are in the page cache, so a network thread must be able to read
    /// them without waiting.
    #[cfg(target_os = "linux")]
    #[test]
    fn cached_reads_find_fresh_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealFs.open(&dir.path().join("a"), OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 3000], 0).unwrap();
        let mut buffer = [0; 1000];
        match file.read_at(&mut buffer, 100, ReadMode::Cached) {
            Ok(count) => assert_eq!((count, buffer[999]), (1000, 7)),
            // A file system without RWF_NOWAIT.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
}
