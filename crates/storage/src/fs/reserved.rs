//! A file system for small files that must be written even on a full disk.

use super::disk_reserve::DiskReserve;
use super::{File, FileIdentity, FileLock, FileSystem, OpenMode};
use crate::backend::ReadMode;
use crate::machine::Machine;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How often a call is tried again for which room was given up. Something else may take that room
/// first, and must not get all of the reserve with one call.
const TRIES_MAX: usize = 4;

/// Another file system, whose calls are paid for by a reserve when the disk is full: what a node
/// has to note about itself, and about its part in a cluster.
pub struct ReservedFs {
    inner: Arc<dyn FileSystem>,
    reserve: Arc<DiskReserve>,
}

struct ReservedFile {
    inner: Arc<dyn File>,
    reserve: Arc<DiskReserve>,
}

impl ReservedFs {
    /// Lets `reserve` pay for calls of `inner`.
    pub const fn new(inner: Arc<dyn FileSystem>, reserve: Arc<DiskReserve>) -> Self {
        Self { inner, reserve }
    }
}

/// Whether more room lets a call succeed. A limit of the length of files is another matter.
fn is_out_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Makes a call, again after room was given up for `bytes` if it finds none. The call may be made
/// again after it failed.
fn paid<T>(reserve: &DiskReserve, bytes: u64, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut made = call();
    for _ in 0..TRIES_MAX {
        match &made {
            Err(error) if is_out_of_room(error) && reserve.give_up(bytes) => made = call(),
            _ => break,
        }
    }
    made
}

impl File for ReservedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        self.inner.read_at(buffer, offset, mode)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        paid(&self.reserve, bytes.len() as u64, || self.inner.write_at(bytes, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.inner.sync_data();
        if synced.as_ref().is_err_and(is_out_of_room) {
            // After a failed sync it is unknown what reached the disk, and another sync would not
            // tell. The caller writes anew, and then there is room.
            self.reserve.give_up(self.inner.length().unwrap_or(0));
        }
        synced
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        paid(&self.reserve, to.saturating_sub(from), || self.inner.allocate(from, to))
    }

    fn expect_random_reads(&self) {
        self.inner.expect_random_reads();
    }
}

impl FileSystem for ReservedFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode == OpenMode::Read {
            return self.inner.open(path, mode);
        }
        let inner = paid(&self.reserve, 0, || self.inner.open(path, mode))?;
        Ok(Arc::new(ReservedFile { inner, reserve: self.reserve.clone() }))
    }

    fn open_uncached(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.inner.open_uncached(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        paid(&self.reserve, 0, || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        paid(&self.reserve, 0, || self.inner.hard_link(from, to))
    }

    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.inner.file_identity(path)
    }

    fn os_boot_id(&self) -> io::Result<Option<u128>> {
        self.inner.os_boot_id()
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        paid(&self.reserve, 0, || self.inner.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        paid(&self.reserve, 0, || self.inner.create_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
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
        paid(&self.reserve, 0, || self.inner.lock(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;
    use crate::fs::{DISK_RESERVE_FILE, read_file, replace_file};

    const SIZE: u64 = 512 << 10;

    fn dir() -> &'static Path {
        Path::new("/node")
    }

    fn disk() -> (Arc<FaultyFs>, Arc<DiskReserve>, ReservedFs) {
        let disk = FaultyFs::new(1);
        disk.create_dir_all(dir()).unwrap();
        let reserve = Arc::new(DiskReserve::new(disk.clone(), dir(), SIZE));
        let paid = ReservedFs::new(disk.clone(), reserve.clone());
        (disk, reserve, paid)
    }

    fn reserved(disk: &FaultyFs) -> u64 {
        disk.length(&dir().join(DISK_RESERVE_FILE)).unwrap()
    }

    #[test]
    fn small_files_are_written_on_a_full_disk_and_the_reserve_is_whole_again_with_room() {
        let (disk, reserve, paid) = disk();
        reserve.take_back().unwrap();
        assert_eq!((reserved(&disk), reserve.is_short()), (SIZE, false));
        disk.set_free_bytes(Some(0));
        let path = dir().join("a");
        // Each replacement frees the file before, so one piece pays for all of them.
        for number in 0..100u8 {
            replace_file(&paid, &path, &[number; 1000]).unwrap();
            assert_eq!(read_file(&paid, &path, 1000).unwrap(), [number; 1000]);
        }
        assert_eq!((reserved(&disk), reserve.is_short()), (SIZE - PIECE, true));
        reserve.take_back().unwrap();
        assert_eq!(reserved(&disk), SIZE - PIECE, "the disk is still full");
        disk.set_free_bytes(Some(10 * SIZE));
        reserve.take_back().unwrap();
        assert_eq!((reserved(&disk), reserve.is_short()), (SIZE, false));
    }

    const PIECE: u64 = 64 << 10;

    #[test]
    fn an_empty_reserve_pays_for_nothing_and_a_log_grows_by_no_more_than_it_has() {
        let (disk, reserve, paid) = disk();
        disk.set_free_bytes(Some(0));
        let path = dir().join("log");
        assert!(is_out_of_room(
            &paid.open(&path, OpenMode::CreateNew).and_then(|log| log.write_at(b"x", 0)).unwrap_err()
        ));
        disk.set_free_bytes(None);
        reserve.take_back().unwrap();
        disk.set_free_bytes(Some(0));
        let log = paid.open(&path, OpenMode::Write).unwrap();
        let written = (0u64..).take_while(|at| log.write_at(&[7; 4096], at * 4096).is_ok()).count() as u64;
        assert_eq!((written * 4096, reserved(&disk)), (SIZE, 0));
    }

    #[test]
    fn what_an_earlier_process_has_allocated_pays_for_the_start_of_the_next_one() {
        let (disk, reserve, _) = disk();
        reserve.take_back().unwrap();
        disk.set_free_bytes(Some(0));
        let reserve = Arc::new(DiskReserve::new(disk.clone(), dir(), SIZE));
        let paid = ReservedFs::new(disk.clone(), reserve.clone());
        replace_file(&paid, &dir().join("a"), &[1; 1000]).unwrap();
        assert!(reserve.is_short());
    }

    #[test]
    fn a_reserve_takes_nothing_from_a_disk_that_is_nearly_full() {
        let (disk, reserve, _) = disk();
        disk.set_free_bytes(Some(2 * SIZE));
        reserve.take_back().unwrap();
        assert_eq!(reserved(&disk), 0);
    }
}
