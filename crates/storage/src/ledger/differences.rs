//! The difference between two ordered lists: which items are removed and which are added when one
//! replaces the other.

use std::cmp::Ordering;

/// An item that only one of two lists has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference<'a, T> {
    /// Only the old list has it.
    Removed(&'a T),
    /// Only the new list has it.
    Added(&'a T),
}

/// Walks over two lists once and calls `visit`, in order, with each item that only one of them has.
///
/// Both lists must be in the order of `compare` and have no item twice. The walk makes fewer
/// comparisons than both lists together have items, which matters because an object may have tens
/// of thousands of index entries.
pub(crate) fn visit_differences<'a, T>(
    mut old: &'a [T],
    mut new: &'a [T],
    mut compare: impl FnMut(&T, &T) -> Ordering,
    mut visit: impl FnMut(Difference<'a, T>),
) {
    while let (Some((before, old_rest)), Some((after, new_rest))) = (old.split_first(), new.split_first()) {
        match compare(before, after) {
            Ordering::Less => {
                visit(Difference::Removed(before));
                old = old_rest;
            }
            Ordering::Greater => {
                visit(Difference::Added(after));
                new = new_rest;
            }
            Ordering::Equal => (old, new) = (old_rest, new_rest),
        }
    }
    old.iter().for_each(|item| visit(Difference::Removed(item)));
    new.iter().for_each(|item| visit(Difference::Added(item)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The removed and the added items, and the number of comparisons.
    fn differences(old: &[u32], new: &[u32]) -> (Vec<u32>, Vec<u32>, usize) {
        let (mut removed, mut added, mut comparisons) = (Vec::new(), Vec::new(), 0);
        let compare = |one: &u32, other: &u32| {
            comparisons += 1;
            one.cmp(other)
        };
        visit_differences(old, new, compare, |difference| match difference {
            Difference::Removed(item) => removed.push(*item),
            Difference::Added(item) => added.push(*item),
        });
        (removed, added, comparisons)
    }

    #[test]
    fn forty_thousand_entries_for_forty_thousand_others_take_one_walk() {
        const COUNT: u32 = 40_000;
        let old: Vec<u32> = (0..COUNT).map(|n| n * 2).collect();
        let apart: Vec<u32> = (0..COUNT).map(|n| n * 2 + 1).collect();
        let half: Vec<u32> = (0..COUNT).map(|n| n * 2 + n % 2).collect();
        for new in [&apart, &half, &old, &Vec::new()] {
            let (removed, added, comparisons) = differences(&old, new);
            let (before, after): (BTreeSet<u32>, BTreeSet<u32>) =
                (old.iter().copied().collect(), new.iter().copied().collect());
            assert!(removed.iter().eq(before.difference(&after)) && added.iter().eq(after.difference(&before)));
            assert!(comparisons <= old.len() + new.len(), "{comparisons} comparisons");
        }
    }

    proptest! {
        #[test]
        fn a_walk_finds_what_a_search_for_each_item_finds(
            old in prop::collection::btree_set(0..60u32, 0..40),
            new in prop::collection::btree_set(0..60u32, 0..40),
        ) {
            let (old, new): (Vec<u32>, Vec<u32>) = (old.into_iter().collect(), new.into_iter().collect());
            let only_in = |one: &[u32], other: &[u32]| -> Vec<u32> {
                one.iter().copied().filter(|item| !other.contains(item)).collect()
            };
            let (removed, added, comparisons) = differences(&old, &new);
            prop_assert_eq!(removed, only_in(&old, &new));
            prop_assert_eq!(added, only_in(&new, &old));
            prop_assert!(comparisons <= old.len() + new.len());
        }
    }
}
