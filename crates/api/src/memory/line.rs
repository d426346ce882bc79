//! The queue of connections that wait for memory.

use std::collections::BTreeMap;

/// The highest number of small connections, and of large connections, that wait at the same time.
/// Further ones are refused.
const LENGTH_MAX: usize = 1_000;

/// The place of a connection in the queue. Small connections come before large connections. Within
/// a kind, the connection that began first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Whether the connection would hold more than a small share of the budget.
    pub(super) is_large: bool,
    /// A number that grows with the time at which the connection began to hold memory, or to ask
    /// for it.
    pub(super) began: u64,
}

/// The waiting accounts by their places.
#[derive(Default)]
pub(super) struct Line {
    small: BTreeMap<u64, u64>,
    large: BTreeMap<u64, u64>,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    /// Whether no further connection may wait at a place of this kind.
    pub(super) fn is_full(&self, place: Place) -> bool {
        let side = if place.is_large { &self.large } else { &self.small };
        side.len() >= LENGTH_MAX
    }

    pub(super) fn insert(&mut self, place: Place, account: u64) {
        self.side(place).insert(place.began, account);
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.side(place).remove(&place.began);
    }

    /// The accounts before a place, in order.
    pub(super) fn before(&self, place: Place) -> impl Iterator<Item = u64> {
        let (small_end, large_end) = if place.is_large { (u64::MAX, place.began) } else { (place.began, 0) };
        self.small.range(..small_end).chain(self.large.range(..large_end)).map(|(_, account)| *account)
    }

    /// All accounts, in order.
    pub(super) fn accounts(&self) -> impl Iterator<Item = u64> {
        self.small.values().chain(self.large.values()).copied()
    }

    fn side(&mut self, place: Place) -> &mut BTreeMap<u64, u64> {
        if place.is_large { &mut self.large } else { &mut self.small }
    }
}
