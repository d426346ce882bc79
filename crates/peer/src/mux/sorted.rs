//! A few keys in order.

use std::collections::VecDeque;

/// Keys in order, each once, with a value. Adding the largest key and removing the smallest cost
/// next to nothing, because the requests of a connection mostly come and go in order. Elsewhere a
/// change moves at most half of the entries, so they have to be small.
#[derive(Debug)]
pub(super) struct Sorted<K, V> {
    entries: VecDeque<(K, V)>,
}

impl<K: Ord + Copy, V: Copy> Sorted<K, V> {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry with the smallest key.
    pub(super) fn first(&self) -> Option<(K, V)> {
        self.entries.front().copied()
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, V)> {
        self.entries.iter().copied()
    }

    /// Where a key is, or where it would be.
    fn search(&self, key: K) -> Result<usize, usize> {
        match (self.entries.front(), self.entries.back()) {
            (Some((first, _)), _) if *first == key => Ok(0),
            (_, Some((last, _))) if *last >= key => self.entries.binary_search_by_key(&key, |(key, _)| *key),
            _ => Err(self.entries.len()),
        }
    }

    pub(super) fn get(&self, key: K) -> Option<V> {
        self.search(key).ok().map(|at| self.entries[at].1)
    }

    /// Adds an entry. Returns whether the key is new; otherwise nothing changes.
    #[must_use]
    pub(super) fn insert(&mut self, key: K, value: V) -> bool {
        match self.search(key) {
            Ok(_) => false,
            Err(at) if at == self.entries.len() => {
                self.entries.push_back((key, value));
                true
            }
            Err(at) => {
                self.entries.insert(at, (key, value));
                true
            }
        }
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (_, value) = match self.search(key).ok()? {
            0 => self.entries.pop_front()?,
            at => self.entries.remove(at)?,
        };
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_does_what_a_tree_does(changes in prop::collection::vec((0u8..40, any::<u32>(), any::<bool>()), 0..200)) {
            let (mut sorted, mut tree) = (Sorted::new(), BTreeMap::new());
            for (key, value, adds) in changes {
                match adds {
                    true => {
                        prop_assert_eq!(sorted.insert(key, value), !tree.contains_key(&key));
                        tree.entry(key).or_insert(value);
                    }
                    false => prop_assert_eq!(sorted.remove(key), tree.remove(&key)),
                }
                prop_assert_eq!(sorted.first(), tree.first_key_value().map(|(key, value)| (*key, *value)));
                prop_assert_eq!(sorted.len(), tree.len());
                prop_assert_eq!(sorted.get(key), tree.get(&key).copied());
            }
        }
    }
}
