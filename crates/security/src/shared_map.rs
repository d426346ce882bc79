//! A map that can be copied and changed at the cost of a few entries.
//!
//! What it is: entries by name, spread over a fixed number of parts. A copy shares the parts with
//! its original, and a change copies the one part that it concerns. With 10,000 entries that are
//! some 80 entries and the list of parts, where a copy of a whole map would be 10,000. So each
//! change of a record can make a new state while readers go on with the old one.
//!
//! What it is not: it has no order.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// How many parts there are: about as many as a part has entries when the map is full.
const PARTS: usize = 128;

/// The entries of a part.
type Part<T> = HashMap<Arc<str>, Arc<T>>;

/// A map whose copies share what has not been changed since.
#[derive(Debug)]
pub(crate) struct SharedMap<T> {
    parts: Box<[Arc<Part<T>>]>,
}

impl<T> Default for SharedMap<T> {
    fn default() -> Self {
        Self { parts: vec![Arc::default(); PARTS].into() }
    }
}

impl<T> Clone for SharedMap<T> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone() }
    }
}

impl<T> SharedMap<T> {
    /// The entry of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.parts.get(place(name))?.get(name)
    }

    /// Sets the entry of a name, or removes it.
    pub(crate) fn set(&mut self, name: &str, value: Option<Arc<T>>) {
        let Some(part) = self.parts.get_mut(place(name)) else { return };
        match value {
            Some(value) => drop(Arc::make_mut(part).insert(name.into(), value)),
            // A part is not copied for nothing.
            None if part.contains_key(name) => drop(Arc::make_mut(part).remove(name)),
            None => {}
        }
    }

    /// All entries, in any order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.parts.iter().flat_map(|part| part.values())
    }
}

/// The part that has a name. Whoever may add names may do anything, so nobody is kept from choosing
/// names of one part.
fn place(name: &str) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
    usize::try_from(hash % PARTS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_copy_is_seen_there_alone_and_copies_one_part() {
        let mut map = SharedMap::default();
        for number in 0..10_000 {
            map.set(&number.to_string(), Some(Arc::new(number)));
        }
        let mut copy = map.clone();
        copy.set("7", Some(Arc::new(70)));
        copy.set("no such name", None);
        let shared = map.parts.iter().zip(&copy.parts).filter(|(one, other)| Arc::ptr_eq(one, other)).count();
        assert_eq!(shared, PARTS - 1);
        copy.set("8", None);
        assert_eq!((map.get("7"), map.get("8")), (Some(&Arc::new(7)), Some(&Arc::new(8))));
        assert_eq!((copy.get("7"), copy.get("8")), (Some(&Arc::new(70)), None));
        assert_eq!((map.values().count(), copy.values().count()), (10_000, 9_999));
        let largest = map.parts.iter().map(|part| part.len()).max();
        assert!(largest < Some(200), "{largest:?}");
    }
}
