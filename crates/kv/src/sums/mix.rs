//! The number that stands for one version in a sum.

use crate::replica::RangeSum;

/// A number for one version, such that sums of them tell sets of versions apart. `hash` is the hash
/// of its key.
///
/// Replicas compare sums of these numbers, so the formula is a part of the protocol between nodes.
pub const fn mix(hash: u64, digest: u64) -> u64 {
    let mixed = (hash ^ digest.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ digest
}

/// The sum of one version.
pub(super) const fn one(hash: u64, digest: u64) -> RangeSum {
    RangeSum { versions: 1, sum: mix(hash, digest) }
}

/// The sum of both. A number of versions may be below zero meanwhile, so it wraps, too.
pub(super) const fn plus(one: RangeSum, other: RangeSum) -> RangeSum {
    RangeSum { versions: one.versions.wrapping_add(other.versions), sum: one.sum.wrapping_add(other.sum) }
}

/// What is missing in `other`.
pub(super) const fn minus(one: RangeSum, other: RangeSum) -> RangeSum {
    RangeSum { versions: one.versions.wrapping_sub(other.versions), sum: one.sum.wrapping_sub(other.sum) }
}

/// The sum of nothing.
pub(super) const NOTHING: RangeSum = RangeSum { versions: 0, sum: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    /// Two releases that run in one cluster must agree on these.
    #[test]
    fn the_formula_does_not_change() {
        let numbers = [(0, 0), (1, 0), (0, 1), (0x2D06_8005_38D3_94C2, 0xD1D1_E911_DEA7_C27B)];
        let mixed = numbers.map(|(hash, digest)| mix(hash, digest));
        assert_eq!(mixed, [0, MIXED[0], MIXED[1], MIXED[2]], "{mixed:#018X?}");
    }

    const MIXED: [u64; 3] = [0xCA00_9717_327D_1F6E, 0x1071_9956_6433_A169, 0xAE25_C882_2AA4_F886];

    #[test]
    fn a_sum_without_its_parts_is_nothing() {
        let sum = plus(one(5, 6), one(7, 8));
        assert_eq!(minus(minus(sum, one(7, 8)), one(5, 6)), NOTHING);
        assert_eq!(plus(minus(NOTHING, one(5, 6)), one(5, 6)), NOTHING, "in any order");
    }
}
