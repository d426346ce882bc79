//! The bytes of saved sums.
//!
//! Layout: magic 8, format u16, version of the key hash u16, partition u32, print of the class map
//! u64, print of the choice of backends u64, the run (count of stores u32, for each its id and boot
//! u64; last seq, keys, lost ranges u64), in format 2 the seq up to which versions are set aside
//! u64, count of classes u32, the classes, and the XXH3 hash of all that u64. A class: n u32, then
//! three lists: the ranges, those of what expires, the slots. A list: its count u32, then for each
//! sum that is not of nothing its number u32, versions u64, sum u64. All integers are
//! little-endian.

use super::by_range::ByRange;
use super::mix::NOTHING;
use super::plain::{RANGES, Sums};
use super::run::StoreRun;
use crate::replica::RangeSum;
use ombak_storage::KEY_HASH_VERSION;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"OMBAKSUM";
/// The format of a file of a store of which nothing is set aside. A file of a format that is
/// unknown is not read: the sums are made anew.
const FORMAT: u16 = 1;
/// The format of a file that says what is set aside.
const FORMAT_WITH_SET_ASIDE: u16 = 2;

/// The sums of a partition at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) partition: u32,
    /// By which rules keys are in classes.
    pub(super) class_print: u64,
    /// By which rules buckets are on backends.
    pub(super) choice_print: u64,
    pub(super) run: StoreRun,
    /// Versions up to this seq are set aside, and not in the sums.
    pub(super) set_aside_to: u64,
    /// The sums of each n.
    pub(super) classes: Vec<(u32, Sums)>,
}

impl Saved {
    pub(super) fn encode(&self) -> Vec<u8> {
        let has_set_aside = self.set_aside_to > 0;
        let format = if has_set_aside { FORMAT_WITH_SET_ASIDE } else { FORMAT };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&format.to_le_bytes());
        bytes.extend_from_slice(&KEY_HASH_VERSION.to_le_bytes());
        put_u32(&mut bytes, self.partition);
        put_u64(&mut bytes, self.class_print);
        put_u64(&mut bytes, self.choice_print);
        put_count(&mut bytes, self.run.stores.len());
        for (id, boot) in &self.run.stores {
            put_u64(&mut bytes, *id);
            put_u64(&mut bytes, *boot);
        }
        [self.run.last_seq, self.run.keys, self.run.lost_ranges].iter().for_each(|n| put_u64(&mut bytes, *n));
        if has_set_aside {
            put_u64(&mut bytes, self.set_aside_to);
        }
        put_count(&mut bytes, self.classes.len());
        for (n, sums) in &self.classes {
            put_u32(&mut bytes, *n);
            put_list(&mut bytes, sums.all.iter());
            put_list(&mut bytes, sums.expiring.iter());
            put_list(&mut bytes, sums.slots.iter().map(|(slot, sum)| (*slot, *sum)));
        }
        let hash = xxh3_64(&bytes);
        put_u64(&mut bytes, hash);
        bytes
    }

    /// None if the bytes are damaged or of another format.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, hash) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*hash) {
            return None;
        }
        let mut rest = Rest(content.strip_prefix(MAGIC)?);
        let (format, key_hash_version) = (rest.u16()?, rest.u16()?);
        if !matches!(format, FORMAT | FORMAT_WITH_SET_ASIDE) || key_hash_version != KEY_HASH_VERSION {
            return None;
        }
        let (partition, class_print, choice_print) = (rest.u32()?, rest.u64()?, rest.u64()?);
        let mut stores = Vec::new();
        for _ in 0..rest.u32()? {
            stores.push((rest.u64()?, rest.u64()?));
        }
        let run = StoreRun { stores, last_seq: rest.u64()?, keys: rest.u64()?, lost_ranges: rest.u64()? };
        let set_aside_to = if format == FORMAT_WITH_SET_ASIDE { rest.u64()? } else { 0 };
        let mut classes = Vec::new();
        for _ in 0..rest.u32()? {
            let n = rest.u32()?;
            let (all, expiring) = (ranges(&rest.list()?)?, ranges(&rest.list()?)?);
            classes.push((n, Sums { all, expiring, slots: rest.list()? }));
        }
        rest.0.is_empty().then_some(Self { partition, class_print, choice_print, run, set_aside_to, classes })
    }
}

fn put_u32(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_u64(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put_u32(bytes, u32::try_from(count).unwrap_or(u32::MAX));
}

fn put_list(bytes: &mut Vec<u8>, sums: impl Iterator<Item = (u32, RangeSum)>) {
    let filled: Vec<_> = sums.filter(|(_, sum)| *sum != NOTHING).collect();
    put_count(bytes, filled.len());
    for (number, sum) in filled {
        put_u32(bytes, number);
        put_u64(bytes, sum.versions);
        put_u64(bytes, sum.sum);
    }
}

/// The sums by range. None if some number is no range.
fn ranges(list: &BTreeMap<u32, RangeSum>) -> Option<ByRange> {
    let mut ranges = ByRange::default();
    for (number, sum) in list {
        let number = Some(*number as usize).filter(|number| *number < RANGES)?;
        ranges.add(number, *sum);
    }
    Some(ranges)
}

/// What is left to decode.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn list(&mut self) -> Option<BTreeMap<u32, RangeSum>> {
        let mut list = BTreeMap::new();
        for _ in 0..self.u32()? {
            let number = self.u32()?;
            list.insert(number, RangeSum { versions: self.u64()?, sum: self.u64()? });
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::IndexedVersion;

    fn saved() -> Saved {
        let mut sums = Sums::default();
        for n in 0u64..4 {
            sums.add(&n.to_be_bytes(), IndexedVersion { digest: n, seq: 1, expires_secs: n as u32 * 5_000 });
        }
        let run = StoreRun { stores: vec![(7, 2), (0, 0)], last_seq: 12, keys: 4, lost_ranges: 1 };
        let classes = vec![(3, sums), (u32::MAX, Sums::default())];
        Saved { partition: 17, class_print: u64::MAX, choice_print: 5, run, set_aside_to: 0, classes }
    }

    #[test]
    fn the_bytes_are_those_of_version_2_and_damage_is_noticed() {
        for (name, set_aside_to) in [("17.sums", 0), ("17-set-aside.sums", 9)] {
            let saved = Saved { set_aside_to, ..saved() };
            let bytes = saved.encode();
            let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, name, &bytes);
            assert_eq!(Saved::decode(&frozen), Some(saved));
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                assert_eq!(Saved::decode(&damaged), None, "{name}: byte {at}");
                assert_eq!(Saved::decode(&bytes[..at]), None, "{name}: {at} bytes");
            }
        }
    }

    #[test]
    fn counts_that_the_bytes_do_not_justify_are_refused() {
        let mut bytes = saved().encode();
        bytes.truncate(32);
        put_u32(&mut bytes, u32::MAX);
        let hash = xxh3_64(&bytes);
        put_u64(&mut bytes, hash);
        assert_eq!(Saved::decode(&bytes), None);
    }

    #[test]
    fn another_format_and_another_key_hash_are_not_read() {
        for at in [8, 10] {
            let mut bytes = saved().encode();
            bytes[at] += 2;
            let content = bytes.len() - 8;
            let hash = xxh3_64(&bytes[..content]);
            bytes.truncate(content);
            put_u64(&mut bytes, hash);
            assert_eq!(Saved::decode(&bytes), None);
        }
    }
}
