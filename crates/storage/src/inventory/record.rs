//! The stored form of an inventory.
//!
//! Layout: magic 8, version u16, small files u16 (1: `identity`, 2: `lost`, 4: `covered`; zero in
//! version 1), count of files u32, lineage u64, generation u64, index
//! seq u64, count of lost files u32, zero u32; for each file: id u32, flags u32 (1: sealed), salt
//! u64, length u64; for each lost file: id u32; CRC-32 of all that u32. All integers are
//! little-endian.

use super::small_files::SmallFiles;
use crate::error::StorageError;
use crate::journal::{Frame, le_at};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The file name of the copy in the directory of a store.
pub(crate) const RECORD_NAME: &str = "inventory";
const FRAME: Frame = Frame { magic: b"OMBAKINV", versions: 1..=2 };
const PREFIX_BYTES: usize = 48;
const FILE_BYTES: usize = 24;
const LOST_BYTES: usize = 4;
const SEALED: u32 = 1;

/// What a store has durably promised; see the parent module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    /// A random number that is drawn with the first inventory of a store. Both copies have the same
    /// one.
    pub(crate) lineage: u64,
    /// The number of changes so far.
    pub(crate) generation: u64,
    /// For leveldb: the tree has seen the journal at least up to this `seq`.
    pub(crate) index_seq: u64,
    /// The data files by id.
    pub(crate) files: BTreeMap<u32, PromisedFile>,
    /// Data files that the operator has accepted as missing or shortened. Hint files and ledgers
    /// may still describe them.
    pub(crate) lost_files: BTreeSet<u32>,
    /// The small files beside the data files.
    pub(crate) small_files: SmallFiles,
}

/// A data file that is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromisedFile {
    /// Distinguishes the file from another one with its name.
    pub(crate) salt: u64,
    /// The file has at least this many bytes.
    pub(crate) length: u64,
    /// Whether nothing is appended to it any more.
    pub(crate) is_sealed: bool,
}

impl Inventory {
    /// Whether both promise the same, apart from their generations.
    pub(crate) fn promises_the_same(&self, other: &Self) -> bool {
        let without_generation = |inventory: &Self| Self { generation: 0, ..inventory.clone() };
        without_generation(self) == without_generation(other)
    }

    /// The bytes of the file on disk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        FRAME.seal(|bytes| {
            bytes.extend_from_slice(&self.small_files.bits().to_le_bytes());
            bytes.extend_from_slice(&(self.files.len() as u32).to_le_bytes());
            for number in [self.lineage, self.generation, self.index_seq] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&(self.lost_files.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            for (id, file) in &self.files {
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&(if file.is_sealed { SEALED } else { 0 }).to_le_bytes());
                bytes.extend_from_slice(&file.salt.to_le_bytes());
                bytes.extend_from_slice(&file.length.to_le_bytes());
            }
            self.lost_files.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        })
    }

    /// None if the bytes are damaged. An error if a newer build wrote them.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        let Some(content) = FRAME.open(bytes, path)?.filter(|content| content.len() >= PREFIX_BYTES) else {
            return Ok(None);
        };
        let (count, lost_count) = (le_at!(u32, content, 12) as usize, le_at!(u32, content, 40) as usize);
        let listed = &content[PREFIX_BYTES..];
        let fits = count.checked_mul(FILE_BYTES).zip(lost_count.checked_mul(LOST_BYTES));
        let Some((file_bytes, _)) = fits.filter(|(files, lost)| files.checked_add(*lost) == Some(listed.len())) else {
            return Ok(None);
        };
        let (files, lost) = listed.split_at(file_bytes);
        let file_of = |file: &[u8]| {
            let promised = PromisedFile {
                salt: le_at!(u64, file, 8),
                length: le_at!(u64, file, 16),
                is_sealed: le_at!(u32, file, 4) & SEALED != 0,
            };
            (le_at!(u32, file, 0), promised)
        };
        let inventory = Self {
            lineage: le_at!(u64, content, 16),
            generation: le_at!(u64, content, 24),
            index_seq: le_at!(u64, content, 32),
            small_files: SmallFiles::from_bits(le_at!(u16, content, 10)),
            files: files.chunks_exact(FILE_BYTES).map(file_of).collect(),
            lost_files: lost.chunks_exact(LOST_BYTES).map(|id| le_at!(u32, id, 0)).collect(),
        };
        let is_whole = inventory.files.len() == count && inventory.lost_files.len() == lost_count;
        Ok(Some(inventory).filter(|_| is_whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Inventory {
        let sealed = PromisedFile { salt: 0x1122_3344_5566_7788, length: 4000, is_sealed: true };
        let active = PromisedFile { salt: 7, length: 99, is_sealed: false };
        Inventory {
            lineage: 0x0102_0304_0506_0708,
            generation: 5,
            index_seq: 9,
            files: BTreeMap::from([(1, sealed), (3, active)]),
            lost_files: BTreeSet::from([2]),
            small_files: SmallFiles::from_bits(1),
        }
    }

    #[test]
    fn an_inventory_comes_back_and_damage_shows() {
        let (inventory, path) = (example(), Path::new("inventory"));
        let bytes = inventory.encode();
        assert_eq!(Inventory::decode(&bytes, path).unwrap(), Some(inventory));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Inventory::decode(&bad, path).unwrap(), None, "bit {bit}");
        }
    }

    /// Bytes as version 1 wrote them.
    #[test]
    fn version_1_is_read_and_version_2_is_written() {
        let text = "OMBAKINV\x01\0\0\0\x02\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\x05\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x01\0\0\0\
            \0\0\0\0\x01\0\0\0\x01\0\0\0";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
        bytes.extend_from_slice(&4000_u64.to_le_bytes());
        bytes.extend_from_slice(b"\x03\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x63\0\0\0\0\0\0\0\x02\0\0\0");
        let (mut version_1, mut version_2) = (bytes.clone(), bytes);
        version_1.extend_from_slice(&crc32fast::hash(&version_1).to_le_bytes());
        let without_small_files = Inventory { small_files: SmallFiles::default(), ..example() };
        assert_eq!(Inventory::decode(&version_1, Path::new("inventory")).unwrap(), Some(without_small_files));
        (version_2[8], version_2[10]) = (2, 1);
        version_2.extend_from_slice(&crc32fast::hash(&version_2).to_le_bytes());
        assert_eq!(example().encode(), version_2);
    }

    #[test]
    fn a_newer_inventory_is_refused_by_name() {
        let mut newer = example().encode();
        newer.truncate(newer.len() - 4);
        newer[8] = 9;
        newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
        let text = Inventory::decode(&newer, Path::new("/0/inventory")).unwrap_err().to_string();
        assert!(text.contains("/0/inventory") && text.contains("format 9"), "{text}");
    }
}
