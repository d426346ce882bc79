//! The heaviest names of a stream, in bounded memory.
//!
//! This is the algorithm Space-Saving (Metwally, Agrawal and El Abbadi, 2005). A name that has no
//! entry takes over the entry with the smallest count, and that count becomes its possible error.
//! With `capacity` entries and a total weight of `total`:
//!
//! * a count is never too small, and too large by at most its error;
//! * an error is at most `total / capacity`;
//! * a name that weighs more than `total / capacity` has an entry.
//!
//! It has no clock, no lock and no randomness. Entries are found by a scan: there are few, and
//! their numbers lie side by side.

/// An entry of a [`Sketch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heavy<T> {
    pub(super) id: u64,
    /// At least what the name weighs.
    pub(super) count: u64,
    /// At most by how much `count` is too large.
    pub(super) error: u64,
    pub(super) name: T,
}

/// Counts the weights of names. Each name has a number of its own.
#[derive(Debug)]
pub(super) struct Sketch<T> {
    capacity: usize,
    ids: Vec<u64>,
    counts: Vec<u64>,
    /// The errors and names, in the same order.
    rest: Vec<(u64, T)>,
}

impl<T> Sketch<T> {
    /// A sketch with room for `capacity` names, which is at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), ids: Vec::new(), counts: Vec::new(), rest: Vec::new() }
    }

    /// Adds to the weight of a name. `name` is called if the name needs an entry.
    pub(super) fn add(&mut self, id: u64, weight: u64, name: impl FnOnce() -> T) {
        if let Some(at) = self.ids.iter().position(|is| *is == id) {
            self.counts[at] += weight;
        } else if self.ids.len() < self.capacity {
            self.ids.push(id);
            self.counts.push(weight);
            self.rest.push((0, name()));
        } else if let Some(at) = self.smallest() {
            let error = self.counts[at];
            self.ids[at] = id;
            self.counts[at] = error + weight;
            self.rest[at] = (error, name());
        }
    }

    fn smallest(&self) -> Option<usize> {
        self.counts.iter().enumerate().min_by_key(|(_, count)| **count).map(|(at, _)| at)
    }

    /// What the heaviest name without an entry can weigh.
    #[cfg(test)]
    fn unknown_max(&self) -> u64 {
        if self.ids.len() < self.capacity { 0 } else { self.counts.iter().copied().min().unwrap_or(0) }
    }

    /// All entries, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Heavy<&T>> {
        let numbers = self.ids.iter().zip(&self.counts).zip(&self.rest);
        numbers.map(|((id, count), (error, name))| Heavy { id: *id, count: *count, error: *error, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Streams in which a few names are frequent and many are rare.
    fn stream() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let id = prop_oneof![0u64..4, 0u64..200];
        prop::collection::vec((id, 1u64..40), 0..600)
    }

    proptest! {
        #[test]
        fn counts_are_within_their_errors_of_the_exact_ones(stream in stream(), capacity in 1usize..40) {
            let mut sketch = Sketch::new(capacity);
            let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
            for (id, weight) in &stream {
                sketch.add(*id, *weight, || id.to_string());
                *exact.entry(*id).or_default() += weight;
            }
            let total: u64 = exact.values().sum();
            prop_assert!(sketch.entries().count() <= capacity);
            prop_assert_eq!(sketch.entries().map(|entry| entry.count).sum::<u64>(), total);
            for Heavy { id, count, error, name } in sketch.entries() {
                prop_assert_eq!(name, &id.to_string());
                let weight = exact.get(&id).copied().unwrap_or(0);
                prop_assert!(count >= weight && count - error <= weight, "{count} - {error} for {weight}");
                prop_assert!(error <= total / capacity as u64);
            }
            prop_assert!(sketch.unknown_max() <= total / capacity as u64);
            for (id, weight) in exact {
                let is_known = sketch.entries().any(|entry| entry.id == id);
                prop_assert!(is_known || weight <= sketch.unknown_max(), "{id} with {weight} is missing");
            }
        }

        #[test]
        fn few_names_are_counted_exactly(stream in prop::collection::vec((0u64..8, 1u64..40), 0..200)) {
            let mut sketch = Sketch::new(8);
            let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
            for (id, weight) in stream {
                sketch.add(id, weight, || ());
                *exact.entry(id).or_default() += weight;
            }
            let counted: BTreeMap<u64, u64> = sketch.entries().map(|entry| (entry.id, entry.count)).collect();
            prop_assert_eq!(counted, exact);
            prop_assert!(sketch.entries().all(|entry| entry.error == 0));
        }
    }
}
