//! Writes files as a tar archive (POSIX.1-1988, ustar), compressed with gzip.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

const BLOCK_BYTES: usize = 512;
/// The longest path that a header holds without its prefix field.
const PATH_BYTES_MAX: usize = 100;
/// The permissions of the archive, and of the files in it.
const MODE: u32 = 0o600;

/// Packs files into the bytes of an archive. `time_secs` is their time, in Unix seconds. A path has
/// at most 100 bytes.
pub(super) fn pack<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>, time_secs: u64) -> io::Result<Vec<u8>> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::default());
    for (path, content) in files {
        archive.write_all(&header(path, content.len(), time_secs)?)?;
        archive.write_all(content)?;
        archive.write_all(&vec![0; content.len().next_multiple_of(BLOCK_BYTES) - content.len()])?;
    }
    archive.write_all(&[0; 2 * BLOCK_BYTES])?;
    archive.finish()
}

fn header(path: &str, len: usize, time_secs: u64) -> io::Result<[u8; BLOCK_BYTES]> {
    if path.len() > PATH_BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("{path}: too long for the archive")));
    }
    let mut header = [0; BLOCK_BYTES];
    let mut field = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    field(0, path.as_bytes());
    field(100, format!("{MODE:07o}").as_bytes());
    field(108, b"0000000");
    field(116, b"0000000");
    field(124, format!("{len:011o}").as_bytes());
    field(136, format!("{time_secs:011o}").as_bytes());
    // The checksum is that of a header with blanks in its place.
    field(148, b"        ");
    field(156, b"0");
    field(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Writes a new file that only its owner may read. A file that exists stays as it is, and a file
/// that cannot be written completely is removed.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    // The mode given at creation was reduced by the umask of the process.
    let written = file
        .set_permissions(Permissions::from_mode(MODE))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // The first error says more than one of the removal.
        let _ = std::fs::remove_file(path);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_header_has_its_fields_and_its_checksum() {
        let packed = pack([("d/a.txt", &b"hello"[..]), ("b", &b""[..])].into_iter(), 8).expect("packs");
        let mut tar = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut tar).expect("unpacks");
        assert_eq!(tar.len(), 5 * BLOCK_BYTES);
        assert_eq!(
            (&tar[..8], &tar[124..136], &tar[136..148]),
            (&b"d/a.txt\0"[..], &b"00000000005\0"[..], &b"00000000010\0"[..])
        );
        assert_eq!(&tar[512..518], b"hello\0");
        let blank: u32 = tar[..148].iter().chain(&tar[156..512]).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        assert_eq!(&tar[148..154], format!("{blank:06o}").as_bytes());
        assert!(pack([(&*"x".repeat(101), &b""[..])].into_iter(), 0).is_err());
    }

    #[test]
    fn the_file_is_new_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("bundle");
        write_new(&path, b"one").expect("new");
        assert_eq!(path.metadata().expect("there").mode() & 0o777, MODE);
        assert_eq!(write_new(&path, b"two").map_err(|e| e.kind()), Err(ErrorKind::AlreadyExists));
        assert_eq!(std::fs::read(&path).expect("reads"), b"one");
    }
}
