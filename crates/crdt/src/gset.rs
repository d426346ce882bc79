//! Sets that only grow: Riak's `riak_dt_gset`.

use bytes::Bytes;
use std::collections::BTreeSet;

/// A set that only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GSet {
    members: BTreeSet<Bytes>,
}

/// The members that a request added. It is itself a set that grows, and needs no past.
pub type GSetDelta = GSet;

impl GSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members in the order of their bytes.
    pub fn members(&self) -> impl Iterator<Item = &Bytes> {
        self.members.iter()
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What adding members changes: those of them that it does not have.
    pub fn delta(&self, adds: impl IntoIterator<Item = Bytes>) -> GSetDelta {
        adds.into_iter().filter(|member| !self.members.contains(member)).collect()
    }

    /// Merges another copy, or a delta.
    pub fn merge(&mut self, other: &Self) {
        self.members.extend(other.members.iter().cloned());
    }

    /// The length of the longest member.
    pub fn member_bytes_max(&self) -> usize {
        self.members.iter().map(Bytes::len).max().unwrap_or(0)
    }
}

impl FromIterator<Bytes> for GSet {
    fn from_iter<I: IntoIterator<Item = Bytes>>(members: I) -> Self {
        Self { members: members.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests;
