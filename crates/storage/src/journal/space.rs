//! The free space of a root's file system, and which writes may still use it.
//!
//! The last bytes are kept for operations that make room. Puts stop at the reserve
//! ([`JournalConfig::disk_reserve_bytes`](super::JournalConfig)), deletes stop at a part of it, and
//! merges may use everything. Without the reserve, a full disk would refuse the deletes and the
//! merges that could empty it.

use crate::fs::FileSystem;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A store checks the free space each time it has appended this many bytes, so most puts need no
/// extra system call.
pub(super) const CHECK_BYTES: u64 = 256 << 10;
/// Deletes stop when one part in this many of the reserve is left. That part belongs to merges.
const DELETES_STOP_AT: u64 = 4;
/// Refused puts resume when one part in this many of the reserve is free beyond it.
const RESUME_AT: u64 = 8;
/// The reserve is at most one part in this many of the file system.
const RESERVE_SHARE_MAX: u64 = 20;
/// With less than this free, a file system that was full still counts as full, even without a
/// reserve.
const ROOM_BYTES_MIN: u64 = 1 << 20;
/// The space that a merge leaves free beside its copies: for its commit file, notes and the
/// directory.
const COMMIT_BYTES: u64 = 64 << 10;

/// What a write is for. This decides how much of the reserve it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A new version of an object.
    Put,
    /// A tombstone of an object or of the store. Merges can then drop what it supersedes.
    Delete,
}

/// The free space of one root, shared by all its stores.
pub(super) struct DiskSpace {
    /// Bytes to keep free; 0: none.
    reserve_bytes: u64,
    /// Whether the last check found less than the reserve.
    is_below_reserve: AtomicBool,
    checked_at_secs: AtomicU64,
}

impl DiskSpace {
    /// Keeps `reserve_bytes` free in the file system of `root`, or fewer if that file system is
    /// small.
    pub(super) fn new(fs: &dyn FileSystem, root: &Path, reserve_bytes: u64) -> Self {
        let size_bytes = fs.size_bytes(root).unwrap_or(u64::MAX);
        Self {
            reserve_bytes: reserve_bytes.min(size_bytes / RESERVE_SHARE_MAX),
            is_below_reserve: AtomicBool::new(false),
            checked_at_secs: AtomicU64::new(0),
        }
    }

    /// Whether the last check found less than the reserve.
    pub(super) fn is_below_reserve(&self) -> bool {
        self.is_below_reserve.load(Ordering::Relaxed)
    }

    /// Whether a store that has appended this much since its last check should check again.
    pub(super) fn needs_check_after(&self, appended_bytes: u64) -> bool {
        self.reserve_bytes > 0 && appended_bytes >= CHECK_BYTES
    }

    /// Whether background work should check: once a second for all stores of the root.
    pub(super) fn needs_check_at(&self, now_secs: u64) -> bool {
        self.reserve_bytes > 0 && self.checked_at_secs.swap(now_secs, Ordering::Relaxed) != now_secs
    }

    /// Checks how many bytes are free.
    pub(super) fn check(&self, fs: &dyn FileSystem, dir: &Path) -> io::Result<u64> {
        let free_bytes = fs.free_bytes(dir)?;
        let is_below_reserve = free_bytes < self.put_floor_bytes();
        if self.is_below_reserve.swap(is_below_reserve, Ordering::Relaxed) != is_below_reserve {
            let reserve_bytes = self.reserve_bytes;
            if is_below_reserve {
                tracing::warn!(dir = %dir.display(), free_bytes, reserve_bytes, "the disk is nearly full: puts are refused");
            } else {
                tracing::info!(dir = %dir.display(), free_bytes, reserve_bytes, "the disk has room again");
            }
        }
        Ok(free_bytes)
    }

    /// Bytes that must stay free after a write.
    pub(super) fn floor_bytes(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Put => self.put_floor_bytes(),
            Purpose::Delete => self.reserve_bytes / DELETES_STOP_AT,
        }
    }

    /// The free bytes below which puts are refused. Higher once puts were stopped, so that they do
    /// not stop and resume with each file that a merge removes.
    fn put_floor_bytes(&self) -> u64 {
        let margin = if self.is_below_reserve() { self.reserve_bytes / RESUME_AT } else { 0 };
        self.reserve_bytes.saturating_add(margin)
    }

    /// Whether this many free bytes are enough for a store whose disk was full to accept writes
    /// again.
    pub(super) fn is_room_again(&self, free_bytes: u64) -> bool {
        free_bytes >= self.put_floor_bytes().max(ROOM_BYTES_MIN)
    }

    /// How much a merge may copy while this many bytes are free.
    pub(super) fn merge_bytes_max(free_bytes: u64) -> u64 {
        free_bytes.saturating_sub(COMMIT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;

    const DIR: &str = "/";

    #[test]
    fn puts_stop_at_the_reserve_and_go_on_when_clearly_more_is_free() {
        let fs = FaultyFs::new(1);
        let space = DiskSpace::new(&*fs, Path::new(DIR), 8000);
        let check = |free_bytes| {
            fs.set_free_bytes(Some(free_bytes));
            assert_eq!(space.check(&*fs, Path::new(DIR)).unwrap(), free_bytes);
            space.is_below_reserve()
        };
        assert!(!check(8000) && check(7999) && check(8000) && check(8999) && !check(9000) && !check(8000));
        assert_eq!((space.floor_bytes(Purpose::Put), space.floor_bytes(Purpose::Delete)), (8000, 2000));
    }

    #[test]
    fn without_a_reserve_nothing_is_checked_or_kept() {
        let fs = FaultyFs::new(1);
        let space = DiskSpace::new(&*fs, Path::new(DIR), 0);
        fs.set_free_bytes(Some(0));
        space.check(&*fs, Path::new(DIR)).unwrap();
        assert!(!space.is_below_reserve() && !space.needs_check_after(u64::MAX) && !space.needs_check_at(5));
        assert_eq!(space.floor_bytes(Purpose::Put), 0);
    }
}
