//! A note of what a store has lost although its files do not show it any more: damage that a repair
//! removed from them, or losses that the source of the content had.
//!
//! Layout of the file `lost` in a partition's directory: magic 8, version u16, zero u16, count of
//! places u32, unlisted losses u64, place u64 each, CRC-32 of all that u32. All integers are
//! little-endian.
//!
//! Invariant: the note only grows. A note that cannot be read counts as one loss, because it is
//! there only if something was lost.

use super::format::le_at;
use super::small_file::{Frame, read_small_file};
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, replace_file};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The name of the note in a partition's directory.
pub(crate) const LOST_NOTE: &str = "lost";
const FRAME: Frame = Frame { magic: b"OMBAKLST", versions: 1..=1 };
const PREFIX_BYTES: usize = 24;
/// The most places that are listed one by one; further ones are only counted.
const PLACES_MAX: usize = 10_000;

/// The place of a data file that is missing.
pub(crate) fn missing_file(id: u32) -> u64 {
    place_fingerprint("missing", u64::from(id))
}

/// The fingerprint of a place.
pub(crate) fn place_fingerprint(what: &str, offset: u64) -> u64 {
    xxh3_64(format!("{what} {offset}").as_bytes())
}

/// The note of a store's losses; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostNote {
    /// Fingerprints of places: a place that is noted twice counts as one loss.
    places: BTreeSet<u64>,
    unlisted_losses: u64,
    /// Whether the file was there and could not be read.
    is_damaged: bool,
}

impl LostNote {
    /// Reads the note in a partition's directory; an empty one if there is none.
    pub(crate) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self, StorageError> {
        let path = dir.join(LOST_NOTE);
        let Some(bytes) = read_small_file(fs, &path)? else { return Ok(Self::default()) };
        Ok(Self::decode(&bytes, &path)?.unwrap_or_else(|| {
            tracing::error!(file = %path.display(), "the note of lost data is damaged: it counts as one loss");
            Self { unlisted_losses: 1, is_damaged: true, ..Self::default() }
        }))
    }

    /// Replaces the note. It is on disk when this returns. The directory must exist.
    pub(crate) fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
        let path = dir.join(LOST_NOTE);
        replace_file(fs, &path, &self.encode()).map_err(|source| io_error("write", &path, source))
    }

    /// The number of losses in the note.
    pub(crate) fn count(&self) -> u64 {
        self.unlisted_losses.saturating_add(self.places.len() as u64)
    }

    /// The path of a partition's note.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join(LOST_NOTE)
    }

    /// Whether the file was there and could not be read.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Adds a place by its fingerprint, once.
    pub(crate) fn add_place(&mut self, place: u64) {
        if self.places.len() < PLACES_MAX {
            self.places.insert(place);
        } else if !self.places.contains(&place) {
            self.unlisted_losses = self.unlisted_losses.saturating_add(1);
        }
    }

    /// Adds losses that have no place in this store's files.
    pub(crate) fn add_unlisted(&mut self, count: u64) {
        self.unlisted_losses = self.unlisted_losses.saturating_add(count);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        FRAME.seal(|bytes| {
            bytes.extend_from_slice(&[0; 2]);
            bytes.extend_from_slice(&(self.places.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&self.unlisted_losses.to_le_bytes());
            self.places.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
        })
    }

    /// None if the note is damaged.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        let Some(content) = FRAME.open(bytes, path)?.filter(|content| content.len() >= PREFIX_BYTES) else {
            return Ok(None);
        };
        let places = content[PREFIX_BYTES..].chunks_exact(8).map(|place| le_at!(u64, place, 0)).collect();
        let note = Self { places, unlisted_losses: le_at!(u64, content, 16), is_damaged: false };
        Ok(Some(note).filter(|note| PREFIX_BYTES + note.places.len() * 8 == content.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::FaultyFs;

    #[test]
    fn notes_come_back_and_damage_counts() {
        let fs = FaultyFs::new(1);
        let dir = Path::new("/0");
        fs.create_dir_all(dir).unwrap();
        assert_eq!(LostNote::read(&*fs, dir).unwrap().count(), 0);
        let mut note = LostNote::default();
        note.add_place(7);
        note.add_place(7);
        note.add_place(8);
        note.add_unlisted(3);
        note.write(&*fs, dir).unwrap();
        note.write(&*fs, dir).unwrap();
        assert_eq!((LostNote::read(&*fs, dir).unwrap(), note.count()), (note.clone(), 5));
        let path = dir.join(LOST_NOTE);
        for bit in 0..fs.length(&path).unwrap() * 8 {
            fs.flip_bit(&path, bit).unwrap();
            let damaged = LostNote::read(&*fs, dir).unwrap();
            assert!(damaged.is_damaged() && damaged.count() == 1, "bit {bit}");
            fs.flip_bit(&path, bit).unwrap();
        }
    }

    /// Bytes as version 1 wrote them.
    #[test]
    fn version_1_is_read() {
        let bytes = b"OMBAKLST\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\
            \x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00u\x0c=\xd4";
        let mut note = LostNote::default();
        note.add_place(8);
        note.add_place(7);
        note.add_unlisted(3);
        assert_eq!(LostNote::decode(bytes, Path::new("lost")).unwrap(), Some(note.clone()));
        assert_eq!(note.encode(), bytes);
    }

    #[test]
    fn more_places_than_fit_are_counted() {
        let mut note = LostNote::default();
        (0..PLACES_MAX as u64 + 5).for_each(|place| note.add_place(place));
        assert_eq!((note.places.len(), note.count()), (PLACES_MAX, PLACES_MAX as u64 + 5));
    }

    #[test]
    fn a_newer_note_is_refused_by_name() {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/0"));
        fs.create_dir_all(dir).unwrap();
        let mut newer = LostNote::default().encode()[..PREFIX_BYTES].to_vec();
        newer[8] = 9;
        newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
        replace_file(&*fs, &LostNote::path(dir), &newer).unwrap();
        let text = LostNote::read(&*fs, dir).unwrap_err().to_string();
        assert!(text.contains("/0/lost") && text.contains("format 9"), "{text}");
    }
}
