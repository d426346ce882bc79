//! A file of which some sectors cannot be read.

use crate::backend::ReadMode;
use crate::fs::File;
use std::io;
use std::sync::Arc;

/// The unit in which unreadable bytes are skipped.
const SECTOR_BYTES: usize = 4096;

/// Reads what the disk can read, and returns zeros for the rest. A checksum then reports the
/// damage.
pub(super) struct ZeroFillingFile(pub(super) Arc<dyn File>);

impl File for ZeroFillingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        if let Ok(read) = self.0.read_at(buffer, offset, mode) {
            return Ok(read);
        }
        let end = self.0.length()?.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut at = 0;
        while at < end {
            let to_boundary = SECTOR_BYTES - (offset as usize + at) % SECTOR_BYTES;
            let stop = end.min(at + to_boundary);
            if !matches!(self.0.read_at(&mut buffer[at..stop], offset + at as u64, mode), Ok(read) if read == stop - at)
            {
                buffer[at..stop].fill(0);
            }
            at = stop;
        }
        Ok(end)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::{Call, FaultyFs};
    use crate::fs::{FileSystem, OpenMode};
    use std::ops::Range;
    use std::path::Path;

    /// A file of the given length, full of sevens, of which reads of a part fail.
    struct FileWithBadPart {
        length: u64,
        bad: Range<u64>,
    }

    impl File for FileWithBadPart {
        fn read_at(&self, buffer: &mut [u8], offset: u64, _mode: ReadMode) -> io::Result<usize> {
            let end = self.length.min(offset + buffer.len() as u64);
            if offset < self.bad.end && self.bad.start < end {
                return Err(io::Error::other("a bad sector"));
            }
            let read = end.saturating_sub(offset) as usize;
            buffer[..read].fill(7);
            Ok(read)
        }

        fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
            Err(io::ErrorKind::PermissionDenied.into())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.length)
        }

        fn truncate(&self, _length: u64) -> io::Result<()> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    #[test]
    fn a_bad_sector_reads_as_zeros_and_the_rest_as_it_is() {
        // One bad byte makes its whole sector unreadable: 8192 to 12288.
        let file = ZeroFillingFile(Arc::new(FileWithBadPart { length: 20_000, bad: 9000..9001 }));
        let mut buffer = [1; 15_000];
        assert_eq!(file.read_at(&mut buffer, 5000, ReadMode::Blocking).unwrap(), 15_000);
        let expected = |at: usize| if (8192..12_288).contains(&(at + 5000)) { 0 } else { 7 };
        assert!(buffer.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
    }

    #[test]
    fn a_read_that_fails_only_once_loses_nothing() {
        let fs = FaultyFs::new(1);
        let inner = fs.open(Path::new("/a"), OpenMode::CreateNew).unwrap();
        inner.write_at(&[7; 20_000], 0).unwrap();
        let file = ZeroFillingFile(inner);
        let mut buffer = [1; 15_000];
        // The read of the whole range fails, and the reads of single sectors succeed.
        fs.fail_at(Call::Read, 1);
        assert_eq!(file.read_at(&mut buffer, 10_000, ReadMode::Blocking).unwrap(), 10_000);
        assert!(buffer[..10_000].iter().all(|byte| *byte == 7));
        assert_eq!(file.read_at(&mut buffer, 30_000, ReadMode::Blocking).unwrap(), 0);
    }
}
