//! The bytes of saved trees.
//!
//! Layout: magic 8, format u16, partition u32, print of the keys of the trees u64, print of the
//! choice of backends u64, the run (count of stores u32, for each its id and boot u64; last seq,
//! keys, lost ranges u64), the seq up to which versions are set aside u64, count of trees u32, the
//! trees, and the XXH3 hash of all that u64. A tree: n u32, count of branches u32, and for each
//! branch that is not all 0 its number u32 and its leaves, 4 bytes each, big-endian. All other
//! integers are little-endian.

use super::leaves::KeptLeaves;
use crate::sums::StoreRun;
use crate::sums::saved_bytes::{Rest, put_count, put_hash, put_run, put_u32, put_u64};
use ombak_tictac::LEAVES;

const MAGIC: &[u8; 8] = b"OMBAKTRE";
/// A file of a format that is unknown is not read: the trees are made anew.
const FORMAT: u16 = 1;
const BRANCH_BYTES: usize = LEAVES * 4;

/// The trees of a partition at the end of a run.
pub(super) struct Saved {
    pub(super) partition: u32,
    /// By which rules keys are in trees.
    pub(super) print: u64,
    /// By which rules buckets are on backends.
    pub(super) choice_print: u64,
    pub(super) run: StoreRun,
    /// Versions up to this seq are set aside, and not in the trees.
    pub(super) set_aside_to: u64,
    /// The tree of each n.
    pub(super) trees: Vec<(u32, KeptLeaves)>,
}

/// What stands before the trees.
pub(super) struct Head<'a> {
    pub(super) partition: u32,
    pub(super) print: u64,
    pub(super) choice_print: u64,
    pub(super) run: &'a StoreRun,
    pub(super) set_aside_to: u64,
}

/// The bytes of trees.
pub(super) fn encode<'a>(head: &Head<'_>, trees: impl ExactSizeIterator<Item = (u32, &'a KeptLeaves)>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    put_u32(&mut bytes, head.partition);
    put_u64(&mut bytes, head.print);
    put_u64(&mut bytes, head.choice_print);
    put_run(&mut bytes, head.run);
    put_u64(&mut bytes, head.set_aside_to);
    put_count(&mut bytes, trees.len());
    for (n, leaves) in trees {
        put_u32(&mut bytes, n);
        let count_at = bytes.len();
        put_u32(&mut bytes, 0);
        let mut count = 0u32;
        for (branch, leaves) in leaves.branches() {
            put_u32(&mut bytes, branch);
            bytes.extend_from_slice(&leaves);
            count += 1;
        }
        bytes[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    }
    put_hash(&mut bytes);
    bytes
}

impl Saved {
    /// None if the bytes are damaged or of another format.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest::of(bytes, MAGIC)?;
        if rest.u16()? != FORMAT {
            return None;
        }
        let (partition, print, choice_print) = (rest.u32()?, rest.u64()?, rest.u64()?);
        let run = rest.run()?;
        let set_aside_to = rest.u64()?;
        let mut trees = Vec::new();
        for _ in 0..rest.u32()? {
            let (n, leaves) = (rest.u32()?, KeptLeaves::new());
            for _ in 0..rest.u32()? {
                let branch = rest.u32()?;
                leaves.add_branch(branch, &rest.take::<BRANCH_BYTES>()?).then_some(())?;
            }
            trees.push((n, leaves));
        }
        rest.is_empty().then_some(Self { partition, print, choice_print, run, set_aside_to, trees })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn run() -> StoreRun {
        StoreRun { stores: vec![(7, 2), (0, 0)], last_seq: 12, keys: 4, lost_ranges: 1 }
    }

    fn bytes() -> Vec<u8> {
        let (tree, empty) = (KeptLeaves::new(), KeptLeaves::new());
        [(5u32, 9u32), (300, 1), (0xF_FFFF, u32::MAX)].iter().for_each(|(segment, add)| tree.add(*segment, *add));
        let run = run();
        let head = Head { partition: 17, print: u64::MAX, choice_print: 5, run: &run, set_aside_to: 9 };
        encode(&head, [(3, &tree), (u32::MAX, &empty)].into_iter())
    }

    #[test]
    fn the_bytes_are_those_of_version_1_and_damage_is_noticed() {
        let bytes = bytes();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, "17.trees", &bytes);
        let saved = Saved::decode(&frozen).unwrap();
        assert_eq!((saved.partition, saved.print, saved.choice_print), (17, u64::MAX, 5));
        assert_eq!((&saved.run, saved.set_aside_to, saved.trees.len()), (&run(), 9, 2));
        let head = Head { partition: 17, print: u64::MAX, choice_print: 5, run: &saved.run, set_aside_to: 9 };
        assert_eq!(encode(&head, saved.trees.iter().map(|(n, leaves)| (*n, leaves))), bytes);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(Saved::decode(&damaged).is_none(), "byte {at}");
            assert!(Saved::decode(&bytes[..at]).is_none(), "{at} bytes");
        }
    }

    #[test]
    fn another_format_and_branches_that_are_none_are_not_read() {
        let rehashed = |at: usize, value: u8| {
            let mut bytes = bytes();
            let content = bytes.len() - 8;
            bytes[at] = value;
            let hash = xxh3_64(&bytes[..content]);
            bytes.truncate(content);
            put_u64(&mut bytes, hash);
            Saved::decode(&bytes)
        };
        assert!(rehashed(8, FORMAT as u8).is_some());
        assert!(rehashed(8, 2).is_none());
        // The second byte of the number of the first branch: 18 bytes before the run and 16 for
        // prints, then 4 + 2 * 16 + 24 + 8 + 4, and n and the count of branches.
        let branch = 8 + 2 + 4 + 16 + 4 + 32 + 24 + 8 + 4 + 8;
        assert!(rehashed(branch, 0).is_some());
        assert!(rehashed(branch + 1, 0x10).is_none(), "a tree has 4,096 branches");
    }
}
