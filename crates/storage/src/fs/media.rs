//! Errors of the medium: the disk does not give back bytes that were written to it.
//!
//! What it is: which errors of the operating system say so, and the one retry that a read gets.
//!
//! What it is not: it does not decide what such an error means for a store.

use super::File;
use crate::backend::ReadMode;
use rustix::io::Errno;
use std::io;

/// The number of bytes that a disk usually loses together. Offsets of lost bytes are given in
/// multiples of it.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The errors that say that these bytes cannot be read, while the file and its disk are there:
///
/// * `EIO`: the usual one, and the only one of a read through the page cache;
/// * `ENODATA`, `EILSEQ`: what the block layer of Linux makes of a medium error and of a failed
///   check of protection information;
/// * `EBADMSG`, `EUCLEAN`: a file system found a wrong checksum, or damage of its own structures;
/// * `EHWPOISON`: the memory of the page cache is damaged.
///
/// Errors that say that the disk is gone or out of reach (`ENXIO`, `ENODEV`, `ESTALE`, `ETIMEDOUT`,
/// `ENOLINK`) and that the process lacks something (`EMFILE`, `ENOMEM`) are none: they say nothing
/// about these bytes.
#[cfg(target_os = "linux")]
const MEDIA_ERRORS: &[Errno] = &[Errno::IO, Errno::NODATA, Errno::ILSEQ, Errno::BADMSG, Errno::UCLEAN, Errno::HWPOISON];
#[cfg(not(target_os = "linux"))]
const MEDIA_ERRORS: &[Errno] = &[Errno::IO, Errno::BADMSG];

/// Whether an error of a read says that the medium does not give back the bytes.
pub fn is_media_error(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| MEDIA_ERRORS.iter().any(|errno| errno.raw_os_error() == code))
}

/// Reads like [`File::read_at`]. After a media error, or at an end of the file that the caller does
/// not expect, it reads once more: a controller may get the bytes at the second try. A read that
/// must not wait for the disk answers `WouldBlock` instead.
pub(crate) fn read_at_twice(file: &dyn File, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
    let wanted = buffer.len();
    match (file.read_at(buffer, offset, mode), mode) {
        (Ok(count), _) if count == wanted => Ok(count),
        (Err(error), _) if !is_media_error(&error) => Err(error),
        (Ok(_) | Err(_), ReadMode::Cached) => Err(io::ErrorKind::WouldBlock.into()),
        (Ok(_) | Err(_), ReadMode::Blocking) => file.read_at(buffer, offset, mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;
    use crate::fs::{FileSystem, OpenMode};
    use std::path::Path;

    #[test]
    fn only_errors_about_the_bytes_themselves_are_media_errors() {
        let is_media = |errno: Errno| is_media_error(&io::Error::from(errno));
        assert!([Errno::IO, Errno::BADMSG].into_iter().all(is_media));
        #[cfg(target_os = "linux")]
        assert!([Errno::NODATA, Errno::ILSEQ, Errno::UCLEAN, Errno::HWPOISON].into_iter().all(is_media));
        let others = [Errno::NXIO, Errno::NODEV, Errno::STALE, Errno::TIMEDOUT, Errno::MFILE, Errno::NOMEM];
        assert!(!others.into_iter().any(is_media));
        assert!(
            !is_media_error(&io::Error::other("no number")) && !is_media_error(&io::ErrorKind::UnexpectedEof.into())
        );
    }

    #[test]
    fn a_read_is_tried_twice_and_a_read_that_must_not_wait_is_handed_on() {
        let fs = FaultyFs::new(1);
        let path = Path::new("/a");
        let file = fs.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 10_000], 0).unwrap();
        let mut buffer = [0; 100];
        let read = |buffer: &mut [u8], mode| read_at_twice(&*file, buffer, 50, mode);
        fs.fail_next_read_as_media_error();
        assert_eq!(read(&mut buffer, ReadMode::Blocking).unwrap(), 100, "the second try succeeds");
        fs.end_read_early_at(1);
        assert_eq!(read(&mut buffer, ReadMode::Blocking).unwrap(), 100, "so does that after a false end");
        fs.set_unreadable(path, 100..101).unwrap();
        let error = read(&mut buffer, ReadMode::Blocking).unwrap_err();
        assert!(is_media_error(&error), "{error}");
        let error = read(&mut buffer, ReadMode::Cached).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
