//! Words in a file that is mapped into memory. This is the only unsafe code of the crate: safe code
//! could count appends outside of the process only with a system call for each of them.

#![expect(unsafe_code, reason = "a mapped file outlives the process and costs no system call for each append")]

use crate::fs::{FileSystem, RealFs};
use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU64;
use xxhash_rust::xxh3::xxh3_64;

/// The kinds of file systems that are in memory, as statfs(2) names them.
pub(super) const TMPFS: u64 = 0x0102_1994;
pub(super) const RAMFS: u64 = 0x8584_58f6;

/// The name of the file for the stores in `root`.
pub(super) fn path_of(dir: &Path, root: &Path) -> io::Result<PathBuf> {
    let identity = RealFs.file_identity(root)?;
    let mut bytes = [identity.inode.to_le_bytes(), identity.created_ns.to_le_bytes()].concat();
    if identity.created_ns == 0 {
        // Inode numbers alone repeat.
        bytes.extend_from_slice(std::path::absolute(root)?.as_os_str().as_encoded_bytes());
    }
    Ok(dir.join(format!("ombak.appends.{:016x}", xxh3_64(&bytes))))
}

/// A mapped file of words. It is locked as long as the value lives.
pub(super) struct MappedWords {
    address: NonNull<AtomicU64>,
    count: usize,
    path: PathBuf,
    #[expect(dead_code, reason = "held for its lock")]
    file: File,
}

// SAFETY: the memory belongs to no thread, and it is accessed only as atomic words.
unsafe impl Send for MappedWords {}
// SAFETY: the same.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Maps the first `count` words of a file, and creates the file if it is not there. Fails if
    /// the file is not in memory, is of another user, or is in use by another process.
    pub(super) fn open(path: &Path, count: usize) -> io::Result<Self> {
        let file = open_own(path)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => io::Error::other("another process uses it"),
            std::fs::TryLockError::Error(error) => error,
        })?;
        if file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("another process has just removed it"));
        }
        let length = count * size_of::<AtomicU64>();
        // Every page exists from here on, so that no access needs memory that the file system has
        // not got.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length as u64)?;
        // SAFETY: the address is chosen by the system, so no other memory is replaced. The file has
        // `length` bytes. Only this user may shorten it, and Ombak never does.
        let address =
            unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) }?;
        let address = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at no address"))?;
        Ok(Self { address, count, path: path.to_owned(), file })
    }

    /// Removes the name of the file.
    pub(super) fn remove_file(&self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "the file of append marks stays");
        }
    }

    /// The words.
    pub(super) fn get(&self) -> &[AtomicU64] {
        // SAFETY: `address` is the start of a mapping of `count` words, which starts at a page and
        // lives as long as `self`. Any bytes are a valid word. No process accesses the memory other
        // than by atomic operations: the file is locked.
        unsafe { slice::from_raw_parts(self.address.as_ptr(), self.count) }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length, and `get` lends it no longer
        // than `self` lives.
        let unmapped = unsafe { munmap(self.address.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
        if let Err(error) = unmapped {
            tracing::warn!(%error, "the append marks stay mapped");
        }
    }
}

/// Opens a regular file of this user in memory. The directory may be open to others, as /dev/shm
/// is.
fn open_own(path: &Path) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_follow);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is not a file of the user that runs Ombak"));
    }
    let kind = rustix::fs::fstatfs(&file)?.f_type as u64 & 0xffff_ffff;
    if kind != TMPFS && kind != RAMFS {
        // The kernel would write it to a disk again and again.
        drop(std::fs::remove_file(path));
        return Err(io::Error::other("its directory is not in memory (tmpfs)"));
    }
    Ok(file)
}
