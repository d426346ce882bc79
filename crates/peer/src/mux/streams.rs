//! The requests of one side, by number.

use super::sorted::Sorted;
use crate::frame::StreamId;
use slab::Slab;

/// An entry for each of some requests. Entries stay where they are until they are removed.
#[derive(Debug)]
pub(super) struct Streams<V> {
    places: Sorted<StreamId, usize>,
    entries: Slab<V>,
}

impl<V> Streams<V> {
    pub(super) const fn new() -> Self {
        Self { places: Sorted::new(), entries: Slab::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The smallest number.
    pub(super) fn first(&self) -> Option<StreamId> {
        self.places.first().map(|(stream, _)| stream)
    }

    /// Adds a request. Returns whether its number is new; otherwise nothing changes.
    #[must_use]
    pub(super) fn insert(&mut self, stream: StreamId, entry: V) -> bool {
        let place = self.entries.vacant_entry();
        let is_new = self.places.insert(stream, place.key());
        if is_new {
            place.insert(entry);
        }
        is_new
    }

    /// All requests, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamId, &V)> {
        self.places.iter().filter_map(|(stream, place)| Some((stream, self.entries.get(place)?)))
    }

    pub(super) fn contains(&self, stream: StreamId) -> bool {
        self.places.get(stream).is_some()
    }

    pub(super) fn get(&self, stream: StreamId) -> Option<&V> {
        self.entries.get(self.places.get(stream)?)
    }

    pub(super) fn get_mut(&mut self, stream: StreamId) -> Option<&mut V> {
        self.entries.get_mut(self.places.get(stream)?)
    }

    pub(super) fn remove(&mut self, stream: StreamId) -> Option<V> {
        self.entries.try_remove(self.places.remove(stream)?)
    }
}
