//! Which storage tombstones merges keep for consumers of the feed, and which they have dropped.
//!
//! Layout of the file `feed` in a partition's directory: magic 8, version u16, zero u16, floor u64,
//! boot u64, CRC-32 of all that u32. All integers are little-endian. The file exists once the store
//! has had a consumer. It is no part of the inventory: without it, or if it is damaged, every
//! earlier cursor is lost.
//!
//! The boot number finds runs of earlier versions of this program, which do not know the file. If
//! such a run came in between, it may have dropped tombstones.

use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, is_media_error, replace_file};
use crate::journal::format::le_at;
use crate::journal::small_file::{Frame, read_small_file};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The file name.
pub(in crate::journal) const NAME: &str = "feed";
const FRAME: Frame = Frame { magic: b"OMBAKFED", versions: 1..=1 };
const CONTENT_BYTES: usize = 28;

/// What merges keep, and what they have dropped; see the module.
pub(in crate::journal) struct Retention {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    /// The last append that this start found.
    opened_seq: u64,
    /// Tombstones with a larger `seq` are kept; `u64::MAX`: none is.
    keep_after: AtomicU64,
    /// No tombstone with a larger `seq` was dropped.
    floor: AtomicU64,
    /// The boot number in the file; none if there is no file.
    recorded_boot: Mutex<Option<u64>>,
}

impl Retention {
    /// What the file in the directory of a store says. `boot` is the number of this start.
    /// `has_file`: the directory has the file.
    pub(in crate::journal) fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        boot: u64,
        opened_seq: u64,
        has_file: bool,
    ) -> Result<Self, StorageError> {
        let path = dir.join(NAME);
        let found = match has_file.then(|| read_small_file(&*fs, &path)) {
            // The store itself does not need the file, so its start does not fail.
            Some(Err(StorageError::Io { source, .. })) if is_media_error(&source) => None,
            found => found.transpose()?.flatten(),
        };
        let recorded = found.map(|bytes| decode(&bytes, &path)).transpose()?.flatten();
        let floor = match recorded {
            Some((floor, last_boot)) if last_boot + 1 >= boot => floor,
            // Earlier runs may have dropped any tombstone.
            _ => opened_seq,
        };
        Ok(Self {
            fs,
            path,
            opened_seq,
            keep_after: AtomicU64::new(u64::MAX),
            floor: AtomicU64::new(floor),
            recorded_boot: Mutex::new(recorded.map(|(_, last_boot)| last_boot)),
        })
    }

    pub(super) fn opened_seq(&self) -> u64 {
        self.opened_seq
    }

    /// No tombstone with a larger `seq` was dropped.
    pub(super) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Whether a merge keeps a tombstone with this `seq` for consumers.
    pub(in crate::journal) fn keeps(&self, seq: u64) -> bool {
        seq > self.keep_after.load(Ordering::Acquire)
    }

    /// Keeps tombstones after `seq` from now on; none: keeps none. `boot` is the number of this
    /// start. The first call of a run is on disk when this returns.
    pub(super) fn keep_after(&self, seq: Option<u64>, boot: u64) -> Result<(), StorageError> {
        self.keep_after.store(seq.unwrap_or(u64::MAX), Ordering::Release);
        let mut recorded = self.recorded_boot.lock();
        if seq.is_none() || boot == 0 || *recorded == Some(boot) {
            return Ok(());
        }
        self.write(self.floor(), boot)?;
        *recorded = Some(boot);
        Ok(())
    }

    /// Called when the first write of this start is about to be done: what was said before is on
    /// disk when this returns.
    pub(in crate::journal) fn begin(&self, boot: u64) -> Result<(), StorageError> {
        let after = self.keep_after.load(Ordering::Acquire);
        if after == u64::MAX { Ok(()) } else { self.keep_after(Some(after), boot) }
    }

    /// Notes that a merge is about to drop tombstones up to `seq`. If the store has had consumers,
    /// this is on disk when it returns.
    pub(in crate::journal) fn raise_floor(&self, seq: u64, boot: u64) -> Result<(), StorageError> {
        if seq <= self.floor() {
            return Ok(());
        }
        let mut recorded = self.recorded_boot.lock();
        if recorded.is_some() {
            self.write(seq, boot)?;
            *recorded = Some(boot);
        }
        self.floor.fetch_max(seq, Ordering::AcqRel);
        Ok(())
    }

    fn write(&self, floor: u64, boot: u64) -> Result<(), StorageError> {
        replace_file(&*self.fs, &self.path, &encode(floor, boot)).map_err(|e| io_error("write", &self.path, e))
    }
}

