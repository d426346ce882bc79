//! A source of bytes with random access: a file, or memory in tests and fuzz targets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A source of bytes with random access.
pub trait Source {
    /// Fills `buffer` from `offset`; an error if there are not enough bytes.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Source for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

impl Source for &[u8] {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let part = usize::try_from(offset)
            .ok()
            .and_then(|at| self.get(at..))
            .and_then(|rest| rest.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}
