//! The file system behind a trait: what the stores ask of the operating system, and nothing more.
//!
//! What it is: positioned reads and writes, the syncs that a loss of power makes necessary, names, locks. Two
//! implementations: [`RealFs`], and [`sim::FaultyFs`], the tests' twin that loses power, runs full and lies.
//!
//! What it is not: it keeps no state for the stores and retries nothing.
//!
//! Invariants:
//! * a write survives a loss of power only after `sync_data` returned, a name only after `sync_dir` of its directory did;
//! * a call that failed may have done a part of its work.

mod real;
pub mod sim;
mod small_file;

pub use real::RealFs;
pub use small_file::{read_file, replace_file, replace_file_with};

use crate::backend::ReadMode;
use std::io;
use std::path::Path;
use std::sync::Arc;

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
    /// Fills `buffer` from `offset`; fewer bytes only at the end of the file. With [`ReadMode::Cached`] the error kind
    /// is `WouldBlock` when any of the bytes is not in the page cache.
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`, extending the file where needed. After an error a prefix may be there.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until the content and the length survive a loss of power (fdatasync).
    fn sync_data(&self) -> io::Result<()>;

    /// Length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file to `length` bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Says that reads will be of single records here and there: nothing beyond them is worth reading ahead. A hint, which
    /// a file system need not take.
    fn expect_random_reads(&self) {}
}

/// Fills `buffer` with as many calls of `read` as it takes: `read` is given what is left of it and how much is done. Fewer
/// bytes only where `read` finds the end of the file.
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

/// Writes all of `bytes` with as many calls of `write` as it takes: `write` is given what is left of them and how much is
/// done.
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

/// What tells a file from every copy of it, wherever that was put: it keeps this when it is given another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileBirth {
    /// Its number in its file system.
    pub inode: u64,
    /// When it was created, in nanoseconds since 1970; 0 where the file system does not say.
    pub created_ns: u64,
}

/// A lock on a path, released when dropped or when the process ends.
pub trait FileLock: Send + Sync {}

/// What the stores ask of the operating system.
pub trait FileSystem: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Gives a file or directory another name, replacing a file of that name at once.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, which must be free. Fails where that would be on another file system, or where file
    /// systems have no second names.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// What tells a file from its copies.
    fn birth(&self, path: &Path) -> io::Result<FileBirth>;

    /// Says which run of the machine this is: as long as it stays the same, what was written and not synced is still there,
    /// whatever became of the process. None when the system cannot tell.
    fn machine_boot(&self) -> io::Result<Option<u128>>;

    /// Removes a file's name; open handles go on working.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Creates a directory and its missing parents; fine when it is there.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Waits until the names in a directory survive a loss of power.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that may still be written on the file system of `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Bytes that the file system of `dir` has in all; `u64::MAX` where that is not known.
    fn size_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    /// Takes the lock file `path`, creating it; the error kind is `WouldBlock` when another holder has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;
}
