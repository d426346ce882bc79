//! The file system behind a trait: the operations that stores need, and nothing more.
//!
//! What it is: positioned reads and writes, syncs, names and locks. There are four implementations:
//! [`RealFs`]; [`ReservedFs`], whose calls are paid for by a reserve on a full disk; [`SlowFs`],
//! which slows another one down for tests; and [`sim::FaultyFs`], a simulated one for tests that
//! loses power, runs full and corrupts data.
//!
//! What it is not: it keeps no state for the stores. Only [`ReservedFs`] tries a call again.
//!
//! Invariants:
//! * A write survives a loss of power only after `sync_data` has returned; a name, only after
//!   `sync_dir` of its directory has returned.
//! * A call that failed may have done a part of its work.

mod disk_reserve;
mod media;
mod real;
mod reserved;
pub mod sim;
mod slow;
mod small_file;
#[cfg(target_os = "linux")]
mod uncached;

pub use disk_reserve::{DISK_RESERVE_FILE, DiskReserve};
pub use media::is_media_error;
pub(crate) use media::{BLOCK_BYTES, read_at_twice};
pub use real::RealFs;
pub use reserved::ReservedFs;
pub use slow::SlowFs;
pub use small_file::{read_file, replace_file, replace_file_with};

use crate::backend::ReadMode;
use crate::machine::{Machine, RealMachine};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Whether a call failed for lack of room: the disk is full, or a quota or a limit is reached. It
/// may succeed later.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// How many bytes [`File::allocate`] writes at once, where it writes.
const ALLOCATED_AT_ONCE: u64 = 256 << 10;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; read only.
    Read,
    /// Must exist; read and write.
    Write,
    /// Must not exist yet; read and write.
    CreateNew,
}

/// An open file. All offsets are absolute: there is no cursor.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset`. Returns fewer bytes only at the end of the file. With
    /// [`ReadMode::Cached`], the error kind is `WouldBlock` if any of the bytes is not in the page
    /// cache.
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`, extending the file if needed. After an error, a prefix of
    /// them may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until the content and the length survive a loss of power (fdatasync).
    fn sync_data(&self) -> io::Result<()>;

    /// Length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file to `length` bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Takes room on the disk for the bytes from `from` to `to`, which must be the end of the file
    /// and beyond. They read as zero. After an error, a part of them may be there.
    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        write_zeros(from, to, |zeros, at| self.write_at(zeros, at))
    }

    /// Tells the file system that reads will be of single records at random offsets, so reading
    /// ahead is useless. A hint: a file system may ignore it.
    fn expect_random_reads(&self) {}
}

/// Fills `buffer` with as many calls of `read` as needed. `read` gets the rest of the buffer and
/// the number of bytes already read. Returns fewer bytes only if `read` reaches the end of the
/// file.
pub(crate) fn read_whole(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&mut buffer[done..], done) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes` with as many calls of `write` as needed. `write` gets the rest of the
/// bytes and the number of bytes already written.
pub(crate) fn write_whole(bytes: &[u8], mut write: impl FnMut(&[u8], usize) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&bytes[done..], done) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes zeros from one offset to another, with several calls of `write`.
fn write_zeros(from: u64, to: u64, mut write: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
    let zeros = vec![0; to.saturating_sub(from).min(ALLOCATED_AT_ONCE) as usize];
    let mut at = from;
    while at < to {
        let length = (to - at).min(ALLOCATED_AT_ONCE);
        write(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// Distinguishes a file from every copy of it. A rename does not change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// The inode number.
    pub inode: u64,
    /// Creation time in nanoseconds since 1970; 0 if the file system does not record it.
    pub created_ns: u64,
}

/// A lock on a path. It is released when dropped or when the process ends.
pub trait FileLock: Send + Sync {}

/// The operations that stores need from the operating system.
pub trait FileSystem: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Opens a file for a reader that reads much and does not come back: where the system can do
    /// so, the reads show what is on the disk, and leave the page cache to others.
    fn open_uncached(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path, OpenMode::Read)
    }

    /// Renames a file or directory. An existing file of the new name is replaced atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must not exist. Fails if the new name is on another file
    /// system, or if the file system has no hard links.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// What distinguishes a file from its copies.
    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity>;

    /// Identifies the current boot of the machine. While it stays the same, written data is still
    /// there even if it was not synced and the process was killed, unless the file system was
    /// mounted again ([`crate::AppendMarks`]). None if the system cannot tell.
    fn os_boot_id(&self) -> io::Result<Option<u128>>;

    /// Removes a file's name. Open handles stay usable.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Creates a directory and its missing parents. Succeeds if it exists already.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Waits until the names in a directory survive a loss of power.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that can still be written to the file system of `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Total size in bytes of the file system of `dir`; `u64::MAX` if unknown.
    fn size_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// The machine that the file system belongs to.
    fn machine(&self) -> &dyn Machine {
        &RealMachine
    }

    /// Takes the lock file `path` and creates it if needed. The error kind is `WouldBlock` if
    /// another holder has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;
}