fn encode(floor: u64, boot: u64) -> Vec<u8> {
    FRAME.seal(|bytes| {
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&floor.to_le_bytes());
        bytes.extend_from_slice(&boot.to_le_bytes());
    })
}

/// The floor and the boot number; none if the content is damaged.
fn decode(bytes: &[u8], path: &Path) -> Result<Option<(u64, u64)>, StorageError> {
    let content = FRAME.open(bytes, path)?.filter(|content| content.len() == CONTENT_BYTES);
    Ok(content.map(|content| (le_at!(u64, content, 12), le_at!(u64, content, 20))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;

    const DIR: &str = "/0";

    fn fs() -> Arc<FaultyFs> {
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new(DIR)).unwrap();
        fs
    }

    fn open(fs: &Arc<FaultyFs>, boot: u64, opened_seq: u64) -> Retention {
        let has_file = fs.list(Path::new(DIR)).unwrap().contains(&NAME.to_owned());
        Retention::open(fs.clone(), Path::new(DIR), boot, opened_seq, has_file).unwrap()
    }

    #[test]
    fn the_floor_is_recorded_once_there_was_a_consumer() {
        let fs = fs();
        let first = open(&fs, 1, 0);
        first.raise_floor(5, 1).unwrap();
        assert_eq!(first.floor(), 5);
        assert!(!fs.list(Path::new(DIR)).unwrap().contains(&NAME.to_owned()), "nobody needs it");
        let second = open(&fs, 2, 20);
        assert_eq!((second.floor(), second.keeps(21)), (20, false), "nothing is known of the run before");
        second.keep_after(Some(20), 2).unwrap();
        assert!(second.keeps(21) && !second.keeps(20));
        second.raise_floor(22, 2).unwrap();
        let third = open(&fs, 3, 30);
        assert_eq!((third.floor(), third.keeps(31)), (22, false));
        third.raise_floor(25, 3).unwrap();
        assert_eq!(open(&fs, 4, 40).floor(), 25);
        assert_eq!(open(&fs, 5, 50).floor(), 50, "a run of another version came in between");
    }

    #[test]
    fn without_a_readable_file_every_earlier_cursor_is_lost() {
        let fs = fs();
        open(&fs, 1, 0).keep_after(Some(0), 1).unwrap();
        assert_eq!(open(&fs, 2, 9).floor(), 0);
        let path = Path::new(DIR).join(NAME);
        for bit in 0..fs.length(&path).unwrap() * 8 {
            fs.flip_bit(&path, bit).unwrap();
            assert_eq!(open(&fs, 2, 9).floor(), 9, "bit {bit}");
            fs.flip_bit(&path, bit).unwrap();
        }
        fs.set_media_errors(u64::MAX);
        assert_eq!(open(&fs, 2, 9).floor(), 9, "the disk does not give it back");
        fs.set_media_errors(0);
        assert_eq!(open(&fs, 2, 9).floor(), 0);
    }

    /// Bytes as version 1 writes them.
    #[test]
    fn the_bytes_of_this_version_stay() {
        let bytes = encode(0x0102_0304_0506_0708, 9);
        assert_eq!(bytes[..28], *b"OMBAKFED\x01\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x09\0\0\0\0\0\0\0");
        assert_eq!(decode(&bytes, Path::new("feed")).unwrap(), Some((0x0102_0304_0506_0708, 9)));
    }
}
