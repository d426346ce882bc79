//! The history of a store on disk: the file `openings` in its directory.
//!
//! Layout: the frame of small files with magic `OMBAKOPN`, then 6 bytes of zeros, the id of the
//! store u64, and for each opening its end and its base (u64 each). All integers are little-endian.
//!
//! An opening is written before the first append of its run. Two kinds of openings are not written,
//! so that the places last for the others. The next opening after a run without appends finds the
//! same end, and says the same. After an orderly close nothing is missing: no number in the gap was
//! ever given.
//!
//! Invariants:
//! * The file names its store. In a copied directory, and in one that was restored, it is the
//!   history of another store and does not count.
//! * The identity file tells whether there is a history. If the history is missing then, or
//!   damaged, all earlier numbers count as forgotten: marks about them are void, and are proved
//!   again. Taken for an empty one, it would let marks about lost numbers hold.

use super::format::le_at;
use super::small_file::{Frame, read_small_file};
use crate::error::StorageError;
use crate::fs::{FileSystem, replace_file};
use crate::openings::Openings;
use std::io;
use std::path::Path;

/// The file name.
pub(super) const NAME: &str = "openings";
const FRAME: Frame = Frame { magic: b"OMBAKOPN", versions: 1..=1 };
const ID_AT: usize = 16;
const PAIRS_AT: usize = 24;
const PAIR_BYTES: usize = 16;

/// What a start found of the history of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundOpenings {
    /// There is no file, or that of another store.
    None,
    /// A file that cannot be read as a history.
    Damaged,
    /// The history.
    Some(Openings),
}

/// Reads the history of a store. A file of a newer build is an error.
pub(super) fn read(fs: &dyn FileSystem, dir: &Path, store_id: u64) -> Result<FoundOpenings, StorageError> {
    let path = dir.join(NAME);
    let Some(bytes) = read_small_file(fs, &path)? else { return Ok(FoundOpenings::None) };
    Ok(match decode(&bytes, &path)? {
        None => FoundOpenings::Damaged,
        Some((id, _)) if id != store_id => FoundOpenings::None,
        Some((_, openings)) => FoundOpenings::Some(openings),
    })
}

/// Writes the history of a store. It is on disk when this returns.
pub(super) fn write(fs: &dyn FileSystem, dir: &Path, store_id: u64, openings: &Openings) -> io::Result<()> {
    replace_file(fs, &dir.join(NAME), &encode(store_id, openings))
}

fn encode(store_id: u64, openings: &Openings) -> Vec<u8> {
    FRAME.seal(|bytes| {
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&store_id.to_le_bytes());
        for (end, base) in openings.pairs() {
            bytes.extend_from_slice(&end.to_le_bytes());
            bytes.extend_from_slice(&base.to_le_bytes());
        }
    })
}

/// None if the content is damaged.
fn decode(bytes: &[u8], path: &Path) -> Result<Option<(u64, Openings)>, StorageError> {
    let Some(content) = FRAME.open(bytes, path)? else { return Ok(None) };
    let has_whole_pairs = content.len() >= PAIRS_AT && (content.len() - PAIRS_AT).is_multiple_of(PAIR_BYTES);
    if !has_whole_pairs {
        return Ok(None);
    }
    let pairs = content[PAIRS_AT..].chunks_exact(PAIR_BYTES).map(|pair| (le_at!(u64, pair, 0), le_at!(u64, pair, 8)));
    Ok(Openings::from_pairs(pairs).map(|openings| (le_at!(u64, content, ID_AT), openings)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;

    fn history() -> Openings {
        Openings::from_pairs([(9, 9), (20, 70_000), (70_003, 140_000)]).unwrap()
    }

    /// The file as the first build with it has written it.
    #[test]
    fn the_format_is_frozen() {
        let mut frozen = b"OMBAKOPN\x01\0\0\0\0\0\0\0".to_vec();
        for number in [7u64, 9, 9, 20, 70_000, 70_003, 140_000] {
            frozen.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&frozen);
        frozen.extend_from_slice(&crc.to_le_bytes());
        assert_eq!(encode(7, &history()), frozen);
        assert_eq!(decode(&frozen, Path::new("f")).unwrap(), Some((7, history())));
    }

    #[test]
    fn every_bit_is_checked_and_a_newer_file_is_refused() {
        let bytes = encode(7, &history());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bad, Path::new("f")).unwrap(), None, "bit {bit}");
        }
        (0..bytes.len()).for_each(|length| assert_eq!(decode(&bytes[..length], Path::new("f")).unwrap(), None));
        let mut newer = bytes[..bytes.len() - 4].to_vec();
        newer[8] = 2;
        newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
        assert!(decode(&newer, Path::new("f")).unwrap_err().to_string().contains("format 2"));
    }

    #[test]
    fn the_history_of_another_store_does_not_count() {
        let fs = FaultyFs::new(1);
        let dir = Path::new("/store");
        fs.create_dir_all(dir).unwrap();
        assert_eq!(read(&*fs, dir, 7).unwrap(), FoundOpenings::None);
        write(&*fs, dir, 7, &history()).unwrap();
        assert_eq!(read(&*fs, dir, 7).unwrap(), FoundOpenings::Some(history()));
        assert_eq!(read(&*fs, dir, 8).unwrap(), FoundOpenings::None);
        fs.flip_bit(&dir.join(NAME), 200).unwrap();
        assert_eq!(read(&*fs, dir, 7).unwrap(), FoundOpenings::Damaged);
    }
}
