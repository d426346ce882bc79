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
use super::saved_bytes::{Rest, put_count, put_hash, put_run, put_u32, put_u64};
use crate::replica::RangeSum;
use ombak_storage::KEY_HASH_VERSION;
use std::collections::BTreeMap;

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
        put_run(&mut bytes, &self.run);
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
        put_hash(&mut bytes);
        bytes
    }

    /// None if the bytes are damaged or of another format.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest::of(bytes, MAGIC)?;
        let (format, key_hash_version) = (rest.u16()?, rest.u16()?);
        if !matches!(format, FORMAT | FORMAT_WITH_SET_ASIDE) || key_hash_version != KEY_HASH_VERSION {
            return None;
        }
        let (partition, class_print, choice_print) = (rest.u32()?, rest.u64()?, rest.u64()?);
        let run = rest.run()?;
        let set_aside_to = if format == FORMAT_WITH_SET_ASIDE { rest.u64()? } else { 0 };
        let mut classes = Vec::new();
        for _ in 0..rest.u32()? {
            let n = rest.u32()?;
            let (all, expiring) = (ranges(&list(&mut rest)?)?, ranges(&list(&mut rest)?)?);
            classes.push((n, Sums { all, expiring, slots: list(&mut rest)? }));
        }
        rest.is_empty().then_some(Self { partition, class_print, choice_print, run, set_aside_to, classes })
    }
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

fn list(rest: &mut Rest<'_>) -> Option<BTreeMap<u32, RangeSum>> {
    let mut list = BTreeMap::new();
    for _ in 0..rest.u32()? {
        let number = rest.u32()?;
        list.insert(number, RangeSum { versions: rest.u64()?, sum: rest.u64()? });
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::IndexedVersion;
    use xxhash_rust::xxh3::xxh3_64;

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
