//! Reads of the operating system's files that leave the page cache as it is.
//!
//! What it is: a file for readers that read much and do not come back, such as scrubbing. On Linux
//! the reads go past the page cache (`O_DIRECT`): they show what is on the disk, and push out
//! nothing that others need. Where a file system has no such reads, they go through the cache, and
//! what only this reader has brought into it is let go again.
//!
//! What it is not: it writes nothing.

use super::real::read_cached;
use super::{File, is_media_error, read_whole};
use crate::backend::ReadMode;
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// What offsets, lengths and addresses of reads past the cache are multiples of. No common disk has
/// larger blocks.
const ALIGNMENT: usize = 4096;

/// A file that is read without the page cache; see the module.
pub(super) struct UncachedFile {
    cached: fs::File,
    /// None if the file system has no reads past the cache.
    direct: Option<fs::File>,
    /// A read past the cache was refused.
    is_direct_refused: AtomicBool,
}

impl UncachedFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let cached = fs::File::open(path)?;
        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).ok();
        let direct = flags.and_then(|flags| fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok());
        Ok(Self { cached, direct, is_direct_refused: AtomicBool::new(false) })
    }

    /// Reads past the cache; none if the file system refuses that.
    fn read_direct(&self, buffer: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
        let file = self.direct.as_ref().filter(|_| !self.is_direct_refused.load(Ordering::Relaxed))?;
        match read_aligned(file, buffer, offset) {
            // File systems differ in what they say. Whatever else is wrong, a read through the
            // cache finds too.
            Err(error) if !is_media_error(&error) => {
                self.is_direct_refused.store(true, Ordering::Relaxed);
                None
            }
            read => Some(read),
        }
    }

    /// Reads through the cache. What was not in it before is let go.
    fn read_through_cache(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Ok(count) = read_cached(&self.cached, buffer, offset) {
            return Ok(count);
        }
        let read = read_whole(buffer, |rest, done| self.cached.read_at(rest, offset + done as u64));
        // If the hint is refused, the cache has other things than it could have, and nothing is
        // wrong.
        let _ = rustix::fs::fadvise(
            &self.cached,
            offset,
            NonZeroU64::new(buffer.len() as u64),
            rustix::fs::Advice::DontNeed,
        );
        read
    }
}

impl File for UncachedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        if mode == ReadMode::Cached {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.read_direct(buffer, offset).unwrap_or_else(|| self.read_through_cache(buffer, offset))
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.cached.metadata()?.len())
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Reads the aligned blocks around a range, and copies the range out of them.
fn read_aligned(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let before = (offset % ALIGNMENT as u64) as usize;
    let wanted = (before + buffer.len()).next_multiple_of(ALIGNMENT);
    let mut room = vec![0; wanted + ALIGNMENT];
    let shift = room.as_ptr().align_offset(ALIGNMENT);
    let Some(blocks) = room.get_mut(shift..).and_then(|rest| rest.get_mut(..wanted)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut done = 0;
    while done < wanted {
        match file.read_at(&mut blocks[done..], offset - before as u64 + done as u64) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                // Only the end of the file ends a read within a block.
                if count % ALIGNMENT != 0 {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let count = done.saturating_sub(before).min(buffer.len());
    buffer[..count].copy_from_slice(&blocks[before..before + count]);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_refuses_such_reads_is_read_through_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, [7; 5_000]).unwrap();
        // A read of a directory fails with another error than that of an odd address.
        let (cached, direct) = (fs::File::open(&path).unwrap(), Some(fs::File::open(dir.path()).unwrap()));
        let file = UncachedFile { cached, direct, is_direct_refused: AtomicBool::new(false) };
        let mut buffer = [0; 5_000];
        for _ in 0..2 {
            buffer.fill(0);
            assert_eq!(file.read_at(&mut buffer, 0, ReadMode::Blocking).unwrap(), 5_000);
            assert_eq!(buffer, [7; 5_000]);
        }
        assert!(file.is_direct_refused.load(Ordering::Relaxed));
    }

    #[test]
    fn every_range_is_read_as_it_lies_on_the_disk() {
        // One directory is on a disk, where possible, and one in memory.
        for dir in [tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir()] {
            let Ok(dir) = dir else { continue };
            let path = dir.path().join("a");
            let content: Vec<u8> = (0..20_000u32).map(|n| (n * 7 % 251) as u8).collect();
            fs::write(&path, &content).unwrap();
            let file = UncachedFile::open(&path).unwrap();
            assert_eq!(file.length().unwrap(), 20_000);
            for (offset, length) in [(0, 1), (0, 4096), (1, 4095), (4095, 2), (4096, 8192), (19_999, 1), (3, 20_000)] {
                let expected = &content[offset..(offset + length).min(content.len())];
                let mut buffer = vec![0xEE; length];
                let count = file.read_at(&mut buffer, offset as u64, ReadMode::Blocking).unwrap();
                assert_eq!(&buffer[..count], expected, "{offset}, {length}");
                let mut buffer = vec![0xEE; length];
                let count = file.read_through_cache(&mut buffer, offset as u64).unwrap();
                assert_eq!(&buffer[..count], expected, "{offset}, {length}, through the cache");
            }
            let mut buffer = [0; 10];
            assert_eq!(file.read_at(&mut buffer, 20_000, ReadMode::Blocking).unwrap(), 0);
            assert_eq!(file.read_at(&mut buffer, 30_000, ReadMode::Blocking).unwrap(), 0);
        }
    }
}
