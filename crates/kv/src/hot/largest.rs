//! The largest objects of a stream.

/// Keeps the largest sizes, with one entry for each name.
#[derive(Debug)]
pub(super) struct Largest<T> {
    capacity: usize,
    /// The largest first.
    entries: Vec<(u64, u64, T)>,
}

impl<T> Largest<T> {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, entries: Vec::new() }
    }

    /// Offers an object of some bytes. A name keeps its largest size. `name` is called if the
    /// object gets an entry.
    pub(super) fn offer(&mut self, id: u64, bytes: u64, name: impl FnOnce() -> T) {
        if let Some(at) = self.entries.iter().position(|(is, _, _)| *is == id) {
            if bytes > self.entries[at].1 {
                self.entries[at].1 = bytes;
                self.sort();
            }
            return;
        }
        let has_room = self.entries.len() < self.capacity;
        if bytes == 0 || !has_room && self.entries.last().is_none_or(|(_, smallest, _)| bytes <= *smallest) {
            return;
        }
        if !has_room {
            self.entries.pop();
        }
        self.entries.push((id, bytes, name()));
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    }

    /// The entries: number, bytes and name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.entries.iter().map(|(id, bytes, name)| (*id, *bytes, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_largest_of_each_name_are_kept(offers in prop::collection::vec((0u64..30, 0u64..100), 0..200)) {
            let mut largest = Largest::new(5);
            let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
            for (id, bytes) in offers {
                largest.offer(id, bytes, || ());
                let known = exact.entry(id).or_default();
                *known = bytes.max(*known);
            }
            let mut expected: Vec<u64> = exact.into_values().filter(|bytes| *bytes > 0).collect();
            expected.sort_by_key(|bytes| std::cmp::Reverse(*bytes));
            expected.truncate(5);
            let kept: Vec<u64> = largest.entries().map(|(_, bytes, _)| bytes).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
