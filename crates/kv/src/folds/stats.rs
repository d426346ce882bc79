//! How many objects there are, and how large they are.

use std::collections::BTreeMap;

/// Statistics over objects. Tombstones are objects with one sibling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldStats {
    /// The number of objects.
    pub objects: u64,
    /// Their bytes: those of heads and values, before a store compresses them.
    pub bytes: u64,
    /// How many objects have a size of an order of magnitude: 0 for up to 9 bytes, 1 for up to 99.
    pub sizes: BTreeMap<u32, u64>,
    /// How many objects have a number of siblings.
    pub siblings: BTreeMap<u32, u64>,
}

impl FoldStats {
    /// Counts an object.
    pub(super) fn add(&mut self, bytes: u64, siblings: usize) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        *self.sizes.entry(bytes.checked_ilog10().unwrap_or(0)).or_default() += 1;
        *self.siblings.entry(u32::try_from(siblings).unwrap_or(u32::MAX)).or_default() += 1;
    }

    /// Counts the objects of other statistics.
    pub(super) fn merge(&mut self, other: &Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
        let orders = [(&mut self.sizes, &other.sizes), (&mut self.siblings, &other.siblings)];
        for (here, there) in orders {
            for (order, count) in there {
                let here = here.entry(*order).or_default();
                *here = here.saturating_add(*count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_by_their_number_of_digits() {
        let mut stats = FoldStats::default();
        for (bytes, siblings) in [(0, 1), (9, 1), (10, 2), (99, 1), (100, 1)] {
            stats.add(bytes, siblings);
        }
        let mut twice = stats.clone();
        twice.merge(&stats);
        assert_eq!((stats.objects, stats.bytes), (5, 218));
        assert_eq!(stats.sizes, BTreeMap::from([(0, 2), (1, 2), (2, 1)]));
        assert_eq!(stats.siblings, BTreeMap::from([(1, 4), (2, 1)]));
        assert_eq!((twice.objects, twice.bytes, twice.sizes[&1]), (10, 436, 4));
    }
}
