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
    use std::path::Path;

    #[test]
    fn only_the_bad_sector_is_missing() {
        let fs = FaultyFs::new(1);
        let file = fs.open(Path::new("/a"), OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 20_000], 0).unwrap();
        let patient = ZeroFillingFile(file);
        let mut buffer = [1; 15_000];
        // The read of the whole range fails, and the reads of single sectors succeed.
        fs.fail_at(Call::Read, 1);
        assert_eq!(patient.read_at(&mut buffer, 10_000, ReadMode::Blocking).unwrap(), 10_000);
        assert!(buffer[..10_000].iter().all(|byte| *byte == 7));
        assert_eq!(patient.read_at(&mut buffer, 30_000, ReadMode::Blocking).unwrap(), 0);
    }
}
